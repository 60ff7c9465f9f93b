//! `cargo xtask gen`: generates data for measurements and trials, with the same bytes for the same
//! arguments on every machine. Also extracts real data from Debian's package indexes.

mod debian;
mod integers;
pub mod random;
mod urls;

use std::fs::File;
use std::io::{self, BufWriter, Write};

use crate::Outcome;
use crate::args::Args;

/// The types of data that `gen` creates, for the usage text.
pub const USAGE: &str = "\
  gen urls [--lines N] [--distinct N] [--seed N] [-o FILE]
                  addresses whose repeats follow Zipf's law; by default 20 M lines, 8.3 M distinct
  gen ints [--count N] [--below N] [--format text|u32] [--seed N] [-o FILE]
                  random integers, as lines or as little-endian words
  gen debian-urls [-o FILE]
                  the homepage of every package in Debian's index, in its order
  gen debian-paths [-o FILE]
                  the path of every file of every package in Debian's index";

/// Runs one generator.
pub fn run(words: &[&str]) -> Outcome {
    let Some((&kind, rest)) = words.split_first() else {
        return Err(format!("gen what?\n\n{USAGE}"));
    };
    let mut args = Args::new(rest);
    let output = args.value("-o")?.map(str::to_owned);
    let open = || Output::create(output.as_deref());
    let seed = args.number("--seed")?.unwrap_or(1);
    match kind {
        "urls" => {
            let lines = args.number("--lines")?.unwrap_or(20_000_000);
            // The share that was measured in the log of a crawler.
            let distinct =
                args.number("--distinct")?.unwrap_or((lines.saturating_mul(415) / 1000).max(1));
            args.end()?;
            if distinct > lines || (distinct == 0 && lines > 0) {
                return Err(format!("--distinct must be 1 to {lines}, the number of lines"));
            }
            urls::write(lines, distinct, seed, &mut open()?)
        }
        "ints" => {
            let count = args.number("--count")?.unwrap_or(100_000_000);
            let below = args.number("--below")?.unwrap_or(1 << 32);
            let format = integers::Format::parse(args.value("--format")?.unwrap_or("text"))?;
            args.end()?;
            if !(1..=1 << 32).contains(&below) {
                return Err("--below must be 1 to 4294967296".to_owned());
            }
            integers::write(count, below, format, seed, &mut open()?)
        }
        "debian-urls" => args.end().and_then(|()| debian::homepages(&mut open()?)),
        "debian-paths" => args.end().and_then(|()| debian::paths(&mut open()?)),
        other => Err(format!("no generator is named {other}\n\n{USAGE}")),
    }
}

/// The output: a file, or the standard output. Writes are large.
pub struct Output {
    writer: BufWriter<Box<dyn Write>>,
    name: String,
}

impl Output {
    fn create(path: Option<&str>) -> Result<Self, String> {
        let (inner, name): (Box<dyn Write>, _) = match path {
            Some(path) => {
                let file = File::create(path).map_err(|error| format!("{path}: {error}"))?;
                (Box::new(file), path.to_owned())
            }
            None => (Box::new(io::stdout()), "standard output".to_owned()),
        };
        Ok(Self { writer: BufWriter::with_capacity(1 << 20, inner), name })
    }

    /// Writes all of `bytes`.
    pub fn write(&mut self, bytes: &[u8]) -> Outcome {
        self.writer.write_all(bytes).map_err(|error| format!("{}: {error}", self.name))
    }

    /// Writes the buffered bytes.
    pub fn finish(&mut self) -> Outcome {
        self.writer.flush().map_err(|error| format!("{}: {error}", self.name))
    }
}
