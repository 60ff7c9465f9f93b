//! What a handler knows besides its words and value, and what it returns.

use tamis_resp::{Protocol, Reply};

use crate::settings::Settings;
use crate::text::{self, Text};

/// What a command may know besides its words and value.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// The settings of new filters.
    pub settings: &'a Settings,
    /// How the reply will be written: a few replies differ by more than their form.
    pub protocol: Protocol,
    /// Milliseconds since 1970.
    pub now_millis: u64,
    /// How many new items a second the value of the command's key has taken of late, if the host knows.
    pub items_per_second: Option<f64>,
    /// The longest reply that there is memory for, in bytes. A longer one is refused before it is made.
    pub max_reply_bytes: u64,
}

impl<'a> Env<'a> {
    /// Returns the environment of a command at `now_millis`, in milliseconds since 1970: without a rate of new items, and
    /// without a limit of the reply.
    #[must_use]
    pub fn new(settings: &'a Settings, protocol: Protocol, now_millis: u64) -> Self {
        Self { settings, protocol, now_millis, items_per_second: None, max_reply_bytes: u64::MAX }
    }

    /// Checks that there is memory for a reply of `bytes` bytes.
    ///
    /// # Errors
    ///
    /// The error of the command.
    pub fn check_reply(&self, bytes: u64) -> Result<(), Text> {
        if bytes <= self.max_reply_bytes { Ok(()) } else { Err(text::server::REPLY_MEMORY) }
    }
}

/// What came of a command that may change a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The answer.
    pub reply: Reply,
    /// What it did to the value.
    pub change: Change,
    /// When the key expires from now on.
    pub expiry: Expiry,
    /// If it created a filter: the [image](crate::Value::new_image) of the filter before its first item. The filter's
    /// parameters may come from settings, which the log does not have.
    pub created: Option<Vec<u8>>,
    /// The last reply to an item is an error that would be the reply to every later item: the command tried none of them.
    pub stops: bool,
}

/// What becomes of the time at which a key expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// It stays as it is.
    #[default]
    Kept,
    /// There is none any more: the value is another.
    Never,
    /// It is this one, in milliseconds since 1970.
    At(u64),
}

/// What a command did to a value besides creating it, for the log. Replaying it reads no setting but limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// What its words say. Running the command again on the value as it was does the same.
    Words,
    /// What these words say, another command: the one that ran was refused in part, by limits that hold at the time.
    Replaced(Vec<Vec<u8>>),
    /// It inserted items of these hashes into the Bloom filter that was there.
    Inserted(Vec<u64>),
}

impl Outcome {
    /// A reply after a change.
    pub(crate) fn changed(reply: Reply) -> Self {
        Self { change: Change::Words, ..Self::unchanged(reply) }
    }

    /// A reply, after a change or without one.
    pub(crate) fn after(reply: Reply, has_changed: bool) -> Self {
        if has_changed { Self::changed(reply) } else { Self::unchanged(reply) }
    }

    /// A reply after items were accepted: the change is a command that has only these. `start` are its first words.
    pub(crate) fn accepted(reply: Reply, start: &[&[u8]], items: &[&[u8]]) -> Self {
        let words = start.iter().chain(items).map(|word| word.to_vec());
        let change =
            if items.is_empty() { Change::None } else { Change::Replaced(words.collect()) };
        Self { change, ..Self::unchanged(reply) }
    }

    /// A reply after a filter was created.
    pub(crate) fn created(reply: Reply, image: Vec<u8>) -> Self {
        Self { created: Some(image), ..Self::unchanged(reply) }
    }

    /// Returns whether the command has changed anything.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.change != Change::None || self.created.is_some()
    }

    /// Makes of the outcome for several items, of which there was one, that for one.
    pub(crate) fn of_one(mut self) -> Self {
        self.reply = match self.reply {
            Reply::Bools { mask, .. } => {
                Reply::Bool(mask.first().is_some_and(|word| word & 1 == 1))
            }
            Reply::Array(mut one) => one.pop().unwrap_or(Reply::Null),
            other => other,
        };
        self
    }

    /// An error, and no change.
    #[must_use]
    pub fn refused(text: &'static str) -> Self {
        text.into()
    }

    /// A reply without one.
    pub(crate) fn unchanged(reply: Reply) -> Self {
        Self { reply, change: Change::None, expiry: Expiry::Kept, created: None, stops: false }
    }
}

/// The error texts that stop a command before its first change.
impl From<&'static str> for Outcome {
    fn from(text: &'static str) -> Self {
        Outcome::unchanged(error(text))
    }
}

/// Makes an error reply of a text.
pub(crate) fn error(text: &'static str) -> Reply {
    Reply::Error(text.into())
}
