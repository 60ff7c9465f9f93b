//! Texts of the commands about keys, the connection and the server: as Redis has them where it has them.

use std::fmt::Display;

use tamis_resp::Reply;

use super::Text;

/// `RESTORE`: the key holds something, and there is no `REPLACE`.
pub const BUSY_KEY: Text = "BUSYKEY Target key name already exists.";
/// `RESTORE`: a time before 1970.
pub const TTL: Text = "ERR Invalid TTL value, must be >= 0";
/// `RESTORE`: the payload is whole, but no value that there is here.
pub const BAD_DATA: Text = "ERR Bad data format";
/// `RESTORE`: the payload was changed or cut, or is of a newer server.
pub const BAD_PAYLOAD: Text = "ERR DUMP payload version or checksum are wrong";
/// There is one database.
pub const DB_INDEX: Text = "ERR DB index is out of range";
/// `HELLO`: neither 2 nor 3.
pub const NO_PROTOCOL: Text = "NOPROTO unsupported protocol version";
/// `HELLO`: the version is no integer.
pub const PROTOCOL: Text = "ERR Protocol version is not an integer or out of range";
/// A name that would not be one word of a list.
pub const CLIENT_NAME: Text =
    "ERR Client names cannot contain spaces, newlines or special characters.";
/// `CLIENT SETINFO`: such a name of a library.
pub const LIBRARY_NAME: Text =
    "ERR lib-name and lib-ver cannot contain spaces, newlines or special characters.";
/// `CLIENT LIST ID`: no number.
pub const CLIENT_ID: Text = "ERR Invalid client ID";
/// `CLIENT KILL`: no client has this address.
pub const NO_CLIENT: Text = "ERR No such client";
/// `CLIENT KILL ID`: no number from 1 on.
pub const CLIENT_ID_RANGE: Text = "ERR client-id should be greater than 0";
/// `MULTI` in a transaction.
pub const NESTED_MULTI: Text = "ERR MULTI calls can not be nested";
/// `DISCARD` outside of one.
pub const DISCARD_ALONE: Text = "ERR DISCARD without MULTI";
/// `EXEC` outside of one.
pub const EXEC_ALONE: Text = "ERR EXEC without MULTI";
/// `EXEC`: a command was refused when it was queued.
pub const BROKEN_MULTI: Text = "EXECABORT Transaction discarded because of previous errors.";
/// `WATCH` in a transaction.
pub const WATCH_IN_MULTI: Text = "ERR WATCH inside MULTI is not allowed";
/// Strings that are too long together.
pub const LONG_REPLY: Text =
    "ERR the reply would be longer than 512 MiB: ask for fewer keys at once";
/// A pattern that takes too long to compare.
pub const LONG_PATTERN: Text = "ERR the pattern is too long: give at most 1024 bytes";
/// `EXPIRE`: rules that exclude each other.
pub const EXPIRE_NX: Text = "ERR NX and XX, GT or LT options at the same time are not compatible";
/// `EXPIRE`: rules that exclude each other.
pub const EXPIRE_GT_LT: Text = "ERR GT and LT options at the same time are not compatible";
/// A value that would go into the log whole.
pub const LARGE_WHILE_SAVING: Text =
    "ERR a snapshot is being saved: move or copy this large value after it ends";
/// `RENAME` of nothing.
pub const NO_KEY: Text = "ERR no such key";
/// `COPY` of a key to itself.
pub const SAME_KEY: Text = "ERR source and destination objects are the same";
/// `SCAN`: the cursor is none that it gave.
pub const CURSOR: Text = "ERR invalid cursor";
/// `COMMAND GETKEYS`: there is no such command.
pub const NO_COMMAND: Text = "ERR Invalid command specified";
/// `COMMAND GETKEYS`: it takes another number of words.
pub const WORDS_OF_COMMAND: Text = "ERR Invalid number of arguments specified for command";
/// `COMMAND GETKEYS`: it has no keys.
pub const NO_KEYS: Text = "ERR The command has no key arguments";
/// A snapshot without a log.
pub const NOTHING_SAVED: Text = "ERR persistence is off: start the server with appendonly yes";
/// A snapshot is being written.
pub const SAVING: Text = "ERR Background save already in progress";
/// `SAVE`: the server ends.
pub const GIVEN_UP: Text = "ERR the snapshot was aborted: see the server's log";
/// `COPY`, `DUMP`: the server ends, or the copy did before its end.
pub const NOT_COPIED: Text = "ERR the value could not be copied: try again";
/// A command that cannot wait for `EXEC`.
pub const NOT_IN_MULTI: Text = "ERR Command not allowed inside a transaction";
/// A reply for which there is not enough memory.
pub const REPLY_MEMORY: Text =
    "OOM the reply needs more memory than 'maxmemory' or 'client-output-buffer-limit' leaves";
/// Nothing is added above `maxmemory`.
pub const MEMORY: Text = "OOM command not allowed when used memory > 'maxmemory'.";
/// A transaction that takes too much memory.
pub const LARGE_MULTI: Text = "ERR the transaction is too large: split it into several";
/// A command that takes too much memory.
pub const LARGE_COMMAND: Text = "ERR Protocol error: command too large";
/// `DEBUG` is not enabled.
pub const NO_DEBUG: Text = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.";
/// The server reads its data and runs no command.
pub const LOADING: Text = "LOADING Tamis is loading the dataset in memory";
/// `OBJECT FREQ`: nothing counts how often a key is touched.
pub const NO_LFU: Text = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.";

/// `LATENCY GRAPH`: nothing was measured.
#[must_use]
pub fn no_samples(event: &str) -> Reply {
    Reply::error(format!("ERR No samples available for event '{event}'"))
}

/// `HELLO`: there is no such option.
#[must_use]
pub fn hello_option(option: &str) -> Reply {
    Reply::error(format!("ERR Syntax error in HELLO option '{option}'"))
}

/// `CLIENT SETINFO`: there is no such field.
#[must_use]
pub fn client_option(option: &str) -> Reply {
    Reply::error(format!("ERR Unrecognized option '{option}'"))
}

/// `CLIENT KILL USER`: there is no such user.
#[must_use]
pub fn no_user(name: &str) -> Reply {
    Reply::error(format!("ERR No such user '{name}'"))
}

/// `EXPIRE` and its kin: a time that is none.
#[must_use]
pub fn expire_time(command: &str) -> Reply {
    Reply::error(format!("ERR invalid expire time in '{command}' command"))
}

/// `EXPIRE` and its kin: there is no such rule.
#[must_use]
pub fn expire_option(option: &str) -> Reply {
    Reply::error(format!("ERR Unsupported option {option}"))
}

/// `DEBUG RELOAD`: a value is not what its bytes say.
#[must_use]
pub fn not_reloaded(key: &[u8], why: impl Display) -> Reply {
    Reply::error(format!(
        "ERR the value of the key {:?} is not reloaded: {why}",
        key.escape_ascii().to_string()
    ))
}

/// There is no such subcommand.
#[must_use]
pub fn unknown_subcommand(command: &str, word: &str) -> Reply {
    Reply::error(format!("ERR unknown subcommand '{word}'. Try {command} HELP."))
}

/// `EXEC`: none of the commands ran.
#[must_use]
pub fn discarded(why: &str) -> Reply {
    Reply::error(format!("EXECABORT Transaction discarded because of: {why}"))
}

/// `CONFIG REWRITE` could not.
#[must_use]
pub fn not_rewritten(why: impl Display) -> Reply {
    Reply::error(format!("ERR the config file was not changed: {why}"))
}

/// `CONFIG SET`: there is no such option.
#[must_use]
pub fn no_option(name: &str) -> Reply {
    Reply::error(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"))
}

/// `CONFIG SET`: an option does not take the value.
#[must_use]
pub fn option_value(name: &str, why: impl Display) -> Reply {
    Reply::error(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
}

/// `CONFIG SET`: the options do not go together.
#[must_use]
pub fn options(why: impl Display) -> Reply {
    Reply::error(format!("ERR CONFIG SET failed - {why}"))
}

/// `CONFIG SET maxclients`: the limit of open files is too low for this number.
#[must_use]
pub fn max_clients(fitting: usize) -> Reply {
    option_value(
        "maxclients",
        format_args!(
            "The operating system is not able to handle the specified number of clients, try with {fitting}"
        ),
    )
}

/// Nothing is changed that cannot be kept.
#[must_use]
pub fn no_log(why: &str) -> String {
    format!("MISCONF the log cannot be written, so writes are refused: {why}")
}
