//! `cargo xtask sentences`: draws random sentences from the comments of a crate or from the pages. A reader then judges
//! each sentence: could a back-end engineer, whose first language is not English, act on the sentence after one
//! reading?

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::tools::{Outcome, root};

/// Prints each sentence with the file name and the line number. The first argument is a folder, such as
/// `crates/tamis-guard` or `docs`.
pub fn run(args: &[&str]) -> Outcome {
    let [folder, options @ ..] = args else {
        return Err("name a folder, such as crates/tamis-guard".to_owned());
    };
    let mut options = Args::new(options);
    let count = options.number("--count")?.unwrap_or(200);
    let seed = options.number("--seed")?.unwrap_or(1);
    options.end()?;
    let mut files = Vec::new();
    find(&root().join(folder), &mut files)?;
    let mut all = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
        let is_page = path.extension().is_some_and(|ending| ending == "md");
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        let blocks = blocks(&text, is_page);
        all.extend(blocks.iter().flat_map(|(line, block)| {
            sentences(block).map(|text| format!("{name}:{line}: {text}")).collect::<Vec<_>>()
        }));
    }
    for line in draw(all, count as usize, seed) {
        println!("{line}");
    }
    Ok(())
}

/// Appends the paths of all sources and pages below a folder, sorted by name.
fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(fail)?;
    let entries = entries.map(|entry| entry.map(|it| it.path())).collect::<Result<Vec<_>, _>>();
    let mut entries = entries.map_err(fail)?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(&*name, "target" | "tests" | "node_modules") {
            find(&path, files)?;
        } else if name.ends_with(".rs") || name.ends_with(".md") && !name.contains("zh-CN") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the paragraphs of a page, or of the comments of a source file. Each paragraph has the number of its first
/// line. Skips code, tables and headings.
fn blocks(text: &str, is_page: bool) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let (mut is_open, mut is_code) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let comment = ["/// ", "//! ", "// "].iter().find_map(|mark| line.strip_prefix(mark));
        let prose = if is_page { Some(line) } else { comment }.unwrap_or_default().trim();
        let is_fence = prose.starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence || prose.is_empty() || prose.starts_with(['|', '#', '<', '=']) {
            is_open = false;
            continue;
        }
        let item = prose.strip_prefix("* ").or_else(|| prose.strip_prefix("- "));
        match blocks.last_mut().filter(|_| is_open && item.is_none()) {
            Some((_, block)) => *block = format!("{block} {prose}"),
            None => blocks.push((number + 1, item.unwrap_or(prose).to_owned())),
        }
        is_open = true;
    }
    blocks
}

/// Returns the sentences of a paragraph. Skips sentences with fewer than four words.
fn sentences(block: &str) -> impl Iterator<Item = &str> {
    let ends = block.match_indices(". ").map(|(at, _)| at + 1).chain([block.len()]);
    let mut start = 0;
    ends.map(move |end| block[std::mem::replace(&mut start, end)..end].trim())
        .filter(|sentence| sentence.split(' ').count() >= 4)
}

/// Returns `count` random lines without repetition. Shuffles the lines with random numbers from SplitMix64, starting
/// from `seed`.
fn draw(mut lines: Vec<String>, count: usize, mut seed: u64) -> Vec<String> {
    for at in (1..lines.len()).rev() {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        lines.swap(at, ((mixed ^ mixed >> 31) % (at as u64 + 1)) as usize);
    }
    lines.truncate(count);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_of_a_comment_becomes_its_sentences() {
        let text = "/// One two three four. Five\n/// six seven eight.\n///\n/// ```\n/// code a b c d\n/// ```\nfn f() {}\n";
        let blocks = blocks(text, false);
        assert_eq!(blocks, [(1, "One two three four. Five six seven eight.".to_owned())]);
        let sentences: Vec<_> = sentences(&blocks[0].1).collect();
        assert_eq!(sentences, ["One two three four.", "Five six seven eight."]);
    }

    #[test]
    fn a_line_that_starts_with_code_belongs_to_its_sentence() {
        let text = "/// Reads the option\n/// `--seed` of the command.\n";
        assert_eq!(
            super::blocks(text, false),
            [(1, "Reads the option `--seed` of the command.".to_owned())]
        );
    }

    #[test]
    fn the_same_seed_draws_the_same_lines() {
        let lines = || (0..100).map(|number| number.to_string()).collect();
        assert_eq!(draw(lines(), 5, 1), draw(lines(), 5, 1));
        assert_ne!(draw(lines(), 5, 1), draw(lines(), 5, 2));
        assert_eq!(draw(lines(), 200, 1).len(), 100);
    }
}
