//! `LATENCY`: reports the durations of command calls.

use tamis_commands::text::{self, server};
use tamis_commands::{Argv, COMMANDS, Command, find};
use tamis_resp::Reply;

use crate::handlers::client::{map, verbatim};
use crate::session::Session;
use crate::session::subcommand::unknown_subcommand;
use crate::stats::{Called, bound_nanos};

pub(super) fn latency(session: &Session, argv: Argv<'_>) -> Reply {
    match (argv[1].to_ascii_uppercase().as_slice(), &argv[2..]) {
        (b"HISTOGRAM", names) => histogram(session, names),
        // The server does not record latency events, such as a slow disk. `SLOWLOG` and the metrics
        // show slow commands.
        (b"LATEST", []) | (b"HISTORY", [_]) => Reply::Array(Vec::new()),
        (b"RESET", _) => Reply::Integer(0),
        (b"DOCTOR", []) => verbatim(
            "No latency events are kept. LATENCY HISTOGRAM shows how long commands took, and \
             SLOWLOG GET which took long.\n"
                .to_owned(),
        ),
        (b"GRAPH", [event]) => server::no_samples(&text::shown(event)),
        _ => unknown_subcommand("LATENCY", argv[1]),
    }
}

fn histogram(session: &Session, names: Argv<'_>) -> Reply {
    let commands: Vec<&Command> = match names {
        [] => COMMANDS.iter().collect(),
        names => names.iter().filter_map(|name| find(name)).collect(),
    };
    let mut listed: Vec<(Reply, Reply)> = Vec::new();
    for command in commands {
        let called = session.server.stats.calls.of(command.index());
        let name = Reply::bulk(command.name.to_ascii_lowercase());
        // List each name only once, because the reply is a map.
        if called.calls() > 0 && listed.iter().all(|(other, _)| *other != name) {
            listed.push((name, of_command(&called)));
        }
    }
    Reply::Map(listed)
}

fn of_command(called: &Called) -> Reply {
    let mut counts: Vec<(Reply, Reply)> = Vec::new();
    let (mut sum, mut last) = (0, -1);
    for (bucket, &calls) in called.buckets.iter().enumerate().filter(|(_, calls)| **calls > 0) {
        sum += calls;
        let below = bound_nanos(bucket).or(bound_nanos(bucket - 1).map(|most| 2.0 * most));
        // The bounds in the reply are whole microseconds, so bounds below a microsecond are not
        // possible.
        let micros = (below.unwrap_or(0.0) / 1000.0).max(1.0) as i64;
        if micros == last {
            counts.pop();
        }
        counts.push((Reply::Integer(micros), Reply::Integer(sum as i64)));
        last = micros;
    }
    map([("calls", Reply::Integer(sum as i64)), ("histogram_usec", Reply::Map(counts))])
}
