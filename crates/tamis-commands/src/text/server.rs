//! Texts of the commands for keys, the connection and the server. If Redis has the command, the
//! text equals the text of Redis.

use std::fmt::Display;

use tamis_resp::Reply;

use crate::text::Text;

/// `RESTORE`: the key exists, and `REPLACE` is missing.
pub const BUSY_KEY: Text = "BUSYKEY Target key name already exists.";
/// `RESTORE`: the expiry time is before 1970.
pub const TTL: Text = "ERR Invalid TTL value, must be >= 0";
/// `RESTORE`: the payload is intact, but contains no value that Tamis supports.
pub const BAD_DATA: Text = "ERR Bad data format";
/// `RESTORE`: the payload was changed or truncated, or is from a newer server.
pub const BAD_PAYLOAD: Text = "ERR DUMP payload version or checksum are wrong";
/// The server has a single database.
pub const DB_INDEX: Text = "ERR DB index is out of range";
/// `HELLO`: the protocol version is neither 2 nor 3.
pub const NO_PROTOCOL: Text = "NOPROTO unsupported protocol version";
/// `HELLO`: the protocol version is not an integer.
pub const PROTOCOL: Text = "ERR Protocol version is not an integer or out of range";
/// The name of a client is not a single word.
pub const CLIENT_NAME: Text =
    "ERR Client names cannot contain spaces, newlines or special characters.";
/// `CLIENT SETINFO`: the name or version of a library is not a single word.
pub const LIBRARY_NAME: Text =
    "ERR lib-name and lib-ver cannot contain spaces, newlines or special characters.";
/// `CLIENT LIST ID`: the ID is not a number.
pub const CLIENT_ID: Text = "ERR Invalid client ID";
/// `CLIENT KILL`: no client has the given address.
pub const NO_CLIENT: Text = "ERR No such client";
/// `CLIENT KILL ID`: the ID is not a number of at least 1.
pub const CLIENT_ID_RANGE: Text = "ERR client-id should be greater than 0";
/// `MULTI`: the connection is already in a transaction.
pub const NESTED_MULTI: Text = "ERR MULTI calls can not be nested";
/// `DISCARD`: the connection is not in a transaction.
pub const DISCARD_ALONE: Text = "ERR DISCARD without MULTI";
/// `EXEC`: the connection is not in a transaction.
pub const EXEC_ALONE: Text = "ERR EXEC without MULTI";
/// `EXEC`: the server rejected a command instead of queuing the command.
pub const BROKEN_MULTI: Text = "EXECABORT Transaction discarded because of previous errors.";
/// `WATCH`: the connection is already in a transaction.
pub const WATCH_IN_MULTI: Text = "ERR WATCH inside MULTI is not allowed";
/// The total length of the strings in a reply is too large.
pub const LONG_REPLY: Text =
    "ERR the reply would be longer than 512 MiB: ask for fewer keys at once";
/// A pattern is too long for fast matching of keys.
pub const LONG_PATTERN: Text = "ERR the pattern is too long: give at most 1024 bytes";
/// `EXPIRE`: the conditions of the command exclude each other.
pub const EXPIRE_NX: Text = "ERR NX and XX, GT or LT options at the same time are not compatible";
/// `EXPIRE`: the conditions of the command exclude each other.
pub const EXPIRE_GT_LT: Text = "ERR GT and LT options at the same time are not compatible";
/// The command would write a whole large value to the log.
pub const LARGE_WHILE_SAVING: Text =
    "ERR a snapshot is being saved: move or copy this large value after it ends";
/// `RENAME`: the key does not exist.
pub const NO_KEY: Text = "ERR no such key";
/// `COPY`: source and destination are the same key.
pub const SAME_KEY: Text = "ERR source and destination objects are the same";
/// `SCAN`: the cursor was not returned by `SCAN`.
pub const CURSOR: Text = "ERR invalid cursor";
/// `COMMAND GETKEYS`: the command is unknown.
pub const NO_COMMAND: Text = "ERR Invalid command specified";
/// `COMMAND GETKEYS`: the number of arguments is wrong for the command.
pub const WORDS_OF_COMMAND: Text = "ERR Invalid number of arguments specified for command";
/// `COMMAND GETKEYS`: the command has no keys.
pub const NO_KEYS: Text = "ERR The command has no key arguments";
/// A snapshot was requested, but the server has no log.
pub const NOTHING_SAVED: Text = "ERR persistence is off: start the server with appendonly yes";
/// The server is already saving a snapshot.
pub const SAVING: Text = "ERR Background save already in progress";
/// `SAVE`: the server shuts down.
pub const GIVEN_UP: Text = "ERR the snapshot was aborted: see the server's log";
/// `COPY`, `DUMP`: the server shuts down, or the copy was aborted.
pub const NOT_COPIED: Text = "ERR the value could not be copied: try again";
/// The command may not run inside a transaction.
pub const NOT_IN_MULTI: Text = "ERR Command not allowed inside a transaction";
/// There is not enough memory for the reply.
pub const REPLY_MEMORY: Text =
    "OOM the reply needs more memory than 'maxmemory' or 'client-output-buffer-limit' leaves";
/// The used memory is above `maxmemory`, so the server rejects commands that add data.
pub const MEMORY: Text = "OOM command not allowed when used memory > 'maxmemory'.";
/// The transaction takes too much memory.
pub const LARGE_MULTI: Text = "ERR the transaction is too large: split it into several";
/// The command takes too much memory.
pub const LARGE_COMMAND: Text = "ERR Protocol error: command too large";
/// `DEBUG` is not enabled.
pub const NO_DEBUG: Text = "ERR DEBUG command not allowed. If the enable-debug-command option is \
    set to \"local\", you can run it from a local connection, otherwise you need to set this \
    option in the configuration file, and then restart the server.";
/// The server is loading its data and runs no command.
pub const LOADING: Text = "LOADING Tamis is loading the dataset in memory";
/// `OBJECT FREQ`: the server does not count accesses to keys.
pub const NO_LFU: Text = "ERR An LFU maxmemory policy is not selected, access frequency not \
    tracked. Please note that when switching between policies at runtime LRU and LFU data will \
    take some time to adjust.";

/// `LATENCY GRAPH`: the event has no samples.
pub fn no_samples(event: &str) -> Reply {
    Reply::error(format!("ERR No samples available for event '{event}'"))
}

/// `HELLO`: the option is unknown.
pub fn hello_option(option: &str) -> Reply {
    Reply::error(format!("ERR Syntax error in HELLO option '{option}'"))
}

/// `CLIENT SETINFO`: the field is unknown.
pub fn client_option(option: &str) -> Reply {
    Reply::error(format!("ERR Unrecognized option '{option}'"))
}

/// `CLIENT KILL USER`: the user does not exist.
pub fn no_user(name: &str) -> Reply {
    Reply::error(format!("ERR No such user '{name}'"))
}

/// `EXPIRE` and similar commands: the expiry time is invalid.
pub fn expire_time(command: &str) -> Reply {
    Reply::error(format!("ERR invalid expire time in '{command}' command"))
}

/// `EXPIRE` and similar commands: the condition is unknown.
pub fn expire_option(option: &str) -> Reply {
    Reply::error(format!("ERR Unsupported option {option}"))
}

/// `DEBUG RELOAD`: a value does not match its encoded bytes.
pub fn not_reloaded(key: &[u8], why: impl Display) -> Reply {
    Reply::error(format!(
        "ERR the value of the key {:?} is not reloaded: {why}",
        key.escape_ascii().to_string()
    ))
}

/// The subcommand is unknown.
pub fn unknown_subcommand(command: &str, word: &str) -> Reply {
    Reply::error(format!("ERR unknown subcommand '{word}'. Try {command} HELP."))
}

/// `EXEC`: no command of the transaction ran.
pub fn discarded(why: &str) -> Reply {
    Reply::error(format!("EXECABORT Transaction discarded because of: {why}"))
}

/// `CONFIG REWRITE`: the file was not written.
pub fn not_rewritten(why: impl Display) -> Reply {
    Reply::error(format!("ERR the config file was not changed: {why}"))
}

/// `CONFIG SET`: the option is unknown.
pub fn no_option(name: &str) -> Reply {
    Reply::error(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'"))
}

/// `CONFIG SET`: the option rejects the value.
pub fn option_value(name: &str, why: impl Display) -> Reply {
    Reply::error(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}"))
}

/// `CONFIG SET`: the options contradict each other.
pub fn options(why: impl Display) -> Reply {
    Reply::error(format!("ERR CONFIG SET failed - {why}"))
}

/// `CONFIG SET maxclients`: the limit of open files is too low for the requested number of clients.
pub fn max_clients(fitting: usize) -> Reply {
    option_value(
        "maxclients",
        format_args!(
            "The operating system is not able to handle the specified number of clients, try with \
                {fitting}"
        ),
    )
}

/// The server cannot write to the log, so the server rejects changes.
pub fn no_log(why: &str) -> String {
    format!("MISCONF the log cannot be written, so writes are refused: {why}")
}

/// Returns the error of a command that changed a value before the write to the log failed.
#[must_use]
pub fn uncertain(why: &str) -> String {
    format!(
        "UNCERTAIN the log could not be written after this command changed a value: the change may \
         be lost at a restart: {why}"
    )
}
