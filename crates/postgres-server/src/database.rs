//! A database that is one test's own.

use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::server::Server;

/// A database of its own; it goes with the value, unless it goes with its server anyway.
#[derive(Debug)]
pub struct TestDatabase {
    /// Its address, as the superuser.
    pub address: String,
    /// Its name.
    pub name: String,
    /// The address to drop it from.
    dropped_from: Option<String>,
}

impl TestDatabase {
    /// A database that is made with these words of `CREATE DATABASE`.
    pub(crate) async fn of(server: &Server, words: &str) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("truekeep_test_{}_{number}", std::process::id());
        let home = server.address("postgres");
        run(&home, format!("CREATE DATABASE {name} TEMPLATE template0 {words}")).await;
        let dropped_from = (!server.is_private()).then_some(home);
        Self { address: server.address(&name), name, dropped_from }
    }

    /// The address for another role.
    ///
    /// # Panics
    /// If the address has no user.
    pub fn address_of(&self, role: &str) -> String {
        let (scheme, rest) = self.address.split_once("://").expect("an address");
        let (_, place) = rest.split_once('@').expect("an address with a user");
        format!("{scheme}://{role}@{place}")
    }

    /// Runs statements as the superuser, in a connection of their own.
    ///
    /// # Panics
    /// If one of them fails.
    pub async fn run(&self, sql: &str) {
        run(&self.address, sql.to_owned()).await;
    }

    /// A connection to it, as the superuser.
    ///
    /// # Panics
    /// If there is none to be had.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.address).await.expect("a connection")
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some(home) = self.dropped_from.take() else { return };
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(run(&home, sql));
        });
        let _ = dropping.join();
    }
}

async fn run(address: &str, sql: String) {
    let mut connection = PgConnection::connect(address).await.expect("a connection");
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.expect("done");
    connection.close().await.expect("closed");
}
