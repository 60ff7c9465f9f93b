//! The functions that run commands. The variant of [`Handler`] states the access to keys that the
//! command needs.

use tamis_resp::Reply;

use crate::batch::{Batch, BatchItems};
use crate::command::argv::Argv;
use crate::command::run::{Env, Outcome, Written};
use crate::insert::BatchPart;
use crate::value::Value;

/// The function that runs a command, and the access to keys that the function needs.
#[derive(Clone, Copy, Debug)]
pub enum Handler {
    /// The command works on the value of one key.
    Key(KeyHandler),
    /// The command computes its reply from its arguments alone.
    Answer(AnswerHandler),
    /// The stand-alone server runs the command without access to keys.
    Server(ServerCommand),
    /// The stand-alone server runs the command with shared access to all keys.
    ReadKeys(ReadKeys),
    /// The stand-alone server runs the command with exclusive access to all keys.
    WriteKeys(WriteKeys),
}

/// The function that runs a command on the value of one key.
#[derive(Clone, Copy, Debug)]
pub enum KeyHandler {
    /// Reads the value under a shared lock.
    Read(ReadHandler),
    /// Creates, changes or removes the value under an exclusive lock.
    Write(WriteHandler),
    /// Looks up or inserts items. All arguments after the key are items. Consecutive commands on
    /// one key run as one [`Batch`].
    Items(BatchItems),
}

impl KeyHandler {
    /// Runs the command under an exclusive lock of the value.
    ///
    /// Where possible, the server runs a command under a shared lock or in a batch, with the same reply and the same
    /// change as this method.
    ///
    /// # Panics
    ///
    /// Panics if `argv` has fewer words than the arity of the command allows.
    pub fn run(self, value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Outcome {
        match self {
            KeyHandler::Read(read) => Outcome::unchanged(read(value.as_ref(), argv, env)),
            KeyHandler::Write(write) => write(value, argv, env).unwrap_or_else(Outcome::from),
            KeyHandler::Items(items) => {
                let mut batch = Batch::default();
                batch.push(argv);
                let outcome = if items.inserts {
                    batch.insert(items, value, BatchPart::All, env)
                } else {
                    _ = batch.run(items, value.as_ref(), env.now_millis);
                    Outcome::unchanged(())
                };
                outcome.with_reply(batch.answers(items).next().expect("one command was pushed"))
            }
        }
    }
}

/// Reads the value of a key. The value is `None` if the key does not exist.
pub type ReadHandler = fn(Option<&Value>, Argv<'_>, &Env<'_>) -> Reply;

/// Creates, changes or removes the value of a key. The value is `None` if the key does not exist.
/// After an error, the value is unchanged.
pub type WriteHandler = fn(&mut Option<Value>, Argv<'_>, &Env<'_>) -> Written;

/// Computes a reply from the arguments of a command.
pub type AnswerHandler = fn(Argv<'_>, &Env<'_>) -> Reply;

/// A command for the connection or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerCommand {
    /// `ACL`
    Acl,
    /// `AUTH`
    Auth,
    /// `CLIENT`
    Client,
    /// `COMMAND`
    Command,
    /// `CONFIG`
    Config,
    /// `DEBUG`
    Debug,
    /// `DISCARD`
    Discard,
    /// `ECHO`
    Echo,
    /// `EXEC`
    Exec,
    /// `HELLO`
    Hello,
    /// `LASTSAVE`
    LastSave,
    /// `LATENCY`
    Latency,
    /// `MODULE`
    Module,
    /// `MONITOR`
    Monitor,
    /// `MULTI`
    Multi,
    /// `PING`
    Ping,
    /// `QUIT`
    Quit,
    /// `RESET`
    Reset,
    /// `BGREWRITEAOF`
    RewriteLog,
    /// `SAVE`
    Save,
    /// `BGSAVE`
    SaveInBackground,
    /// `SELECT`
    Select,
    /// `SHUTDOWN`
    Shutdown,
    /// `SLOWLOG`
    SlowLog,
    /// `TIME`
    Time,
    /// `UNWATCH`
    Unwatch,
    /// `WATCH`
    Watch,
}

/// A command that reads several keys, or metadata of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadKeys {
    /// `EXISTS`, `TOUCH`
    CountExisting,
    /// `DBSIZE`
    CountAll,
    /// `DUMP`
    Dump,
    /// `EXPIRETIME`, `PEXPIRETIME`
    ExpireTime(TimeUnit),
    /// `MGET`
    GetEach,
    /// `INFO`
    Info,
    /// `KEYS`
    List,
    /// `MEMORY`
    Memory,
    /// `OBJECT`
    Object,
    /// `RANDOMKEY`
    Random,
    /// `SCAN`
    Scan,
    /// `TTL`, `PTTL`
    TimeLeft(TimeUnit),
}

/// A command that changes several keys, or metadata of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKeys {
    /// `BITOP`
    BitOp,
    /// `COPY`
    Copy,
    /// `DEL`, `UNLINK`
    Delete,
    /// `EXPIRE`, `PEXPIRE`: the argument is a duration from now.
    ExpireAfter(TimeUnit),
    /// `EXPIREAT`, `PEXPIREAT`: the argument is a time since 1970.
    ExpireAt(TimeUnit),
    /// `FLUSHALL`, `FLUSHDB`
    Flush,
    /// `TM.MERGE`
    Merge,
    /// `PERSIST`
    Persist,
    /// `RENAME`
    Rename,
    /// `RENAMENX`
    RenameIfAbsent,
    /// `RESTORE`
    Restore,
    /// `MSET`
    SetEach,
}

/// The unit of a time in an argument or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
}
