//! All `unsafe` code of the package. The modules around this one are safe.

pub mod arrow;
pub mod buffer;
pub mod guarded;
pub mod hash;
pub mod integer;
pub mod interpreter;
pub mod map;
pub mod slots;
