//! `cargo xtask gen`: generates data for measurements and tests. The same arguments produce the
//! same bytes on every machine. The task also extracts real data from Debian's package indexes.

mod debian;
mod integers;
mod output;
pub mod random;
mod urls;

use crate::args::Args;
use crate::r#gen::output::Output;
use crate::r#gen::random::Random;
use crate::tools::Outcome;

/// The part of the usage text that describes `gen`.
pub const USAGE: &str = "\
  gen urls [--lines N] [--distinct N] [--seed N] [-o FILE]
                  addresses whose repeats follow Zipf's law; by default 20 M lines, 8.3 M distinct
  gen ints [--count N] [--below N] [--format text|u32] [--seed N] [-o FILE]
                  random integers, as lines or as little-endian words
  gen debian-urls [-o FILE]
                  the homepage of every package in Debian's index, in its order
  gen debian-paths [-o FILE]
                  the path of every file of every package in Debian's index";

/// Runs the generator that the first word names.
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
            // The default is 41.5 % distinct lines, the measured ratio in the log of a crawler.
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
            let write = match args.value("--format")?.unwrap_or("text") {
                "text" => integers::write_text,
                "u32" => integers::write_words,
                word => return Err(format!("--format is text or u32, not {word}")),
            };
            args.end()?;
            if !(1..=1 << 32).contains(&below) {
                return Err("--below must be 1 to 4294967296".to_owned());
            }
            let mut output = open()?;
            let mut random = Random::new(seed);
            (0..count).try_for_each(|_| write(random.below(below) as u32, &mut output))?;
            output.finish()
        }
        "debian-urls" => args.end().and_then(|()| debian::homepages(&mut open()?)),
        "debian-paths" => args.end().and_then(|()| debian::paths(&mut open()?)),
        other => Err(format!("no generator is named {other}\n\n{USAGE}")),
    }
}
