use std::path::Path;

use bloomfilter::Bloom;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = Path::new("seen.bin");
    let mut seen = if path.exists() {
        Bloom::from_bytes(std::fs::read(path)?)?
    } else {
        Bloom::new_for_fp_rate(1_000_000, 0.001)?
    };
    for url in std::io::stdin().lines() {
        let url = url?;
        if !seen.check_and_set(&url) {
            println!("fetch {url}");
        }
    }
    Ok(std::fs::write(path, seen.to_bytes())?)
}
