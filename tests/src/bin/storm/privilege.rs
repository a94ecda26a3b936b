//! What a storm needs of the machine: root, and a few programs of Debian's.
//!
//! It runs in namespaces of its own: its mounts are seen by nobody else, and when it ends, however
//! it ends, the kernel ends every process in it and takes the mounts and loop devices away.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::Fault;
use crate::disk;
use crate::stop::Stop;

/// The first word of the process inside.
pub const INSIDE: &str = "inside";

/// Each program, with the package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("unshare", "util-linux"),
    ("mount", "mount"),
    ("umount", "mount"),
    ("mkfs.ext4", "e2fsprogs"),
    ("xfs_io", "xfsprogs"),
];

/// How often the storm inside is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs this program again inside; whether it went well.
pub fn enter(words: &[String]) -> Result<bool, Fault> {
    if !rustix::process::geteuid().is_root() {
        let why = "a storm mounts file systems and cuts their power, so it has to be run by root";
        return Err(format!("{why}; nothing was done").into());
    }
    for (program, package) in PROGRAMS {
        if !disk::there(program) {
            return Err(format!("there is no {program} (Debian: apt-get install {package})").into());
        }
    }
    // A Ctrl-C reaches the storm inside too; we wait for its end. SIGTERM reaches only us.
    let stop = Stop::listen()?;
    let mut outer = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(std::env::current_exe()?)
        .arg(INSIDE)
        .args(words)
        .spawn()?;
    let mut told = false;
    loop {
        if let Some(status) = outer.try_wait()? {
            return Ok(status.success());
        }
        if stop.is_asked() && !told {
            told = true;
            for inside in children(outer.id())? {
                kill_process(inside, Signal::TERM)?;
            }
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn children(of: u32) -> Result<Vec<Pid>, Fault> {
    let listed = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children"))?;
    let parsed = listed.split_whitespace().map(str::parse).collect::<Result<Vec<i32>, _>>()?;
    Ok(parsed.into_iter().filter_map(Pid::from_raw).collect())
}
