//! Items in Postgres.

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::guard::{Guard, Lost};
use truekeep_core::ports::{Item, ItemCursor, ItemFilter, ItemKind, ItemState, Items, Retried};
use truekeep_core::{Key, LeaseToken, ScopeId, Timestamp, Version, limits};
use truekeep_postgres::sqlx::postgres::PgRow;
use truekeep_postgres::{Failure, Transaction};

use super::commits::held;
use super::{Hold, PostgresLedger, leases, ledger, rows, sql};

#[async_trait]
impl Items for PostgresLedger {
    async fn claim(
        &self,
        scope: &ScopeId,
        guard: &Guard,
        limit: u32,
    ) -> Result<Result<Vec<Item>, Lost>, PortError> {
        let limit = limits::rows("claim items", limit)?;
        let (mut transaction, now) = self.writing("claim items", Hold::Scope(scope)).await?;
        let done = async {
            let row = held(&mut transaction, "claim items", scope, None).await?;
            match guard.check(&row.held(now)) {
                Ok(()) => claim(&mut transaction, scope, &guard.token, limit, now).await.map(Ok),
                Err(lost) => Ok(Err(lost)),
            }
        };
        let done = done.await;
        transaction.end(done).await
    }

    async fn list(
        &self,
        scope: &ScopeId,
        filter: ItemFilter,
        after: Option<ItemCursor>,
        limit: u32,
    ) -> Result<Vec<Item>, PortError> {
        let limit = limits::rows("list items", limit)?;
        let filter = match filter {
            ItemFilter::All => None,
            ItemFilter::Parked => Some("parked"),
            ItemFilter::Discarded => Some("discarded"),
            ItemFilter::Unsettled => Some("unsettled"),
        };
        let query = Transaction::query(sql::ITEM_LIST)
            .bind(scope.to_string())
            .bind(after.as_ref().map(|after| rows::bytes(&after.0)))
            .bind(filter)
            .bind(i64::from(limit));
        let mut reading = self.reading("list items").await?;
        let found = rows::all(&mut reading, query, |row| Ok(rows::item(row, scope)?.0)).await;
        reading.end(found).await
    }

    async fn item(&self, scope: &ScopeId, key: &Key) -> Result<Option<Item>, PortError> {
        let mut reading = self.reading("read an item").await?;
        let found = load(&mut reading, scope, key).await;
        Ok(reading.end(found).await?.map(|(item, _)| item))
    }

    async fn retry(&self, scope: &ScopeId, key: &Key) -> Result<Retried, PortError> {
        const OPERATION: &str = "retry an item";
        let (mut transaction, now) = self.writing(OPERATION, Hold::Scope(scope)).await?;
        let done = async {
            if !ledger::knows(&mut transaction, OPERATION, scope.pipeline()).await? {
                return Ok(Retried::Unknown);
            }
            match load(&mut transaction, scope, key).await? {
                Some((item, lease)) => retry(&mut transaction, &item, lease.as_ref(), now).await,
                None => Ok(Retried::Unknown),
            }
        };
        let done = done.await;
        transaction.end(done).await
    }

    async fn request(
        &self,
        scope: &ScopeId,
        key: &Key,
        version: Version,
        kind: ItemKind,
    ) -> Result<Retried, PortError> {
        let hold = Hold::Scope(scope);
        let (mut transaction, now) = self.writing(REQUEST, hold).await?;
        let done = request(&mut transaction, (scope, key), version, kind, now).await;
        transaction.end(done).await
    }
}

const REQUEST: &str = "request an item";

async fn request(
    transaction: &mut Transaction,
    (scope, key): (&ScopeId, &Key),
    version: Version,
    kind: ItemKind,
    now: Timestamp,
) -> Result<Retried, Failure> {
    if !ledger::knows(transaction, REQUEST, scope.pipeline()).await? {
        return Ok(Retried::Unknown);
    }
    if let Some((item, lease)) = load(transaction, scope, key).await? {
        let is_newer = match item.state {
            ItemState::Leased => false,
            ItemState::Pending | ItemState::Retry => version > item.version,
            ItemState::Parked => version >= item.version,
        };
        if !is_newer {
            return retry(transaction, &item, lease.as_ref(), now).await;
        }
    }
    let query = about(sql::ITEM_REQUEST, scope, key)
        .bind(rows::stored(version.get())?)
        .bind(rows::kind_text(kind))
        .bind(Code::REQUESTED.to_string())
        .bind(now.ms());
    if rows::execute(transaction, query).await? == 0 {
        return Ok(Retried::Unknown);
    }
    wish(transaction, scope, now).await
}

/// A statement about an item, whose first parameters are its scope and its key.
pub(super) fn about(sql: &'static str, scope: &ScopeId, key: &Key) -> rows::Statement {
    Transaction::query(sql).bind(scope.to_string()).bind(rows::bytes(key))
}

pub(super) async fn load(
    transaction: &mut Transaction,
    scope: &ScopeId,
    key: &Key,
) -> Result<Option<(Item, Option<LeaseToken>)>, Failure> {
    let query = about(sql::ITEM_LOAD, scope, key);
    rows::first(transaction, query, |row| rows::item(row, scope)).await
}

async fn claim(
    transaction: &mut Transaction,
    scope: &ScopeId,
    lease: &LeaseToken,
    limit: u32,
    now: Timestamp,
) -> Result<Vec<Item>, Failure> {
    let decode = |row: &PgRow| Ok(rows::item(row, scope)?.0);
    let claiming = |sql: &'static str| {
        let query = Transaction::query(sql).bind(scope.to_string()).bind(now.ms());
        query.bind(lease.as_str().to_owned())
    };
    let left = rows::all(transaction, claiming(sql::ITEM_RECLAIM), decode).await?;
    if !left.is_empty() {
        return Ok(left);
    }
    let query = claiming(sql::ITEM_CLAIM).bind(i64::from(limit));
    let mut claimed = rows::all(transaction, query, decode).await?;
    // RETURNING has no order of its own.
    claimed.sort_by(|a, b| (a.due_at, &a.key).cmp(&(b.due_at, &b.key)));
    Ok(claimed)
}

async fn retry(
    transaction: &mut Transaction,
    item: &Item,
    lease: Option<&LeaseToken>,
    now: Timestamp,
) -> Result<Retried, Failure> {
    match item.state {
        ItemState::Pending | ItemState::Retry => Ok(Retried::Unchanged),
        ItemState::Leased => {
            // What a dead holder left leased is claimed next, and alone.
            let until = tried_until(transaction, item, lease, now).await?;
            Ok(until.map_or(Retried::Unchanged, Retried::Leased))
        }
        ItemState::Parked => {
            let query = about(sql::ITEM_RETRY, &item.scope, &item.key).bind(now.ms());
            rows::execute(transaction, query).await?;
            wish(transaction, &item.scope, now).await
        }
    }
}

/// Until when a leased item is surely being tried.
pub(super) async fn tried_until(
    transaction: &mut Transaction,
    item: &Item,
    lease: Option<&LeaseToken>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Failure> {
    let row = leases::load(transaction, &item.scope).await?.filter(|row| row.in_force(now));
    let row = row.filter(|row| Some(&row.lease.token) == lease);
    Ok(row.map(|row| row.lease.expires_at))
}

/// After an item was made pending: the run's version moves, so that the worker sees it, and the
/// certificate counts it.
async fn wish(
    transaction: &mut Transaction,
    scope: &ScopeId,
    now: Timestamp,
) -> Result<Retried, Failure> {
    let scope = scope.to_string();
    rows::execute(transaction, Transaction::query(sql::RUN_WAKE).bind(scope.clone())).await?;
    let query = Transaction::query(sql::CERTIFICATE_COUNT).bind(scope).bind(now.ms());
    rows::execute(transaction, query).await?;
    Ok(Retried::Pending)
}
