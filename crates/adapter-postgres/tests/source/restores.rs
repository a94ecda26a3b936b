//! Servers that were put back, copied, promoted: what a consumer of the real one is told by each.
//!
//! Rules 121 and 122, X3, X43, X54. In each case the other server goes on until it is beyond everything
//! that was consumed, so that no number tells it.

use sqlx::PgConnection;
use truekeep_adapter_postgres::{PostgresSource, RelationSpec};
use truekeep_core::code::Code;
use truekeep_core::follow::Tail;
use truekeep_core::ports::{Capture, CaptureState, Feed, Registration, SourceView};
use truekeep_core::{
    BatchName, MarkNumber, Moment, Place, RegistrationCounter, RulesNumber, Timestamp, Version,
};
use truekeep_postgres_server::Server;

use crate::fixture::{App, Asked, PATIENCE, connect, consumer, run, text};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v text);
    INSERT INTO t SELECT g, 'first' FROM generate_series(1, 20) g";

async fn opened(address: &str) -> PostgresSource {
    PostgresSource::open(address, RelationSpec::of("t"), PATIENCE).await.expect("opened")
}

/// What a worker remembers of a source.
struct Follower {
    source: PostgresSource,
    tail: Tail,
}

impl Follower {
    /// Begins to follow a source whose capture is complete.
    async fn of(source: PostgresSource) -> Self {
        let view = source.view(&consumer("a"), &Place::START).await.expect("a view");
        let none = Registration { counter: RegistrationCounter::new(0), passed: Moment::BEGINNING };
        let mark = MarkNumber::new(0);
        let tail = Tail {
            rules: RulesNumber::new(1),
            feed: view.incarnation,
            cursor: Place::START,
            floor: Moment::BEGINNING,
            delivered: Version::new(0),
            claimed: None,
            mark: BatchName::default(),
            sent: mark,
            registered: none,
            registered_at: Timestamp::from_ms(0),
            distrust: None,
            outdated: false,
            repaired_at: None,
            probe: None,
        };
        let mut follower = Self { source, tail };
        follower.acknowledge().await;
        follower.follow().await;
        follower
    }

    /// Consumes everything that there is.
    async fn follow(&mut self) {
        loop {
            let page = self.source.page(&self.tail.cursor, 1_000).await;
            assert_eq!(self.tail.admit(&page.view), Ok(()));
            self.tail.cursor = page.next;
            if page.end {
                return;
            }
        }
    }

    /// As a worker does each second, and when it stops.
    async fn acknowledge(&mut self) {
        let (counter, passed) =
            (self.tail.registered.counter.next(), self.tail.cursor.passed.clone());
        let registration = Registration { counter, passed };
        self.source.register(&consumer("a"), &registration).await.expect("registered");
        self.tail.registered = registration;
    }

    /// What a worker is told of a server by a look and by a page.
    async fn told(&self, source: &PostgresSource) -> (Result<(), Code>, SourceView) {
        let view = source.view(&consumer("a"), &self.tail.cursor).await.expect("a view");
        let page = source.page(&self.tail.cursor, 10).await;
        let said = self.tail.admit(&view);
        assert_eq!(self.tail.admit(&page.view), said);
        if said.is_err() && !view.continues {
            assert!(page.changes.is_empty() && page.moment.is_none() && !page.end);
        }
        (said, view)
    }

    /// That a worker halts, or repairs if that is the policy and it may be.
    async fn halts(&self, source: &PostgresSource, repairable: bool, what: &str) {
        let (said, view) = self.told(source).await;
        assert_eq!(said, Err(Code::SOURCE_WENT_BACK), "{what}");
        assert_eq!(view.repairable, repairable, "{what}");
    }
}

/// Goes far beyond whatever was before, by numbers, transactions and the log.
async fn go_beyond(db: &mut PgConnection, than: &Follower) {
    let passed = than.tail.cursor.passed.next();
    for round in 0.. {
        run(db, &format!("UPDATE t SET v = 'another {round}'")).await;
        let next: u64 = text(db, "SELECT pg_snapshot_xmax(pg_current_snapshot())")
            .await
            .parse()
            .expect("a number");
        if round > 20 && next > passed + 10 {
            return;
        }
    }
}

/// A private server with the table, followed to its end.
async fn followed(settings: &[(&str, &str)]) -> Option<(Server, App, Follower)> {
    let server = truekeep_postgres_server::private(settings)?;
    let app = App::on(&server, TABLE).await;
    let source = opened(&app.test.address).await;
    source.captured().await;
    Some((server, app, Follower::of(source).await))
}

/// A server that was stopped or crashed and has all goes on, start after start, also if nothing was
/// written meanwhile, or the worker died between two notes.
#[tokio::test]
async fn a_server_that_was_started_again_is_gone_on_from() {
    let Some((server, mut app, mut follower)) = followed(&[]).await else { return };
    for round in 0..6 {
        app.run(&format!("UPDATE t SET v = 'round {round}' WHERE id = 1")).await;
        if round % 2 == 0 {
            follower.follow().await;
        }
        if round % 3 == 0 {
            server.stop();
        } else {
            server.kill();
        }
        server.start();
        app.db = app.test.connect().await;
        let source = opened(&app.test.address).await;
        assert_eq!(follower.told(&source).await.0, Ok(()), "{round}");
        // A page that was given and never committed.
        if round == 3 {
            assert_eq!(follower.told(&source).await.0, Ok(()));
        }
        follower.source = source;
        follower.follow().await;
    }
    follower.acknowledge().await;
}

/// A copy of a stopped server that is put back is told, whether anything was acknowledged since or not.
#[tokio::test]
async fn a_copy_of_a_stopped_server_that_is_put_back_is_told() {
    for acknowledged_since in [true, false] {
        let Some((server, mut app, mut follower)) = followed(&[]).await else { return };
        follower.acknowledge().await;
        server.stop();
        let copy = server.back_up();
        server.start();
        app.db = app.test.connect().await;
        follower.source = opened(&app.test.address).await;
        app.run("UPDATE t SET v = 'lost'; DELETE FROM t WHERE id = 7").await;
        follower.follow().await;
        if acknowledged_since {
            follower.acknowledge().await;
        }
        server.stop();
        server.put_back(&copy);
        server.start();
        let source = opened(&app.test.address).await;
        follower.halts(&source, true, "behind").await;
        go_beyond(&mut app.test.connect().await, &follower).await;
        follower.halts(&source, true, "beyond").await;
        // What a repair does: every number is above all that were given.
        source.begin_again(Version::new(1 << 20)).await.expect("begun");
        source.captured().await;
        let feed = source.everything(&Place::START).await;
        assert!(feed.len() == 20 && feed.values().all(|change| change.version.get() > 1 << 20));
    }
}

/// A copy that a file system took of a running server replays less than was consumed.
#[tokio::test]
async fn a_copy_of_a_running_server_that_is_put_back_is_told() {
    // Nothing is written while it is copied, as in the instant of a snapshot.
    let quiet =
        [("bgwriter_delay", "10s"), ("checkpoint_timeout", "1h"), ("wal_writer_delay", "10s")];
    let Some((server, app, mut follower)) = followed(&quiet).await else { return };
    let copy = server.back_up();
    let mut app = app;
    app.run("UPDATE t SET v = 'lost'").await;
    follower.follow().await;
    server.kill();
    server.put_back(&copy);
    server.start();
    let source = opened(&app.test.address).await;
    follower.halts(&source, true, "behind").await;
    go_beyond(&mut app.test.connect().await, &follower).await;
    follower.halts(&source, true, "beyond").await;
}

/// A database as statements that make it anew.
fn dumped(server: &Server, name: &str) -> String {
    let mut command = server.program("pg_dump");
    let output = command.args(["--clean", "--if-exists", "--inserts", name]).output();
    let output = output.expect("a program that runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let dump = String::from_utf8(output.stdout).expect("a text");
    // Newer programs write a word for psql alone.
    dump.lines().filter(|line| !line.starts_with('\\')).flat_map(|line| [line, "\n"]).collect()
}

/// A dump that is restored, into another database, another cluster or over the same tables, is never
/// taken for what was followed.
#[tokio::test]
async fn a_dump_that_is_restored_is_told() {
    let Some((server, mut app, mut follower)) = followed(&[]).await else { return };
    let name = app.test.name.clone();
    let dump = dumped(&server, &name);
    app.run("UPDATE t SET v = 'lost'; DELETE FROM t WHERE id = 7").await;
    follower.follow().await;
    follower.acknowledge().await;

    let other = App::on(&server, "SELECT 1").await;
    run(&mut other.test.connect().await, &dump).await;
    let source = opened(&other.test.address).await;
    follower.halts(&source, false, "another database").await;
    go_beyond(&mut other.test.connect().await, &follower).await;
    let (said, view) = follower.told(&source).await;
    assert_eq!(said, Err(Code::SOURCE_WENT_BACK));
    assert_ne!(view.incarnation, follower.tail.feed);

    // Over the same tables: another life of the triggers, an earlier acknowledgement.
    run(&mut app.test.connect().await, &dump).await;
    let source = opened(&app.test.address).await;
    go_beyond(&mut app.test.connect().await, &follower).await;
    let (said, view) = follower.told(&source).await;
    assert_eq!(said, Err(Code::SOURCE_WENT_BACK));
    assert_eq!(view.capture, CaptureState::Broken(Code::CAPTURE_CHANGED));
    assert!(!view.repairable, "its server was never started again");
}

/// A feed that came with a dump numbers another cluster's transactions: installing begins a new life.
#[tokio::test]
async fn a_feed_that_came_from_elsewhere_begins_a_new_life() {
    let Some((_server, app, _)) = followed(&[]).await else { return };
    let mut db = app.test.connect().await;
    let source = opened(&app.test.address).await;
    let before = source.view(&consumer("a"), &Place::START).await.expect("a view").incarnation;
    run(&mut db, "UPDATE truekeep.capture SET born = '1.1', pruned = '9999999:9999999:'").await;
    source.captured().await;
    let view = source.view(&consumer("a"), &Place::START).await.expect("a view");
    assert_ne!(view.incarnation, before);
    assert_eq!((view.pruned, view.registration), (Moment::snapshot(3, []), None));
    assert_eq!(source.everything(&Place::START).await.len(), 20);
}

/// A copy by template is another database, also under the old one's name.
#[tokio::test]
async fn a_copy_by_template_is_told() {
    let Some((server, app, mut follower)) = followed(&[]).await else { return };
    follower.acknowledge().await;
    let (name, address) = (app.test.name.clone(), app.test.address.clone());
    drop(app);
    let mut home = connect(&server.address("postgres")).await;
    let close =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    run(&mut home, &close).await;
    run(&mut home, &format!("CREATE DATABASE kept TEMPLATE {name}")).await;
    run(&mut home, &format!("DROP DATABASE {name} WITH (FORCE)")).await;
    run(&mut home, &format!("ALTER DATABASE kept RENAME TO {name}")).await;
    let source = opened(&address).await;
    let (said, view) = follower.told(&source).await;
    assert_eq!(said, Err(Code::SOURCE_WENT_BACK));
    assert_ne!(view.incarnation, follower.tail.feed);
}

/// Waits until a standby has replayed all that its server has written.
async fn caught_up(server: &Server, standby: &Server) {
    let mut here = connect(&server.address("postgres")).await;
    let mut there = connect(&standby.address("postgres")).await;
    let log = text(&mut here, "SELECT pg_current_wal_insert_lsn()").await;
    // Else nothing ends where the log is.
    run(&mut here, "SELECT pg_logical_emit_message(true, '', '')").await;
    until(&mut there, &format!("SELECT pg_last_wal_replay_lsn() >= '{log}'")).await;
}

async fn until(db: &mut PgConnection, sql: &str) {
    let began = std::time::Instant::now();
    while text(db, sql).await != "true" {
        assert!(began.elapsed().as_secs() < 60, "it never came: {sql}");
    }
}

async fn promote(standby: &Server) {
    let mut db = connect(&standby.address("postgres")).await;
    assert_eq!(text(&mut db, "SELECT pg_promote()").await, "true");
}

/// A fail-over to a standby that has everything is a routine; afterwards the old server is refused.
#[tokio::test]
async fn a_standby_that_had_everything_goes_on() {
    let Some((server, mut app, mut follower)) = followed(&[]).await else { return };
    let standby = server.standby();
    app.run("UPDATE t SET v = 'on both'").await;
    follower.follow().await;
    follower.acknowledge().await;
    caught_up(&server, &standby).await;
    promote(&standby).await;
    let address = standby.address(&app.test.name);
    run(&mut connect(&address).await, "UPDATE t SET v = 'after' WHERE id < 4").await;
    let source = opened(&address).await;
    let page = source.page(&follower.tail.cursor, 100).await;
    assert_eq!(follower.tail.admit(&page.view), Ok(()));
    assert_eq!(page.changes.len(), 3);
    // It is known from now on, whatever becomes of the server.
    follower.tail.cursor = page.next;
    standby.kill();
    standby.start();
    let source = opened(&address).await;
    assert_eq!(follower.told(&source).await.0, Ok(()));
    follower.source = source;
    follower.acknowledge().await;
    // The old server, which runs on beside it, is nobody's.
    app.run("UPDATE t SET v = 'a zombie'").await;
    go_beyond(&mut app.db, &follower).await;
    follower.halts(&opened(&app.test.address).await, false, "the old one").await;
}

/// A standby that lacked what was consumed is told, however far it is by now, and also once it was
/// started again: nobody knows then what it lacked.
#[tokio::test]
async fn a_standby_that_was_behind_is_told() {
    for ends in ["it runs", "it is stopped", "it crashes"] {
        let Some((server, mut app, mut follower)) = followed(&[]).await else { return };
        let standby = server.standby();
        caught_up(&server, &standby).await;
        let address = standby.address(&app.test.name);
        let mut there = connect(&address).await;
        run(&mut there, "ALTER SYSTEM SET primary_conninfo = ''").await;
        run(&mut there, "SELECT pg_reload_conf()").await;
        until(&mut there, "SELECT count(*) = 0 FROM pg_stat_wal_receiver").await;
        app.run("UPDATE t SET v = 'lost'; DELETE FROM t WHERE id = 7").await;
        follower.follow().await;
        promote(&standby).await;
        go_beyond(&mut there, &follower).await;
        match ends {
            "it is stopped" => standby.stop(),
            "it crashes" => standby.kill(),
            _ => {}
        }
        if ends != "it runs" {
            standby.start();
        }
        follower.halts(&opened(&address).await, true, ends).await;
    }
}

/// Two standbys that were promoted are on timelines of one number; the other's places are told.
#[tokio::test]
async fn another_standby_of_the_same_number_is_told() {
    let Some((server, app, mut follower)) = followed(&[]).await else { return };
    follower.acknowledge().await;
    let (one, other) = (server.standby(), server.standby());
    for standby in [&one, &other] {
        caught_up(&server, standby).await;
        promote(standby).await;
    }
    let (there, elsewhere) = (one.address(&app.test.name), other.address(&app.test.name));
    follower.source = opened(&there).await;
    run(&mut connect(&there).await, "UPDATE t SET v = 'one'").await;
    follower.follow().await;
    // Nothing was acknowledged there yet.
    go_beyond(&mut connect(&elsewhere).await, &follower).await;
    let (said, _) = follower.told(&opened(&elsewhere).await).await;
    assert_eq!(said, Err(Code::SOURCE_WENT_BACK));
}
