//! The service: a ledger, an HTTP server, and workers for every pipeline of a configuration.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use truekeep::certificates::watch;
use truekeep::clock::SystemClock;
use truekeep::codes::Exit;
use truekeep::wiring::{Purpose, open_ledger};
use truekeep::worker::Workshop;
use truekeep::{Config, Trouble};
use truekeep_engine::{Observer, Stopper};

use crate::board::Board;
use crate::{board, http, signals};

/// Works until it is asked to stop.
///
/// # Errors
/// What keeps the whole service from starting: the address, the ledger.
pub async fn run(config: Arc<Config>) -> Result<Exit, Trouble> {
    let (stopper, stop) = Stopper::new();
    let failed = |error| Trouble::File("listen to signals".to_owned(), error);
    let signals = signals::watch(stopper).map_err(failed)?;
    let listener = listen(config.worker.listen).await?;
    let ledger = open_ledger(&config, Purpose::Work).await?;
    let seen = Arc::new(Board::new(Arc::new(SystemClock)));
    let reader = http::Reader {
        config: Arc::clone(&config),
        ledger: ledger.clone(),
        board: Arc::clone(&seen),
        stop: stop.clone(),
    };
    // A set ends its tasks when it is dropped: these end with the service.
    let mut beside = JoinSet::new();
    beside.spawn(signals);
    beside.spawn(async move {
        if let Err(error) = axum::serve(listener, http::routes(reader)).await {
            tracing::error!(%error, "HTTP ended");
        }
    });
    let observer = seen as Arc<dyn Observer>;
    let pipelines: Vec<_> = config.pipelines.iter().collect();
    let workshop = Workshop { config: &config, ledger: &ledger, observer };
    tokio::select! {
        () = workshop.run(&pipelines, &stop) => {}
        never = watch(&ledger, &pipelines, board::certified) => match never {},
    }
    let asked = stop.asked();
    tracing::info!(asked, "stopped");
    Ok(if asked { Exit::Done } else { Exit::Unexpected })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, Trouble> {
    let listener = TcpListener::bind(address).await;
    let bound = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = bound.map_err(|error| {
        let hint = "set another address as `listen` in `[worker]`, or end what uses this one";
        Trouble::Usage(format!("failed to listen on {address}: {error}"), hint.to_owned())
    })?;
    tracing::info!(%address, "listening");
    Ok(listener)
}
