//! What an idle worker costs: one renewal each third of the ttl, and next to no CPU.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use truekeep_core::failure::PortError;
use truekeep_core::lease::Lease;
use truekeep_core::ports::{Acquired, Leases};
use truekeep_core::{HolderId, LeaseToken, ScopeId, Timestamp};
use truekeep_engine::{Settings, Silent, Stopper, Worker};

use crate::database;
use crate::measure::{Bar, Figure, cpu_time};

const TTL: Duration = Duration::from_secs(3);
const IDLE: Duration = Duration::from_secs(15);

/// Counts renewals.
#[derive(Debug)]
struct Counted(Arc<dyn Leases>, AtomicU64);

#[async_trait]
impl Leases for Counted {
    async fn acquire(
        &self,
        scope: &ScopeId,
        holder: &HolderId,
        token: &LeaseToken,
        ttl: Duration,
    ) -> Result<Acquired, PortError> {
        self.0.acquire(scope, holder, token, ttl).await
    }

    async fn renew(
        &self,
        holder: &HolderId,
        tokens: &[LeaseToken],
        ttl: Duration,
    ) -> Result<Vec<LeaseToken>, PortError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.renew(holder, tokens, ttl).await
    }

    async fn release(&self, scope: &ScopeId, token: &LeaseToken) -> Result<bool, PortError> {
        self.0.release(scope, token).await
    }

    async fn holder(&self, scope: &ScopeId) -> Result<(Option<Lease>, Timestamp), PortError> {
        self.0.holder(scope).await
    }
}

/// Follows an idle database for a while.
pub fn run() -> Result<Vec<Figure>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let [source, mirror, ledger] = database::files(folder.path());
    database::make(&source, 1_000)?;
    let (renewals, cpu) = database::runtime()?.block_on(async {
        let port = database::source(&source).await?;
        database::capture(&port).await?;
        let pipeline = database::pipeline(&port, database::mirror(&mirror).await?)?;
        let mut ports = database::ports(&ledger).await?;
        let counted = Arc::new(Counted(ports.leases, AtomicU64::new(0)));
        ports.leases = counted.clone();
        let settings = Settings { lease_ttl: TTL, ..Settings::default() };
        let worker = Worker::new(ports, vec![pipeline], settings, Arc::new(Silent));
        let (stopper, stop) = Stopper::new();
        let running = tokio::spawn(worker.run(stop));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (renewed, used) = (counted.1.load(Ordering::Relaxed), cpu_time());
        tokio::time::sleep(IDLE).await;
        let cpu = cpu_time().saturating_sub(used);
        let renewals = counted.1.load(Ordering::Relaxed) - renewed;
        stopper.stop();
        running.await?;
        Ok::<_, Box<dyn Error>>((renewals, cpu))
    })?;
    let expected = IDLE.as_secs_f64() / (TTL.as_secs_f64() / 3.0);
    let share = cpu.as_secs_f64() / IDLE.as_secs_f64() * 100.0;
    Ok(vec![
        Figure::alone(
            "idle worker, renewals per third of the ttl",
            renewals as f64 / expected,
            "",
            Bar::AtMost(1.1),
        ),
        Figure::alone("idle worker, share of a core", share, "%", Bar::AtMost(1.0)),
    ])
}
