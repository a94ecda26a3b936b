//! A line to a server that can be cut where it hurts most: around a commit.

use std::sync::{Arc, Mutex};

use sqlx::postgres::PgConnectOptions;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use crate::TestDatabase;

/// Where a line is cut, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// A commit is asked for, and the server never hears of it.
    BeforeCommit,
    /// The server has committed, and nobody hears its answer.
    AfterCommit,
}

/// What a simple query that commits is on the wire.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

/// A line to a database, over a port of this machine.
#[derive(Debug)]
pub struct Line {
    /// The database's address over the line, as the superuser.
    pub address: String,
    next: Arc<Mutex<Option<Cut>>>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Line {
    /// A line that nobody cuts yet.
    ///
    /// # Panics
    /// If there is no port to be had.
    pub async fn to(test: &TestDatabase) -> Self {
        let server: PgConnectOptions = test.address.parse().expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let address = format!(
            "postgres://{}@127.0.0.1:{port}/{}?sslmode=disable",
            server.get_username(),
            test.name
        );
        let next = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&next);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (server, next) = (server.clone(), Arc::clone(&shared));
                tokio::spawn(async move { carry(client, &server, &next).await });
            }
        });
        Self { address, next, accepting }
    }

    /// Cuts the line at the next commit.
    ///
    /// # Panics
    /// If somebody else has panicked meanwhile.
    pub fn cut(&self, at: Cut) {
        *self.next.lock().expect("no holder of the lock panics") = Some(at);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(client: TcpStream, server: &PgConnectOptions, next: &Mutex<Option<Cut>>) {
    match server.get_socket() {
        Some(folder) => {
            let socket = folder.join(format!(".s.PGSQL.{}", server.get_port()));
            let server = UnixStream::connect(socket).await.expect("a server");
            between(client, server, next).await;
        }
        None => {
            let place = (server.get_host(), server.get_port());
            let server = TcpStream::connect(place).await.expect("a server");
            between(client, server, next).await;
        }
    }
}

/// Carries bytes both ways until one end closes, or the line is cut. Who speaks to a server of this
/// kind waits for its answer, so a commit is a message of its own.
async fn between(
    mut client: TcpStream,
    mut server: impl AsyncRead + AsyncWrite + Unpin,
    next: &Mutex<Option<Cut>>,
) {
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let mut cut = None;
        tokio::select! {
            read = client.read(&mut asked) => {
                let Some(length) = read.ok().filter(|length| *length > 0) else { return };
                if asked[..length] == *COMMIT {
                    cut = next.lock().expect("no holder of the lock panics").take();
                }
                if cut == Some(Cut::BeforeCommit) || server.write_all(&asked[..length]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Some(length) = read.ok().filter(|length| *length > 0) else { return };
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
        if cut == Some(Cut::AfterCommit) {
            // The answer comes once the commit is done.
            let _ = server.read(&mut answered).await;
            return;
        }
    }
}
