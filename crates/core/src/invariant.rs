//! The invariants of the core, by id. Modules name the ids they keep; tests name the ids they prove.

/// An invariant: its id and what must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invariant {
    /// The id that module headers and tests name.
    pub id: &'static str,
    /// What must hold.
    pub text: &'static str,
}

/// Every invariant of the core.
pub const INVARIANTS: &[Invariant] = &[
    Invariant {
        id: "P1",
        text: "an effect is performed first and committed then, so it happens at least once",
    },
    Invariant {
        id: "P2",
        text: "only facts reach a phase machine, never trouble of input and output",
    },
    Invariant { id: "P3", text: "every effect is keyed by key and rank, so a repeat is harmless" },
    Invariant { id: "R1", text: "no delay exceeds its cap" },
    Invariant { id: "R2", text: "before the cap a delay grows with the attempt" },
    Invariant { id: "R3", text: "no delay overflows, at any attempt and draw" },
    Invariant { id: "L1", text: "a scope has at most one lease in force" },
    Invariant { id: "L2", text: "a pipeline never gives a fence number twice" },
    Invariant {
        id: "L3",
        text: "a lease that ends later than its length from now counts as expired",
    },
    Invariant {
        id: "G1",
        text: "a write lands only under the lease token, fence, run version and rules number of the ledger",
    },
    Invariant { id: "S1", text: "a version is read before, or with, the document that carries it" },
    Invariant { id: "S2", text: "nothing is used that the source could still lose" },
    Invariant {
        id: "S3",
        text: "a moment comes only from a page that reached the end in its own snapshot",
    },
    Invariant { id: "C1", text: "complete at M: for every key the sink is at least as new as M" },
    Invariant { id: "C2", text: "a moment never passes the oldest unsettled item" },
    Invariant { id: "C3", text: "a moment never goes down under the same rules" },
    Invariant { id: "C4", text: "only a claim that says so makes a certificate complete" },
    Invariant {
        id: "M1",
        text: "both sides of a comparison rise strictly in the byte order of keys",
    },
    Invariant { id: "M2", text: "a comparison holds two pages, never a table" },
    Invariant {
        id: "Q1",
        text: "nothing is deleted before all orphans are counted and the guard has let them pass",
    },
    Invariant {
        id: "Q2",
        text: "an orphan is judged again, in the source, when its tombstone is written",
    },
    Invariant { id: "Q3", text: "what follow has yet to deliver is no difference" },
    Invariant { id: "Q4", text: "a rebuild ends only after a comparison under its rules" },
    Invariant {
        id: "F1",
        text: "the cursor moves only over changes that were delivered and confirmed, or are items",
    },
    Invariant {
        id: "F2",
        text: "what may be a restored source, sink or ledger is noticed before anything is sent",
    },
    Invariant {
        id: "F3",
        text: "what kills a worker is found alone and parked; its neighbours are delivered",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique() {
        let ids: std::collections::BTreeSet<_> = INVARIANTS.iter().map(|i| i.id).collect();
        assert_eq!(ids.len(), INVARIANTS.len());
    }
}
