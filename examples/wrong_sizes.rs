use tamis::{Bloom, Plan};

fn main() {
    for (items, rate) in [(1_000_000, 0.01), (-1, 0.01), (1_000_000, 1.5)] {
        match Bloom::for_items(items, rate) {
            Ok(seen) => println!("{} bytes", seen.plan().bytes()),
            Err(error) => println!("{error}"),
        }
    }
    println!("{:?}", Plan::new(u64::MAX, 0.01).map_err(|error| error.to_string()));
}
