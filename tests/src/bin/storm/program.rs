//! The real programs as processes, with their logs.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::Fault;
use crate::writer::Orders;

/// Where a program is: beside this one.
pub fn beside(name: &str) -> Result<PathBuf, Fault> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(format!("{} is not built; run `cargo xtask storm`, which builds it", path.display()).into())
}

/// A process that is killed when it is dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts the application.
    pub fn application(orders: &Orders) -> Result<Self, Fault> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(crate::WRITE).args(orders.words()).stdin(Stdio::null());
        Ok(Self(command.spawn()?))
    }

    /// kill -9, and its end is awaited.
    pub fn kill(&mut self) -> Result<(), Fault> {
        // One that has ended already cannot be killed.
        let _ = self.0.kill();
        self.0.wait()?;
        Ok(())
    }

    /// Whether it has ended by itself, and how.
    pub fn ended(&mut self) -> Result<Option<String>, Fault> {
        Ok(self.0.try_wait()?.map(|status| status.to_string()))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Result<(), Fault> {
        Ok(kill_process(Pid::from_child(&self.0), signal)?)
    }

    /// Sends a signal after a while, whatever the caller is held up by until then. The process must
    /// not be killed before the answer is joined.
    pub fn signal_after(
        &self,
        time: Duration,
        signal: Signal,
    ) -> JoinHandle<rustix::io::Result<()>> {
        let process = Pid::from_child(&self.0);
        std::thread::spawn(move || {
            std::thread::sleep(time);
            kill_process(process, signal)
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// A line of a worker's log.
#[derive(Debug)]
pub struct Event {
    /// When it was heard.
    pub at: Instant,
    /// The line.
    pub line: Value,
}

impl Event {
    /// What it is about.
    pub fn message(&self) -> &str {
        self.line["message"].as_str().unwrap_or_default()
    }

    /// The code that it carries.
    pub fn code(&self) -> Option<&str> {
        self.line["code"].as_str()
    }
}

/// A worker.
#[derive(Debug)]
pub struct Worker {
    /// The process.
    pub process: Process,
    /// Whether it has the lease, as far as its log says.
    pub holds: bool,
    /// Whether it is stopped.
    pub paused: bool,
    log: Receiver<Event>,
}

impl Worker {
    /// Starts one; its log is added to a file too.
    pub fn start(config: &Path, log: &Path, environment: &[(&str, &str)]) -> Result<Self, Fault> {
        let mut child = Command::new(beside("truekeep-worker")?)
            .arg("--config")
            .arg(config)
            .args(["--log", "json", "--log-level", "info,truekeep_worker=debug"])
            .env_remove("RUST_LOG")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stderr.take().ok_or("no log")?).lines();
        let mut file = File::options().create(true).append(true).open(log)?;
        let pid = child.id();
        let (sender, log) = channel();
        std::thread::spawn(move || {
            for text in lines.map_while(Result::ok) {
                // The file is for people; without it the storm goes on.
                let _ = writeln!(file, "{pid} {text}");
                let line = serde_json::from_str(&text).unwrap_or(Value::String(text));
                if sender.send(Event { at: Instant::now(), line }).is_err() {
                    break;
                }
            }
        });
        Ok(Self { process: Process(child), holds: false, paused: false, log })
    }

    /// What it has logged since the last time.
    pub fn events(&mut self) -> Vec<Event> {
        let events: Vec<_> = self.log.try_iter().collect();
        for event in &events {
            match event.message() {
                "lease taken" => self.holds = true,
                "lease lost" | "lease given back" | "another worker has the lease" => {
                    self.holds = false;
                }
                _ => {}
            }
        }
        events
    }
}

/// Runs the command line.
pub fn truekeep(config: &Path, words: &[&str]) -> Result<Output, Fault> {
    let mut command = Command::new(beside("truekeep")?);
    command.arg("--config").arg(config).args(["--format", "json"]).args(words);
    Ok(command.stdin(Stdio::null()).output()?)
}
