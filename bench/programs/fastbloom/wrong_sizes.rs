use fastbloom::BloomFilter;

fn main() {
    for (items, rate) in [(1_000_000, 0.01), (1_000_000, 1.5)] {
        let seen = BloomFilter::with_false_pos(rate).expected_items(items);
        println!("{} bytes", seen.num_bits() / 8);
    }
}
