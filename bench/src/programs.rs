//! Measures whole programs: wall time, peak memory and the number of output lines, beside `cat`.
//!
//! Every program reads a file in memory (`/dev/shm`) and writes to a file in memory, so that disks
//! and pipes have no effect. `cargo xtask gen` creates the input files in advance.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use wait4::Wait4 as _;

use crate::process::root;
use crate::run::{Bench, Row};

/// A program with its arguments. The path of the input replaces `FILE`.
struct Program {
    name: &'static str,
    words: &'static [&'static str],
    /// True if the program must keep exactly the expected lines. Otherwise, the program may lose a
    /// few lines.
    exact: bool,
}

const fn exact(name: &'static str, words: &'static [&'static str]) -> Program {
    Program { name, words, exact: true }
}

const DEDUP: &[Program] = &[
    Program { name: "cat", words: &["cat", "FILE"], exact: false },
    exact("tamis dedup", &["tamis", "dedup", "FILE"]),
    exact("tamis dedup --full", &["tamis", "dedup", "--full", "FILE"]),
    Program {
        name: "tamis dedup --approx",
        // About 32 bits per item.
        words: &["tamis", "dedup", "--approx", "1.6e-5", "--items", "8300000", "FILE"],
        exact: false,
    },
    exact("huniq", &["sh", "-c", "exec huniq < FILE"]),
    exact("runiq", &["runiq", "FILE"]),
    exact("sort -u", &["sort", "-u", "-S1G", "FILE"]),
    exact("awk !s[$0]++", &["awk", "!s[$0]++", "FILE"]),
];

const UNIQ: &[Program] = &[
    Program { name: "cat", words: &["cat", "FILE"], exact: false },
    exact("tamis ints uniq", &["tamis", "ints", "uniq", "FILE"]),
    Program { name: "tamis ints dups", words: &["tamis", "ints", "dups", "FILE"], exact: false },
    exact("huniq", &["sh", "-c", "exec huniq < FILE"]),
    exact("sort -u", &["sort", "-u", "-S1G", "FILE"]),
];

/// Runs the whole programs.
pub fn run(bench: &mut Bench) {
    let (lines, ints) =
        if bench.quick { (2_000_000, 10_000_000) } else { (20_000_000, 100_000_000) };
    let case = format!("dedup of {} M URL lines", lines / 1_000_000);
    if bench.wants(&case) {
        race(bench, &case, DEDUP, &["urls", "--lines", &lines.to_string()]);
    }
    let case = format!("ints of {} M u32 as text", ints / 1_000_000);
    if bench.wants(&case) {
        race(bench, &case, UNIQ, &["ints", "--count", &ints.to_string()]);
    }
}

/// A program that takes longer than this limit runs only once.
const SLOW_SECONDS: f64 = 5.0;

/// Runs all installed programs in turn, for several rounds.
fn race(bench: &mut Bench, case: &str, programs: &[Program], generator: &[&str]) {
    println!("\n{case}");
    let input = match generated(generator) {
        Ok(input) => input,
        Err(why) => return bench.wrong.push(format!("{case}: {why}")),
    };
    let here: Vec<&Program> = programs.iter().filter(|program| found(program)).collect();
    let mut rows: Vec<Row> = here.iter().map(|program| Row::new(case, program.name)).collect();
    for round in 0..bench.rounds {
        for (program, row) in here.iter().zip(&mut rows) {
            if round > 0 && row.min() > SLOW_SECONDS {
                continue;
            }
            match finish(program, &input) {
                Ok((seconds, peak_mib, lines)) => {
                    row.rounds.push(seconds);
                    row.peak_mib = Some(row.peak_mib.map_or(peak_mib, |peak| peak.max(peak_mib)));
                    row.lines = Some(lines);
                }
                Err(why) => return bench.wrong.push(format!("{case}: {}: {why}", program.name)),
            }
        }
    }
    let truths: Vec<_> =
        here.iter().zip(&rows).filter(|(program, _)| program.exact).map(|(_, row)| row).collect();
    for pair in truths.windows(2) {
        if pair[0].lines != pair[1].lines {
            let (one, other) = (&pair[0], &pair[1]);
            bench.wrong.push(format!(
                "{case}: {} kept {:?} lines, {} {:?}",
                one.name, one.lines, other.name, other.lines
            ));
        }
    }
    bench.keep(rows);
    let _ = fs::remove_file(input);
}

/// Runs a program once. Returns its time in seconds, its peak memory in MiB and its number of
/// output lines.
fn finish(program: &Program, input: &Path) -> Result<(f64, f64, u64), String> {
    let output = folder().join("tamis-bench.out");
    let file = File::create(&output).map_err(|error| error.to_string())?;
    let words = program.words.iter().map(|word| word.replace("FILE", &input.to_string_lossy()));
    let mut words = words.collect::<Vec<_>>();
    words[0] = path(&words[0]).to_string_lossy().into_owned();
    let start = Instant::now();
    let child = Command::new(&words[0])
        .args(&words[1..])
        // With this locale, programs compare single bytes.
        .env("LC_ALL", "C")
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let used = child.wait4().map_err(|error| error.to_string())?;
    let seconds = start.elapsed().as_secs_f64();
    // Status 3 means done, but over the target rate.
    let fine = |status: ExitStatus| status.success() || status.code() == Some(3);
    if !fine(used.status) {
        return Err(format!("ended with {} {:?}", used.status, used.status.signal()));
    }
    let lines = count_lines(&output).map_err(|error| error.to_string())?;
    let _ = fs::remove_file(output);
    Ok((seconds, used.rusage.maxrss as f64 / (1 << 20) as f64, lines))
}

/// Counts lines one block at a time, because a large buffer would increase the measured peaks of
/// later programs.
fn count_lines(path: &Path) -> std::io::Result<u64> {
    let mut file = File::open(path)?;
    let mut block = [0; 1 << 16];
    let mut lines = 0;
    loop {
        let len = std::io::Read::read(&mut file, &mut block)?;
        if len == 0 {
            return Ok(lines);
        }
        lines += block[..len].iter().filter(|&&byte| byte == b'\n').count() as u64;
    }
}

/// Creates a file with `cargo xtask gen`.
fn generated(words: &[&str]) -> Result<PathBuf, String> {
    let path = folder().join(format!("tamis-bench-{}.txt", words[0]));
    let status = Command::new("cargo")
        .args(["xtask", "gen"])
        .args(words)
        .arg("-o")
        .arg(&path)
        .current_dir(root())
        .status()
        .map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(path) } else { Err("cargo xtask gen failed".to_owned()) }
}

/// Returns a folder in memory, or the temporary folder on systems other than Linux.
fn folder() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() }
}

/// Returns the search path: the build of Tamis first, then the rivals that `cargo xtask bench`
/// installs, then the programs of the system.
fn search_path() -> std::ffi::OsString {
    let mut folders = vec![root().join("target/release"), root().join("target/rivals/bin")];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    std::env::join_paths(folders).expect("folders without colons")
}

fn path(name: &str) -> PathBuf {
    let search_path = search_path();
    let mut candidates = std::env::split_paths(&search_path).map(|folder| folder.join(name));
    candidates.find(|candidate| candidate.is_file()).unwrap_or_else(|| name.into())
}

fn found(program: &Program) -> bool {
    // If the shell starts a rival, this function looks for the name of the rival.
    let name = if program.words[0] == "sh" { program.name } else { program.words[0] };
    let here = path(name).is_file();
    if !here {
        println!("  {name} is not installed");
    }
    here
}
