//! Measures the memory of a test. The test must have its own process.

/// The memory that the allocator takes from the system in advance.
pub const SLACK_BYTES: u64 = 4 << 20;

/// Returns the peak address space of the process. The peak includes memory that was never touched.
/// So it shows whether the decoder allocates a size from a file without checking it.
pub fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
}
