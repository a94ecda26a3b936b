//! What the statements cost that a worker runs all the time: what they hold, however much waits.

use sqlx::{AssertSqlSafe, PgConnection, Row};
use truekeep_core::ports::Capture;

use crate::source::{PostgresSource, RelationSpec};

/// Runs a statement with these parameters and says how many pages of tables and indexes it touched, with
/// its plan; nothing of it stays.
async fn cost(db: &mut PgConnection, name: &str, statement: &str, values: &str) -> (u64, String) {
    let explain = "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)";
    let values = if values.is_empty() { String::new() } else { format!("({values})") };
    let run = format!(
        "BEGIN; SET LOCAL jit = off; PREPARE statement AS {statement};
         {explain} EXECUTE statement {values}; ROLLBACK; DEALLOCATE statement"
    );
    let rows = sqlx::raw_sql(AssertSqlSafe(run)).fetch_all(db).await;
    let rows = rows.unwrap_or_else(|error| panic!("{name}: {error}\n{statement}"));
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let touched = plan.iter().find(|line| line.trim_start().starts_with("Buffers: "));
    let touched = touched.map_or("", String::as_str);
    let part = |word: &str| {
        let after = touched.split(word).nth(1).unwrap_or("0");
        let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap_or(0)
    };
    (part("hit=") + part("read="), plan.join("\n"))
}

/// X46: from 1,000 to 100,000 rows that wait, and as many tombstones, no statement of a page, a repair, a
/// look, an audit or a prune reads more; and none reads the feed from its beginning to its end.
#[tokio::test]
async fn what_is_run_all_the_time_costs_what_it_holds() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    test.run("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (0, 'first')").await;
    let patience = std::time::Duration::from_secs(10);
    let source = PostgresSource::open(&test.address, RelationSpec::of("t"), patience).await;
    let source = source.expect("opened");
    source.install().await.expect("installed");
    while !source.fill().await.expect("filled").done {}
    let relation = source.seen();
    let statements = &relation.statements;
    let stem = relation.names.stem();
    let mut db = test.connect().await;
    let passed: String =
        sqlx::raw_sql("SELECT pg_current_snapshot()::text").fetch_one(&mut db).await.expect("one").get(0);
    test.run(&format!(
        "INSERT INTO truekeep.consumer VALUES ('{stem}', 'l', 'p', 1, '{passed}', '[0,null]', 0)"
    )).await;
    let ten = "ARRAY['1','2','3','5','7','11','13','17','19','23']";
    let mut all: Vec<Vec<(u64, String)>> = Vec::new();
    for rows in [1_000, 100_000] {
        test.run(&format!(
            "INSERT INTO t SELECT g, 'x' FROM generate_series(1, {rows}) g ON CONFLICT DO NOTHING;
             DELETE FROM t WHERE id % 2 = 0; UPDATE t SET v = 'y'"
        )).await;
        test.run("VACUUM ANALYZE").await;
        let target: String =
            sqlx::raw_sql("SELECT pg_current_snapshot()::text").fetch_one(&mut db).await.expect("one").get(0);
        let page = format!("'{passed}', '0', 0, 501");
        let within = format!("{page}, '{target}'");
        let asked = [
            ("changes", &statements.changes, page.as_str()),
            ("changes_within", &statements.changes_within, &within),
            ("pulse", &statements.pulse, &format!("'{target}'")),
            ("pending", &statements.pending, ""),
            ("find", &statements.find, ten),
            ("keys", &statements.keys, "'5', 501"),
            ("load", &statements.load, &format!("{ten}, 1000000")),
            ("exist", &statements.exist, ten),
            ("record", &statements.record, ten),
            ("record_new", &statements.record_new, ten),
            ("look", &statements.look, ten),
            ("walk", &statements.walk[1], "501, '100'"),
            ("audit_feed", &statements.audit_feed, "'5', 501, false"),
            ("audit_table", &statements.audit_table[1], "501, '100'"),
            ("prune", &statements.prune, &format!("'{stem}', 500")),
            ("view", &statements.view, &format!("'{stem}', 'l', 'p'")),
        ];
        let mut costs = Vec::new();
        for (name, statement, values) in asked {
            let (touched, plan) = cost(&mut db, name, statement, values).await;
            costs.push((touched, format!("{name}\n{plan}")));
        }
        all.push(costs);
    }
    for ((few, small), (many, large)) in all[0].iter().zip(&all[1]) {
        assert!(*many <= few * 2 + 40, "{few} pages, then {many}:\n{small}\n\n{large}");
        assert!(!large.contains("Seq Scan on feed_"), "{large}");
    }
}
