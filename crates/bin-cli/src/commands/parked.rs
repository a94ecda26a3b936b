//! `parked`: records that were set aside. Needs the ledger only.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::status::LedgerPorts;
use truekeep::trouble::remedy;
use truekeep::wiring::Purpose;
use truekeep_core::ports::{Item, ItemCursor, ItemFilter, ItemKind, ItemState, Retried};
use truekeep_core::{Key, ScopeId};

use crate::args::{Parked, ParkedKey, ParkedList, ParkedRetry};
use crate::output::{plain, table};
use crate::session::Session;

/// Items of one page while all are retried.
const PAGE: u32 = 1_000;

#[derive(Serialize)]
struct Listed {
    items: Vec<Shown>,
    /// Whether there are more than were asked for.
    more: bool,
}

#[derive(Serialize)]
struct Shown {
    pipeline: String,
    key: Key,
    version: u64,
    wants: &'static str,
    state: &'static str,
    attempts: u32,
    code: String,
    reason: String,
    remedy: &'static str,
    changed_at: String,
}

#[derive(Serialize)]
struct RetriedReport {
    /// Records that are tried again.
    pending: u64,
    /// Records that were being tried already.
    unchanged: u64,
}

pub async fn parked(session: &Session, wanted: &Parked) -> Result<Exit, Trouble> {
    match wanted {
        Parked::List(list) => self::list(session, list).await,
        Parked::Show(key) => show(session, key).await,
        Parked::Retry(retry) => self::retry(session, retry).await,
    }
}

async fn list(session: &Session, wanted: &ParkedList) -> Result<Exit, Trouble> {
    let ledger = session.ledger(Purpose::Read).await?;
    let mut listed = Listed { items: Vec::new(), more: false };
    for pipeline in session.selected(&wanted.selection)? {
        let after = wanted.after.as_deref().map(|key| ItemCursor(Key::new(key)));
        let left = wanted.limit - listed.items.len() as u32;
        let mut items = page(&ledger, pipeline, after, left.saturating_add(1).min(10_000)).await?;
        listed.more |= items.len() > left as usize;
        items.truncate(left as usize);
        listed.items.extend(items.into_iter().map(|item| Shown::of(&item)));
    }
    session.out.show(&listed, |listed| {
        if listed.items.is_empty() {
            return "nothing is parked".to_owned();
        }
        let row = |shown: &Shown| {
            let Shown { pipeline, code, attempts, .. } = shown;
            let (key, reason) = (plain(shown.key.as_str()), plain(&shown.reason));
            [pipeline.clone(), key, code.clone(), attempts.to_string(), reason]
        };
        let rows: Vec<_> = listed.items.iter().map(row).collect();
        let more = if listed.more { "and more: use --limit, or --after KEY\n" } else { "" };
        table(["pipeline", "key", "code", "tries", "reason"], &rows) + more
    });
    Ok(Exit::Done)
}

async fn page(
    ledger: &LedgerPorts,
    pipeline: &PipelineConfig,
    after: Option<ItemCursor>,
    limit: u32,
) -> Result<Vec<Item>, Trouble> {
    // A ledger answers for scopes it knows.
    if ledger.ledger.pipeline(&pipeline.name).await?.is_none() {
        return Ok(Vec::new());
    }
    let scope = ScopeId::whole(pipeline.name.clone());
    Ok(ledger.items.list(&scope, ItemFilter::Parked, after, limit).await?)
}

async fn show(session: &Session, wanted: &ParkedKey) -> Result<Exit, Trouble> {
    let pipeline = session.one(&wanted.selection)?;
    let ledger = session.ledger(Purpose::Read).await?;
    let scope = ScopeId::whole(pipeline.name.clone());
    let item = ledger.items.item(&scope, &Key::new(wanted.key.as_str())).await?;
    let item = item.ok_or_else(|| unknown(pipeline, &wanted.key))?;
    session.out.show(&Shown::of(&item), |shown| {
        let Shown { pipeline, state, wants, code, remedy, .. } = shown;
        let key = plain(shown.key.as_str());
        let tried = format!("{}, last at {}", shown.attempts, shown.changed_at);
        let version = shown.version;
        let reason = plain(&shown.reason);
        format!(
            "{pipeline} {key}\n  state   {state}\n  wants   {wants} at version {version}\n  \
             tries   {tried}\n  code    {code}\n  reason  {reason}\n  do      {remedy}"
        )
    });
    Ok(Exit::Done)
}

async fn retry(session: &Session, wanted: &ParkedRetry) -> Result<Exit, Trouble> {
    let ledger = session.ledger(Purpose::Work).await?;
    let mut report = RetriedReport { pending: 0, unchanged: 0 };
    if let Some(key) = &wanted.key {
        let pipeline = session.one(&wanted.selection)?;
        if !again(&ledger, pipeline, &Key::new(key.as_str()), &mut report).await? {
            return Err(unknown(pipeline, key));
        }
    } else {
        for pipeline in session.selected(&wanted.selection)? {
            let mut after = None;
            loop {
                let items = page(&ledger, pipeline, after, PAGE).await?;
                let Some(last) = items.last() else { break };
                after = Some(ItemCursor(last.key.clone()));
                for item in &items {
                    again(&ledger, pipeline, &item.key, &mut report).await?;
                }
            }
        }
    }
    session.out.show(&report, |report| {
        let RetriedReport { pending, unchanged } = report;
        let already = match unchanged {
            0 => String::new(),
            some => format!(", {some} were being tried already"),
        };
        format!("{pending} will be tried again by the worker{already}")
    });
    Ok(Exit::Done)
}

/// Whether there is such an item.
async fn again(
    ledger: &LedgerPorts,
    pipeline: &PipelineConfig,
    key: &Key,
    report: &mut RetriedReport,
) -> Result<bool, Trouble> {
    let scope = ScopeId::whole(pipeline.name.clone());
    match ledger.items.retry(&scope, key).await? {
        Retried::Pending => report.pending += 1,
        Retried::Unchanged | Retried::Leased(_) => report.unchanged += 1,
        Retried::Unknown => return Ok(false),
    }
    Ok(true)
}

fn unknown(pipeline: &PipelineConfig, key: &str) -> Trouble {
    let message = format!("no record `{}` of `{}` is set aside", plain(key), pipeline.name);
    Trouble::Usage(message, "`truekeep parked list` shows those that are".to_owned())
}

impl Shown {
    fn of(item: &Item) -> Self {
        Self {
            pipeline: item.scope.pipeline().to_string(),
            key: item.key.clone(),
            version: item.version.get(),
            wants: match item.kind {
                ItemKind::Upsert => "upsert",
                ItemKind::Delete => "delete",
            },
            state: match item.state {
                ItemState::Pending => "pending",
                ItemState::Leased => "leased",
                ItemState::Retry => "retry",
                ItemState::Parked => "parked",
            },
            attempts: item.attempts,
            code: item.code.to_string(),
            reason: item.reason.clone(),
            remedy: remedy(&item.code),
            changed_at: item.changed_at.to_string(),
        }
    }
}
