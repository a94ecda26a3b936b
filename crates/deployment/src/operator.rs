//! What operators decide, by whom and on what they saw.

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Cancelled, PipelineRecord, ProcedureKind, Steer, Steered, Steering};
use truekeep_core::{PipelineName, ScopeId};

use crate::reconcile::Standing;
use crate::status::LedgerPorts;

/// Who decides, and why, as the history tells it.
pub fn by(reason: Option<&str>) -> String {
    let variable = |name| std::env::var(name).ok().filter(|name| !name.trim().is_empty());
    let name = variable("USER").or_else(|| variable("LOGNAME"));
    let name = name.unwrap_or_else(|| format!("user {}", rustix::process::getuid().as_raw()));
    match reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("by {name}: {reason}"),
        None => format!("by {name}"),
    }
}

/// What became of a wish to pause or resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The pipeline as it is now.
    pub record: PipelineRecord,
    /// Whether it was otherwise before.
    pub changed: bool,
}

/// Pauses or resumes a pipeline, as somebody who looks at it now.
///
/// # Errors
/// The ledger's; class Fenced with `OUTPACED` if somebody else decided meanwhile.
pub async fn steer(
    ledger: &LedgerPorts,
    pipeline: &PipelineName,
    to: Steering,
    by: String,
) -> Result<Decided, PortError> {
    const OPERATION: &str = "pause or resume a pipeline";
    let record = ledger.ledger.pipeline(pipeline).await?;
    let seen = record.map(|record| record.revision).unwrap_or_default();
    let steer = Steer { pipeline: pipeline.clone(), to, seen, by };
    match ledger.operations.steer(&steer).await? {
        Steered::Done(record) => Ok(Decided { record, changed: true }),
        Steered::Unchanged(record) => Ok(Decided { record, changed: false }),
        Steered::Outpaced(_) => {
            let error = PortError::new(OPERATION, FailureClass::Fenced, Code::OUTPACED);
            Err(error.detail(pipeline.to_string()))
        }
    }
}

/// What became of a wish to cancel a reconcile.
#[derive(Debug, Clone, PartialEq)]
pub enum CancelAnswer {
    /// It ended with this wish.
    Ended(Standing),
    /// It had ended before: nothing changed.
    Over(Standing),
    /// There was none.
    None,
}

/// Cancels the reconcile of a pipeline that is under way.
///
/// # Errors
/// The ledger's; `PIPELINE_UNKNOWN` for a pipeline that was never announced.
pub async fn cancel(
    ledger: &LedgerPorts,
    pipeline: &PipelineName,
    by: &str,
) -> Result<CancelAnswer, PortError> {
    if ledger.ledger.pipeline(pipeline).await?.is_none() {
        let class = FailureClass::Terminal;
        let error = PortError::new("cancel a reconcile", class, Code::PIPELINE_UNKNOWN);
        return Err(error.detail(format!("the ledger does not know {pipeline}")));
    }
    let scope = ScopeId::whole(pipeline.clone());
    let Some(run) = ledger.ledger.load(&scope, ProcedureKind::Reconcile).await? else {
        return Ok(CancelAnswer::None);
    };
    Ok(match ledger.operations.cancel(&scope, &run.id, by).await? {
        Cancelled::Ended(run) => CancelAnswer::Ended(Standing::of(&run)?),
        Cancelled::Over(run) => CancelAnswer::Over(Standing::of(&run)?),
        Cancelled::Perpetual | Cancelled::Unknown => CancelAnswer::None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_says_who_and_why() {
        let name = by(None);
        assert!(name.starts_with("by ") && name.len() > 3, "{name}");
        assert_eq!(by(Some(" for the night ")), format!("{name}: for the night"));
        assert_eq!(by(Some(" ")), name);
    }
}
