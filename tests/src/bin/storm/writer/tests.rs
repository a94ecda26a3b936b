//! The application: what it says of itself is so, or the law would be held against nothing.

use std::collections::BTreeMap;

use super::*;

/// A database with a counter as truekeep keeps one, which each change of a row moves on.
fn database(folder: &Path, keeping: Keeping) -> PathBuf {
    let path = folder.join("source.db");
    make(&path, keeping).expect("made");
    let db = open(&path, keeping).expect("opened");
    db.execute_batch(
        "CREATE TABLE truekeep_counter_things (newest INTEGER NOT NULL);
         INSERT INTO truekeep_counter_things VALUES (0);
         CREATE TRIGGER i AFTER INSERT ON things BEGIN UPDATE truekeep_counter_things SET newest = newest + 1; END;
         CREATE TRIGGER u AFTER UPDATE ON things BEGIN UPDATE truekeep_counter_things SET newest = newest + 1; END;
         CREATE TRIGGER d AFTER DELETE ON things BEGIN UPDATE truekeep_counter_things SET newest = newest + 1; END;",
    )
    .expect("made");
    path
}

fn rows(path: &Path) -> BTreeMap<String, String> {
    let db = Connection::open(path).expect("opened");
    let sql = format!("SELECT CAST(id AS TEXT), {RECORD} FROM things");
    let mut statement = db.prepare(&sql).expect("prepared");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("asked");
    rows.collect::<Result<_, _>>().expect("read")
}

#[test]
fn a_row_that_changes_is_touched_in_the_same_transaction() {
    for keeping in Keeping::ALL {
        let folder = tempfile::tempdir().expect("a folder");
        let path = database(folder.path(), keeping);
        let db = open(&path, keeping).expect("opened");
        let mut draws = Draws::of(5, "", 0);
        let (mut before, mut said, mut commits) = (rows(&path), truth(&path).expect("read"), 0);
        for _ in 0..200 {
            commits += u64::from(transact(&db, &mut draws, 100).expect("done").is_some());
            let (after, now) = (rows(&path), truth(&path).expect("read"));
            for key in before.keys().chain(after.keys()) {
                if before.get(key) != after.get(key) {
                    let token = now.keys[key].token;
                    assert!(token > said.newest && token <= now.newest, "{key}");
                }
            }
            let live = now
                .keys
                .iter()
                .filter_map(|(key, touched)| touched.row.clone().map(|row| (key.clone(), row)));
            assert_eq!(live.collect::<BTreeMap<_, _>>(), after);
            (before, said) = (after, now);
        }
        assert_eq!(written(&path).expect("read"), commits);
        assert!(commits > 100 && before.len() > 100, "{commits} {}", before.len());
    }
}

#[test]
fn orders_survive_a_command_line() {
    let orders = Orders {
        database: "a b/source.db".into(),
        notes: "notes".into(),
        keeping: Keeping::ALL[2],
        body_max: 20,
        seed: u64::MAX,
    };
    let parsed = Orders::parse(&orders.words()).expect("parsed");
    assert_eq!(format!("{parsed:?}"), format!("{orders:?}"));
    assert!(Orders::parse(&orders.words()[1..]).is_err());
}

#[test]
fn a_note_that_was_cut_off_does_not_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notes");
    for (text, last) in [("", None), ("1", None), ("1\n", Some(1)), ("1\n27\n2", Some(27))] {
        std::fs::write(&path, text).expect("written");
        assert_eq!(noted(&path).expect("read"), last, "{text:?}");
    }
}
