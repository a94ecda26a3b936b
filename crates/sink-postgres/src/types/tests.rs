//! Which types columns become.

use super::*;

#[test]
fn columns_of_postgres_keep_their_type() {
    for name in ["smallint", "numeric", "timestamp with time zone", "jsonb", "uuid", "int4range"] {
        assert_eq!(ColumnType::of_postgres(name).name(), name);
    }
    for (declared, name) in [
        ("character varying", "text"),
        ("citext", "text"),
        ("integer[]", "json"),
        ("mood", "text"),
        ("\"Mood\"", "text"),
        ("public.price", "text"),
    ] {
        assert_eq!(ColumnType::of_postgres(declared).name(), name, "{declared}");
    }
}

#[test]
fn columns_of_sqlite_have_the_type_of_their_affinity() {
    for (declared, name) in [
        ("INTEGER", "bigint"),
        ("unsigned big int", "bigint"),
        ("VARCHAR(10)", "text"),
        ("CHARINT", "bigint"),
        ("TEXT", "text"),
        ("BLOB", "bytea"),
        ("DOUBLE PRECISION", "double precision"),
        ("DECIMAL(10,2)", "json"),
        ("DATETIME", "json"),
        ("", "json"),
    ] {
        assert_eq!(ColumnType::of_sqlite(declared).name(), name, "{declared}");
    }
}
