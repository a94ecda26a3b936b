//! Where a file, folder or database is: as it is written, and what that stands for.

use std::fmt;
use std::path::{Path, PathBuf};

/// A file or folder. It prints as it is written in the configuration, before substitution.
#[derive(Clone, PartialEq, Eq)]
pub struct Location {
    written: String,
    path: PathBuf,
}

impl Location {
    pub(super) fn new(written: String, path: PathBuf) -> Self {
        Self { written, path }
    }

    /// The path to open.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path by which two spellings of one file are equal, whether the file is there or not.
    pub fn canonical(&self) -> PathBuf {
        if let Ok(path) = self.path.canonicalize() {
            return path;
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok();
        match (folder, self.path.file_name()) {
            (Some(folder), Some(name)) => folder.join(name),
            _ => self.path.clone(),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({:?})", self.written)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// A Postgres database. It prints as it is written in the configuration, before substitution, and
/// never with a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    written: String,
    url: String,
}

impl Address {
    pub(crate) fn new(written: String, url: String) -> Self {
        Self { written: without_password(&written), url }
    }

    /// The address to open.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Server and database, by which two spellings of one are equal as far as can be told without
    /// asking it.
    pub fn canonical(&self) -> String {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        let place = base.rsplit_once('@').map_or(base, |(_, place)| place);
        let (host, name) = place.split_once('/').unwrap_or((place, ""));
        // The colons of an IPv6 address stand in brackets.
        let is_port = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (host, port) =
            host.rsplit_once(':').filter(|(_, port)| is_port(port)).unwrap_or((host, "5432"));
        let told = |key: &str, otherwise| {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.filter(|(own, _)| *own == key).map(|(_, value)| value).next().unwrap_or(otherwise)
        };
        let host = told("host", host).to_ascii_lowercase();
        format!("{host}:{}/{}", told("port", port), told("dbname", name))
    }
}

/// What stands between the user's name and the host is never shown, whatever characters are in it,
/// and nor is a parameter that holds a password.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    // A password may hold what should have been escaped in it: it goes as far as the last `@`.
    let shown = match rest
        .rsplit_once('@')
        .and_then(|(user, place)| Some((user.split_once(':')?.0, place)))
    {
        Some((user, place)) => format!("{user}:..@{place}"),
        None => rest.to_owned(),
    };
    let Some((base, query)) = shown.split_once('?') else { return format!("{scheme}://{shown}") };
    let hidden = query.split('&').map(|pair| match pair.split_once('=') {
        Some((key, _)) if key.ends_with("password") => format!("{key}=.."),
        _ => pair.to_owned(),
    });
    format!("{scheme}://{base}?{}", hidden.collect::<Vec<_>>().join("&"))
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({:?})", self.written)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_prints_without_its_password() {
        for (url, printed) in [
            ("postgres://me:s3cr@db/shop", "postgres://me:..@db/shop"),
            ("postgres://me@db/shop", "postgres://me@db/shop"),
            ("postgres://me:s/3?c:r@4@db/shop", "postgres://me:..@db/shop"),
            (
                "postgres://db/shop?user=me&password=s3cr&sslpassword=t0p",
                "postgres://db/shop?user=me&password=..&sslpassword=..",
            ),
            (
                "postgres://db:5433/shop?sslmode=verify-full",
                "postgres://db:5433/shop?sslmode=verify-full",
            ),
        ] {
            assert_eq!(Address::new(url.into(), url.into()).to_string(), printed);
        }
    }

    #[test]
    fn two_spellings_of_one_database_are_one() {
        let canonical = |url: &str| Address::new(url.into(), url.into()).canonical();
        assert_eq!(canonical("postgres://a:b@DB/shop"), "db:5432/shop");
        assert_eq!(canonical("postgresql://c@db:5432/shop?sslmode=require"), "db:5432/shop");
        assert_eq!(canonical("postgres://[::1]:5433/shop"), "[::1]:5433/shop");
        assert_eq!(canonical("postgres://[::2]/shop"), "[::2]:5432/shop");
        assert_eq!(canonical("postgres:///shop?host=/run/pg&port=5433"), "/run/pg:5433/shop");
    }
}
