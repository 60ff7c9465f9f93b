//! Secret keys for hashing items that an attacker may choose.

use tamis::Hasher;

use crate::exit::Failure;

/// Returns a hasher with a new secret key from the system.
///
/// # Errors
///
/// The system gives no random bytes.
pub fn random_hasher() -> Result<Hasher, Failure> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(format!("the system gives no random key: {error}")))?;
    let (words, _) = bytes.as_chunks::<8>();
    Ok(Hasher::keyed([0, 1].map(|i| u64::from_le_bytes(words[i]))))
}
