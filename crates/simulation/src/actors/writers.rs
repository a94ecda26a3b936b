//! Applications: they insert, update, delete, write again what they deleted, and write many rows at
//! once. Each text is written once in a world, so that every state of a row can be told.

use std::sync::Arc;

use truekeep_core::Key;
use truekeep_core::code::Code;

use crate::plan::{Poison, WriterPlan};
use crate::poison;
use crate::seed::Stream;
use crate::world::World;

/// The key of a row.
pub(crate) fn key(number: u64) -> Key {
    Key::new(format!("k{number:02}"))
}

/// Writes until the world is calm.
pub(crate) async fn write(world: Arc<World>, index: usize) {
    let plan = world.plan.writers[index].clone();
    let mut draws = world.plan.seed.stream(&format!("writer {index}"));
    let mut count = 0;
    while !world.is_calm() {
        transaction(&world, &plan, index, &mut draws, &mut count);
        world.stores.time.pass(draws.ms(1, plan.pause_ms_max)).await;
    }
}

fn transaction(
    world: &World,
    plan: &WriterPlan,
    index: usize,
    draws: &mut Stream,
    count: &mut u64,
) {
    let now = world.stores.time.now();
    world.watched(|auditor, stores| {
        let mut words = String::new();
        for _ in 0..draws.between(1, plan.rows_max) {
            let number = if draws.chance(plan.hot) { 0 } else { draws.below(world.plan.keys) };
            let key = key(number);
            *count += 1;
            let text = format!("w{index}-{count}");
            if draws.chance(plan.deletes) {
                stores.source.delete(&key);
                words.push_str(&format!(" -{key}"));
                if draws.chance(300) {
                    stores.source.put(&key, &text);
                    words.push_str(&format!(" +{key}={text}"));
                }
            } else if draws.chance(plan.poisoned) {
                let what = *draws.pick(&world.plan.poisons);
                poisoned(stores, &key, what, &text);
                words.push_str(&format!(" {key}={}", poison::with(what, &text)));
            } else {
                stores.source.put(&key, &text);
                words.push_str(&format!(" {key}={text}"));
            }
        }
        auditor.observe(stores);
        auditor.story.tell(now, "writes", format_args!("w{index}:{words}"));
    });
}

fn poisoned(stores: &crate::world::Stores, key: &Key, what: Poison, text: &str) {
    let text = poison::with(what, text);
    match what {
        Poison::Unloadable => {
            stores.source.put_unloadable(key, Code::DOCUMENT_UNREADABLE, &text);
        }
        Poison::Refused
        | Poison::RefusesBatch
        | Poison::PutOff
        | Poison::Kills
        | Poison::KillsReader => stores.source.put(key, &text),
    }
}
