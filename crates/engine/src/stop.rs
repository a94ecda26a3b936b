//! A request to stop, seen by everything that waits, in the order in which it began to wait: a
//! channel of the runtime's would draw that order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Request {
    asked: AtomicBool,
    told: Notify,
}

/// Asks to stop.
#[derive(Debug)]
pub struct Stopper(Arc<Request>);

/// Hears that somebody asked to stop.
#[derive(Debug, Clone)]
pub struct Stop(Arc<Request>);

impl Stopper {
    /// A stopper and what hears it.
    pub fn new() -> (Self, Stop) {
        let request = Arc::new(Request::default());
        (Self(Arc::clone(&request)), Stop(request))
    }

    /// Asks to stop. A repeat is harmless.
    pub fn stop(&self) {
        self.0.asked.store(true, Ordering::SeqCst);
        self.0.told.notify_waiters();
    }
}

impl Stop {
    /// Whether somebody asked.
    pub fn asked(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// Returns once somebody asks; never if the stopper is gone without asking.
    pub async fn wait(&self) {
        // Listens before it looks, so that no request falls between.
        let told = self.0.told.notified();
        if !self.asked() {
            told.await;
        }
    }
}
