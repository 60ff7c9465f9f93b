use bloomfilter::Bloom;

fn main() {
    for (items, rate) in [(1_000_000, 0.01), (0, 0.01), (1_000_000, 1.5)] {
        match Bloom::<u64>::new_for_fp_rate(items, rate) {
            Ok(seen) => println!("{} bytes", seen.len() / 8),
            Err(error) => println!("{error}"),
        }
    }
}
