//! Double SHA-256 hashes, and their text form with reversed bytes.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A double SHA-256 hash of a block, a transaction or a filter.
///
/// The text form starts with the last byte, as in all Bitcoin tools.
///
/// # Examples
///
/// ```
/// use tamis_formats::bitcoin::Hash256;
///
/// let hash: Hash256 = "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943".parse()?;
/// assert_eq!((hash.0[0], hash.0[31]), (0x43, 0x00));
/// # Ok::<(), tamis_formats::bitcoin::HashError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash256(
    /// The bytes in the order of the SHA-256 output and of Bitcoin's network messages ("internal order").
    pub [u8; 32],
);

/// The number of zero bytes that start the hash of every block in text form. The zero bytes at the start of a block
/// hash are the proof of work.
const WORK_BYTES: usize = 4;

/// The error if a text is not a hash of 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashError;

impl Hash256 {
    /// Tests whether this hash is a block hash that was parsed from a text in internal byte order. The correct text
    /// form of a block hash of the main network starts with four zero bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_formats::bitcoin::Hash256;
    ///
    /// let genesis = "6fe28c0ab6f1b372c1a6a246ae63f74f931e8365e15a089c68d6190000000000";
    /// let hash: Hash256 = genesis.parse()?;
    /// assert!(hash.is_reversed_block() && !hash.reversed().is_reversed_block());
    /// # Ok::<(), tamis_formats::bitcoin::HashError>(())
    /// ```
    #[must_use]
    pub fn is_reversed_block(&self) -> bool {
        self.0.starts_with(&[0; WORK_BYTES]) && !self.0.ends_with(&[0; WORK_BYTES])
    }

    /// Returns the hash with its bytes in reverse order.
    #[must_use]
    pub fn reversed(mut self) -> Self {
        self.0.reverse();
        self
    }

    /// Computes the hash of the concatenation of `parts`.
    #[must_use]
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut once = Sha256::new();
        parts.iter().for_each(|part| once.update(part));
        Self(Sha256::digest(once.finalize()).into())
    }
}

impl FromStr for Hash256 {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, HashError> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != 32 || !rest.is_empty() {
            return Err(HashError);
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(HashError);
        let mut bytes = [0; 32];
        for (byte, &[high, low]) in bytes.iter_mut().rev().zip(pairs) {
            *byte = (digit(high)? << 4 | digit(low)?) as u8;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Hash256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().rev().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for HashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a hash of 64 hexadecimal digits")
    }
}

impl std::error::Error for HashError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_written_last_byte_first() {
        let text = "6fe28c0ab6f1b372c1a6a246ae63f74f931e8365e15a089c68d6190000000000";
        let hash: Hash256 = text.parse().unwrap();
        assert_eq!(hash.0[..3], [0, 0, 0]);
        assert_eq!(hash.0[31], 0x6f);
        assert_eq!(hash.to_string(), text);
        for wrong in ["", &text[1..], &text[2..], &text.replace('6', "g"), &text.replace("6f", "é")]
        {
            assert_eq!(wrong.parse::<Hash256>(), Err(HashError), "{wrong}");
        }
    }

    #[test]
    fn parts_are_hashed_as_one() {
        let hello = "503d8319a48348cdc610a582f7bf754b5833df65038606eb48510790dfc99595";
        let hash = Hash256::of(&[b"hel", b"", b"lo"]);
        assert_eq!(hash, Hash256::of(&[b"hello"]));
        let bytes: String = hash.0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(bytes, "9595c9df90075148eb06860365df33584b75bff782a510c6cd4883a419833d50");
        assert_eq!(hash.to_string(), hello);
    }
}
