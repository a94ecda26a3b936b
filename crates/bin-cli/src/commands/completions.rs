//! `completions`: what a shell needs to complete the command line.

use std::io::Write;

use clap::CommandFactory;
use truekeep::Trouble;
use truekeep::codes::Exit;

use crate::args::{Arguments, Completions};

pub fn completions(wanted: &Completions) -> Result<Exit, Trouble> {
    let mut script = Vec::new();
    clap_complete::generate(wanted.shell, &mut Arguments::command(), "truekeep", &mut script);
    let written = std::io::stdout().lock().write_all(&script);
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Trouble::File("write the completions".to_owned(), error))
        }
        _ => Ok(Exit::Done),
    }
}
