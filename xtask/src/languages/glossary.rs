//! The words that the glossary rules out.

/// Returns each word in a Chinese page that the last column of the glossary rules out, with its line number.
pub fn wrong_words<'a>(glossary: &'a str, page: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    (1..).zip(page.lines()).flat_map(move |(line, text)| {
        ruled_out(glossary).filter(|word| text.contains(word)).map(move |word| (line, word))
    })
}

/// Returns the words in the last column of the table. A word with an explanation in parentheses is wrong only in the
/// explained meaning, so the function ignores the word.
fn ruled_out(glossary: &str) -> impl Iterator<Item = &str> {
    let rows = glossary.lines().filter(|line| line.starts_with("| ")).skip(2);
    let cells = rows.filter_map(|row| row.trim_end_matches(['|', ' ']).rsplit('|').next());
    let words = cells.flat_map(|cell| cell.split('、')).map(str::trim);
    words.filter(|word| !word.contains('（') && *word != "–")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_the_last_column_is_found_unless_it_has_an_explanation() {
        let glossary = "# 术语表\n\n| 术语 | 不用 |\n| --- | --- |\n| 甲 | 乙、丙（指丁时） |\n| 戊 | – |\n| 己 | 庚 |\n";
        assert_eq!(ruled_out(glossary).collect::<Vec<_>>(), ["乙", "庚"]);
        let found = wrong_words(glossary, "甲丙\n辛庚–\n");
        assert_eq!(found.collect::<Vec<_>>(), [(2, "庚")]);
    }
}
