//! The peak of a process's anonymous memory, each procedure in a process of its own.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::compare::{self, Kind};
use crate::measure::{Bar, Figure, status_bytes};
use crate::{database, load};

/// Set in the process that is measured: the folder it works in.
const FOLDER: &str = "TRUEKEEP_BENCH_FOLDER";
/// Set in the process that is measured: what it does.
const PROCEDURE: &str = "TRUEKEEP_BENCH_PROCEDURE";

/// What is measured, in this order over the same files.
const PROCEDURES: [&str; 2] = ["install, fill and load", "diff with audit"];

/// Works in child processes and reads the peaks they report.
pub fn run(rows: u64) -> Result<Vec<Figure>, Box<dyn Error>> {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return child(folder.as_ref(), &std::env::var(PROCEDURE)?);
    }
    let mut figures = Vec::new();
    for rows in [rows / 10, rows] {
        let folder = tempfile::tempdir()?;
        database::make(&database::files(folder.path())[0], rows)?;
        for procedure in PROCEDURES {
            let output = Command::new(std::env::current_exe()?)
                .args(["memory", "--rows", "1"])
                .env(FOLDER, folder.path())
                .env(PROCEDURE, procedure)
                .output()?;
            let text = String::from_utf8(output.stdout)?;
            let peak = text
                .lines()
                .find_map(|line| line.strip_prefix("| peak | "))
                .and_then(|rest| rest.split(' ').next())
                .ok_or_else(|| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))?;
            let name = format!("peak RssAnon of {procedure}, {rows} rows");
            figures.push(Figure::alone(&name, peak.parse()?, "MB", Bar::AtMost(64.0)));
        }
    }
    Ok(figures)
}

fn child(folder: &Path, procedure: &str) -> Result<Vec<Figure>, Box<dyn Error>> {
    let (peak, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (sampled, ended) = (Arc::clone(&peak), Arc::clone(&done));
    let sampler = std::thread::spawn(move || {
        while !ended.load(Ordering::Relaxed) {
            sampled.fetch_max(status_bytes("RssAnon"), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let [source, mirror, ledger] = database::files(folder);
    database::runtime()?.block_on(async {
        let port = database::source(&source).await?;
        if procedure == PROCEDURES[0] {
            database::capture(&port).await?;
            load::follow(&port, &mirror, &ledger).await
        } else {
            compare::whole(&port, database::mirror(&mirror).await?, &ledger, Kind::Audited).await
        }
    })?;
    done.store(true, Ordering::Relaxed);
    sampler.join().map_err(|_| "the sampler broke")?;
    let megabytes = peak.load(Ordering::Relaxed) as f64 / f64::from(1 << 20);
    Ok(vec![Figure::alone("peak", megabytes, "MB", Bar::Stated)])
}
