//! What every command with a configuration has at hand.

use truekeep::Trouble;
use truekeep::config::{Config, PipelineConfig, nearest};
use truekeep::status::LedgerPorts;
use truekeep::wiring::{Purpose, open_ledger};

use crate::args::Selection;
use crate::output::Output;

/// A configuration, and where answers go.
#[derive(Debug)]
pub struct Session {
    pub config: Config,
    pub out: Output,
}

impl Session {
    /// The pipelines that were named, or all of them.
    pub fn selected(&self, selection: &Selection) -> Result<Vec<&PipelineConfig>, Trouble> {
        if selection.pipelines.is_empty() {
            return Ok(self.config.pipelines.iter().collect());
        }
        selection.pipelines.iter().map(|name| self.named(name)).collect()
    }

    /// The one pipeline that was named, or the only one there is.
    pub fn one(&self, selection: &Selection) -> Result<&PipelineConfig, Trouble> {
        match self.selected(selection)?.as_slice() {
            [one] => Ok(one),
            all => {
                let message = format!("one pipeline is needed, and {} are meant", all.len());
                Err(Trouble::Usage(message, "name it with `--pipeline NAME`".to_owned()))
            }
        }
    }

    pub fn named(&self, name: &str) -> Result<&PipelineConfig, Trouble> {
        self.config.pipeline(name).ok_or_else(|| {
            let known = self.config.pipelines.iter().map(|pipeline| pipeline.name.as_str());
            let message =
                format!("there is no pipeline `{name}` in {}", self.config.path().display());
            Trouble::Usage(message, nearest(name, known))
        })
    }

    pub async fn ledger(&self, purpose: Purpose) -> Result<LedgerPorts, Trouble> {
        Ok(open_ledger(&self.config, purpose).await?)
    }
}
