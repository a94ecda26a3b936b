//! Ledgers on a server that were restored, or copied: recognised before anything is written.

use super::Shop;
use crate::world::World;

impl Shop {
    /// Puts one database in another's place.
    fn copy(&self, from: &str, to: &str) {
        self.runtime.block_on(async {
            let beside = self.server.database().await;
            beside.run(&format!("DROP DATABASE IF EXISTS {to} WITH (FORCE)")).await;
            beside.run(&format!("CREATE DATABASE {to} TEMPLATE {from}")).await;
        });
    }
}

/// Rules 123 and 125, X53: a ledger alone. A copy of it that is put to work beside it is such a ledger.
#[test]
fn a_ledger_that_was_restored_or_copied_is_told() {
    let Some(mut shop) = Shop::new() else { return };
    let mut world = World::cities();
    std::mem::swap(&mut shop.world.replaced, &mut world.replaced);
    shop.world = world;
    let section = |address: &str| format!("[ledger]\nurl = \"{address}\"\n\n[source.app]");
    shop.world.reconfigure("[source.app]", &section(&shop.database.address));
    let (name, backup) = (shop.database.name.clone(), format!("{}_backup", shop.database.name));
    let changed = |people: u32| {
        shop.world.sql("app.db", &format!("UPDATE cities SET people = {people}"));
    };
    for command in ["capture install", "run --once"] {
        shop.tell(&mut String::new(), command);
    }
    shop.copy(&name, &backup);
    for people in 0..3 {
        changed(people);
        shop.tell(&mut String::new(), "run --once");
    }
    let mut story = String::new();
    let copy = shop.database.address.replace(&name, &backup);
    shop.world.reconfigure(&section(&shop.database.address), &section(&copy));
    for command in ["run --once", "coverage"] {
        shop.tell(&mut story, command);
    }
    shop.world.reconfigure(&section(&copy), &section(&shop.database.address));
    for command in ["run --once", "coverage"] {
        shop.tell(&mut story, command);
    }
    shop.copy(&backup, &name);
    changed(4);
    for command in ["run --once", "coverage", "diff", "apply --again", "run --once", "coverage"] {
        shop.tell(&mut story, command);
    }
    insta::assert_snapshot!(story);
}

/// Rules 121 and 123, X3: ledger and data of one database, restored together, agree with each other. The
/// database is another one, and says so.
#[test]
fn a_ledger_that_was_restored_with_its_data_is_told() {
    let Some(shop) = Shop::new() else { return };
    shop.tell(&mut String::new(), "init [ADDRESS]");
    let ledger = format!("[ledger]\nurl = \"{}\"\n\n[source.", shop.database.address);
    shop.world.reconfigure("[source.", &ledger);
    for command in ["capture install", "run --once"] {
        shop.tell(&mut String::new(), command);
    }
    let (name, backup) = (shop.database.name.clone(), format!("{}_backup", shop.database.name));
    shop.copy(&name, &backup);
    shop.sql("UPDATE cities SET people = 1; INSERT INTO cities VALUES (9, 'Lost', 1)");
    shop.tell(&mut String::new(), "run --once");
    shop.copy(&backup, &name);
    let mut story = String::new();
    for command in ["run --once", "coverage", "diff"] {
        shop.tell(&mut story, command);
    }
    insta::assert_snapshot!(story);
}
