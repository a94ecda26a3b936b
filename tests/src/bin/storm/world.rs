//! A source, a ledger and a sink, each on a disk of its own; workers and an application; and the
//! law, which is held against all of it whenever something is waited for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::Fault;
use crate::disk::Disk;
use crate::draws::Draws;
use crate::law::{Claim, Law};
use crate::program::{Event, Process, Worker, truekeep};
use crate::sink::Sink;
use crate::stop::Stop;
use crate::tally::Tally;
use crate::writer::{self, Keeping, Orders};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(25);

/// The lease: short, so that a storm sees many ends of it.
pub const LEASE: Duration = Duration::from_secs(2);

/// Longer than anything takes: what is waited for longer does not come.
pub const DEADLINE: Duration = Duration::from_secs(150);

/// What a world is made of.
#[derive(Debug)]
pub struct Plan {
    /// The kind of sink.
    pub sink: Box<dyn Sink>,
    /// How the application keeps its database.
    pub keeping: Keeping,
    /// Megabytes of the three disks; none: folders.
    pub disks: Option<[u64; 3]>,
    /// Rows of a page.
    pub page_rows: u64,
    /// Bytes of the application's longest text.
    pub body_max: u64,
    /// More lines of the pipeline.
    pub pipeline: &'static str,
}

/// The three stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Store {
    /// The application's database.
    Source,
    /// The worker's own memory.
    Ledger,
    /// What is kept true.
    Sink,
}

impl Store {
    /// Every one, in the order of their disks.
    pub const ALL: [Self; 3] = [Self::Source, Self::Ledger, Self::Sink];

    /// The name of its folder.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Ledger => "ledger",
            Self::Sink => "sink",
        }
    }
}

/// A world.
#[derive(Debug)]
pub struct World<'s> {
    /// What it was made of.
    pub plan: Plan,
    /// Its draws.
    pub draws: Draws,
    /// What was done to it.
    pub tally: Tally,
    /// What it has to keep.
    pub law: Law,
    /// The workers, each with its log.
    pub workers: Vec<Worker>,
    /// Codes that workers told since they were last cleared.
    pub codes: BTreeSet<String>,
    folder: PathBuf,
    disks: Vec<Disk>,
    application: Option<Process>,
    killed_at: Option<Instant>,
    stop: &'s Stop,
}

impl<'s> World<'s> {
    /// Makes it in an empty folder: the application's tables, the configuration, capture.
    pub fn new(folder: PathBuf, plan: Plan, draws: Draws, stop: &'s Stop) -> Result<Self, Fault> {
        let mut disks = Vec::new();
        for (at, store) in Store::ALL.into_iter().enumerate() {
            let mount = folder.join(store.folder());
            match plan.disks {
                Some(megabytes) => {
                    let image = folder.join(format!("{}.img", store.folder()));
                    disks.push(Disk::new(image, mount, megabytes[at])?);
                }
                None => std::fs::create_dir_all(mount)?,
            }
        }
        let world = Self {
            plan,
            draws,
            tally: Tally::default(),
            law: Law::default(),
            workers: Vec::new(),
            codes: BTreeSet::new(),
            folder,
            disks,
            application: None,
            killed_at: None,
            stop,
        };
        std::fs::write(world.config(), world.configuration())?;
        writer::make(&world.source(), world.plan.keeping)?;
        world.operator(&["capture", "install"], 0)?;
        Ok(world)
    }

    fn configuration(&self) -> String {
        format!(
            "[ledger]\nurl = \"sqlite:ledger/truekeep.db\"\n\
             [source.things]\nurl = \"sqlite:source/source.db\"\n\
             [sink.things]\n{}\
             [pipeline.things]\nsource = \"things\"\ntable = \"things\"\nkey = \"id\"\nsink = \"things\"\n\
             document = [\"id\", \"code\", \"body\", \"size\"]\npage_rows = {}\n{}\
             [worker]\nlease = \"{} s\"\nlisten = \"127.0.0.1:0\"\n",
            self.plan.sink.config(),
            self.plan.page_rows,
            self.plan.pipeline,
            LEASE.as_secs(),
        )
    }

    /// The configuration.
    pub fn config(&self) -> PathBuf {
        self.folder.join("truekeep.toml")
    }

    /// Where the logs are added.
    pub fn log(&self) -> PathBuf {
        self.folder.join("workers.log")
    }

    /// A path in the world's folder, which is on none of its disks.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder of a store.
    pub fn at(&self, store: Store) -> PathBuf {
        self.folder.join(store.folder())
    }

    /// The application's database.
    pub fn source(&self) -> PathBuf {
        self.at(Store::Source).join("source.db")
    }

    /// The ledger.
    pub fn ledger(&self) -> PathBuf {
        self.at(Store::Ledger).join("truekeep.db")
    }

    /// The disk of a store.
    pub fn disk(&self, store: Store) -> Result<&Disk, Fault> {
        let at = Store::ALL.iter().position(|one| *one == store);
        at.and_then(|at| self.disks.get(at)).ok_or_else(|| "this world has no disks".into())
    }

    /// Runs the command line; another exit code than this is a failure.
    pub fn operator(&self, words: &[&str], code: i32) -> Result<(), Fault> {
        let output = truekeep(&self.config(), words)?;
        if output.status.code() == Some(code) {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + String::from_utf8_lossy(&output.stderr).trim();
        Err(format!("truekeep {}: {}, not {code}: {said}", words.join(" "), output.status).into())
    }

    /// What the certificate says now; nothing where the ledger cannot be read.
    pub fn claim(&self) -> Result<Claim, Fault> {
        let output = truekeep(&self.config(), &["coverage"])?;
        Ok(crate::claim::parse(&output.stdout))
    }

    /// Starts a worker.
    pub fn start_worker(&mut self, environment: &[(&str, &str)]) -> Result<(), Fault> {
        self.workers.push(Worker::start(&self.config(), &self.log(), environment)?);
        Ok(())
    }

    /// Starts the application.
    pub fn start_application(&mut self) -> Result<(), Fault> {
        let orders = Orders {
            database: self.source(),
            notes: self.notes(),
            keeping: self.plan.keeping,
            body_max: self.plan.body_max,
            seed: self.draws.next(),
        };
        self.application = Some(Process::application(&orders)?);
        Ok(())
    }

    /// What the application noted.
    pub fn notes(&self) -> PathBuf {
        self.folder.join("notes")
    }

    /// kill -9 for the application.
    pub fn kill_application(&mut self) -> Result<(), Fault> {
        if let Some(mut application) = self.application.take() {
            application.kill()?;
            self.tally.kills += 1;
        }
        Ok(())
    }

    /// kill -9 for a worker. If it held the lease, the time to the next delivery counts from here.
    pub fn kill_worker(&mut self, at: usize) -> Result<(), Fault> {
        self.listen();
        let mut worker = self.workers.remove(at);
        let held = worker.holds && !worker.paused;
        worker.process.kill()?;
        self.tally.kills += 1;
        if held && !self.workers.is_empty() {
            self.killed_at = Some(Instant::now());
        }
        Ok(())
    }

    /// kill -9 for everybody.
    pub fn kill_all(&mut self) -> Result<(), Fault> {
        while !self.workers.is_empty() {
            self.kill_worker(self.workers.len() - 1)?;
        }
        self.killed_at = None;
        self.kill_application()
    }

    /// Stops every process where it is.
    pub fn freeze(&self) -> Result<(), Fault> {
        let workers = self.workers.iter().map(|worker| &worker.process);
        for process in workers.chain(&self.application) {
            process.signal(Signal::STOP)?;
        }
        Ok(())
    }

    /// Hears what the workers logged.
    pub fn listen(&mut self) {
        let mut events: Vec<Event> = Vec::new();
        for worker in &mut self.workers {
            events.extend(worker.events());
        }
        for event in events {
            self.codes.extend(event.code().map(str::to_owned));
            if event.message() == "delivered" {
                self.tally.records += event.line["records"].as_u64().unwrap_or(0);
                let after = |at: &mut Instant| event.at > *at;
                if let Some(killed) = self.killed_at.take_if(after) {
                    self.tally.takeovers.push(event.at - killed);
                }
            }
        }
    }

    /// Looks once: the certificate first, then the sink, then the source.
    pub fn look(&mut self) -> Result<Claim, Fault> {
        self.stop.asked()?;
        self.listen();
        let claim = self.claim()?;
        let held = self.plan.sink.held(&self.at(Store::Sink))?;
        let truth = writer::truth(&self.source())?;
        self.law.judge(&claim, &held, &truth, Instant::now());
        if let Some(lie) = self.law.lies.first() {
            return Err(format!("a lie: {lie} (and {} more)", self.law.lies.len() - 1).into());
        }
        Ok(claim)
    }

    /// Lets the world be for a while, and looks all along.
    pub fn live(&mut self, time: Duration) -> Result<(), Fault> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.look()?;
            std::thread::sleep(PAUSE.min(end.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }

    /// Looks until something is so.
    pub fn until(
        &mut self,
        what: &str,
        mut so: impl FnMut(&mut Self, &Claim) -> Result<bool, Fault>,
    ) -> Result<(), Fault> {
        let end = Instant::now() + DEADLINE;
        loop {
            let claim = self.look()?;
            if so(self, &claim)? {
                return Ok(());
            }
            if Instant::now() > end {
                let codes = &self.codes;
                return Err(format!("waited in vain: {what}; {claim:?}; told: {codes:?}").into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until the certificate is complete at all that the source has at the beginning.
    pub fn until_certified(&mut self) -> Result<(), Fault> {
        let newest = writer::truth(&self.source())?.newest;
        self.until("complete at what the source had", |_, claim| {
            Ok(claim.covers().is_some_and(|moment| moment >= newest))
        })
    }

    /// Waits until the certificate is complete at all that the source has.
    pub fn until_complete(&mut self) -> Result<(), Fault> {
        self.until("complete at what the source has now", |world, claim| {
            let newest = writer::truth(&world.source())?.newest;
            Ok(claim.covers().is_some_and(|moment| moment >= newest))
        })
    }

    /// The end of a round: the application stops, and both sides are equal, certified and sound.
    pub fn settle(&mut self) -> Result<(), Fault> {
        self.kill_application()?;
        writer::decide(&self.source())?;
        if self.workers.is_empty() {
            self.start_worker(&[])?;
        }
        self.until_complete()?;
        self.kill_all()?;
        let held = self.plan.sink.held(&self.at(Store::Sink))?;
        let differences = writer::truth(&self.source())?.differences(&held);
        if let Some(first) = differences.first() {
            return Err(format!("{} differences, as {first}", differences.len()).into());
        }
        self.operator(&["diff"], 0)?;
        self.operator(&["coverage"], 0)?;
        self.verify()?;
        self.count();
        Ok(())
    }

    /// Whether every file is sound.
    pub fn verify(&self) -> Result<(), Fault> {
        crate::database::verify(&self.source())?;
        crate::database::verify(&self.ledger())?;
        self.plan.sink.verify(&self.at(Store::Sink))
    }

    /// Adds what the law has seen to the counts.
    pub fn count(&mut self) {
        self.listen();
        self.tally.checks = self.law.checks;
        self.tally.moments = self.law.moments.len() as u64;
        self.tally.lies = self.law.lies.len() as u64;
    }

    /// Ends every process and copies what a person looks at after a failure.
    pub fn keep(&mut self, to: &Path) -> Result<(), Fault> {
        self.kill_all()?;
        std::fs::create_dir_all(to)?;
        std::fs::copy(self.config(), to.join("truekeep.toml"))?;
        std::fs::copy(self.log(), to.join("workers.log"))?;
        for store in Store::ALL {
            copy_all(&self.at(store), &to.join(store.folder()))?;
        }
        Ok(())
    }
}

/// Copies the files of a folder and of those in it.
fn copy_all(from: &Path, to: &Path) -> Result<(), Fault> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        } else if kind.is_dir() {
            copy_all(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
