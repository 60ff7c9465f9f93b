//! Bytes, headers and metadata that several formats have.

pub(crate) mod bare_bits;
pub(crate) mod bit_words;
pub mod bitcoin;
pub(crate) mod bitmap_file;
pub(crate) mod header;
pub(crate) mod metadata;
pub(crate) mod reader;
pub(crate) mod sorted_table;
