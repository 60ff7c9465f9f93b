//! The commands of a page, and the output that the page shows for them.

/// A page of the documentation.
#[derive(Debug, Default, PartialEq)]
pub struct Page {
    pub name: String,
    pub steps: Vec<Step>,
    /// The lines of the blocks that the test skips, with the reasons.
    pub not_run: Vec<(usize, String)>,
}

/// A command, or the commands of a `setup` comment.
#[derive(Debug, Default, PartialEq)]
pub struct Step {
    pub line: usize,
    pub command: String,
    /// The lines of the output that the page shows; `None` where the output does not matter.
    pub expected: Option<Vec<String>>,
    /// First words of lines that vary from run to run.
    pub varies: Vec<String>,
}

/// The comments before a block.
#[derive(Default)]
struct Marks {
    line: usize,
    setup: Option<String>,
    not_run: Option<String>,
    varies: Vec<String>,
    /// The name of the file to which the test writes the block.
    file: Option<String>,
}

/// The languages of blocks without commands. The test only writes a block with the comment `file` to its file.
const WITHOUT_COMMANDS: [&str; 10] =
    ["text", "toml", "yaml", "rust", "python", "java", "nginx", "haproxy", "lua", "caddyfile"];

impl Page {
    /// Parses a page of Markdown.
    ///
    /// # Errors
    ///
    /// A message with the line number for a block in an unknown language, an unknown comment, a
    /// comment without a block, or a block without an end.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut page = Self { name: name.into(), ..Self::default() };
        let mut marks = Marks::default();
        let mut lines = (1..).zip(text.lines());
        while let Some((line, text)) = lines.next() {
            let wrong = |what: &str| Err(format!("{name}:{line}: {what}"));
            if let Some(comment) = text.strip_prefix("<!--") {
                let mut comment = comment.to_owned();
                while !comment.contains("-->") {
                    let Some((_, more)) = lines.next() else {
                        return wrong("a comment without an end");
                    };
                    comment += "\n";
                    comment += more;
                }
                let comment = comment.split("-->").next().unwrap_or_default().trim();
                marks.line = line;
                match comment.split_once(':').map(|(key, value)| (key, value.trim())) {
                    Some(("setup", commands)) => marks.setup = Some(commands.into()),
                    Some(("file", name)) => marks.file = Some(name.into()),
                    Some(("not run", reason)) => marks.not_run = Some(reason.into()),
                    Some(("varies", words)) => {
                        marks.varies = words.split_whitespace().map(str::to_owned).collect();
                    }
                    // `cargo xtask languages` reads this mark of the page.
                    None if comment == "short form" => marks = Marks::default(),
                    _ => return wrong("an unknown comment"),
                }
            } else if let Some(language) = text.strip_prefix("```") {
                let mut block = Vec::new();
                loop {
                    match lines.next() {
                        Some((_, "```")) => break,
                        Some(numbered) => block.push(numbered),
                        None => return wrong("a block without an end"),
                    }
                }
                let marks = std::mem::take(&mut marks);
                if let Err(what) = page.add(line, language, &block, marks) {
                    return wrong(&what);
                }
            } else if marks.line > 0 && !text.trim().is_empty() {
                return Err(format!("{name}:{}: a comment without a block below it", marks.line));
            }
        }
        Ok(page)
    }

    fn add(
        &mut self,
        line: usize,
        language: &str,
        block: &[(usize, &str)],
        marks: Marks,
    ) -> Result<(), String> {
        let mut steps = match language {
            "console" => console(block)?,
            "sh" => sh(block),
            language if WITHOUT_COMMANDS.contains(&language) && marks.line == 0 => return Ok(()),
            language if WITHOUT_COMMANDS.contains(&language) => {
                let Some(file) = &marks.file else {
                    return Err("a comment above a block without commands".into());
                };
                let lines: String = block.iter().map(|(_, text)| format!("{text}\n")).collect();
                let command = format!("cat > {file} <<'END OF FILE'\n{lines}END OF FILE");
                vec![Step { line, command, ..Step::default() }]
            }
            _ => return Err(format!("no test knows blocks of '{language}'")),
        };
        if let Some(command) = marks.setup {
            self.steps.push(Step { line: marks.line, command, ..Step::default() });
        }
        match marks.not_run {
            Some(reason) => self.not_run.push((line, reason)),
            None => {
                for step in &mut steps {
                    step.varies.clone_from(&marks.varies);
                }
                self.steps.extend(steps);
            }
        }
        Ok(())
    }
}

/// Parses commands after `$ `, each followed by its output.
fn console(block: &[(usize, &str)]) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for &(line, text) in block {
        if let Some(command) = text.strip_prefix("$ ") {
            let (command, expected) = (command.to_owned(), Some(Vec::new()));
            steps.push(Step { line, command, expected, varies: Vec::new() });
        } else {
            let step = steps.last_mut().ok_or("the first line has no '$ '")?;
            step.expected.get_or_insert_default().push(text.to_owned());
        }
    }
    Ok(steps)
}

/// Parses commands, one per line.
fn sh(block: &[(usize, &str)]) -> Vec<Step> {
    let commands = block.iter().filter(|(_, text)| !text.trim().is_empty());
    commands.map(|&(line, text)| Step { line, command: text.into(), ..Step::default() }).collect()
}

impl Step {
    /// Tests whether the page shows the output of a command.
    pub fn shows(&self, printed: &str) -> bool {
        let Some(expected) = &self.expected else { return true };
        let printed: Vec<&str> = printed.lines().collect();
        expected.len() == printed.len()
            && expected.iter().zip(printed).all(|(shown, line)| self.line_shows(shown, line))
    }

    fn line_shows(&self, shown: &str, line: &str) -> bool {
        let word = |text: &str| text.split_whitespace().next().unwrap_or_default().to_owned();
        if self.varies.contains(&word(shown)) {
            return word(line) == word(shown);
        }
        let mut parts = shown.trim_end().split("...");
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = line.trim_end().strip_prefix(first) else { return false };
        let mut open = false;
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
            open = part.is_empty();
        }
        open || rest.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(expected: &str) -> Step {
        Step {
            expected: Some(expected.lines().map(str::to_owned).collect()),
            varies: vec!["time".into()],
            ..Step::default()
        }
    }

    #[test]
    fn a_block_gives_its_commands_in_order() {
        let text = "# A\n\n<!-- setup:\nseq 3 > a\n-->\n```console\n$ cat a\n1\n2\n3\n$ true\n```\n\n<!-- not run: slow -->\n```sh\nsleep 9\n```\n";
        let page = Page::parse("a.md", text).unwrap();
        let commands: Vec<_> = page.steps.iter().map(|step| &*step.command).collect();
        assert_eq!(commands, ["seq 3 > a", "cat a", "true"]);
        assert_eq!(page.not_run, [(15, "slow".into())]);
        assert!(page.steps[1].shows("1\n2\n3\n") && !page.steps[1].shows("1\n2\n"));
    }

    #[test]
    fn the_mark_of_a_short_page_needs_no_block() {
        let page = Page::parse("a.md", "# A\n\n<!-- short form -->\n\ntext\n").unwrap();
        assert_eq!((page.steps, page.not_run), (vec![], vec![]));
    }

    #[test]
    fn what_no_test_runs_is_named_by_its_line() {
        for (text, error) in [
            ("```bash\nls\n```\n", "a.md:1: no test knows blocks of 'bash'"),
            ("```\nls\n```\n", "a.md:1: no test knows blocks of ''"),
            ("\n```sh\nls\n", "a.md:2: a block without an end"),
            ("<!-- skip -->\n```sh\nls\n```\n", "a.md:1: an unknown comment"),
            ("<!-- not run: slow -->\ntext\n", "a.md:1: a comment without a block below it"),
            ("```console\nls\n```\n", "a.md:1: the first line has no '$ '"),
        ] {
            assert_eq!(Page::parse("a.md", text).unwrap_err(), error);
        }
    }

    #[test]
    fn dots_stand_for_any_text() {
        assert!(step("a ... b").shows("a 1 2 b"));
        assert!(step("a ...").shows("a 1 2"));
        assert!(!step("a ... b").shows("a 1 2 c"));
        assert!(!step("a").shows("a 1"));
        assert!(step("time 1 s").shows("time 2 s\n") && !step("time 1 s").shows("times 1 s\n"));
    }
}
