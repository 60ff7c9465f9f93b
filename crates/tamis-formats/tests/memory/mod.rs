//! What a test takes of memory: it must be alone in its process.

/// What the allocator takes from the system ahead of need.
pub const SLACK_BYTES: u64 = 4 << 20;

/// The most address space that this process ever had: a size in a file that is believed shows in
/// it, touched or not.
pub fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
}
