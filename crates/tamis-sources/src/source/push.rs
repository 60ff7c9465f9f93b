//! A source that receives its ids from another program.

use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq as _;
use tamis::PlanError;

use crate::ids::id_error::IdError;
use crate::ids::id_set::IdSet;

/// Inserts and deletes ids for a caller that presents the token.
///
/// A push source neither builds generations nor sets the state. A pushed id passes immediately. Another source of the
/// set may publish a generation without the pushed id. If the generation lacks the pushed id, the id is unknown after
/// [`recent_for`](crate::IdSetOptions::recent_for).
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tamis_sources::PushSource;
/// use tamis_sources::{IdSet, IdType};
///
/// let ids = Arc::new(IdSet::new(IdType::text())?);
/// let push = PushSource::new(Arc::clone(&ids), "a long secret")?;
/// let pushed = push.insert("a long secret", ["alice", ""])?;
/// assert_eq!((pushed.ids, pushed.invalid), (1, 1));
/// assert!(ids.decide(b"alice").passes());
/// assert!(push.insert("a wrong secret", ["bob"]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PushSource {
    ids: Arc<IdSet>,
    token: Box<[u8]>,
}

/// The result of a push call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// The number of ids that were inserted or deleted.
    pub ids: u64,
    /// The number of texts that are not ids of the type.
    pub invalid: u64,
}

/// The reason why a push failed.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum PushError {
    /// The token is wrong. No id was changed.
    Token,
    /// The configured token is empty.
    NoToken,
    /// The filter must grow and the system has no memory. In spite of the error, the set contains all pushed ids.
    Plan(PlanError),
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token => f.write_str("the token is wrong"),
            Self::NoToken => f.write_str("the token must not be empty"),
            Self::Plan(error) => write!(f, "the filter cannot grow: {error}"),
        }
    }
}

impl std::error::Error for PushError {}

impl PushSource {
    /// Creates a push source that accepts `token`.
    ///
    /// # Errors
    ///
    /// [`PushError::NoToken`] if the token is empty.
    pub fn new(ids: Arc<IdSet>, token: impl AsRef<[u8]>) -> Result<Self, PushError> {
        let token: Box<[u8]> = token.as_ref().into();
        if token.is_empty() { Err(PushError::NoToken) } else { Ok(Self { ids, token }) }
    }

    /// Inserts ids that were committed. The method counts texts that are not ids as invalid.
    ///
    /// # Errors
    ///
    /// [`PushError::Token`] if the token is wrong; [`PushError::Plan`] if the system has no memory.
    pub fn insert(
        &self,
        token: impl AsRef<[u8]>,
        ids: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Pushed, PushError> {
        let mut result = Ok(());
        let pushed = self.each(token.as_ref(), ids, |id| match self.ids.insert_recent(id) {
            Err(IdError::Plan(error)) => {
                result = Err(PushError::Plan(error));
                Ok(())
            }
            inserted => inserted,
        })?;
        result.map(|()| pushed)
    }

    /// Deletes ids. The method counts texts that are not ids as invalid.
    ///
    /// # Errors
    ///
    /// [`PushError::Token`] if the token is wrong.
    pub fn delete(
        &self,
        token: impl AsRef<[u8]>,
        ids: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Pushed, PushError> {
        self.each(token.as_ref(), ids, |id| self.ids.delete(id))
    }

    fn each(
        &self,
        token: &[u8],
        ids: impl IntoIterator<Item = impl AsRef<[u8]>>,
        mut change: impl FnMut(&[u8]) -> Result<(), IdError>,
    ) -> Result<Pushed, PushError> {
        // The comparison takes constant time: it depends only on the length of the caller's token.
        if !bool::from(self.token.ct_eq(token)) {
            return Err(PushError::Token);
        }
        let mut pushed = Pushed::default();
        for text in ids {
            match change(text.as_ref()) {
                Ok(()) => pushed.ids += 1,
                Err(_) => pushed.invalid += 1,
            }
        }
        Ok(pushed)
    }
}

impl fmt::Debug for PushSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The output omits the token.
        f.debug_struct("PushSource").field("ids", &self.ids).finish_non_exhaustive()
    }
}
