use tamis::Bloom;

#[derive(serde::Serialize, serde::Deserialize)]
struct Job {
    name: String,
    seen: Bloom,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let job = Job { name: "import".into(), seen: Bloom::from_items(["a", "b"], 0.01)? };
    let json = serde_json::to_string(&job)?;
    let back: Job = serde_json::from_str(&json)?;
    println!("{} has seen a: {}", back.name, back.seen.contains("a"));
    Ok(())
}
