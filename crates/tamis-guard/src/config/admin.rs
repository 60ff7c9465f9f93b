//! Parses the table `[admin]`.

use crate::config::file;
use crate::config::proxy::address;
use crate::config::set::AdminConfig;
use crate::config::setting::{InvalidValue, invalid};

/// Returns the address and the token of the admin server.
pub(super) fn admin(table: &file::Admin) -> Result<AdminConfig, InvalidValue> {
    let listen = address("admin.listen", &table.listen)?;
    if table.token.as_ref().is_some_and(|token| token.0.is_empty()) {
        return Err(invalid("admin.token", "must not be empty"));
    }
    Ok(AdminConfig { listen, token: table.token.clone() })
}
