//! The access categories of commands.

/// A group of commands that a user's rules can allow together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Changes keys.
    Write,
    /// Reads keys.
    Read,
    /// Takes constant time, or nearly constant time.
    Fast,
    /// May take a long time.
    Slow,
    /// Works on keys of any type.
    Keyspace,
    /// Works on the connection.
    Connection,
    /// For operators.
    Admin,
    /// Can harm the server or its data.
    Dangerous,
    /// Works on strings.
    String,
    /// Works on bitmaps.
    Bitmap,
    /// Transactions.
    Transaction,
    /// `BF.*`.
    Bloom,
    /// `CF.*`.
    Cuckoo,
    /// `TM.*`.
    Tamis,
}

impl Category {
    /// Every category.
    pub const ALL: [Category; 14] = [
        Category::Write,
        Category::Read,
        Category::Fast,
        Category::Slow,
        Category::Keyspace,
        Category::Connection,
        Category::Admin,
        Category::Dangerous,
        Category::String,
        Category::Bitmap,
        Category::Transaction,
        Category::Bloom,
        Category::Cuckoo,
        Category::Tamis,
    ];

    /// Returns the name, without the leading `@`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Category::Write => "write",
            Category::Read => "read",
            Category::Fast => "fast",
            Category::Slow => "slow",
            Category::Keyspace => "keyspace",
            Category::Connection => "connection",
            Category::Admin => "admin",
            Category::Dangerous => "dangerous",
            Category::String => "string",
            Category::Bitmap => "bitmap",
            Category::Transaction => "transaction",
            Category::Bloom => "bloom",
            Category::Cuckoo => "cuckoo",
            Category::Tamis => "tamis",
        }
    }
}
