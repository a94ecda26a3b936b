//! Items in SQLite.

use async_trait::async_trait;
use rusqlite::{Connection, Row, named_params};
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::guard::{Guard, Lost};
use truekeep_core::ports::{Item, ItemCursor, ItemFilter, ItemKind, ItemState, Items, Retried};
use truekeep_core::{Key, LeaseToken, ScopeId, Timestamp, Version, limits};
use truekeep_sqlite::Failure;

use super::commits::held;
use super::{SqliteLedger, leases, ledger, rows, sql};

#[async_trait]
impl Items for SqliteLedger {
    async fn claim(
        &self,
        scope: &ScopeId,
        guard: &Guard,
        limit: u32,
    ) -> Result<Result<Vec<Item>, Lost>, PortError> {
        let limit = limits::rows("claim items", limit)?;
        let (scope, guard) = (scope.clone(), guard.clone());
        self.write("claim items", move |transaction, now| {
            let row = held(transaction, "claim items", &scope, None)?;
            if let Err(lost) = guard.check(&row.held(now)) {
                return Ok(Err(lost));
            }
            claim(transaction, &scope, &guard.token, limit, now).map(Ok)
        })
        .await
    }

    async fn list(
        &self,
        scope: &ScopeId,
        filter: ItemFilter,
        after: Option<ItemCursor>,
        limit: u32,
    ) -> Result<Vec<Item>, PortError> {
        let limit = limits::rows("list items", limit)?;
        let scope = scope.clone();
        let filter = match filter {
            ItemFilter::All => None,
            ItemFilter::Parked => Some("parked"),
            ItemFilter::Discarded => Some("discarded"),
            ItemFilter::Unsettled => Some("unsettled"),
        };
        self.read("list items", move |connection, _| {
            let params = named_params! {
                ":scope": scope.to_string(),
                ":after": after.as_ref().map(|after| after.0.as_str()),
                ":filter": filter,
                ":limit": limit,
            };
            rows::all(connection, sql::ITEM_LIST, params, |row| Ok(rows::item(row, &scope)?.0))
        })
        .await
    }

    async fn item(&self, scope: &ScopeId, key: &Key) -> Result<Option<Item>, PortError> {
        let (scope, key) = (scope.clone(), key.clone());
        self.read("read an item", move |connection, _| {
            Ok(load(connection, &scope, &key)?.map(|(item, _)| item))
        })
        .await
    }

    async fn retry(&self, scope: &ScopeId, key: &Key) -> Result<Retried, PortError> {
        let (scope, key) = (scope.clone(), key.clone());
        const OPERATION: &str = "retry an item";
        self.write(OPERATION, move |transaction, now| {
            if !ledger::knows(transaction, OPERATION, scope.pipeline())? {
                return Ok(Retried::Unknown);
            }
            let Some((item, lease)) = load(transaction, &scope, &key)? else {
                return Ok(Retried::Unknown);
            };
            retry(transaction, &item, lease.as_ref(), now)
        })
        .await
    }

    async fn request(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        kind: ItemKind,
    ) -> Result<Retried, PortError> {
        let (scope, key) = (scope.clone(), key.clone());
        const OPERATION: &str = "request an item";
        self.write(OPERATION, move |transaction, now| {
            if !ledger::knows(transaction, OPERATION, scope.pipeline())? {
                return Ok(Retried::Unknown);
            }
            if let Some((item, lease)) = load(transaction, &scope, &key)? {
                let is_newer = match item.state {
                    ItemState::Leased => false,
                    ItemState::Pending | ItemState::Retry => version > item.version,
                    ItemState::Parked => version >= item.version,
                };
                if !is_newer {
                    return retry(transaction, &item, lease.as_ref(), now);
                }
            }
            let params = named_params! {
                ":scope": scope.to_string(),
                ":key": key.as_str(),
                ":version": rows::stored(version.get())?,
                ":kind": rows::kind_text(kind),
                ":code": Code::REQUESTED.as_str(),
                ":now": now.ms(),
            };
            if rows::execute(transaction, sql::ITEM_REQUEST, params)? == 0 {
                return Ok(Retried::Unknown);
            }
            wish(transaction, &scope, now)
        })
        .await
    }
}

pub(super) fn load(
    connection: &Connection,
    scope: &ScopeId,
    key: &Key,
) -> Result<Option<(Item, Option<LeaseToken>)>, Failure> {
    let params = named_params! { ":scope": scope.to_string(), ":key": key.as_str() };
    rows::first(connection, sql::ITEM_LOAD, params, |row| rows::item(row, scope))
}

fn claim(
    transaction: &Connection,
    scope: &ScopeId,
    lease: &LeaseToken,
    limit: u32,
    now: Timestamp,
) -> Result<Vec<Item>, Failure> {
    let name = scope.to_string();
    let decode = |row: &Row<'_>| Ok(rows::item(row, scope)?.0);
    let params = named_params! { ":scope": name, ":lease": lease.as_str(), ":now": now.ms() };
    let left = rows::all(transaction, sql::ITEM_RECLAIM, params, decode)?;
    if !left.is_empty() {
        return Ok(left);
    }
    let params = named_params! {
        ":scope": name,
        ":lease": lease.as_str(),
        ":now": now.ms(),
        ":limit": limit,
    };
    let mut claimed = rows::all(transaction, sql::ITEM_CLAIM, params, decode)?;
    // RETURNING has no order of its own.
    claimed.sort_by(|a, b| (a.due_at, &a.key).cmp(&(b.due_at, &b.key)));
    Ok(claimed)
}

fn retry(
    transaction: &Connection,
    item: &Item,
    lease: Option<&LeaseToken>,
    now: Timestamp,
) -> Result<Retried, Failure> {
    match item.state {
        ItemState::Pending | ItemState::Retry => Ok(Retried::Unchanged),
        ItemState::Leased => {
            // What a dead holder left leased is claimed next, and alone.
            let until = tried_until(transaction, item, lease, now)?;
            Ok(until.map_or(Retried::Unchanged, Retried::Leased))
        }
        ItemState::Parked => {
            let params = named_params! {
                ":scope": item.scope.to_string(),
                ":key": item.key.as_str(),
                ":now": now.ms(),
            };
            rows::execute(transaction, sql::ITEM_RETRY, params)?;
            wish(transaction, &item.scope, now)
        }
    }
}

/// Until when a leased item is surely being tried.
pub(super) fn tried_until(
    transaction: &Connection,
    item: &Item,
    lease: Option<&LeaseToken>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Failure> {
    let row = leases::load(transaction, &item.scope)?.filter(|row| row.in_force(now));
    let row = row.filter(|row| Some(&row.lease.token) == lease);
    Ok(row.map(|row| row.lease.expires_at))
}

/// After an item was made pending: the run's version moves, so that the worker sees it, and the
/// certificate counts it.
fn wish(transaction: &Connection, scope: &ScopeId, now: Timestamp) -> Result<Retried, Failure> {
    let scope = scope.to_string();
    rows::execute(transaction, sql::RUN_WAKE, named_params! { ":scope": scope })?;
    let params = named_params! { ":scope": scope, ":now": now.ms() };
    rows::execute(transaction, sql::CERTIFICATE_COUNT, params)?;
    Ok(Retried::Pending)
}
