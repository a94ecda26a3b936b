//! Words, phase machines, retry math, comparison, certificates and ports; touches nothing.
