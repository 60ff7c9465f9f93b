//! All `unsafe` code of the package. The modules around this one are safe.

pub mod arrow;
pub mod buffer;
pub mod gil_rw_lock;
pub mod hash;
pub mod integer;
pub mod interpreter;
pub mod map;
pub mod slots;
