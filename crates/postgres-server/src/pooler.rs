//! A pooler in front of a server: connections are shared by transaction, and no session is one's own.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::programs::Programs;
use crate::server::Server;

/// Where distributions put it.
const PLACES: &[&str] =
    &["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"];

/// How long it may take to answer.
const STARTED_WITHIN: Duration = Duration::from_secs(30);

/// Runs the pooler until nobody holds the other end of the pipe any more.
const WATCH: &str =
    r#""$1" -q "$2/pooler.ini" & pid=$!; cat >/dev/null; kill -TERM $pid; wait $pid; rm -rf "$2""#;

/// A pgbouncer that divides connections by transactions, with two to the server.
#[derive(Debug)]
pub struct Pooler {
    folder: PathBuf,
    shell: Child,
}

impl Pooler {
    /// One in front of a private server; none if there is none to start.
    pub(crate) fn of(server: &Server) -> Option<Self> {
        let program = PLACES.iter().map(Path::new).find(|path| path.is_file())?;
        let programs = Programs::find()?;
        let behind = server.folder()?.display().to_string();
        let folder = tempfile::Builder::new().prefix("tkpb").tempdir().expect("a folder").keep();
        let mut file = std::fs::File::create(folder.join("pooler.ini")).expect("a file");
        write!(
            file,
            "[databases]\n* = host={behind} user=postgres\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = {0}\n\
             listen_port = 5432\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n\
             logfile = {0}/log\npidfile = {0}/pid\n",
            folder.display()
        )
        .expect("written");
        programs.own(&folder).expect("given away");
        let mut command = programs.command("sh");
        command.args(["-c", WATCH, "sh"]).arg(program).arg(&folder);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let shell = command.spawn().expect("a shell");
        let began = Instant::now();
        while std::os::unix::net::UnixStream::connect(folder.join(".s.PGSQL.5432")).is_err() {
            assert!(began.elapsed() < STARTED_WITHIN, "the pooler does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(Self { folder, shell })
    }

    /// The address of a database through it.
    pub fn address(&self, database: &str) -> String {
        format!("postgres://postgres@localhost/{database}?host={}", self.folder.display())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
