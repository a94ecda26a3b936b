//! Moments and places where transactions overlap: nothing is skipped, and no moment lies.

use truekeep_adapter_postgres::{PostgresSource, RelationSpec, Watch};
use truekeep_core::ports::{Feed, Records, Registration};
use truekeep_core::{Key, Moment, Place, RegistrationCounter, Stamp, Value};

use crate::fixture::{App, Asked, consumer, run, text};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v text)";

async fn xid(db: &mut sqlx::PgConnection) -> Stamp {
    Stamp::new(text(db, "SELECT pg_current_xact_id()").await.parse().expect("a number"))
}

fn keys(page: &truekeep_core::ports::ChangePage) -> Vec<&str> {
    page.changes.iter().map(|change| change.key.as_str()).collect()
}

/// X1, rule 55: what commits late is never skipped, and nothing waits for what is still running; a
/// moment includes what it says and nothing else.
#[tokio::test]
async fn what_commits_late_is_delivered_and_never_waited_for() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    let mut slow = app.other().await;
    run(&mut slow, "BEGIN; INSERT INTO t VALUES (1, 'slow')").await;
    let late = xid(&mut slow).await;
    app.run("INSERT INTO t VALUES (2, 'fast')").await;
    let page = source.page(&Place::START, 10).await;
    assert_eq!(keys(&page), ["2"]);
    let moment = page.moment.expect("a moment, whatever is running");
    assert!(!moment.covers(late));
    // A key that moves on while its page is out comes again.
    app.run("UPDATE t SET v = 'faster' WHERE id = 2").await;
    run(&mut slow, "COMMIT").await;
    let page = source.page(&page.next, 10).await;
    assert_eq!(keys(&page), ["1", "2"]);
    assert!(page.moment.expect("a moment").covers(late));
}

/// X45: a backlog over the limit is read in pages up to a fixed snapshot, also above a transaction
/// that never ends; keys that change meanwhile come once more, and only the end has a moment.
#[tokio::test]
async fn a_backlog_above_a_long_transaction_is_read_in_pages() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    let mut long = app.other().await;
    run(&mut long, "BEGIN; SELECT pg_current_xact_id()").await;
    app.run("BEGIN; INSERT INTO t SELECT g, 'old' FROM generate_series(1, 500) g; PREPARE TRANSACTION 'p'").await;
    app.run("INSERT INTO t SELECT g, 'old' FROM generate_series(501, 1000) g").await;
    let (mut at, mut seen, mut pages) = (Place::START, std::collections::BTreeMap::new(), 0);
    loop {
        let page = source.page(&at, 100).await;
        assert!(page.changes.len() <= 100 && page.view.continues);
        assert_eq!(page.moment.is_some(), page.end);
        for change in &page.changes {
            let before = seen.insert(change.key.clone(), change.version);
            assert!(before.is_none_or(|before| before < change.version));
        }
        at = page.next;
        pages += 1;
        if pages == 3 {
            app.run("UPDATE t SET v = 'new' WHERE id IN (510, 990)").await;
            app.run("COMMIT PREPARED 'p'").await;
        }
        if page.end {
            break;
        }
        assert!(pages < 50);
    }
    assert_eq!(seen.len(), 1_000);
    let found = source.find(&[Key::new("510"), Key::new("990")]).await.expect("found");
    assert!(found.into_iter().flatten().all(|change| seen[&change.key] == change.version));
    run(&mut long, "ROLLBACK").await;
}

/// X45: the last page of a backlog has a moment only because what changed meanwhile is in it too.
#[tokio::test]
async fn the_last_page_of_a_backlog_holds_what_changed_meanwhile() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    app.run("INSERT INTO t SELECT g, 'old' FROM generate_series(1, 15) g").await;
    let first = source.page(&Place::START, 10).await;
    assert!(!first.end);
    app.run("UPDATE t SET v = 'new' WHERE id IN (1, 12)").await;
    let last = source.page(&first.next, 10).await;
    assert!(last.end);
    let mut again = keys(&last);
    again.sort_unstable();
    assert_eq!(again, ["1", "12", "5", "6", "7", "8", "9"]);
    // And where it does not fit, another backlog follows.
    app.run("UPDATE t SET v = 'newer'").await;
    let part = source.page(&last.next, 10).await;
    app.run("UPDATE t SET v = 'newest' WHERE id <> 5").await;
    let more = source.page(&part.next, 10).await;
    assert!(!more.end && more.moment.is_none() && more.changes.len() == 10);
    let rest = source.page(&more.next, 10).await;
    assert!(rest.end && rest.changes.len() == 5);
}

/// X46: a page costs what it holds, however old the snapshot is that it follows.
#[tokio::test]
async fn a_page_reads_what_it_holds() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    let mut old = app.other().await;
    run(&mut old, "BEGIN; SELECT pg_current_xact_id()").await;
    let first = source.page(&Place::START, 10).await;
    app.run("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 20000) g; INSERT INTO t VALUES (0, 'x')").await;
    run(&mut old, "COMMIT").await;
    let feed = app
        .text("SELECT oid::regclass FROM pg_class WHERE relname LIKE 'feed\\_%' AND relkind = 'r'")
        .await;
    app.run(&format!("ANALYZE {feed}")).await;
    let snapshot = first.next.passed.to_string();
    let sql = include_str!("../../sql/feed/changes.sql")
        .replace("{feed}", &feed)
        .replace("{within}", "")
        .replace(
            "$1",
            &format!(
                "'{}'",
                if snapshot.contains(':') {
                    snapshot
                } else {
                    format!("{0}:{0}:", snapshot.parse::<u64>().expect("a number") + 1)
                }
            ),
        )
        .replace("$2", "'0'")
        .replace("$3", "0")
        .replace("$4", "11");
    let mut plan = String::new();
    for row in sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "EXPLAIN (ANALYZE, TIMING off, COSTS off) {sql}"
    )))
    .fetch_all(&mut app.db)
    .await
    .expect("explained")
    {
        plan.push_str(&sqlx::Row::get::<String, _>(&row, 0));
        plan.push('\n');
    }
    assert!(plan.contains("Index Scan") && !plan.contains("Seq Scan"), "{plan}");
    for line in plan.lines().filter(|line| line.contains("rows=")) {
        let rows = line.split("actual rows=").nth(1).and_then(|rest| rest.split([' ', '.']).next());
        let rows: u64 = rows.and_then(|rows| rows.parse().ok()).unwrap_or(0);
        assert!(rows <= 12, "{plan}");
    }
}

/// X9: of two transactions that touch one key the later one has the greater number.
#[tokio::test]
async fn numbers_grow_in_the_order_of_commits() {
    let Some(mut app) = App::new(
        "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    )
    .await
    else {
        return;
    };
    let source = app.source(RelationSpec::of("t")).await;
    app.run("BEGIN; UPDATE t SET v = 'one' WHERE id = 1").await;
    let mut other = app.other().await;
    let waits = tokio::spawn(async move {
        run(&mut other, "UPDATE t SET v = 'two' WHERE id IN (1, 2)").await;
    });
    // It waits for the first one, which draws more numbers meanwhile.
    app.until("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted").await;
    app.run("UPDATE t SET v = 'one more' WHERE id = 1; COMMIT").await;
    let early = source.find(&[Key::new("1")]).await.expect("found")[0].clone().expect("there");
    waits.await.expect("done");
    let late = source.find(&[Key::new("1")]).await.expect("found")[0].clone().expect("there");
    assert!(late.version > early.version || late == early);
    assert_eq!(app.text("SELECT v FROM t WHERE id = 1").await, "two");
    assert_eq!(app.text("SELECT max(seqcache) FROM pg_sequence").await, "1");
}

/// X41: a mark that commits after the fold holds no page back, and no moment includes it.
#[tokio::test]
async fn a_moment_never_includes_a_mark_that_is_not_folded() {
    let Some(mut app) = App::new(
        "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE c (id int PRIMARY KEY, t int);
        INSERT INTO t VALUES (1, 'a'), (2, 'b')",
    )
    .await
    else {
        return;
    };
    let watch = vec![Watch::Child { table: "c".into(), key: vec!["t".into()] }];
    let source = app.source(RelationSpec { watch, ..RelationSpec::of("t") }).await;
    let at = source.page(&Place::START, 10).await.next;
    // Another folder holds a mark and does not come to an end.
    app.run("INSERT INTO c VALUES (1, 1)").await;
    let child = app.text("SELECT xmin FROM c WHERE id = 1").await.parse().expect("a number");
    let mut rival = app.other().await;
    let marks = app
        .text("SELECT oid::regclass FROM pg_class WHERE relname LIKE 'mark\\_%' AND relkind = 'r'")
        .await;
    run(&mut rival, &format!("BEGIN; DELETE FROM {marks}")).await;
    let page = source.page(&at, 10).await;
    assert!(
        page.moment.is_none_or(|moment| !moment.covers(Stamp::new(child))),
        "the mark is not in the feed"
    );
    run(&mut rival, "ROLLBACK").await;
    let page = source.page(&at, 10).await;
    assert_eq!(keys(&page), ["1"]);
    assert!(page.moment.expect("a moment").covers(Stamp::new(child)));
}

/// X41: a mark of what many rows refer to is expanded in pages, and holds every moment back until then.
#[tokio::test]
async fn a_wide_mark_holds_moments_back_until_it_is_expanded() {
    let Some(mut app) = App::new(
        "CREATE TABLE a (id int PRIMARY KEY, n text); INSERT INTO a VALUES (1, 'x');
        CREATE TABLE t (id int PRIMARY KEY, a int); CREATE INDEX ON t (a);
        INSERT INTO t SELECT g, 1 FROM generate_series(1, 12000) g",
    )
    .await
    else {
        return;
    };
    let watch = vec![Watch::Parent { table: "a".into(), via: vec!["a".into()], key: Vec::new() }];
    let source = app.source(RelationSpec { watch, ..RelationSpec::of("t") }).await;
    let mut at = Place::START;
    while {
        let page = source.page(&at, 10_000).await;
        at = page.next;
        !page.end
    } {}
    app.run("UPDATE a SET n = 'y'").await;
    let (mut seen, mut held) = (0, 0);
    loop {
        let page = source.page(&at, 10_000).await;
        seen += page.changes.len();
        at = page.next;
        held += usize::from(page.end && page.moment.is_none());
        if page.moment.is_some() {
            break;
        }
        assert!(seen <= 12_000);
    }
    assert_eq!(seen, 12_000);
    assert!(held > 0, "some page ended without a moment");
}

/// X47: a quiet server's log stands at a place that nothing flushes; a page does not wait for it.
#[tokio::test]
async fn a_page_does_not_wait_for_a_place_that_nothing_flushes() {
    let Some(server) = truekeep_postgres_server::private(&[("bgwriter_delay", "10s")]) else {
        return;
    };
    let test = server.database().await;
    let mut db = test.connect().await;
    run(&mut db, TABLE).await;
    let source =
        PostgresSource::open(&test.address, RelationSpec::of("t"), crate::fixture::PATIENCE)
            .await
            .expect("opened");
    source.captured().await;
    run(&mut db, "INSERT INTO t VALUES (1, 'x')").await;
    run(&mut db, "SELECT pg_switch_wal()").await;
    assert_eq!(
        text(&mut db, "SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()").await,
        "false"
    );
    assert_eq!(keys(&source.page(&Place::START, 10).await), ["1"]);
    assert_eq!(
        text(&mut db, "SELECT pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()").await,
        "true"
    );
}

/// X2, X42: neither a change nor a document is handed out that a crash can take back.
#[tokio::test]
async fn nothing_is_handed_out_that_a_crash_takes_back() {
    let settings =
        [("wal_writer_delay", "10s"), ("bgwriter_delay", "10s"), ("wal_writer_flush_after", "0")];
    let Some(server) = truekeep_postgres_server::private(&settings) else { return };
    let test = server.database().await;
    let mut db = test.connect().await;
    run(&mut db, TABLE).await;
    let open =
        || PostgresSource::open(&test.address, RelationSpec::of("t"), crate::fixture::PATIENCE);
    let mut source = open().await.expect("opened");
    source.captured().await;
    run(&mut db, "INSERT INTO t VALUES (1, 'durable'); SET synchronous_commit = off").await;
    for (round, load) in [(1, false), (2, true), (3, false), (4, true)] {
        run(&mut db, &format!("UPDATE t SET v = 'round {round}'")).await;
        let seen = if load {
            let truekeep_core::ports::Loaded::Live(document) = source.one("1").await else {
                panic!("absent")
            };
            document.values()[1].clone()
        } else {
            let version = source.find(&[Key::new("1")]).await.expect("found")[0]
                .clone()
                .expect("there")
                .version;
            Value::Integer(version.get() as i64)
        };
        server.kill();
        server.start();
        db = test.connect().await;
        source = open().await.expect("opened");
        let kept = if load {
            Value::Text(text(&mut db, "SELECT v FROM t").await.into())
        } else {
            let feed = text(&mut db, "SELECT oid::regclass FROM pg_class WHERE relname LIKE 'feed\\_%' AND relkind = 'r'").await;
            Value::Integer(
                text(&mut db, &format!("SELECT version FROM {feed}"))
                    .await
                    .parse()
                    .expect("a number"),
            )
        };
        assert_eq!(seen, kept, "round {round}");
        run(&mut db, "SET synchronous_commit = off").await;
    }
}

/// X48: a table that is rewritten while a page is read does not make its records look gone.
#[tokio::test]
async fn a_rewrite_waits_for_a_page_and_a_page_for_a_rewrite() {
    let Some(mut app) =
        App::new("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, '5')")
            .await
    else {
        return;
    };
    let source = app.source(RelationSpec::of("t")).await;
    app.run("BEGIN; ALTER TABLE t ALTER v TYPE int USING v::int").await;
    let error =
        source.load(&[Key::new("1")], usize::MAX).await.expect_err("the rewrite is not done");
    assert_eq!(error.class, truekeep_core::failure::FailureClass::Retry);
    app.run("COMMIT").await;
    let page = source.page(&Place::START, 10).await;
    assert!(matches!(page.view.capture, truekeep_core::ports::CaptureState::Broken(_)));
    let truekeep_core::ports::Loaded::Live(document) = source.one("1").await else {
        panic!("absent")
    };
    assert_eq!(
        document.values()[1],
        Value::Integer(5),
        "statements are made anew for the new column"
    );
}

/// X43, rule 121: a registration keeps what numbers were drawn, and never goes back, whatever order
/// acknowledgements come in.
#[tokio::test]
async fn a_registration_keeps_the_later_of_two_snapshots() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    let snapshot = |text: &str| text.parse::<Moment>().expect("a moment");
    for (given, kept) in [
        ("10:20:10,15", "10:20:10,15"),
        ("15:20:15", "15:20:15"),
        ("10:20:10,15", "15:20:15"),
        ("10:18:10", "15:20:15"),
        ("25:25:", "25:25:"),
    ] {
        let registration =
            Registration { counter: RegistrationCounter::new(1), passed: snapshot(given) };
        source.register(&consumer("a"), &registration).await.expect("registered");
        let view = source.view(&consumer("a"), &Place::START).await.expect("a view");
        assert_eq!(view.registration.expect("registered").passed, snapshot(kept), "{given}");
    }
    app.run("INSERT INTO t VALUES (1, 'x')").await;
    let registration =
        Registration { counter: RegistrationCounter::new(2), passed: snapshot("30:30:") };
    source.register(&consumer("a"), &registration).await.expect("registered");
    assert_eq!(app.text("SELECT drawn FROM truekeep.consumer").await, app.text("SELECT max(last_value) FROM pg_sequences WHERE schemaname = 'truekeep' AND sequencename LIKE 'version%'").await);
}

/// A client's token is in a moment exactly if its transaction is, and what that has seen.
#[tokio::test]
async fn a_token_is_included_once_its_transaction_is() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    let mut long = app.other().await;
    run(&mut long, "BEGIN; SELECT pg_current_xact_id()").await;
    app.run("BEGIN; INSERT INTO t VALUES (1, 'x')").await;
    let mut other = app.other().await;
    run(&mut other, "INSERT INTO t VALUES (2, 'y')").await;
    let token: Moment = app.text("SELECT truekeep.token()").await.parse().expect("a moment");
    let before = source.page(&Place::START, 10).await.moment.expect("a moment");
    assert!(!before.includes(&token));
    app.run("COMMIT").await;
    let after = source.page(&Place::START, 10).await.moment.expect("a moment");
    assert!(after.includes(&token), "{after} does not include {token}, whatever else is running");
}

/// X3: a page says that its source is another one, or older than the place it is asked for.
#[tokio::test]
async fn a_source_that_went_back_is_told_by_each_page() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    app.run("INSERT INTO t VALUES (1, 'x')").await;
    let page = source.page(&Place::START, 10).await;
    assert!(page.view.continues && page.next.rest.contains("\"i\":1"));
    let mut ahead = page.next.clone();
    ahead.passed = Moment::snapshot(u64::from(u32::MAX), []);
    let told = source.page(&ahead, 10).await;
    assert!(!told.view.continues && !told.end && told.changes.is_empty());
    // Another timeline, of which nobody knows where it began.
    let mut elsewhere = page.next.clone();
    for timeline in [0, 2] {
        elsewhere.rest = page.next.rest.replace("\"i\":1", &format!("\"i\":{timeline}"));
        assert!(!source.page(&elsewhere, 10).await.view.continues, "{timeline}");
    }
}

/// Rules 115, 120: a tombstone of a key that came back and went again, while it was to be removed, stays.
#[tokio::test]
async fn a_newer_tombstone_is_never_pruned_for_an_older_one() {
    let Some(mut app) = App::new(TABLE).await else { return };
    let source = app.source(RelationSpec::of("t")).await;
    app.run("INSERT INTO t VALUES (1, 'x'); DELETE FROM t").await;
    let passed = source.page(&Place::START, 10).await.next.passed;
    let registration = Registration { counter: RegistrationCounter::new(1), passed };
    source.register(&consumer("a"), &registration).await.expect("registered");
    app.run("BEGIN; INSERT INTO t VALUES (1, 'again'); DELETE FROM t").await;
    let pruning = tokio::spawn({
        let source = source.clone();
        async move { source.prune().await }
    });
    let mut watcher = app.other().await;
    let waits = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted";
    let began = std::time::Instant::now();
    while text(&mut watcher, waits).await != "true" {
        assert!(began.elapsed().as_secs() < 60, "it never waited");
    }
    app.run("COMMIT").await;
    assert_eq!(pruning.await.expect("done").expect("pruned"), 0);
    assert!(source.everything(&Place::START).await["1"].deleted);
}
