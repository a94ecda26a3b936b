//! A server: given, or private.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::database::TestDatabase;
use crate::programs::Programs;

/// How long a server may take to answer: a machine under load starts one in seconds.
const STARTED_WITHIN: Duration = Duration::from_secs(60);

/// Runs the server, does as it is told, and puts everything away once nobody tells it any more.
const WATCH: &str = r#"
start() { "$@" & pid=$!; }
folder=$1; shift
start "$@"
while read -r word; do
  case $word in
    stop) kill -INT $pid; wait $pid ;;
    kill) kill -QUIT $pid; wait $pid ;;
    start) start "$@" ;;
  esac
  echo done
done
kill -QUIT $pid; wait $pid; rm -rf "$folder"
"#;

/// The settings of a private server. Commits are on disk there too.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", ""),
    // What a test sees is not moved by a transaction of the server's own.
    ("autovacuum", "off"),
    ("max_connections", "200"),
    ("max_prepared_transactions", "64"),
    ("shared_buffers", "64MB"),
    ("wal_level", "logical"),
    ("max_wal_size", "256MB"),
    ("log_min_messages", "fatal"),
];

/// A Postgres server.
#[derive(Debug)]
pub struct Server {
    /// Everything of an address but the database's name.
    before: String,
    after: String,
    watch: Option<Watch>,
}

#[derive(Debug)]
struct Watch {
    folder: PathBuf,
    shell: Mutex<(Child, ChildStdin, std::io::BufReader<std::process::ChildStdout>)>,
}

impl Server {
    /// One that runs already, by a superuser's address.
    pub(crate) fn given(address: &str) -> Self {
        let (base, query) = address.split_once('?').unwrap_or((address, ""));
        let scheme = base.find("://").map_or(0, |at| at + 3);
        let end = base[scheme..].find('/').map_or(base.len(), |at| scheme + at);
        let after = if query.is_empty() { String::new() } else { format!("?{query}") };
        Self { before: format!("{}/", &base[..end]), after, watch: None }
    }

    /// A new one; none if there are no programs to make one with.
    pub(crate) fn private(settings: &[(&str, &str)]) -> Option<Self> {
        let programs = Programs::find()?;
        let template = template(&programs);
        let folder = fresh(&programs);
        done(programs.command("cp").arg("-a").arg(&template).arg(folder.join("data")));
        Some(Self::begin(&programs, folder, settings))
    }

    /// Starts one over the data that is in a folder.
    fn begin(programs: &Programs, folder: PathBuf, settings: &[(&str, &str)]) -> Self {
        let data = folder.join("data");
        let port = settings.iter().find(|(name, _)| *name == "port");
        let port = port.map_or_else(String::new, |(_, port)| format!(":{port}"));
        let mut command = programs.command("sh");
        command.args(["-c", WATCH, "sh"]).arg(&folder).arg(programs.path("postgres"));
        command.arg("-D").arg(&data).arg("-k").arg(&folder);
        for (name, value) in SETTINGS.iter().chain(settings) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        // A signal for us is none for it.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = command.spawn().expect("a shell");
        let told = shell.stdin.take().expect("a pipe");
        let says = std::io::BufReader::new(shell.stdout.take().expect("a pipe"));
        let server = Self {
            before: format!("postgres://postgres@localhost{port}/"),
            after: format!("?host={}", folder.display()),
            watch: Some(Watch { folder, shell: Mutex::new((shell, told, says)) }),
        };
        server.wait();
        server
    }

    /// A standby of a private server, that streams from it.
    ///
    /// # Panics
    /// If there is none to be had.
    pub fn standby(&self) -> Self {
        let programs = Programs::find().expect("it was made with them");
        let folder = fresh(&programs);
        let mut copying = self.program("pg_basebackup");
        done(copying.arg("-D").arg(folder.join("data")).args(["-R", "-c", "fast", "-X", "stream"]));
        Self::begin(&programs, folder, &[("hot_standby", "on")])
    }

    /// A copy of everything that a private server has, which runs or not, to be put back later.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn back_up(&self) -> Backup {
        let programs = Programs::find().expect("it was made with them");
        let folder = fresh(&programs);
        let data = self.folder().expect("a private server").join("data");
        done(programs.command("cp").arg("-a").arg(data).arg(&folder));
        Backup { folder }
    }

    /// Puts a copy in the place of what a private server has, which does not run.
    ///
    /// # Panics
    /// If it cannot be done.
    pub fn put_back(&self, backup: &Backup) {
        let programs = Programs::find().expect("it was made with them");
        let folder = self.folder().expect("a private server");
        done(programs.command("rm").arg("-rf").arg(folder.join("data")));
        done(programs.command("cp").arg("-a").arg(backup.folder.join("data")).arg(folder));
        done(programs.command("rm").arg("-f").arg(folder.join("data/postmaster.pid")));
    }

    /// A command of any program, as the user that owns a private server.
    ///
    /// # Panics
    /// If there is no such user.
    pub fn command(&self, program: &str) -> Command {
        Programs::find().expect("it was made with them").command(program)
    }

    /// A command of one of Postgres's programs, told where a private server is.
    ///
    /// # Panics
    /// If it is not private.
    pub fn program(&self, name: &str) -> Command {
        let programs = Programs::find().expect("it was made with them");
        let mut command = programs.command(programs.path(name));
        command.env("PGHOST", self.folder().expect("a private server")).env("PGUSER", "postgres");
        command
    }

    /// The address of a database, as the superuser.
    pub fn address(&self, database: &str) -> String {
        format!("{}{database}{}", self.before, self.after)
    }

    /// The folder with the socket and, in `data`, everything a private server has.
    pub fn folder(&self) -> Option<&Path> {
        self.watch.as_ref().map(|watch| watch.folder.as_path())
    }

    /// Whether it is nobody else's.
    pub fn is_private(&self) -> bool {
        self.watch.is_some()
    }

    /// A database of its own.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn database(&self) -> TestDatabase {
        TestDatabase::of(self, "").await
    }

    /// A database of its own whose texts are ordered as English speakers order them.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn english_database(&self) -> TestDatabase {
        let words = "LOCALE 'C.UTF-8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'";
        TestDatabase::of(self, words).await
    }

    /// Stops a private server as an operator does: connections are ended, nothing is lost.
    ///
    /// # Panics
    /// If it is not private.
    pub fn stop(&self) {
        self.tell("stop");
    }

    /// Ends a private server as a crash does.
    ///
    /// # Panics
    /// If it is not private.
    pub fn kill(&self) {
        self.tell("kill");
    }

    /// Starts a private server again, and waits until it answers.
    ///
    /// # Panics
    /// If it is not private, or does not start.
    pub fn start(&self) {
        self.tell("start");
        self.wait();
    }

    fn tell(&self, word: &str) {
        let watch = self.watch.as_ref().expect("a private server");
        let mut shell = watch.shell.lock().expect("no holder of the lock panics");
        writeln!(shell.1, "{word}").expect("told");
        let mut answer = String::new();
        std::io::BufRead::read_line(&mut shell.2, &mut answer).expect("answered");
        assert_eq!(answer, "done\n");
    }

    /// Waits until it answers. On a thread of its own, since the caller may be asynchronous.
    fn wait(&self) {
        let address = self.address("postgres");
        let waiting = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let began = Instant::now();
            runtime.expect("a runtime").block_on(async {
                use sqlx::Connection;
                while let Err(error) = sqlx::PgConnection::connect(&address).await {
                    assert!(began.elapsed() < STARTED_WITHIN, "no answer: {error}");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
        });
        waiting.join().expect("answered");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            let (mut shell, told, _) =
                watch.shell.into_inner().expect("no holder of the lock panics");
            drop(told);
            let _ = shell.wait();
        }
    }
}

/// What a server had at one time; it goes with the value.
#[derive(Debug)]
pub struct Backup {
    folder: PathBuf,
}

impl Drop for Backup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A folder of the server's own.
fn fresh(programs: &Programs) -> PathBuf {
    let folder = tempfile::Builder::new().prefix("tkpg").tempdir().expect("a folder").keep();
    programs.own(&folder).expect("given away");
    folder
}

/// A cluster that never ran, made once and copied then: that is four times as fast.
fn template(programs: &Programs) -> PathBuf {
    let user = std::env::var("USER").unwrap_or_default();
    let name = format!("truekeep-postgres-{}-{user}", programs.version());
    let kept = std::env::temp_dir().join(name);
    if kept.join("data/PG_VERSION").is_file() {
        return kept.join("data");
    }
    let fresh = fresh(programs);
    let data = fresh.join("data");
    done(programs.command(programs.path("initdb")).arg("-D").arg(&data).args([
        "-A",
        "trust",
        "-U",
        "postgres",
        "--no-locale",
        "-E",
        "UTF8",
        "--no-sync",
    ]));
    // Another process may have made one meanwhile: then that one stays, and this one goes.
    if std::fs::rename(&fresh, &kept).is_err() {
        let _ = std::fs::remove_dir_all(&fresh);
    }
    kept.join("data")
}

fn done(command: &mut Command) {
    let output = command.output().expect("a program that runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
