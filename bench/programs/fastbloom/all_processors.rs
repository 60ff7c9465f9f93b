use fastbloom::AtomicBloomFilter;
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ids: Vec<u64> = (0..1_000_000).map(|i| i / 2).collect();
    let seen = AtomicBloomFilter::with_false_pos(0.01).expected_items(ids.len());
    let new = ids.par_iter().filter(|id| !seen.insert(id)).count();
    println!("{new} new ids");
    Ok(())
}
