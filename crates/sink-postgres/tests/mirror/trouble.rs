//! What servers and those who run them do to a mirror.

use sqlx::Connection;
use truekeep_core::BatchName;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Batch, Outcome, Sink};
use truekeep_sink_postgres::PostgresSink;

use crate::fixture::{Home, LONG, batch, body, delete, json, mapped, mark, sent, text, upsert};

fn of(error: PortError) -> (FailureClass, Code) {
    (error.class, error.code)
}

/// Adds a trigger to the mirror that runs this for each row.
async fn trigger(home: &Home, when: &str, code: &str) {
    home.sql(&format!(
        "CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {code} END $$;
         CREATE TRIGGER theirs {when} ON mirror FOR EACH ROW EXECUTE FUNCTION theirs()"
    ))
    .await;
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_tried_again() {
    let Some(home) = Home::new().await else { return };
    home.mirror(json("mirror")).await;
    trigger(&home, "BEFORE INSERT", "PERFORM pg_sleep(60); RETURN NEW;").await;
    let short = std::time::Duration::from_millis(50);
    let sink = PostgresSink::open(&home.address, json("mirror"), LONG, short).await;
    let sink = sink.expect("opened");
    let error = sent(&sink, 1, vec![body("k", 1, "")]).await.expect_err("it takes too long");
    assert_eq!(of(error), (FailureClass::Retry, Code::SINK_UNAVAILABLE));
    assert_eq!(sink.mark().await.expect("read"), None);
    home.sql("DROP TRIGGER theirs ON mirror").await;
    sent(&sink, 1, vec![body("k", 1, "")]).await.expect("sent");
}

#[tokio::test]
async fn a_lock_of_somebody_else_is_waited_for_no_longer_than_they_look_for_deadlocks() {
    let Some(home) = Home::new().await else { return };
    let sink = home.mirror(json("mirror")).await;
    let mut theirs = home.connect().await;
    let mut holding = theirs.begin().await.expect("begun");
    sqlx::raw_sql("LOCK TABLE mirror").execute(&mut *holding).await.expect("locked");
    let error = sent(&sink, 1, vec![body("k", 1, "")]).await.expect_err("it is locked");
    assert_eq!(of(error), (FailureClass::Retry, Code::SINK_UNAVAILABLE));
    holding.rollback().await.expect("rolled back");
    sent(&sink, 1, vec![body("k", 1, "")]).await.expect("sent");
}

/// The documented rights are enough, and each one that is missing is named.
#[tokio::test]
async fn the_documented_rights_are_enough_and_what_is_missing_is_named() {
    let Some(home) = Home::new().await else { return };
    let role = format!("{}_worker", home.database.name);
    home.sql(&format!(
        "DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN NOSUPERUSER; CREATE SCHEMA mirrors"
    ))
    .await;
    let spec = truekeep_sink_postgres::MirrorSpec { schema: "mirrors".into(), ..json("mirror") };
    let address = home.database.address_of(&role);
    let sink = PostgresSink::open(&address, spec, LONG, LONG).await.expect("opened");
    let error = sink.inspect().await.expect_err("a right is missing");
    assert!(
        error.detail.contains("GRANT USAGE, CREATE ON SCHEMA \"mirrors\" TO"),
        "{}",
        error.detail
    );
    assert_eq!(of(error), (FailureClass::Halted, Code::SINK_UNAVAILABLE));
    home.sql(&format!("GRANT USAGE, CREATE ON SCHEMA mirrors TO {role}")).await;
    assert!(!sink.inspect().await.expect("nothing is missing"));
    sink.prepare().await.expect("prepared");
    // Once it is made, nothing more is made.
    home.sql(&format!("REVOKE CREATE ON SCHEMA mirrors FROM {role}")).await;
    let records = || vec![body("k", 1, ""), body("l", 1, "")];
    sent(&sink, 1, records()).await.expect("sent");
    sent(&sink, 2, vec![body("k", 2, ""), delete("l", 2)]).await.expect("sent");
    assert!(sink.inspect().await.expect("it fits"));
    assert_eq!(sink.list(None, 10).await.expect("listed").entries.len(), 1);

    home.sql(&format!("REVOKE UPDATE ON mirrors.mirror FROM {role}")).await;
    let error = sent(&sink, 3, vec![body("k", 3, "")]).await.expect_err("a right was taken");
    assert_eq!(of(error), (FailureClass::Halted, Code::SINK_UNAVAILABLE));
    let error = sink.inspect().await.expect_err("a right was taken");
    assert!(error.detail.contains("ON \"mirrors\".\"mirror\" TO"), "{}", error.detail);
    home.sql(&format!("GRANT UPDATE ON mirrors.mirror TO {role}")).await;
    sent(&sink, 3, vec![body("k", 3, "")]).await.expect("sent");
    home.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test]
async fn a_server_that_restarts_is_met_again() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let database = server.database().await;
    let sink = PostgresSink::open(&database.address, json("mirror"), LONG, LONG).await;
    let sink = sink.expect("opened");
    sink.prepare().await.expect("prepared");
    sent(&sink, 1, vec![body("k", 1, "")]).await.expect("sent");
    server.kill();
    let error = sent(&sink, 2, vec![body("k", 2, "")]).await.expect_err("it is down");
    assert_eq!(of(error), (FailureClass::Retry, Code::SINK_UNAVAILABLE));
    server.start();
    // Each connection that was cut is noticed once.
    let noticed = async || {
        for _ in 0..4 {
            if sink.mark().await.is_ok() {
                return;
            }
        }
    };
    noticed().await;
    let first = sent(&sink, 2, vec![body("k", 2, "")]).await;
    assert!(first.is_ok_and(|outcomes| outcomes == [Outcome::Applied]));
    assert_eq!(sink.mark().await.expect("read"), Some(mark(1, 2)));
}

/// X21, X55: what is confirmed is on disk, whatever the role or the database prefers.
#[tokio::test]
async fn commits_are_synchronous_whatever_is_preferred() {
    let Some(home) = Home::new().await else { return };
    home.sql(&format!("ALTER DATABASE {} SET synchronous_commit = off", home.database.name)).await;
    let sink = home.mirror(json("mirror")).await;
    let code =
        "IF current_setting('synchronous_commit') <> 'on' THEN RAISE EXCEPTION 'off'; END IF;
        RETURN NEW;";
    trigger(&home, "BEFORE INSERT OR UPDATE", code).await;
    for number in 1..3 {
        let outcomes = sent(&sink, number, vec![body("k", number, "")]).await.expect("sent");
        assert_eq!(outcomes, [Outcome::Applied]);
    }
}

/// A pooler that divides transactions changes nothing.
#[tokio::test]
async fn a_pooler_may_stand_between() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let database = server.database().await;
    let Some(pooler) = truekeep_postgres_server::pooler(&server) else { return };
    let address = pooler.address(&database.name);
    let spec = mapped(&[("body", "text"), ("n", "numeric")]);
    let sink = PostgresSink::open(&address, spec.clone(), LONG, LONG).await.expect("opened");
    sink.prepare().await.expect("prepared");
    let rival = PostgresSink::open(&address, spec, LONG, LONG).await.expect("opened");
    for number in 1..20 {
        let n = truekeep_core::Value::Json("1.50".into());
        let record = |key| upsert(key, number, &[("body", text("b")), ("n", n.clone())]);
        let records = vec![record("k"), record(&number.to_string())];
        let (written, listed) =
            tokio::join!(sent(&sink, number, records.clone()), rival.list(None, 100));
        assert_eq!(written.expect("sent"), [Outcome::Applied, Outcome::Applied]);
        assert!(listed.expect("listed").end);
        assert_eq!(rival.verify(&records).await.expect("answered"), [true, true]);
    }
}

/// Rule 4: of two holders that write at once, nothing of the former lands after the later began.
#[tokio::test]
async fn a_rival_with_an_older_fence_writes_nothing_more() {
    let Some(home) = Home::new().await else { return };
    let sink = home.mirror(json("mirror")).await;
    let write = async |fence: u64| {
        let sink = home.opened(json("mirror")).await;
        let mut last = Ok(0);
        for number in 1..40 {
            let mut batch = batch(number, vec![body("k", fence * 100 + number, "")]);
            batch.mark.fence = truekeep_core::Fence::new(fence);
            last = match sink.apply(batch).await {
                Ok(_) => Ok(number),
                // Whoever waits for the other is told to come again.
                Err(error) if error.class == FailureClass::Retry => last,
                Err(error) => {
                    last = Err(of(error));
                    break;
                }
            };
        }
        last
    };
    let (former, later) = tokio::join!(write(1), write(2));
    assert!(later.is_ok_and(|number| number > 0), "the later holder goes on");
    if let Err(error) = former {
        assert_eq!(error, (FailureClass::Fenced, Code::SINK_FENCED));
    }
    let held = sink.mark().await.expect("read").expect("written");
    assert_eq!(held.fence.get(), 2);
    let late = sent(&sink, 99, vec![body("k", 999, "late")]).await.expect_err("it is fenced");
    assert_eq!(of(late), (FailureClass::Fenced, Code::SINK_FENCED));
}

/// Rule 124: a mirror that was put back to a copy of before takes nothing until somebody looked.
#[tokio::test]
async fn a_restored_mirror_is_told_by_its_mark() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let (database, other) = (server.database().await, server.database().await);
    let mut aside = other.connect().await;
    let mut run = async |sql: String| {
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut aside).await.expect("done");
    };
    let open = async || {
        let open = PostgresSink::open(&database.address, json("mirror"), LONG, LONG);
        open.await.expect("opened")
    };
    let name = &database.name;
    let sink = open().await;
    sink.prepare().await.expect("prepared");
    sent(&sink, 1, vec![body("k", 1, "")]).await.expect("sent");
    let end =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    run(end.clone()).await;
    run(format!("CREATE DATABASE backup TEMPLATE {name}")).await;
    sent(&open().await, 2, vec![body("k", 2, "")]).await.expect("sent");
    run(end).await;
    run(format!("DROP DATABASE {name} WITH (FORCE)")).await;
    run(format!("ALTER DATABASE backup RENAME TO {name}")).await;
    let sink = open().await;
    let next = || Batch {
        follows: BatchName { fence: mark(1, 2).fence, number: mark(1, 2).number },
        ..batch(3, vec![body("l", 1, "")])
    };
    let error = sink.apply(next()).await.expect_err("it lacks a batch");
    assert_eq!(of(error), (FailureClass::Halted, Code::SINK_WENT_BACK));
    assert_eq!(sink.mark().await.expect("read"), Some(mark(1, 1)));
    assert_eq!(sink.list(None, 10).await.expect("listed").entries.len(), 1);
}

/// Rule 105: records that somebody's constraint, reference or trigger refuses are told one by one,
/// also those that are deleted, and leave what was remembered as it was.
#[tokio::test]
async fn what_others_put_on_the_table_refuses_records_and_not_batches() {
    let Some(home) = Home::new().await else { return };
    let sink = home.mirror(mapped(&[("body", "text")])).await;
    sent(&sink, 1, vec![body("gone", 1, ""), body("kept", 1, ""), body("used", 1, "u")])
        .await
        .expect("sent");
    sent(&sink, 2, vec![delete("gone", 2)]).await.expect("sent");
    home.sql(
        "ALTER TABLE mirror ADD CONSTRAINT short CHECK (length(body) < 3);
         CREATE UNIQUE INDEX once ON mirror (body) WHERE body > 'm';
         CREATE TABLE uses (key text COLLATE \"C\" REFERENCES mirror
           DEFERRABLE INITIALLY DEFERRED); INSERT INTO uses VALUES ('used')",
    )
    .await;
    trigger(
        &home,
        "BEFORE INSERT OR UPDATE OR DELETE",
        "IF TG_OP = 'DELETE' THEN
           IF OLD._key = 'kept' THEN RETURN NULL; END IF; RETURN OLD;
         END IF;
         IF NEW.body = 'x' THEN RETURN NULL; END IF; RETURN NEW;",
    )
    .await;
    let outcomes = sent(
        &sink,
        3,
        vec![
            body("a", 3, "ok"),
            body("gone", 3, "x"),
            body("b", 3, "long"),
            body("c", 3, "u"),
            delete("used", 3),
            delete("kept", 3),
            delete("never", 3),
            body("d", 3, "w"),
        ],
    )
    .await
    .expect("answered");
    let told: Vec<String> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Refused(code, reason) => format!("{code}: {reason}"),
            other => format!("{other:?}"),
        })
        .collect();
    let ignored = "SINK_REFUSED: a trigger of the mirror ignored it";
    assert_eq!(told[0], "Applied");
    assert_eq!(told[1], ignored);
    assert!(told[2].ends_with("violates check constraint \"short\""), "{told:?}");
    assert!(told[3].ends_with("violates unique constraint \"once\""), "{told:?}");
    assert!(told[4].contains("violates foreign key constraint"), "{told:?}");
    assert_eq!(told[5], ignored);
    assert_eq!(told[6..], ["Applied", "Applied"]);
    let held = home.texts("SELECT _key FROM mirror ORDER BY _key").await;
    let held: Vec<_> = held.iter().flatten().collect();
    assert_eq!(held, ["a", "d", "kept", "used"]);
    let buried = home.texts("SELECT key FROM mirror__truekeep_tombstones ORDER BY key").await;
    let buried: Vec<_> = buried.iter().flatten().collect();
    assert_eq!(buried, ["gone", "never"], "a deletion that was refused is not remembered");
    assert_eq!(sink.mark().await.expect("read"), Some(mark(1, 3)));
}

/// Rule 105: a new record that a trigger drops in silence is told, and its neighbours land.
#[tokio::test]
async fn a_record_that_a_trigger_drops_is_refused() {
    let Some(home) = Home::new().await else { return };
    let sink = home.mirror(mapped(&[("body", "text")])).await;
    let code = "IF NEW.body = 'x' THEN RETURN NULL; END IF; RETURN NEW;";
    trigger(&home, "BEFORE INSERT", code).await;
    let outcomes = sent(&sink, 1, vec![body("a", 1, "ok"), body("b", 1, "x")]).await;
    let outcomes = outcomes.expect("answered");
    assert_eq!(outcomes[0], Outcome::Applied);
    assert!(matches!(outcomes[1], Outcome::Refused(..)), "{outcomes:?}");
    assert_eq!(home.texts("SELECT _key FROM mirror").await, [Some("a".to_owned())]);
}
