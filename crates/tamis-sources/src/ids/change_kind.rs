//! What a change of a set of ids does.

/// What a change of a set of ids does. The numbers are those of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The id exists now.
    Insert = 0,
    /// The id was deleted.
    Delete = 1,
    /// The id was created a moment ago, as a program or an answer has reported.
    InsertRecent = 2,
}

impl ChangeKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Insert, Self::Delete, Self::InsertRecent];
}
