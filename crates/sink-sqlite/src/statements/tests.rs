//! Every statement is one that SQLite can prepare, whatever the names are.

use rusqlite::Connection;

use super::*;
use crate::spec::MirrorColumn;

pub(crate) const ODD: [&str; 10] = [
    "plain",
    "a\"\"b",
    "with space",
    "main.dotted",
    "select",
    "{names}",
    "\u{1f3f3} 漢字",
    "semi;colon--",
    "/* */",
    "[x]`y`'z'",
];

#[test]
fn every_statement_can_be_prepared() {
    let mapped = |declared: &str| {
        let column = |name: &str| MirrorColumn { name: name.into(), declared: declared.into() };
        Layout::Columns(ODD.iter().map(|name| column(name)).collect())
    };
    for table in ODD {
        for layout in [
            Layout::Json { column: "document".into() },
            Layout::Json { column: table.into() },
            mapped(""),
            mapped("VARCHAR(10) */ , oops -- \0"),
        ] {
            let spec = MirrorSpec { table: table.into(), layout };
            spec.check().expect("it can be made");
            let sql = Statements::of(&spec);
            let db = Connection::open_in_memory().expect("opened");
            for create in
                [&sql.create_mirror, &sql.create_tombstones, &sql.create_mark, &sql.create_served]
            {
                db.execute_batch(create).expect(create);
            }
            for (name, statement) in sql.all() {
                if !name.starts_with("create") {
                    db.prepare(statement).expect(statement);
                }
            }
        }
    }
}
