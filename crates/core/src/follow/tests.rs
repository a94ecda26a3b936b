//! The tables of follow: every phase against every observation, and the worlds that the parts share.

mod opening;
mod probe;
mod repairing;
mod stored;
mod tailing;

use super::*;
use crate::certificate::Claim;
use crate::ports::{
    CaptureState, ItemKind, LedgerWrite, Mark, NewItem, Registration, Settle, SourceView,
};
use crate::retry::Jitter;
use crate::{
    BatchName, Fence, Incarnation, Key, LedgerId, MarkNumber, Moment, Place, RegistrationCounter,
    Signature, Version,
};

const NOW: Timestamp = Timestamp::from_ms(100_000);

fn at(version: u64) -> Version {
    Version::new(version)
}

fn moment(newest: u64) -> Moment {
    Moment::at(at(newest))
}

fn place(passed: u64) -> Place {
    Place::at(at(passed))
}

fn ledger(name: &str) -> LedgerId {
    LedgerId::parse(name).expect("valid")
}

fn incarnation(name: &str) -> Incarnation {
    Incarnation::parse(name).expect("valid")
}

fn registration(counter: u64, passed: u64) -> Registration {
    Registration { counter: RegistrationCounter::new(counter), passed: moment(passed) }
}

fn terms() -> Terms {
    Terms {
        rules: RulesNumber::new(2),
        consumer: Consumer { ledger: ledger("ledger"), pipeline: incarnation("pipeline") },
        page_rows: 100,
        delivery: RetryPolicy { jitter: Jitter::None, ..RetryPolicy::DELIVERY },
        register_every: Duration::from_secs(1),
        halted_recheck: Duration::from_secs(30),
        source_went_back: SourceWentBack::Halt,
    }
}

/// A run that has delivered up to 50, in batch 7, and acknowledged 40 for the third time.
fn tail() -> Tail {
    Tail {
        rules: RulesNumber::new(2),
        feed: incarnation("feed"),
        cursor: place(50),
        floor: moment(0),
        delivered: at(0),
        claimed: None,
        mark: batch(7),
        sent: MarkNumber::new(7),
        registered: registration(3, 40),
        registered_at: NOW,
        distrust: None,
        outdated: false,
        repaired_at: None,
        probe: None,
    }
}

/// A batch of whoever wrote the mark; the one of number 0 is none.
fn batch(number: u64) -> BatchName {
    match number {
        0 => BatchName::default(),
        number => BatchName { fence: mark().fence, number: MarkNumber::new(number) },
    }
}

/// The source that fits the tail.
fn view() -> SourceView {
    SourceView {
        incarnation: incarnation("feed"),
        newest: moment(60),
        pruned: moment(40),
        continues: true,
        repairable: true,
        registration: Some(registration(3, 40)),
        capture: CaptureState::Trusted(Signature::parse("signature").expect("valid")),
    }
}

/// The sink's mark that fits the tail.
fn mark() -> Mark {
    Mark {
        ledger: ledger("ledger"),
        pipeline: incarnation("pipeline"),
        rules: RulesNumber::new(2),
        fence: Fence::new(4),
        number: MarkNumber::new(7),
        removed: false,
    }
}

fn tailing(tail: Tail) -> Phase {
    Phase::Tailing(Tailing { tail })
}

fn opening(before: Option<Tail>) -> Phase {
    Phase::Opening(Opening { before })
}

fn halted(before: Option<Tail>) -> Phase {
    Phase::Halted(Halted { code: Code::SINK_AHEAD, since: NOW, before, suspect: None })
}

/// A page up to the end of the feed, with nothing in it.
fn page() -> PageSeen {
    PageSeen {
        next: place(50),
        newest: None,
        moment: Some(moment(60)),
        view: view(),
        delivered: Delivered::default(),
    }
}

fn failed(key: &str, attempts: Attempt, retryable: bool) -> Failed {
    Failed {
        key: Key::new(key),
        version: at(55),
        kind: ItemKind::Upsert,
        attempts,
        retryable,
        code: Code::SINK_REFUSED,
        reason: "too long".into(),
        draw: 0.0,
    }
}

fn on(phase: Phase, seen: Observation) -> Step<Phase> {
    Follow::on(&terms(), phase, seen, NOW).expect("asked for")
}

fn tail_of(step: &Step<Phase>) -> &Tail {
    step.next.tail().expect("it remembers")
}

fn claims(step: &Step<Phase>) -> Vec<&Claim> {
    let mut claims = Vec::new();
    for write in &step.writes {
        match write {
            LedgerWrite::Certify(claim) => claims.push(claim),
            LedgerWrite::Enqueue(_) | LedgerWrite::Settle(_) | LedgerWrite::Record(_) => {}
        }
    }
    claims
}

fn items(step: &Step<Phase>) -> &[NewItem] {
    for write in &step.writes {
        match write {
            LedgerWrite::Enqueue(items) => return items,
            LedgerWrite::Certify(_) | LedgerWrite::Settle(_) | LedgerWrite::Record(_) => {}
        }
    }
    &[]
}

/// Each phase takes what it asked for, and what can happen at any time; the rest is a bug of ours.
#[test]
fn every_phase_takes_what_it_asked_for_and_nothing_else() {
    let opened = || Observation::Opened(Opened { view: view(), mark: Some(mark()) });
    let observations: [(&str, Observation, [Option<&str>; 3]); 9] = [
        ("took over", Observation::TookOver { after_crash: false }, [Some("opening"); 3]),
        ("took over dead", Observation::TookOver { after_crash: true }, [Some("opening"); 3]),
        ("opened", opened(), [Some("tailing"); 3]),
        ("refused", Observation::Refused(Code::SINK_OWNED), [Some("halted"); 3]),
        ("registered", Observation::Registered(registration(4, 50)), [None, Some("tailing"), None]),
        ("armed", Observation::Armed, [None, Some("tailing"), None]),
        ("page", Observation::Page(page()), [None, Some("tailing"), None]),
        (
            "redelivered",
            Observation::Redelivered(Delivered::default()),
            [None, Some("tailing"), None],
        ),
        ("isolated", Observation::Isolated(page()), [None, Some("tailing"), None]),
    ];
    for (what, seen, expected) in observations {
        let phases = [opening(Some(tail())), tailing(tail()), halted(Some(tail()))];
        for (phase, expected) in phases.into_iter().zip(expected) {
            let name = phase.name();
            let next = Follow::on(&terms(), phase, seen.clone(), NOW);
            assert_eq!(next.as_ref().ok().map(|step| step.next.name()), expected, "{name} {what}");
            if let Err(misplaced) = next {
                assert_eq!((misplaced.phase, misplaced.observation), (name, seen.name()));
            }
        }
    }
}

/// The same without a memory: a run that never tailed.
#[test]
fn a_run_without_memory_opens_before_anything_else() {
    assert_eq!(Phase::START, opening(None));
    assert_eq!(Follow::due(&terms(), &Phase::START, NOW), Due::Now(Command::Open));
    let again = on(Phase::START, Observation::TookOver { after_crash: true });
    assert_eq!((again.next, again.writes), (Phase::START, Vec::new()));
}

#[test]
fn what_is_due_follows_from_the_phase_alone() {
    let probe = |armed, lone_deaths| Some(Probe { rows: 1, armed, lone_deaths });
    let deliver = |rows_max| Due::Now(Command::Deliver { after: place(50), rows_max });
    let first = Tail { registered: registration(0, 0), cursor: place(0), ..tail() };
    let old = Tail { rules: RulesNumber::new(1), ..tail() };
    let table = [
        ("opening", opening(Some(tail())), Due::Now(Command::Open)),
        ("other rules", tailing(old), Due::Now(Command::Open)),
        ("a page", tailing(tail()), deliver(100)),
        (
            "the first acknowledgement",
            tailing(first),
            Due::Now(Command::Register(registration(1, 0))),
        ),
        ("an announcement", tailing(Tail { probe: probe(false, 0), ..tail() }), {
            Due::Now(Command::Arm)
        }),
        ("an announced page", tailing(Tail { probe: probe(true, 4), ..tail() }), deliver(1)),
        (
            "isolation",
            tailing(Tail { probe: probe(false, 5), ..tail() }),
            Due::Now(Command::Isolate { after: place(50) }),
        ),
        ("halted", halted(None), Due::At(NOW.plus(Duration::from_secs(30)))),
    ];
    for (what, phase, due) in table {
        assert_eq!(Follow::due(&terms(), &phase, NOW), due, "{what}");
    }
    let later = NOW.plus(Duration::from_secs(30));
    assert_eq!(Follow::due(&terms(), &halted(None), later), Due::Now(Command::Open));
}

#[test]
fn a_refusal_says_why_and_remembers_everything() {
    for phase in [opening(Some(tail())), tailing(tail()), halted(Some(tail()))] {
        let step = on(phase, Observation::Refused(Code::SINK_OWNED));
        assert_eq!(tail_of(&step), &tail());
        assert_eq!(claims(&step), [&Claim::Broken(Code::SINK_OWNED)]);
        assert!(matches!(&step.writes[1], LedgerWrite::Record(event)
            if event.code == Code::SINK_OWNED && !event.text.is_empty()));
    }
}
