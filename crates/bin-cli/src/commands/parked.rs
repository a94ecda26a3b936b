//! `parked`: records that were set aside. Needs the ledger; the source only for a record that is not.

mod reasons;

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::operator;
use truekeep::status::LedgerPorts;
use truekeep::trouble::remedy;
use truekeep::wiring::{Purpose, open_source};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Discarded, Item, ItemCursor, ItemFilter, ItemKind, ItemState, Retried};
use truekeep_core::{Key, ScopeId, Timestamp};

use crate::args::{Parked, ParkedDiscard, ParkedKey, ParkedList, ParkedRetry};
use crate::output::{plain, table};
use crate::session::Session;

/// Items of one page while all are looked at.
const PAGE: u32 = 1_000;

#[derive(Serialize)]
struct Listed {
    items: Vec<Shown>,
    /// Whether there are more than were asked for.
    more: bool,
    /// Whether there are others that were given up.
    discarded: bool,
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

impl RetriedReport {
    fn count(&mut self, answer: &Retried) {
        match answer {
            Retried::Pending => self.pending += 1,
            Retried::Unchanged | Retried::Leased(_) => self.unchanged += 1,
            // It was settled meanwhile.
            Retried::Unknown => {}
        }
    }
}

pub async fn parked(session: &Session, wanted: &Parked) -> Result<Exit, Trouble> {
    match wanted {
        Parked::List(list) => self::list(session, list).await,
        Parked::Reasons(wanted) => reasons::reasons(session, wanted).await,
        Parked::Show(key) => show(session, key).await,
        Parked::Retry(retry) => self::retry(session, retry).await,
        Parked::Discard(discard) => self::discard(session, discard).await,
    }
}

async fn list(session: &Session, wanted: &ParkedList) -> Result<Exit, Trouble> {
    let ledger = session.ledger(Purpose::Read).await?;
    let mut listed = Listed { items: Vec::new(), more: false, discarded: false };
    let filter = if wanted.discarded { ItemFilter::Discarded } else { ItemFilter::Parked };
    for pipeline in session.selected(&wanted.selection)? {
        let after = wanted.after.as_deref().map(|key| ItemCursor(Key::new(key)));
        let left = wanted.limit - listed.items.len() as u32;
        let limit = left.saturating_add(1).min(10_000);
        let mut items = page(&ledger, pipeline, filter, after, limit).await?;
        listed.more |= items.len() > left as usize;
        items.truncate(left as usize);
        listed.items.extend(items.into_iter().map(|item| Shown::of(&item)));
        if !wanted.discarded {
            let given_up = page(&ledger, pipeline, ItemFilter::Discarded, None, 1).await?;
            listed.discarded |= !given_up.is_empty();
        }
    }
    session.out.show(&listed, |listed| {
        let others = match listed.discarded {
            true => "others were given up: `truekeep parked list --discarded`\n",
            false => "",
        };
        if listed.items.is_empty() {
            let nothing =
                if wanted.discarded { "nothing was given up" } else { "nothing is parked" };
            return format!("{nothing}\n{others}");
        }
        let row = |shown: &Shown| {
            let Shown { pipeline, code, attempts, .. } = shown;
            let (key, reason) = (plain(shown.key.as_str()), plain(&shown.reason));
            [pipeline.clone(), key, code.clone(), attempts.to_string(), reason]
        };
        let rows: Vec<_> = listed.items.iter().map(row).collect();
        let more = if listed.more { "and more: use --limit, or --after KEY\n" } else { "" };
        table(["pipeline", "key", "code", "tries", "reason"], &rows) + more + others
    });
    Ok(Exit::Done)
}

async fn page(
    ledger: &LedgerPorts,
    pipeline: &PipelineConfig,
    filter: ItemFilter,
    after: Option<ItemCursor>,
    limit: u32,
) -> Result<Vec<Item>, Trouble> {
    // A ledger answers for scopes it knows.
    if ledger.ledger.pipeline(&pipeline.name).await?.is_none() {
        return Ok(Vec::new());
    }
    let scope = ScopeId::whole(pipeline.name.clone());
    Ok(ledger.items.list(&scope, filter, after, limit).await?)
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
        report.count(&retry_one(session, &ledger, pipeline, key).await?);
    } else {
        for pipeline in session.selected(&wanted.selection)? {
            let mut after = None;
            loop {
                let items = page(&ledger, pipeline, ItemFilter::Parked, after, PAGE).await?;
                let Some(last) = items.last() else { break };
                after = Some(ItemCursor(last.key.clone()));
                for item in items.iter().filter(|item| wanted.means(item)) {
                    report.count(&ledger.items.retry(&item.scope, &item.key).await?);
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

impl ParkedRetry {
    /// Whether a parked item is one of those that are to be retried.
    fn means(&self, item: &Item) -> bool {
        let code = self.code.as_ref().is_none_or(|code| *code == item.code);
        let reason = self.reason.as_ref().is_none_or(|reason| item.reason.contains(reason));
        code && reason
    }
}

#[derive(Serialize)]
struct DiscardedReport {
    pipeline: String,
    key: Key,
    /// Whether it was not given up before.
    changed: bool,
}

/// Gives up the delivery as it is now.
async fn discard(session: &Session, wanted: &ParkedDiscard) -> Result<Exit, Trouble> {
    let pipeline = session.one(&wanted.selection)?;
    let ledger = session.ledger(Purpose::Work).await?;
    let (scope, key) = (ScopeId::whole(pipeline.name.clone()), Key::new(wanted.key.as_str()));
    let item = ledger.items.item(&scope, &key).await?;
    let item = item.ok_or_else(|| unknown(pipeline, &wanted.key))?;
    let by = operator::by(wanted.reason.reason.as_deref());
    const OPERATION: &str = "give a record up";
    let shown = plain(&wanted.key);
    let changed = match ledger.operations.discard(&scope, &key, item.version, &by).await? {
        Discarded::GivenUp => true,
        Discarded::Unchanged => false,
        Discarded::Unknown => return Err(unknown(pipeline, &wanted.key)),
        Discarded::Trying => {
            let message = format!("`{shown}` is not parked: it is tried by itself");
            let hint = "look again when it was tried as often as it is: `truekeep parked list`";
            return Err(Trouble::Usage(message, hint.to_owned()));
        }
        Discarded::Leased(until) => {
            return Err(being_tried(OPERATION, &wanted.key, until));
        }
        Discarded::Newer(version) => {
            let error = PortError::new(OPERATION, FailureClass::Fenced, Code::OUTPACED);
            return Err(error.detail(format!("`{shown}` is at version {version} by now")).into());
        }
    };
    let report = DiscardedReport { pipeline: pipeline.name.to_string(), key, changed };
    session.out.show(&report, |report| {
        let DiscardedReport { pipeline, key, changed } = report;
        let already = if *changed { "" } else { " already" };
        format!(
            "{pipeline} {} is given up{already}: the certificate stays partial until the record \
             changes or is repaired",
            plain(key.as_str())
        )
    });
    Ok(Exit::Done)
}

/// Tries one record again; one that is not set aside is delivered as the source has it now.
async fn retry_one(
    session: &Session,
    ledger: &LedgerPorts,
    pipeline: &PipelineConfig,
    text: &str,
) -> Result<Retried, Trouble> {
    let (scope, key) = (ScopeId::whole(pipeline.name.clone()), Key::new(text));
    let mut answer = ledger.items.retry(&scope, &key).await?;
    if answer == Retried::Unknown {
        let source = open_source(&session.config, pipeline).await?;
        let found = source.feed.find(std::slice::from_ref(&key)).await?.into_iter().next();
        if let Some(change) = found.flatten() {
            let kind = if change.deleted { ItemKind::Delete } else { ItemKind::Upsert };
            answer = ledger.items.request(&scope, &key, change.version, kind).await?;
        }
    }
    match answer {
        Retried::Pending | Retried::Unchanged => Ok(answer),
        Retried::Leased(until) => Err(being_tried("retry a record", text, until)),
        Retried::Unknown => Err(unknown(pipeline, text)),
    }
}

fn being_tried(operation: &'static str, key: &str, until: Timestamp) -> Trouble {
    let error = PortError::new(operation, FailureClass::Fenced, Code::LEASE_HELD);
    error.detail(format!("`{}` is being tried until {until}", plain(key))).into()
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
