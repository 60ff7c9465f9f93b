//! The addresses that the server listens on: IP addresses or host names.

use std::fmt;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::str::FromStr;

use crate::config::error::OptionValueError;

/// An address to listen on, or a host name with its addresses. A host name is resolved only once,
/// when the option is parsed.
///
/// # Examples
///
/// ```
/// use tamis_server::BindAddress;
///
/// let here: BindAddress = "localhost".parse().unwrap();
/// assert!(here.to_string() == "localhost" && here.addresses().iter().all(|it| it.is_loopback()));
/// assert!("local/host".parse::<BindAddress>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindAddress {
    /// The host name; `None` for an IP address.
    name: Option<String>,
    // Invariant: `addresses` is not empty and contains no duplicates.
    addresses: Vec<IpAddr>,
}

const NO_ADDRESS: OptionValueError =
    OptionValueError("neither an IP address nor a host name that resolves to one");

impl BindAddress {
    /// Returns the addresses. The slice contains at least one address.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Splits a text into addresses and host names. Removes the leading minus signs that Redis
    /// allows.
    pub(crate) fn split(text: &str) -> impl Iterator<Item = &str> {
        let words = text.split([' ', ',']).filter(|word| !word.is_empty());
        words.map(|word| word.trim_start_matches('-'))
    }

    /// Returns an address or name in the form that `CONFIG GET` shows. The function does not
    /// resolve host names.
    pub(crate) fn shown(word: &str) -> String {
        word.parse::<IpAddr>().map_or_else(|_| word.to_owned(), |address| address.to_string())
    }

    /// Tests whether the option is a host name. A host name may resolve to addresses that this
    /// machine does not have.
    pub(crate) fn is_name(&self) -> bool {
        self.name.is_some()
    }
}

impl From<IpAddr> for BindAddress {
    fn from(address: IpAddr) -> Self {
        Self { name: None, addresses: vec![address] }
    }
}

impl FromStr for BindAddress {
    type Err = OptionValueError;

    fn from_str(text: &str) -> Result<Self, OptionValueError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(address.into());
        }
        // Do not send a DNS query for a text that cannot be a host name.
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if text.is_empty() || !text.chars().all(is_name) {
            return Err(NO_ADDRESS);
        }
        let mut addresses: Vec<IpAddr> = Vec::new();
        for found in (text, 0).to_socket_addrs().map_err(|_| NO_ADDRESS)? {
            if !addresses.contains(&found.ip()) {
                addresses.push(found.ip());
            }
        }
        if addresses.is_empty() {
            return Err(NO_ADDRESS);
        }
        Ok(Self { name: Some(text.to_owned()), addresses })
    }
}

/// Writes the address or the host name as the user wrote it.
impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => self.addresses[0].fmt(f),
        }
    }
}
