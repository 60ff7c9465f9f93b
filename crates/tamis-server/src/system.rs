//! The functions of the operating system that the server uses.

pub(crate) mod clock;
pub(crate) mod descriptors;
pub(crate) mod held_memory;
pub(crate) mod hex;
pub(crate) mod procfs;
pub(crate) mod replace_file;
pub(crate) mod runtime;
pub(crate) mod system_error;
