//! `init`: writes a configuration for a database.

use std::path::Path;

use truekeep::Trouble;
use truekeep::codes::Exit;

use crate::args::Init;
use crate::output::Output;

pub async fn init(_wanted: &Init, _path: &Path, _out: Output) -> Result<Exit, Trouble> {
    Ok(Exit::Unexpected)
}
