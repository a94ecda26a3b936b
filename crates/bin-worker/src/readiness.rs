//! Whether a pipeline is being worked on: by this process, or by another one that is alive.

use std::time::Duration;

use truekeep::status::Known;
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;
use truekeep_core::follow::Phase;

use crate::board::{Ailment, Condition, Facts};

/// A scope of which nothing is heard for longer, though something is due, hangs. An idle scope is
/// heard each second, and pages adapt to take less than one.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// Why nobody works on a pipeline, or `None` if somebody does.
///
/// `ttl` is the longest that a lease may run; `now` is by the clock of the facts.
pub fn unready(
    facts: &Facts,
    known: &Result<Known, PortError>,
    ttl: Duration,
    now: Duration,
) -> Option<Ailment> {
    match &facts.condition {
        Condition::Halted(ailment) => return Some(ailment.clone()),
        // Whoever replaces workers one by one must stop here: the last that works goes by other
        // rules than this one.
        Condition::Troubled(ailment) if ailment.code == Code::RULES_CHANGED => {
            return Some(ailment.clone());
        }
        Condition::Troubled(_)
        | Condition::Seeking
        | Condition::Working
        | Condition::Waiting
        | Condition::Paused => {}
    }
    let known = match known {
        Ok(known) => known,
        Err(error) => return Some(Ailment { code: error.code.clone(), text: error.chain() }),
    };
    match known.closed() {
        // Nobody is to work on it.
        Some(code) if code == Code::PIPELINE_PAUSED => return None,
        Some(code) => return Some(Ailment { code, text: String::new() }),
        None => {}
    }
    if let Some(Phase::Halted(halted)) = &known.phase {
        let health = known.run.as_ref().map(|run| run.health.text.clone());
        return Some(Ailment { code: halted.code.clone(), text: health.unwrap_or_default() });
    }
    let idle = |text: &str| Ailment { code: Code::NOT_WORKED_ON, text: text.to_owned() };
    let Some(lease) = known.holder(ttl) else {
        return Some(facts.ailment().cloned().unwrap_or_else(|| idle("no worker has the lease")));
    };
    let ours = facts.fence == Some(lease.fence);
    let silent = ours && facts.silence(now) > SILENCE_MAX;
    silent.then(|| idle(&format!("no turn has ended for {} s", facts.silence(now).as_secs())))
}

#[cfg(test)]
mod tests;
