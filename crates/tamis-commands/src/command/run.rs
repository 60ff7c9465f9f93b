//! The environment and the outcome of a handler.

use tamis_resp::{Protocol, Reply};

use crate::settings::Settings;
use crate::text::{self, Text};
use crate::value::Value;

/// The inputs of a handler besides its argv and value.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// The settings of new filters.
    pub settings: &'a Settings,
    /// The protocol of the connection. A few replies differ between protocols in content, not only
    /// in encoding.
    pub protocol: Protocol,
    /// Milliseconds since 1970. With 0 the time is unknown, and windows keep their clocks: a
    /// replica runs the commands of its primary so.
    pub now_millis: u64,
    /// The recent rate of new items in the value of the command's key, in items per second, if the
    /// server knows it.
    pub items_per_second: Option<f64>,
    /// The longest reply that fits the available memory, in bytes. A handler rejects a longer reply
    /// before it allocates it.
    pub max_reply_bytes: u64,
}

impl<'a> Env<'a> {
    /// Creates the environment of a command at `now_millis`, in milliseconds since 1970, with no
    /// rate of new items and no limit on the reply.
    #[must_use]
    pub fn new(settings: &'a Settings, protocol: Protocol, now_millis: u64) -> Self {
        Self { settings, protocol, now_millis, items_per_second: None, max_reply_bytes: u64::MAX }
    }

    /// Returns the same environment at another time, in milliseconds since 1970.
    #[must_use]
    pub fn at(&self, now_millis: u64) -> Self {
        Self { now_millis, ..*self }
    }

    /// Checks that a reply of `bytes` bytes fits the available memory.
    ///
    /// # Errors
    ///
    /// The error reply of the command, if the reply does not fit.
    pub fn check_reply(&self, bytes: u64) -> Result<(), Text> {
        if bytes <= self.max_reply_bytes { Ok(()) } else { Err(text::server::REPLY_MEMORY) }
    }
}

/// The reply to a command about one key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyReply {
    /// The reply.
    pub reply: Reply,
    /// Every later item of the command would get the same error: see [`Outcome::stops`].
    pub stops: bool,
}

impl From<Reply> for KeyReply {
    fn from(reply: Reply) -> Self {
        Self { reply, stops: false }
    }
}

/// The result of a command that may change a value. A batch has the reply `()` here, because its
/// [answers](crate::Batch::answers) hold a reply for each command.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<R = Reply> {
    /// The reply.
    pub reply: R,
    /// The change of the value.
    pub change: Change,
    /// The change of the key's expiry time.
    pub expiry: Expiry,
    /// If the command created a filter: the [image](crate::Value::new_image) of the filter before
    /// its first item. The log needs it, because the filter's parameters may come from settings,
    /// which the log does not contain.
    pub created: Option<Vec<u8>>,
    /// True if the last item got an error that every later item would get too. The command tried
    /// none of the later items.
    pub stops: bool,
}

/// How a command changes the expiry time of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// The expiry time is unchanged.
    #[default]
    Kept,
    /// The expiry time is removed, because the command replaced the value.
    Never,
    /// The new expiry time, in milliseconds since 1970.
    At(u64),
}

/// The change of a value besides its creation, for the log. Replaying it reads no settings except
/// limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The value is unchanged.
    None,
    /// Running the same argv again on the previous value makes the same change. For a batch: each
    /// argv of the batch, in order.
    Argv,
    /// Running this other argv makes the same change. The original command was rejected in part, by
    /// limits that may differ at replay.
    Replaced(Vec<Vec<u8>>),
    /// The command inserted items with these hashes into a Bloom filter that already existed.
    Inserted(Vec<u64>),
}

impl Change {
    /// Creates the change of a command that accepted only `items`. The log gets a command that
    /// consists of `start` and these items.
    pub(crate) fn accepted(start: &[&[u8]], items: &[&[u8]]) -> Self {
        let words = start.iter().chain(items).map(|word| word.to_vec());
        if items.is_empty() { Change::None } else { Change::Replaced(words.collect()) }
    }
}

impl Outcome {
    /// Creates an outcome with a change.
    pub(crate) fn changed(reply: Reply) -> Self {
        Self { change: Change::Argv, ..Self::unchanged(reply) }
    }

    /// Creates an outcome, with a change if `has_changed`.
    pub(crate) fn after(reply: Reply, has_changed: bool) -> Self {
        if has_changed { Self::changed(reply) } else { Self::unchanged(reply) }
    }

    /// Sets the value of a key that does not exist to a new filter.
    pub(crate) fn create(value: &mut Option<Value>, new: Value) -> Self {
        let created = Some(value.insert(new).new_image());
        Self { created, ..Self::unchanged(Reply::ok()) }
    }
}

impl<R> Outcome<R> {
    /// Creates an outcome with a reply and no change.
    pub(crate) fn unchanged(reply: R) -> Self {
        Self { reply, change: Change::None, expiry: Expiry::Kept, created: None, stops: false }
    }

    /// Tests whether the command changed anything.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.change != Change::None || self.created.is_some()
    }

    /// Returns the outcome after the server has undone all changes.
    #[must_use]
    pub fn undone(self) -> Self {
        Self::unchanged(self.reply)
    }

    /// Returns the same outcome with this reply.
    #[must_use]
    pub fn with_reply(self, KeyReply { reply, stops }: KeyReply) -> Outcome {
        let Self { change, expiry, created, .. } = self;
        Outcome { reply, change, expiry, created, stops }
    }
}

/// The error that stops a command before its first change.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorReply(pub Reply);

/// The outcome of a write handler.
pub type Written = Result<Outcome, ErrorReply>;

impl From<Text> for ErrorReply {
    fn from(text: Text) -> Self {
        Self(error(text))
    }
}

impl From<Reply> for ErrorReply {
    fn from(reply: Reply) -> Self {
        Self(reply)
    }
}

impl From<ErrorReply> for Outcome {
    fn from(ErrorReply(reply): ErrorReply) -> Self {
        Outcome::unchanged(reply)
    }
}

/// Creates an error reply.
pub(crate) fn error(text: &'static str) -> Reply {
    Reply::Error(text.into())
}
