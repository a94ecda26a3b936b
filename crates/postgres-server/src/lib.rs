//! A Postgres server for tests, and databases on it that are each test's own.
//!
//! In this order: the server that `TRUEKEEP_TEST_POSTGRES` names (a superuser's address), else a
//! private one made with the programs that are installed here, else none. Without one a test says so
//! aloud and does nothing, unless `CI` is set: there it fails.
//!
//! A private server listens on a socket in a folder of its own. It ends with the process that asked
//! for it, however that ends: it is watched over by a shell that waits for the end of a pipe.
#![expect(clippy::print_stderr, reason = "a test that is left out says so aloud")]

mod database;
mod line;
mod pooler;
mod programs;
mod server;

pub use database::TestDatabase;
pub use line::{Cut, Line};
pub use pooler::Pooler;
pub use server::{Backup, Server};

use std::sync::OnceLock;

/// The environment variable that names a server.
pub const GIVEN: &str = "TRUEKEEP_TEST_POSTGRES";

/// The server that the tests of this process share; none if there is none.
///
/// # Panics
/// If a server should be there and is not.
pub fn server() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| match std::env::var(GIVEN) {
        Ok(address) => Some(Server::given(&address)),
        Err(_) => Server::private(&[]),
    });
    or_aloud(shared.as_ref())
}

/// A database of its own on the shared server; none if there is no server.
///
/// # Panics
/// If a server should be there and is not.
pub async fn database() -> Option<TestDatabase> {
    match server() {
        Some(server) => Some(server.database().await),
        None => None,
    }
}

/// A server that nobody shares, with settings of its own, to be stopped and started; none if there
/// are no programs to make one with.
///
/// # Panics
/// If a server should be there and is not.
pub fn private(settings: &[(&str, &str)]) -> Option<Server> {
    or_aloud(Server::private(settings))
}

/// A pooler in front of a private server; none if there is none to start.
///
/// # Panics
/// If one should be there and is not.
pub fn pooler(server: &Server) -> Option<Pooler> {
    loudly(Pooler::of(server), "no pooler: install `pgbouncer`")
}

fn or_aloud<T>(found: Option<T>) -> Option<T> {
    let missing = "no Postgres: install its server (`initdb` and `postgres`), or name one in TRUEKEEP_TEST_POSTGRES";
    loudly(found, missing)
}

fn loudly<T>(found: Option<T>, missing: &str) -> Option<T> {
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{missing}");
        eprintln!("NOT TESTED: {missing}");
    }
    found
}
