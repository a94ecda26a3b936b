//! The machine and its guard as tables.

use super::*;
use crate::Signature;

fn terms() -> Terms {
    Terms::default()
}

fn step(terms: &Terms, phase: Phase, seen: Observation) -> Phase {
    Reconcile::on(terms, phase, seen, Timestamp::from_ms(0)).expect("asked for").next
}

fn judgement(phase: Phase) -> Option<Option<Code>> {
    Stored { terms: terms(), phase }.judgement()
}

fn compared(found: Found, numbered: Option<u64>) -> Observation {
    Observation::Compared {
        next: None,
        found,
        park: Vec::new(),
        numbered: numbered.map(Stamp::new),
    }
}

fn audited(ghosts: u64) -> Observation {
    let found = Audited { ghosts, ..Audited::default() };
    Observation::Audited { next: None, found, numbered: None }
}

fn purging(orphans: u64) -> Phase {
    Phase::Purging { after: None, report: Report { orphans, ..Report::default() } }
}

fn comparing() -> Phase {
    Phase::Comparing { after: None, report: Report::default() }
}

#[test]
fn it_begins_only_under_a_trusted_capture() {
    let trusted = CaptureState::Trusted(Signature::parse("s").expect("valid"));
    let began = step(&terms(), Phase::Beginning, Observation::Looked(trusted));
    assert_eq!(began.name(), "auditing");
    let waits = step(&terms(), Phase::Beginning, Observation::Looked(CaptureState::Filling));
    assert_eq!(waits, Phase::Beginning);
    let broken = || Observation::Looked(CaptureState::Broken(Code::CAPTURE_CHANGED));
    for phase in [Phase::Beginning, comparing(), purging(1)] {
        assert_eq!(step(&terms(), phase, broken()).name(), "failed");
    }
}

/// Q1.
#[test]
fn nothing_is_purged_before_the_last_range_and_the_guards_word() {
    let many = Found { listed: 100, live: 80, orphans: 30, ..Found::default() };
    let more = Observation::Compared {
        next: Some(Key::new("k")),
        found: many,
        park: Vec::new(),
        numbered: None,
    };
    assert_eq!(step(&terms(), comparing(), more).name(), "comparing");
    let refused = step(&terms(), comparing(), compared(many, None));
    assert!(
        matches!(refused, Phase::Failed { ref code, .. } if *code == Code::GUARD_REFUSED),
        "{refused:?}"
    );
    let confirmed = Terms { confirmed: true, ..terms() };
    assert_eq!(step(&confirmed, comparing(), compared(many, None)).name(), "purging");
    let few = Found { orphans: 3, ..many };
    assert_eq!(step(&terms(), comparing(), compared(few, None)).name(), "purging");
}

#[test]
fn a_sink_ahead_ends_the_run_even_if_confirmed() {
    let confirmed = Terms { confirmed: true, ..terms() };
    let found = Found { listed: 9, live: 9, ahead: 1, ..Found::default() };
    let ended = step(&confirmed, comparing(), compared(found, None));
    assert!(matches!(ended, Phase::Failed { ref code, .. } if *code == Code::SINK_AHEAD));
}

#[test]
fn what_was_repaired_is_compared_once_more_and_only_once() {
    let found = Found { listed: 9, live: 10, missing: 1, ..Found::default() };
    let settling = step(&terms(), comparing(), compared(found, Some(77)));
    let due = Reconcile::due(&terms(), &settling, Timestamp::from_ms(0));
    assert_eq!(due, Due::Now(Command::Await { numbered: Stamp::new(77) }));
    let waiting = step(&terms(), settling.clone(), Observation::Awaited { reached: false });
    assert_eq!(waiting, settling, "a waiting run changes nothing");
    let again = step(&terms(), settling, Observation::Awaited { reached: true });
    let due = Reconcile::due(&terms(), &again, Timestamp::from_ms(0));
    assert_eq!(due, Due::Now(Command::Compare { after: None, park: true }));
    let settling =
        step(&terms(), again, compared(Found { listed: 10, live: 10, ..Found::default() }, None));
    let done = step(&terms(), settling, Observation::Awaited { reached: true });
    let Phase::Done { report } = done else { panic!("{done:?}") };
    assert_eq!((report.listed, report.missing, report.rounds), (9, 1, 2));
}

#[test]
fn equal_sides_end_after_one_round() {
    let equal = Found { listed: 10, live: 10, ..Found::default() };
    let settling = step(&terms(), comparing(), compared(equal, None));
    let done = step(&terms(), settling, Observation::Awaited { reached: true });
    assert!(matches!(done, Phase::Done { ref report } if report.clean()), "{done:?}");
}

/// Rule 116, X67.
#[test]
fn the_guard_asks_before_much_is_deleted() {
    let judge = |listed, live, orphans| {
        BlastGuard::default().judge(&Report { listed, live, orphans, ..Report::default() })
    };
    assert_eq!(judge(0, 0, 0), Ok(()));
    assert_eq!(judge(1_000, 990, 20), Ok(()));
    assert_eq!(judge(1_000, 950, 50), Ok(()), "five in a hundred");
    assert_eq!(judge(1_000, 949, 51), Err(Refusal::Share));
    assert_eq!(judge(30, 10, 20), Ok(()), "few are free");
    assert_eq!(judge(20, 0, 20), Err(Refusal::EmptySource));
    assert_eq!(judge(20, 5, 20), Err(Refusal::Everything));
    assert_eq!(judge(10_000_000, 10_000_000, 100_001), Err(Refusal::Number));
    let judge = |listed, altered| {
        let report = Report { listed, live: listed, altered: Some(altered), ..Report::default() };
        BlastGuard::default().judge(&report)
    };
    assert_eq!(judge(20, 20), Ok(()), "few documents are written again whatever their share");
    assert_eq!(judge(1_000, 51), Err(Refusal::Share), "X65");
    assert_eq!(judge(10_000_000, 100_001), Err(Refusal::Number));
}

#[test]
fn a_misplaced_observation_is_a_bug() {
    let seen = Observation::Awaited { reached: true };
    assert!(Reconcile::on(&terms(), Phase::Beginning, seen, Timestamp::from_ms(0)).is_err());
}

/// Q1: the guard's word holds for what it has judged, and ghosts in the feed are deletions too.
#[test]
fn no_more_is_removed_than_the_guard_has_judged() {
    let due = Reconcile::due(&terms(), &purging(3), Timestamp::from_ms(0));
    let purge = Command::Purge { after: None, orphans_max: 23, altered_max: None };
    assert_eq!(due, Due::Now(purge));
    let purged = |refused, exceeded| Observation::Purged {
        next: None,
        buried: 0,
        mended: 0,
        foreign: 0,
        refused,
        exceeded,
        numbered: None,
    };
    let code = |phase: Phase| match phase.state() {
        RunState::Stopped(code) => code,
        RunState::Active | RunState::Succeeded | RunState::Failed(_) => panic!("{phase:?}"),
    };
    assert_eq!(code(step(&terms(), purging(3), purged(0, true))), Code::GUARD_REFUSED);
    assert_eq!(code(step(&terms(), purging(3), purged(1, false))), Code::SINK_REFUSED);
    let auditing = Phase::Auditing { after: None, report: Report::default() };
    let audited = audited(21);
    assert_eq!(code(step(&terms(), auditing.clone(), audited.clone())), Code::GUARD_REFUSED);
    let confirmed = Terms { confirmed: true, ..terms() };
    assert_eq!(step(&confirmed, auditing, audited).name(), "comparing");
}

/// A difference that was found and not repaired never leaves the sink trusted, also if the run ended
/// before it looked at the sink; a run that could not look has learned nothing.
#[test]
fn ghosts_that_may_not_be_removed_leave_the_sink_untrusted() {
    let auditing = Phase::Auditing { after: None, report: Report::default() };
    let found = audited(21);
    let refused = step(&terms(), auditing.clone(), found);
    assert_eq!(judgement(refused), Some(Some(Code::GUARD_REFUSED)));
    let halted = step(&terms(), auditing, Observation::Refused(Code::SINK_REFUSED));
    assert_eq!(judgement(halted), None);
}

/// The stored form is a promise.
#[test]
fn a_stored_phase_reads_back() {
    let phase = Phase::Purging {
        after: Some(Key::new("k")),
        report: Report { orphans: 2, ..Report::default() },
    };
    let text = r#"{"phase":"purging","after":"k","report":{"listed":0,"live":0,"capture_missed":0,"ghosts":0,"missing":0,"stale":0,"altered":null,"orphans":2,"ahead":0,"unmarked":0,"mended":0,"deleted":0,"refused":0,"foreign":0,"parked":0,"unparked":0,"waiting":0,"undone":0,"rounds":0,"late":0,"retaken":false,"listings":0,"numbered":0}}"#;
    assert_eq!(serde_json::to_string(&phase).expect("written"), text);
    assert_eq!(serde_json::from_str::<Phase>(text).expect("read"), phase);
    let older = text.replace("\"altered\":null,", "").replace("\"unmarked\":0,\"mended\":0,", "");
    let older = older.replace("\"unparked\":0,\"waiting\":0,\"undone\":0,", "");
    let older = older.replace("\"late\":0,\"retaken\":false,\"listings\":0,", "");
    assert_eq!(serde_json::from_str::<Phase>(&older).expect("an older form is read"), phase);
    let older =
        r#"{"guard":{"orphans_free":20,"share_max":0.05,"orphans_max":100000},"confirmed":false}"#;
    assert_eq!(serde_json::from_str::<Terms>(older).expect("an older form is read"), terms());
}

#[test]
fn a_deep_run_says_how_many_documents_differ_and_looks_again() {
    let deep = Terms { deep: true, ..terms() };
    let due = |phase: &Phase| Reconcile::due(&deep, phase, Timestamp::from_ms(0));
    assert_eq!(due(&Phase::Beginning), Due::Now(Command::Look));
    let trusted = CaptureState::Trusted(Signature::parse("s").expect("valid"));
    let auditing = step(&deep, Phase::Beginning, Observation::Looked(trusted));
    let audited = audited(0);
    let comparing = step(&deep, auditing, audited);
    assert_eq!(due(&comparing), Due::Now(Command::Compare { after: None, park: false }));
    let found = Found { listed: 9, live: 9, altered: 2, ..Found::default() };
    let mending = step(&deep, comparing, compared(found, None));
    assert_eq!(judgement(mending.clone()), Some(Some(Code::DRIFT_FOUND)), "it is drift");
    let purge = Command::Purge { after: None, orphans_max: 20, altered_max: Some(22) };
    assert_eq!(due(&mending), Due::Now(purge));
    let purged = Observation::Purged {
        next: None,
        buried: 0,
        mended: 2,
        foreign: 0,
        refused: 0,
        exceeded: false,
        numbered: Some(Stamp::new(7)),
    };
    let settling = step(&deep, mending, purged);
    let again = step(&deep, settling, Observation::Awaited { reached: true });
    assert_eq!(due(&again), Due::Now(Command::Compare { after: None, park: true }));
    assert_eq!(again.report().and_then(|report| report.altered), Some(2));
    assert_eq!(comparing_shallow().report().and_then(|report| report.altered), None);
}

/// A run that compares ranks alone says nothing of documents.
fn comparing_shallow() -> Phase {
    step(&terms(), comparing(), compared(Found { altered: 1, ..Found::default() }, None))
}
