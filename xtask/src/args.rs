//! Parses the options of a task. The options are pairs `--name value`.

/// The arguments after the name of a task.
pub struct Args<'a> {
    words: Vec<&'a str>,
}

impl<'a> Args<'a> {
    /// Creates a list from the arguments of a task.
    pub fn new(words: &[&'a str]) -> Self {
        Self { words: words.to_vec() }
    }

    /// Removes the option `name` and returns the value of the option.
    pub fn value(&mut self, name: &str) -> Result<Option<&'a str>, String> {
        let Some(at) = self.words.iter().position(|&word| word == name) else { return Ok(None) };
        if at + 1 == self.words.len() {
            return Err(format!("{name} wants a value"));
        }
        self.words.remove(at);
        Ok(Some(self.words.remove(at)))
    }

    /// Removes the option `name` and returns the value as a number. The value may contain `_`
    /// between digits.
    pub fn number(&mut self, name: &str) -> Result<Option<u64>, String> {
        let Some(word) = self.value(name)? else { return Ok(None) };
        let number = word.replace('_', "").parse();
        number.map(Some).map_err(|_| format!("{name} wants a whole number, not {word}"))
    }

    /// Returns an error if arguments remain after all options are removed.
    pub fn end(&self) -> Result<(), String> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(format!("unknown argument {word}: see `cargo xtask`")),
        }
    }
}

/// Tests whether the arguments of a task are the option `--check`.
///
/// # Errors
///
/// Returns a message if the arguments are neither empty nor `--check` alone.
pub fn has_check(words: &[&str]) -> Result<bool, String> {
    match words {
        [] => Ok(false),
        ["--check"] => Ok(true),
        ["--check", word, ..] | [word, ..] => {
            Err(format!("unknown argument {word}: see `cargo xtask`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_in_any_order_and_the_rest_refused() {
        let mut args = Args::new(&["--lines", "1_000", "-o", "x", "what"]);
        assert_eq!(args.value("-o"), Ok(Some("x")));
        assert_eq!(args.number("--lines"), Ok(Some(1000)));
        assert!(args.end().unwrap_err().contains("what"));
        assert!(Args::new(&["-o"]).value("-o").is_err());
    }

    #[test]
    fn only_the_option_check_is_known() {
        assert_eq!(has_check(&[]), Ok(false));
        assert_eq!(has_check(&["--check"]), Ok(true));
        assert!(has_check(&["--check", "x"]).unwrap_err().contains("argument x"));
    }
}
