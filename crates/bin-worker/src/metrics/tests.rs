//! The metrics as a scrape finds them.

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::{Fence, LedgerId, PipelineName, ScopeId, Timestamp};

use super::*;
use crate::board::Facts;

const NOW: Duration = Duration::from_millis(9_500);

fn seen(name: &str, known: impl FnOnce(ScopeId) -> Result<Known, PortError>) -> Seen {
    let pipeline = PipelineName::parse(name).expect("valid");
    let facts = Facts {
        fence: Some(Fence::new(1)),
        heard_at: Duration::from_secs(9),
        behind: Some(4),
        delivered: 12,
        failed: 2,
        troubles: [(Code::SOURCE_LOCKED, 3)].into(),
        ..Facts::default()
    };
    let known = known(ScopeId::whole(pipeline.clone()));
    Seen::of(pipeline, facts, known, Duration::from_secs(30), NOW)
}

fn empty(scope: ScopeId) -> Result<Known, PortError> {
    Ok(Known {
        ledger: LedgerId::parse("l").expect("valid"),
        now: Timestamp::from_ms(0),
        scope,
        record: None,
        certificate: None,
        run: None,
        phase: None,
        reconcile: None,
        lease: None,
        removed: false,
    })
}

#[test]
fn every_metric_carries_its_pipeline() {
    let text = render(&[seen("cities", empty), seen("rivers", empty)], NOW);
    for line in [
        "# TYPE truekeep_delivered_total counter",
        "truekeep_delivered_total{pipeline=\"rivers\"} 12",
        "truekeep_failed_total{pipeline=\"cities\"} 2",
        "truekeep_trouble_total{pipeline=\"cities\",code=\"SOURCE_LOCKED\"} 3",
        "truekeep_certificate_state{pipeline=\"cities\",state=\"complete\"} 0",
        "truekeep_behind_versions{pipeline=\"cities\"} 4",
        "truekeep_cursor{pipeline=\"cities\"} 0",
        "truekeep_feed_newest{pipeline=\"cities\"} 4",
        "truekeep_lease_held{pipeline=\"cities\"} 0",
        "truekeep_ready{pipeline=\"cities\"} 0",
        "truekeep_parked{pipeline=\"cities\"} 0",
        "truekeep_unsettled{pipeline=\"cities\"} 0",
        "truekeep_last_turn_age_seconds{pipeline=\"cities\"} 0.5",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn a_value_that_is_not_known_is_left_out() {
    let unread = |_| Err(PortError::new("read", FailureClass::Retry, Code::LEDGER_LOCKED));
    let text = render(&[seen("cities", unread), seen("rivers", empty)], NOW);
    let of = |pipeline: &str| {
        let pipeline = format!("{{pipeline=\"{pipeline}\"");
        text.lines().filter(|line| line.contains(&pipeline)).collect::<Vec<_>>().join("\n")
    };
    assert!(of("cities").contains("truekeep_ready"), "{text}");
    assert!(!of("cities").contains("truekeep_certificate_state"), "{text}");
    assert!(!of("rivers").contains("truekeep_certificate_moment"), "{text}");
}
