//! What an idle worker asks many times a second costs the same, however large the table is and
//! however its rows came.

use super::*;

/// What may have happened to every row last, each in one transaction.
const PASTS: [(&str, &str); 3] = [
    ("loaded", "SELECT"),
    ("updated", "UPDATE books SET title = 'new'"),
    ("deleted", "DELETE FROM books"),
];

/// The pages that a statement touches once it was run before: what a first run cleans up is not
/// asked again.
async fn pages(db: &mut PgConnection, statement: &str) -> u64 {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}");
    let mut touched = 0;
    for _ in 0..2 {
        let row = sqlx::raw_sql(AssertSqlSafe(explain.clone())).fetch_one(&mut *db).await;
        let plan: String =
            sqlx::Row::try_get_unchecked(&row.expect("explained"), 0).expect("a text");
        let plan: serde_json::Value = serde_json::from_str(&plan).expect("a plan");
        let of = |name: &str| plan[0]["Plan"][name].as_u64().expect("a number");
        touched = of("Shared Hit Blocks") + of("Shared Read Blocks");
    }
    touched
}

/// The pages that a look at an idle feed touches, after each past.
async fn looks(rows: u32) -> Option<Vec<u64>> {
    let test = truekeep_postgres_server::database().await?;
    let mut db = test.connect().await;
    let run = async |db: &mut PgConnection, sql: &str| {
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(db).await.expect("run");
    };
    run(&mut db, "CREATE TABLE books (id int PRIMARY KEY, title text)").await;
    let spec = RelationSpec::of("books");
    let source = PostgresSource::open(&test.address, spec, Duration::from_secs(10)).await;
    let source = source.expect("opened");
    source.install().await.expect("installed");
    while !source.fill().await.expect("filled").done {}
    let load = format!("INSERT INTO books SELECT n, 'old' FROM generate_series(1, {rows}) AS n");
    run(&mut db, &load).await;
    let relation = source.seen();
    let mut touched = Vec::new();
    for (past, change) in PASTS {
        run(&mut db, change).await;
        let analyze = format!("ANALYZE {}, {}", relation.names.feed(), relation.names.mark());
        run(&mut db, &analyze).await;
        let row = sqlx::query("SELECT pg_current_snapshot()::text").fetch_one(&mut db).await;
        let now: String = sqlx::Row::try_get(&row.expect("a snapshot"), 0).expect("a text");
        let pulse = relation.statements.pulse.replace("$1", &format!("'{now}'"));
        touched.push(pages(&mut db, &pulse).await);
        assert!(touched.iter().all(|pages| *pages < 100), "{past}, {rows} rows: {touched:?}");
    }
    Some(touched)
}

#[tokio::test]
async fn looking_at_an_idle_feed_costs_the_same_however_its_rows_came() {
    let Some(small) = looks(1_000).await else { return };
    let large = looks(100_000).await.expect("a server");
    // An index that is a hundred times as large has at most two levels more.
    for (small, large) in small.iter().zip(&large) {
        assert!(*large <= small + 6, "{small} pages of 1,000 rows, {large} of 100,000");
    }
}
