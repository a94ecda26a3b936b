//! Snapshots of Postgres as moments, and back; places in a feed.
//!
//! Invariant: S3. A place is C, T and a row: everything visible in C was handed out, and of what is
//! visible in T and not in C everything up to the row. A page that fits ends T.

use serde::{Deserialize, Serialize};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::{Moment, Place};

/// The smallest number of a transaction that is none of the server's own.
const FIRST: u64 = 3;

/// A moment as a `pg_snapshot`.
pub(super) fn to_snapshot(moment: &Moment) -> String {
    let next = moment.next().max(FIRST);
    let running: Vec<String> = moment.running().iter().map(u64::to_string).collect();
    let oldest = moment.running().first().copied().unwrap_or(next);
    format!("{oldest}:{next}:{}", running.join(","))
}

/// A `pg_snapshot` as a moment.
pub(super) fn to_moment(snapshot: &str) -> Result<Moment, PortError> {
    snapshot.parse().map_err(|error| {
        PortError::new("read a snapshot", FailureClass::Terminal, Code::UNEXPECTED).caused_by(error)
    })
}

/// A start of the server: when the program was started, in microseconds, and the position up to which
/// it replayed its log, if it had to. A server whose processes crashed replays, and is started no more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start(pub i64, pub Option<u64>);

/// What a place says beyond what was passed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rest {
    /// The server's timeline when it was made; none if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "i")]
    pub timeline: Option<u32>,
    /// The server's log up to which everything was on disk when it was made.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "l")]
    pub log: Option<u64>,
    /// The start of the server since when it ran then; none if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "s")]
    pub start: Option<Start>,
    /// The snapshot whose rows are handed out in pages.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "t")]
    pub target: Option<Moment>,
    /// The transaction and the version of the last row that was.
    #[serde(default, skip_serializing_if = "Option::is_none", rename = "r")]
    pub row: Option<(u64, i64)>,
}

impl Rest {
    /// Reads a place.
    ///
    /// # Errors
    /// Terminal: the place is not one of ours.
    pub fn of(place: &Place) -> Result<Self, PortError> {
        if place.rest.is_empty() {
            return Ok(Self::default());
        }
        serde_json::from_str(&place.rest).map_err(|error| {
            PortError::new("read a place", FailureClass::Terminal, Code::UNEXPECTED)
                .caused_by(error)
        })
    }

    /// The place with this.
    pub fn at(&self, passed: Moment) -> Place {
        let rest = serde_json::to_string(self).expect("numbers and texts are JSON");
        Place { passed, rest }
    }
}

/// A position in the server's log, from `XXXXXXXX/XXXXXXXX`.
pub(super) fn log_position(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let part = |text| u64::from_str_radix(text, 16).ok();
    Some(part(high)? << 32 | part(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_a_moment_and_back() {
        for text in ["10:20:10,12,19", "7:7:", "3:3:"] {
            assert_eq!(to_snapshot(&to_moment(text).expect("a moment")), text);
        }
        assert_eq!(to_snapshot(&Moment::BEGINNING), "3:3:");
        assert_eq!(log_position("1/0000002A"), Some((1 << 32) + 42));
    }

    #[test]
    fn a_place_is_kept_as_text() {
        let target = Some(to_moment("10:20:10").expect("a moment"));
        let start = Some(Start(7, None));
        let rest = Rest { timeline: Some(1), log: Some(42), start, target, row: Some((12, 7)) };
        let place = rest.at(to_moment("5:9:5").expect("a moment"));
        assert_eq!(
            place.rest,
            r#"{"i":1,"l":42,"s":[7,null],"t":"10:20:","r":[12,7]}"#.replace("10:20:", "10:20:10")
        );
        assert_eq!(Rest::of(&place).expect("read"), rest);
    }
}
