//! `--memory` limits the whole process, for any command and input, as `docs/dedup.md` states: its own
//! memory never exceeds the limit. With the pages of its file and of system libraries, which Linux
//! counts too, an optimised program exceeds the limit by at most 10 MB.

#![cfg(target_os = "linux")]

// This is a separate program because Linux includes the memory of the parent at the fork in the
// peak memory of the child.
#[allow(dead_code, reason = "the other tests of the program use the rest")]
#[path = "integration/program.rs"]
mod program;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};

use program::Folder;
use tamis_testing::{CommandExt as _, Process, join, wait_until};

const MB: u64 = 1 << 20;

/// Waits for a program. Returns its exit status and its peak resident memory, in bytes.
///
/// Until the other program starts, the system counts the memory of this process, so this process
/// must stay small.
fn wait(child: &Process) -> (ExitStatus, u64) {
    // SAFETY: `rusage` consists of integers, and all of them may be zero.
    let (mut status, mut usage) = (0, unsafe { std::mem::zeroed::<libc::rusage>() });
    let id = child.id() as libc::pid_t;
    wait_until("the program ends", || {
        // SAFETY: both pointers are valid, and no other code waits for this child.
        let ended = unsafe { libc::wait4(id, &mut status, libc::WNOHANG, &mut usage) };
        assert!([0, id].contains(&ended), "{ended}");
        ended == id
    });
    (ExitStatus::from_raw(status), usage.ru_maxrss as u64 * 1024)
}

/// Returns the peak of the memory of a process without mapped files, in bytes, sampled each
/// millisecond until the process has ended.
fn peak_anonymous(id: u32) -> u64 {
    let mut peak = 0;
    loop {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        // A process that has ended has no such line.
        let Some((_, rest)) = status.split_once("RssAnon:") else { return peak };
        let kilobytes: u64 = rest.split_whitespace().next().unwrap().parse().unwrap();
        peak = peak.max(kilobytes * 1024);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// The pages of an optimised program and of system libraries, in MB.
const FILES_MB: u64 = 10;

/// Runs a command line with `stdin`. Adds a message to `over` if its memory without mapped files
/// exceeds the `--memory` of the line, in MB, or if its resident memory exceeds it by more than
/// [`FILES_MB`].
fn within(
    folder: &Folder,
    line: &str,
    limit: u64,
    stdin: Option<&str>,
    over: &mut Vec<String>,
) -> (i32, String) {
    let stdin =
        stdin.map_or_else(Stdio::null, |name| File::open(folder.path(name)).unwrap().into());
    let mut process = Command::new(env!("CARGO_BIN_EXE_tamis"))
        .args(line.split_whitespace())
        .arg(format!("--memory={limit}M"))
        .current_dir(folder.path("."))
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .start();
    let id = process.id();
    let anonymous = std::thread::spawn(move || peak_anonymous(id));
    let stderr = process.stderr_lines().rest();
    let (status, resident) = wait(&process);
    // The process has ended. The system may give its number to another process.
    std::mem::forget(process);
    let anonymous = join("the samples of the memory", anonymous);
    let status = status.code().expect("no signal");
    assert!([0, 2, 3].contains(&status), "{line}: {status}: {stderr}");
    // The code of the program counts as resident memory. A program that is built for tests is not
    // optimised, and its code takes more.
    let is_over =
        anonymous > limit * MB || !cfg!(debug_assertions) && resident > (limit + FILES_MB) * MB;
    if is_over {
        let [anonymous, resident] = [anonymous, resident].map(|bytes| bytes as f64 / MB as f64);
        over.push(format!(
            "{line} --memory={limit}M took {anonymous:.1} MB, {resident:.1} MB with its files, and \
             ended with {status}"
        ));
    }
    (status, stderr)
}

/// Returns scattered numbers: the top `bits` bits of a product.
fn numbers(items: u64, bits: u32) -> impl Iterator<Item = u64> {
    (1..=items).map(move |i| {
        let mixed = (i ^ i << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - bits)
    })
}

fn write(folder: &Folder, name: &str, pieces: impl Iterator<Item = impl AsRef<[u8]>>) {
    let mut file = BufWriter::new(File::create(folder.path(name)).unwrap());
    pieces.for_each(|piece| file.write_all(piece.as_ref()).unwrap());
    file.flush().unwrap();
}

#[test]
fn integers_stay_within_their_memory() {
    let (folder, mut over) = (Folder::new(), Vec::new());
    let wide = || numbers(1_500_000, 64).map(u64::to_le_bytes);
    write(&folder, "u64", wide());
    write(&folder, "u64-2", wide().skip(700_000));
    write(&folder, "u32", numbers(2_000_000, 32).map(|n| (n as u32).to_le_bytes()));
    write(&folder, "close", numbers(2_000_000, 23).map(|n| (n + (1 << 40)).to_le_bytes()));
    write(&folder, "text", numbers(1_000_000, 64).map(|n| format!("{n}\n")));
    for limit in [16, 30] {
        for line in [
            "sort --format u64 u64",
            "dups --format u64 u64",
            "dups --format u64 u64 u64-2",
            "count --format u64 u64 close",
            "uniq --format u64 close",
            "sort --format u32 u32",
            "dups --format u32 u32",
            "uniq text",
            "and --format u64 u64 u64-2",
            "or --format u64 u64 close",
            "xor --format u64 u64 u64-2",
            "andnot --format u64 u64 u64-2",
            "contains --format u64 u64 u64-2",
        ] {
            within(&folder, &format!("ints {line}"), limit, None, &mut over);
        }
    }
    // What fits is done.
    assert_eq!(within(&folder, "ints sort --format u64 u64", 40, None, &mut over).0, 0);
    assert_eq!(within(&folder, "ints sort --format u32 u32", 40, None, &mut over).0, 0);
    assert!(over.is_empty(), "{over:#?}");
}

#[test]
fn filters_and_lines_stay_within_their_memory() {
    let (folder, mut over) = (Folder::new(), Vec::new());
    let repeated = numbers(700_000, 64).chain(numbers(50_000, 64));
    write(&folder, "lines", repeated.map(|n| format!("{n}\n")));
    write(&folder, "long", numbers(60_000, 64).map(|n| format!("{n}{:200}\n", "")));
    for limit in [10, 15] {
        for line in [
            "build lines -o out",
            "build --rate 1e-7 lines -o out",
            "build --kind cuckoo lines -o out",
            "build --kind cuckoo --copies lines -o out",
            "build --kind cuckoo --items 800K lines -o out",
            "build --kind counting lines -o out",
            "build --kind growing lines -o out",
            "build --items 900K lines -o out",
            "build --window 500K-items lines -o out",
            "dedup lines",
            "dedup --hash-bits 128 lines",
            "dedup --full long",
            "dedup --approx 1e-4 lines",
            "dedup --window 300K-lines lines",
            "dedup --repeated lines",
            "dedup --repeated=all lines",
            "dedup --count lines",
            "dedup --unique long",
            "dedup --threads 3 lines",
            "dedup --suspects maybe lines",
            "dedup --state state --restart lines -o out",
        ] {
            within(&folder, line, limit, None, &mut over);
            std::fs::remove_file(folder.path("state")).ok();
        }
        within(&folder, "dedup", limit, Some("lines"), &mut over);
        within(&folder, "build -o out", limit, Some("lines"), &mut over);
    }
    // The filter needs 15 bits for each item, so 3 million items exceed the limit.
    write(&folder, "many", numbers(3_000_000, 64).map(|n| format!("{n}\n")));
    for limit in [9, 11] {
        let line = "build --kind growing many -o grown";
        let (status, stderr) = within(&folder, line, limit, None, &mut over);
        let why = format!("grown: with {}", if limit == 9 { "5" } else { "1," });
        assert!(status == 2 && stderr.contains(&why), "{line}: {status}: {stderr}");
        assert!(stderr.contains("items the filter needs more than --memory"), "{stderr}");
        assert!(!folder.path("grown").exists());
    }
    // What fits is done.
    for line in ["build lines -o out", "dedup lines", "dedup --window 300K-lines lines"] {
        let (status, stderr) = within(&folder, line, 24, None, &mut over);
        assert_eq!((status, stderr.as_str()), (0, ""), "{line}");
    }
    assert!(over.is_empty(), "{over:#?}");
}
