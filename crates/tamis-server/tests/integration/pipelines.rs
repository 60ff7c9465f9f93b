//! Commands that arrive together get the replies that they get one by one.

use std::io::Write as _;

use crate::client::Client;
use tamis_resp::Reply;
use tamis_server::{Config, Server};

/// Sends inline commands at once and returns their replies.
fn pipeline(client: &mut Client, lines: &[String]) -> Vec<Reply> {
    let bytes: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    client.stream.write_all(bytes.as_bytes()).unwrap();
    lines.iter().map(|_| client.receive()).collect()
}

fn used_memory(client: &mut Client) -> u64 {
    let Reply::Bulk(text) = client.say(&["INFO", "memory"]) else { panic!("INFO is a text") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.expect("a line").trim().parse().expect("a number")
}

#[test]
fn a_pipeline_to_a_new_key_inserts_what_fits_the_memory() {
    let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
    let server = Server::start(config).unwrap();
    let mut client = Client::connect(server.addresses()[0]);
    for line in ["bf-layout redisbloom", "bf-expansion-factor 30000"] {
        let (name, value) = line.split_once(' ').unwrap();
        assert_eq!(client.say(&["CONFIG", "SET", name, value]), Reply::ok());
    }
    let limit = (used_memory(&mut client) + 1_000_000).to_string();
    assert_eq!(client.say(&["CONFIG", "SET", "maxmemory", &limit]), Reply::ok());
    let lines: Vec<String> = (0..300).map(|item| format!("BF.ADD new {item}")).collect();
    let replies = pipeline(&mut client, &lines);
    // The second layer, which does not fit, begins at item 101.
    assert!(replies[..100].iter().all(|reply| *reply == Reply::Integer(1)), "{replies:?}");
    assert!(matches!(replies[299], Reply::Error(_)), "{:?}", replies[299]);
    assert_eq!(client.say(&["BF.CARD", "new"]), Reply::Integer(100));
}

#[test]
fn every_command_that_creates_a_filter_rejects_one_that_exceeds_the_memory() {
    let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
    let server = Server::start(config).unwrap();
    let mut client = Client::connect(server.addresses()[0]);
    let limit = (used_memory(&mut client) + 20_000_000).to_string();
    for (name, value) in
        [("bf-layout", "redisbloom"), ("bf-initial-size", "100000000"), ("maxmemory", &limit)]
    {
        assert_eq!(client.say(&["CONFIG", "SET", name, value]), Reply::ok());
    }
    let is_refused = |reply: &Reply| matches!(reply, Reply::Error(_));
    let many: Vec<String> = (0..4200).map(|item| item.to_string()).collect();
    let many = ["BF.MADD", "k"].into_iter().chain(many.iter().map(String::as_str));
    let many: Vec<&str> = many.collect();
    for words in [&["BF.ADD", "k", "x"][..], &["BF.MADD", "k", "x", "y"], &many] {
        let reply = client.say(words);
        assert!(is_refused(&reply), "{} words: {reply:?}", words.len());
    }
    let lines = ["BF.ADD k x", "BF.ADD k y", "BF.MADD k x z"].map(str::to_owned);
    assert!(pipeline(&mut client, &lines).iter().all(is_refused));
    assert_eq!(client.say(&["MULTI"]), Reply::ok());
    client.say(&["BF.ADD", "k", "x"]);
    let Reply::Array(replies) = client.say(&["EXEC"]) else { panic!("EXEC replies with an array") };
    assert!(replies.iter().all(is_refused), "{replies:?}");
    assert_eq!(client.say(&["EXISTS", "k"]), Reply::Integer(0));
}
