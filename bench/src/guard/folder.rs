//! A folder for configurations and lists of ids.

use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

/// The folder. Dropping this value removes the files.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("tamis-bench-guard-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        Ok(Self(path))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let path = self.path(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    /// Writes the list `ids.txt`: the first `ids` even numbers.
    pub fn write_ids(&self, ids: u64) -> Result<(), String> {
        let write = || {
            let mut file = BufWriter::new(fs::File::create(self.path("ids.txt"))?);
            (1..=ids).try_for_each(|id| writeln!(file, "{}", 2 * id))?;
            file.flush()
        };
        write().map_err(|error: std::io::Error| error.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}
