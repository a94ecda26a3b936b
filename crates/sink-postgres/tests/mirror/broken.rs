//! Connections that are cut in the middle of a commit: whether it happened is not known, and the mark
//! says it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Outcome, Sink};
use truekeep_sink_postgres::PostgresSink;

use crate::fixture::{LONG, body, json, mark, sent};

/// What becomes of the next commit.
const PASSED_ON: u8 = 0;
const NEVER_ASKED: u8 = 1;
const NEVER_ANSWERED: u8 = 2;

/// What stands between the mirror and its server.
struct Way {
    folder: tempfile::TempDir,
    commits: Arc<AtomicU8>,
}

impl Way {
    fn to(socket: PathBuf) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).expect("bound");
        let commits = Arc::new(AtomicU8::new(PASSED_ON));
        let fate = Arc::clone(&commits);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = UnixStream::connect(&socket).await.expect("connected");
                tokio::spawn(pass(client, server, Arc::clone(&fate)));
            }
        });
        Self { folder, commits }
    }
}

async fn pass(mut client: UnixStream, mut server: UnixStream, commits: Arc<AtomicU8>) {
    let (mut asked, mut answered) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return };
                let asked = &asked[..length];
                let commit = asked.windows(7).any(|part| part == b"COMMIT\0");
                let fate = if commit { commits.swap(PASSED_ON, Ordering::SeqCst) } else { PASSED_ON };
                if fate == NEVER_ASKED || server.write_all(asked).await.is_err() {
                    return;
                }
                if fate == NEVER_ANSWERED {
                    // It was done once there is an answer.
                    let length = server.read(&mut answered).await.expect("answered");
                    assert!(length > 0, "the server answers");
                    return;
                }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return };
                if client.write_all(&answered[..length]).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Rule 6: a batch whose commit was not answered may have happened. The mark tells, and sending it
/// again is harmless in either case.
#[tokio::test]
async fn a_commit_that_is_cut_off_is_unknown_and_found_by_the_mark() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let database = server.database().await;
    let socket = server.folder().expect("it is private").join(".s.PGSQL.5432");
    let way = Way::to(socket);
    let folder = way.folder.path().display();
    let address = format!("postgres://postgres@localhost/{}?host={folder}", database.name);
    let sink = PostgresSink::open(&address, json("mirror"), LONG, LONG).await.expect("opened");
    sink.prepare().await.expect("prepared");
    sent(&sink, 1, vec![body("k", 1, "first")]).await.expect("sent");
    for (number, fate, landed) in [(2, NEVER_ASKED, false), (3, NEVER_ANSWERED, true)] {
        let batch = || vec![body("k", number, &format!("body {number}"))];
        let before = sink.mark().await.expect("read");
        way.commits.store(fate, Ordering::SeqCst);
        let error = sent(&sink, number, batch()).await.expect_err("no answer came");
        assert_eq!((error.class, error.code), (FailureClass::Unknown, Code::SINK_UNAVAILABLE));
        let expected = if landed { Some(mark(1, number)) } else { before };
        assert_eq!(sink.mark().await.expect("read"), expected);
        let held = sink.verify(&batch()).await.expect("answered");
        assert_eq!(held, [landed], "documents and mark are one transaction");
        let outcomes = sent(&sink, number, batch()).await.expect("sent again");
        let outcome = if landed { Outcome::Repeated } else { Outcome::Applied };
        assert_eq!(outcomes, [outcome]);
        assert_eq!(sink.mark().await.expect("read"), Some(mark(1, number)));
    }
}
