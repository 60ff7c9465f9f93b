//! `SLOWLOG`: the latest slow commands.

use tamis_commands::{Argv, parse_integer, text};
use tamis_resp::Reply;

use crate::session::Session;
use crate::session::subcommand::unknown_subcommand;

pub(super) fn slow_log(session: &Session, argv: Argv<'_>) -> Reply {
    let slow = &session.server.stats.slow;
    let most = session.server.config().slow_entries;
    match (argv[1].to_ascii_uppercase().as_slice(), &argv[2..]) {
        (b"GET", []) => get(session, 10),
        (b"GET", [count]) => match parse_integer(count) {
            Some(-1) => get(session, usize::MAX),
            Some(count) if count >= 0 => get(session, usize::try_from(count).unwrap_or(usize::MAX)),
            _ => Reply::error(text::SLOW_COUNT),
        },
        (b"LEN", []) => Reply::Integer(slow.len(most) as i64),
        (b"RESET", []) => {
            slow.reset();
            Reply::ok()
        }
        _ => unknown_subcommand("SLOWLOG", argv[1]),
    }
}

fn get(session: &Session, count: usize) -> Reply {
    let most = session.server.config().slow_entries;
    let entries = session.server.stats.slow.latest(count, most);
    let reply = entries.into_iter().map(|entry| {
        Reply::Array(vec![
            Reply::Integer(entry.id as i64),
            Reply::Integer(entry.seconds as i64),
            Reply::Integer(i64::try_from(entry.micros).unwrap_or(i64::MAX)),
            Reply::Array(entry.argv.into_iter().map(Reply::Bulk).collect()),
            Reply::bulk(entry.address),
            Reply::bulk(entry.client),
        ])
    });
    Reply::Array(reply.collect())
}
