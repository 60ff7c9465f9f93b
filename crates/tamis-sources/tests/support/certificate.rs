//! A certificate of a server of a test.

use std::fs;

use crate::checker::Dir;

/// Writes a certificate of `127.0.0.1` that signs itself, and its key.
pub fn write(dir: &Dir, certificate: &str, key: &str) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(dir.path(certificate), made.cert.pem()).unwrap();
    fs::write(dir.path(key), made.signing_key.serialize_pem()).unwrap();
}
