//! Every statement is one that Postgres can prepare, whatever the names are.

use super::*;
use crate::spec::{Layout, MirrorColumn};
use crate::types::ColumnType;
use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};

const ODD: [&str; 8] = [
    "plain",
    "a\"\"b",
    "with space",
    "public.dotted",
    "select",
    "{names}",
    "\u{1f3f3} 漢字",
    "semi;colon--",
];

#[test]
fn names_stay_apart_however_long_they_are() {
    let long = ["x".repeat(63), format!("{}y", "x".repeat(62)), "é".repeat(31), "x".repeat(42)];
    let mut names: Vec<String> = Vec::new();
    for table in &long {
        names.extend([marks_of(table), tombstones_of(table), generation_of(table, u64::MAX)]);
        names.push(table.clone());
    }
    assert!(names.iter().all(|name| name.len() <= NAME_BYTES_MAX), "{names:?}");
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
    assert_eq!(marks_of("cities"), "cities__truekeep_marks");
}

#[tokio::test]
async fn every_statement_can_be_prepared() {
    let Some(database) = truekeep_postgres_server::database().await else { return };
    let mut connection = database.connect().await;
    let kinds = ["integer", "numeric", "date", "jsonb", "bytea", "real", "uuid", "mood"];
    let columns = ODD.iter().zip(kinds).map(|(name, kind)| MirrorColumn {
        name: (*name).into(),
        kind: ColumnType::of_postgres(kind),
    });
    let mapped = Layout::Columns(columns.collect());
    for (number, table) in ODD.into_iter().enumerate() {
        for (layout, which) in
            [(Layout::Json { column: table.into() }, "json"), (mapped.clone(), "columns")]
        {
            let schema = format!("{which}{number}");
            let run = sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {schema}")));
            run.execute(&mut connection).await.expect("made");
            let spec = MirrorSpec { schema, table: table.into(), layout };
            spec.check().expect("it can be made");
            let sql = Statements::of(&spec, &spec.table);
            for create in [&sql.create_mirror, &sql.create_tombstones, &sql.create_marks] {
                let run = sqlx::raw_sql(AssertSqlSafe(create.clone()));
                run.execute(&mut connection).await.expect(create);
            }
            for (_, statement) in sql.all().into_iter().filter(|(name, _)| !name.contains("create"))
            {
                let prepared = AssertSqlSafe(statement.to_owned()).into_sql_str();
                connection.prepare(prepared).await.map(drop).expect(statement);
            }
        }
    }
    for statement in [SURVEY, COLUMNS, ALONE, BELONGINGS, OBSTACLES, COMPUTED] {
        connection.prepare(statement.into_sql_str()).await.map(drop).expect(statement);
    }
}
