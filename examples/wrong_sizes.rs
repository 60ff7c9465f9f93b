use tamis::Bloom;

fn main() {
    for (items, rate) in [(1_000_000, 0.01), (-1, 0.01), (1_000_000, 1.5)] {
        match Bloom::for_items(items, rate) {
            Ok(seen) => println!("{} bytes", seen.plan().bytes()),
            Err(error) => println!("{error}"),
        }
    }
}
