use std::sync::Mutex;

use bloomfilter::Bloom;
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ids: Vec<u64> = (0..1_000_000).map(|i| i / 2).collect();
    let seen = Mutex::new(Bloom::new_for_fp_rate(ids.len(), 0.01)?);
    let new = ids.par_iter().filter(|id| !seen.lock().unwrap().check_and_set(*id)).count();
    println!("{new} new ids");
    Ok(())
}
