//! Creates secret hash keys. Without the key, an attacker cannot choose items with equal hashes.

use tamis::Hasher;

use crate::exit::Failure;

/// Returns a hasher with a new secret key from the system.
///
/// # Errors
///
/// A message if the system provides no random bytes.
pub fn random_hasher() -> Result<Hasher, Failure> {
    random_words().map(Hasher::keyed)
}

/// Returns random words from the system.
///
/// # Errors
///
/// A message if the system provides no random bytes.
pub fn random_words<const N: usize>() -> Result<[u64; N], Failure> {
    let mut words = [[0; 8]; N];
    getrandom::fill(words.as_flattened_mut())
        .map_err(|error| Failure::new(format!("the system returned no random key: {error}")))?;
    Ok(words.map(u64::from_le_bytes))
}
