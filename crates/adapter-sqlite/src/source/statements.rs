//! The statements that depend on the table, as text: read by our own SQLite, prepared and kept by
//! the connection.

use super::key::KeyShape;
use super::names::{FeedNames, quote};
use super::projection::{Selection, Source};
use super::table::Table;
use super::triggers::{DOUBTFUL, LIVE, STAMP, TOMBSTONE};
use truekeep_core::relation::RelationSpec;

/// A listing: from its beginning, with the limit as its last parameter, and after a place that is
/// bound before the limit.
#[derive(Debug)]
pub(super) struct Paged {
    pub first: String,
    pub after: String,
}

/// The statements of one relation.
#[derive(Debug)]
pub(super) struct Statements {
    /// The feed's newest number, and the least number of a mark.
    pub head: String,
    /// Numbers above a version, with their keys and what the feed says of them now.
    pub changes: String,
    /// The feed row of a key.
    pub find: String,
    /// All feed rows, by key.
    pub feed: Paged,
    /// Whether the row of a key is there.
    pub exists: String,
    /// Whether it is there and wanted.
    pub wanted: String,
    /// The values of the row of a key, if it is wanted.
    pub document: String,
    /// Keys and places of rows, in the order of a walk.
    pub walk: Paged,
    /// Feed rows and tombstones, counted.
    pub counts: String,
    /// Moves the newest number on by some.
    pub draw: String,
    /// Moves the newest number on to at least some number.
    pub lift: String,
    /// Gives a key a number.
    pub record: String,
    /// Appends a number.
    pub append: String,
    /// The stamp of a number.
    pub stamp: String,
    /// What removes what nobody needs.
    pub pruning: Pruning,
}

/// The statements that remove what nobody needs from a feed.
#[derive(Debug)]
pub(super) struct Pruning {
    /// The last of some numbers after one.
    pub span: String,
    /// Whether a number after one, up to one, is outdated and not kept.
    pub outdated: String,
    /// Removes those.
    pub sweep: String,
    /// Whether there is a tombstone up to a version.
    pub passed: String,
    /// Says whether a doubtful row is there.
    pub settle: String,
    /// Doubtful rows.
    pub doubtful: String,
    /// Removes some tombstones up to a version and returns their versions.
    pub prune: String,
}

impl Pruning {
    fn of(names: &FeedNames) -> Self {
        let (feed, order) = (quote(&names.feed()), quote(&names.order()));
        // A consumer's cursor is known again by the stamp of its number.
        let outdated = format!(
            "NOT EXISTS
             (SELECT 1 FROM {feed} AS f WHERE f.key = {order}.key AND f.version = {order}.version)
             AND NOT EXISTS (SELECT 1 FROM truekeep_consumer AS c
             WHERE c.feed = ?3 AND version BETWEEN c.cursor AND c.cursor + ?4)"
        );
        let passed = format!("deleted > {LIVE} AND deleted = {TOMBSTONE} AND version <= ?1");
        Self {
            span: format!(
                "SELECT max(version) FROM (SELECT version FROM {order}
                 WHERE version > ?1 ORDER BY version LIMIT ?2)"
            ),
            outdated: format!(
                "SELECT 1 FROM {order} WHERE version > ?1 AND version <= ?2 AND {outdated}"
            ),
            sweep: format!(
                "DELETE FROM {order} WHERE version > ?1 AND version <= ?2 AND {outdated}"
            ),
            settle: format!("UPDATE {feed} SET deleted = ?2 WHERE key = ?1"),
            doubtful: format!(
                "SELECT key FROM {feed} WHERE deleted > {LIVE} AND deleted = {DOUBTFUL} LIMIT ?1"
            ),
            passed: format!("SELECT 1 FROM {feed} WHERE {passed}"),
            prune: format!(
                "DELETE FROM {feed} WHERE key IN (SELECT key FROM {feed} WHERE {passed}
                 ORDER BY version LIMIT ?2) RETURNING version"
            ),
        }
    }
}

impl Statements {
    pub fn of(
        table: &Table,
        names: &FeedNames,
        key: &KeyShape,
        walk: &KeyShape,
        spec: &RelationSpec,
        selection: &Selection,
    ) -> Self {
        let own = quote(&table.name);
        let row = format!("{own}.");
        let [feed, order, counter, mark] =
            [names.feed(), names.order(), names.counter(), names.mark()].map(|name| quote(&name));
        let live = spec.live_when.as_ref().map_or(String::new(), |live| format!(" AND ({live})"));
        let bound = key.bound(&row, 1);
        let walking = |condition: &str, limit: usize| {
            format!(
                "SELECT {}, {} FROM {own}{condition} ORDER BY {} LIMIT ?{limit}",
                key.text(&row),
                walk.text(&row),
                walk.list(&row)
            )
        };
        let after: Vec<String> = (1..=walk.columns.len()).map(|n| format!("?{n}")).collect();
        let beyond = format!(" WHERE ({}) > ({})", walk.list(&row), after.join(", "));
        Self {
            head: format!("SELECT newest, (SELECT min(number) FROM {mark}) FROM {counter}"),
            changes: format!(
                "SELECT o.version, f.deleted, o.key, f.version IS o.version, o.stamp
                 FROM {order} AS o LEFT JOIN {feed} AS f ON f.key = o.key
                 WHERE o.version > ?1 ORDER BY o.version LIMIT ?2"
            ),
            find: format!("SELECT version, deleted FROM {feed} WHERE key = ?1"),
            feed: by_key(&feed),
            exists: format!("SELECT 1 FROM {own} WHERE {bound}"),
            wanted: format!("SELECT 1 FROM {own} WHERE {bound}{live}"),
            document: match &selection.source {
                Source::Columns(list) => format!("SELECT {list} FROM {own} WHERE {bound}{live}"),
                Source::Query { sql, .. } => sql.clone(),
            },
            walk: Paged { first: walking("", 1), after: walking(&beyond, walk.columns.len() + 1) },
            counts: format!("SELECT count(*), total(deleted = {TOMBSTONE}) FROM {feed}"),
            draw: format!("UPDATE {counter} SET newest = newest + ?1 RETURNING newest"),
            lift: format!("UPDATE {counter} SET newest = max(newest, ?1)"),
            record: format!(
                "INSERT INTO {feed} (key, version, deleted) VALUES (?1, ?2, ?3)
                 ON CONFLICT (key) DO UPDATE SET version = excluded.version, deleted = excluded.deleted"
            ),
            append: format!("INSERT INTO {order} (version, stamp, key) VALUES (?2, {STAMP}, ?1)"),
            stamp: format!("SELECT stamp FROM {order} WHERE version = ?1"),
            pruning: Pruning::of(names),
        }
    }
}

fn by_key(feed: &str) -> Paged {
    let select = format!("SELECT key, deleted, version FROM {feed}");
    Paged {
        first: format!("{select} ORDER BY key LIMIT ?1"),
        after: format!("{select} WHERE key > ?1 ORDER BY key LIMIT ?2"),
    }
}
