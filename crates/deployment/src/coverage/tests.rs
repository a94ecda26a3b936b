//! When a pipeline counts as complete, and that what is not known does not.

use truekeep_adapter_memory::MemorySource;
use truekeep_core::certificate::Certificate;
use truekeep_core::follow::{Delivered, Follow, Observation, Opened, PageSeen, Phase, Terms};
use truekeep_core::ports::{Consumer, PipelineRecord, PipelineState, RulesRecord};
use truekeep_core::procedure::Procedure;
use truekeep_core::retry::RetryPolicy;
use truekeep_core::{
    Fingerprint, Incarnation, Key, LedgerId, PipelineName, Revision, RulesNumber, ScopeId,
    Timestamp, Version,
};

use super::*;

/// A pipeline that was complete at version 5, ten seconds ago.
fn known() -> Known {
    let name = PipelineName::parse("cities").expect("valid");
    let rules = RulesRecord {
        number: RulesNumber::new(1),
        fingerprint: Fingerprint::parse("f").expect("valid"),
        text: String::new(),
        announced_at: Timestamp::from_ms(0),
    };
    let incarnation = Incarnation::parse("life").expect("valid");
    Known {
        ledger: LedgerId::parse("ledger").expect("valid"),
        now: Timestamp::from_ms(20_000),
        scope: ScopeId::whole(name.clone()),
        record: Some(PipelineRecord {
            name,
            incarnation,
            rules,
            state: PipelineState::Working,
            revision: Revision::default(),
        }),
        certificate: Some(Certificate {
            state: State::Complete,
            code: None,
            moment: Some(Moment::at(Version::new(5))),
            rules: RulesNumber::new(1),
            parked: 0,
            unsettled: 0,
            changed_at: Timestamp::from_ms(10_000),
        }),
        run: None,
        phase: None,
        reconcile: None,
        lease: None,
        removed: false,
    }
}

fn current(version: u64) -> Freshness {
    Freshness::Current(Moment::at(Version::new(version)))
}

fn complete(known: &Known, wanted: Wanted) -> bool {
    judge(known, &wanted, &Freshness::AsOfCertificate).0.complete
}

#[test]
fn a_complete_certificate_covers_what_its_moment_includes() {
    let token = |version| Wanted { token: Some(Moment::at(Version::new(version))), age_max: None };
    assert!(complete(&known(), Wanted::default()));
    assert!(complete(&known(), token(5)));
    assert!(!complete(&known(), token(6)));
    // The moments of a source go on while its table does not change.
    assert!(needs_source(&known(), &token(6)) && !needs_source(&known(), &token(5)));
    assert!(judge(&known(), &token(6), &current(6)).0.complete);
    assert!(!judge(&known(), &token(7), &current(6)).0.complete);
}

#[test]
fn an_old_certificate_covers_only_if_the_source_has_nothing_new() {
    let wanted = |seconds| Wanted { token: None, age_max: Some(Duration::from_secs(seconds)) };
    assert!(complete(&known(), wanted(10)));
    assert!(!complete(&known(), wanted(9)));
    assert!(needs_source(&known(), &wanted(9)));
    assert!(judge(&known(), &wanted(9), &current(5)).0.complete);
}

#[test]
fn what_is_not_known_or_not_complete_is_not_covered() {
    let unknown = Known { record: None, certificate: None, ..known() };
    assert!(!complete(&unknown, Wanted::default()));
    for state in [State::Never, State::Running, State::Partial, State::Stale, State::Failed] {
        let mut known = known();
        if let Some(certificate) = &mut known.certificate {
            certificate.state = state;
        }
        assert!(!complete(&known, Wanted::default()), "{state:?}");
    }
    let none = Coverage::of(Vec::new());
    assert!(!none.complete, "no pipeline at all is not complete");
}

#[test]
fn a_certificate_of_other_rules_is_stale() {
    let mut known = known();
    if let Some(record) = &mut known.record {
        record.rules.number = RulesNumber::new(2);
    }
    assert_eq!(known.state(), Some(State::Stale));
    assert!(!complete(&known, Wanted::default()));
}

#[test]
fn all_are_complete_only_if_each_is() {
    let one = || judge(&known(), &Wanted::default(), &Freshness::AsOfCertificate);
    let unknown = Known { record: None, certificate: None, ..known() };
    let other = judge(&unknown, &Wanted::default(), &Freshness::AsOfCertificate);
    assert!(Coverage::of(vec![one(), one()]).complete);
    let both = Coverage::of(vec![one(), other]);
    assert_eq!((both.complete, both.state), (false, "unknown"));
}

fn terms(consumer: Consumer) -> Terms {
    Terms {
        rules: RulesNumber::new(1),
        consumer,
        page_rows: 100,
        delivery: RetryPolicy::DELIVERY,
        register_every: Duration::from_secs(1),
        halted_recheck: Duration::from_secs(1),
        source_went_back: Default::default(),
    }
}

/// As `known`, with a run that has consumed this source to its end.
async fn tailed(source: &MemorySource) -> Known {
    let mut known = known();
    let consumer = known.consumer().expect("announced");
    let page = source.changes(&consumer, &Place::START, 100).await.expect("read");
    if let Some(certificate) = &mut known.certificate {
        certificate.moment = page.moment;
    }
    let terms = terms(consumer);
    let opened = Observation::Opened(Opened { view: page.view, mark: None });
    let step = Follow::on(&terms, Phase::START, opened, known.now).expect("it fits");
    known.phase = Some(step.next);
    known
}

#[tokio::test]
async fn an_idle_feed_is_as_fresh_as_just_now() {
    let source = MemorySource::captured();
    source.put(&Key::new("a"), "1");
    let known = tailed(&source).await;
    let now = Freshness::Current(known.moment().cloned().expect("it is complete"));
    assert_eq!(freshness(&known, &source).await.expect("read"), now);
    source.put(&Key::new("a"), "2");
    assert_eq!(freshness(&known, &source).await.expect("read"), Freshness::AsOfCertificate);
}

#[tokio::test]
async fn another_source_or_a_broken_capture_is_not_fresh() {
    let source = MemorySource::captured();
    source.put(&Key::new("a"), "1");
    let known = tailed(&source).await;
    let other = MemorySource::captured();
    other.put(&Key::new("a"), "1");
    assert_eq!(freshness(&known, &other).await.expect("read"), Freshness::AsOfCertificate);
    source.break_capture();
    assert_eq!(freshness(&known, &source).await.expect("read"), Freshness::AsOfCertificate);
}

#[tokio::test]
async fn a_cursor_of_other_rules_counts_for_nothing() {
    let source = MemorySource::captured();
    source.put(&Key::new("a"), "1");
    let mut known = tailed(&source).await;
    let page = source.changes(&known.consumer().expect("announced"), &Place::START, 9).await;
    let (page, moved) = (page.expect("read"), Place::at(Version::new(1)));
    let delivered = Delivered::default();
    let (next, moment, view) = (page.next, page.moment, page.view);
    let seen = Observation::Page(PageSeen { next, newest: None, moment, view, delivered });
    let phase = known.phase.take().expect("tailing");
    let step = Follow::on(&terms(known.consumer().expect("announced")), phase, seen, known.now);
    known.phase = Some(step.expect("it fits").next);
    assert_eq!(known.cursor(), moved);
    if let Some(record) = &mut known.record {
        record.rules.number = RulesNumber::new(2);
    }
    assert_eq!(known.cursor(), Place::START);
}
