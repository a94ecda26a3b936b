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
        let told = |key: &str| {
            let of_key = |pair: &'_ str| {
                pair.split_once('=')
                    .filter(|(own, _)| *own == key)
                    .map(|(_, value)| value.to_owned())
            };
            query.split('&').find_map(of_key)
        };
        let host =
            told("host").unwrap_or_else(|| host.split(':').next().unwrap_or_default().to_owned());
        let port = told("port")
            .or_else(|| place.split('/').next()?.rsplit_once(':').map(|(_, port)| port.to_owned()));
        let name = told("dbname").unwrap_or_else(|| name.to_owned());
        format!("{}:{}/{name}", host.to_ascii_lowercase(), port.unwrap_or_else(|| "5432".into()))
    }
}

/// What stands between the user's name and the host is never shown.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let base = rest.split(['/', '?']).next().unwrap_or(rest);
    match base.rsplit_once('@').and_then(|(user, _)| user.split_once(':')) {
        Some((user, password)) => {
            let hidden = rest.replacen(&format!("{user}:{password}@"), &format!("{user}:..@"), 1);
            format!("{scheme}://{hidden}")
        }
        None => url.to_owned(),
    }
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
        assert_eq!(canonical("postgres:///shop?host=/run/pg&port=5433"), "/run/pg:5433/shop");
    }
}
