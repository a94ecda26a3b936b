//! Draws from a seed: the same root seed gives a round of a scenario the same plan of faults.
//!
//! The plan repeats; what the processes make of it does not, as the machine schedules them.

use std::time::Duration;

/// A generator of draws.
#[derive(Debug, Clone)]
pub struct Draws(u64);

impl Draws {
    /// The draws of one round of one scenario.
    pub fn of(root: u64, scenario: &str, round: u64) -> Self {
        // FNV-1a over the name, so that scenarios do not share their draws.
        let name = scenario
            .bytes()
            .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV));
        let mut draws = Self(root ^ name ^ round.wrapping_mul(GOLDEN));
        draws.next();
        draws
    }

    /// The next 64 bits, by splitmix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True once in `n` draws.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A time from `from` up to `to`, in milliseconds.
    pub fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    /// One of several.
    pub fn pick<'t, T>(&mut self, among: &'t [T]) -> &'t T {
        &among[usize::try_from(self.below(among.len() as u64)).unwrap_or(0)]
    }
}

const FNV: u64 = 0x0000_0100_0000_01B3;
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests;
