//! Trouble: rights, policies, poolers, locks, servers that go away.

use std::time::Duration;

use truekeep_adapter_postgres::{PostgresSource, RelationSpec};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{
    Capture, CaptureState, ChangePage, Feed, Loaded, Records, Registration,
};
use truekeep_core::{Key, Moment, Place, RegistrationCounter};

use crate::fixture::{App, Asked, PATIENCE, connect, consumer, run, text};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT g, 'x' FROM generate_series(1, 20) g";

/// Everything that a worker's role is granted; what is documented is what is tested.
const GRANTS: &str = "
    GRANT USAGE ON SCHEMA truekeep TO worker;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA truekeep TO worker;
    GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA truekeep TO worker;
    GRANT SELECT ON t TO worker";

async fn opened(address: &str) -> PostgresSource {
    PostgresSource::open(address, RelationSpec::of("t"), PATIENCE).await.expect("opened")
}

fn registration(counter: u64, passed: Moment) -> Registration {
    Registration { counter: RegistrationCounter::new(counter), passed }
}

/// A worker needs the documented grants and no more; the application needs none of ours; who installs
/// must own the table. A right that is taken away halts, and says so.
#[tokio::test]
async fn a_worker_needs_the_documented_grants_and_no_more() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let mut app = App::on(&server, TABLE).await;
    app.run("CREATE ROLE owner LOGIN; CREATE ROLE worker LOGIN; CREATE ROLE client LOGIN; ALTER TABLE t OWNER TO owner;
        GRANT SELECT, INSERT, UPDATE, DELETE ON t TO client").await;
    let database = app.test.name.clone();
    app.run(&format!("GRANT CREATE ON DATABASE {database} TO owner")).await;
    opened(&app.test.address_of("owner")).await.captured().await;
    let worker = app.test.address_of("worker");
    let error = PostgresSource::open(&worker, RelationSpec::of("t"), PATIENCE).await;
    let error = match error {
        Err(error) => error,
        Ok(source) => {
            source.changes(&consumer("a"), &Place::START, 10).await.expect_err("no grants yet")
        }
    };
    assert_eq!(error.class, FailureClass::Halted);
    run(&mut connect(&app.test.address_of("owner")).await, GRANTS).await;
    let source = opened(&worker).await;
    let mut client = connect(&app.test.address_of("client")).await;
    run(&mut client, "UPDATE t SET v = 'y' WHERE id = 1; DELETE FROM t WHERE id = 2").await;
    let page = source.page(&Place::START, 100).await;
    assert!(page.end && matches!(page.view.capture, CaptureState::Trusted(_)));
    assert!(matches!(source.one("1").await, Loaded::Live(_)));
    source
        .register(&consumer("a"), &registration(1, page.next.passed.clone()))
        .await
        .expect("registered");
    assert_eq!(source.prune().await.expect("pruned"), 1);
    assert!(source.number(&[Key::new("1")]).await.expect("numbered").newest.is_some());
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()));
    assert_eq!(source.listed().await.len(), 19);
    app.run("REVOKE SELECT ON t FROM worker").await;
    let error = source.load(&[Key::new("1")], 1_000).await.expect_err("no right");
    assert_eq!(error.class, FailureClass::Halted);
}

/// X11e: a policy that would hide rows is refused, and one that comes later halts, instead of hiding.
#[tokio::test]
async fn row_security_hides_nothing() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let mut app = App::on(&server, TABLE).await;
    app.run("CREATE ROLE worker LOGIN; CREATE POLICY half ON t USING (id % 2 = 0)").await;
    opened(&app.test.address).await.captured().await;
    app.run(GRANTS).await;
    let source = opened(&app.test.address_of("worker")).await;
    assert_eq!(source.page(&Place::START, 100).await.changes.len(), 20);
    app.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY").await;
    let error = source.load(&[Key::new("1")], 1_000).await.expect_err("hidden");
    assert_eq!(error.class, FailureClass::Halted);
    let error = source.audit(None, 100).await.expect_err("hidden");
    assert_eq!(error.class, FailureClass::Halted);
    let opened =
        PostgresSource::open(&app.test.address_of("worker"), RelationSpec::of("t"), PATIENCE).await;
    let error = opened.expect_err("refused");
    assert_eq!(error.code, Code::RELATION_REFUSED);
}

/// X55: through a pooler that divides transactions everything works as without.
#[tokio::test]
async fn a_pooler_by_transaction_changes_nothing() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let Some(pooler) = truekeep_postgres_server::pooler(&server) else { return };
    let mut app = App::on(&server, TABLE).await;
    let source = opened(&pooler.address(&app.test.name)).await;
    source.captured().await;
    let at = source.page(&Place::START, 7).await;
    let mut others = Vec::new();
    for _ in 0..8 {
        let source = source.clone();
        others.push(tokio::spawn(async move {
            for _ in 0..10 {
                assert_eq!(source.everything(&Place::START).await.len(), 20);
                assert!(matches!(source.one("3").await, Loaded::Live(_)));
                source.number(&[Key::new("3")]).await.expect("numbered");
            }
        }));
    }
    let working = async {
        for other in others {
            other.await.expect("done");
        }
    };
    tokio::select! {
        () = source.stirred() => panic!("nothing comes through"),
        () = working => {}
    }
    app.run("UPDATE t SET v = 'z'").await;
    assert_eq!(source.everything(&at.next).await.len(), 20);
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()));
    source.remove().await.expect("removed");
}

/// A page, once each connection that was open has been found dead: no more of them than there can be.
async fn once_reconnected(source: &PostgresSource, after: &Place) -> Result<ChangePage, PortError> {
    for _ in 0..4 {
        match source.changes(&consumer("a"), after, 100).await {
            Err(error)
                if error.code == Code::SOURCE_UNAVAILABLE && !error.detail.contains("standby") =>
            {
                assert_eq!(error.class, FailureClass::Retry);
            }
            answer => return answer,
        }
    }
    source.changes(&consumer("a"), after, 100).await
}

/// A server that goes away and comes back is no more than a wait.
#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let mut app = App::on(&server, TABLE).await;
    let source =
        PostgresSource::open(&app.test.address, RelationSpec::of("t"), Duration::from_millis(300))
            .await
            .expect("opened");
    source.captured().await;
    let nothing = registration(1, Moment::BEGINNING);
    source.register(&consumer("a"), &nothing).await.expect("registered");
    let mut before = source.page(&Place::START, 100).await;
    for crash in [false, true] {
        if crash {
            server.kill()
        } else {
            server.stop()
        }
        let error =
            source.changes(&consumer("a"), &Place::START, 10).await.expect_err("it is away");
        assert_eq!((error.class, error.code), (FailureClass::Retry, Code::SOURCE_UNAVAILABLE));
        server.start();
        let page = once_reconnected(&source, &before.next).await.expect("a page");
        assert!(page.view.continues && page.changes.is_empty() && page.end);
        before = page;
    }
    app.db = app.test.connect().await;
    app.run("UPDATE t SET v = 'after' WHERE id = 1").await;
    assert_eq!(source.everything(&before.next).await.len(), 1);
    for _ in 0..3 {
        app.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'truekeep'").await;
        once_reconnected(&source, &before.next).await.expect("a new connection");
    }
}

/// X15g, X59: ours is the one that gives way; the application waits for us no longer than we hold 500
/// rows, and is never the victim.
#[tokio::test]
async fn the_application_is_never_the_victim() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    // The application holds the feed row of 5, and wants that of 1, which ours takes first.
    app.run("BEGIN; UPDATE t SET v = 'held' WHERE id = 5").await;
    let keys: Vec<Key> = (1..=9).map(|n| Key::new(n.to_string())).collect();
    let numbering = tokio::spawn({
        let (source, keys) = (source.clone(), keys.clone());
        async move { source.number(&keys).await }
    });
    let mut watcher = app.other().await;
    let waits = "SELECT (count(*) > 0)::text FROM pg_locks WHERE NOT granted";
    let mut seen = false;
    for _ in 0..2_000 {
        seen |= text(&mut watcher, waits).await == "true";
        if seen {
            break;
        }
    }
    assert!(seen, "ours waits for the application");
    app.run("UPDATE t SET v = 'held too' WHERE id = 1; COMMIT").await;
    let numbered = numbering.await.expect("done").expect("numbered after the application");
    assert!(numbered.newest.is_some());
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()));
}

/// A lock that is held for long makes ours give up with a class that says: again.
#[tokio::test]
async fn a_lock_that_is_held_for_long_is_given_up() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    app.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE").await;
    let error = source.load(&[Key::new("1")], 1_000).await.expect_err("locked");
    assert_eq!((error.class, error.code), (FailureClass::Retry, Code::SOURCE_LOCKED));
    app.run("ROLLBACK").await;
    assert!(matches!(source.one("1").await, Loaded::Live(_)));
}

/// A standby is no source: it may be behind, and takes no acknowledgement.
#[tokio::test]
async fn a_standby_is_refused() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let app = App::on(&server, TABLE).await;
    let source = opened(&app.test.address).await;
    source.captured().await;
    let page = source.page(&Place::START, 100).await;
    drop(app.db);
    server.stop();
    let data = server.folder().expect("private").join("data");
    std::fs::write(data.join("standby.signal"), "").expect("written");
    server.start();
    let error = once_reconnected(&source, &page.next).await.expect_err("a standby");
    assert!(error.detail.contains("standby"), "{}", error.chain());
    assert_eq!(error.class, FailureClass::Retry);
}
