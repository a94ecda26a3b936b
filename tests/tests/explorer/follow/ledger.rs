//! A ledger of one run: a lease, rules, items and a certificate; every write under the real guard.

use truekeep_core::certificate::{self, Certificate, Claim, State, Tally};
use truekeep_core::guard::Lost;
use truekeep_core::ports::{LedgerWrite, NewItem};
use truekeep_core::{Moment, RulesNumber, Timestamp, Version};

use super::Breaks;
use super::machine::{HeldNow, Machine, PhaseId, key_number, small};
use super::source::KEYS;
use super::worker::Belief;

/// The lease as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    pub fence: u8,
    pub expired: bool,
}

/// Where an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemState {
    Pending,
    Leased,
    Retry,
    Parked,
}

/// A delivery that did not go straight through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    pub version: u8,
    pub state: ItemState,
    pub attempts: u8,
}

/// What readers see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Certified {
    pub state: State,
    pub moment: Option<u8>,
    pub rules: u8,
}

/// The ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ledger {
    pub rules: u8,
    /// The greatest fence that was given.
    pub fence: u8,
    pub lease: Option<Lease>,
    pub run: PhaseId,
    pub items: [Option<Item>; KEYS as usize],
    pub certificate: Certified,
}

impl Ledger {
    pub const NEW: Self = Self {
        rules: 1,
        fence: 0,
        lease: None,
        run: Machine::START,
        items: [None; KEYS as usize],
        certificate: Certified { state: State::Never, moment: None, rules: 1 },
    };

    /// The lease, if it is in force.
    pub fn in_force(&self, machine: &Machine) -> Option<Lease> {
        self.lease.filter(|lease| machine.in_force(lease.fence, lease.expired))
    }

    /// Why a write may not land.
    pub fn refuses(&self, machine: &Machine, writer: Belief, breaks: Breaks) -> Option<Lost> {
        let lease = self.in_force(machine);
        let held = HeldNow {
            token: if breaks.guard_ignores_the_token {
                Some(writer.lease.fence)
            } else {
                lease.map(|lease| lease.fence)
            },
            fence: self.fence,
            current: writer.current || !breaks.guard_ignores_the_run_version,
            rules: if breaks.guard_ignores_the_rules { writer.lease.rules } else { self.rules },
        };
        machine.guard(writer, held).err()
    }

    /// Carries out the writes of a commit, in order.
    pub fn write(&mut self, next: PhaseId, writes: &[LedgerWrite], rules: u8, breaks: Breaks) {
        self.run = next;
        for write in writes {
            match write {
                LedgerWrite::Enqueue(items) => items.iter().for_each(|item| self.enqueue(item)),
                LedgerWrite::Settle(settled) => {
                    for settle in settled {
                        let place = &mut self.items[key_number(&settle.key)];
                        *place = place.filter(|item| version(item.version) > settle.version);
                    }
                }
                LedgerWrite::Certify(claim) => self.certify(claim, rules, breaks),
                LedgerWrite::Record(_) => {}
            }
        }
    }

    fn enqueue(&mut self, new: &NewItem) {
        let place = &mut self.items[key_number(&new.key)];
        if place.is_some_and(|item| version(item.version) > new.version) {
            return;
        }
        *place = Some(Item {
            version: small(new.version.get()),
            state: if new.retry_in.is_some() { ItemState::Retry } else { ItemState::Parked },
            attempts: small(new.attempts.into()),
        });
    }

    fn certify(&mut self, claim: &Claim, rules: u8, breaks: Breaks) {
        let before = Certificate {
            state: self.certificate.state,
            moment: self.certificate.moment.map(|newest| Moment::at(version(newest))),
            ..Certificate::never(
                RulesNumber::new(self.certificate.rules.into()),
                Timestamp::from_ms(0),
            )
        };
        let mut tally = self.tally();
        if breaks.items_do_not_hold_the_moment {
            tally.unsettled = 0;
        }
        let rules = RulesNumber::new(rules.into());
        let after = certificate::judge(&before, claim, tally, rules, Timestamp::from_ms(0));
        self.certificate = Certified {
            state: after.state,
            moment: after.moment.map(|moment| small(moment.newest().get())),
            rules: small(after.rules.get()),
        };
    }

    fn tally(&self) -> Tally {
        let count = |parked: bool| {
            let of = |item: &&Item| (item.state == ItemState::Parked) == parked;
            self.items.iter().flatten().filter(of).count() as u64
        };
        Tally { unsettled: count(false), parked: count(true) }
    }

    /// New rules: what was certified is stale.
    pub fn announce(&mut self) {
        self.rules += 1;
        if matches!(self.certificate.state, State::Complete | State::Partial) {
            self.certificate.state = State::Stale;
        }
    }

    /// Gives a lease back, if it is still this one.
    pub fn release(&mut self, fence: u8) {
        self.lease = self.lease.filter(|lease| lease.fence != fence);
    }
}

fn version(number: u8) -> Version {
    Version::new(number.into())
}
