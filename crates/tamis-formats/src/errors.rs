//! One error for each operation.

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod decode;
pub(crate) mod encode;
