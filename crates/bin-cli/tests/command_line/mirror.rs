//! Mirrors on a Postgres server, command by command: from SQLite and from Postgres, in columns and as
//! JSON, and what is told when one does not fit or refuses records.

use truekeep_postgres_server::{Server, TestDatabase};

use crate::world::World;

/// A database that is mirrored into, and a folder with a configuration.
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
        let mut world = World::cities();
        world.replace(&database.address, "[ADDRESS]");
        world.replace(&database.name, "shop");
        world.replace(&server.folder().expect("it is private").display().to_string(), "[SERVER]");
        Some(Self { server, database, world, runtime })
    }

    fn sql(&self, sql: &str) {
        self.runtime.block_on(self.database.run(sql));
    }

    /// Has the cities mirrored into the database, with this beside.
    fn mirror(&self, more: &str) {
        self.world.reconfigure(
            "kind = \"sqlite\"\nurl = \"sqlite:mirror.db\"\n",
            &format!("kind = \"postgres\"\nurl = \"{}\"\n{more}", self.database.address),
        );
    }

    /// The first column of each row, which is text.
    fn texts(&self, sql: &str) -> Vec<String> {
        use sqlx::Row;
        self.runtime.block_on(async {
            let mut connection = self.database.connect().await;
            let rows = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()));
            let rows = rows.fetch_all(&mut connection).await.expect("read");
            rows.iter().map(|row| row.get(0)).collect()
        })
    }

    fn story(&self, commands: &[&str]) -> String {
        let told = |command: &&str| {
            let said = self.world.run(&command.split(' ').collect::<Vec<_>>());
            format!("$ truekeep {command}\n{}\n", said.text())
        };
        commands.iter().map(told).collect()
    }

    /// Runs a command that has to do its work.
    fn done(&self, command: &str) {
        let said = self.world.run(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(said.code, 0, "{command}: {}", said.text());
    }
}

#[test]
fn a_file_is_mirrored_into_a_server_from_nothing_to_complete() {
    let Some(shop) = Shop::new() else { return };
    shop.mirror("");
    let mut story = shop.story(&[
        "check",
        "capture install",
        "check -p cities --key 2",
        "run --once",
        "check",
        "coverage",
        "doctor",
    ]);
    let held = shop.texts("SELECT concat_ws(' ', _key, id, name, people) FROM cities ORDER BY id");
    assert_eq!(held[..2], ["1 1 Zürich 447000", "2 2 東京 13960000"]);
    assert_eq!(
        shop.texts("SELECT pg_typeof(people)::text FROM cities LIMIT 1"),
        ["bigint"],
        "a column has the type of the source's"
    );
    // Drift past us is found, repaired, and not found again.
    shop.world.sql(
        "app.db",
        "UPDATE cities SET people = 0 WHERE id = 1; DELETE FROM cities WHERE id = 2",
    );
    shop.sql(
        "DELETE FROM cities WHERE id = 3; UPDATE cities SET name = 'theirs' WHERE id = 4;
         INSERT INTO cities VALUES ('9', 0, 0, 9, 'nowhere', 0)",
    );
    story += &shop.story(&[
        "diff",
        "diff --deep",
        "run --once",
        "reconcile --deep",
        "run --once",
        "diff --deep",
    ]);
    insta::assert_snapshot!(story);
}

#[test]
fn a_table_is_mirrored_from_a_server_into_another_schema() {
    let Some(shop) = Shop::new() else { return };
    shop.sql(
        "CREATE TYPE mood AS ENUM ('sad', 'ok');
         CREATE TABLE cities (id int PRIMARY KEY, name varchar(40) NOT NULL, area numeric,
           founded date, seen timestamptz, tags text[], about jsonb, raw json, mood mood, warm bool);
         INSERT INTO cities VALUES
           (1, 'Zürich', 87.880, '0015-01-01 BC', '2024-01-01 12:00:00.123456+01', '{a,NULL}',
            '{\"b\": 1.50, \"a\": null}', '{\"b\":1,\"b\":1.0}', 'ok', true),
           (2, '', 'NaN', 'infinity', NULL, '{}', 'null', NULL, 'sad', false);
         CREATE SCHEMA mirrors",
    );
    shop.mirror("schema = \"mirrors\"\n");
    let source = format!("url = \"{}\"", shop.database.address);
    shop.world.reconfigure("url = \"sqlite:app.db\"", &source);
    let story = shop.story(&["check", "capture install"]);
    shop.done("run --once");
    shop.done("diff --deep");
    let same = "SELECT (m.name = c.name AND m.area::text = c.area::text AND m.founded = c.founded
          AND m.seen IS NOT DISTINCT FROM c.seen AND m.tags::text = to_json(c.tags)::text
          AND m.about = c.about AND m.raw::text IS NOT DISTINCT FROM c.raw::text
          AND m.mood = c.mood::text AND m.warm = c.warm)::text
        FROM cities AS c JOIN mirrors.cities AS m ON m.id = c.id";
    assert_eq!(shop.texts(same), ["true", "true"]);
    shop.sql("UPDATE cities SET area = 1.0 WHERE id = 2; DELETE FROM cities WHERE id = 1");
    shop.done("run --once");
    shop.done("diff --deep");
    assert_eq!(shop.texts("SELECT area::text FROM mirrors.cities"), ["1.0"]);
    insta::assert_snapshot!(story);
}

/// What does not fit is told by `check`, with what to do, and nothing in it is touched.
#[test]
fn a_mirror_that_does_not_fit_is_told_with_what_to_do() {
    let Some(shop) = Shop::new() else { return };
    shop.mirror("");
    shop.sql("CREATE TABLE cities (id int)");
    let mut story = shop.story(&["check"]);
    shop.done("capture install");
    story += &shop.story(&["run --once"]);
    shop.sql("DROP TABLE cities");
    shop.done("run --once");
    shop.sql("ALTER TABLE cities ALTER people TYPE int");
    story += &shop.story(&["check", "doctor", "check --format json"]);
    let role = format!("{}_w", shop.database.name);
    shop.sql(&format!("CREATE ROLE {role} LOGIN"));
    shop.world.reconfigure(&shop.database.address, &shop.database.address_of(&role));
    story += &shop.story(&["check"]).replace(&role, "[ROLE]");
    shop.server.stop();
    story += &shop.story(&["check"]);
    insta::assert_snapshot!(story);
}

/// Rule 105: a thousand refused records stop no other, and stand in ten lines; whoever mended the
/// sink has one command to clear them.
#[test]
fn a_thousand_refused_records_are_told_by_ten_reasons() {
    let Some(shop) = Shop::new() else { return };
    shop.mirror("");
    shop.done("capture install");
    shop.done("run --once");
    let raise = |kind: u32| format!("WHEN {kind} THEN RAISE EXCEPTION 'kind {kind} is unwanted';");
    let cases: Vec<_> = (10..20).map(raise).collect();
    shop.sql(&format!(
        "CREATE FUNCTION unwanted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           CASE (NEW.id - 1) / 100 {} ELSE NULL; END CASE; RETURN NEW; END $$;
         CREATE TRIGGER unwanted BEFORE INSERT ON cities FOR EACH ROW WHEN (NEW.id > 1000)
           EXECUTE FUNCTION unwanted()",
        cases.join(" ")
    ));
    shop.world.sql(
        "app.db",
        "WITH RECURSIVE n(n) AS (SELECT 6 UNION ALL SELECT n + 1 FROM n WHERE n < 2000)
         INSERT INTO cities SELECT n, 'city ' || n, n FROM n",
    );
    let mut story = shop.story(&["run --once", "coverage", "parked reasons"]);
    assert_eq!(shop.texts("SELECT count(*)::text FROM cities"), ["1000"]);
    shop.sql("DROP TRIGGER unwanted ON cities");
    story += &shop.story(&["parked retry --reason unwanted", "run --once", "diff --deep"]);
    insta::assert_snapshot!(story);
}

/// X58: a removed pipeline's mirror is emptied and keeps its headstone; whoever comes next begins above.
#[test]
fn a_removed_mirror_is_emptied_and_taken_by_the_next() {
    let Some(shop) = Shop::new() else { return };
    shop.mirror("");
    shop.done("capture install");
    shop.done("run --once");
    let story = crate::removals::removed(&shop.world, &["--purge"]);
    assert_eq!(shop.texts("SELECT count(*)::text FROM cities"), ["0"]);
    assert_eq!(shop.texts("SELECT removed::text FROM cities__truekeep_marks"), ["true"]);
    shop.world.reconfigure("[pipeline.cities]", "[pipeline.towns]");
    shop.done("capture install");
    shop.done("run --once");
    shop.done("diff --deep");
    assert_eq!(shop.texts("SELECT count(*)::text FROM cities WHERE _rules > 1"), ["5"]);
    insta::assert_snapshot!(story);
}
