//! `migrate`: brings the ledger's schema up to this program's.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::wiring::migrate_ledger;

use crate::session::Session;

#[derive(Serialize)]
struct Migrated {
    before: Option<u32>,
    after: Option<u32>,
}

pub async fn migrate(session: &Session) -> Result<Exit, Trouble> {
    let report = migrate_ledger(&session.config).await?;
    let migrated =
        Migrated { before: report.map(|report| report.before), after: report.map(|r| r.after) };
    session.out.show(&migrated, |migrated| match (migrated.before, migrated.after) {
        (Some(0), Some(after)) => format!("ledger made, schema version {after}"),
        (Some(before), Some(after)) if before == after => {
            format!("ledger is up to date, schema version {after}")
        }
        (Some(before), Some(after)) => format!("ledger migrated from version {before} to {after}"),
        _ => "the ledger is in memory: there is nothing to migrate".to_owned(),
    });
    Ok(Exit::Done)
}
