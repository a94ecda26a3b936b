//! The source over real files, written by connections of an application.

mod audit;
mod changes;
mod conformance;
mod equality;
mod files;
mod fixture;
mod keys;
mod lineage;
mod marks;
mod random;
mod replaced;
mod shapes;
mod signature;
mod values;
