//! Recommendations that a user has not seen yet: one filter a user, which forgets after a month.
//!
//! ```text
//! cargo run --release -p tamis-server --example recommendations [redis://HOST:PORT]
//! ```
//!
//! Without an address, the example starts a server itself. Each user has a window: a filter that
//! holds what the user saw in the last 30 days, in slices that expire one after the other. So an old
//! article may come again, and no job has to clean up. A user who stays away for a month costs
//! nothing: the key itself expires.
//!
//! A false positive only hides an article that the user would have liked: one of a hundred here.

use std::error::Error;

use redis::Connection;
use tamis_server::{Config, Server};

const DAYS_30: u64 = 30 * 24 * 3600 * 1000;
const USERS: u64 = 1000;
const ARTICLES: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1);
    let server = match url {
        Some(_) => None,
        None => Some(Server::start(Config { port: 0, append_only: false, ..Config::default() })?),
    };
    let url = match (&server, url) {
        (Some(server), _) => format!("redis://{}", server.addresses()[0]),
        (None, url) => url.expect("an address was given"),
    };
    let mut redis = redis::Client::open(url)?.get_connection()?;
    let (mut shown, mut bytes) = (0, 0);
    for user in 0..USERS {
        for visit in 0..5 {
            let seen = recommend(&mut redis, user, candidates(user, visit))?;
            shown += seen.len();
        }
        bytes += redis::cmd("MEMORY").arg("USAGE").arg(key(user)).query::<u64>(&mut redis)?;
    }
    println!("{USERS} users, 5 visits each, {shown} articles shown");
    println!("{} bytes a user", bytes / USERS);
    Ok(())
}

fn key(user: u64) -> String {
    format!("user:{user}:seen")
}

/// Returns the articles of a list that the user has not seen, and records that they are shown.
fn recommend(redis: &mut Connection, user: u64, list: Vec<u64>) -> redis::RedisResult<Vec<u64>> {
    let key = key(user);
    let mut pipe = redis::pipe();
    // For a user without a filter. For others, the server answers that the key exists.
    pipe.cmd("TM.RESERVE").arg(&key).arg("KIND").arg("window").arg("ITEMS").arg(500);
    pipe.arg("RATE").arg(0.01).arg("WINDOW").arg(DAYS_30).arg("SLICES").arg(6).ignore();
    let made: redis::RedisResult<()> = pipe.query(redis);
    if let Err(error) = made
        && !error.to_string().contains("exists")
    {
        return Err(error);
    }
    // Adds the articles and answers which are new, in one command.
    let mut add = redis::cmd("TM.MADD");
    add.arg(&key);
    list.iter().for_each(|article| _ = add.arg(article));
    let is_new: Vec<bool> = add.query(redis)?;
    let _: bool = redis::cmd("PEXPIRE").arg(&key).arg(DAYS_30).query(redis)?;
    Ok(list.into_iter().zip(is_new).filter(|(_, new)| *new).map(|(article, _)| article).collect())
}

/// The list that a recommender made for a visit. It does not know what the user has seen.
fn candidates(user: u64, visit: u64) -> Vec<u64> {
    let first = user.wrapping_mul(0x9e37_79b9) % ARTICLES + 10 * visit;
    (first..first + 20).collect()
}

#[test]
fn no_article_is_shown_twice() {
    let config = Config { port: 0, threads: 1, append_only: false, ..Config::default() };
    let server = Server::start(config).unwrap();
    let url = format!("redis://{}", server.addresses()[0]);
    let mut redis = redis::Client::open(url).unwrap().get_connection().unwrap();
    let mut shown = std::collections::HashSet::new();
    for visit in 0..20 {
        for article in recommend(&mut redis, 7, candidates(7, visit)).unwrap() {
            assert!(shown.insert(article), "article {article} was shown twice");
        }
    }
    // 210 different ones, of which about two are hidden by false positives.
    assert!((200..=210).contains(&shown.len()), "{}", shown.len());
    // Another user has a filter of its own.
    assert_eq!(recommend(&mut redis, 8, candidates(7, 0)).unwrap().len(), 20);
}
