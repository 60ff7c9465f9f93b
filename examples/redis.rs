use tamis_redis::{Patience, RedisFilter, RedisPlan, SingleNode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = SingleNode::new(&std::env::var("REDIS_URL")?, Patience::default())?;
    let users = RedisFilter::open_or_create(node, "users", &RedisPlan::new(1_000_000, 0.01)?)?;
    println!("alice is new: {}", users.insert("alice")?);
    println!("bob may exist: {}", users.contains("bob")?);
    Ok(())
}
