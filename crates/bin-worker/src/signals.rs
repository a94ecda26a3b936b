//! What the service's keeper asks by signals: the first asks to stop, the second ends the process.

use std::io;

use truekeep_engine::Stopper;

/// What a shell adds to a signal's number to make an exit code.
const BY_SIGNAL: i32 = 128;

/// A signal that asks to stop.
#[derive(Debug, Clone, Copy)]
struct Asked {
    name: &'static str,
    number: i32,
}

const INTERRUPT: Asked = Asked { name: "SIGINT", number: 2 };
#[cfg(unix)]
const TERMINATE: Asked = Asked { name: "SIGTERM", number: 15 };

/// Signals as they come.
struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: signal(SignalKind::terminate())? })
    }

    #[cfg(unix)]
    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.terminate.recv() => TERMINATE,
        }
    }

    #[cfg(not(unix))]
    fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> Asked {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        INTERRUPT
    }
}

/// Listens from now on. The returned future never ends by itself: drop it.
///
/// # Errors
/// The system's, if it takes no handlers.
pub fn watch(stopper: Stopper) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut signals = Signals::listen()?;
    Ok(async move {
        let asked = signals.next().await;
        tracing::info!(signal = asked.name, "stopping: turns are finished, leases handed back");
        stopper.stop();
        let asked = signals.next().await;
        tracing::warn!(signal = asked.name, "ends at once: leases end by themselves");
        std::process::exit(BY_SIGNAL + asked.number);
    })
}
