//! What the user says of a filter because its bytes do not.

use std::fmt;

use crate::error::{DecodeError, DecodeErrorKind};
use crate::funnel::{Charset, Funnel};

/// A fact about a filter that some formats do not write down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fact {
    /// What its items are: [`Funnel`].
    Funnel,
    /// In which charset text was hashed: [`Charset`].
    Charset,
    /// For how many items it was planned.
    Items,
    /// For which rate it was planned.
    Rate,
}

impl Fact {
    /// Returns what is asked for, to be read after "its".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fact::Funnel => "funnel",
            Fact::Charset => "charset",
            Fact::Items => "planned items",
            Fact::Rate => "planned rate",
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is known of a filter besides its bytes. Nothing is ever guessed: what is needed and not told is
/// [`DecodeErrorKind::Missing`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// What its items are.
    pub funnel: Option<Funnel>,
    /// In which charset text was hashed.
    pub charset: Option<Charset>,
    /// For how many items it was planned.
    pub items: Option<u64>,
    /// For which rate it was planned.
    pub rate: Option<f64>,
    /// Its hash is MD5, where that depends on the release: pybloom_live before 4.
    pub md5: bool,
}

impl Told {
    /// Returns for how many items a filter was planned.
    pub(crate) fn items(&self) -> Result<u64, DecodeError> {
        self.items.ok_or(missing(Fact::Items))
    }

    /// Returns for which rate a filter was planned.
    pub(crate) fn rate(&self) -> Result<f64, DecodeError> {
        self.rate.ok_or(missing(Fact::Rate))
    }
}

fn missing(fact: Fact) -> DecodeError {
    DecodeError { field: fact.name(), at: 0, kind: DecodeErrorKind::Missing(fact) }
}
