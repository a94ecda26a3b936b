//! The worker over HTTP: reads only, and every text goes out without what the configuration hides.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::prometheus_text;
use serde::Serialize;
use truekeep::Config;
use truekeep::status::LedgerPorts;
use truekeep_engine::Stop;

use crate::board::Board;
use crate::metrics;
use crate::status::{Readiness, Seen, Status, look};

/// The page that shows `/status.json`.
const DASHBOARD: &str = include_str!("dashboard.html");

/// Nothing from elsewhere is loaded, and nobody frames the page.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
    connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// What the handlers read.
#[derive(Debug, Clone)]
pub struct Reader {
    /// What is asked for, and what is hidden.
    pub config: Arc<Config>,
    /// What the ledger knows.
    pub ledger: LedgerPorts,
    /// What this process has seen.
    pub board: Arc<Board>,
    /// Whether the worker is stopping.
    pub stop: Stop,
}

impl Reader {
    async fn look(&self) -> Vec<Seen> {
        look(&self.config, &self.ledger, &self.board).await
    }

    fn text(&self, status: StatusCode, kind: &'static str, text: &str) -> Response {
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static(kind)),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        (status, headers, self.config.redact(text)).into_response()
    }

    fn json(&self, status: StatusCode, body: &impl Serialize) -> Response {
        let text = serde_json::to_string_pretty(body).expect("names and numbers are JSON");
        self.text(status, "application/json", &format!("{text}\n"))
    }
}

/// The routes.
pub fn routes(reader: Reader) -> Router {
    Router::new()
        .route("/", get(dashboard))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
        .route("/status.json", get(status))
        .with_state(reader)
}

async fn dashboard() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, DASHBOARD).into_response()
}

/// The process is alive: it answers.
async fn healthz(State(reader): State<Reader>) -> Response {
    reader.text(StatusCode::OK, "text/plain; charset=utf-8", "alive\n")
}

async fn readyz(State(reader): State<Reader>) -> Response {
    let readiness = Readiness::of(&reader.look().await, reader.stop.asked());
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    reader.json(status, &readiness)
}

async fn scrape(State(reader): State<Reader>) -> Response {
    let text = metrics::render(&reader.look().await, reader.board.now());
    reader.text(StatusCode::OK, prometheus_text::CONTENT_TYPE, &text)
}

async fn status(State(reader): State<Reader>) -> Response {
    let seen = reader.look().await;
    let status = Status::of(&seen, reader.stop.asked(), reader.board.now());
    reader.json(StatusCode::OK, &status)
}
