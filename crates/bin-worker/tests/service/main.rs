//! The real worker as a process, over real files: health, signals, kills, take-overs.

mod health;
mod http;
mod killed;
mod law;
mod process;
mod start;
mod stopping;
mod takeover;
mod world;
mod writer;
