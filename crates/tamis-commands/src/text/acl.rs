//! Texts about users and their permissions.

use tamis_resp::Reply;

use crate::text::{Text, shown};

/// The connection is not authenticated.
pub const NO_AUTH: Text = "NOAUTH Authentication required.";
/// `HELLO`: the connection is not authenticated.
pub const NO_AUTH_HELLO: Text = "NOAUTH HELLO must be called with the client already \
    authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to \
    authenticate the client and select the RESP protocol version at the same time";
/// The user does not exist, has another password, or is disabled.
pub const WRONG_PASSWORD: Text = "WRONGPASS invalid username-password pair or user is disabled.";
/// `AUTH`: the command contains a password, but the default user has no password.
pub const NO_PASSWORD: Text = "ERR AUTH <password> called without any password configured for the \
    default user. Are you sure your configuration is correct?";
/// The user has no permission for one of the keys.
pub const NO_KEY: Text = "NOPERM No permissions to access a key";
/// The user was deleted or disabled after the connection authenticated.
pub const GONE: Text = "NOAUTH the user of this connection was deleted or disabled";
/// The name of a user contains white space or a zero byte.
pub const NAME: Text = "ERR Usernames can't contain spaces or null characters";
/// The default user cannot be deleted.
pub const DEFAULT_STAYS: Text = "ERR The 'default' user cannot be removed";
/// An ACL change would leave the default user without a password on a network address.
pub const MUST_ASK: Text = "ERR the server listens on a non-loopback address: the default user \
    must have a password or be disabled";
/// `ACL LOAD`, `ACL SAVE`: no ACL file is configured.
pub const NO_FILE: Text = "ERR no ACL file is configured: start the server with the option aclfile";
/// `ACL GENPASS`: the number of bits is invalid.
pub const GENPASS: Text = "ERR ACL GENPASS argument must be the number of bits for the output \
    password, a positive number up to 4096";
/// The operating system returned no random numbers.
pub const NO_RANDOM: Text = "ERR the operating system returned no random numbers";

// The following texts appear after "Error in ACL SETUSER modifier '...': ".
/// The rule is unknown.
pub const SYNTAX: Text = "Syntax error";
/// The command or category is unknown.
pub const UNKNOWN_COMMAND: Text = "Unknown command or category name in ACL";
/// A key pattern after a rule that allows all keys has no effect.
pub const PATTERN_AFTER_ALL_KEYS: Text = "Adding a pattern after the * pattern (or the 'allkeys' \
    flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list \
    of patterns";
/// A channel pattern after a rule that allows all channels has no effect.
pub const PATTERN_AFTER_ALL_CHANNELS: Text = "Adding a pattern after the * pattern (or the \
    'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start \
    with an empty list of channels";
/// The pattern is too long for fast matching of keys.
pub const PATTERN_TOO_LONG: Text = "The pattern is longer than 1024 bytes";
/// The digest is invalid.
pub const HASH: Text = "The password hash must be exactly 64 characters and contain only lowercase \
    hexadecimal characters";
/// The user does not have the given password.
pub const NO_SUCH_PASSWORD: Text =
    "The password you are trying to remove from the user does not exist";

/// Returns the error for a user without permission for a command.
pub fn no_command(user: &[u8], command: &str) -> Reply {
    let user = shown(user);
    Reply::error(format!("NOPERM User {user} has no permissions to run the '{command}' command"))
}

/// `EXEC`: returns the error for a queued command that is no longer allowed.
pub fn no_longer(is_key: bool) -> Reply {
    let why = if is_key {
        "no permission to access one of the keys used as arguments"
    } else {
        "no permission to execute the command or subcommand"
    };
    Reply::error(format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC \
            call. This command is no longer allowed for the following reason: {why}"
    ))
}

/// `ACL SETUSER`: returns the error for an invalid rule.
pub fn bad_rule(rule: &[u8], why: Text) -> Reply {
    let rule = shown(rule);
    Reply::error(format!("ERR Error in ACL SETUSER modifier '{rule}': {why}"))
}

/// `ACL LOAD`: returns the error for a file that cannot be loaded.
pub fn not_loaded(why: impl std::fmt::Display) -> Reply {
    Reply::error(format!("ERR {why}. No user was changed"))
}

/// `ACL SETUSER`: returns the error for a selector without a closing parenthesis.
pub fn unmatched(selector: &[u8]) -> Reply {
    let selector = shown(selector);
    Reply::error(format!("ERR Unmatched parenthesis in acl selector starting at '{selector}'."))
}

/// Returns the error for an unknown user.
pub fn no_user(name: &[u8]) -> Reply {
    Reply::error(format!("ERR User '{}' not found", shown(name)))
}

/// Returns the error for an unknown command.
pub fn no_such_command(name: &[u8]) -> Reply {
    Reply::error(format!("ERR Command '{}' not found", shown(name)))
}

/// Returns the error for an unknown category.
pub fn no_category(name: &[u8]) -> Reply {
    Reply::error(format!("ERR Unknown category '{}'", shown(name)))
}
