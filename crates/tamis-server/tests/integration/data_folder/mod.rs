//! The folder of a server, for tests that start the server, change its files and start it again.

use std::path::{Path, PathBuf};

use tamis_server::{Config, Server};

use crate::client::Client;

/// The length of the header of logs and snapshots, in bytes.
pub const HEADER_BYTES: usize = 36;

/// The number of bytes before the first frame of a log.
pub const LOG_HEADER_BYTES: usize = HEADER_BYTES + 24;

pub fn config(dir: &Path) -> Config {
    Config { port: 0, threads: 2, dir: dir.to_owned(), rewrite_bytes: 0, ..Config::default() }
}

pub fn start(dir: &Path) -> (Server, Client) {
    let server = Server::start(config(dir)).unwrap();
    let client = Client::connect(server.addresses()[0]);
    (server, client)
}

/// Returns the paths of the logs in a folder.
pub fn logs(dir: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("log-"))
        .collect()
}

/// Returns the path of the only log in a folder.
pub fn only_log(dir: &Path) -> PathBuf {
    let logs = logs(dir);
    let [log] = &logs[..] else { panic!("one log, not {logs:?}") };
    log.clone()
}

/// Returns a copy of a folder.
pub fn copy_of(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

/// Returns the secret in the header of a log or a snapshot.
pub fn secret_of(file: &[u8]) -> u64 {
    u64::from_le_bytes(file[24..32].try_into().unwrap())
}
