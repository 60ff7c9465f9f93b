//! Parses and formats the values of options.

pub(crate) mod byte_size;
pub(crate) mod decode_options;
pub(crate) mod hash_key;
pub(crate) mod memory_limit;
pub(crate) mod numbers;
pub(crate) mod redact;
#[cfg(feature = "network")]
pub(crate) mod token_file;
pub(crate) mod unused_options;
pub(crate) mod usage;
pub(crate) mod window_span;
