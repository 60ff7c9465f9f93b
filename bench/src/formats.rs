//! Filters of other systems: lookups beside the originals, and how fast files are read.
//!
//! The originals are programs in `originals/`, which read the filter that was written here. They are left out where the machine
//! has no Java or no Python package.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tamis::Answers;
use tamis_formats::{Contents, FORMATS, Format, Told};

use crate::run::{Bench, Entry, Row, Sample, time};

/// An odd constant that spreads numbers: the same as in `originals/`.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// How many items are handed over at a time.
const BATCH: usize = 4096;

/// Runs the cases.
pub fn run(bench: &mut Bench) {
    for (name, items) in [("1 M", 1_000_000_u64), ("10 M", 10_000_000)] {
        let case = guava_case(name);
        if bench.wants(&case) {
            guava(bench, &case, items);
        }
    }
    if bench.wants(READING) {
        reading(bench);
    }
}

/// The name of a case of Guava.
fn guava_case(items: &str) -> String {
    format!("format guava {items} longs at 1 %")
}

/// The case that reads files.
pub const READING: &str = "format read 64 MiB";

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(SPREAD).to_le_bytes()
}

fn guava(bench: &mut Bench, case: &str, items: u64) {
    let format = Format::named("guava").expect("a row");
    let mut contents = filled(format, items);
    let file = match written(format, &contents, case) {
        Ok(file) => file,
        Err(why) => return bench.wrong.push(format!("{case}: {why}")),
    };
    // Half of the items are in, in an order that nobody can guess.
    let first = items / 2;
    let asked: Vec<[u8; 8]> = (first..first + items.min(2_000_000)).map(key).collect();
    let asked = &asked[..];
    let mut answers = Answers::new();
    contents.contains_each(asked, &mut answers);
    let yes = answers.count_ones() as u64;
    let facts = contents.facts();
    let rows = bench.rows.len();
    let Contents::Flat(filter) = &mut contents else { unreachable!("Guava's is flat") };
    let entry = |name: &str, work: Box<dyn FnMut() -> Sample>| Entry {
        name: name.into(),
        items: asked.len() as u64,
        bits_per_item: Some(facts.bits as f64 / items as f64),
        rate: Some(facts.rate),
        expect: yes..=yes,
        work,
    };
    let (batched, single) = (filter.clone(), filter.clone());
    let batch: Vec<[u8; 8]> = asked.to_vec();
    let one: Vec<[u8; 8]> = asked.to_vec();
    bench.case(
        case,
        vec![
            entry(
                "tamis, batch",
                Box::new(move || {
                    let mut answers = Answers::new();
                    time(|| {
                        let found = batch.chunks(BATCH).map(|keys| {
                            batched.contains_each(keys, &mut answers);
                            answers.count_ones() as u64
                        });
                        found.sum()
                    })
                }),
            ),
            entry(
                "tamis, one by one",
                Box::new(move || {
                    time(|| one.iter().filter(|key| single.contains(&key[..])).count() as u64)
                }),
            ),
        ],
    );
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("originals");
    let classes = "/usr/share/java/guava.jar";
    let mut java = Command::new("java");
    java.args(["-cp", classes]).arg(folder.join("GuavaLookups.java"));
    original(bench, case, "guava, warm JVM", java, &file, first, asked.len(), yes);
    let _ = std::fs::remove_file(file);
    for row in &mut bench.rows[rows..] {
        row.bits_per_item = Some(facts.bits as f64 / items as f64);
    }
}

/// Runs an original and keeps what it printed as a row.
#[allow(clippy::too_many_arguments, reason = "each is one word of its command line or a row's")]
fn original(
    bench: &mut Bench,
    case: &str,
    name: &str,
    mut command: Command,
    file: &Path,
    first: u64,
    count: usize,
    yes: u64,
) {
    command.arg(file).args([first.to_string(), count.to_string(), bench.rounds.to_string()]);
    let output = match command.output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            return println!("  {name}: left out: {}", why.lines().next().unwrap_or("it failed"));
        }
        Err(error) => return println!("  {name}: left out: {error}"),
    };
    let mut lines = output.lines();
    let found: Option<u64> = lines.next().and_then(|line| line.parse().ok());
    if found != Some(yes) {
        bench.wrong.push(format!("{case}: {name} found {found:?}, and tamis {yes}"));
    }
    let mut row = Row::new(case, name);
    row.rounds = lines.filter_map(|line| line.parse().ok()).collect();
    println!("{row}");
    bench.rows.push(row);
}

/// Reads a file of 64 MiB in each format that can have one, beside a copy of its bytes.
fn reading(bench: &mut Bench) {
    println!("\n{READING}");
    for format in FORMATS {
        let Ok((bytes, told)) = large(format) else { continue };
        // Sets of integers are as large as what is in them, and Roaring bitmaps are no bit arrays.
        if bytes.len() < 8 << 20 {
            continue;
        }
        let mut row = Row::new(READING, format.name);
        let mut copy = Row::new(READING, &format!("{}: copy", format.name));
        for _ in 0..bench.rounds {
            let start = Instant::now();
            let contents = (format.decode)(&bytes, &told);
            row.rounds.push(per_byte(start.elapsed(), bytes.len()));
            if let Err(error) = contents {
                bench.wrong.push(format!("{READING}: {}: {error}", format.name));
            }
            let start = Instant::now();
            std::hint::black_box(bytes.clone());
            copy.rounds.push(per_byte(start.elapsed(), bytes.len()));
        }
        println!("{row}   {:.2} GB/s, a copy {:.2} GB/s", 1.0 / row.min(), 1.0 / copy.min());
        bench.rows.extend([row, copy]);
    }
}

fn per_byte(elapsed: Duration, bytes: usize) -> f64 {
    elapsed.as_nanos() as f64 / bytes as f64
}

/// Returns a file of about 64 MiB, or as large as the format allows, with items in it.
fn large(format: &'static Format) -> Result<(Vec<u8>, Told), String> {
    let (create, encode) = format.create.zip(format.encode).ok_or("only read")?;
    let told = Told { items: Some(56_000_000), rate: Some(0.01), ..Told::default() };
    let mut contents = create(&told).map_err(|error| error.to_string())?;
    let keys: Vec<_> = (0..100_000).map(key).collect();
    let _ = contents.insert_each(&keys, &mut Answers::new());
    let mut bytes = Vec::new();
    encode(&contents, &told, &mut bytes).map_err(|error| error.to_string())?;
    Ok((bytes, told))
}

fn filled(format: &'static Format, items: u64) -> Contents {
    let told = Told { items: Some(items), rate: Some(0.01), ..Told::default() };
    let create = format.create.expect("can be built");
    let mut contents = create(&told).expect("items and rate are told");
    let mut answers = Answers::new();
    for first in (0..items).step_by(BATCH) {
        let keys: Vec<_> = (first..(first + BATCH as u64).min(items)).map(key).collect();
        contents.insert_each(&keys, &mut answers).expect("it has room");
    }
    contents
}

/// Writes a filter where an original can read it.
fn written(format: &'static Format, contents: &Contents, case: &str) -> Result<PathBuf, String> {
    let path =
        std::env::temp_dir().join(format!("tamis-{}.{}", case.replace(' ', "-"), format.name));
    let mut bytes = Vec::new();
    let encode = format.encode.expect("is written");
    encode(contents, &Told::default(), &mut bytes).map_err(|error| error.to_string())?;
    std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}
