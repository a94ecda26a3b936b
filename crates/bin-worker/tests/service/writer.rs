//! An application beside the worker: random changes, in transactions of one or many rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, Transaction, params};

/// Rows that are changed again and again.
const IDS: u64 = 400;

/// Draws by xorshift: any seed but 0.
#[derive(Debug, Clone)]
pub struct Draws(pub u64);

impl Draws {
    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A thread that changes `things` until it is stopped.
#[derive(Debug)]
pub struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Writer {
    pub fn start(connection: Connection, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut draws = Draws(seed);
            let mut transactions = 0;
            while !stopped.load(Ordering::Relaxed) {
                transact(&connection, &mut draws);
                transactions += 1;
                // SQLite's lock is not fair: an application that never pauses lets nobody else in.
                std::thread::sleep(Duration::from_millis(draws.below(4)));
            }
            transactions
        });
        Self { stop, thread }
    }

    /// Stops it; how many transactions it made.
    pub fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("every change succeeded")
    }
}

fn transact(connection: &Connection, draws: &mut Draws) {
    let rows = if draws.below(20) == 0 { 200 } else { 1 + draws.below(8) };
    let begun = Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate);
    let transaction = begun.expect("begun");
    for _ in 0..rows {
        change(&transaction, draws);
    }
    if draws.below(10) == 0 {
        transaction.rollback().expect("rolled back");
    } else {
        transaction.commit().expect("committed");
    }
}

fn change(db: &Transaction<'_>, draws: &mut Draws) {
    let id = draws.below(IDS);
    let code = format!("c{}", draws.below(IDS));
    let body = format!("körper {} \u{1F333}", draws.below(1 << 40));
    let size = draws.below(1 << 20) as f64 / 64.0;
    let run = |sql: &str| db.execute(sql, params![id, code, body, size]).expect("changed");
    match draws.below(8) {
        // Another row may hold the code, and goes with it.
        0 | 1 => run("REPLACE INTO things (id, code, body, size) VALUES (?1, ?2, ?3, ?4)"),
        2 => run("INSERT OR IGNORE INTO things (id, code, body, size) VALUES (?1, ?2, ?3, ?4)"),
        3 => run("UPDATE things SET body = ?3, size = ?4 WHERE id = ?1 AND ?2 = ?2"),
        4 => run("UPDATE OR REPLACE things SET code = ?2, body = ?3, size = ?4 WHERE id = ?1"),
        5 => run("DELETE FROM things WHERE id = ?1 AND ?2 = ?2 AND ?3 = ?3 AND ?4 = ?4"),
        // The key changes, onto one that may be taken.
        6 => {
            let to = draws.below(IDS);
            let sql = "UPDATE OR REPLACE things SET id = ?2 WHERE id = ?1";
            db.execute(sql, params![id, to]).expect("changed")
        }
        _ => {
            let sql = "INSERT INTO things (id, code, body, size) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (id) DO UPDATE SET body = excluded.body
                 ON CONFLICT (code) DO UPDATE SET size = excluded.size";
            run(sql)
        }
    };
}
