//! `cargo xtask lines`: prints the number of lines of code and of tests for each crate. Comments and blank lines do not
//! count.

use std::path::Path;

use crate::tools::{Outcome, entries, root};

/// The line counts of a file, a crate or the project.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    code: u64,
    tests: u64,
    files: u64,
}

impl Lines {
    fn add(&mut self, other: Self) {
        self.code += other.code;
        self.tests += other.tests;
        self.files += other.files;
    }
}

/// Prints a row for each crate, and a row with the sum.
pub fn run() -> Outcome {
    let mut rows = Vec::new();
    for name in ["bench", "fuzz", "xtask"] {
        rows.push((name.to_owned(), of_folder(&root().join(name), false)?));
    }
    for entry in entries(&root().join("crates"))? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        rows.push((name, of_folder(&entry, false)?));
    }
    rows.sort_by(|one, other| one.0.cmp(&other.0));
    let mut sum = Lines::default();
    rows.iter().for_each(|(_, lines)| sum.add(*lines));
    rows.push(("all".to_owned(), sum));
    println!("{:20}  {:>8}  {:>8}  {:>6}", "crate", "code", "tests", "files");
    for (name, Lines { code, tests, files }) in rows {
        println!("{name:20}  {code:8}  {tests:8}  {files:6}");
    }
    Ok(())
}

/// Counts the lines of all files below a folder. Pass true for `is_test` if the folder contains only tests.
fn of_folder(folder: &Path, is_test: bool) -> Result<Lines, String> {
    let mut sum = Lines::default();
    for path in entries(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_test = is_test || matches!(&*name, "tests" | "tests.rs" | "examples");
        if path.is_dir() && name != "target" {
            sum.add(of_folder(&path, is_test)?);
        } else if name.ends_with(".rs") {
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            sum.add(of_text(&text, is_test));
        }
    }
    Ok(sum)
}

/// Counts the lines of a file. Pass true for `is_test` if the file contains only tests.
fn of_text(text: &str, is_test: bool) -> Lines {
    let mut lines = Lines { files: 1, ..Lines::default() };
    // The indentation of the current test module; `None` outside a test module.
    let (mut module, mut is_marked) = (None, false);
    for line in text.lines() {
        let code = line.trim_start();
        if code.is_empty() || code.starts_with("//") {
            continue;
        }
        let indent = line.len() - code.len();
        let item = code.strip_prefix("pub(").and_then(|rest| rest.split_once(") "));
        let item = item.map_or(code, |(_, item)| item);
        if is_marked && item.starts_with("mod ") && code.ends_with('{') {
            module = Some(indent);
        }
        is_marked = code == "#[cfg(test)]" || is_marked && code.starts_with("#[");
        if is_test || module.is_some() || is_marked {
            lines.tests += 1;
        } else {
            lines.code += 1;
        }
        if module == Some(indent) && code.starts_with('}') {
            module = None;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_blank_lines_do_not_count() {
        let text = "//! Doc.\n\nuse a;\n\n/// Doc.\nfn f() {\n    // Why.\n    g();\n}\n";
        assert_eq!(of_text(text, false), Lines { code: 4, tests: 0, files: 1 });
        assert_eq!(of_text(text, true), Lines { code: 0, tests: 4, files: 1 });
    }

    #[test]
    fn a_test_module_is_a_test_up_to_its_end() {
        let text = "f();\n#[cfg(test)]\nmod tests {\n    fn t() {\n    }\n}\ng();\n";
        assert_eq!(of_text(text, false), Lines { code: 2, tests: 5, files: 1 });
        let visible = text.replace("mod tests", "pub(super) mod tests");
        assert_eq!(of_text(&visible, false), of_text(text, false));
        let elsewhere = "#[cfg(test)]\nmod tests;\nf();\n";
        assert_eq!(of_text(elsewhere, false), Lines { code: 2, tests: 1, files: 1 });
    }
}
