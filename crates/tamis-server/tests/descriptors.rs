//! A server under a low limit of open files. The limit applies to the whole process, so this test
//! has its own process.
#![cfg(unix)]

#[path = "../../../tests/exchanges/client.rs"]
mod client;

use client::Client;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tamis_resp::Reply;
use tamis_server::{Config, Server, ServerError};

fn limit(current: u64, maximum: u64) {
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: Some(maximum) }).unwrap();
}

#[test]
fn the_limit_of_open_files_is_raised_and_maxclients_fits_to_it() {
    limit(200, 500);
    let dir = tempfile::tempdir().unwrap();
    let config = Config { port: 0, threads: 2, dir: dir.path().into(), ..Config::default() };
    let server = Server::start(config.clone()).unwrap();
    assert_eq!(getrlimit(Resource::Nofile).current, Some(500));
    let mut client = Client::connect(server.addresses()[0]);
    let pair = client.list(&["CONFIG", "GET", "maxclients"]);
    let Reply::Bulk(number) = &pair[1] else { panic!("{pair:?}") };
    let most: u64 = std::str::from_utf8(number).unwrap().parse().unwrap();
    assert!((400..500).contains(&most), "{most}");
    let refusal = client.refused(&["CONFIG", "SET", "maxclients", "1000"]);
    assert!(refusal.contains(&format!("try with {most}")), "{refusal}");
    assert_eq!(client.say(&["CONFIG", "SET", "maxclients", "100"]), Reply::ok());

    // The test has files open for its ends of the connections, too.
    let mut clients: Vec<Client> =
        (0..200).map(|_| Client::connect(server.addresses()[0])).collect();
    let answered = clients.iter_mut().filter_map(|client| {
        _ = client.try_send(&["PING"]);
        client.try_receive()
    });
    let (served, refused): (Vec<_>, Vec<_>) = answered.partition(|it| *it == Reply::simple("PONG"));
    assert_eq!(served.len(), 99, "with the one that is connected already");
    assert!(refused.iter().all(|it| *it == Reply::error("ERR max number of clients reached")));
    assert_eq!(client.say(&["SAVE"]), Reply::ok());
    drop(clients);
    drop(server);

    limit(20, 20);
    let refusal = Server::start(config).unwrap_err();
    assert!(matches!(refusal, ServerError::Files { .. }), "{refusal}");
}
