//! The URL of a database. Environment variables can supply the user name and the password.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::{self, Deserialize, Deserializer};

use crate::config::units::expand;

/// The URL of a database, which messages never show. The text `${NAME}` is replaced by an environment variable. In the
/// user name and the password, the value of a variable may contain any characters.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretUrl(pub(crate) String);

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<'de> Deserialize<'de> for SecretUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        expand_url(&text, |name| std::env::var(name).ok()).map(Self).map_err(de::Error::custom)
    }
}

/// The characters that must be percent-encoded in the user name and the password of a URL.
const USER_INFO: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Expands variables as `expand` does, and percent-encodes the values in the user name and the password. In other parts
/// of the URL, a variable may contain a whole URL, or an address with a port.
fn expand_url(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let start = text.find("://").map_or(0, |at| at + 3);
    let length = text[start..].find(['/', '?', '#']).unwrap_or(text.len() - start);
    let user_info = text[start..start + length].rfind('@').unwrap_or(0);
    let (scheme, rest) = text.split_at(start);
    let (user_info, rest) = rest.split_at(user_info);
    let encoded = |name: &str| {
        variable(name).map(|value| utf8_percent_encode(&value, &USER_INFO).to_string())
    };
    Ok(expand(scheme, &variable)? + &expand(user_info, encoded)? + &expand(rest, &variable)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_url_may_have_any_characters() {
        let variable = |name: &str| {
            Some(match name {
                "PASSWORD" => "a#b/c?d@e%f:g é".to_owned(),
                "ADDRESS" => "[::1]:3306".to_owned(),
                "URL" => "mysql://u:p@h/d?require_ssl=true".to_owned(),
                _ => return None,
            })
        };
        let url = "mysql://guard:${PASSWORD}@${ADDRESS}/shop?a=b@c";
        let expanded = expand_url(url, variable).unwrap();
        let password = "a%23b%2Fc%3Fd%40e%25f%3Ag%20%C3%A9";
        assert_eq!(expanded, format!("mysql://guard:{password}@[::1]:3306/shop?a=b@c"));
        assert_eq!(expand_url("${URL}", variable), Ok(variable("URL").unwrap()));
        for text in ["mysql://h/d", "mysql://u:p@h", "", "@", "://@", "a://é@é/"] {
            assert_eq!(expand_url(text, variable), Ok(text.to_owned()));
        }
        assert!(expand_url("mysql://u:${P}@h", variable).unwrap_err().contains("\"P\""));
        assert!(expand_url("mysql://u:${P@h", variable).is_err());
    }
}
