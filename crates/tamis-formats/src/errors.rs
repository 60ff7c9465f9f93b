//! The error types, one for each operation.

mod change;
mod create;
mod decode;
mod encode;
mod file;

pub use change::ChangeError;
pub use create::CreateError;
pub use decode::{DecodeError, DecodeErrorKind, ReadError};
pub use encode::EncodeError;
pub use file::{FileError, FileErrorKind};
