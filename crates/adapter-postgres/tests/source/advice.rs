//! What an operator can do for a source that is right but slow.

use std::time::Duration;

use truekeep_adapter_postgres::{Cause, Projection, RelationSpec, Watch};

use crate::fixture::{App, run};

const SHOP: &str = "CREATE TABLE author (id int PRIMARY KEY, name text);
    CREATE TABLE book (id int, shelf int, author int, title text, PRIMARY KEY (id, shelf)) PARTITION BY LIST (shelf);
    CREATE TABLE shelf PARTITION OF book DEFAULT;
    CREATE TABLE copy (id int PRIMARY KEY, book int, shelf int, place text)";

const DOCUMENT: &str =
    "SELECT title, (SELECT count(*) FROM copy c WHERE c.book = :id AND c.shelf = :shelf) AS n
    FROM book WHERE id = :id AND shelf = :shelf";

fn spec(document: Projection) -> RelationSpec {
    let watch = vec![
        Watch::Child { table: "copy".into(), key: vec!["book".into(), "shelf".into()] },
        Watch::Parent { table: "author".into(), via: vec!["author".into()], key: Vec::new() },
    ];
    RelationSpec { document, watch, ..RelationSpec::of("book") }
}

/// An index that is missing is told with the statement that makes it, until it is there; one of other
/// columns, of some rows or of another kind is none.
#[tokio::test]
async fn missing_indexes_are_told_with_what_makes_them() {
    let Some(mut app) = App::new(SHOP).await else { return };
    let by_sql = Projection::Sql { query: DOCUMENT.into(), json: Vec::new() };
    let source = app.open(spec(by_sql)).await.expect("opened");
    app.run(
        "CREATE INDEX ON copy (id, book, shelf); CREATE INDEX ON copy (book) WHERE shelf = 1;
        CREATE INDEX ON copy (book, shelf) WHERE place > 'a'; CREATE INDEX ON book (title, author);
        CREATE INDEX ON copy USING brin (book, shelf)",
    )
    .await;
    let found = source.unindexed().await.expect("looked");
    let told: Vec<_> = found.iter().map(|one| (one.table.as_str(), one.cause.clone())).collect();
    assert_eq!(told, [("copy", Cause::Document), ("book", Cause::Change("author".into()))]);
    let statements: Vec<&str> =
        found.iter().flat_map(|one| one.indexes.iter().map(String::as_str)).collect();
    assert_eq!(
        statements,
        [
            "CREATE INDEX CONCURRENTLY ON \"public\".\"copy\" (\"book\", \"shelf\")",
            "CREATE INDEX ON \"public\".\"book\" (\"author\")",
        ]
    );
    // What only some columns make needs no index of children.
    let columns = app.open(spec(Projection::Columns(Vec::new()))).await.expect("opened");
    assert_eq!(columns.unindexed().await.expect("looked").len(), 1);
    for statement in statements {
        app.run(statement).await;
    }
    assert_eq!(source.unindexed().await.expect("looked"), Vec::new());
    app.run("DROP INDEX copy_book_shelf_idx1; CREATE INDEX ON copy (shelf, book, place)").await;
    assert_eq!(
        source.unindexed().await.expect("looked"),
        Vec::new(),
        "in any order, and with more"
    );
}

/// Transactions that are open for long are told, prepared ones by their names.
#[tokio::test]
async fn open_transactions_are_told() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let mut app = App::on(&server, SHOP).await;
    let source = app.open(RelationSpec::of("book")).await.expect("opened");
    let none = source.open_transactions(Duration::ZERO).await.expect("looked");
    assert_eq!(none, Vec::new());
    app.run("BEGIN; INSERT INTO author VALUES (1, 'a'); PREPARE TRANSACTION 'of the ''shop''s'")
        .await;
    let mut long = app.other().await;
    run(&mut long, "SET application_name = 'report'; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM author").await;
    let found = source.open_transactions(Duration::ZERO).await.expect("looked");
    let who: Vec<&str> = found.iter().map(|one| one.who.as_str()).collect();
    assert_eq!(who.len(), 2, "{who:?}");
    assert!(
        who.iter().any(|who| who.starts_with("prepared 'of the ''shop''s' of postgres in ")),
        "{who:?}"
    );
    assert!(
        who.iter().any(|who| who.starts_with("process ") && who.contains("(report)")),
        "{who:?}"
    );
    let none = source.open_transactions(Duration::from_secs(3_600)).await.expect("looked");
    assert_eq!(none, Vec::new());
}
