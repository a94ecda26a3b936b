//! Who acts in a world besides the workers' engine.

pub(crate) mod accidents;
pub(crate) mod operators;
pub(crate) mod workers;
pub(crate) mod writers;
