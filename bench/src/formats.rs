//! Measures how fast files of other systems are read.

use std::time::{Duration, Instant};

use tamis::Answers;
use tamis_formats::{DecodeOptions, FORMATS, Format};

use crate::originals::spread;
use crate::run::{Bench, Row};

/// The name of the case that reads files.
pub const READING: &str = "format read 64 MiB";

/// Reads a file of 64 MiB in each format that supports this size. Also copies the bytes of the
/// file, for comparison.
pub fn run(bench: &mut Bench) {
    if !bench.wants(READING) {
        return;
    }
    println!("\n{READING}");
    for format in FORMATS {
        let Ok((bytes, options)) = large(format) else { continue };
        // Files of integer sets are as large as their content, and Roaring bitmaps are not bit
        // arrays. These formats are skipped.
        if bytes.len() < 8 << 20 {
            continue;
        }
        let mut row = Row::new(READING, format.name);
        let mut copy = Row::new(READING, &format!("{}: copy", format.name));
        for _ in 0..bench.rounds {
            let start = Instant::now();
            let contents = (format.decode)(&bytes, &options);
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

/// Returns a file with items. The size is about 64 MiB, or the maximum size of the format.
fn large(format: &'static Format) -> Result<(Vec<u8>, DecodeOptions), String> {
    let (create, encode) = (format.create, format.encode);
    let options =
        DecodeOptions { items: Some(56_000_000), rate: Some(0.01), ..DecodeOptions::default() };
    let mut contents = create(&options).map_err(|error| error.to_string())?;
    let keys: Vec<_> = (0..100_000).map(|number| spread(number).to_le_bytes()).collect();
    let _ = contents.insert_each(&keys, &mut Answers::new());
    let mut bytes = Vec::new();
    encode(&contents, &options, &mut bytes).map_err(|error| error.to_string())?;
    Ok((bytes, options))
}
