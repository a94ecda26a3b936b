//! The servers that tests talk to: there, or installed where that can be done without asking.
//!
//! Postgres is looked for where the tests look for it. As root on a Debian it is installed; elsewhere
//! the error says what to do.

use std::path::Path;
use std::process::Command;

use crate::error::TaskError;

/// The programs a test needs of Postgres.
const PROGRAMS: &[&str] = &["initdb", "postgres"];

/// Debian's packages. The pooler is tested with too.
const PACKAGES: &[&str] = &["postgresql", "pgbouncer"];

/// Keeps Debian's packages from starting servers of their own while it is there.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// See the module.
///
/// # Errors
/// What is missing and cannot be installed, and how to install it.
pub fn run() -> Result<(), TaskError> {
    if std::env::var_os("TRUEKEEP_TEST_POSTGRES").is_some() || (is_installed() && has_pooler()) {
        return Ok(());
    }
    if !can_install() {
        if is_installed() {
            return Ok(());
        }
        return Err(TaskError::Missing(
            "Postgres: install its server so that `initdb` and `postgres` are in the path, or name a superuser's \
             address of a running one in TRUEKEEP_TEST_POSTGRES",
        ));
    }
    let policy = !Path::new(POLICY).exists();
    if policy {
        write_policy()?;
    }
    let done = apt(&["update"]).and_then(|()| {
        let mut words = vec!["install", "--yes", "--no-install-recommends"];
        words.extend(PACKAGES);
        apt(&words)
    });
    if policy {
        // What is left behind would keep other packages from starting.
        std::fs::remove_file(POLICY)
            .map_err(|source| TaskError::Write { path: POLICY.into(), source })?;
    }
    done
}

fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    std::env::split_paths(&path)
        .chain(versions.map(|version| version.path().join("bin")))
        .any(|folder| PROGRAMS.iter().all(|program| folder.join(program).is_file()))
}

fn has_pooler() -> bool {
    ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].iter().any(|path| Path::new(path).is_file())
}

/// Root, on a Debian.
fn can_install() -> bool {
    let user = Command::new("id").arg("-u").output().map(|output| output.stdout);
    Path::new("/etc/debian_version").exists() && user.is_ok_and(|user| user.trim_ascii() == b"0")
}

fn write_policy() -> Result<(), TaskError> {
    let failed = |source| TaskError::Write { path: POLICY.into(), source };
    std::fs::write(POLICY, "#!/bin/sh\nexit 101\n").map_err(failed)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(POLICY, mode).map_err(failed)
}

fn apt(words: &[&str]) -> Result<(), TaskError> {
    let name = || format!("apt-get {}", words.join(" "));
    let mut command = Command::new("apt-get");
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    let status = command.status().map_err(|source| TaskError::Start { command: name(), source })?;
    if status.success() { Ok(()) } else { Err(TaskError::Exit { command: name(), status }) }
}
