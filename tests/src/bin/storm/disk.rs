//! A file system of its own in a file, whose power can be cut and whose room can be taken.
//!
//! One store per disk: a sync of one file of a file system writes the others' journal too, and
//! would make durable what nobody synced.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Fault;

/// The file that takes a disk's room.
const BALLAST: &str = "ballast";

/// A mounted file system. It is unmounted when it is dropped, and at the latest when the process
/// ends, as the mount is seen by it and its children only.
#[derive(Debug)]
pub struct Disk {
    image: PathBuf,
    mount: PathBuf,
}

impl Disk {
    /// Makes and mounts a file system of so many MB.
    pub fn new(image: PathBuf, mount: PathBuf, megabytes: u64) -> Result<Self, Fault> {
        std::fs::create_dir_all(&mount)?;
        File::create(&image)?.set_len(megabytes << 20)?;
        run(Command::new("mkfs.ext4").args(["-q", "-F", "-b", "4096"]).arg(&image))?;
        let disk = Self { image, mount };
        disk.mount()?;
        Ok(disk)
    }

    /// Cuts the power: what is not on the disk is gone, and nothing works until it is mounted again.
    pub fn cut(&self) -> Result<(), Fault> {
        run(Command::new("xfs_io").args(["-x", "-c", "shutdown"]).arg(&self.mount))
    }

    /// Power is back. No process may have a file of it open.
    pub fn again(&self) -> Result<(), Fault> {
        run(Command::new("umount").arg(&self.mount))?;
        self.mount()
    }

    /// Takes all the room there is.
    pub fn fill(&self) -> Result<(), Fault> {
        let mut ballast = File::create(self.mount.join(BALLAST))?;
        let mut piece = vec![0xA5; 1 << 20];
        // Smaller and smaller pieces, down to a block.
        while piece.len() >= 4096 {
            if ballast.write_all(&piece).and_then(|()| ballast.sync_all()).is_err() {
                piece.truncate(piece.len() / 2);
            }
        }
        Ok(())
    }

    /// Gives the room back.
    pub fn make_room(&self) -> Result<(), Fault> {
        Ok(std::fs::remove_file(self.mount.join(BALLAST))?)
    }

    fn mount(&self) -> Result<(), Fault> {
        run(Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.mount))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A disk whose mounting failed is not mounted. Lazily: whoever has a file of it open is a
        // process of ours, and ends too.
        let _ = run(Command::new("umount").arg("--lazy").arg(&self.mount));
        let _ = std::fs::remove_file(&self.image);
    }
}

/// Runs a program; what it says is told only if it fails.
pub fn run(command: &mut Command) -> Result<(), Fault> {
    let output =
        command.output().map_err(|error| format!("failed to start {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("failed to run {command:?}: {}: {said}", output.status).into())
}

/// Whether a program can be found.
pub fn there(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder: PathBuf| Path::new(&folder).join(program).is_file())
}
