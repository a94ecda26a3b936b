//! Generations of a mirror obey the rules of every sink with generations, and carry over what others
//! made on the table that readers see, or name it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use sqlx::Row;
use truekeep_conformance::generations::GenerationsUnderTest;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Generations, Swap, Swapped};
use truekeep_core::{Generation, Key, SwapNumber};
use truekeep_sink_postgres::{MirrorSpec, PostgresGenerations};

use crate::fixture::{Home, LONG, mapped};

#[derive(Debug)]
struct Subject {
    home: Home,
    generations: Arc<PostgresGenerations>,
}

fn spec() -> MirrorSpec {
    MirrorSpec { table: "a \"mirror\"".into(), ..mapped(&[("body", "text")]) }
}

async fn generations(home: &Home) -> Arc<PostgresGenerations> {
    let opened = PostgresGenerations::open(&home.address, spec(), LONG, LONG).await;
    Arc::new(opened.expect("opened"))
}

impl Subject {
    async fn open() -> Option<Self> {
        let home = Home::new().await?;
        let generations = generations(&home).await;
        Some(Self { home, generations })
    }

    async fn prepared(&self, generation: u64) {
        let sink = self.generations.open(Generation::new(generation)).await.expect("opened");
        sink.prepare().await.expect("prepared");
    }
}

#[async_trait]
impl GenerationsUnderTest for Subject {
    fn generations(&self) -> Arc<dyn Generations> {
        Arc::clone(&self.generations) as Arc<dyn Generations>
    }

    async fn reopen(&mut self) {
        self.generations = generations(&self.home).await;
    }

    async fn seen(&self) -> BTreeMap<Key, String> {
        let mut connection = self.home.connect().await;
        let sql = "SELECT _key, body FROM \"a \"\"mirror\"\"\"";
        let rows = sqlx::query(sql).fetch_all(&mut connection).await.expect("read");
        rows.iter().map(|row| (Key::new(row.get::<&str, _>(0)), row.get(1))).collect()
    }
}

truekeep_conformance::generation_rules!({
    let Some(subject) = Subject::open().await else { return };
    subject
});

fn swap(number: u64, from: u64, to: u64) -> Swap {
    let (from, to) = (Generation::new(from), Generation::new(to));
    Swap { number: SwapNumber::new(number), from, to }
}

/// Everything that stands on a table with the name, as the catalog tells it.
const THEIRS: &str = r#"
SELECT told FROM (
  SELECT 'index ' || indexdef FROM pg_indexes
  WHERE tablename = 'a "mirror"' AND indexname !~ '_pkey'
  UNION ALL
  SELECT format('constraint %s %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint
  WHERE conrelid = '"a ""mirror"""'::regclass AND contype <> 'p'
  UNION ALL
  SELECT format('trigger %s %s', tgenabled, pg_get_triggerdef(oid)) FROM pg_trigger
  WHERE tgrelid = '"a ""mirror"""'::regclass AND NOT tgisinternal
  UNION ALL
  SELECT 'statistics ' || pg_get_statisticsobjdef(oid) FROM pg_statistic_ext
  WHERE stxrelid = '"a ""mirror"""'::regclass
  UNION ALL
  SELECT format('grant %s %s %s', grantee, privilege_type, is_grantable)
  FROM information_schema.role_table_grants WHERE table_name = 'a "mirror"' AND grantee <> 'postgres'
  UNION ALL
  SELECT format('grant %s (%s) %s', grantee, column_name, privilege_type)
  FROM information_schema.column_privileges
  WHERE table_name = 'a "mirror"' AND grantee <> 'postgres' AND privilege_type = 'UPDATE'
  UNION ALL
  SELECT format('view %s %s %s', relname, reloptions, pg_get_viewdef(oid)) FROM pg_class
  WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace
) AS told (told) ORDER BY 1
"#;

/// Indexes, constraints, triggers, statistics, grants and views go to the table that readers see then,
/// there and back, and leave nothing on the one that they saw.
#[tokio::test]
async fn what_others_made_on_the_table_is_carried_over() {
    let Some(subject) = Subject::open().await else { return };
    for generation in [1, 2] {
        subject.prepared(generation).await;
    }
    let home = &subject.home;
    let (one, other) =
        (format!("{}_one", home.database.name), format!("{}_two", home.database.name));
    home.sql(&format!(
        r#"DROP ROLE IF EXISTS {one}; DROP ROLE IF EXISTS {other}; CREATE ROLE {one}; CREATE ROLE {other};
        CREATE TABLE log (what text); CREATE TABLE kinds (kind text PRIMARY KEY); INSERT INTO kinds VALUES ('b');
        CREATE INDEX by_body ON "a ""mirror""" (lower(body)) WHERE body <> '';
        CREATE UNIQUE INDEX "odd "" name" ON "a ""mirror""" (_version, _key);
        ALTER TABLE "a ""mirror""" ADD CONSTRAINT short CHECK (length(body) < 9);
        ALTER TABLE "a ""mirror""" ADD CONSTRAINT single UNIQUE (body, _version);
        ALTER TABLE "a ""mirror""" ADD CONSTRAINT known FOREIGN KEY (body) REFERENCES kinds NOT VALID;
        CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN INSERT INTO public.log VALUES (NEW._key); RETURN NULL; END $$;
        CREATE TRIGGER told AFTER INSERT ON "a ""mirror""" FOR EACH ROW EXECUTE FUNCTION tell();
        CREATE TRIGGER mute AFTER UPDATE ON "a ""mirror""" FOR EACH ROW EXECUTE FUNCTION tell();
        ALTER TABLE "a ""mirror""" DISABLE TRIGGER mute;
        CREATE STATISTICS together ON _rules, _version FROM "a ""mirror""";
        GRANT SELECT ON "a ""mirror""" TO {one} WITH GRANT OPTION; GRANT UPDATE (body) ON "a ""mirror""" TO {other};
        GRANT INSERT ON "a ""mirror""" TO PUBLIC;
        CREATE VIEW bodies WITH (security_barrier = true) AS SELECT m.body AS "the body" FROM "a ""mirror""" AS m;
        CREATE VIEW over_it AS SELECT count(*) FROM bodies;
        INSERT INTO "a ""mirror""__truekeep_g2" VALUES ('k', 1, 1, 'b')"#
    ))
    .await;
    let before = home.texts(THEIRS).await;
    assert_eq!(before.len(), 14, "{before:#?}");
    for (number, from, to) in [(1, 1, 2), (2, 2, 1), (3, 1, 2)] {
        let swapped = subject.generations.swap(&swap(number, from, to)).await;
        assert_eq!(swapped.expect("swapped"), Swapped::Done);
        assert_eq!(home.texts(THEIRS).await, before);
        let aside = format!(
            "SELECT (relacl IS NULL OR relacl::text !~ '{one}')::text FROM pg_class
             WHERE relname = 'a \"mirror\"__truekeep_g{from}'"
        );
        assert_eq!(home.texts(&aside).await, [Some("true".to_owned())]);
    }
    assert_eq!(home.texts("SELECT \"the body\" FROM bodies").await, [Some("b".to_owned())]);
    home.sql("INSERT INTO \"a \"\"mirror\"\"\" VALUES ('l', 1, 2, 'b')").await;
    assert_eq!(home.texts("SELECT what FROM log").await, [Some("l".to_owned())]);
    home.sql(&format!("DROP OWNED BY {one}, {other}; DROP ROLE {one}, {other}")).await;
}

/// What cannot be carried over is named, and nothing is swapped until it is gone.
#[tokio::test]
async fn what_cannot_be_carried_over_is_named() {
    let Some(subject) = Subject::open().await else { return };
    for generation in [1, 2] {
        subject.prepared(generation).await;
    }
    let table = r#""a ""mirror""""#;
    for (make, told, drop) in [
        (
            format!("CREATE MATERIALIZED VIEW kept AS SELECT body FROM {table}"),
            "materialized view public.kept",
            "DROP MATERIALIZED VIEW kept".to_owned(),
        ),
        (
            format!(
                "CREATE TABLE uses (key text COLLATE \"C\" CONSTRAINT points REFERENCES {table})"
            ),
            "constraint points on table public.uses",
            "DROP TABLE uses".to_owned(),
        ),
        (
            format!("CREATE PUBLICATION told FOR TABLE {table}"),
            "in publication told",
            "DROP PUBLICATION told".to_owned(),
        ),
        (
            format!("CREATE FUNCTION f({table}) RETURNS int LANGUAGE sql AS 'SELECT 1'"),
            "function public.f(",
            format!("DROP FUNCTION f({table})"),
        ),
        (
            format!("CREATE RULE hush AS ON DELETE TO {table} DO INSTEAD NOTHING"),
            "rule hush on table",
            format!("DROP RULE hush ON {table}"),
        ),
        (
            format!("ALTER TABLE {table} ADD size int GENERATED ALWAYS AS (length(body)) STORED"),
            "generated column `size`",
            format!("ALTER TABLE {table} DROP size"),
        ),
    ] {
        subject.home.sql(&make).await;
        let error = subject.generations.swap(&swap(1, 1, 2)).await.expect_err("it would be lost");
        assert_eq!((error.class, &error.code), (FailureClass::Halted, &Code::MIRROR_MISMATCH));
        assert!(error.detail.contains(told), "{}", error.detail);
        subject.home.sql(&drop).await;
    }
    let swapped = subject.generations.swap(&swap(1, 1, 2)).await;
    assert_eq!(swapped.expect("swapped"), Swapped::Done);
}
