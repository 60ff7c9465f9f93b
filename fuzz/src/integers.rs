//! Tests that the parser returns decimal integers for any bytes, or an error at the first word that is not an integer.
//! The reference implementation splits at white space and uses the parser of the standard library.

use tamis_cli::decimal::{is_space, parse};

pub(crate) fn run(block: &[u8]) {
    let mut values = Vec::new();
    let outcome = parse(block, &mut values);
    let mut tokens = block.split(|&byte| is_space(byte)).filter(|token| !token.is_empty());
    for &value in &values {
        let token = tokens.next().expect("a token for each value");
        assert_eq!(plain(token), Some(value), "{}", token.escape_ascii());
    }
    match (outcome, tokens.next()) {
        (Ok(()), rest) => assert_eq!(rest, None),
        (Err(bad), Some(token)) => {
            assert_eq!(plain(token), None, "{bad}");
            assert!(block[bad.at..].starts_with(token), "{bad} at {}", bad.at);
            assert!(!bad.to_string().contains('\n'));
        }
        (Err(bad), None) => panic!("{bad}, though every token was read"),
    }
}

/// Parses a word with the standard library, as the reference implementation.
fn plain(token: &[u8]) -> Option<u64> {
    std::str::from_utf8(token).ok()?.parse().ok()
}
