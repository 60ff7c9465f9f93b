//! Glob patterns for keys and options: `*`, `?`, `[a-z]`, `[^a]` and `\`, with the rules of Redis.

/// The length of the longest pattern, in bytes. Matching a key takes time proportional to the
/// length of the key times the length of the pattern.
pub(crate) const MAX_PATTERN_BYTES: usize = 1024;

/// Tests whether a text matches a pattern. The time is at most proportional to the length of the
/// text times the length of the pattern.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // The positions after the last star in the pattern and in the text. If the text after the star
    // does not match, the match restarts one character later in the text.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            retry = Some((p + 1, t));
            p += 1;
            continue;
        }
        if t == text.len() {
            if p == pattern.len() {
                return true;
            }
        } else if let Some(len) = matches_one(&pattern[p..], text[t]) {
            (p, t) = (p + len, t + 1);
            continue;
        }
        match retry {
            Some((behind_star, from)) if from < text.len() => {
                retry = Some((behind_star, from + 1));
                (p, t) = (behind_star, from + 1);
            }
            _ => return false,
        }
    }
}

/// Matches a character with the start of a pattern that does not begin with a star. Returns the
/// length of the matched part of the pattern.
fn matches_one(pattern: &[u8], c: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (*escaped == c).then_some(2),
        [b'[', set @ ..] => {
            let is_negated = set.first() == Some(&b'^');
            let mut at = usize::from(is_negated);
            let mut is_in = false;
            while at < set.len() && set[at] != b']' {
                match &set[at..] {
                    [b'\\', escaped, ..] => {
                        is_in |= *escaped == c;
                        at += 2;
                    }
                    [low, b'-', high, ..] if *high != b']' => {
                        let (low, high) = (low.min(high), low.max(high));
                        is_in |= (*low..=*high).contains(&c);
                        at += 3;
                    }
                    [one, ..] => {
                        is_in |= *one == c;
                        at += 1;
                    }
                    [] => unreachable!("at is inside"),
                }
            }
            (is_in != is_negated).then_some((at + 2).min(pattern.len()))
        }
        [same, ..] => (*same == c).then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "anything", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            (r"h\*llo", "h*llo", true),
            (r"h\*llo", "hxllo", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("", "", true),
            ("", "a", false),
            ("[", "a", false),
            ("[a", "a", true),
            (r"[\]]", "]", true),
            ("bf-*", "bf-error-rate", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        assert!(!matches("a*".repeat(50).as_bytes(), "a".repeat(49).as_bytes()));
        assert!(!matches(format!("{}b", "a*".repeat(30)).as_bytes(), "a".repeat(5000).as_bytes()));
    }
}
