//! The names of the commands as the server knows them.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use tamis_commands::{COMMANDS, Command};

use crate::api::c_text;

/// The name of each row as it is registered: in lower case.
static NAMES: OnceLock<Vec<CString>> = OnceLock::new();

/// Returns the name of a command as it is registered. It is also the name of its keyspace events.
pub fn registered_name(command: &'static Command) -> &'static CStr {
    let lower = |command: &Command| c_text(&command.name.to_ascii_lowercase());
    &NAMES.get_or_init(|| COMMANDS.iter().map(lower).collect())[command.index()]
}
