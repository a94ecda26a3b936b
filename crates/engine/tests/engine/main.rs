//! The rules of the engine, over the reference ledger, source and sink, in virtual time.

mod cancels;
mod cost;
mod deep;
mod doubts;
mod follow;
mod items;
mod killers;
mod lag;
mod leases;
mod owns;
mod pauses;
mod polling;
mod purge;
mod races;
mod rebuild;
mod reconcile;
mod removal;
mod scopes;
mod trouble;
mod unordered;
mod went_back;
mod world;
