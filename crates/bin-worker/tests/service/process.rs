//! The worker as a process, with its log.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longer than anything here takes on a slow machine: a test that waits for it fails.
const HANGS: Duration = Duration::from_secs(120);

/// A worker that is killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: Receiver<String>,
    heard: Vec<String>,
}

impl Process {
    pub fn start(config: &Path) -> Self {
        Self::start_with(config, &[])
    }

    pub fn start_with(config: &Path, environment: &[(&str, &str)]) -> Self {
        let mut child = command(config)
            .args(["--log", "json"])
            .envs(environment.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the worker is built");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let (sender, log) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, log, heard: Vec::new() }
    }

    /// The next line of the log with this message; lines before it are kept in `heard`.
    pub fn hear(&mut self, message: &str) -> Value {
        loop {
            let line = self.log.recv_timeout(HANGS);
            let line = line.unwrap_or_else(|_| panic!("no {message:?} in {:#?}", self.heard));
            self.heard.push(line.clone());
            let event: Value = serde_json::from_str(&line).expect("a line of JSON");
            if event["message"] == message {
                return event;
            }
        }
    }

    /// Where it listens.
    pub fn address(&mut self) -> SocketAddr {
        let event = self.hear("listening");
        event["address"].as_str().and_then(|text| text.parse().ok()).expect("an address")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("it is there");
    }

    /// kill -9, and its end is awaited.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it ends");
    }

    /// Its end, and everything that it logged.
    pub fn end(mut self) -> (ExitStatus, String) {
        loop {
            match self.log.recv_timeout(HANGS) {
                Ok(line) => self.heard.push(line),
                Err(error) if self.log.try_recv().is_err() => {
                    let ended = std::sync::mpsc::RecvTimeoutError::Disconnected;
                    assert_eq!(error, ended, "it does not end: {:#?}", self.heard);
                    break;
                }
                Err(_) => {}
            }
        }
        let status = self.child.wait().expect("it ends");
        (status, self.heard.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The worker's program, free of what the tests' own environment says.
pub fn command(config: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_truekeep-worker"));
    command.arg("--config").arg(config).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}
