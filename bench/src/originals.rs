//! Measures lookups in filters of other systems, beside the programs that create these filters.
//!
//! An original is a program in `originals/` that keeps running. The original loads the filter that
//! this bench wrote. The original and the loops of Tamis look up the same items in turn. An
//! original is skipped if the machine does not have the program.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use tamis::Answers;
use tamis_formats::{Contents, DecodeOptions, ForeignBloom, Format, Layers};

use crate::process::root;
use crate::run::{Bench, Entry, Sample, Work, time};

/// A system whose lookups are measured.
struct System<K> {
    /// The name of the system in the list of formats.
    format: &'static str,
    /// The type of the items.
    items: &'static str,
    /// Returns the item with this number, as the bytes that the system hashes.
    key: fn(u64) -> K,
    originals: &'static [Original],
}

/// A program that queries its own copy of a filter.
struct Original {
    name: &'static str,
    /// Returns the command that starts the program. The file, the number of members and the number
    /// of queried items are appended.
    command: fn() -> Command,
    /// The software that the machine must have.
    needs: &'static str,
}

const GUAVA: System<[u8; 8]> = System {
    format: "guava",
    items: "longs",
    key: |number| spread(number).to_le_bytes(),
    originals: &[Original {
        name: "guava, warm JVM",
        command: || {
            let mut java = Command::new("java");
            java.args(["-cp", "/usr/share/java/guava.jar"]).arg(folder().join("GuavaLookups.java"));
            java
        },
        needs: "Debian's default-jdk and libguava-java",
    }],
};

/// Both sides get precomputed hashes. The user of `rbloom` chooses the hash function, and the files
/// do not name the hash function.
const RBLOOM: System<[u8; 16]> = System {
    format: "rbloom",
    items: "ready hashes",
    // The number is below 2^61 - 1, so Python's `hash` of the number is the number itself.
    key: |number| u128::from(spread(number) >> 4).to_le_bytes(),
    originals: &[
        Original {
            name: "rbloom, loop of Python, own hash",
            command: || python("rbloom_lookups.py", &["own"]),
            needs: PIP,
        },
        Original {
            name: "rbloom, loop of Python, given hash",
            command: || python("rbloom_lookups.py", &["given"]),
            needs: PIP,
        },
    ],
};

const PYBLOOM_LIVE: System<String> = System {
    format: "pybloom-live",
    items: "texts",
    key: |number| spread(number).to_string(),
    originals: &[Original {
        name: "pybloom_live, loop of Python",
        command: || python("pybloom_live_lookups.py", &[]),
        needs: PIP,
    }],
};

const PIP: &str = "what `cargo xtask bench` installs by pip";

/// Runs the selected cases of lookups beside the originals.
pub fn run(bench: &mut Bench) {
    for (size, members) in [("1 M", 1_000_000), ("10 M", 10_000_000)] {
        race(bench, size, members, &GUAVA);
        race(bench, size, members, &RBLOOM);
        race(bench, size, members, &PYBLOOM_LIVE);
    }
}

/// Spreads numbers by an odd constant. The programs in `originals/` use the same constant.
pub const fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The number of items in a batch.
const BATCH: usize = 4096;

fn race<K: AsRef<[u8]>>(bench: &mut Bench, size: &str, members: u64, system: &System<K>) {
    let case = format!("format {} {size} {} at 1 %", system.format, system.items);
    if !bench.wants(&case) {
        return;
    }
    let format = Format::named(system.format).expect("a row");
    let contents = filled(format, members, system.key);
    let file = match written(format, &contents, &case) {
        Ok(file) => file,
        Err(why) => return bench.wrong.push(format!("{case}: {why}")),
    };
    // Half of the items are members, in an order that no branch predictor can learn.
    let count = members.min(2_000_000);
    let first = members - count / 2;
    let asked: Vec<K> = (first..first + count).map(system.key).collect();
    let mut answers = Answers::new();
    contents.contains_each(&asked, &mut answers);
    let yes = answers.count_ones() as u64;
    let info = contents.info();
    let entry = |name: &str, work| Entry {
        name: name.into(),
        items: count,
        bits_per_item: Some(info.bits as f64 / members as f64),
        rate: Some(info.rate_now),
        expect: yes..=yes,
        work,
    };
    let batched: Work<'_> = Box::new(|| in_batches(&contents, &asked));
    let single: Work<'_> = Box::new(|| one_by_one(&contents, &asked));
    let mut entries = vec![entry("tamis, batch", batched), entry("tamis, one by one", single)];
    for original in system.originals {
        match Running::start(original, &file, members, count) {
            Ok(mut running) => {
                entries.push(entry(original.name, Box::new(move || running.turn())));
            }
            Err(why) => {
                println!("  {}: left out, it needs {}: {why}", original.name, original.needs);
            }
        }
    }
    bench.case(&case, entries);
    let _ = std::fs::remove_file(file);
}

fn in_batches<K: AsRef<[u8]>>(contents: &Contents, asked: &[K]) -> Sample {
    let mut answers = Answers::new();
    time(|| {
        let found = asked.chunks(BATCH).map(|keys| {
            contents.contains_each(keys, &mut answers);
            answers.count_ones() as u64
        });
        found.sum()
    })
}

fn one_by_one<K: AsRef<[u8]>>(contents: &Contents, asked: &[K]) -> Sample {
    fn count<K: AsRef<[u8]>>(asked: &[K], contains: impl Fn(&[u8]) -> bool) -> u64 {
        asked.iter().filter(|key| contains(key.as_ref())).count() as u64
    }
    let bloom = contents.downcast_ref::<ForeignBloom>();
    time(|| match (bloom, contents.downcast_ref::<Layers>()) {
        (Some(filter), _) => count(asked, |key| filter.contains(key)),
        (None, Some(layers)) => count(asked, |key| layers.contains(key)),
        (None, None) => unreachable!("no system here has another"),
    })
}

fn filled<K: AsRef<[u8]>>(format: &'static Format, members: u64, key: fn(u64) -> K) -> Contents {
    let options =
        DecodeOptions { items: Some(members), rate: Some(0.01), ..DecodeOptions::default() };
    let create = format.create;
    let mut contents = create(&options).expect("items and rate are options");
    let mut answers = Answers::new();
    for first in (0..members).step_by(BATCH) {
        let keys: Vec<K> = (first..(first + BATCH as u64).min(members)).map(key).collect();
        contents.insert_each(&keys, &mut answers).expect("it has room");
    }
    contents
}

/// Writes a filter to a file that an original can read.
fn written(format: &'static Format, contents: &Contents, case: &str) -> Result<PathBuf, String> {
    let path =
        std::env::temp_dir().join(format!("tamis-{}.{}", case.replace(' ', "-"), format.name));
    let mut bytes = Vec::new();
    let encode = format.encode;
    encode(contents, &DecodeOptions::default(), &mut bytes).map_err(|error| error.to_string())?;
    std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// Returns the folder of the originals.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("originals")
}

/// Returns the command that runs a script with the packages that `cargo xtask bench` installs.
fn python(script: &str, words: &[&str]) -> Command {
    let mut command = Command::new(root().join("target/rivals/python/bin/python"));
    // The option `-B` prevents a folder of compiled modules beside the scripts.
    command.arg("-B").arg(folder().join(script)).args(words);
    command
}

/// An original that waits for its turn. Dropping this value ends the program.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    /// Starts an original and waits until the original is ready. On failure, returns one line with
    /// the reason.
    fn start(original: &Original, file: &Path, members: u64, count: u64) -> Result<Self, String> {
        let mut command = (original.command)();
        command.arg(file).args([members.to_string(), count.to_string()]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().map_err(|error| {
            format!("{}: {error}", (original.command)().get_program().to_string_lossy())
        })?;
        let lines = BufReader::new(child.stdout.take().expect("is piped"));
        let mut running = Self { child, lines };
        if running.line().is_ok_and(|line| line == "ready") {
            return Ok(running);
        }
        let mut why = String::new();
        let _ = running.child.stderr.as_mut().expect("is piped").read_to_string(&mut why);
        Err(why.lines().next().unwrap_or("it ended without a word").to_owned())
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    /// Makes the original look up all items once.
    fn turn(&mut self) -> Sample {
        let mut stdin = self.child.stdin.as_ref().expect("is piped");
        let line = stdin.write_all(b"\n").and_then(|()| self.line()).unwrap_or_default();
        let numbers = line.split_once(' ').and_then(|(nanos, found)| {
            Some((Duration::from_nanos(nanos.parse().ok()?), found.parse().ok()?))
        });
        let (elapsed, yes) = numbers.expect("an original that was ready takes its turns");
        Sample { elapsed, yes }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
