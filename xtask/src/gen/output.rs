//! The output of a generator.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use crate::tools::Outcome;

/// A file or the standard output, with a large write buffer.
pub struct Output {
    writer: BufWriter<Box<dyn Write>>,
    name: String,
}

impl Output {
    /// Creates the file `path`. Without a path, uses the standard output.
    pub fn create(path: Option<&str>) -> Result<Self, String> {
        let (inner, name): (Box<dyn Write>, _) = match path {
            Some(path) => {
                let file = File::create(path).map_err(|error| format!("{path}: {error}"))?;
                (Box::new(file), path.to_owned())
            }
            None => (Box::new(io::stdout()), "standard output".to_owned()),
        };
        Ok(Self { writer: BufWriter::with_capacity(1 << 20, inner), name })
    }

    /// Writes all of `bytes`.
    pub fn write(&mut self, bytes: &[u8]) -> Outcome {
        self.writer.write_all(bytes).map_err(|error| format!("{}: {error}", self.name))
    }

    /// Writes the buffered bytes.
    pub fn finish(&mut self) -> Outcome {
        self.writer.flush().map_err(|error| format!("{}: {error}", self.name))
    }
}
