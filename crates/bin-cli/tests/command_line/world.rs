//! A folder with a configuration and real database files, and the built binary run in it.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rusqlite::Connection;
use tempfile::TempDir;

/// The configuration of most tests: five cities into a mirror of columns.
pub const CONFIG: &str = r#"[source.app]
url = "sqlite:app.db"

[pipeline.cities]
source = "app"
table = "cities"
key = "id"
sink = "mirror"

[sink.mirror]
kind = "sqlite"
url = "sqlite:mirror.db"
table = "cities"
"#;

/// What a process said, with what differs from run to run replaced by words.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// As it is kept in snapshots.
    pub fn text(&self) -> String {
        let mut text = format!("exit {}\n", self.code);
        for (name, part) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !part.is_empty() {
                text += &format!("--- {name}\n{part}");
            }
        }
        text
    }
}

/// A folder of a test's own.
pub struct World {
    folder: TempDir,
    /// What else differs from run to run, with what stands for it.
    pub replaced: Vec<(String, &'static str)>,
}

impl World {
    /// An empty folder.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), replaced: Vec::new() }
    }

    /// Has one text stand for another in all that is said.
    pub fn replace(&mut self, text: &str, by: &'static str) {
        self.replaced.push((text.to_owned(), by));
    }

    /// The configuration and the source it names.
    pub fn cities() -> Self {
        let world = Self::empty();
        world.write("truekeep.toml", CONFIG);
        world.sql(
            "app.db",
            "CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT NOT NULL, people INTEGER);
             INSERT INTO cities VALUES (1, 'Zürich', 447000), (2, '東京', 13960000),
               (3, 'Αθήνα', 664000), (4, 'القاهرة', 9540000), (5, 'São Paulo', 12330000);",
        );
        world
    }

    /// As `cities`, with capture installed and everything delivered.
    pub fn followed() -> Self {
        let world = Self::cities();
        assert_eq!(world.run(&["capture", "install"]).code, 0);
        let run = world.run(&["run", "--once"]);
        assert_eq!(run.code, 0, "{}", run.text());
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    /// Replaces a part of the configuration.
    pub fn reconfigure(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path("truekeep.toml")).expect("read");
        assert!(text.contains(from), "{from}");
        self.write("truekeep.toml", &text.replace(from, to));
    }

    pub fn open(&self, database: &str) -> Connection {
        Connection::open(self.path(database)).expect("opened")
    }

    pub fn sql(&self, database: &str, sql: &str) {
        self.open(database).execute_batch(sql).expect("executed");
    }

    /// Runs the binary in the folder and waits for it.
    pub fn run(&self, arguments: &[&str]) -> Said {
        self.said(&mut self.command(arguments))
    }

    fn said(&self, command: &mut Command) -> Said {
        let output = command.output().expect("started");
        let text = |bytes: &[u8]| self.steady(std::str::from_utf8(bytes).expect("UTF-8"));
        Said {
            code: output.status.code().expect("it exits by itself"),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Runs the binary as somebody whom rights stop: as whoever runs the tests, unless that is
    /// root.
    pub fn run_with_few_rights(&self, arguments: &[&str]) -> Said {
        let folder = self.folder.path();
        if std::fs::metadata(folder).expect("it is there").uid() != 0 {
            return self.run(arguments);
        }
        let binary = self.path("truekeep-copy");
        // Another program writes it: while a thread of this one did, any child that was started
        // beside it would hold it open to write, and nobody could run it.
        let mut copy = Command::new("cp");
        assert!(
            copy.arg(env!("CARGO_BIN_EXE_truekeep")).arg(&binary).status().expect("cp").success()
        );
        for (path, mode) in [(folder, 0o777), (&binary, 0o755)] {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
        }
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let mut command = Command::new("setpriv");
        command.args(nobody).arg(&binary).args(arguments).current_dir(folder);
        self.said(command.stdin(Stdio::null()))
    }

    /// Lets everybody write every file.
    pub fn share(&self) {
        for entry in std::fs::read_dir(self.folder.path()).expect("read") {
            let path = entry.expect("read").path();
            std::fs::set_permissions(path, Permissions::from_mode(0o666)).expect("set");
        }
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_truekeep"));
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        // Who decides stands in the history.
        command.env("USER", "tester");
        command
    }

    /// Replaces the folder, times, ids and process numbers.
    pub fn steady(&self, text: &str) -> String {
        let folder = self.folder.path();
        let real = folder.canonicalize().expect("it is there");
        let mut text = replace_path(&replace_path(text, &real), folder);
        for (real, by) in &self.replaced {
            text = text.replace(real, by);
        }
        let text = replace_each(&text, 24, is_time, "[TIME]");
        let text = replace_each(&text, 36, is_uuid, "[ID]");
        let text = replace_numbers(&text, "", " s", "[N] s");
        let text = replace_numbers(&text, "\"age_ms\": ", "", "\"age_ms\": [N]");
        let text = replace_numbers(&text, "\"age_ms\":", "", "\"age_ms\":[N]");
        let text = replace_numbers(&text, "\"waited_ms\": ", "", "\"waited_ms\": [N]");
        let mut steady = String::new();
        // A holder is a process number and an id.
        for part in text.split_inclusive("-[ID]") {
            match part.strip_suffix("-[ID]") {
                Some(before) => {
                    let kept = before.trim_end_matches(|c: char| c.is_ascii_digit());
                    steady += kept;
                    steady += "[HOLDER]";
                }
                None => steady += part,
            }
        }
        steady
    }
}

fn replace_path(text: &str, path: &Path) -> String {
    text.replace(path.to_str().expect("UTF-8"), "[FOLDER]")
}

fn replace_each(text: &str, length: usize, is: fn(&[u8]) -> bool, by: &str) -> String {
    let bytes = text.as_bytes();
    let (mut made, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        match bytes.get(at..at + length) {
            Some(part) if is(part) => {
                made.extend(by.as_bytes());
                at += length;
            }
            _ => {
                made.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(made).expect("only ASCII was replaced")
}

/// Replaces a whole number between two texts, with them.
fn replace_numbers(text: &str, before: &str, after: &str, by: &str) -> String {
    let (mut made, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let length = rest[at..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - at);
        let (head, tail) = (&rest[..at], &rest[at + length..]);
        match (head.strip_suffix(before), tail.strip_prefix(after)) {
            (Some(head), Some(tail)) if !tail.starts_with(|c: char| c.is_alphanumeric()) => {
                made.push_str(head);
                made.push_str(by);
                rest = tail;
            }
            _ => {
                made.push_str(&rest[..at + length]);
                rest = tail;
            }
        }
    }
    made + rest
}

fn fits(part: &[u8], form: &str) -> bool {
    part.iter().zip(form.bytes()).all(|(byte, wanted)| match wanted {
        b'9' => byte.is_ascii_digit(),
        b'x' => byte.is_ascii_hexdigit(),
        other => *byte == other,
    })
}

fn is_time(part: &[u8]) -> bool {
    fits(part, "9999-99-99T99:99:99.999Z")
}

fn is_uuid(part: &[u8]) -> bool {
    fits(part, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}
