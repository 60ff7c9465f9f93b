//! Reads inputs, writes outputs and messages, and draws the progress.

#[macro_use]
pub(crate) mod messages;

pub(crate) mod attributes;
pub(crate) mod file_bytes;
pub(crate) mod input;
pub(crate) mod map;
pub(crate) mod output;
pub(crate) mod packing;
pub(crate) mod prefetcher;
pub(crate) mod progress;
pub(crate) mod read;
pub(crate) mod read_ahead;
pub(crate) mod standard;
pub(crate) mod svg;
pub(crate) mod table;
pub(crate) mod temporary;
pub(crate) mod unpack;
