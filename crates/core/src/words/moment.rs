//! Snapshots of the source, and places in a feed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Version;

/// Which write of the source made a change: what a moment includes or does not. On a source with
/// one writer at a time it is the version; on Postgres it is the transaction.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Stamp(u64);

impl Stamp {
    /// Takes a number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<Version> for Stamp {
    /// The stamp of a change on a source with one writer at a time.
    fn from(version: Version) -> Self {
        Self(version.get())
    }
}

/// A snapshot of the source: says which writes it includes. All below `next` are included, but for
/// those that were still running.
///
/// Its text is the newest number if nothing was running, else `xmin:xmax:running,..` as Postgres
/// writes a `pg_snapshot`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Moment {
    next: u64,
    /// Rising, each below `next`.
    running: Vec<u64>,
}

impl Moment {
    /// Before every write.
    pub const BEGINNING: Self = Self { next: 0, running: Vec::new() };

    /// The snapshot in which `newest` was the newest version, on a source with one writer at a time.
    pub const fn at(newest: Version) -> Self {
        let next = if newest.get() == 0 { 0 } else { newest.next().get() };
        Self { next, running: Vec::new() }
    }

    /// The snapshot that includes all below `next` but for those that were running.
    pub fn snapshot(next: u64, running: impl IntoIterator<Item = u64>) -> Self {
        let mut running: Vec<u64> = running.into_iter().filter(|id| *id < next).collect();
        running.sort_unstable();
        running.dedup();
        Self { next, running }
    }

    /// The newest number that it may include: for progress, and for sources with one writer.
    pub const fn newest(&self) -> Version {
        Version::new(self.next.saturating_sub(1))
    }

    /// The first number that it cannot include.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// The numbers below `next` that it does not include.
    pub fn running(&self) -> &[u64] {
        &self.running
    }

    /// Whether the snapshot includes this write.
    pub fn covers(&self, stamp: Stamp) -> bool {
        stamp.0 < self.next && self.running.binary_search(&stamp.0).is_err()
    }

    /// Whether every write that `other` includes is included here too.
    pub fn includes(&self, other: &Moment) -> bool {
        other.next <= self.next
            && self.running.iter().all(|id| *id >= other.next || other.running.contains(id))
    }

    /// The one of the two that includes the other; the other one if neither does.
    #[must_use]
    pub fn or_later(self, other: Moment) -> Moment {
        if self.includes(&other) { self } else { other }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(oldest) = self.running.first() else { return self.newest().fmt(f) };
        write!(f, "{oldest}:{}:", self.next)?;
        for (n, id) in self.running.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            write!(f, "{comma}{id}")?;
        }
        Ok(())
    }
}

/// Text that is no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a moment is a number or `xmin:xmax:running,..`, not {0:?}")]
pub struct InvalidMoment(String);

impl FromStr for Moment {
    type Err = InvalidMoment;

    fn from_str(text: &str) -> Result<Self, InvalidMoment> {
        let invalid = || InvalidMoment(text.chars().take(100).collect());
        let number = |text: &str| text.parse::<u64>().map_err(|_| invalid());
        let Some((oldest, rest)) = text.split_once(':') else {
            return Ok(Self::at(Version::new(number(text)?)));
        };
        let (next, running) = rest.split_once(':').ok_or_else(invalid)?;
        let (oldest, next) = (number(oldest)?, number(next)?);
        let running = running
            .split(',')
            .filter(|id| !id.is_empty())
            .map(number)
            .collect::<Result<Vec<_>, _>>()?;
        if oldest > next || running.iter().any(|id| !(oldest..next).contains(id)) {
            return Err(invalid());
        }
        Ok(Self::snapshot(next, running))
    }
}

impl Serialize for Moment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A place in a feed, made by the source and kept by the run. It is no moment (S3): a key that
/// changed again stands after it, whatever it was before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Every change that stands in the feed with a write that this includes was handed out.
    pub passed: Moment,
    /// What else the source needs to go on from here, and to know the place again, in its own
    /// words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rest: String,
}

impl Place {
    /// The beginning of every feed.
    pub const START: Self = Self { passed: Moment::BEGINNING, rest: String::new() };

    /// The place after this version, on a source with one writer at a time.
    pub const fn at(version: Version) -> Self {
        Self { passed: Moment::at(version), rest: String::new() }
    }

    /// Whether the change with this stamp was handed out, unless it has changed again.
    pub fn covers(&self, stamp: Stamp) -> bool {
        self.passed.covers(stamp)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.passed.fmt(f)
    }
}

#[cfg(test)]
mod tests;
