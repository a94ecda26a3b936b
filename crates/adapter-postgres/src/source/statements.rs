//! The statements that depend on the table, made from the files in `sql/`.

use super::key::KeyShape;
use super::names::{FeedNames, TableName, literal};
use super::projection::{Selection, Source};
use super::table::Table;
use truekeep_core::relation::RelationSpec;

/// A text with each `{name}` replaced. What is put in is not looked at again.
pub(super) fn template(text: &str, values: &[(&str, &str)]) -> String {
    let mut made = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let close = rest[open..].find('}').map_or(rest.len(), |close| open + close);
        let name = rest.get(open + 1..close).unwrap_or_default();
        let value = values.iter().find(|(own, _)| *own == name);
        made.push_str(&rest[..open]);
        match value {
            Some((_, value)) => made.push_str(value),
            None => made.push_str(&rest[open..=close.min(rest.len() - 1)]),
        }
        rest = rest.get(close + 1..).unwrap_or_default();
    }
    made.push_str(rest);
    made.trim_end().to_owned()
}

/// The statements of one relation.
#[derive(Debug)]
pub(super) struct Statements {
    /// The source as a consumer sees it.
    pub view: String,
    /// The columns that all of these were made for.
    pub shape: String,
    /// The signature, alone.
    pub signature: String,
    /// A page of the feed: everything that is not visible in a snapshot, and only what is in another.
    pub changes: String,
    pub changes_within: String,
    /// Whether there is anything that is not visible in a snapshot.
    pub pulse: String,
    /// Whether marks wait.
    pub pending: String,
    pub find: String,
    pub keys: String,
    pub counts: String,
    pub prune: String,
    pub register: String,
    /// Notes the start of the server that a consumer reads under.
    pub started: String,
    /// Gives keys numbers; only those that have none; says what the table says of them.
    pub record: String,
    pub record_new: String,
    pub look: String,
    pub load: String,
    /// Which of some texts are keys of rows that are there.
    pub exist: String,
    /// Keys and places of rows in the order of the key's index.
    pub walk: [String; 2],
    /// Live feed rows, or all, with what the table says of them.
    pub audit_feed: String,
    /// Rows with what the feed says of them.
    pub audit_table: [String; 2],
    /// Begins a feed's life.
    pub add: String,
    /// The feed's row, locked.
    pub stored: String,
    /// Says that all rows are to be recorded.
    pub begin_fill: String,
    /// Moves the numbers on.
    pub lift: String,
    /// About how many rows there are.
    pub estimate: String,
}

/// The relations whose triggers feed a relation, as two arrays in SQL.
pub(super) fn arrays(relations: &[TableName]) -> (String, String) {
    let array = |part: fn(&TableName) -> &str| {
        let all: Vec<String> = relations.iter().map(|name| literal(part(name))).collect();
        format!("ARRAY[{}]", all.join(", "))
    };
    (array(|name| &name.schema), array(|name| &name.name))
}

/// The keys that some source of keys names, with their rows.
pub(super) fn named(table: &Table, key: &KeyShape, source: &str) -> String {
    let same = key.same("t.", "k.");
    let values = [("source", source), ("table", &table.name.quoted()), ("same", &same)];
    template(include_str!("../../sql/record/named.sql"), &values)
}

/// The statement that numbers named keys, and the one that looks.
pub(super) fn recording(names: &FeedNames, named: &str, conflict: &str) -> (String, String) {
    let (feed, version) = (names.feed(), names.version());
    let conflict = template(conflict, &[("version", &version)]);
    let values =
        [("feed", feed.as_str()), ("version", &version), ("named", named), ("conflict", &conflict)];
    (
        template(include_str!("../../sql/record/record.sql"), &values),
        template(include_str!("../../sql/record/look.sql"), &values),
    )
}

/// What a recorded key that has a row in the feed gets.
pub(super) const UPDATE: &str = include_str!("../../sql/record/update.sql");

/// Which database this is.
const BORN: &str = include_str!("../../sql/server/born.sql");

/// Which start of the server this is.
const START: &str = include_str!("../../sql/server/start.sql");

impl Statements {
    pub fn of(
        table: &Table,
        relations: &[TableName],
        names: &FeedNames,
        key: &KeyShape,
        spec: &RelationSpec,
        selection: &Selection,
    ) -> Self {
        let own = table.name.quoted();
        let (feed, mark, version) = (names.feed(), names.mark(), names.version());
        let (signature, shape) = (signature(relations, names), shape(table));
        let live = spec.live_when.as_ref().map_or(String::new(), |live| format!(" AND ({live}\n)"));
        let of_feed = |text: &str| template(text, &[("feed", &feed), ("version", &version)]);
        let changes = |within: &str| {
            let values = [("feed", feed.as_str()), ("within", within)];
            template(include_str!("../../sql/feed/changes.sql"), &values)
        };
        let asked = asked(key);
        let named = named(table, key, &asked);
        let (record, look) = recording(names, &named, UPDATE);
        let (record_new, _) = recording(names, &named, "NOTHING");
        let wanted = wanted(&own, key, spec, &live);
        let keys = [("feed", feed.as_str()), ("wanted", &wanted)];
        Self {
            view: template(
                include_str!("../../sql/capture/view.sql"),
                &[
                    ("mark", &mark),
                    ("born", BORN),
                    ("start", START),
                    ("signature", &signature),
                    ("shape", &shape),
                ],
            ),
            changes: changes(""),
            changes_within: changes(
                " AND xid < pg_snapshot_xmax($5::text::pg_snapshot) \
                 AND pg_visible_in_snapshot(xid, $5::text::pg_snapshot)",
            ),
            pulse: template(
                include_str!("../../sql/feed/pulse.sql"),
                &[("feed", &feed), ("mark", &mark)],
            ),
            pending: template(include_str!("../../sql/mark/any.sql"), &[("mark", &mark)]),
            find: of_feed(include_str!("../../sql/feed/find.sql")),
            keys: template(include_str!("../../sql/feed/keys.sql"), &keys),
            counts: of_feed(include_str!("../../sql/feed/counts.sql")),
            prune: of_feed(include_str!("../../sql/feed/prune.sql")),
            register: template(
                include_str!("../../sql/consumer/register.sql"),
                &[("version", &version), ("start", START)],
            ),
            started: template(include_str!("../../sql/consumer/start.sql"), &[("start", START)]),
            record: format!("{record} RETURNING f.key, f.xid::text"),
            record_new: format!("{record_new} RETURNING f.key, f.xid::text"),
            look,
            load: load(table, key, spec, selection, &live),
            exist: format!("SELECT a.key FROM ({asked}) AS a"),
            walk: walk(table, key, ""),
            audit_feed: audit_feed(&own, &feed, key),
            audit_table: walk(table, key, &feed),
            add: template(include_str!("../../sql/capture/add.sql"), &[("born", BORN)]),
            stored: template(include_str!("../../sql/capture/load.sql"), &[("born", BORN)]),
            begin_fill: of_feed(include_str!("../../sql/capture/begin_fill.sql")),
            lift: of_feed(include_str!("../../sql/feed/lift.sql")),
            estimate: estimate(table),
            shape,
            signature,
        }
    }
}

/// The signature of everything that feeds a relation.
fn signature(relations: &[TableName], names: &FeedNames) -> String {
    let (schemas, tables) = arrays(relations);
    let triggers = literal(&names.triggers_like());
    template(
        include_str!("../../sql/signature/read.sql"),
        &[("schemas", &schemas), ("tables", &tables), ("triggers", &triggers)],
    )
}

/// What moves with the columns of a table.
fn shape(table: &Table) -> String {
    template(
        include_str!("../../sql/signature/shape.sql"),
        &[("schema", &literal(&table.name.schema)), ("name", &literal(&table.name.name))],
    )
}

/// Those of some texts that are keys, with their values.
fn asked(key: &KeyShape) -> String {
    let numbered: Vec<String> = key.numbered().map(|name| format!("a.{name}")).collect();
    template(
        include_str!("../../sql/record/asked.sql"),
        &[
            ("numbered", &numbered.join(", ")),
            ("parse", &key.parse("k.key")),
            ("canonical", &key.canonical_numbered("a.")),
        ],
    )
}

/// What a row must meet beyond being there, if there is a condition.
fn wanted(own: &str, key: &KeyShape, spec: &RelationSpec, live: &str) -> String {
    if spec.live_when.is_none() {
        return String::new();
    }
    format!(
        " AND EXISTS (SELECT FROM (SELECT {}) AS truekeep_key CROSS JOIN LATERAL \
         (SELECT FROM {own} WHERE {}{live}) AS truekeep_row)",
        key.parse("f.key"),
        key.same(&format!("{own}."), "truekeep_key.")
    )
}

/// Documents of some keys.
fn load(
    table: &Table,
    key: &KeyShape,
    spec: &RelationSpec,
    selection: &Selection,
    live: &str,
) -> String {
    let own = table.name.quoted();
    let row = format!("{own}.");
    let count = selection.carriers.len();
    let inner = |place: usize| match selection.source {
        Source::Columns(_) => format!("truekeep_row.v{place}"),
        Source::Keyed(_) | Source::Joined(..) => format!("truekeep_document.v{place}"),
    };
    let each = |part: &dyn Fn(usize) -> String| -> Vec<String> { (1..=count).map(part).collect() };
    let carried =
        each(&|place| format!("{} AS v{place}", selection.carriers[place - 1].sql(&inner(place))));
    let size = each(&|place| selection.carriers[place - 1].size(&format!("v{place}")));
    let sent = each(&|place| {
        format!(
            "CASE WHEN size <= {} AND (total <= $2 OR place = 1) THEN v{place} END",
            spec.document_max
        )
    });
    let columns = each(&|place| format!("v{place}")).join(", ");
    let (selected, query) = match &selection.source {
        Source::Columns(list) => {
            let list = list.iter().enumerate();
            let list: Vec<String> =
                list.map(|(at, column)| format!("{row}{column} AS v{}", at + 1)).collect();
            (list.join(", "), String::new())
        }
        Source::Keyed(sql) => (
            String::new(),
            format!("CROSS JOIN LATERAL ({sql}\n) AS truekeep_document ({columns})"),
        ),
        Source::Joined(sql, places) => {
            let same: Vec<String> = places
                .iter()
                .zip(key.numbered())
                .map(|(place, name)| format!("truekeep_document.v{place} = truekeep_key.{name}"))
                .collect();
            let same = same.join(" AND ");
            (String::new(), format!("JOIN ({sql}\n) AS truekeep_document ({columns}) ON {same}"))
        }
    };
    template(
        include_str!("../../sql/document/load.sql"),
        &[
            ("parse", &key.parse("k.key")),
            ("carried", &carried.join(", ")),
            ("row", &selected),
            ("table", &own),
            ("same", &key.same(&row, "truekeep_key.")),
            ("canonical", &key.canonical(&row)),
            ("live", live),
            ("query", &query),
            ("size", &format!("({})::int8", size.join(" + "))),
            ("document_max", &spec.document_max.to_string()),
            ("sent", &sent.join(", ")),
        ],
    )
}

/// Rows in the order of the key's own index, from the beginning and after a place: their keys, and
/// what a feed says of them if there is one to be asked.
fn walk(table: &Table, key: &KeyShape, feed: &str) -> [String; 2] {
    let own = table.name.quoted();
    let (asked, joined) = if feed.is_empty() {
        (String::new(), String::new())
    } else {
        (
            ", f.key IS NOT NULL AND NOT f.deleted AND f.row_xmin IS NOT DISTINCT FROM w.row_xmin"
                .into(),
            format!(" LEFT JOIN {feed} AS f ON f.key = w.key"),
        )
    };
    let of = |beyond: &str, limit: &str| {
        format!(
            "SELECT w.key{asked} FROM (SELECT ({}) COLLATE \"C\" AS key, t.xmin AS row_xmin, \
             row_number() OVER (ORDER BY {list}) AS place FROM {own} AS t{beyond} \
             ORDER BY {list} LIMIT {limit}) AS w{joined} ORDER BY w.place",
            key.canonical("t."),
            list = key.list("t."),
        )
    };
    let beyond = format!(" WHERE ({}) > ({})", key.list("t."), key.values("$2::text").join(", "));
    [of("", "$1"), of(&beyond, "$1")]
}

fn audit_feed(own: &str, feed: &str, key: &KeyShape) -> String {
    format!(
        "SELECT f.key, t.there, t.row_xmin IS NOT DISTINCT FROM f.row_xmin
         FROM (SELECT key, row_xmin FROM {feed} WHERE ($1::text IS NULL OR key > $1) AND ($3 OR NOT deleted) ORDER BY key LIMIT $2) AS f
         LEFT JOIN LATERAL (
           SELECT true AS there, t.xmin AS row_xmin
           FROM (SELECT {}) AS k JOIN {own} AS t ON {}
         ) AS t ON true
         ORDER BY f.key",
        key.parse("f.key"),
        key.same("t.", "k.")
    )
}

/// What the server guesses, and what a short look shows.
fn estimate(table: &Table) -> String {
    let own = table.name.quoted();
    let members: Vec<String> = table
        .members
        .iter()
        .filter(|member| member.leaf)
        .map(|member| literal(&member.name.quoted()))
        .collect();
    format!(
        "SELECT greatest((SELECT sum(greatest(reltuples, 0))::int8 FROM pg_catalog.pg_class \
         WHERE oid = ANY (ARRAY[{}]::regclass[])), (SELECT count(*) FROM (SELECT FROM {own} LIMIT 10000) AS looked))",
        members.join(", ")
    )
}

#[cfg(test)]
mod tests;
