//! Ids that a program reports itself.

use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq as _;
use tamis::PlanError;

use crate::ids::id_set::IdSet;

/// Inserts and deletes ids on behalf of a caller that knows the token.
///
/// It neither builds generations nor sets the state. A pushed id passes at once. If another source
/// of the set publishes a generation without the id, the id is unknown again after
/// [`recent_for`](crate::IdSetOptions::recent_for).
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tamis_sources::PushSource;
/// use tamis_sources::{IdSet, IdSetOptions, IdType};
///
/// let ids = Arc::new(IdSet::new(IdSetOptions::new(IdType::Text { max_bytes: 100 }))?);
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

/// The number of ids in a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// The number of ids that were inserted or deleted.
    pub ids: u64,
    /// The number of texts that are no ids of the type.
    pub invalid: u64,
}

/// Why a push failed.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub enum PushError {
    /// The token is wrong. No id was changed.
    Token,
    /// The token of a source is empty.
    NoToken,
    /// The filter must grow and there is no memory. All ids are known nevertheless.
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
    /// Creates a source that accepts a token.
    ///
    /// # Errors
    ///
    /// [`PushError::NoToken`] if the token is empty.
    pub fn new(ids: Arc<IdSet>, token: impl AsRef<[u8]>) -> Result<Self, PushError> {
        let token: Box<[u8]> = token.as_ref().into();
        if token.is_empty() { Err(PushError::NoToken) } else { Ok(Self { ids, token }) }
    }

    /// Inserts ids that were committed. Texts that are no ids are counted.
    ///
    /// # Errors
    ///
    /// [`PushError::Token`] for a wrong token; [`PushError::Plan`] if there is no memory.
    pub fn insert(
        &self,
        token: impl AsRef<[u8]>,
        ids: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Pushed, PushError> {
        let mut result = Ok(());
        let pushed = self.each(token.as_ref(), ids, |id| {
            if let Err(error) = self.ids.insert_recent(id) {
                result = Err(PushError::Plan(error));
            }
        })?;
        result.map(|()| pushed)
    }

    /// Deletes ids. Texts that are no ids are counted.
    ///
    /// # Errors
    ///
    /// [`PushError::Token`] for a wrong token.
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
        mut change: impl FnMut(&[u8]),
    ) -> Result<Pushed, PushError> {
        // The time depends on the length of the caller's token only.
        if !bool::from(self.token.ct_eq(token)) {
            return Err(PushError::Token);
        }
        let mut pushed = Pushed::default();
        for text in ids {
            match self.ids.options().id.canonical(text.as_ref()) {
                Ok(id) => {
                    change(&id);
                    pushed.ids += 1;
                }
                Err(_) => pushed.invalid += 1,
            }
        }
        Ok(pushed)
    }
}

impl fmt::Debug for PushSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the token.
        f.debug_struct("PushSource").field("ids", &self.ids).finish_non_exhaustive()
    }
}
