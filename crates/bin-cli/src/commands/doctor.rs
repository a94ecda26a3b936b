//! `doctor`: what the deployment stands on, and then all that `check` looks at. Makes nothing.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::doctor::examine;
use truekeep::wiring::Purpose;

use crate::args::Selection;
use crate::commands::check::{examined, exit};
use crate::commands::finding::Finding;
use crate::session::Session;

#[derive(Serialize)]
struct Examined {
    ok: bool,
    findings: Vec<Finding>,
}

pub async fn doctor(session: &Session) -> Result<Exit, Trouble> {
    // A ledger that cannot be opened is a finding of the check.
    let ledger = session.ledger(Purpose::Read).await.ok();
    let signs = examine(&session.config, ledger.as_ref()).await;
    let mut findings: Vec<_> = signs.into_iter().map(|sign| Finding::of(session, sign)).collect();
    findings.extend(examined(session, &Selection { pipelines: Vec::new() }).await?);
    let exit = exit(&findings);
    let examined = Examined { ok: exit == Exit::Done, findings };
    session.out.show(&examined, |all| all.findings.iter().map(Finding::words).collect());
    Ok(exit)
}
