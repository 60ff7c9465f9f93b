//! A deny list of senders with a white list: what the articles do with mail.
//!
//! ```text
//! cargo run --release -p tamis --example mail
//! ```
//!
//! A filter of ten million denied senders needs 20 MB instead of some 400 MB of text. It never lets
//! a denied sender through. It takes a few good ones for denied: one of a thousand here. The
//! operator puts those who complain on the white list, which is exact and small. The good senders
//! that are known in advance, such as one's own customers, can be tested when the list is built, so
//! that they never have to complain.

use std::collections::HashSet;

use tamis::{AnyFilter, Hasher, Plan, PlanError};

/// Denied senders, and good ones that the filter takes for denied.
struct DenyList {
    denied: AnyFilter,
    white: HashSet<String>,
}

impl DenyList {
    /// Builds a list of denied senders. The known good ones pass for certain.
    fn new(denied: &[String], good: &[String], rate: f64) -> Result<Self, PlanError> {
        let mut filter =
            AnyFilter::from_plan(&Plan::new(denied.len() as u64, rate)?, Hasher::default())?;
        for sender in denied {
            // A plan for all of them has room for each.
            filter.try_insert(sender.as_bytes()).expect("the filter has room");
        }
        let misjudged = good.iter().filter(|sender| filter.contains(sender.as_bytes()));
        let white = misjudged.cloned().collect();
        Ok(Self { denied: filter, white })
    }

    fn is_denied(&self, sender: &str) -> bool {
        self.denied.contains(sender.as_bytes()) && !self.white.contains(sender)
    }

    /// Records that a good sender was refused.
    fn forgive(&mut self, sender: &str) {
        self.white.insert(sender.to_owned());
    }
}

fn main() -> Result<(), PlanError> {
    run(1_000_000, 100_000)
}

fn run(denied: u32, good: u32) -> Result<(), PlanError> {
    let senders = |name: &str, count: u32| -> Vec<String> {
        (0..count).map(|i| format!("{name}{i}@mail{}.example", i % 997)).collect()
    };
    let (denied, customers) = (senders("offer", denied), senders("customer", good));
    let mut list = DenyList::new(&denied, &customers, 0.001)?;
    let strangers = senders("friend", good);
    let refused: Vec<&String> = strangers.iter().filter(|sender| list.is_denied(sender)).collect();
    println!("denied senders            {:>9}", denied.len());
    println!("bytes of the filter       {:>9}", list.denied.plan().bytes());
    println!("customers on white list   {:>9}", list.white.len());
    println!("strangers refused         {:>9} of {}", refused.len(), strangers.len());
    assert!(denied.iter().all(|sender| list.is_denied(sender)), "a denied sender passed");
    assert!(!customers.iter().any(|sender| list.is_denied(sender)), "a customer was refused");
    for sender in refused {
        list.forgive(sender);
    }
    assert!(!strangers.iter().any(|sender| list.is_denied(sender)), "a stranger was refused twice");
    Ok(())
}

#[test]
fn the_lists_judge_as_they_should() {
    run(10_000, 10_000).unwrap();
}
