//! The errors of the HTTP client.

use std::error::Error;
use std::fmt;
use std::io;

use tamis_sources::PlainIo;

/// The reason why a request has no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum HttpClientError {
    /// The URL is invalid.
    Url(&'static str),
    /// The trusted certificates cannot be read.
    Certificates(String),
    /// The connection cannot be opened.
    Connect(io::Error),
    /// The connection broke, or the response is not valid HTTP.
    Http(hyper::Error),
    /// The server did not respond in time.
    Late,
    /// The client was stopped.
    Stopped,
}

impl fmt::Display for HttpClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(why) => write!(f, "the URL {why}; write http://HOST:PORT/filters/NAME"),
            Self::Certificates(why) => f.write_str(why),
            Self::Connect(error) => write!(f, "cannot connect: {}", PlainIo(error)),
            Self::Http(error) => match error.source() {
                Some(source) => write!(f, "the exchange failed: {error}: {source}"),
                None => write!(f, "the exchange failed: {error}"),
            },
            Self::Late => f.write_str("the server does not answer in time"),
            Self::Stopped => f.write_str("the client was stopped"),
        }
    }
}

impl Error for HttpClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Connect(error) => Some(error),
            Self::Http(error) => Some(error),
            _ => None,
        }
    }
}

impl From<hyper::Error> for HttpClientError {
    fn from(error: hyper::Error) -> Self {
        Self::Http(error)
    }
}
