//! Checks that the English and the Chinese version of each page agree.
//!
//! A page `docs/guard.md` has the Chinese version `docs/guard.zh-CN.md`. The check compares:
//!
//! * the code blocks. Comments may differ. A `text` block with Chinese characters is a drawing, and only the figures of a
//!   drawing are compared.
//! * the words in inline code, such as options, configuration fields, commands and file names.
//! * the figures in each row of each table. `10 M` and `1000 万` are equal figures.
//! * the links. Each version links to the other version, and a Chinese page links to Chinese pages where these exist.
//!
//! The check also finds words that the glossary rules out.
//!
//! A Chinese page with the comment `<!-- short form -->` may lack blocks, words, rows and figures of the English page. All
//! other content of the short page must occur in the English page.

mod figures;
mod glossary;
mod page;

use std::fmt::Display;
use std::path::Path;

use crate::links;
use crate::tools::{Outcome, read_text, root};
use page::{Block, Page, Row};

/// The end of the file name of a Chinese page.
const CHINESE: &str = ".zh-CN.md";

/// The page with the terms of the Chinese pages.
const GLOSSARY: &str = "docs/glossary.zh-CN.md";

/// Compares all pages that have a Chinese version.
///
/// # Errors
///
/// Returns a line for each difference, with the file and the line number.
pub fn check() -> Outcome {
    let mut wrong = Vec::new();
    let glossary = read_text(&root().join(GLOSSARY))?;
    for path in links::pages() {
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let Some(stem) = name.strip_suffix(CHINESE) else { continue };
        let english = format!("{stem}.md");
        if !root().join(&english).exists() {
            wrong.push(format!("{name}: the page {english} is missing"));
            continue;
        }
        let text = read_text(&path)?;
        if name != GLOSSARY {
            let found = glossary::wrong_words(&glossary, &text);
            wrong.extend(found.map(|(line, word)| {
                format!(
                    "{name}:{line}: {GLOSSARY} rules out {word}: write the term of the glossary"
                )
            }));
        }
        let chinese = Page::parse(&name, &text)?;
        let english = Page::parse(&english, &read_text(&root().join(&english))?)?;
        wrong.extend(compare(&english, &chinese));
        let has_chinese = |target: &str| {
            let folder = path.parent().unwrap_or(root());
            chinese_name(target).is_some_and(|name| folder.join(name).exists())
        };
        wrong.extend(compare_links(&english, &chinese, has_chinese));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Returns the differences between the two versions of a page, without the links.
fn compare(english: &Page, chinese: &Page) -> Vec<String> {
    let blocks = if chinese.is_short { short_blocks } else { full_blocks };
    let tables = if chinese.is_short { short_tables } else { full_tables };
    let mut wrong: Vec<String> = blocks(english, chinese).into_iter().collect();
    wrong.extend(missing_words(english, chinese));
    if !chinese.is_short {
        wrong.extend(missing_words(chinese, english));
    }
    wrong.extend(tables(english, chinese));
    wrong
}

/// Returns the first difference between the code blocks. The blocks must be equal in number and order.
fn full_blocks(english: &Page, chinese: &Page) -> Option<String> {
    let pairs = english.blocks.iter().zip(&chinese.blocks);
    for (first, second) in pairs {
        if let Some(difference) = different_blocks(first, second) {
            return Some(difference.message(english, chinese));
        }
    }
    different_numbers("code blocks", english, chinese, |page| page.blocks.len())
}

/// Returns the first code block of a short page that is missing in the English page after the previous block.
fn short_blocks(english: &Page, chinese: &Page) -> Option<String> {
    let mut rest = english.blocks.iter();
    let missing = chinese
        .blocks
        .iter()
        .find(|block| !rest.any(|it| different_blocks(it, block).is_none()))?;
    let (name, line) = (&chinese.name, missing.line);
    Some(format!("{name}:{line}: {} has no such code block in this order", english.name))
}

/// Two lines that differ: of the English page and of the Chinese page.
struct Difference {
    lines: [usize; 2],
    texts: [String; 2],
}

impl Difference {
    fn message(&self, english: &Page, chinese: &Page) -> String {
        let ([line, other_line], [text, other_text]) = (self.lines, &self.texts);
        format!(
            "{}:{line}: the code block has `{text}`, but {}:{other_line} has `{other_text}`",
            english.name, chinese.name
        )
    }
}

/// Returns the first difference between two code blocks.
fn different_blocks(english: &Block, chinese: &Block) -> Option<Difference> {
    let at_start = |texts| Some(Difference { lines: [english.line, chinese.line], texts });
    if english.language != chinese.language {
        return at_start([&english.language, &chinese.language].map(Clone::clone));
    }
    if chinese.is_drawing() {
        let figures = [english, chinese].map(|block| list(&block.figures()));
        return if figures[0] == figures[1] { None } else { at_start(figures) };
    }
    let count = english.lines.len().max(chinese.lines.len());
    (0..count).find_map(|index| {
        let (text, other) = (english.code(index), chinese.code(index));
        let lines = [english.line + index + 1, chinese.line + index + 1];
        let texts = || [text, other].map(|it| it.unwrap_or_default().to_owned());
        (text != other).then(|| Difference { lines, texts: texts() })
    })
}

/// Returns a message for each word in inline code of `page` that is missing in `other`.
fn missing_words(other: &Page, page: &Page) -> Vec<String> {
    let missing = page.words.iter().filter(|(word, _)| !other.words.contains_key(*word));
    let message = |(word, line): (&String, &usize)| {
        format!("{}:{line}: `{word}` is missing in inline code of {}", page.name, other.name)
    };
    missing.map(message).collect()
}

/// Returns a message for each row whose figures differ. The tables must be equal in number, order and rows.
fn full_tables(english: &Page, chinese: &Page) -> Vec<String> {
    let mut wrong = Vec::new();
    wrong.extend(different_numbers("tables", english, chinese, |page| page.tables.len()));
    for (table, other) in english.tables.iter().zip(&chinese.tables) {
        if table.len() != other.len() {
            let place = |page: &Page, table: &[Row]| format!("{}:{}", page.name, table[0].line);
            wrong.push(format!(
                "{}: the table has {} rows, but the table at {} has {}",
                place(english, table),
                table.len(),
                place(chinese, other),
                other.len()
            ));
            continue;
        }
        for (row, other) in table.iter().zip(other) {
            if row.figures != other.figures {
                wrong.push(format!(
                    "{}:{}: the row has the figures {}, but {}:{} has {}",
                    english.name,
                    row.line,
                    list(&row.figures),
                    chinese.name,
                    other.line,
                    list(&other.figures)
                ));
            }
        }
    }
    wrong
}

/// Returns a message for each row of a short page that no row of the English page contains.
fn short_tables(english: &Page, chinese: &Page) -> Vec<String> {
    let rows = chinese.tables.iter().flatten();
    let missing =
        rows.filter(|row| !english.tables.iter().flatten().any(|other| other.contains(row)));
    let message = |row: &Row| {
        let (name, line) = (&chinese.name, row.line);
        let (words, figures) = (list(&row.words), list(&row.figures));
        format!("{name}:{line}: {} has no row with {words} and {figures}", english.name)
    };
    missing.map(message).collect()
}

/// Returns a message if the two versions have different numbers of parts, such as tables.
fn different_numbers(
    what: &str,
    english: &Page,
    chinese: &Page,
    count: impl Fn(&Page) -> usize,
) -> Option<String> {
    let (number, other) = (count(english), count(chinese));
    let message = || {
        format!("{}: the page has {number} {what}, but {} has {other}", english.name, chinese.name)
    };
    (number != other).then(message)
}

/// Returns the items with commas, or `nothing`.
fn list(items: &[impl Display]) -> String {
    let items: Vec<_> = items.iter().map(ToString::to_string).collect();
    if items.is_empty() { "nothing".to_owned() } else { items.join(", ") }
}

/// Returns a message for each wrong link between the languages.
fn compare_links(
    english: &Page,
    chinese: &Page,
    has_chinese: impl Fn(&str) -> bool,
) -> Vec<String> {
    let file = |page: &Page| page.name.rsplit('/').next().unwrap_or_default().to_owned();
    let mut wrong = Vec::new();
    for (page, other) in [(english, chinese), (chinese, english)] {
        let target = file(other);
        if !page.links.iter().any(|(link, _)| *link == target) {
            wrong.push(format!("{}: no link to {target}", page.name));
        }
    }
    let own = file(english);
    let to_english = chinese.links.iter().filter(|(link, _)| *link != own && has_chinese(link));
    wrong.extend(to_english.map(|(link, line)| {
        let translated = chinese_name(link).unwrap_or_default();
        format!("{}:{line}: the link leads to {link} instead of {translated}", chinese.name)
    }));
    wrong
}

/// Returns the name of the Chinese version of an English page.
fn chinese_name(target: &str) -> Option<String> {
    let is_page = Path::new(target).extension().is_some_and(|extension| extension == "md");
    let stem = target.strip_suffix(".md").filter(|_| is_page && !target.ends_with(CHINESE))?;
    Some(format!("{stem}{CHINESE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(english: &str, chinese: &str) -> Vec<String> {
        let parse = |name: &str, text: &str| Page::parse(name, text).unwrap();
        compare(&parse("a.md", english), &parse("a.zh-CN.md", chinese))
    }

    #[test]
    fn a_translation_with_the_same_code_words_and_figures_agrees() {
        let english = "Use `--memory` of\n`tamis dedup`.\n\n```sh\nls -l  # all\n```\n\n| a | 10 M |\n| --- | --- |\n| b | 0.5 % |\n";
        let chinese = "`tamis dedup` 的 `--memory`。\n\n```sh\nls -l  # 全部\n```\n\n| 甲 | 1000 万 |\n| --- | --- |\n| 乙 | 0.5 % |\n";
        assert_eq!(pages(english, chinese), [""; 0]);
    }

    #[test]
    fn other_code_is_named_with_both_lines() {
        assert_eq!(
            pages("# A\n\n```sh\ntrue\nls -l\n```\n", "```sh\ntrue\nls\n```\n"),
            ["a.md:5: the code block has `ls -l`, but a.zh-CN.md:3 has `ls`"]
        );
        assert_eq!(
            pages("```sh\nls\n```\n", ""),
            ["a.md: the page has 1 code blocks, but a.zh-CN.md has 0"]
        );
    }

    #[test]
    fn only_the_figures_of_a_drawing_are_compared() {
        assert_eq!(pages("```text\na -> 10 bits\n```\n", "```text\n甲 -> 10 比特\n```\n"), [""; 0]);
        assert_eq!(
            pages("```text\na -> 10, 2\n```\n", "```text\n甲 -> 9\n```\n"),
            ["a.md:1: the code block has `10, 2`, but a.zh-CN.md:1 has `9`"]
        );
        assert_eq!(
            pages("```text\nCREATE USER a\n```\n", "```text\nCREATE USER b\n```\n").len(),
            1
        );
    }

    #[test]
    fn an_option_of_one_language_is_missing_in_the_other() {
        assert_eq!(
            pages("`--a` and\n`--b`\n", "`--a`、`字段`、`--c`\n"),
            [
                "a.zh-CN.md:1: `--c` is missing in inline code of a.md",
                "a.md:2: `--b` is missing in inline code of a.zh-CN.md"
            ]
        );
    }

    #[test]
    fn another_figure_in_a_table_is_named_with_both_lines() {
        assert_eq!(
            pages(
                "| a | b |\n| --- | --- |\n| c | 1.5 |\n",
                "\n| 甲 | 乙 |\n| - | - |\n| 丙 | 2 |\n"
            ),
            ["a.md:3: the row has the figures 1.5, but a.zh-CN.md:4 has 2"]
        );
    }

    #[test]
    fn a_short_page_may_lack_content_but_adds_none() {
        let english =
            "`--a` `--b`\n\n```sh\nls\n```\n\n```sh\ntrue\n```\n\n| `--a` | 1 |\n| `--b` | 2 |\n";
        let short = |text: &str| pages(english, &format!("# 甲\n\n<!-- short form -->\n{text}"));
        assert_eq!(short("`--b`\n\n```sh\ntrue\n```\n\n| `--b` | 2 |\n"), [""; 0]);
        assert_eq!(
            short("```sh\ntrue\n```\n\n```sh\nls\n```\n"),
            ["a.zh-CN.md:8: a.md has no such code block in this order"]
        );
        assert_eq!(short("| `--b` | 1 |\n"), ["a.zh-CN.md:4: a.md has no row with --b and 1"]);
        assert_eq!(short("`--c`\n"), ["a.zh-CN.md:4: `--c` is missing in inline code of a.md"]);
    }

    #[test]
    fn each_version_links_to_the_other_and_chinese_pages_to_chinese_pages() {
        let parse = |name: &str, text: &str| Page::parse(name, text).unwrap();
        let english = parse("docs/a.md", "[中文](a.zh-CN.md)\n");
        let links = |text: &str| {
            let has_chinese = |target: &str| target == "a.md" || target == "b.md";
            compare_links(&english, &parse("docs/a.zh-CN.md", text), has_chinese)
        };
        assert_eq!(links("[English](a.md) [乙](b.zh-CN.md) [丙](c.md)\n"), [""; 0]);
        assert_eq!(
            links("[English](a.md)\n[乙](b.md#c)\n"),
            ["docs/a.zh-CN.md:2: the link leads to b.md instead of b.zh-CN.md"]
        );
        assert_eq!(links("甲\n"), ["docs/a.zh-CN.md: no link to a.md"]);
    }
}
