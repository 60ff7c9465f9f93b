//! The error for an id that a set refuses.

use std::fmt;

use tamis::PlanError;

use crate::ids::id::{IdType, NotAnId};

/// The maximum number of bytes of a refused text in a message.
const MAX_SHOWN: usize = 100;

/// The error for an id that cannot be inserted into a set or deleted from a set.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum IdError {
    /// The text is not an id of the type of the set. The set is unchanged.
    NotAnId {
        /// The start of the text.
        text: String,
        /// The type of the set.
        id_type: IdType,
        /// The reason why the text is not an id of this type.
        why: NotAnId,
    },
    /// The settings of the set are invalid, or a filter must grow and the system has no memory. After a failed insert,
    /// the set contains the id nevertheless.
    Plan(PlanError),
}

impl IdError {
    pub(crate) fn not_an_id(text: &[u8], id_type: &IdType, why: NotAnId) -> Self {
        let start = &text[..text.len().min(MAX_SHOWN)];
        let text = String::from_utf8_lossy(start).into_owned();
        Self::NotAnId { text, id_type: id_type.clone(), why }
    }
}

impl fmt::Display for IdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnId { text, id_type, why } => write!(
                f,
                "{text:?} {why} of the set: the type of the set is {id_type}; pass ids of this \
                 type, or create the set with another type"
            ),
            Self::Plan(error) => write!(f, "the set has no filter for the id: {error}"),
        }
    }
}

impl std::error::Error for IdError {}

impl From<PlanError> for IdError {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}
