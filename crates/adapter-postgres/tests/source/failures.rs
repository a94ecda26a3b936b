//! Failures in the middle of what ours does: what was not told to have happened is done again, harmlessly.

use truekeep_adapter_postgres::RelationSpec;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capture, Feed, Registration};
use truekeep_core::{Key, Place, RegistrationCounter, Version};

use crate::fixture::{App, Asked, consumer};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v text);
    INSERT INTO t SELECT g, 'x' FROM generate_series(1, 20) g";

/// A commit that stands and was never answered is class Unknown, and the same is done again.
#[tokio::test]
async fn a_commit_that_was_never_answered_is_made_again() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let mut app = App::on(&server, TABLE).await;
    let source = app.source(RelationSpec::of("t")).await;
    let before = source.everything(&Place::START).await;
    // Each commit waits for a standby that never comes.
    app.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
    app.run("SELECT pg_reload_conf()").await;
    app.run("SET synchronous_commit = off").await;
    app.until("SELECT current_setting('synchronous_standby_names') = 'nobody'").await;
    let beginning = tokio::spawn({
        let source = source.clone();
        async move { source.begin_again(Version::new(5_000)).await }
    });
    let waits =
        "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'truekeep'";
    app.until(&format!("SELECT count(*) > 0 {waits}")).await;
    app.run(&format!("SELECT pg_terminate_backend(pid) {waits}")).await;
    let error = beginning.await.expect("done").expect_err("no answer");
    assert_eq!((error.class, error.code), (FailureClass::Unknown, Code::SOURCE_UNAVAILABLE));
    app.run("ALTER SYSTEM RESET synchronous_standby_names").await;
    app.run("SELECT pg_reload_conf()").await;
    app.until("SELECT current_setting('synchronous_standby_names') = ''").await;
    source.begin_again(Version::new(5_000)).await.expect("once more");
    source.captured().await;
    let after = source.everything(&Place::START).await;
    assert_eq!(after.len(), before.len());
    assert!(after.values().all(|change| change.version > Version::new(5_000)));
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()));
}

/// What the server says in the middle of a write of ours, and of the application's: nothing of either
/// stands, and once it is over both go on.
#[tokio::test]
async fn a_write_that_fails_in_the_middle_leaves_nothing() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    let feed = app
        .text("SELECT oid::regclass FROM pg_class WHERE relname LIKE 'feed\\_%' AND relkind = 'r'")
        .await;
    let before = source.everything(&Place::START).await;
    for (state, class, code) in [
        // A full disk, no memory left, no connections left.
        ("53100", FailureClass::Retry, Code::SOURCE_UNAVAILABLE),
        ("53200", FailureClass::Retry, Code::SOURCE_UNAVAILABLE),
        // A serialisation failure, a deadlock whose victim we are, a lock that is held for long.
        ("40001", FailureClass::Retry, Code::SOURCE_LOCKED),
        ("40P01", FailureClass::Retry, Code::SOURCE_LOCKED),
        ("55P03", FailureClass::Retry, Code::SOURCE_LOCKED),
        // A statement that took too long.
        ("57014", FailureClass::Retry, Code::SOURCE_READ_FAILED),
        // A disk that fails, a page that is damaged, a right that is gone.
        ("58030", FailureClass::Retry, Code::SOURCE_UNAVAILABLE),
        ("XX001", FailureClass::Halted, Code::SOURCE_CORRUPT),
        ("42501", FailureClass::Halted, Code::SOURCE_READ_FAILED),
    ] {
        app.run(&format!(
            "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN IF NEW.key = '7' THEN RAISE EXCEPTION USING ERRCODE = '{state}'; END IF; RETURN NEW; END $$;
             CREATE TRIGGER fails BEFORE INSERT OR UPDATE ON {feed} FOR EACH ROW EXECUTE FUNCTION fails()"
        )).await;
        let keys: Vec<Key> = (5..9).map(|n| Key::new(n.to_string())).collect();
        let error = source.number(&keys).await.expect_err(state);
        assert_eq!((error.class, error.code.as_str()), (class, code.as_str()), "{state}");
        assert!(!app.run_if_possible("UPDATE t SET v = 'y' WHERE id IN (6, 7)").await, "{state}");
        assert_eq!(source.everything(&Place::START).await, before, "{state}");
        app.run(&format!("DROP TRIGGER fails ON {feed}; DROP FUNCTION fails()")).await;
    }
    app.run("UPDATE t SET v = 'z' WHERE id IN (6, 7)").await;
    source.number(&[Key::new("5")]).await.expect("numbered");
    let after = source.everything(&Place::START).await;
    let moved = |key: &&str| after[*key].version > before[*key].version;
    assert!(["5", "6", "7"].iter().all(moved) && after["8"] == before["8"]);
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()));
}

/// Two workers that acknowledge, prune, fold and number at once: each gives way to the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_at_once_do_each_other_no_harm() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    app.run("DELETE FROM t WHERE id > 15").await;
    let passed = source.page(&Place::START, 100).await.next.passed;
    let mut workers = Vec::new();
    for name in ["a", "b", "c"] {
        let (source, passed) = (source.clone(), passed.clone());
        workers.push(tokio::spawn(async move {
            for counter in 1..20 {
                let counter = RegistrationCounter::new(counter);
                let registration = Registration { counter, passed: passed.clone() };
                source.register(&consumer(name), &registration).await.expect("registered");
                let keys: Vec<Key> = (1..=15).map(|n| Key::new(n.to_string())).collect();
                source.number(&keys).await.expect("numbered");
                source.prune().await.expect("pruned");
            }
        }));
    }
    for worker in workers {
        worker.await.expect("done");
    }
    assert_eq!(source.everything(&Place::START).await.len(), 15);
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()));
}
