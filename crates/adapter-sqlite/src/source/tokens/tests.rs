//! Index text is taken apart whatever names, strings and comments it holds.

use super::*;

fn index(terms: &[&str], condition: Option<&str>) -> Option<IndexText> {
    Some(IndexText {
        terms: terms.iter().map(|term| (*term).to_owned()).collect(),
        condition: condition.map(str::to_owned),
    })
}

#[test]
fn an_index_is_taken_apart() {
    let cases = [
        ("CREATE UNIQUE INDEX i ON t(a)", index(&["a"], None)),
        ("CREATE UNIQUE INDEX i ON t(a DESC, b collate nocase asc)", index(&["a", "b"], None)),
        (
            "CREATE UNIQUE INDEX \"i(\" ON \"t)\"(lower(a), coalesce(b, ')') COLLATE RTRIM) where a > 1 -- end",
            index(&["lower(a)", "coalesce(b, ')')"], Some("a > 1")),
        ),
        (
            "CREATE UNIQUE INDEX i ON t(a /* , b */ || 'it''s, (', [c)])",
            index(&["a /* , b */ || 'it''s, ('", "[c)]"], None),
        ),
        ("CREATE TABLE t", None),
        ("CREATE INDEX i ON t(a) USING x", None),
    ];
    for (sql, wanted) in cases {
        assert_eq!(index_text(sql), wanted, "{sql}");
    }
}

#[test]
fn a_name_is_read_without_its_quotes() {
    let names: Vec<String> = tokens("a \"b\"\"c\" [d] `e` 'f'").iter().filter_map(name).collect();
    assert_eq!(names, ["a", "b\"c", "d", "e", "f"]);
}

#[test]
fn the_expression_of_a_generated_column_is_found() {
    let sql = "CREATE TABLE \"t(\" (as_is TEXT DEFAULT (cast(1 AS TEXT)), g AS (a || ')' || (b)) STORED UNIQUE,
        [h, i] TEXT CHECK (cast(1 AS (2))) GENERATED ALWAYS AS /* ( */ (cast(g AS TEXT)), UNIQUE (g))";
    let wanted = [
        ("as_is", None),
        ("G", Some("(a || ')' || (b))")),
        ("h, i", Some("(cast(g AS TEXT))")),
        ("none", None),
    ];
    for (column, expression) in wanted {
        assert_eq!(generated(sql, column).as_deref(), expression, "{column}");
    }
}
