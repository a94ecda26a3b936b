//! Ctrl-C and SIGTERM: asked to stop, the storm ends its round in order and takes its disks away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{SignalKind, signal};

use crate::Fault;

/// Whether somebody asked to stop.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens to signals from now on.
    pub fn listen() -> Result<Self, Fault> {
        let stop = Self::default();
        let asked = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (mut interrupt, mut terminate) = {
            let _entered = runtime.enter();
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
        };
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! { _ = interrupt.recv() => {} _ = terminate.recv() => {} }
            });
            asked.0.store(true, Ordering::Relaxed);
        });
        Ok(stop)
    }

    /// Whether it was asked.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Goes on unless somebody asked to stop.
    pub fn asked(&self) -> Result<(), Fault> {
        if self.is_asked() { Err("asked to stop".into()) } else { Ok(()) }
    }
}
