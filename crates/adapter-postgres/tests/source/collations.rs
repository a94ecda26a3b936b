//! Keys under collations that order and compare as languages do: pages, audits and fills lose nothing, and
//! what is listed stands in the order of bytes.

use truekeep_adapter_postgres::{PostgresSource, RelationSpec};
use truekeep_core::Place;
use truekeep_core::ports::Capture;

use crate::fixture::{App, Asked, PATIENCE, connect, run, text};

/// Enough for more than one page of a fill, with what languages put elsewhere than bytes do.
const ROWS: &str = "INSERT INTO t SELECT p || g || s, 'x' FROM generate_series(1, 60) AS g,
    unnest(ARRAY['a', 'A', 'á', '_', ' ', 'ß', 'z', 'Z', '-', 'ÿ']) AS p, unnest(ARRAY['', ' ', 'é']) AS s";

async fn all_is_there(source: &PostgresSource, db: &mut sqlx::PgConnection, what: &str) {
    source.captured().await;
    let listed = source.listed().await;
    let mut sorted = listed.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!((listed.len(), &listed), (1_800, &sorted), "{what}");
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()), "{what}");
    run(db, "UPDATE t SET id = id || '!' WHERE id LIKE 'Z%'; DELETE FROM t WHERE id LIKE '-%'")
        .await;
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()), "{what}");
    let feed = source.everything(&Place::START).await;
    let live = feed.values().filter(|change| !change.deleted).count().to_string();
    assert_eq!(live, text(db, "SELECT count(*) FROM t").await, "{what}");
    // Every row and every tombstone is numbered anew, page by page in the order of the key's index.
    source.begin_again(truekeep_core::Version::new(1_000_000)).await.expect("begun");
    source.captured().await;
    let again = source.everything(&Place::START).await;
    assert_eq!(again.len(), feed.len());
    assert!(again.values().all(|change| change.version.get() > 1_000_000), "{what}");
    assert_eq!(source.audited().await, (Vec::new(), Vec::new()), "{what}");
}

#[tokio::test]
async fn a_column_may_have_any_collation() {
    for collation in ["C", "en-US-x-icu", "de-x-icu", "sv-x-icu"] {
        let schema =
            format!("CREATE TABLE t (id text COLLATE \"{collation}\" PRIMARY KEY, v text); {ROWS}");
        let Some(mut app) = App::new(&schema).await else { return };
        let source = app.open(RelationSpec::of("t")).await.expect("opened");
        all_is_there(&source, &mut app.db, collation).await;
    }
}

/// A database whose own order is a language's; those of the system are there only where it has them.
#[tokio::test]
async fn a_database_may_have_any_locale() {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let mut home = connect(&server.address("postgres")).await;
    let version: u32 = text(&mut home, "SELECT current_setting('server_version_num')")
        .await
        .parse()
        .expect("a number");
    let mut locales = vec!["LC_COLLATE 'C.utf8' LC_CTYPE 'C.utf8'".to_owned()];
    if version >= 150_000 {
        locales.push("LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C.utf8'".to_owned());
    }
    let has = "SELECT count(*) > 0 FROM pg_collation WHERE collname = 'en_US.utf8'";
    if text(&mut home, has).await == "true" {
        locales.push("LC_COLLATE 'en_US.utf8' LC_CTYPE 'en_US.utf8'".to_owned());
    }
    for (nth, locale) in locales.iter().enumerate() {
        let create = format!("CREATE DATABASE d{nth} TEMPLATE template0 ENCODING 'UTF8' {locale}");
        run(&mut home, &create).await;
        let address = server.address(&format!("d{nth}"));
        let mut db = connect(&address).await;
        run(&mut db, &format!("CREATE TABLE t (id text PRIMARY KEY, v text); {ROWS}")).await;
        let source = PostgresSource::open(&address, RelationSpec::of("t"), PATIENCE).await;
        all_is_there(&source.expect("opened"), &mut db, locale).await;
    }
}
