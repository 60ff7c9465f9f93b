//! Reads the token of `--token-file`.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use tamis_guard::BearerToken;

use crate::exit::Failure;

/// The longest token in bytes.
const MAX_BYTES: u64 = 4096;

/// Reads a token from a file, without the white space before and after the token. A token in an
/// argument would be visible to all users of the machine.
///
/// # Errors
///
/// A message if the file cannot be read or has no token.
pub fn read(path: &Path) -> Result<BearerToken, Failure> {
    let name = path.display();
    let failure = |error| Failure::io(&name, &error);
    let mut text = String::new();
    let file = File::open(path).map_err(failure)?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failure)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(Failure::new(format!("{name}: is longer than a token")));
    }
    BearerToken::new(text.trim()).map_err(|error| Failure::new(format!("{name}: {error}")))
}
