//! Draws: one root seed, and a stream of its own for every actor.
//!
//! The generator is written out here (SplitMix64, public domain, by S. Vigna), so that a seed means
//! the same world whatever becomes of the dependencies.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What a world is drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seed(u64);

/// A text that is no seed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no seed: a hexadecimal number like 0x1f is wanted")]
pub struct InvalidSeed(String);

impl Seed {
    /// Takes a number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The seed that is so many after this one.
    #[must_use]
    pub const fn after(self, many: u64) -> Self {
        Self(self.0.wrapping_add(many))
    }

    /// The draws of one actor: those of another name have nothing to do with them.
    pub(crate) fn stream(self, name: &str) -> Stream {
        let named = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut stream = Stream(self.0);
        Stream(stream.next() ^ named)
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl FromStr for Seed {
    type Err = InvalidSeed;

    fn from_str(text: &str) -> Result<Self, InvalidSeed> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        u64::from_str_radix(digits, 16).map(Self).map_err(|_| InvalidSeed(text.to_owned()))
    }
}

/// Draws of one actor, in order.
#[derive(Debug, Clone)]
pub(crate) struct Stream(u64);

impl Stream {
    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is 1 or more.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Yes, so many times in a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, among: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(among.len() as u64)).unwrap_or(0);
        &among[index]
    }

    /// One of these, by weight.
    pub fn weighted<T: Copy>(&mut self, among: &[(T, u32)]) -> Option<T> {
        let sum: u64 = among.iter().map(|(_, weight)| u64::from(*weight)).sum();
        if sum == 0 {
            return None;
        }
        let mut left = self.below(sum);
        for (one, weight) in among {
            match left.checked_sub(u64::from(*weight)) {
                Some(rest) => left = rest,
                None => return Some(*one),
            }
        }
        None
    }

    /// A number of milliseconds from `low` to `high`, both included.
    pub fn ms(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    /// Uniform in [0, 1).
    #[expect(clippy::cast_precision_loss, reason = "53 bits are what a double holds")]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_reads_back() {
        let seed = Seed::new(0xfeed);
        assert_eq!(seed.to_string().parse(), Ok(seed));
        assert!("0xno".parse::<Seed>().is_err());
    }

    #[test]
    fn streams_of_one_seed_differ_by_name_and_repeat_by_name() {
        let draw = |seed: u64, name: &str| Seed::new(seed).stream(name).next();
        assert_eq!(draw(1, "writer"), draw(1, "writer"));
        assert_ne!(draw(1, "writer"), draw(1, "worker"));
        assert_ne!(draw(1, "writer"), draw(2, "writer"));
    }

    #[test]
    fn draws_keep_their_bounds() {
        let mut stream = Seed::new(3).stream("bounds");
        for _ in 0..1_000 {
            assert!((3..=5).contains(&stream.between(3, 5)));
            assert!((0.0..1.0).contains(&stream.unit()));
            assert_eq!(stream.weighted(&[(1, 0), (2, 7)]), Some(2));
        }
        assert!(!stream.chance(0) && stream.chance(1_000));
    }
}
