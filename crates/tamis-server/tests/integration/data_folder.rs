//! The folder of a server, for tests that start the server, change its files and start it again.

use std::path::{Path, PathBuf};

use tamis_server::{Config, DataReport, DurabilityError, HashKey, Server, check_data, repair_data};
use tempfile::TempDir;

use crate::client::Client;
use crate::support::start_with;

/// The length of the header of logs and snapshots, in bytes.
pub const HEADER_BYTES: usize = 36;

/// The number of bytes before the first frame of a log.
pub const LOG_HEADER_BYTES: usize = HEADER_BYTES + 24;

pub fn config(dir: &Path) -> Config {
    Config { port: 0, threads: 2, dir: dir.to_owned(), rewrite_bytes: 0, ..Config::default() }
}

pub fn start(dir: &Path) -> (Server, Client) {
    start_with(config(dir))
}

/// Starts a server on a new folder, and connects a client.
pub fn start_new() -> (TempDir, Server, Client) {
    let dir = tempfile::tempdir().unwrap();
    let (server, client) = start(dir.path());
    (dir, server, client)
}

/// Ends a server, and starts another one on its folder.
pub fn restart(server: Server, dir: &TempDir) -> (Server, Client) {
    drop(server);
    start(dir.path())
}

/// Asserts that no server starts on a folder. The error has all of these parts.
#[track_caller]
pub fn assert_refused(dir: &Path, parts: &[&str]) {
    let refused = Server::start(config(dir)).unwrap_err().to_string();
    for part in parts {
        assert!(refused.contains(part), "{part:?} is not in: {refused}");
    }
}

pub fn check(dir: &Path) -> Result<DataReport, DurabilityError> {
    check_data(dir, HashKey::Random)
}

pub fn repair(dir: &Path) -> Result<DataReport, DurabilityError> {
    repair_data(dir, HashKey::Random)
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
pub fn copy_of(dir: &Path) -> TempDir {
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
