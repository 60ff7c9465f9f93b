//! The access categories of commands.

/// A group of commands that a user's rules can allow together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Commands that change keys.
    Write,
    /// Commands that read keys.
    Read,
    /// Commands that take constant time, or nearly constant time.
    Fast,
    /// Commands that may take a long time.
    Slow,
    /// Commands for keys of any type.
    Keyspace,
    /// Commands for the connection.
    Connection,
    /// Commands for operators.
    Admin,
    /// Commands that can harm the server or its data.
    Dangerous,
    /// Commands for strings.
    String,
    /// Commands for bitmaps.
    Bitmap,
    /// Commands for transactions.
    Transaction,
    /// `BF.*` commands.
    Bloom,
    /// `CF.*` commands.
    Cuckoo,
    /// `TM.*` commands.
    Tamis,
}

impl Category {
    /// All categories.
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
