//! The kinds of changes of a set of ids.

/// The kind of a change of a set of ids. The numeric values are part of the stream format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The id exists now.
    Insert = 0,
    /// The id was deleted.
    Delete = 1,
    /// The id was created recently: a program or a response has reported the id.
    InsertRecent = 2,
    /// A row with the id was deleted, and another row may have the id. The set keeps the id, and forgets the 404
    /// responses for the id.
    DeleteRow = 3,
}

impl ChangeKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Insert, Self::Delete, Self::InsertRecent, Self::DeleteRow];
}
