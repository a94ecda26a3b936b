//! `parked reasons`: what was set aside, counted by why.

use std::collections::BTreeMap;

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::trouble::remedy;
use truekeep::wiring::Purpose;
use truekeep_core::Key;
use truekeep_core::code::Code;
use truekeep_core::ports::{Item, ItemCursor, ItemFilter};

use super::{PAGE, page};
use crate::args::ParkedReasons;
use crate::output::{plain, table};
use crate::session::Session;

/// Reasons that are told apart. Some name a value, and then each record has one of its own.
const REASONS_MAX: usize = 10_000;

#[derive(Serialize)]
struct Counted {
    /// The commonest first.
    reasons: Vec<Reason>,
    /// Records that are set aside for reasons that are not among them.
    others: u64,
}

#[derive(Serialize)]
struct Reason {
    pipeline: String,
    code: String,
    reason: String,
    records: u64,
    /// One of them.
    key: Key,
    remedy: &'static str,
}

/// By pipeline, code and reason: how many, and the first key.
type Counts = BTreeMap<(String, Code, String), (u64, Key)>;

pub async fn reasons(session: &Session, wanted: &ParkedReasons) -> Result<Exit, Trouble> {
    let ledger = session.ledger(Purpose::Read).await?;
    let (mut counts, mut others) = (Counts::new(), 0);
    for pipeline in session.selected(&wanted.selection)? {
        let mut after = None;
        loop {
            let items = page(&ledger, pipeline, ItemFilter::Parked, after, PAGE).await?;
            let Some(last) = items.last() else { break };
            after = Some(ItemCursor(last.key.clone()));
            others +=
                items.into_iter().map(|item| u64::from(!count(&mut counts, item))).sum::<u64>();
        }
    }
    session.out.show(&counted(counts, others, wanted.limit as usize), |counted| {
        if counted.reasons.is_empty() {
            return "nothing is parked\n".to_owned();
        }
        let row = |reason: &Reason| {
            let Reason { pipeline, code, records, .. } = reason;
            let (key, reason) = (plain(reason.key.as_str()), plain(&reason.reason));
            [records.to_string(), pipeline.clone(), code.clone(), key, reason]
        };
        let rows: Vec<_> = counted.reasons.iter().map(row).collect();
        let others = match counted.others {
            0 => String::new(),
            some => format!("and {some} for other reasons: use --limit\n"),
        };
        let told = table(["records", "pipeline", "code", "such as", "reason"], &rows);
        let hint = "once it is mended: `truekeep parked retry --reason TEXT`, or `--code CODE`\n";
        told + &others + hint
    });
    Ok(Exit::Done)
}

/// Whether it could be told apart.
fn count(counts: &mut Counts, item: Item) -> bool {
    let full = counts.len() >= REASONS_MAX;
    let why = (item.scope.pipeline().to_string(), item.code, item.reason);
    if full && !counts.contains_key(&why) {
        return false;
    }
    counts.entry(why).or_insert((0, item.key)).0 += 1;
    true
}

fn counted(counts: Counts, others: u64, limit: usize) -> Counted {
    let reason = |((pipeline, code, reason), (records, key)): (_, _)| Reason {
        pipeline,
        code: Code::to_string(&code),
        reason,
        records,
        key,
        remedy: remedy(&code),
    };
    let mut reasons: Vec<Reason> = counts.into_iter().map(reason).collect();
    // Stable: those that are as common stay in the order of their names.
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.records));
    let left = reasons.split_off(reasons.len().min(limit));
    Counted { reasons, others: others + left.iter().map(|reason| reason.records).sum::<u64>() }
}
