//! Reads memory sizes and CPU times from `/proc` on Linux. The functions return `None` on other
//! systems, which do not have these files.

use std::sync::LazyLock;

/// Returns the memory of the machine, in bytes.
pub(crate) fn memory_of_machine() -> Option<u64> {
    static BYTES: LazyLock<Option<u64>> = LazyLock::new(|| bytes_in("/proc/meminfo", "MemTotal:"));
    *BYTES
}

/// Returns the resident memory of the process, in bytes.
pub(crate) fn memory_of_process() -> Option<u64> {
    bytes_in("/proc/self/status", "VmRSS:")
}

/// Reads a number of kibibytes from the line that starts with `field`, and returns the number in
/// bytes.
fn bytes_in(path: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the CPU time of the process in user mode and in system mode, in seconds.
pub(crate) fn cpu_seconds() -> Option<[f64; 2]> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the name of the program. The name of the program may contain spaces.
    let fields = text.rsplit_once(')')?.1;
    let ticks = |field: usize| fields.split_whitespace().nth(field - 3)?.parse::<f64>().ok();
    Some([ticks(14)? / TICKS, ticks(15)? / TICKS])
}

/// The number of clock ticks per second in `/proc`. The number is the same on every Linux
/// architecture that Rust's standard library supports.
const TICKS: f64 = 100.0;
