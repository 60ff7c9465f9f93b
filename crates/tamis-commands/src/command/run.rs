//! The environment and the outcome of a handler.

use tamis_resp::{Protocol, Reply};

use crate::settings::Settings;
use crate::text::{self, Text};
use crate::value::Value;

/// The inputs of a handler, except the argv and the value.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// The settings of new filters.
    pub settings: &'a Settings,
    /// The protocol of the connection. A few replies differ between protocols in content, not only
    /// in encoding.
    pub protocol: Protocol,
    /// The current time in milliseconds since 1970, or 0 if the time is unknown. With 0, a command
    /// does not move the clock of a window. A replica uses 0 for the commands of the primary.
    pub now_millis: u64,
    /// The recent rate of new items for the key, in items per second. `None` if the server has not
    /// measured the rate.
    pub items_per_second: Option<f64>,
    /// The longest reply that fits the available memory, in bytes. A handler rejects a reply that does not fit, before
    /// allocating memory for the reply.
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
    /// The error text for the client, if the reply does not fit the available memory.
    pub fn check_reply(&self, bytes: u64) -> Result<(), Text> {
        if bytes <= self.max_reply_bytes { Ok(()) } else { Err(text::server::REPLY_MEMORY) }
    }
}

/// The reply to a command about one key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyReply {
    /// The reply.
    pub reply: Reply,
    /// True if the error applies to every later item of the command: see [`Outcome::stops`].
    pub stops: bool,
}

impl From<Reply> for KeyReply {
    fn from(reply: Reply) -> Self {
        Self { reply, stops: false }
    }
}

/// The result of a command that may change a value. For a batch, the reply is `()`, because the
/// [answers](crate::Batch::answers) contain a reply for each command.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<R = Reply> {
    /// The reply.
    pub reply: R,
    /// The change of the value.
    pub change: Change,
    /// The change of the key's expiry time.
    pub expiry: Expiry,
    /// The [image](crate::Value::new_image) of the filter that the command created, without items; `None` if the
    /// command created no filter. The log stores the image of the created filter, because the parameters of the filter
    /// may come from settings, and the log contains no settings.
    pub created: Option<Vec<u8>>,
    /// True if the last processed item got an error that every later item would get too. The command did not process
    /// the items after the failed item.
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

/// The change of a value, for the log. [`Outcome::created`] describes the creation of a filter
/// separately. The replay of a change reads no settings except limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The value is unchanged.
    None,
    /// Running the same argv again on the previous value makes the same change. For a batch, the
    /// replay runs each argv of the batch in order.
    Argv,
    /// Running the stored argv instead of the original argv makes the same change. Limits rejected a part of the
    /// original command, and the limits may differ at replay.
    Replaced(Vec<Vec<u8>>),
    /// The command inserted items with the given hashes into a Bloom filter that already existed.
    Inserted(Vec<u64>),
}

impl Change {
    /// Creates the change of a command that accepted only `items`. The log gets a command that consists of `start` and
    /// `items`.
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

    /// Creates an outcome. The outcome contains a change if `has_changed` is true.
    pub(crate) fn after(reply: Reply, has_changed: bool) -> Self {
        if has_changed { Self::changed(reply) } else { Self::unchanged(reply) }
    }

    /// Stores a new filter as the value of a key that does not exist, and creates the outcome.
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

    /// Tests whether the command changed or created the value.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.change != Change::None || self.created.is_some()
    }

    /// Returns the outcome after the server has undone all changes.
    #[must_use]
    pub fn undone(self) -> Self {
        Self::unchanged(self.reply)
    }

    /// Returns the same outcome with the given reply.
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
