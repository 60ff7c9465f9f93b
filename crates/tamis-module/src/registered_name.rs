//! The names under which the module registers the commands.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use tamis_commands::{COMMANDS, Command};

use crate::api::c_text;

/// The registered name of each command: the name in lower case.
static NAMES: OnceLock<Vec<CString>> = OnceLock::new();

/// Returns the registered name of a command. The keyspace events of a command have the registered name of the command.
pub fn registered_name(command: &'static Command) -> &'static CStr {
    let lower = |command: &Command| c_text(&command.name.to_ascii_lowercase());
    &NAMES.get_or_init(|| COMMANDS.iter().map(lower).collect())[command.index()]
}
