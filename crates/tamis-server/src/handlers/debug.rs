//! `DEBUG`: commands for tests of the server. The option `enable-debug-command` enables `DEBUG`.

use tamis_commands::text::{self, server};
use tamis_commands::{Argv, Value};
use tamis_resp::Reply;

use crate::config::DebugCommand;
use crate::handlers::admin;
use crate::keyspace::ExclusiveAccess;
use crate::session::Session;
use crate::session::subcommand::unknown_subcommand;
use crate::system::clock::now_millis;

pub(super) async fn debug(session: &Session, argv: Argv<'_>) -> Reply {
    let is_allowed = match session.server.config().debug_command {
        DebugCommand::No => false,
        DebugCommand::Local => session.client.peer.ip().is_loopback(),
        DebugCommand::Yes => true,
    };
    if !is_allowed {
        return Reply::error(server::NO_DEBUG);
    }
    match (argv[1].to_ascii_uppercase().as_slice(), &argv[2..]) {
        (b"RELOAD", options) => {
            let saves = match options {
                [] => session.server.durable.is_some(),
                [option] if option.eq_ignore_ascii_case(b"NOSAVE") => false,
                _ => return Reply::error(text::SYNTAX),
            };
            if saves {
                let saved = admin::save_now(session).await;
                if saved != Reply::ok() {
                    return saved;
                }
            }
            let keys = session.server.keyspace.exclusive_to_change(|_| true).await;
            reload(&keys, now_millis())
        }
        _ => unknown_subcommand("DEBUG", argv[1]),
    }
}

/// Encodes each value in the same way as a snapshot, and replaces the value by the decoded value.
fn reload(keys: &ExclusiveAccess<'_>, now_millis: u64) -> Reply {
    for part in 0..keys.shard_count() {
        let mut names: Vec<Vec<u8>> = Vec::new();
        keys.each_key(part, now_millis, |key, _| names.push(key.to_vec()));
        for name in names {
            let image = keys.read(&name, now_millis, |value| value.map(Value::to_image));
            let Some(image) = image else { continue };
            match Value::from_image(&image) {
                Ok(value) => {
                    keys.write(&name, now_millis, |slot| *slot = Some(value.without_bits()));
                }
                Err(error) => return server::not_reloaded(&name, error),
            }
        }
    }
    Reply::ok()
}
