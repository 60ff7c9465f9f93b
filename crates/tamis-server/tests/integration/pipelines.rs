//! Commands that arrive together get the replies that they get one by one.

use std::io::Write as _;

use crate::client::{Client, with_items};
use crate::support::start;
use tamis_resp::Reply;

/// Sends inline commands at once and returns their replies.
fn pipeline(client: &mut Client, lines: &[String]) -> Vec<Reply> {
    let bytes: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    client.stream.write_all(bytes.as_bytes()).unwrap();
    lines.iter().map(|_| client.receive()).collect()
}

#[test]
fn a_pipeline_to_a_new_key_inserts_what_fits_the_memory() {
    let (_server, mut client) = start(1);
    for line in ["bf-layout redisbloom", "bf-expansion-factor 30000"] {
        let (name, value) = line.split_once(' ').unwrap();
        assert_eq!(client.say(&["CONFIG", "SET", name, value]), Reply::ok());
    }
    let limit = (client.info_number("used_memory") + 1_000_000).to_string();
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
    let (_server, mut client) = start(1);
    let limit = (client.info_number("used_memory") + 20_000_000).to_string();
    for (name, value) in
        [("bf-layout", "redisbloom"), ("bf-initial-size", "100000000"), ("maxmemory", &limit)]
    {
        assert_eq!(client.say(&["CONFIG", "SET", name, value]), Reply::ok());
    }
    let is_refused = |reply: &Reply| matches!(reply, Reply::Error(_));
    for count in [1, 2, 4200] {
        let reply = client.say(&with_items("BF.MADD k", 0..count));
        assert!(is_refused(&reply), "{count} items: {reply:?}");
    }
    assert!(is_refused(&client.say(&["BF.ADD", "k", "x"])));
    let lines = ["BF.ADD k x", "BF.ADD k y", "BF.MADD k x z"].map(str::to_owned);
    assert!(pipeline(&mut client, &lines).iter().all(is_refused));
    assert_eq!(client.say(&["MULTI"]), Reply::ok());
    client.say(&["BF.ADD", "k", "x"]);
    let replies = client.list(&["EXEC"]);
    assert!(replies.iter().all(is_refused), "{replies:?}");
    assert_eq!(client.say(&["EXISTS", "k"]), Reply::Integer(0));
}
