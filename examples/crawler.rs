use std::path::Path;

use tamis::Bloom;
use tamis_formats::Save;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = Path::new("seen.tamis");
    let mut seen =
        if path.exists() { Bloom::load(path)? } else { Bloom::for_items(1_000_000, 0.001)? };
    for url in std::io::stdin().lines() {
        let url = url?;
        if seen.insert(&url) {
            println!("fetch {url}");
        }
    }
    Ok(seen.save(path)?)
}
