use std::fs::File;

use memmap2::Mmap;
use tamis_formats::TamisFile;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // SAFETY: no program changes the file while this program uses the file.
    let bytes = unsafe { Mmap::map(&File::open("seen.tamis")?)? };
    let seen = TamisFile::view(&bytes)?.filter;
    for word in std::env::args().skip(1) {
        println!("{word}: {}", seen.contains(&word));
    }
    Ok(())
}
