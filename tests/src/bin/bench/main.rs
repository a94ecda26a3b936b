//! Measures speed and memory as ratios against a bare loop in the same run.
//!
//! `cargo xtask bench [NAME ...] [--rows N]`

#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

mod capture;
mod compare;
mod database;
mod idle;
mod items;
mod load;
mod measure;
mod memory;
mod mirror;
mod postgres;
mod search;

use std::error::Error;

use measure::Figure;

/// Everything that can be measured, by name.
const NAMES: &[&str] =
    &["load", "capture", "compare", "memory", "idle", "items", "search", "mirror", "postgres"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows = 1_000_000;
    let mut names = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--rows" => rows = words.next().ok_or("--rows takes a number")?.parse()?,
            name if NAMES.contains(&name) => names.push(name.to_owned()),
            other => return Err(format!("no measurement {other:?}; known: {NAMES:?}").into()),
        }
    }
    if names.is_empty() {
        names = NAMES.iter().map(|&name| name.to_owned()).collect();
    }
    println!("{rows} rows; {}", measure::machine());
    println!("{}", Figure::HEADING);
    for name in names {
        let figures = match name.as_str() {
            "load" => load::run(rows)?,
            "capture" => capture::run(rows)?,
            "compare" => compare::run(rows)?,
            "items" => items::run(rows)?,
            "memory" => memory::run(rows)?,
            "search" => search::run(rows)?,
            "mirror" => mirror::run(rows)?,
            "postgres" => postgres::run(rows)?,
            _ => idle::run()?,
        };
        for figure in figures {
            println!("{figure}");
        }
    }
    Ok(())
}
