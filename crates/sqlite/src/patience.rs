//! How long a connection's statements wait for another's lock, and how often they ask for it.
//!
//! SQLite's own wait asks ever more seldom, after at last 100 ms. The lock of an application that
//! hardly pauses is free for some milliseconds between two of its transactions, so that whoever asks
//! so seldom comes in vain for seconds; above all in the rollback-journal modes, where a reader waits
//! for a writer too. A connection has a thread of its own, so its patience is the thread's.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Between two tries: less than the pause of an application that hardly pauses, and next to no work.
const AGAIN_AFTER: Duration = Duration::from_millis(2);

thread_local! {
    static BUSY_MAX: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// From now on statements of this connection wait so long, on this thread.
pub(crate) fn give(connection: &Connection, busy_max: Duration) -> rusqlite::Result<()> {
    BUSY_MAX.set(busy_max);
    connection.busy_handler(Some(waits))
}

/// Does work on a connection's thread whose statements wait no longer than this for a lock.
pub fn impatient<T>(busy_max: Duration, work: impl FnOnce() -> T) -> T {
    let before = BUSY_MAX.replace(busy_max);
    let done = work();
    BUSY_MAX.set(before);
    done
}

/// Whether a statement that met a lock for the `tries`th time, counted from 0, tries again.
fn waits(tries: i32) -> bool {
    let since = match SINCE.get() {
        Some(since) if tries > 0 => since,
        _ => Instant::now(),
    };
    SINCE.set(Some(since));
    let waits = since.elapsed() < BUSY_MAX.get();
    if waits {
        std::thread::sleep(AGAIN_AFTER);
    }
    waits
}
