use rayon::prelude::*;
use tamis::SharedBloom;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ids: Vec<u64> = (0..1_000_000).map(|i| i / 2).collect();
    let seen = SharedBloom::for_items(ids.len(), 0.01)?;
    let new: usize = ids.par_chunks(10_000).map(|ids| seen.insert_all(ids)).sum();
    println!("{new} new ids");
    Ok(())
}
