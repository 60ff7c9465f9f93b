//! Where to listen, by address or by name.

use std::fmt;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::str::FromStr;

/// An address to listen on, or a name with the addresses it leads to. A name is looked up once, when it is read.
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
    /// `None` for an address by itself.
    name: Option<String>,
    // Invariant: not empty, each once.
    addresses: Vec<IpAddr>,
}

/// The text is no address, nor a name that leads to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoAddress;

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no IP address, nor a name that leads to one")
    }
}

impl std::error::Error for NoAddress {}

impl BindAddress {
    /// Returns the addresses, at least one.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Returns the addresses and names of a text, as they are written but for a minus, which Redis knows.
    pub(crate) fn argv(text: &str) -> impl Iterator<Item = &str> {
        let argv = text.split([' ', ',']).filter(|word| !word.is_empty());
        argv.map(|word| word.trim_start_matches('-'))
    }

    /// Returns what is shown of such a word, without looking a name up.
    pub(crate) fn shown(word: &str) -> String {
        word.parse::<IpAddr>().map_or_else(|_| word.to_owned(), |address| address.to_string())
    }

    /// Returns whether the option was a name. This machine may lack some addresses of a name.
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
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(address.into());
        }
        // What cannot be a name is not asked of the network.
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        if text.is_empty() || !text.chars().all(is_name) {
            return Err(NoAddress);
        }
        let mut addresses: Vec<IpAddr> = Vec::new();
        for found in (text, 0).to_socket_addrs().map_err(|_| NoAddress)? {
            if !addresses.contains(&found.ip()) {
                addresses.push(found.ip());
            }
        }
        if addresses.is_empty() {
            return Err(NoAddress);
        }
        Ok(Self { name: Some(text.to_owned()), addresses })
    }
}

/// As it was given.
impl fmt::Display for BindAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => self.addresses[0].fmt(f),
        }
    }
}
