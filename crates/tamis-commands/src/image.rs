//! The bytes of an image: the numbers, plans and bits of a value, read and written.

mod error;
mod reader;
mod writer;

pub use error::ImageError;
pub(crate) use reader::Reader;
pub(crate) use writer::Writer;
