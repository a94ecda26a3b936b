//! The scenarios: what each world is made of, and what is done to it. All end equal and certified.

mod clocks;
mod disks;
mod kills;
mod power;
mod restores;

use crate::Fault;
use crate::sink::Sink;
use crate::world::{Plan, World};
use crate::writer::Keeping;

/// A scenario.
#[derive(Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// Why it cannot be done here, if so.
    pub missing: fn() -> Option<String>,
    /// What its worlds are made of.
    pub plan: fn(Box<dyn Sink>, Keeping) -> Plan,
    /// What is done; the end of the round comes after it.
    pub storm: fn(&mut World<'_>) -> Result<(), Fault>,
}

/// Every one.
pub const ALL: &[Scenario] = &[
    Scenario { name: "power", missing: nothing, plan: power::plan, storm: power::storm },
    Scenario { name: "disks", missing: nothing, plan: disks::plan, storm: disks::storm },
    Scenario { name: "kills", missing: nothing, plan: kills::plan, storm: kills::storm },
    Scenario { name: "restores", missing: nothing, plan: restores::plan, storm: restores::storm },
    Scenario {
        name: "repairs",
        missing: nothing,
        plan: restores::plan_of_repair,
        storm: restores::storm_of_repair,
    },
    Scenario { name: "clocks", missing: clocks::missing, plan: clocks::plan, storm: clocks::storm },
];

fn nothing() -> Option<String> {
    None
}

/// A world of folders, small pages and small records.
fn in_folders(sink: Box<dyn Sink>, keeping: Keeping) -> Plan {
    Plan { sink, keeping, disks: None, page_rows: 20, body_max: 200, pipeline: "" }
}
