use std::fs::File;
use std::path::Path;

use fastbloom::BloomFilter;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = Path::new("seen.bin");
    let mut seen: BloomFilter = if path.exists() {
        bincode::deserialize_from(File::open(path)?)?
    } else {
        BloomFilter::with_false_pos(0.001).expected_items(1_000_000)
    };
    for url in std::io::stdin().lines() {
        let url = url?;
        if !seen.insert(&url) {
            println!("fetch {url}");
        }
    }
    Ok(bincode::serialize_into(File::create(path)?, &seen)?)
}
