//! The table of rules says which tests prove them.

use super::{Finding, World};
use crate::rules::{self, PATH};

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    let Some(file) = world.tree.files.iter().find(|file| file.path == PATH) else {
        return Vec::new();
    };
    let proofs = rules::proofs(&world.tree);
    let faults = rules::faults(&file.text, &proofs).into_iter();
    faults.map(|(line, said)| Finding::fault(PATH, line, "rules", said)).collect()
}
