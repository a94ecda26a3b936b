//! Makes the example database of the world's cities, and changes it as an application would.
//!
//! It knows nothing of truekeep: it is the application.

#![expect(clippy::print_stdout, reason = "a program that tells what it did")]

use std::error::Error;
use std::io::Read;
use std::path::Path;

use rusqlite::{Connection, params};

const CITIES: &[u8] = include_bytes!("../cities.tsv.gz");
const NAMES: &[u8] = include_bytes!("../names.tsv.gz");
const COUNTRIES: &str = include_str!("../countries.tsv");
const SCHEMA: &str = include_str!("../schema.sql");

const USAGE: &str = "usage: cities make DATABASE      makes the database
       cities change DATABASE    changes it: renames, deletes, moves, one large transaction
       cities damage MIRROR      damages a mirror of it, as nobody should";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["make", path] => make(Path::new(path)),
        ["change", path] => change(&open(path)?),
        ["damage", path] => damage(&open(path)?),
        _ => Err(USAGE.into()),
    }
}

fn open(path: &str) -> Result<Connection, Box<dyn Error>> {
    let db = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(std::time::Duration::from_secs(10))?;
    db.pragma_update(None, "foreign_keys", true)?;
    Ok(db)
}

fn make(path: &Path) -> Result<(), Box<dyn Error>> {
    if path.exists() {
        return Err(format!("{} is there already", path.display()).into());
    }
    let mut db = Connection::open(path)?;
    db.pragma_update(None, "journal_mode", "wal")?;
    let all = db.transaction()?;
    all.execute_batch(SCHEMA)?;
    let countries = fill(&all, "INSERT INTO country VALUES (?, ?)", COUNTRIES)?;
    let cities = fill(&all, "INSERT INTO city VALUES (?, ?, ?, ?, ?, ?, ?)", &unpack(CITIES)?)?;
    let names = fill(&all, "INSERT INTO city_name VALUES (?, ?)", &unpack(NAMES)?)?;
    all.commit()?;
    println!("made {}: {cities} cities, {names} names, {countries} countries", path.display());
    Ok(())
}

fn unpack(packed: &[u8]) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text)?;
    Ok(text)
}

fn fill(db: &Connection, insert: &str, lines: &str) -> Result<usize, Box<dyn Error>> {
    let mut insert = db.prepare(insert)?;
    let mut rows = 0;
    for line in lines.lines().skip(1) {
        insert.execute(rusqlite::params_from_iter(line.split('\t')))?;
        rows += 1;
    }
    Ok(rows)
}

fn change(db: &Connection) -> Result<(), Box<dyn Error>> {
    let renamed = db.execute("UPDATE city SET name = 'Lutetia' WHERE name = 'Paris'", [])?;
    let deleted = db.execute("DELETE FROM city WHERE population < 1000", [])?;
    let dropped = db.execute("DELETE FROM city_name WHERE name GLOB 'A*'", [])?;
    let moved = db.execute("UPDATE city SET id = -id WHERE country = 'IS'", [])?;
    let grown =
        db.execute("UPDATE city SET population = population + 1 WHERE country = 'IN'", [])?;
    db.execute("UPDATE country SET name = ? WHERE code = ?", params!["Nippon", "JP"])?;
    println!(
        "changed: {renamed} cities renamed, {deleted} deleted, {dropped} names dropped, \
         {moved} ids changed, {grown} populations, 1 country renamed"
    );
    Ok(())
}

fn damage(db: &Connection) -> Result<(), Box<dyn Error>> {
    let lost = db.execute("DELETE FROM cities WHERE _key IN ('2643743', '5128581')", [])?;
    let aged =
        db.execute("UPDATE cities SET _version = _version - 1 WHERE _key = '1850147'", [])?;
    let strange = db.execute(
        "INSERT INTO cities (_key, document, _rules, _version) VALUES ('42', '{}', 1, 1)",
        [],
    )?;
    println!("damaged: {lost} records lost, {aged} made older, {strange} made up");
    Ok(())
}
