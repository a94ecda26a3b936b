//! What a deployment stands on: whether its files can be written, who holds them, how much room is
//! left, and whether clocks agree. Makes nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rustix::fs::Access;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::lease::Lease;
use truekeep_sqlite::{Role, write_lock};

use crate::clock::wall;
use crate::config::{Address, Config, LedgerConfig, PipelineConfig, SourceConfig, TargetConfig};
use crate::status::{Known, LedgerPorts};

/// How long a lock is waited for: a sound transaction is shorter.
const LOCK_MAX: Duration = Duration::from_secs(1);

/// A log of changes that grew beyond this is kept from being folded back by somebody's open read.
const WAL_BYTES_MAX: u64 = 64 << 20;

/// Less room than this fills up before anybody looks.
const FREE_BYTES_MIN: u64 = 1 << 30;

/// How far the ledger's clock may be from this machine's before it is worth a word.
const SKEW_MAX_MS: i64 = 1_000;

/// A transaction that is open for longer than this was forgotten, or is somebody's report.
#[cfg(feature = "postgres")]
const OPEN_MAX: Duration = Duration::from_secs(300);

/// How serious something is.
#[derive(Debug)]
pub enum Condition {
    /// As it should be.
    Well,
    /// Works, and may not for long; what to do.
    Weak(String),
    /// Does not work.
    Ill(PortError),
}

/// Something that was looked at.
#[derive(Debug)]
pub struct Sign {
    /// `versions`, `ledger`, `source NAME`, `sink NAME`, `clock` or `worker NAME`.
    pub part: String,
    /// How it is.
    pub condition: Condition,
    /// What was found, in words.
    pub text: String,
}

impl Sign {
    fn well(part: impl Into<String>, text: impl Into<String>) -> Self {
        Self { part: part.into(), condition: Condition::Well, text: text.into() }
    }

    fn ill(part: impl Into<String>, error: PortError) -> Self {
        let (part, condition) = (part.into(), Condition::Ill(error));
        Self { part, condition, text: "cannot be written".to_owned() }
    }

    fn weak(part: impl Into<String>, text: impl Into<String>, help: impl Into<String>) -> Self {
        let condition = Condition::Weak(help.into());
        Self { part: part.into(), condition, text: text.into() }
    }
}

/// Whether each table that is followed on a server can be, and who is in the way there.
async fn server(part: String, config: &Config, name: &str, address: &Address) -> Vec<Sign> {
    let mut signs = Vec::new();
    let mut looked = false;
    for pipeline in config.pipelines.iter().filter(|pipeline| pipeline.source == name) {
        if let Err(error) = crate::wiring::open_source(config, pipeline).await {
            let text = format!("`{}` cannot be read", pipeline.table);
            signs.push(Sign { part: part.clone(), condition: Condition::Ill(error), text });
            continue;
        }
        signs.push(Sign::well(part.clone(), format!("`{}` can be read", pipeline.table)));
        if !std::mem::replace(&mut looked, true) {
            signs.extend(open_for_long(&part, pipeline, address).await);
        }
    }
    signs
}

/// Whether each table that is written on a server can be.
#[cfg(feature = "postgres")]
async fn table_of_a_server(
    part: String,
    config: &Config,
    name: &str,
    table: &crate::config::TableConfig,
) -> Vec<Sign> {
    use crate::wiring::{SinkCheck, check_sink, open_source};
    let mut signs = Vec::new();
    for pipeline in config.pipelines.iter().filter(|pipeline| pipeline.sink == name) {
        // Why a source cannot be opened is said of the source.
        let Ok(source) = open_source(config, pipeline).await else { continue };
        signs.push(match check_sink(config, pipeline, &source).await {
            Ok(SinkCheck::Fits) => {
                Sign::well(part.clone(), format!("`{}` can be written", table.table))
            }
            Ok(SinkCheck::ToBeMade) => Sign::well(part.clone(), "is not there yet"),
            Err(error) => Sign::ill(part.clone(), error),
        });
    }
    signs
}

/// Transactions of a server that are open for long: told, and not waited for.
#[cfg(feature = "postgres")]
async fn open_for_long(part: &str, pipeline: &PipelineConfig, address: &Address) -> Vec<Sign> {
    let help = "end it: no moment waits for it, but rows that are gone take room until then";
    match crate::wiring::open_for_long(pipeline, address, OPEN_MAX).await {
        Ok(found) => found.into_iter().map(|text| Sign::weak(part, text, help)).collect(),
        Err(error) => vec![Sign {
            part: part.to_owned(),
            text: "open transactions cannot be listed".to_owned(),
            condition: Condition::Ill(error),
        }],
    }
}

#[cfg(not(feature = "postgres"))]
async fn open_for_long(_: &str, _: &PipelineConfig, _: &Address) -> Vec<Sign> {
    Vec::new()
}

/// Looks at the files of a configuration, and at the clock and the leases of its ledger.
pub async fn examine(config: &Config, ledger: Option<&LedgerPorts>) -> Vec<Sign> {
    let mut signs = vec![Sign::well("versions", versions())];
    match &config.ledger {
        LedgerConfig::Memory => {}
        LedgerConfig::Sqlite(location) => {
            signs.extend(file("ledger".to_owned(), Role::Ledger, location.path()).await);
        }
        // One that cannot be used is told by whoever opened it.
        LedgerConfig::Postgres(address) => signs.extend(ledger.map(|ledger| {
            let there = if ledger.stands_in { "is not there yet" } else { "can be read" };
            Sign::well("ledger", format!("{there}, on {address}"))
        })),
    }
    for (name, source) in &config.sources {
        let part = format!("source {name}");
        match source {
            SourceConfig::Sqlite(location) => {
                signs.extend(file(part, Role::Source, location.path()).await);
            }
            SourceConfig::Postgres(address) => {
                signs.extend(server(part, config, name, address).await);
            }
        }
    }
    for (name, sink) in &config.sinks {
        let part = format!("sink {name}");
        match &sink.target {
            TargetConfig::Mirror(mirror) => {
                signs.extend(file(part, Role::Sink, mirror.location.path()).await);
            }
            #[cfg(feature = "postgres")]
            TargetConfig::Table(table) => {
                signs.extend(table_of_a_server(part, config, name, table).await);
            }
            #[cfg(feature = "tantivy")]
            TargetConfig::Index(index) => signs.extend(folder(part, index.location.path()).await),
        }
    }
    if let Some(ledger) = ledger {
        signs.extend(clock(ledger).await);
        for pipeline in &config.pipelines {
            if let Ok(known) = Known::read(ledger, &pipeline.name).await {
                signs.push(worker(&known, config.worker.lease));
            }
        }
    }
    signs
}

/// What of the ledger and of these pipelines can be neither written nor made, each once. Whoever
/// holds a lock will let go, and is not told.
pub async fn unwritable(config: &Config, pipelines: &[&PipelineConfig]) -> Vec<Sign> {
    let mut places = BTreeMap::new();
    for pipeline in pipelines {
        let (source, target) = (config.source_of(pipeline), &config.sink_of(pipeline).target);
        // A server is asked when capture is installed.
        if let SourceConfig::Sqlite(location) = source {
            let part = format!("source {}", pipeline.source);
            places.insert(part, (Role::Source, location.path()));
        }
        if let Some(location) = target.location() {
            let part = format!("sink {}", pipeline.sink);
            places.insert(part, (Role::Sink, location.path()));
        }
    }
    if let LedgerConfig::Sqlite(location) = &config.ledger {
        places.insert("ledger".to_owned(), (Role::Ledger, location.path()));
    }
    let mut signs = Vec::new();
    for (part, (role, path)) in places {
        match writable(role, path).await {
            Err(error) if error.class != FailureClass::Retry => signs.push(Sign::ill(part, error)),
            Err(_) | Ok(_) => {}
        }
    }
    signs
}

/// The journal mode of a file that can be written; none if it can be made, or is a folder.
async fn writable(role: Role, path: &Path) -> Result<Option<String>, PortError> {
    if path.is_file() {
        return write_lock(role, path, LOCK_MAX).await.map(Some);
    }
    let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = if path.is_dir() { path } else { parent.unwrap_or(Path::new(".")) };
    rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).map(|()| None).map_err(|error| {
        let error = PortError::new("write into a folder", FailureClass::Halted, role.unavailable())
            .caused_by(std::io::Error::from(error));
        error.detail(folder.display().to_string())
    })
}

fn versions() -> String {
    format!("truekeep {}, SQLite {}", env!("CARGO_PKG_VERSION"), truekeep_sqlite::version())
}

async fn file(part: String, role: Role, path: &Path) -> Vec<Sign> {
    let mut signs = vec![match writable(role, path).await {
        Ok(None) => Sign::well(part.clone(), "is not there yet"),
        Ok(Some(mode)) => Sign::well(part.clone(), format!("can be written, journal mode {mode}")),
        Err(error) => Sign::ill(part.clone(), error),
    }];
    if !path.exists() {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        signs.extend(room(part, folder.unwrap_or(Path::new("."))));
        return signs;
    }
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    let wal = std::fs::metadata(&wal).map_or(0, |metadata| metadata.len());
    if wal > WAL_BYTES_MAX {
        signs.push(Sign::weak(
            part.clone(),
            format!("has a log of {} MB that is not folded back", wal >> 20),
            "end the program that keeps a read transaction open; see SQLite's wal_checkpoint",
        ));
    }
    signs.extend(room(part, path));
    signs
}

/// The folder of an index. The lock in it is its writer's for as long as that lives: there is
/// nothing to try.
#[cfg(feature = "tantivy")]
async fn folder(part: String, path: &Path) -> Vec<Sign> {
    if path.is_file() {
        // What it is instead is the check's to say.
        return Vec::new();
    }
    let there = path.exists();
    let sign = match writable(Role::Sink, path).await {
        Ok(_) if there => Sign::well(part.clone(), "can be written"),
        Ok(_) => Sign::well(part.clone(), "is not there yet"),
        Err(error) => Sign::ill(part.clone(), error),
    };
    let nearest = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    [sign].into_iter().chain(room(part, nearest)).collect()
}

/// Says only that there is little.
fn room(part: String, path: &Path) -> Option<Sign> {
    let system = rustix::fs::statvfs(path).ok()?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    (free < FREE_BYTES_MIN).then(|| {
        let text = format!("has {} MB of room left on its file system", free >> 20);
        Sign::weak(part, text, "make room: a full disk stops deliveries, and loses nothing")
    })
}

async fn clock(ledger: &LedgerPorts) -> Option<Sign> {
    let now = ledger.ledger.now().await.ok()?;
    let skew = now.ms() - wall().ms();
    Some(if skew.abs() > SKEW_MAX_MS {
        let text = format!("the ledger's is {skew} ms from this machine's");
        Sign::weak("clock", text, "leases go by the ledger's clock: set the other right")
    } else {
        Sign::well("clock", "the ledger's agrees with this machine's")
    })
}

fn worker(known: &Known, ttl: Duration) -> Sign {
    let part = format!("worker {}", known.scope.pipeline());
    let ahead = |lease: &Lease| lease.expires_at > known.now.plus(ttl);
    match (known.holder(ttl), &known.lease) {
        (Some(lease), _) => {
            Sign::well(part, format!("{} has the lease until {}", lease.holder, lease.expires_at))
        }
        (None, Some(lease)) if ahead(lease) => Sign::weak(
            part,
            format!("a lease ends at {}, later than any can", lease.expires_at),
            "the ledger's clock was set back, or leases were longer: it counts as ended",
        ),
        (None, _) => Sign::weak(part, "nobody works on it", "start `truekeep run`"),
    }
}
