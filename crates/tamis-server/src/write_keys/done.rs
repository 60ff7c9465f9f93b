//! The outcome of a command that may change several keys.

use tamis_resp::Reply;

/// The outcome of a command that may change several keys: the reply, and whether a key changed.
pub(crate) struct Done {
    pub reply: Reply,
    pub has_changed: bool,
}

impl Done {
    pub fn changed(reply: Reply) -> Self {
        Self { reply, has_changed: true }
    }

    pub fn unchanged(reply: Reply) -> Self {
        Self { reply, has_changed: false }
    }
}
