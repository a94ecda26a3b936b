//! Waking: who sleeps is told of changes, and writers pay for telling only while somebody sleeps.
//!
//! A sleeper holds a lock of its session; a trigger looks whether anybody does, and notifies only then. Who
//! is told lets go of the lock before anything else. The lock goes with the session, so a worker that dies
//! costs nobody anything. What commits between the last look and the lock is told to nobody: a sleeper looks
//! now and then all the same.
//!
//! A transaction that notified cannot be prepared, so where transactions can be, nobody is told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use truekeep_core::failure::PortError;
use truekeep_core::ports::Pulsed;
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Access, Failure, Listener, Transaction};

use super::names::literal;
use super::resolve::Resolved;
use super::snapshot::{to_moment, to_snapshot};
use super::{PostgresSource, READ_MAX, Worked};

const OPERATION: &str = "wait for changes";

/// How soon one hears oneself, unless there is a pooler between.
const HEARD_WITHIN: Duration = Duration::from_millis(300);

/// How long who heard nothing believes that nothing comes through.
const DEAF_FOR: Duration = Duration::from_secs(60);

/// How often who sleeps looks all the same.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Whether and how changes are heard of.
#[derive(Debug, Default)]
pub(super) struct Ear {
    /// Whether triggers see that we sleep.
    asleep: AtomicBool,
    looked: std::sync::Mutex<Option<Instant>>,
    hearing: Mutex<Hearing>,
}

#[derive(Debug, Default)]
enum Hearing {
    /// Nobody has tried, or the connection went.
    #[default]
    Untried,
    /// Notifications do not come through, or must not be sent.
    Deaf(Instant),
    Listening(Listener),
}

/// What came of listening.
enum Heard {
    /// There may be a change.
    Change,
    /// The connection went.
    Lost,
    /// Nobody can be told.
    Nothing,
}

impl Ear {
    /// Whether it is time to look, although nothing was heard.
    pub fn is_to_look(&self) -> bool {
        let mut looked = self.looked.lock().expect("no holder of the lock panics");
        let rested = |at: Instant| self.asleep.load(Ordering::Acquire) && at.elapsed() < LOOK_EVERY;
        let rests = looked.is_some_and(rested);
        if !rests {
            *looked = Some(Instant::now());
        }
        !rests
    }
}

/// Listens, if what is notified of comes through.
async fn listen(source: &PostgresSource, relation: &Resolved) -> Result<Hearing, PortError> {
    let channel = relation.names.channel();
    let mut listener = source.database.listen(OPERATION, &channel).await?;
    let row = listener.row(include_str!("../../sql/wake/possible.sql")).await?;
    let possible: Worked<bool> = row.try_get(0).map_err(Into::into);
    if !possible.unwrap_or(false) {
        return Ok(Hearing::Deaf(Instant::now()));
    }
    // In another session, so that a pooler has to carry it.
    let mut writing = source.writing(OPERATION, super::WRITE_MAX).await?;
    let sent = writing.run(format!("NOTIFY {}", super::names::quote(&channel))).await;
    writing.end(sent.map_err(Failure::from)).await?;
    match tokio::time::timeout(HEARD_WITHIN, listener.heard()).await {
        Ok(Ok(true)) => Ok(Hearing::Listening(listener)),
        Ok(Err(error)) => Err(error),
        Ok(Ok(false)) | Err(_) => Ok(Hearing::Deaf(Instant::now())),
    }
}

async fn asked(listener: &mut Listener, sql: &str) -> Result<bool, PortError> {
    let row = listener.row(sql).await?;
    Ok(row.try_get(0).unwrap_or(false))
}

impl PostgresSource {
    /// Whether there was anything since the last look.
    pub(super) async fn look(&self) -> Result<(bool, Pulsed), PortError> {
        let relation = self.seen();
        let before = self.pulsed.lock().expect("no holder of the lock panics").0.clone();
        let access = Access::Snapshot { of: &[], statement_max: READ_MAX };
        let mut reading = self.database.begin("look for changes", access).await?;
        let work = async {
            let query = Transaction::query(relation.statements.pulse.clone());
            let row = reading.row(query.bind(to_snapshot(&before))).await?;
            let now = to_moment(&row.try_get::<String, _>(1)?)?;
            Ok((row.try_get::<bool, _>(0)?, now))
        };
        let work = work.await;
        let (stirs, now) = reading.end(work).await?;
        let mut pulsed = self.pulsed.lock().expect("no holder of the lock panics");
        if stirs {
            pulsed.1 += 1;
        }
        pulsed.0 = std::mem::take(&mut pulsed.0).or_later(now);
        Ok((stirs, Pulsed(pulsed.1)))
    }

    /// Waits until a change was told; or for ever, if none can be.
    pub(super) async fn told(&self) {
        let mut hearing = self.ear.hearing.lock().await;
        loop {
            match self.hear(&mut hearing).await {
                Ok(Heard::Change) => return,
                Ok(Heard::Lost) => {}
                Ok(Heard::Nothing) | Err(_) => std::future::pending().await,
            }
        }
    }

    /// What came of listening. If it is given up nothing is lost.
    async fn hear(&self, hearing: &mut Hearing) -> Result<Heard, PortError> {
        let relation = self.seen();
        let again = match hearing {
            Hearing::Untried => true,
            Hearing::Deaf(since) => since.elapsed() > DEAF_FOR,
            Hearing::Listening(_) => false,
        };
        if again {
            *hearing = listen(self, &relation).await?;
        }
        let Hearing::Listening(listener) = hearing else { return Ok(Heard::Nothing) };
        let heard = self.sleep(listener, &relation).await;
        if !matches!(heard, Ok(Heard::Change)) {
            // Its connection may live on in another's hands.
            let _ = self.awake(listener).await;
            *hearing = Hearing::Untried;
        }
        heard
    }

    async fn sleep(
        &self,
        listener: &mut Listener,
        relation: &Resolved,
    ) -> Result<Heard, PortError> {
        if !self.ear.asleep.load(Ordering::Acquire) {
            let lock = format!("SELECT pg_try_advisory_lock({})", relation.names.sleep());
            // Who cannot have it has a neighbour that sleeps, whose notifications are his too.
            let locked = asked(listener, &lock).await?;
            self.ear.asleep.store(locked, Ordering::Release);
            if self.look().await?.0 {
                self.awake(listener).await?;
                return Ok(Heard::Change);
            }
        }
        if !listener.heard().await? {
            return Ok(Heard::Lost);
        }
        self.awake(listener).await?;
        Ok(Heard::Change)
    }

    /// Lets triggers be silent.
    async fn awake(&self, listener: &mut Listener) -> Result<(), PortError> {
        self.ear.asleep.store(false, Ordering::Release);
        // It holds nothing else, and may hold it twice if an answer was not waited for.
        asked(listener, "SELECT pg_advisory_unlock_all()::text = ''").await.map(drop)
    }

    /// Lets triggers be silent because we are at work.
    pub(super) async fn woken(&self) {
        if !self.ear.asleep.load(Ordering::Acquire) {
            return;
        }
        let Ok(mut hearing) = self.ear.hearing.try_lock() else { return };
        let Hearing::Listening(listener) = &mut *hearing else { return };
        if self.awake(listener).await.is_err() {
            *hearing = Hearing::Untried;
        }
    }
}

/// What a trigger does at its end, as SQL: whoever sleeps is told.
pub(super) fn tell(names: &super::names::FeedNames) -> String {
    super::statements::template(
        include_str!("../../sql/wake/tell.sql"),
        &[("sleep", &names.sleep()), ("channel", &literal(&names.channel()))],
    )
}
