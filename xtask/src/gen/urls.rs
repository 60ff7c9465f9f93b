//! Generates URLs like the log of a crawler. A few sites have most of the pages, and a few pages
//! have most of the visits. New pages appear throughout the log.
//!
//! The generator chooses a new page for line `i` with a probability that gives exactly `distinct`
//! pages at the end. Otherwise, the generator chooses page ⌊n^u⌋ of the n earlier pages, with u
//! uniform in [0, 1). So page k has about 1/k of the visits of the first page, which is Zipf's law.

use crate::r#gen::output::Output;
use crate::r#gen::random::{Random, mix};

use crate::tools::Outcome;

/// Writes `lines` URLs. The output contains exactly `distinct` different URLs.
pub fn write(lines: u64, distinct: u64, seed: u64, output: &mut Output) -> Outcome {
    let mut random = Random::new(seed);
    let mut line = Vec::with_capacity(256);
    let mut seen = 0;
    for left in (1..=lines).rev() {
        let page = if seen == 0 || random.below(left) < distinct - seen {
            seen += 1;
            seen - 1
        } else {
            ((seen as f64).powf(random.unit()) as u64).clamp(1, seen) - 1
        };
        line.clear();
        push_address(&mut line, page, seed);
        line.push(b'\n');
        output.write(&line)?;
    }
    output.finish()
}

/// Appends the URL of a page. The last part of the URL is a bijection of the page number, so
/// different pages have different URLs.
fn push_address(line: &mut Vec<u8>, page: u64, seed: u64) {
    let bits = mix(page ^ mix(seed));
    line.extend_from_slice(if bits & 7 == 0 { b"http://" } else { b"https://" });
    if bits & 8 == 0 {
        line.extend_from_slice(b"www.");
    }
    // The code squares a random number, so sites with low numbers have more pages.
    let site = ((bits >> 44) * (bits >> 44)) >> 22;
    line.extend_from_slice(pick(WORDS, site));
    line.extend_from_slice(pick(WORDS, site >> 6));
    push_base36(line, site >> 9);
    line.extend_from_slice(pick(DOMAINS, site ^ (site >> 4)));
    let folders = 1 + (bits >> 8) % 3;
    for folder in 0..folders {
        line.push(b'/');
        line.extend_from_slice(pick(WORDS, bits >> (10 + 7 * folder)));
    }
    line.push(b'/');
    line.extend_from_slice(pick(WORDS, bits >> 32));
    line.push(b'-');
    // The multiplication by an odd factor modulo 2⁴⁰ gives distinct numbers for up to 2⁴⁰ pages, in
    // a mixed order.
    push_base36(line, page.wrapping_mul(0x9e_3779_b97f) & ((1 << 40) - 1));
    if bits & 0x30 == 0 {
        line.extend_from_slice(b"?page=");
        push_base36(line, bits >> 59);
    } else if bits & 0x40 == 0 {
        line.extend_from_slice(b".html");
    }
}

fn pick(words: &'static [&'static str], bits: u64) -> &'static [u8] {
    words[(bits % words.len() as u64) as usize].as_bytes()
}

fn push_base36(line: &mut Vec<u8>, mut number: u64) {
    loop {
        line.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % 36) as usize]);
        number /= 36;
        if number == 0 {
            return;
        }
    }
}

const DOMAINS: &[&str] = &[".com", ".org", ".net", ".cn", ".com.cn", ".de", ".io", ".co.uk", ".fr"];

const WORDS: &[&str] = &[
    "news", "blog", "shop", "wiki", "article", "product", "review", "travel", "music", "photo",
    "video", "forum", "thread", "user", "item", "catalog", "science", "health", "sport", "city",
    "food", "recipe", "garden", "history", "market", "finance", "auto", "mobile", "game", "film",
    "book", "library", "archive", "report", "paper", "data", "cloud", "open", "source", "code",
    "docs", "guide", "help", "support", "event", "ticket", "hotel", "flight", "map", "weather",
    "job", "career", "school", "course", "student", "teacher", "art", "design", "style", "fashion",
    "home", "kitchen", "river", "mountain",
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn pages_have_addresses_of_their_own_and_a_real_length() {
        let pages = 300_000;
        let mut line = Vec::new();
        let mut addresses = HashSet::new();
        let mut bytes = 0;
        for page in 0..pages {
            line.clear();
            push_address(&mut line, page, 1);
            bytes += line.len() + 1;
            addresses.insert(line.clone());
        }
        assert_eq!(addresses.len(), pages as usize);
        let mean = bytes as f64 / pages as f64;
        assert!((58.0..=61.0).contains(&mean), "{mean} bytes a line");
    }
}
