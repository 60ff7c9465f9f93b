//! Describes the machine and the rivals of a measurement.

use std::fs;
use std::process::Command;

/// Describes the machine in one line.
pub fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |name: &str| {
        let line = cpu.lines().find_map(|line| line.strip_prefix(name)?.split_once(": "));
        line.map(|(_, value)| value.trim())
    };
    let model = value("model name").unwrap_or("an unnamed CPU");
    // The family and the model number identify a CPU whose name is hidden by a virtual machine.
    let numbers = match (value("cpu family"), value("model\t")) {
        (Some(family), Some(number)) => format!(" (family {family}, model {number})"),
        _ => String::new(),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = memory.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok()
    });
    let gib = kib.map_or_else(String::new, |kib| format!(", {} GiB", kib.div_ceil(1 << 20)));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let kernel = kernel.trim();
    let simd = simd();
    format!("{model}{numbers}, {cores} cores ({simd}){gib}, Linux {kernel}")
}

fn simd() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512vl") {
            return "AVX-512";
        }
        if is_x86_feature_detected!("avx2") {
            return "AVX2";
        }
    }
    std::env::consts::ARCH
}

/// Returns the rivals with their versions: the crates in `Cargo.lock`, the Python packages, and the
/// installed Redis.
pub fn rivals() -> String {
    let lock = include_str!("../../Cargo.lock");
    let names = [
        "sbbf-rs-safe",
        "sbbf-rs",
        "rapidhash",
        "fastbloom",
        "bloomfilter",
        "hashbrown",
        "cuckoofilter",
        "growable-bloom-filter",
        "foldhash",
    ];
    let of_bench = lock.split("[[package]]").find(|it| it.contains("name = \"tamis-bench\""));
    let version = |name: &str| {
        // If the file contains several versions of a crate, the dependency entry names the version.
        if let Some((_, rest)) = of_bench?.split_once(&format!("\"{name} ")) {
            return Some(format!("{name} {}", rest.split('"').next()?));
        }
        let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(format!("{name} {}", rest.split('"').next()?))
    };
    let packages = include_str!("../originals/requirements.txt").lines();
    let packages = packages.map(|package| package.replace("==", " "));
    names
        .into_iter()
        .filter_map(version)
        .chain(packages)
        .chain(redis())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Returns the version of `redis-server`, if `redis-server` is installed.
fn redis() -> Option<String> {
    let output = Command::new("redis-server").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.split_whitespace().find_map(|word| word.strip_prefix("v="))?;
    Some(format!("redis-server {version}"))
}
