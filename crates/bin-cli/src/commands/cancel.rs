//! `cancel`: ends the reconcile or rebuild that is under way. Needs the ledger only.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::operator::{self, CancelAnswer};
use truekeep::reconcile::Standing;
use truekeep::wiring::Purpose;
use truekeep_core::code::Code;

use crate::args::{Cancel, Effort};
use crate::session::Session;

#[derive(Serialize)]
struct Cancelled {
    /// Whether it went on before.
    changed: bool,
    #[serde(flatten)]
    standing: Standing,
}

pub async fn cancel(session: &Session, wanted: &Cancel) -> Result<Exit, Trouble> {
    let name = &session.named(&wanted.pipeline)?.name;
    if wanted.run == Effort::Follow {
        let message = format!("following `{name}` has no end that could be cancelled");
        let hint = format!(
            "`truekeep pause {name}` ends it until it is resumed, `truekeep remove {name}` for good"
        );
        return Err(Trouble::Usage(message, hint));
    }
    let ledger = session.ledger(Purpose::Read).await?;
    let by = operator::by(wanted.reason.reason.as_deref());
    let cancelled = match operator::cancel(&ledger, name, &by).await? {
        CancelAnswer::Ended(standing) => Cancelled { changed: true, standing },
        CancelAnswer::Over(standing) if standing.code == Some(Code::CANCELLED) => {
            Cancelled { changed: false, standing }
        }
        CancelAnswer::Over(_) | CancelAnswer::None => {
            let message = format!("no reconcile of `{name}` is under way");
            let hint = format!("`truekeep history -p {name}` tells how the last one ended");
            return Err(Trouble::Usage(message, hint));
        }
    };
    session.out.show(&cancelled, words);
    Ok(Exit::Done)
}

fn words(cancelled: &Cancelled) -> String {
    let Cancelled { changed, standing: Standing { pipeline, phase, report, .. } } = cancelled;
    if !changed {
        return format!("{pipeline}: the last reconcile was cancelled already");
    }
    let doubt = if report.clean() {
        "it had found nothing: the certificate stays as it is"
    } else {
        "what it had found stays in doubt until a `truekeep reconcile` ends well"
    };
    format!("{pipeline}: reconcile cancelled, {phase}: {report}\n{doubt}")
}
