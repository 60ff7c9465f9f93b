use fastbloom::BloomFilter;

#[derive(serde::Serialize, serde::Deserialize)]
struct Job {
    name: String,
    seen: BloomFilter,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seen = BloomFilter::with_false_pos(0.01).items(["a", "b"].iter());
    let job = Job { name: "import".into(), seen };
    let json = serde_json::to_string(&job)?;
    let back: Job = serde_json::from_str(&json)?;
    println!("{} has seen a: {}", back.name, back.seen.contains("a"));
    Ok(())
}
