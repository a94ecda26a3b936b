//! `init`: writes a configuration for a database.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::EXAMPLE;
use truekeep::init::propose;

use crate::args::Init;
use crate::output::{Output, plain};

#[derive(Serialize)]
struct Written {
    path: String,
    followed: Vec<String>,
    left_out: Vec<LeftOut>,
}

#[derive(Serialize)]
struct LeftOut {
    table: String,
    reason: String,
}

#[derive(Serialize)]
struct Example {
    example: &'static str,
}

pub async fn init(wanted: &Init, path: &Path, out: Output) -> Result<Exit, Trouble> {
    let Some(url) = &wanted.url else {
        out.show(&Example { example: EXAMPLE }, |shown| shown.example.to_owned());
        return Ok(Exit::Done);
    };
    let shown = path.display().to_string();
    let there = || {
        let message = format!("{shown} is there already, and is not overwritten");
        Trouble::Usage(message, "name another file with `--config PATH`".to_owned())
    };
    if path.exists() {
        return Err(there());
    }
    let proposal = propose(url, path).await?;
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    let written = made.and_then(|mut file| file.write_all(proposal.text.as_bytes()));
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => there(),
        _ => Trouble::File(format!("write {shown}"), error),
    })?;
    let left_out = proposal.left_out.into_iter().map(|(table, reason)| LeftOut { table, reason });
    let answer = Written { path: shown, followed: proposal.followed, left_out: left_out.collect() };
    out.show(&answer, |answer| {
        let mut text = format!("{} written\n", answer.path);
        for table in &answer.followed {
            text += &format!("  follows {}\n", plain(table));
        }
        for left_out in &answer.left_out {
            let (table, reason) = (plain(&left_out.table), plain(&left_out.reason));
            text += &format!("  leaves out {table}: {reason}\n");
        }
        text + "next: `truekeep check`, `truekeep capture install`, `truekeep run`\n"
    });
    Ok(Exit::Done)
}
