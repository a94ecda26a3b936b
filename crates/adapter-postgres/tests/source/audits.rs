//! Audits beside writers, and of tables that were rewritten.

use truekeep_adapter_postgres::{PostgresSource, RelationSpec};
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capture, CaptureState};
use truekeep_core::{Key, Place};

use crate::fixture::{App, Asked, run, text};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v text);
    INSERT INTO t SELECT g, 'x' FROM generate_series(1, 200) g";

/// One of an application's transactions, by its number: rows come, go, change and move.
fn transaction(number: u64, writer: u64) -> String {
    let key = (number * 7 + writer * 31) % 200 + 1;
    match number % 4 {
        0 => format!("UPDATE t SET v = 'w{number}' WHERE id BETWEEN {key} AND {}", key + 5),
        1 => format!("DELETE FROM t WHERE id = {key}"),
        2 => format!("INSERT INTO t VALUES ({key}, 'n') ON CONFLICT (id) DO UPDATE SET v = 'u'"),
        _ => format!("UPDATE t SET id = -id WHERE abs(id) = {key}"),
    }
}

/// Rule 113, X11: a row that is committed while its table is audited, before its page or behind it, is no
/// drift: what stands in the table and what stands in the feed are read in one snapshot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_is_committed_in_the_middle_is_no_drift() {
    let Some(app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    let mut writers = Vec::new();
    for writer in 0..3 {
        let mut db = app.other().await;
        writers.push(tokio::spawn(async move {
            for number in 0..300 {
                // One that two writers want at once is given up.
                let sql = transaction(number, writer);
                let _ = sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut db).await;
            }
        }));
    }
    let mut audits = 0;
    while writers.iter().any(|writer| !writer.is_finished()) {
        let mut after = None;
        loop {
            let page = source.audit(after, 7).await.expect("a page");
            assert_eq!((page.missed, page.ghosts), (Vec::new(), Vec::new()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        audits += 1;
    }
    for writer in writers {
        writer.await.expect("done");
    }
    assert!(audits > 0);
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()));
}

/// X21: what another transaction holds is not waited for while it is held against the feed; it is numbered
/// once that has ended, whatever it did, prepared or not.
#[tokio::test]
async fn a_row_that_is_held_is_numbered_once_it_is_let_go() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    app.run("ALTER TABLE t DISABLE TRIGGER USER; UPDATE t SET v = 'unseen' WHERE id = 5; ALTER TABLE t ENABLE TRIGGER USER").await;
    app.run("BEGIN; UPDATE t SET v = 'held' WHERE id = 5; PREPARE TRANSACTION 'held'").await;
    assert_eq!(source.audited().await.0, ["5"]);
    let error = source.number(&[Key::new("5")]).await.expect_err("its feed row is locked");
    assert_eq!(error.class, FailureClass::Retry);
    app.run("COMMIT PREPARED 'held'").await;
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()), "it was seen after all");
}

async fn trusted(source: &PostgresSource) -> bool {
    matches!(source.page(&Place::START, 1).await.view.capture, CaptureState::Trusted(_))
}

/// X7, X63: a table that is rewritten without a change of its rows is as it was; one whose rows may be
/// others is told by its signature, or by its audit, which finds each row; and is mended by numbering them.
#[tokio::test]
async fn a_rewritten_table_is_harmless_or_told() {
    for (rewrite, keeps_trust, found) in [
        ("VACUUM FULL t", true, 0),
        ("VACUUM FREEZE t", true, 0),
        ("CLUSTER t USING t_pkey", true, 0),
        ("REINDEX TABLE t", true, 0),
        ("ALTER TABLE t ALTER v TYPE varchar USING upper(v)", false, 200),
        ("ALTER TABLE t ADD n float DEFAULT random()", false, 200),
        ("ALTER TABLE t ADD n int DEFAULT 1", false, 0),
        // The catalogs say nothing of it afterwards; a crash meanwhile empties the table.
        ("ALTER TABLE t SET UNLOGGED; ALTER TABLE t SET LOGGED", true, 200),
        (
            "CREATE TABLE copy (LIKE t INCLUDING ALL); INSERT INTO copy SELECT * FROM t; DROP TABLE t; ALTER TABLE copy RENAME TO t",
            false,
            200,
        ),
    ] {
        let Some(mut app) = App::new(TABLE).await else { return };
        let source = app.source(RelationSpec::of("t")).await;
        app.run(rewrite).await;
        assert_eq!(trusted(&source).await, keeps_trust, "{rewrite}");
        let (missed, ghosts) = source.audited().await;
        assert_eq!((missed.len(), ghosts.len()), (found, 0), "{rewrite}");
        source.captured().await;
        let missed: Vec<Key> = source.audited().await.0.into_iter().map(Key::new).collect();
        source.number(&missed).await.expect("numbered");
        assert!(trusted(&source).await, "{rewrite}");
        assert_eq!(source.audited().await, (Vec::new(), Vec::new()), "{rewrite}");
        let mut db = app.other().await;
        run(&mut db, "UPDATE t SET v = 'seen' WHERE id = 1").await;
        assert_eq!(text(&mut db, "SELECT count(*) FROM t").await, "200");
        assert_eq!(source.audited().await, (Vec::new(), Vec::new()), "{rewrite}");
    }
}
