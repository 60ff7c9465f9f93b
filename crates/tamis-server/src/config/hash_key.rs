//! The secret hash key of new filters.
//!
//! ```text
//! hash-key random (default)   a key that the first start generates and stores in DIR/hash-key
//!          none               no key: the mix hash, which anyone can compute
//!          32 hex digits      this key, such as the key of another server
//! ```
//!
//! Each filter stores its own key in its serialized form. The server uses the file `hash-key` only
//! for new filters.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::system::hex;
use crate::system::replace_file::replace_file;
use crate::system::system_error::without_code;

/// The option `hash-key`: the hash key of new filters.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum HashKey {
    /// A secret key of this server, which the server generates at its first start.
    #[default]
    Random,
    /// New filters have no key.
    None,
    /// New filters use the key in this variant. Two servers need the same key if filters of both
    /// servers must have equal bytes or must be mergeable.
    Fixed([u8; 16]),
}

impl fmt::Debug for HashKey {
    /// Hides the key, because logs may contain debug output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl HashKey {
    /// Parses the value of the option. Returns `None` if the value is invalid.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "random" => Some(HashKey::Random),
            "none" => Some(HashKey::None),
            digits => hex::decode(digits.as_bytes()).map(HashKey::Fixed),
        }
    }

    /// Tests whether a server with this option can start with the key in a folder. Only the option
    /// `random` reads the key from the folder. With `random`, the result is true if the key file
    /// contains a key or does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub(crate) fn can_use(self, dir: &Path) -> io::Result<bool> {
        if self != HashKey::Random {
            return Ok(true);
        }
        match fs::read(path(dir)) {
            Ok(text) => Ok(parse(&text).is_some()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Returns the value of the option, including the key. The caller writes the text only to a
    /// configuration file, and never sends the text to a client.
    pub(crate) fn text(self) -> String {
        match self {
            HashKey::Fixed(key) => hex::encode(&key),
            _ => self.shown().to_owned(),
        }
    }

    /// Returns the value of the option without the key.
    pub(crate) fn shown(self) -> &'static str {
        match self {
            HashKey::Random => "random",
            HashKey::None => "none",
            HashKey::Fixed(_) => "fixed",
        }
    }

    /// Returns the key of new filters, or `None` if new filters have no key. A random key is stored
    /// in the folder of the append-only log, if the log is on. The caller holds the lock of the
    /// folder.
    ///
    /// # Errors
    ///
    /// [`HashKeyError`] if the key in the folder cannot be read or created.
    pub(crate) fn key(self, dir: Option<&Path>) -> Result<Option<[u8; 16]>, HashKeyError> {
        Ok(match (self, dir) {
            (HashKey::None, _) => None,
            (HashKey::Fixed(key), _) => Some(key),
            (HashKey::Random, Some(dir)) => Some(of_folder(dir)?),
            (HashKey::Random, None) => {
                Some(random().map_err(|error| HashKeyError::new(Path::new(FILE_NAME), error))?)
            }
        })
    }
}

/// The reason why the server has no key for new filters.
#[derive(Debug)]
pub struct HashKeyError {
    path: PathBuf,
    why: String,
}

impl HashKeyError {
    fn new(path: &Path, why: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), why: why.to_string() }
    }
}

impl fmt::Display for HashKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for HashKeyError {}

/// The name of the file with the key.
pub(crate) const FILE_NAME: &str = "hash-key";

/// Returns the path of the key file in a folder.
pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join(FILE_NAME)
}

/// The problem of a damaged key file.
pub(crate) const NO_KEY: &str = "no key of 32 hexadecimal digits";

fn parse(text: &[u8]) -> Option<[u8; 16]> {
    hex::decode(&text.trim_ascii().to_ascii_lowercase())
}

/// Returns the key in a folder. Creates a key if the folder contains no key.
fn of_folder(dir: &Path) -> Result<[u8; 16], HashKeyError> {
    let path = path(dir);
    match fs::read(&path) {
        Ok(text) => parse(&text).ok_or_else(|| {
            let advice = "restore the file, or remove it: new filters then get another key and do \
                          not merge with old ones, which keep theirs";
            HashKeyError::new(&path, format_args!("{NO_KEY}; {advice}"))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let make = || {
                let key = random()?;
                replace_file(&path, format!("{}\n", hex::encode(&key)).as_bytes())?;
                File::open(dir)?.sync_all()?;
                Ok::<_, io::Error>(key)
            };
            make().map_err(|error| HashKeyError::new(&path, without_code(&error)))
        }
        Err(error) => Err(HashKeyError::new(&path, without_code(&error))),
    }
}

fn random() -> io::Result<[u8; 16]> {
    let mut key = [0; 16];
    getrandom::fill(&mut key)
        .map_err(|error| io::Error::other(format!("the system gives no random key: {error}")))?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_key(dir: &Path) -> Result<Option<[u8; 16]>, HashKeyError> {
        HashKey::Random.key(Some(dir))
    }

    #[test]
    fn a_random_key_is_created_once_in_a_folder() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let keys = dirs.each_ref().map(|dir| random_key(dir.path()).unwrap());
        assert!(keys[0].is_some() && keys[0] != keys[1], "two folders have two keys");
        assert_eq!(random_key(dirs[0].path()).unwrap(), keys[0]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let file = fs::metadata(dirs[0].path().join("hash-key")).unwrap();
            assert_eq!(file.permissions().mode() & 0o777, 0o600, "only its owner can read it");
        }
    }

    #[test]
    fn without_a_folder_each_start_has_another_key() {
        let keys = [(); 2].map(|()| HashKey::Random.key(None).unwrap());
        assert!(keys[0].is_some() && keys[0] != keys[1]);
    }

    #[test]
    fn a_damaged_key_file_stops_the_start_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hash-key");
        for text in ["", "0011", "not hexadecimal, and as long as it"] {
            fs::write(&path, text).unwrap();
            let error = random_key(dir.path()).unwrap_err().to_string();
            assert!(error.contains("hash-key") && error.contains("restore the file"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_fixed_key_is_read_byte_by_byte_and_not_shown() {
        let text = "000102030405060708090A0B0C0D0E0F";
        let key = HashKey::parse(text).unwrap();
        assert_eq!(key.key(None).unwrap(), Some(std::array::from_fn(|i| i as u8)));
        assert_eq!(key.text(), text.to_lowercase());
        assert!(!format!("{key:?}").contains("0102"));
        for text in ["", "fixed", "0001", "+00102030405060708090a0b0c0d0e0f", "g0"] {
            assert_eq!(HashKey::parse(text), None, "{text}");
        }
    }
}
