//! Runs the commands of docs/scale-out.md.

use std::process::Command;

use tamis_resp::Reply;
use tamis_testing::{CommandExt as _, wait_until};

use crate::redisbloom::{with_redisbloom, with_tamis};

const PAGE: &str = include_str!("../../../../docs/scale-out.md");

/// Returns the commands of the page that begin with `$`, each with the line after it.
fn commands() -> Vec<(&'static str, &'static str)> {
    let mut lines = PAGE.lines().map(str::trim);
    let mut commands = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push((command, lines.next().expect("a command has a result")));
        }
    }
    commands
}

#[test]
fn the_steps_from_redisbloom_give_the_results_of_the_page() {
    let (old, new) = (with_redisbloom(&[]), with_tamis(&[]));
    let mut client = old.connect();
    let added = client.say(&["BF.MADD", "seen", "alice", "bob"]);
    assert_eq!(added, Reply::Array(vec![Reply::Integer(1); 2]));
    let commands = commands();
    assert!(commands.len() >= 8);
    for (command, expected) in commands {
        let command =
            command.replace("6379", &old.port.to_string()).replace("6380", &new.port.to_string());
        let words: Vec<&str> = command.split(' ').collect();
        // A replica needs a moment to connect and to load.
        wait_until(format_args!("{command} prints {expected}"), || {
            let output = Command::new(words[0]).args(&words[1..]).run();
            let text = String::from_utf8(output.stdout).unwrap();
            match expected.strip_prefix("... ") {
                Some(part) => text.contains(part.trim_end_matches(" ...")),
                None => text.trim() == expected,
            }
        });
    }
    let mut client = new.connect();
    for item in ["alice", "bob", "carol"] {
        assert_eq!(client.say(&["BF.EXISTS", "seen", item]), Reply::Integer(1));
    }
}
