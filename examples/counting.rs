use tamis::Counting;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut cart = Counting::for_items(1_000, 0.01)?;
    cart.extend(["apple", "pear", "apple"]);
    println!("apples: {}", cart.count("apple"));
    println!("removed: {:?}", cart.remove("pear"));
    println!("pear: {}", cart.contains("pear"));
    Ok(())
}
