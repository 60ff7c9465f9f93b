//! Folds text ids to keys: texts that are equal in a database column have the same key.
//!
//! Under a collation such as `utf8mb4_general_ci`, a query for `abc` finds the row `Abc`. A filter stores only hashes,
//! so the guard folds each text to a key before hashing. All texts that are equal under the collation must have the
//! same key. If equal texts had different keys, the guard would refuse an id that the query finds. Different ids may
//! have the same key. If an existing id and an absent id have the same key, the absent id passes.
//!
//! # Weights
//!
//! A collation assigns a sequence of weights to each character, and compares the weights of texts. The tables in
//! `fold/` list the characters that have the same weights as other characters. The line `41: C0 E0` means that À and à
//! have the weight of A. The line `53+53: DF` means that ß has the weights of two S. A character that is not in the
//! table has a unique weight. The fold replaces each character of a text; the result is the key. Therefore texts with
//! equal weights have equal keys.
//!
//! In the following three cases, texts with different weights have the same key, so keys are not precise.
//!
//! * In the collations of `uca.txt`, some pairs of characters have other weights than the single characters
//!   (contractions). The versions of the collations differ in a few characters. The table maps the characters of
//!   contractions, and the characters that differ between versions, to nothing.
//! * A key has no trailing spaces, also for collations that compare trailing spaces (`NO PAD`).
//! * Collations that distinguish accents or case (`_as_cs`) have the same keys as collations that ignore accents and
//!   case.

use std::borrow::Cow;
use std::sync::LazyLock;

/// The function that converts a text to its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fold {
    /// The key is the unchanged text.
    #[default]
    Exact,
    /// The key ignores trailing spaces.
    Padded,
    /// The key ignores case, as in the type `citext` of PostgreSQL and in `NOCASE` of SQLite.
    Case,
    /// The collation `general_ci` of MySQL and MariaDB.
    General,
    /// The collation `unicode_ci` of MySQL and MariaDB.
    Unicode,
    /// The newer collations of MySQL and MariaDB that follow the Unicode Collation Algorithm.
    Uca,
}

/// The syllables of Hangul. MySQL decomposes each syllable. The last code points of the range are unassigned.
const HANGUL: std::ops::RangeInclusive<char> = '\u{AC00}'..='\u{D7AF}';

impl Fold {
    /// All folds, in the order of their numbers in snapshots.
    pub(crate) const ALL: [Self; 6] =
        [Self::Exact, Self::Padded, Self::Case, Self::General, Self::Unicode, Self::Uca];

    /// Returns the number of the fold in a snapshot. If the table of a fold changes, the fold must get a new number.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    /// Returns the fold with a number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Returns the fold for a collation of MySQL or MariaDB, such as `utf8mb4_general_ci`. Returns `None` for a
    /// language-specific collation and for an unknown collation.
    #[cfg(feature = "databases")]
    pub(crate) fn of_collation(collation: &str) -> Option<Self> {
        let (_, name) = collation.split_once('_')?;
        if let Some(options) = name.strip_prefix("uca1400_") {
            let options = options.strip_prefix("nopad_").unwrap_or(options);
            return ["ai_ci", "ai_cs", "as_ci", "as_cs"].contains(&options).then_some(Self::Uca);
        }
        Some(match name {
            "nopad_bin" | "0900_bin" => Self::Exact,
            "bin" => Self::Padded,
            "general_ci" => Self::General,
            "unicode_ci" => Self::Unicode,
            "unicode_520_ci" | "unicode_520_nopad_ci" => Self::Uca,
            "0900_ai_ci" | "0900_as_ci" | "0900_as_cs" => Self::Uca,
            _ => return None,
        })
    }

    /// Tests whether texts with equal keys are always equal in the database. If the result is false, the deletion of
    /// one text does not imply that another text with the same key was deleted.
    pub(crate) fn is_precise(self) -> bool {
        !matches!(self, Self::Case | Self::Uca)
    }

    /// Returns the key of a text. Texts that are equal in the database have the same key.
    pub(crate) fn key(self, text: &[u8]) -> Cow<'_, [u8]> {
        if self == Self::Exact {
            return Cow::Borrowed(text);
        }
        if self == Self::Padded {
            let end = text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
            return Cow::Borrowed(&text[..end]);
        }
        let mut key = String::with_capacity(text.len());
        // A program decodes invalid UTF-8 to U+FFFD.
        for character in String::from_utf8_lossy(text).chars() {
            self.push(&mut key, character);
        }
        if self != Self::Case {
            key.truncate(key.trim_end_matches(' ').len());
        }
        Cow::Owned(key.into_bytes())
    }

    /// Appends the replacement of a character to a key.
    fn push(self, key: &mut String, character: char) {
        static GENERAL: LazyLock<Table> =
            LazyLock::new(|| Table::parse(include_str!("fold/general_ci.txt")));
        static UNICODE: LazyLock<Table> =
            LazyLock::new(|| Table::parse(include_str!("fold/unicode_ci.txt")));
        static UCA: LazyLock<Table> = LazyLock::new(|| Table::parse(include_str!("fold/uca.txt")));

        if character.is_ascii_alphanumeric() {
            key.push(character.to_ascii_uppercase());
            return;
        }
        let table = match self {
            Self::Exact | Self::Padded => return key.push(character),
            Self::Case => return push_case(key, character),
            // In `general_ci`, each character above U+FFFF has the weight of U+FFFD. In `unicode_ci`, all characters
            // above U+FFFF have the same weight.
            Self::General if character > '\u{FFFF}' => return key.push('\u{FFFD}'),
            Self::Unicode if character > '\u{FFFF}' => return key.push('\u{10000}'),
            Self::General => &GENERAL,
            Self::Unicode => &UNICODE,
            Self::Uca if HANGUL.contains(&character) => {
                return jamo(character).for_each(|part| UCA.push(key, part));
            }
            Self::Uca => &UCA,
        };
        table.push(key, character);
    }
}

/// Appends a character without its case. Locales treat three cases differently: the letter i, the small sigma at the
/// end of a word, and letters that become several letters.
fn push_case(key: &mut String, character: char) {
    let upper = character.to_lowercase().flat_map(char::to_uppercase);
    for lower in upper.flat_map(char::to_lowercase) {
        match lower {
            'ı' => key.push('I'),
            'ς' => key.push('σ'),
            // U+0307 is the combining dot above. The lower case of İ contains the combining dot, and Lithuanian
            // combines the dot with an accent.
            '\u{307}' => {}
            'ì' => key.push_str("I\u{300}"),
            'í' => key.push_str("I\u{301}"),
            'ĩ' => key.push_str("I\u{303}"),
            _ => key.push(if lower.is_ascii() { lower.to_ascii_uppercase() } else { lower }),
        }
    }
}

/// Returns the letters of a Hangul syllable.
fn jamo(syllable: char) -> impl Iterator<Item = char> {
    let index = u32::from(syllable) - u32::from(*HANGUL.start());
    let last = index % 28;
    let letters = [0x1100 + index / 588, 0x1161 + index % 588 / 28, 0x11A7 + last];
    let count = if last == 0 { 2 } else { 3 };
    letters.into_iter().take(count).filter_map(char::from_u32)
}

/// A table that maps characters to their replacements in keys.
struct Table {
    /// Ranges of characters in ascending order, with the replacement of each character.
    ranges: Vec<(u32, u32, Box<str>)>,
}

impl Table {
    /// Parses lines of the form `41: C0-C5 E0`.
    fn parse(text: &str) -> Self {
        let number = |text: &str| u32::from_str_radix(text, 16).expect("the table has numbers");
        let mut ranges = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (replacement, characters) = line.split_once(": ").expect("a line of the table");
            let replacement: Box<str> = match replacement {
                "-" => Box::default(),
                _ => replacement.split('+').filter_map(|it| char::from_u32(number(it))).collect(),
            };
            for range in characters.split(' ') {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                ranges.push((number(first), number(last), replacement.clone()));
            }
        }
        ranges.sort_by_key(|&(first, ..)| first);
        Self { ranges }
    }

    fn push(&self, key: &mut String, character: char) {
        let number = u32::from(character);
        let after = self.ranges.partition_point(|&(first, ..)| first <= number);
        match after.checked_sub(1).map(|at| &self.ranges[at]) {
            Some((_, last, replacement)) if number <= *last => key.push_str(replacement),
            _ => key.push(character),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fold: Fold, text: &str) -> String {
        String::from_utf8(fold.key(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn texts_that_a_collation_takes_for_one_have_one_key() {
        for (fold, one, other) in [
            (Fold::Padded, "abc  ", "abc"),
            (Fold::Case, "ΑΣ ПРИВЕТ Straße", "ας привет STRASSE"),
            (Fold::Case, "İI", "iı"),
            (Fold::General, "Abc ", "àBĈ"),
            (Fold::General, "ß😀", "S🍺"),
            (Fold::Unicode, "Straße\u{1}", "STRASSE  "),
            (Fold::Unicode, "😀", "🍺"),
            (Fold::Uca, "Ǆ産品 각", "dž産品 \u{1100}\u{1161}\u{11A8}"),
            (Fold::Uca, "①Å", "1a\u{30A}"),
            (Fold::Uca, "l·l", "LL"),
        ] {
            assert_eq!(key(fold, one), key(fold, other), "{fold:?}");
        }
        for (fold, one, other) in [
            (Fold::Padded, "abc", "Abc"),
            (Fold::Case, "abc ", "abc"),
            (Fold::Case, "é", "e"),
            (Fold::General, "ss", "ß"),
            (Fold::Uca, "产品", "産品"),
            (Fold::Uca, "😀", "🍺"),
            (Fold::Uca, "a-b", "ab"),
        ] {
            assert_ne!(key(fold, one), key(fold, other), "{fold:?}");
        }
        assert_eq!(Fold::Exact.key(b"a\xff "), Cow::Borrowed(b"a\xff "));
        assert_eq!(Fold::Uca.key(b"a\xff"), Fold::Uca.key("A\u{FFFD}".as_bytes()));
    }

    #[test]
    fn a_key_is_its_own_key() {
        for fold in Fold::ALL {
            for character in '\0'..=char::MAX {
                let once = key(fold, &character.to_string());
                assert_eq!(key(fold, &once), once, "{fold:?} {character:?}");
            }
            assert_eq!(Fold::of_number(fold.number()), Some(fold));
        }
        assert_eq!(Fold::of_number(6), None);
    }

    #[test]
    fn the_key_without_case_is_that_of_the_small_letters() {
        for character in '\0'..=char::MAX {
            let text = character.to_string();
            for other in [text.to_lowercase(), text.to_uppercase()] {
                assert_eq!(key(Fold::Case, &other), key(Fold::Case, &text), "{text:?}");
            }
        }
    }

    #[cfg(feature = "databases")]
    #[test]
    fn collations_of_languages_are_not_known() {
        for (collation, expected) in [
            ("utf8mb4_bin", Some(Fold::Padded)),
            ("utf8mb4_nopad_bin", Some(Fold::Exact)),
            ("ascii_general_ci", Some(Fold::General)),
            ("utf8mb3_unicode_ci", Some(Fold::Unicode)),
            ("utf8mb4_0900_ai_ci", Some(Fold::Uca)),
            ("utf8mb4_uca1400_nopad_as_cs", Some(Fold::Uca)),
            ("utf8mb4_uca1400_swedish_ai_ci", None),
            ("utf8mb4_german2_ci", None),
            ("utf8mb4_zh_0900_as_cs", None),
            ("utf8mb4_general_nopad_ci", None),
            ("binary", None),
        ] {
            assert_eq!(Fold::of_collation(collation), expected, "{collation}");
        }
    }
}
