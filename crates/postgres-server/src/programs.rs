//! The programs of a Postgres that is installed here, and the user that may run them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where programs are, and whom they run as.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    folder: PathBuf,
    /// Another user than ours, since Postgres does not run as root: its number and its group's.
    user: Option<(u32, u32)>,
}

impl Programs {
    /// The newest ones that are installed here.
    pub fn find() -> Option<Self> {
        let folder = folders().into_iter().find(|folder| {
            ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
        })?;
        let root = number(Command::new("id").arg("-u"))? == 0;
        let user = if root { Some(other_user()?) } else { None };
        Some(Self { folder, user })
    }

    /// Which ones they are: part of the name of what is kept for the next time.
    pub fn version(&self) -> String {
        let output = Command::new(self.folder.join("postgres")).arg("--version").output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.unwrap_or_default().chars().filter(|c| c.is_ascii_digit() || *c == '.').collect()
    }

    /// A command of any program, as the user that owns the server.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = match self.user {
            None => Command::new(program.as_ref()),
            Some((user, group)) => {
                let mut command = Command::new("setpriv");
                command
                    .arg(format!("--reuid={user}"))
                    .arg(format!("--regid={group}"))
                    .args(["--clear-groups", "--"])
                    .arg(program.as_ref());
                command
            }
        };
        command.current_dir("/");
        command
    }

    /// The path of one of Postgres's programs.
    pub fn path(&self, program: &str) -> PathBuf {
        let here = self.folder.join(program);
        if here.is_file() {
            return here;
        }
        // A folder of the path may link to some of them only.
        let real = std::fs::canonicalize(self.folder.join("postgres")).ok();
        let beside = real.as_deref().and_then(Path::parent).map(|folder| folder.join(program));
        beside.filter(|beside| beside.is_file()).unwrap_or(here)
    }

    /// Gives a folder to the user that owns the server.
    pub fn own(&self, folder: &Path) -> std::io::Result<()> {
        match self.user {
            None => Ok(()),
            Some((user, group)) => std::os::unix::fs::chown(folder, Some(user), Some(group)),
        }
    }
}

/// Folders that may hold the programs: those of the path, then where distributions put them, the
/// newest version first.
fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for place in ["/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt", "/usr/local/opt"] {
        let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(place)
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let name = path.file_name()?.to_str()?.trim_start_matches("postgresql@");
                Some((name.parse().ok()?, path.join("bin")))
            })
            .collect();
        versions.sort();
        all.extend(versions.into_iter().rev().map(|(_, folder)| folder));
    }
    all
}

/// The user of the distribution's own servers, else the one that owns nothing.
fn other_user() -> Option<(u32, u32)> {
    ["postgres", "nobody"].iter().find_map(|name| {
        let user = number(Command::new("id").args(["-u", name]))?;
        Some((user, number(Command::new("id").args(["-g", name]))?))
    })
}

fn number(command: &mut Command) -> Option<u32> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
