//! A request to stop, seen by everything that waits.

use tokio::sync::watch;

/// Asks to stop.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

/// Hears that somebody asked to stop.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stopper {
    /// A stopper and what hears it.
    pub fn new() -> (Self, Stop) {
        let (sender, receiver) = watch::channel(false);
        (Self(sender), Stop(receiver))
    }

    /// Asks to stop. A repeat is harmless.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Whether somebody asked.
    pub fn asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once somebody asks; never if the stopper is gone without asking.
    pub async fn wait(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
