//! A table of a Postgres server into a mirror, command by command.

mod restores;

use truekeep_postgres_server::{Server, TestDatabase};

use crate::world::World;

const TABLES: &str = "CREATE TABLE cities (id int PRIMARY KEY, name text NOT NULL, people bigint);
    INSERT INTO cities VALUES (1, 'Zürich', 447000), (2, '東京', 13960000), (3, 'Αθήνα', 664000),
      (4, 'القاهرة', 9540000), (5, 'São Paulo', 12330000);
    CREATE TABLE log (line text);
    CREATE VIEW big AS SELECT * FROM cities WHERE people > 1000000";

/// A database with this in it, on a server whose transactions nobody else numbers, and a folder for
/// what is made of it.
struct Shop {
    server: Server,
    database: TestDatabase,
    world: World,
    runtime: tokio::runtime::Runtime,
}

impl Shop {
    fn new() -> Option<Self> {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let server = truekeep_postgres_server::private(&[])?;
        let database = runtime.block_on(server.database());
        let mut world = World::empty();
        world.replace(&database.address, "[ADDRESS]");
        world.replace(&database.name, "shop");
        world.replace(&server.folder().expect("it is private").display().to_string(), "[SERVER]");
        let shop = Self { server, database, world, runtime };
        shop.sql(TABLES);
        Some(shop)
    }

    fn sql(&self, sql: &str) {
        self.runtime.block_on(self.database.run(sql));
    }

    /// Says what a command said.
    fn tell(&self, story: &mut String, command: &str) {
        let command = command.replace("[ADDRESS]", &self.database.address);
        let mut said = self.world.run(&command.split(' ').collect::<Vec<_>>());
        // Pipelines take turns in any order.
        let mut lines: Vec<_> = said.stderr.lines().map(|line| format!("{line}\n")).collect();
        lines.sort();
        said.stderr = lines.concat();
        said.stdout = without_moments(&said.stdout);
        let command = command.replace(&self.database.address, "[ADDRESS]");
        *story += &format!("$ truekeep {command}\n{}\n", said.text());
    }
}

/// How many transactions a worker needs depends on how long it is at work.
fn without_moments(text: &str) -> String {
    let is_moment = |word: &str| word.len() == 3 && word.bytes().all(|b| b.is_ascii_digit());
    let words = text.split_inclusive([' ', '\n']).map(|word| {
        let bare = word.trim_end();
        if is_moment(bare) { word.replace(bare, "[M]") } else { word.to_owned() }
    });
    words.collect()
}

#[test]
fn a_table_of_a_server_is_followed_from_nothing_to_complete() {
    let Some(shop) = Shop::new() else { return };
    let mut story = String::new();
    for command in [
        "init [ADDRESS]",
        "check",
        "capture install",
        "capture verify",
        "check -p cities --key 2",
        "run --once",
        "status",
        "coverage",
        "diff",
        "wait",
        "apply",
        "doctor",
    ] {
        shop.tell(&mut story, command);
    }
    insta::assert_snapshot!(story);
}

#[test]
fn changes_and_drift_of_a_server_are_told_and_mended() {
    let Some(shop) = Shop::new() else { return };
    let mut story = String::new();
    for command in ["init [ADDRESS]", "capture install", "run --once"] {
        shop.tell(&mut String::new(), command);
    }
    shop.sql(
        "UPDATE cities SET people = 0 WHERE id = 1; DELETE FROM cities WHERE id = 2;
         INSERT INTO cities VALUES (6, 'Lagos', 15388000)",
    );
    for command in ["diff", "run --once", "diff", "coverage"] {
        shop.tell(&mut story, command);
    }
    // Changes that capture misses, until somebody looks.
    shop.sql(
        "ALTER TABLE cities DISABLE TRIGGER ALL; UPDATE cities SET people = 1 WHERE id = 3;
         INSERT INTO cities VALUES (7, 'Lima', 10000000); ALTER TABLE cities ENABLE TRIGGER ALL",
    );
    for command in [
        "capture verify",
        "diff",
        "run --once",
        "capture install",
        "run --once",
        "reconcile",
        "run --once",
        "diff --deep",
        "capture remove -p cities",
    ] {
        shop.tell(&mut story, command);
    }
    insta::assert_snapshot!(story);
}

/// A ledger on a server, beside a source and a mirror in files.
#[test]
fn a_ledger_on_a_server_is_made_used_and_told() {
    let Some(mut shop) = Shop::new() else { return };
    let mut world = World::cities();
    std::mem::swap(&mut shop.world.replaced, &mut world.replaced);
    shop.world = world;
    let ledger = format!("[ledger]\nurl = \"{}\"\n\n[source.app]", shop.database.address);
    shop.world.reconfigure("[source.app]", &ledger);
    let mut story = String::new();
    for command in [
        "check",
        "doctor",
        "capture install",
        "migrate",
        "migrate",
        "run --once",
        "status",
        "coverage",
        "diff",
        "pause cities",
        "history -p cities",
        "resume cities",
        "doctor",
    ] {
        shop.tell(&mut story, command);
    }
    let version = "UPDATE truekeep_ledger.ledger SET version = 99";
    shop.sql(version);
    for command in ["status", "run --once", "migrate", "doctor"] {
        shop.tell(&mut story, command);
    }
    insta::assert_snapshot!(story);
}

/// What a reader is granted; what is documented is what is tested.
const READER: &str =
    "CREATE ROLE reader; GRANT USAGE ON SCHEMA truekeep, truekeep_ledger TO reader";

/// Where ledger and data live together, readers ask in SQL, and are told no more than the ledger knows
/// and the feed shows.
#[test]
fn readers_ask_in_sql_where_the_ledger_is_beside_the_data() {
    let Some(shop) = Shop::new() else { return };
    shop.tell(&mut String::new(), "init [ADDRESS]");
    shop.sql(&format!(
        "CREATE ROLE worker LOGIN; GRANT CREATE ON DATABASE {} TO worker",
        shop.database.name
    ));
    let ledger = format!("[ledger]\nurl = \"{}\"\n\n[source.", shop.database.address_of("worker"));
    shop.world.reconfigure("[source.", &ledger);
    shop.tell(&mut String::new(), "capture install");
    shop.sql(
        "GRANT USAGE ON SCHEMA truekeep TO worker;
         GRANT SELECT ON ALL TABLES IN SCHEMA truekeep TO worker",
    );
    let run = || shop.tell(&mut String::new(), "run --once");
    let holds = |what: &str| {
        shop.sql(&format!("SET ROLE reader; DO $$ BEGIN ASSERT ({what}); END $$"));
    };
    run();
    shop.sql(READER);
    let fresh = "truekeep.ready('cities', '0 s')";
    holds(fresh);
    holds("(SELECT complete AND state = 'complete' AND NOT paused AND code IS NULL AND rules = 1 AND parked = 0
                AND age = '0 s' FROM truekeep.coverage('cities'))");
    holds("(SELECT count(*) = 1 AND NOT bool_or(complete) AND min(state) = 'unknown' FROM truekeep.coverage('none'))
           AND NOT truekeep.ready('none')");
    shop.sql("BEGIN; UPDATE cities SET people = 1 WHERE id = 1; CREATE TABLE written AS SELECT truekeep.token() AS token; COMMIT;
              GRANT SELECT ON written TO reader");
    let included = "(SELECT complete FROM written, truekeep.coverage('cities', token))";
    holds(&format!("truekeep.ready('cities') AND NOT {fresh} AND NOT {included}"));
    run();
    holds(&format!("{fresh} AND {included}"));
    // Nobody would say what changes now.
    shop.sql("ALTER TABLE cities DISABLE TRIGGER ALL; UPDATE cities SET people = 2 WHERE id = 1");
    holds(&format!("NOT {fresh}"));
    shop.sql("ALTER TABLE cities ENABLE TRIGGER ALL");
    holds(&format!("NOT {fresh}"));
    shop.tell(&mut String::new(), "capture install");
    run();
    holds(fresh);
    shop.tell(&mut String::new(), "pause cities");
    holds(&format!("{fresh} AND (SELECT paused FROM truekeep.coverage('cities'))"));
    holds("(SELECT bool_and(NOT has_table_privilege(oid, 'SELECT')) FROM pg_class
            WHERE relkind = 'r' AND relnamespace IN ('truekeep'::regnamespace, 'truekeep_ledger'::regnamespace))");
    // Without a feed the certificate is as old as it is.
    shop.tell(&mut String::new(), "capture remove -p cities");
    holds("truekeep_ledger.ready('cities') AND NOT truekeep_ledger.ready('cities', '0 s')");
}
