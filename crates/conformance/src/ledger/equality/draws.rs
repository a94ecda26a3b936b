//! Draws of what calls are made of.

use std::time::Duration;

use truekeep_core::certificate::Claim;
use truekeep_core::code::Code;
use truekeep_core::ports::{Event, ItemKind, LedgerWrite, NewItem, Settle};
use truekeep_core::{Key, Moment, PipelineName, ScopeId, Version, limits};

/// A sequence of draws that one number decides (splitmix64, Steele et al. 2014).
pub(super) struct Draws(pub(super) u64);

impl Draws {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub(super) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    pub(super) fn of<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len() as u64) as usize]
    }

    pub(super) fn scope(&mut self) -> ScopeId {
        let name = if self.one_in(6) { "towns" } else { "cities" };
        ScopeId::whole(PipelineName::parse(name).expect("a name"))
    }

    pub(super) fn key(&mut self) -> Key {
        Key::new(*self.of(&["", "a", "A", "b", "é", "e\u{301}", "z\0", "\"[1]\""]))
    }

    pub(super) fn version(&mut self) -> Version {
        Version::new(self.below(5))
    }

    pub(super) fn kind(&mut self) -> ItemKind {
        *self.of(&[ItemKind::Upsert, ItemKind::Delete])
    }

    pub(super) fn ttl(&mut self) -> Duration {
        Duration::from_millis(*self.of(&[10, 1_000, 1_000, 5_000]))
    }

    /// Mostly short, sometimes over the bound.
    pub(super) fn text(&mut self) -> String {
        let length = if self.one_in(20) { limits::ERROR_TEXT_BYTES_MAX } else { 3 };
        "\u{1}é".repeat(self.below(length as u64) as usize)
    }

    pub(super) fn write(&mut self) -> LedgerWrite {
        match self.below(8) {
            0..3 => LedgerWrite::Enqueue((0..self.below(4)).map(|_| self.item()).collect()),
            3..5 => {
                let mut done = Vec::new();
                for _ in 0..self.below(4) {
                    done.push(Settle { key: self.key(), version: self.version() });
                }
                LedgerWrite::Settle(done)
            }
            5..7 => LedgerWrite::Certify(match self.below(4) {
                0 => Claim::Begun,
                1 => Claim::Broken(Code::CAPTURE_CHANGED),
                _ => Claim::UpTo(Moment::at(self.version())),
            }),
            _ => LedgerWrite::Record(Event { code: Code::UNEXPECTED, text: self.text() }),
        }
    }

    pub(super) fn item(&mut self) -> NewItem {
        let retry_in = [None, Some(0), Some(1), Some(900), Some(u64::MAX)];
        NewItem {
            key: self.key(),
            version: self.version(),
            kind: self.kind(),
            attempts: self.below(4) as u32,
            retry_in: self.of(&retry_in).map(Duration::from_millis),
            code: self.of(&[Code::SINK_REFUSED, Code::from_outside("http 413")]).clone(),
            reason: self.text(),
        }
    }
}
