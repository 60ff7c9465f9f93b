//! Passwords, which the server stores as SHA-256 digests.

use std::fmt;

use sha2::Digest as _;

use crate::system::hex;

/// The SHA-256 digest of a password. An ACL file contains the digest. Passwords must be long and
/// random, because an attacker who reads the digest can guess a short password.
#[derive(Clone, Copy)]
pub(crate) struct PasswordDigest([u8; 32]);

impl PasswordDigest {
    /// A digest that matches no known password.
    pub const NONE: PasswordDigest = PasswordDigest([0; 32]);

    pub fn of(password: &[u8]) -> Self {
        Self(sha2::Sha256::digest(password).into())
    }

    /// Parses 64 lowercase hexadecimal digits.
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        hex::decode(text).map(Self)
    }

    /// Compares two digests in constant time.
    pub fn is(&self, other: &PasswordDigest) -> bool {
        let differs = self.0.iter().zip(&other.0).fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(differs) == 0
    }
}

impl fmt::Display for PasswordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for PasswordDigest {
    /// Hides the digest, because debug output may appear in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordDigest(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha_256() {
        let hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        let digest = PasswordDigest::of(b"test");
        assert_eq!(digest.to_string(), hex);
        assert!(digest.is(&PasswordDigest::from_hex(hex.as_bytes()).unwrap()));
        assert!(!digest.is(&PasswordDigest::of(b"Test")) && !digest.is(&PasswordDigest::NONE));
        for other in [&hex[1..], &hex.to_uppercase(), &format!("{hex}0"), "", &"g".repeat(64)] {
            assert!(PasswordDigest::from_hex(other.as_bytes()).is_none(), "{other}");
        }
        assert!(!format!("{digest:?}").contains("9f86"));
    }
}
