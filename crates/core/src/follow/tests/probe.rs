//! The search for records that kill workers, in a world of numbered records.

use std::collections::BTreeSet;

use super::*;

const PAGE_ROWS: u32 = 64;
/// Pages are halved, grown back, and halved again.
const DEATHS_PER_KILLER_MAX: u32 = 3 * PAGE_ROWS.ilog2() + RetryPolicy::DELIVERY.attempts_max;

/// Records 1 to `records`, of which some kill whoever sends them.
#[derive(Debug)]
struct World {
    terms: Terms,
    records: u64,
    killers: BTreeSet<u64>,
    delivered: BTreeSet<u64>,
    parked: BTreeSet<u64>,
    deaths: u32,
}

impl World {
    fn new(page_rows: u32, records: u64, killers: &[u64]) -> Self {
        Self {
            terms: Terms { page_rows, ..terms() },
            records,
            killers: killers.iter().copied().collect(),
            delivered: BTreeSet::new(),
            parked: BTreeSet::new(),
            deaths: 0,
        }
    }

    fn view(&self) -> SourceView {
        SourceView { newest: moment(self.records), pruned: moment(0), ..view() }
    }

    fn step(&self, phase: Phase, seen: Observation) -> Step<Phase> {
        Follow::on(&self.terms, phase, seen, NOW).expect("asked for")
    }

    /// A successor takes over and opens.
    fn take_over(&self, phase: Phase, after_crash: bool) -> Phase {
        let took_over = self.step(phase, Observation::TookOver { after_crash }).next;
        let mark = took_over.tail().map(|tail| Mark { number: tail.mark.number, ..mark() });
        self.step(took_over, Observation::Opened(Opened { view: self.view(), mark })).next
    }

    fn beginning(&self) -> Phase {
        tailing(Tail { cursor: place(0), registered: registration(3, self.records), ..tail() })
    }

    /// One turn; `None` if the worker died in it.
    fn turn(&mut self, phase: &Phase) -> Option<Phase> {
        let Due::Now(command) = Follow::due(&self.terms, phase, NOW) else {
            panic!("it never waits: {phase:?}")
        };
        let seen = match command {
            Command::BeginAgain { .. } | Command::Fill => panic!("nothing went back"),
            Command::Arm => Observation::Armed,
            Command::Isolate { after } => {
                let next = after.passed.newest().next();
                self.parked.insert(next.get());
                let failed = Failed { version: next, ..failed("k", 1, false) };
                let alone = alone(failed, Place::at(next));
                Observation::Isolated(PageSeen { view: self.view(), ..alone })
            }
            Command::Deliver { after, rows_max } => {
                let after = after.passed.newest().get();
                let last = (after + u64::from(rows_max)).min(self.records);
                let rows = after + 1..last + 1;
                if rows.clone().any(|row| self.killers.contains(&row)) {
                    return None;
                }
                self.delivered.extend(rows);
                let end = last == self.records;
                Observation::Page(PageSeen {
                    next: place(last),
                    moment: end.then(|| moment(self.records)),
                    view: self.view(),
                    ..page()
                })
            }
            Command::Open | Command::Register(_) => panic!("not due: {command:?}"),
        };
        Some(self.step(phase.clone(), seen).next)
    }

    /// Turns until the end is claimed; whoever dies is succeeded.
    fn run(&mut self) -> Phase {
        let mut phase = self.beginning();
        for _ in 0..10_000 {
            let tail = phase.tail().expect("it tails");
            if tail.probe.is_none() && tail.claimed == Some(Claim::UpTo(moment(self.records))) {
                return phase;
            }
            phase = match self.turn(&phase) {
                Some(next) => next,
                None => {
                    self.deaths += 1;
                    self.take_over(phase, true)
                }
            };
        }
        panic!("it never ends: {self:?}");
    }
}

/// F3, X27 and rule 95: only what kills is parked, and that costs a bounded number of deaths.
#[test]
fn a_killer_is_found_alone_and_its_neighbours_are_delivered() {
    let table: [(u32, u64, &[u64]); 9] = [
        (PAGE_ROWS, 200, &[]),
        (PAGE_ROWS, 200, &[1]),
        (PAGE_ROWS, 200, &[64]),
        (PAGE_ROWS, 200, &[200]),
        (PAGE_ROWS, 200, &[17, 40]),
        (PAGE_ROWS, 200, &[17, 18]),
        (PAGE_ROWS, 200, &[1, 100, 101, 164, 200]),
        (1, 5, &[3]),
        (3, 10, &[2, 9]),
    ];
    for (page_rows, records, killers) in table {
        let mut world = World::new(page_rows, records, killers);
        world.run();
        assert_eq!(world.parked, world.killers, "{killers:?}");
        let others: BTreeSet<u64> = (1..=records).filter(|n| !killers.contains(n)).collect();
        assert_eq!(world.delivered, others, "{killers:?}");
        let deaths_max = DEATHS_PER_KILLER_MAX * u32::try_from(killers.len()).expect("few");
        assert!(world.deaths <= deaths_max, "{killers:?}: {} deaths", world.deaths);
    }
}

/// The same wherever one killer, or two, stand in the first pages.
#[test]
fn a_killer_is_found_wherever_it_stands() {
    for first in 1..=40 {
        for second in first..=40 {
            let mut world = World::new(PAGE_ROWS, 40, &[first, second]);
            world.run();
            assert_eq!(world.parked, world.killers);
            assert_eq!(world.delivered.len() + world.parked.len(), 40);
        }
    }
}

/// A page of one record that failed for good.
fn alone(failed: Failed, next: Place) -> PageSeen {
    let delivered = Delivered { failed: vec![failed], ..Delivered::default() };
    PageSeen { next, moment: None, delivered, ..page() }
}

/// X21: a first page that is isolated is the first page all the same: what others had removed from
/// the feed until we had registered is not missed. Nor is anything parked of a source that went back.
#[test]
fn a_record_is_isolated_from_the_feed_that_is_followed() {
    let pruned = |view: SourceView| SourceView { pruned: moment(40), ..view };
    let probe = Some(Probe { rows: 1, armed: false, lone_deaths: 5 });
    let first = Tail { cursor: Place::START, floor: Moment::BEGINNING, probe, ..tail() };
    let killer = alone(failed("k", 1, false), place(5));
    let seen = PageSeen { view: pruned(killer.view.clone()), ..killer.clone() };
    let step = on(tailing(first.clone()), Observation::Isolated(seen));
    let next = PageSeen { view: pruned(page().view), ..page() };
    assert_eq!(on(step.next, Observation::Page(next)).next.name(), "tailing");

    let other = SourceView { continues: false, ..killer.view.clone() };
    let step = on(tailing(first), Observation::Isolated(PageSeen { view: other, ..killer }));
    assert_eq!((step.next.name(), items(&step).len()), ("halted", 0));
}

/// The isolated record is an item that is parked, and the moment waits for nobody.
#[test]
fn an_isolated_record_is_parked_and_passed() {
    let probe = Some(Probe { rows: 1, armed: false, lone_deaths: 5 });
    let claimed = Some(Claim::UpTo(moment(50)));
    let before = tailing(Tail { probe, claimed, ..tail() });
    let killer = alone(failed("k", 1, false), place(55));
    let step = on(before.clone(), Observation::Isolated(killer));
    let expected = Tail { cursor: place(55), ..tail() };
    assert_eq!(step.next, tailing(expected));
    assert_eq!(items(&step)[0].retry_in, None);
    let gone = on(before, Observation::Isolated(PageSeen { moment: None, ..page() }));
    assert_eq!((&tail_of(&gone).cursor, tail_of(&gone).probe), (&place(50), None));
    assert_eq!(gone.writes, []);
}

/// Who dies while no page was announced, or hands its lease back, has said nothing about a record.
#[test]
fn a_worker_that_ends_idle_accuses_nobody() {
    let mut world = World::new(PAGE_ROWS, 10, &[]);
    let mut phase = world.run();
    for after_crash in [true, false, true, true, true, true, true, true, true, true, true] {
        phase = world.take_over(phase, after_crash);
    }
    let probe = phase.tail().and_then(|tail| tail.probe);
    assert_eq!(probe, Some(Probe { rows: PAGE_ROWS / 2, armed: false, lone_deaths: 0 }));

    let armed = Some(Probe { rows: 1, armed: true, lone_deaths: 4 });
    let handed_back = world.take_over(tailing(Tail { probe: armed, ..tail() }), false);
    let probe = handed_back.tail().and_then(|tail| tail.probe);
    assert_eq!(probe, Some(Probe { rows: 1, armed: false, lone_deaths: 4 }));
}

/// An announced page that turned out to be empty is over: who dies after it has nothing in hand.
#[test]
fn an_empty_page_ends_its_announcement() {
    let probe = Some(Probe { rows: 1, armed: true, lone_deaths: 4 });
    let step = on(tailing(Tail { probe, ..tail() }), Observation::Page(page()));
    let expected = Some(Probe { rows: 2, armed: false, lone_deaths: 0 });
    assert_eq!(tail_of(&step).probe, expected);
}

#[test]
fn a_take_over_without_a_death_looks_for_no_killer() {
    let step = on(tailing(tail()), Observation::TookOver { after_crash: false });
    assert_eq!(step.next, opening(Some(tail())));
}
