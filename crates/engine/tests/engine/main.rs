//! The rules of the engine, over the reference ledger, source and sink, in virtual time.

mod cancels;
mod cost;
mod deep;
mod doubts;
mod follow;
mod items;
mod killers;
mod leases;
mod owns;
mod pauses;
mod races;
mod reconcile;
mod scopes;
mod trouble;
mod went_back;
mod world;
