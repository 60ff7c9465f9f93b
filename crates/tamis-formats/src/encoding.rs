//! Encodes and decodes bytes, headers and metadata that several formats share.

pub(crate) mod bare_bits;
mod bit_words;
pub mod bitcoin;
pub(crate) mod bitmap_file;
pub(crate) mod header;
pub(crate) mod metadata;
mod reader;
pub(crate) mod sorted_table;

pub(crate) use bit_words::{ones, words_of, write_words};
pub use reader::ByteReader;
