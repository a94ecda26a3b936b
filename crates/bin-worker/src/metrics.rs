//! Metrics in Prometheus's text form, made anew for each scrape from the ledger and the board.
//!
//! A value that is not known is left out: a gauge that stands still would look well.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use truekeep::status::Known;
use truekeep_core::certificate::State;
use truekeep_core::code::Code;

use crate::status::Seen;

const STATES: [State; 6] =
    [State::Never, State::Running, State::Complete, State::Partial, State::Stale, State::Failed];

type Labels = Vec<(&'static str, String)>;
type Numbers = Family<Labels, Gauge<u64, AtomicU64>>;
type Seconds = Family<Labels, Gauge<f64, AtomicU64>>;
type Counts = Family<Labels, Counter>;

/// The families of one scrape.
#[derive(Debug, Default)]
struct Families {
    state: Numbers,
    moment: Numbers,
    newest: Numbers,
    cursor: Numbers,
    behind: Numbers,
    parked: Numbers,
    unsettled: Numbers,
    lease_held: Numbers,
    paused: Numbers,
    ready: Numbers,
    delivered: Counts,
    failed: Counts,
    trouble: Counts,
    last_turn_age: Seconds,
}

/// The metrics as text; `now` is by the clock of the facts.
pub fn render(seen: &[Seen], now: Duration) -> String {
    let families = Families::default();
    for seen in seen {
        families.fill(seen, now);
    }
    let mut registry = Registry::with_prefix("truekeep");
    families.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).expect("a string takes any text");
    text
}

impl Families {
    fn fill(&self, seen: &Seen, now: Duration) {
        let labels = vec![("pipeline", seen.pipeline.to_string())];
        let facts = &seen.facts;
        self.ready.get_or_create(&labels).set(u64::from(seen.unready.is_none()));
        self.delivered.get_or_create(&labels).inc_by(facts.delivered);
        self.failed.get_or_create(&labels).inc_by(facts.failed);
        for (code, count) in &facts.troubles {
            let labels = [&labels[..], &[("code", code.to_string())]].concat();
            self.trouble.get_or_create(&labels).inc_by(*count);
        }
        let age = now.saturating_sub(facts.heard_at).as_secs_f64();
        self.last_turn_age.get_or_create(&labels).set(age);
        if let Ok(known) = &seen.known {
            self.fill_from_ledger(seen, known, &labels);
        }
    }

    fn fill_from_ledger(&self, seen: &Seen, known: &Known, labels: &Labels) {
        for state in STATES {
            let labels = [&labels[..], &[("state", state.as_str().to_owned())]].concat();
            self.state.get_or_create(&labels).set(u64::from(known.state() == Some(state)));
        }
        if let Some(moment) = known.moment() {
            self.moment.get_or_create(labels).set(moment.newest().get());
        }
        let cursor = known.cursor().passed.newest().get();
        self.cursor.get_or_create(labels).set(cursor);
        if let Some(behind) = seen.facts.behind {
            self.behind.get_or_create(labels).set(behind);
            self.newest.get_or_create(labels).set(cursor.saturating_add(behind));
        }
        let count = |of: fn(&truekeep_core::certificate::Certificate) -> u64| {
            known.certificate.as_ref().map_or(0, of)
        };
        self.parked.get_or_create(labels).set(count(|certificate| certificate.parked));
        self.unsettled.get_or_create(labels).set(count(|certificate| certificate.unsettled));
        self.lease_held.get_or_create(labels).set(u64::from(seen.ours()));
        let paused = known.closed() == Some(Code::PIPELINE_PAUSED);
        self.paused.get_or_create(labels).set(u64::from(paused));
    }

    fn register(self, registry: &mut Registry) {
        let text = "1 for the state of the certificate, 0 for the others";
        registry.register("certificate_state", text, self.state);
        let text = "The version that the certificate vouches for";
        registry.register("certificate_moment", text, self.moment);
        registry.register("feed_newest", "The newest version of the feed", self.newest);
        registry.register("cursor", "The version up to which was delivered", self.cursor);
        registry.register("behind_versions", "Versions of the feed after the cursor", self.behind);
        registry.register("parked", "Records that need an operator", self.parked);
        registry.register("unsettled", "Records that are tried again", self.unsettled);
        registry.register("lease_held", "1 while this process has the lease", self.lease_held);
        registry.register("paused", "1 while an operator has paused it", self.paused);
        registry.register("ready", "1 while a living worker works on it", self.ready);
        let text = "Records sent by this process";
        registry.register("delivered", text, self.delivered);
        let text = "Records sent by this process that failed";
        registry.register("failed", text, self.failed);
        registry.register("trouble", "Failed turns of this process, by code", self.trouble);
        let text = "Seconds since this process last heard of the scope";
        registry.register("last_turn_age_seconds", text, self.last_turn_age);
    }
}

#[cfg(test)]
mod tests;
