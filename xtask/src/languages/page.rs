//! The parts of a page that must not depend on the language: code blocks, words in inline code, tables and links.

use std::collections::BTreeMap;

use crate::languages::figures::figures;
use crate::links;

/// The mark of a Chinese page that may lack content of the English page.
const SHORT: &str = "<!-- short form -->";

/// A page of Markdown.
#[derive(Debug, Default)]
pub struct Page {
    pub name: String,
    pub is_short: bool,
    pub blocks: Vec<Block>,
    /// The words in inline code outside the code blocks, each with the number of its first line.
    pub words: BTreeMap<String, usize>,
    pub tables: Vec<Vec<Row>>,
    /// The targets of the links without anchors, with the numbers of their lines.
    pub links: Vec<(String, usize)>,
}

/// A code block. `line` is the number of the line that opens the block.
#[derive(Debug)]
pub struct Block {
    pub line: usize,
    pub language: String,
    pub lines: Vec<String>,
}

/// A row of a table.
#[derive(Debug)]
pub struct Row {
    pub line: usize,
    /// The words in inline code, sorted.
    pub words: Vec<String>,
    /// The figures of the row, sorted.
    pub figures: Vec<String>,
}

impl Page {
    /// Parses a page.
    ///
    /// # Errors
    ///
    /// Returns a message with the line number if a code block or a comment has no end.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut page = Self { name: name.into(), ..Self::default() };
        let mut paragraph = Paragraph::default();
        let mut is_table = false;
        let mut lines = (1..).zip(text.lines());
        while let Some((line, text)) = lines.next() {
            let is_row = text.starts_with('|');
            if is_row || text.trim().is_empty() || text.starts_with("<!--") || is_fence(text) {
                page.end(&mut paragraph);
            }
            if text.starts_with("<!--") {
                page.is_short |= text == SHORT;
                let is_closed = text.contains("-->") || lines.any(|(_, it)| it.contains("-->"));
                if !is_closed {
                    return Err(format!("{name}:{line}: a comment without an end"));
                }
            } else if is_fence(text) {
                let language = text.trim_start().trim_start_matches('`').to_owned();
                let mut block = Block { line, language, lines: Vec::new() };
                loop {
                    let Some((_, text)) = lines.next() else {
                        return Err(format!("{name}:{line}: a code block without an end"));
                    };
                    if text.trim() == "```" {
                        break;
                    }
                    block.lines.push(text.to_owned());
                }
                page.blocks.push(block);
            } else if is_row {
                page.add_row(line, text, is_table);
            } else if !text.trim().is_empty() {
                paragraph.push(line, text);
            }
            is_table = is_row;
        }
        page.end(&mut paragraph);
        Ok(page)
    }

    /// Adds a row to the last table, or to a new table.
    fn add_row(&mut self, line: usize, text: &str, is_table: bool) {
        if !is_table {
            self.tables.push(Vec::new());
        }
        let table = self.tables.last_mut().expect("a table begins with a row");
        let is_delimiter = text.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
        if !is_delimiter {
            let mut words: Vec<_> = inline_code(text).flat_map(|(_, code)| words(code)).collect();
            words.sort();
            table.push(Row { line, words, figures: figures(&without_targets(text)) });
        }
        let mut paragraph = Paragraph::default();
        paragraph.push(line, text);
        self.end(&mut paragraph);
    }

    /// Adds the words and the links of a paragraph, and empties the paragraph.
    fn end(&mut self, paragraph: &mut Paragraph) {
        let Paragraph { first, text } = std::mem::take(paragraph);
        for (start, code) in inline_code(&text) {
            let line = first + text[..start].matches('\n').count();
            for word in words(code) {
                self.words.entry(word).or_insert(line);
            }
        }
        for (line, text) in (first..).zip(text.lines()) {
            self.links.extend(links::links(text).map(|target| (target.to_owned(), line)));
        }
    }
}

/// Consecutive lines of text, such as a paragraph or an item of a list.
#[derive(Default)]
struct Paragraph {
    /// The number of the first line.
    first: usize,
    text: String,
}

impl Paragraph {
    fn push(&mut self, line: usize, text: &str) {
        if self.text.is_empty() {
            self.first = line;
        } else {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }
}

impl Block {
    /// Returns a line of the block without its comment.
    pub fn code(&self, index: usize) -> Option<&str> {
        let line = self.lines.get(index)?;
        let mark = match &*self.language {
            "sh" | "toml" | "yaml" | "python" => "# ",
            "rust" => "// ",
            _ => return Some(line.trim_end()),
        };
        let mut starts = line.match_indices(mark).map(|(at, _)| at);
        let comment = starts.find(|&at| line[..at].is_empty() || line[..at].ends_with(' '));
        Some(line[..comment.unwrap_or(line.len())].trim_end())
    }

    /// Tests whether the block is a drawing with Chinese words.
    pub fn is_drawing(&self) -> bool {
        let is_chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        self.language == "text" && self.lines.iter().any(|line| line.contains(is_chinese))
    }

    /// Returns the figures of the whole block, sorted.
    pub fn figures(&self) -> Vec<String> {
        let mut all: Vec<_> = self.lines.iter().flat_map(|line| figures(line)).collect();
        all.sort();
        all
    }
}

impl Row {
    /// Tests whether a row has all words and figures of another row.
    pub fn contains(&self, other: &Self) -> bool {
        has_all(&self.words, &other.words) && has_all(&self.figures, &other.figures)
    }
}

/// Tests whether a sorted list contains each item of another sorted list at least as often as the other list.
fn has_all(list: &[String], other: &[String]) -> bool {
    let mut list = list.iter();
    other.iter().all(|item| list.any(|it| it == item))
}

fn is_fence(text: &str) -> bool {
    text.trim_start().starts_with("```")
}

/// Returns each inline code of a text with its position.
fn inline_code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find('`')?;
            let ticks = text[start..].len() - text[start..].trim_start_matches('`').len();
            let code = start + ticks;
            at = code;
            if let Some(length) = end_of_code(&text[code..], ticks) {
                at = code + length + ticks;
                return Some((code, &text[code..code + length]));
            }
        }
    })
}

/// Returns the position of the next run of exactly `ticks` backticks.
fn end_of_code(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    loop {
        let start = at + text[at..].find('`')?;
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        if run == ticks {
            return Some(start);
        }
        at = start + run;
    }
}

/// Returns the words of inline code: names, numbers, and options with their dashes. Chinese characters are no words.
fn words(code: &str) -> impl Iterator<Item = String> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    let words = code.split(is_end).map(|word| word.trim_matches('.').trim_end_matches(['-', '.']));
    words.filter(|word| !word.is_empty()).map(str::to_owned)
}

/// Removes the targets of links, because the target may have another name in the other language.
fn without_targets(text: &str) -> String {
    let mut parts = text.split("](");
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        result.push(']');
        result.push_str(part.split_once(')').map_or("", |(_, rest)| rest));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_code_may_continue_on_the_next_line() {
        let page = Page::parse("a.md", "# A\n\nUse `tamis\n--stats` and ``a`b``.\n").unwrap();
        let words: Vec<_> = page.words.iter().map(|(word, line)| (&**word, *line)).collect();
        assert_eq!(words, [("--stats", 3), ("a", 4), ("b", 4), ("tamis", 3)]);
    }

    #[test]
    fn comments_and_code_blocks_have_no_inline_code() {
        let text = "<!-- setup:\n`a`\n-->\n```sh\necho `b`\n```\n\n<!-- short form -->\n";
        let page = Page::parse("a.md", text).unwrap();
        assert!(page.words.is_empty() && page.is_short);
        assert_eq!((page.blocks[0].line, page.blocks[0].code(0)), (4, Some("echo `b`")));
    }

    #[test]
    fn a_block_or_comment_without_an_end_is_an_error() {
        for (text, error) in [
            ("\n```sh\nls\n", "a.md:2: a code block without an end"),
            ("<!-- setup:\nls\n", "a.md:1: a comment without an end"),
        ] {
            assert_eq!(Page::parse("a.md", text).unwrap_err(), error);
        }
    }

    #[test]
    fn only_a_comment_is_removed_from_code() {
        let code = |language: &str, line: &str| {
            let block = Block { line: 1, language: language.into(), lines: vec![line.into()] };
            block.code(0).unwrap().to_owned()
        };
        assert_eq!(code("sh", "grep '#a' b  # c"), "grep '#a' b");
        assert_eq!(code("rust", "f(\"https://a\");   // b"), "f(\"https://a\");");
        assert_eq!(code("console", "$ redis-cli # a"), "$ redis-cli # a");
    }

    #[test]
    fn a_table_is_a_list_of_rows_without_the_delimiter() {
        let text = "| a | [b](c1.md) |\n| --- | ---: |\n| `--x 7` | 2 |\n\n| d |\n";
        let page = Page::parse("a.md", text).unwrap();
        let figures: Vec<Vec<_>> = page
            .tables
            .iter()
            .map(|it| it.iter().map(|row| row.figures.join(" ")).collect())
            .collect();
        assert_eq!(figures, [vec!["", "2 7"], vec![""]]);
        assert_eq!(page.tables[0][1].words, ["--x", "7"]);
        assert_eq!(page.links, [("c1.md".into(), 1)]);
    }

    #[test]
    fn a_row_contains_a_row_with_fewer_figures() {
        let row = |figures: &[&str]| Row {
            line: 1,
            words: Vec::new(),
            figures: figures.iter().map(|it| (*it).to_owned()).collect(),
        };
        assert!(row(&["1", "2", "3"]).contains(&row(&["1", "3"])));
        assert!(!row(&["1", "2"]).contains(&row(&["1", "1"])));
    }
}
