//! Tables are made, never taken over, and what is wrong with one is told with what to do.

use truekeep_core::Value;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Outcome, Sink};
use truekeep_sink_postgres::MirrorSpec;

use crate::fixture::{Home, body, json, mapped, sent, text, upsert};

/// Why the mirror is not used.
async fn refused(home: &Home, spec: MirrorSpec) -> String {
    let sink = home.opened(spec).await;
    let error = sink.inspect().await.expect_err("it does not fit");
    assert_eq!((error.class, &error.code), (FailureClass::Halted, &Code::MIRROR_MISMATCH));
    let again = sink.prepare().await.expect_err("it does not fit");
    assert_eq!((again.class, again.code), (error.class, error.code));
    error.detail
}

#[tokio::test]
async fn a_look_makes_nothing_and_a_prepared_mirror_fits() {
    let Some(home) = Home::new().await else { return };
    let sink = home.opened(json("Odd \"name\"")).await;
    assert!(!sink.inspect().await.expect("looked"));
    assert_eq!(sink.mark().await.expect("read"), None);
    let tables = "SELECT count(*)::text FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(home.texts(tables).await, [Some("0".to_owned())]);
    for _ in 0..2 {
        sink.prepare().await.expect("prepared");
        assert!(sink.inspect().await.expect("looked"));
    }
    assert_eq!(sent(&sink, 1, vec![body("k", 1, "")]).await.expect("sent"), [Outcome::Applied]);
}

#[tokio::test]
async fn tables_of_others_are_not_taken_over() {
    let Some(home) = Home::new().await else { return };
    for (make, drop, reason) in [
        ("TABLE mirror (id int)", "TABLE", "there is no `mirror__truekeep_marks` beside it"),
        ("VIEW mirror AS SELECT 1", "VIEW", "it is a view"),
        ("MATERIALIZED VIEW mirror AS SELECT 1", "MATERIALIZED VIEW", "it is a materialized view"),
        ("UNLOGGED TABLE mirror (id int)", "TABLE", "it is an unlogged table"),
        ("TABLE mirror (id int) PARTITION BY HASH (id)", "TABLE", "it is a partitioned table"),
        ("SEQUENCE mirror", "SEQUENCE", "it is a sequence"),
    ] {
        home.sql(&format!("CREATE {make}")).await;
        let detail = refused(&home, json("mirror")).await;
        assert!(detail.contains(reason), "{detail}");
        home.sql(&format!("DROP {drop} mirror")).await;
    }
}

/// What was altered is told with the statement that mends it; as long as it is, nothing is written.
#[tokio::test]
async fn an_altered_table_is_told_with_what_mends_it() {
    let Some(home) = Home::new().await else { return };
    let spec = mapped(&[("a", "integer"), ("b", "text")]);
    let sink = home.mirror(spec.clone()).await;
    let record = || vec![upsert("k", 1, &[("a", Value::Integer(1)), ("b", text("b"))])];
    sent(&sink, 1, record()).await.expect("sent");
    for (alter, reason, mend) in [
        (
            "ALTER b TYPE varchar(9)",
            "column `b` (character varying(9)) is not text: `ALTER TABLE \"public\".\"mirror\" \
             ALTER \"b\" TYPE text USING \"b\"::text::text`",
            "",
        ),
        (
            "ALTER _key TYPE text COLLATE \"POSIX\"",
            "column `_key` is in the order of collation `POSIX`, not of bytes",
            "",
        ),
        ("ADD c int", "it has column `c` (integer) too many", "ALTER TABLE mirror DROP c"),
        (
            "RENAME b TO c",
            "column 5 is `c` (text), not `b` (text)",
            "ALTER TABLE mirror RENAME c TO b",
        ),
        (
            "DROP CONSTRAINT mirror_pkey",
            "column `_key` is not unique",
            "ALTER TABLE mirror ADD PRIMARY KEY (_key)",
        ),
    ] {
        home.sql(&format!("ALTER TABLE mirror {alter}")).await;
        let detail = refused(&home, spec.clone()).await;
        assert!(detail.contains(reason), "{detail}");
        let told = detail.split('`').find(|part| part.starts_with("ALTER TABLE"));
        home.sql(if mend.is_empty() { told.expect("a statement") } else { mend }).await;
        assert!(sink.inspect().await.expect("it fits again"), "{alter}");
    }
    // Generated columns, indexes, triggers and columns' defaults of others change nothing.
    home.sql(
        "ALTER TABLE mirror ADD double int GENERATED ALWAYS AS (a * 2) STORED;
         CREATE INDEX ON mirror (b)",
    )
    .await;
    assert!(sink.inspect().await.expect("it fits still"));
    sent(&sink, 2, record()).await.expect("sent");
    assert_eq!(home.texts("SELECT double::text FROM mirror").await, [Some("2".to_owned())]);
}

/// Rule 124: what was dropped in the middle of work is told at once, and made anew when asked.
#[tokio::test]
async fn a_dropped_table_halts_and_is_made_anew_without_what_was_remembered() {
    let Some(home) = Home::new().await else { return };
    let sink = home.mirror(json("mirror")).await;
    sent(&sink, 1, vec![body("k", 7, "")]).await.expect("sent");
    sent(&sink, 2, vec![crate::fixture::delete("k", 8), body("l", 1, "")]).await.expect("sent");
    home.sql("DROP TABLE mirror").await;
    let error = sent(&sink, 3, vec![body("m", 1, "")]).await.expect_err("it is gone");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::MIRROR_MISMATCH));
    let error = sink.list(None, 10).await.expect_err("it is gone");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::MIRROR_MISMATCH));
    assert_eq!(sink.mark().await.expect("read"), None);
    sink.prepare().await.expect("made anew");
    let outcomes = sent(&sink, 1, vec![body("k", 1, "")]).await.expect("sent");
    assert_eq!(outcomes, [Outcome::Applied], "no deletion of a lost mirror is remembered");
}

#[tokio::test]
async fn names_that_postgres_would_cut_or_refuse_are_refused() {
    let Some(home) = Home::new().await else { return };
    let long = "x".repeat(64);
    for spec in [
        json(&long),
        json(""),
        json("a\0"),
        mapped(&[(&long, "text")]),
        mapped(&[("ctid", "text")]),
        mapped(&[("_key", "text")]),
        mapped(&[("a", "text"), ("a", "text")]),
        mapped(&[]),
    ] {
        let open = truekeep_sink_postgres::PostgresSink::open(
            &home.address,
            spec,
            crate::fixture::LONG,
            crate::fixture::LONG,
        );
        let error = open.await.expect_err("no table can be called so");
        assert_eq!((error.class, error.code), (FailureClass::Halted, Code::CONFIG_INVALID));
    }
}

/// A mirror stands in any schema; one that is not there is named with the statement that makes it.
#[tokio::test]
async fn a_schema_has_to_be_there() {
    let Some(home) = Home::new().await else { return };
    let spec = MirrorSpec { schema: "Other one".into(), ..json(&"n".repeat(63)) };
    let detail = refused(&home, spec.clone()).await;
    let told = "there is no schema `Other one`: `CREATE SCHEMA \"Other one\"`";
    assert!(detail.contains(told), "{detail}");
    home.sql("CREATE SCHEMA \"Other one\"").await;
    let sink = home.mirror(spec).await;
    sent(&sink, 1, vec![body("k", 1, "")]).await.expect("sent");
}
