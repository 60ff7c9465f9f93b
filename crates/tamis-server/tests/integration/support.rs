//! Servers without persistence, and clients of them.

use tamis_resp::Reply;
use tamis_server::{Config, HashKey, Server};

use crate::client::Client;

/// Returns the options of a server with one thread and without persistence.
pub fn config() -> Config {
    // With a fixed key, the answers about absent items and the estimates are the same in every run.
    let hash_key = HashKey::Fixed(*b"0123456789abcdef");
    Config { port: 0, threads: 1, append_only: false, hash_key, ..Config::default() }
}

pub fn serve(threads: usize) -> Server {
    Server::start(Config { threads, ..config() }).unwrap()
}

pub fn connect(server: &Server) -> Client {
    Client::connect(server.addresses()[0])
}

pub fn start(threads: usize) -> (Server, Client) {
    start_with(Config { threads, ..config() })
}

/// Starts a server with these options, and connects a client.
pub fn start_with(config: Config) -> (Server, Client) {
    let server = Server::start(config).unwrap();
    let client = connect(&server);
    (server, client)
}

/// Returns the chunks of a filter, each with the iterator that `BF.LOADCHUNK` expects.
pub fn chunks(client: &mut Client, key: &str) -> Vec<(i64, Vec<u8>)> {
    let mut chunks = Vec::new();
    let mut iterator = 0;
    loop {
        let pair = client.list(&["BF.SCANDUMP", key, &iterator.to_string()]);
        let [Reply::Integer(next), Reply::Bulk(data)] = &pair[..] else { panic!("{pair:?}") };
        if *next == 0 {
            assert!(data.is_empty());
            return chunks;
        }
        iterator = *next;
        chunks.push((iterator, data.clone()));
    }
}

/// Returns the command that loads a chunk.
pub fn load_chunk(key: &str, iterator: i64, data: &[u8]) -> [Vec<u8>; 4] {
    [b"BF.LOADCHUNK".to_vec(), key.into(), iterator.to_string().into(), data.to_vec()]
}

/// Returns the command that creates a key from a payload of `DUMP`.
pub fn restore(key: &str, payload: &[u8]) -> [Vec<u8>; 4] {
    [b"RESTORE".to_vec(), key.into(), b"0".to_vec(), payload.to_vec()]
}
