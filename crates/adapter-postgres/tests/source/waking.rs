//! Who sleeps is told of changes, and nobody else is.

use sqlx::postgres::PgListener;
use truekeep_adapter_postgres::RelationSpec;
use truekeep_core::Place;
use truekeep_core::ports::Feed;

use crate::fixture::{App, Asked};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'x')";

const SLEEPERS: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";

/// What was notified of up to here.
async fn heard(app: &mut App, listener: &mut PgListener, channel: &str) -> usize {
    app.run("NOTIFY up_to_here").await;
    let mut count = 0;
    while listener.recv().await.expect("a notification").channel() == channel {
        count += 1;
    }
    count
}

/// A change wakes a sleeper at once, and while nobody sleeps no commit notifies, also if the one that slept
/// was killed or its connection was.
#[tokio::test]
async fn changes_are_told_while_somebody_sleeps_and_only_then() {
    let settings = [("max_prepared_transactions", "0")];
    let Some(server) = truekeep_postgres_server::private(&settings) else { return };
    let mut app = App::on(&server, TABLE).await;
    let source = app.source(RelationSpec::of("t")).await;
    let feed = app
        .text("SELECT relname FROM pg_class WHERE relname LIKE 'feed\\_%' AND relkind = 'r'")
        .await;
    let channel = feed.replace("feed_", "truekeep_");
    let mut listener = PgListener::connect(&app.test.address).await.expect("a connection");
    listener.listen_all([channel.as_str(), "up_to_here"]).await.expect("it listens");
    app.run("UPDATE t SET v = 'nobody sleeps'").await;
    assert_eq!(heard(&mut app, &mut listener, &channel).await, 0);
    for round in 0..3 {
        // A worker that was at work and is up to date.
        source.page(&Place::START, 10).await;
        while source.pulse().await.expect("a pulse") != source.pulse().await.expect("a pulse") {}
        let sleeping = tokio::spawn({
            let source = source.clone();
            async move { source.stirred().await }
        });
        app.until(&format!("SELECT ({SLEEPERS}) = 1")).await;
        // It heard itself at first.
        heard(&mut app, &mut listener, &channel).await;
        app.run(&format!("BEGIN; UPDATE t SET v = 'rolled back {round}'; ROLLBACK")).await;
        assert_eq!(heard(&mut app, &mut listener, &channel).await, 0);
        if round == 1 {
            sleeping.abort();
            app.run("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
                .await;
        } else {
            app.run(&format!("UPDATE t SET v = 'round {round}'")).await;
            sleeping.await.expect("woken");
            assert_eq!(heard(&mut app, &mut listener, &channel).await, 1);
        }
        app.until(&format!("SELECT ({SLEEPERS}) = 0")).await;
        app.run("UPDATE t SET v = 'nobody sleeps'").await;
        assert_eq!(heard(&mut app, &mut listener, &channel).await, 0);
    }
}

/// A transaction that notified cannot be prepared: where some are prepared, a sleeper is not told.
#[tokio::test]
async fn transactions_can_be_prepared_beside_a_sleeper() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    let preparing = async {
        for round in 0..50 {
            app.run(&format!("BEGIN; UPDATE t SET v = '{round}'")).await;
            app.run(&format!("PREPARE TRANSACTION '{}'", app.test.name)).await;
            app.run(&format!("COMMIT PREPARED '{}'", app.test.name)).await;
        }
    };
    tokio::select! {
        () = source.stirred() => panic!("nobody told it"),
        () = preparing => {}
    }
}
