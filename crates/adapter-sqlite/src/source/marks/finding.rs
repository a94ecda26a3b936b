//! How the rows that a mark belongs to are found: by an index if there is one, else in one pass over
//! the table for all marks that are compared alike.

use rusqlite::{Connection, params_from_iter};
use serde_json::Value as Json;
use truekeep_core::relation::{Cause, Unindexed};
use truekeep_sqlite::Failure;

use super::Mark;
use crate::source::key::{KeyShape, Part, bytes};
use crate::source::names::quote;
use crate::source::projection::Source;
use crate::source::resolve::Resolved;
use crate::source::triggers::MARK_COLUMNS;

/// Rows of the table that one step of a pass looks at: some milliseconds.
const SCANNED_AT_ONCE: u32 = 20_000;

/// Ways to compare that a pass tries for each row; where there are more, every row is meant.
const WAYS_MAX: usize = 32;

/// A way to compare one column with a mark's value.
#[derive(Debug, Clone)]
struct Way {
    column: String,
    /// The column, over the table's own name.
    left: String,
    /// Whether the mark's value is made a number first.
    number: bool,
}

impl Way {
    fn right(&self, value: &str) -> String {
        if self.number { format!("CAST({value} AS NUMERIC)") } else { value.to_owned() }
    }
}

/// How rows are found.
#[derive(Debug)]
pub(super) struct Finding {
    /// By place among a mark's values: the ways in which a row's column may be equal to it.
    columns: Vec<(usize, Vec<Way>)>,
    /// Whether an index finds the rows of one mark.
    pub indexed: bool,
}

/// A pass over the table for the marks up to a number that are compared alike.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    pub watch: &'a [u8],
    pub upto: i64,
    /// At most so many rows are found at once.
    pub limit: usize,
}

impl Finding {
    /// How marks are compared; `None` if a column is gone.
    pub fn of(
        connection: &Connection,
        relation: &Resolved,
        watch: &[u8],
    ) -> Result<Option<Self>, Failure> {
        let Some(columns) = ways(relation, watch) else { return Ok(None) };
        let mut finding = Self { columns, indexed: false };
        let all = relation.walk.columns.iter().map(|_| Part::Null).collect();
        let values = vec![Part::Null; MARK_COLUMNS.len()];
        let (select, _) = finding.select(relation, &values, Some(all), 1);
        finding.indexed = is_searched(connection, &select)?;
        Ok(Some(finding))
    }

    /// Adds the keys of the next rows that one mark finds; the place of the last if there may be
    /// more.
    pub fn rows(
        &self,
        connection: &Connection,
        relation: &Resolved,
        mark: &Mark,
        place: Option<Vec<u8>>,
        limit: usize,
        keys: &mut Vec<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let after = place.and_then(|place| relation.walk.parse_stored(&place));
        let (select, bound) = self.select(relation, &mark.values, after, limit);
        found(connection, &select, &bound, limit, keys)
    }

    fn select(
        &self,
        relation: &Resolved,
        values: &[Part],
        after: Option<Vec<Part>>,
        limit: usize,
    ) -> (String, Vec<Part>) {
        let mut bound = Bound::default();
        let columns = self.columns.iter().map(|(place, ways)| {
            let value = bound.value(values[*place].clone());
            let equal = ways.iter().map(|way| format!("{} = {}", way.left, way.right(&value)));
            format!("({})", equal.collect::<Vec<_>>().join(" OR "))
        });
        let mut conditions: Vec<String> = columns.collect();
        conditions.extend(after.map(|after| bound.compare(&relation.walk, relation, ">", after)));
        let select = listing(relation, &conditions, &bound.value(limited(limit)));
        (select, bound.0)
    }

    /// Adds the keys of rows that any mark of a pass finds, from the next part of the table; where
    /// the part after it begins, unless it was the last.
    pub fn scan(
        &self,
        connection: &Connection,
        relation: &Resolved,
        scan: &Scan<'_>,
        place: Option<Vec<u8>>,
        keys: &mut Vec<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let after = place.and_then(|place| relation.walk.parse_stored(&place));
        let end = part(connection, relation, after.clone())?;
        let last = end.as_ref().and_then(|end| relation.walk.parse_stored(end));
        let mut bound = Bound::default();
        let mut conditions = vec![self.meant(relation, scan, &mut bound)];
        conditions.extend(after.map(|after| bound.compare(&relation.walk, relation, ">", after)));
        conditions.extend(last.map(|last| bound.compare(&relation.walk, relation, "<=", last)));
        let select = listing(relation, &conditions, &bound.value(limited(scan.limit)));
        Ok(found(connection, &select, &bound.0, scan.limit, keys)?.or(end))
    }

    /// The ways to compare all columns at once; `None` if every row may be meant.
    fn combined(&self) -> Option<Vec<Vec<(usize, &Way)>>> {
        let mut all: Vec<Vec<(usize, &Way)>> = vec![Vec::new()];
        for (place, ways) in &self.columns {
            let mut longer = Vec::new();
            for before in &all {
                longer.extend(ways.iter().map(|way| [&before[..], &[(*place, way)]].concat()));
            }
            all = longer;
            if all.len() > WAYS_MAX {
                return None;
            }
        }
        (!self.columns.is_empty()).then_some(all)
    }

    /// The indexes without which rows are found by looking at all of them.
    fn wanted(&self, connection: &Connection, relation: &Resolved) -> Result<Vec<String>, Failure> {
        let own = quote(&relation.table.name);
        let mut statements: Vec<String> = Vec::new();
        for ways in self.combined().unwrap_or_default() {
            let terms: Vec<&str> = ways.iter().map(|(_, way)| way.left.as_str()).collect();
            let equal: Vec<String> = ways
                .iter()
                .map(|(place, way)| {
                    format!("{} = {}", way.left, way.right(&format!("?{}", place + 1)))
                })
                .collect();
            let select = format!("SELECT 1 FROM {own} WHERE {}", equal.join(" AND "));
            if is_searched(connection, &select)? {
                continue;
            }
            let columns: Vec<String> = ways.iter().map(|(_, way)| way.column.clone()).collect();
            let terms = terms.join(", ").replace(&format!("{own}."), "");
            statements.push(index(&relation.table.name, &columns, statements.len(), &terms));
        }
        statements.dedup();
        Ok(statements)
    }

    /// That a row is meant by any mark of a pass.
    fn meant(&self, relation: &Resolved, scan: &Scan<'_>, bound: &mut Bound) -> String {
        let Some(ways) = self.combined() else { return "1".into() };
        let (watch, upto) =
            (bound.value(Part::Text(scan.watch.to_vec())), bound.value(Part::Integer(scan.upto)));
        let mark = quote(&relation.names.mark());
        let any = ways.iter().map(|way| {
            let left: Vec<&str> = way.iter().map(|(_, way)| way.left.as_str()).collect();
            let right: Vec<String> =
                way.iter().map(|(place, way)| way.right(MARK_COLUMNS[*place])).collect();
            format!(
                "({}) IN (SELECT {} FROM {mark} WHERE watch = {watch} AND number <= {upto})",
                left.join(", "),
                right.join(", ")
            )
        });
        format!("({})", any.collect::<Vec<_>>().join(" OR "))
    }
}

/// Values bound to a statement, in order.
#[derive(Debug, Default)]
struct Bound(Vec<Part>);

impl Bound {
    fn value(&mut self, part: Part) -> String {
        self.0.push(part);
        format!("?{}", self.0.len())
    }

    /// How a row's place on a walk stands to another one.
    fn compare(
        &mut self,
        walk: &KeyShape,
        relation: &Resolved,
        how: &str,
        place: Vec<Part>,
    ) -> String {
        let row = format!("{}.", quote(&relation.table.name));
        let values: Vec<String> = place.into_iter().map(|part| self.value(part)).collect();
        format!("({}) {how} ({})", walk.list(&row), values.join(", "))
    }
}

fn limited(rows: usize) -> Part {
    Part::Integer(i64::try_from(rows).unwrap_or(i64::MAX))
}

fn listing(relation: &Resolved, conditions: &[String], limit: &str) -> String {
    let own = quote(&relation.table.name);
    let row = format!("{own}.");
    let conditions = if conditions.is_empty() { "1".into() } else { conditions.join(" AND ") };
    format!(
        "SELECT {}, {} FROM {own} WHERE {conditions} ORDER BY {} LIMIT {limit}",
        relation.key.text(&row),
        relation.walk.text(&row),
        relation.walk.list(&row),
    )
}

/// Adds the keys that a listing gives; the last row's place if it is full.
fn found(
    connection: &Connection,
    select: &str,
    bound: &[Part],
    limit: usize,
    keys: &mut Vec<Vec<u8>>,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut select = connection.prepare_cached(select)?;
    let mut rows = select.query(params_from_iter(bound))?;
    let (mut count, mut last) = (0, None);
    while let Some(row) = rows.next()? {
        count += 1;
        keys.push(bytes(row, 0)?.to_vec());
        if count == limit {
            last = Some(bytes(row, 1)?.to_vec());
        }
    }
    Ok(last)
}

/// The last place of the next part of the table; `None` if it is the last part.
fn part(
    connection: &Connection,
    relation: &Resolved,
    after: Option<Vec<Part>>,
) -> Result<Option<Vec<u8>>, Failure> {
    let own = quote(&relation.table.name);
    let row = format!("{own}.");
    let mut bound = Bound::default();
    let beyond = after.map(|after| bound.compare(&relation.walk, relation, ">", after));
    let beyond = beyond.map_or(String::new(), |beyond| format!(" WHERE {beyond}"));
    let skipped = bound.value(Part::Integer(i64::from(SCANNED_AT_ONCE) - 1));
    let select = format!(
        "SELECT {} FROM {own}{beyond} ORDER BY {} LIMIT 1 OFFSET {skipped}",
        relation.walk.text(&row),
        relation.walk.list(&row)
    );
    let mut select = connection.prepare_cached(&select)?;
    let mut rows = select.query(params_from_iter(bound.0))?;
    Ok(rows.next()?.map(|row| bytes(row, 0).map(<[u8]>::to_vec)).transpose()?)
}

/// Whether SQLite finds what a condition asks for by an index, without looking at other rows.
fn is_searched(connection: &Connection, select: &str) -> Result<bool, Failure> {
    let mut explain = connection.prepare_cached(&format!("EXPLAIN QUERY PLAN {select}"))?;
    let lines: Vec<String> =
        explain.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>()?;
    let mut looks =
        lines.iter().filter(|line| line.starts_with("SCAN") || line.starts_with("SEARCH"));
    Ok(looks.all(|line| line.starts_with("SEARCH") && line.contains("=?")))
}

/// The tables that are looked through as a whole because of what is watched.
pub(in crate::source) fn unindexed(
    connection: &Connection,
    relation: &Resolved,
) -> Result<Vec<Unindexed>, Failure> {
    let mut all = Vec::new();
    for watched in &relation.watches {
        let finding = Finding::of(connection, relation, watched.comparison.as_bytes())?;
        if let Some(finding) = finding.filter(|finding| !finding.indexed) {
            let cause = Cause::Change(watched.table.clone());
            let indexes = finding.wanted(connection, relation)?;
            all.push(Unindexed { table: relation.table.name.clone(), cause, indexes });
        }
        // Documents of columns read no other table.
        if !watched.read_by.is_empty() && matches!(relation.selection.source, Source::Query { .. })
        {
            let names: Vec<String> = watched.read_by.iter().map(|name| quote(name)).collect();
            let own = quote(&watched.table);
            let equal: Vec<String> = names.iter().map(|name| format!("{name} = ?")).collect();
            let select = format!("SELECT 1 FROM {own} WHERE {}", equal.join(" AND "));
            if !is_searched(connection, &select)? {
                let indexes = vec![index(&watched.table, &watched.read_by, 0, &names.join(", "))];
                let (table, cause) = (watched.table.clone(), Cause::Document);
                all.push(Unindexed { table, cause, indexes });
            }
        }
    }
    Ok(all)
}

/// The statement that makes an index.
fn index(table: &str, columns: &[String], before: usize, terms: &str) -> String {
    let mut name = format!("{table}_{}", columns.join("_"));
    if before > 0 {
        name = format!("{name}_{}", before + 1);
    }
    format!("CREATE INDEX {} ON {} ({terms})", quote(&name), quote(table))
}

/// The ways in which rows are compared with a mark's values; `None` if a column is gone. A column
/// that nothing can be said about is left out: every row may be meant.
fn ways(relation: &Resolved, watch: &[u8]) -> Option<Vec<(usize, Vec<Way>)>> {
    let watch: Vec<Json> = serde_json::from_slice(watch).ok()?;
    if !(1..=MARK_COLUMNS.len()).contains(&watch.len()) {
        return None;
    }
    let mut all = Vec::new();
    for (place, one) in watch.iter().enumerate() {
        let text = |name: &str| one.get(name).and_then(Json::as_str);
        let column = relation.table.column(text("column")?)?;
        let name = format!("{}.{}", quote(&relation.table.name), quote(&column.name));
        let way = |left: String, number| Way { column: column.name.clone(), left, number };
        let mut ways = vec![way(name.clone(), false)];
        match text("convert")? {
            "number" => ways.push(way(format!("CAST({name} AS NUMERIC)"), false)),
            "text" => ways.push(way(name.clone(), true)),
            _ => {}
        }
        match text("fold")? {
            "BINARY" => {}
            known @ ("NOCASE" | "RTRIM") => {
                ways.push(way(format!("{name} COLLATE {}", quote(known)), false));
            }
            // A collation of the application's own is not known here.
            _ => continue,
        }
        all.push((place, ways));
    }
    Some(all)
}
