//! The statistics of a server.

mod calls;
pub(crate) mod measurement;
pub(crate) mod metrics;
mod rates;
pub(crate) mod report;
mod saves;
mod slow;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use calls::{Called, Calls, bound_nanos};
use parking_lot::Mutex;
use rates::Rates;
use saves::Saves;
pub(crate) use slow::{SlowLog, shown};
use tamis_commands::Command;

use crate::system::clock::since_1970;
use crate::system::hex;

/// The counters of a server, which increase until a client resets the counters.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    /// Identifies this run of the server: 40 random digits.
    pub run_id: String,
    /// Key lookups of commands: `hits` counts the keys that exist, `misses` counts the keys that do
    /// not exist.
    pub hits: AtomicU64,
    pub misses: AtomicU64,
    /// The peak memory of all values, in bytes.
    peak_memory: AtomicU64,
    pub saves: Saves,
    pub commands: AtomicU64,
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
    pub rejected: AtomicU64,
    /// Clients that the server disconnected because the clients did not read their replies.
    pub overflows: AtomicU64,
    /// Clients that the server disconnected because the arriving commands exceeded `maxmemory`.
    pub evicted_clients: AtomicU64,
    pub expired_keys: AtomicU64,
    pub errors: AtomicU64,
    /// The calls of each command.
    pub calls: Calls,
    /// The rates of commands and bytes in the last second.
    pub rates: Rates,
    pub slow: SlowLog,
    errors_by_code: Mutex<BTreeMap<String, u64>>,
}

/// The maximum number of error codes with a counter. The server uses about twenty error codes.
const MAX_CODES: usize = 64;

impl Stats {
    /// Creates the statistics for `threads` threads.
    pub fn new(threads: usize) -> Self {
        Self { run_id: random_digits(), calls: Calls::new(threads), ..Self::default() }
    }

    /// Counts a command that the server rejected before the command ran, with its error.
    pub fn count_rejected(&self, command: Option<&Command>, error: &str) {
        if let Some(command) = command {
            self.calls.count_rejected(command.index());
        }
        self.count_error(error);
    }

    /// Counts a command that ran and replied with an error.
    pub fn count_failed(&self, command: &Command, error: &str) {
        self.calls.count_failed(command.index());
        self.count_error(error);
    }

    fn count_error(&self, error: &str) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        // Some error texts of RedisBloom have no code.
        let word = error.split(' ').next().unwrap_or_default();
        let is_code = !word.is_empty() && word.bytes().all(|c| c.is_ascii_uppercase());
        let code = if is_code { word } else { "ERR" };
        let mut errors = self.errors_by_code.lock();
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < MAX_CODES {
            errors.insert(code.to_owned(), 1);
        }
    }

    /// Returns the number of errors for each code.
    pub fn errors_by_code(&self) -> Vec<(String, u64)> {
        self.errors_by_code.lock().iter().map(|(code, count)| (code.clone(), *count)).collect()
    }

    /// Records the memory of the values and returns the peak.
    pub fn note_memory(&self, bytes: u64) -> u64 {
        self.peak_memory.fetch_max(bytes, Ordering::Relaxed).max(bytes)
    }

    /// Samples the counters that have [rates](Self::rates).
    pub fn sample(&self) {
        let totals = [&self.commands, &self.bytes_in, &self.bytes_out];
        self.rates.sample(totals.map(|total| total.load(Ordering::Relaxed)));
    }

    /// Resets the counters for `CONFIG RESETSTAT`. The slow log keeps its entries.
    pub fn reset(&self) {
        for number in [
            &self.commands,
            &self.bytes_in,
            &self.bytes_out,
            &self.hits,
            &self.misses,
            &self.rejected,
            &self.overflows,
            &self.evicted_clients,
            &self.expired_keys,
            &self.errors,
        ] {
            number.store(0, Ordering::Relaxed);
        }
        self.calls.reset();
        self.errors_by_code.lock().clear();
    }
}

/// Returns 40 random hexadecimal digits.
fn random_digits() -> String {
    let mut bytes = [0; 20];
    // If no random numbers are available, the time is sufficient, because the ID only distinguishes
    // runs of the server.
    if getrandom::fill(&mut bytes).is_err() {
        bytes[..16].copy_from_slice(&since_1970().as_nanos().to_le_bytes());
    }
    hex::encode(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_by_their_codes() {
        let stats = Stats::new(1);
        for error in ["ERR a", "WRONGTYPE b", "ERR c", "Bad capacity", "", "ERR", "a"] {
            stats.count_rejected(None, error);
        }
        let expected = [("ERR".to_owned(), 6), ("WRONGTYPE".to_owned(), 1)];
        assert_eq!(stats.errors_by_code(), expected);
        for code in 0..1000 {
            let code: String = format!("{code:03}").bytes().map(|c| (c + 17) as char).collect();
            stats.count_rejected(None, &code);
        }
        assert_eq!(stats.errors_by_code().len(), MAX_CODES);
        assert_eq!(stats.errors.load(Ordering::Relaxed), 1007);
        stats.reset();
        assert!(stats.errors_by_code().is_empty());
    }
}
