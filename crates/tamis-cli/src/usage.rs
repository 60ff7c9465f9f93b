//! Mistakes on the command line, told in one line like every other failure.

use clap::error::ErrorKind;

/// Tells whether `error` is a mistake, and not a call for help.
pub fn is_mistake(error: &clap::Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// Returns what is wrong, any tip, and where to read on.
pub fn line(error: &clap::Error) -> String {
    let text = error.to_string();
    if error.kind() == ErrorKind::ValueValidation {
        // Our own parsers of values say all there is to say.
        return strip(text.lines().next().unwrap_or_default()).into();
    }
    let (mut said, mut usage) = (Vec::new(), "tamis");
    for paragraph in text.split("\n\n") {
        if let Some(line) = paragraph.trim().strip_prefix("Usage: ") {
            usage = line;
        } else if !paragraph.starts_with("For more information") {
            said.push(paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    // The usage begins with the command; files and options follow.
    let command = usage
        .split_whitespace()
        .take_while(|word| word.starts_with(|first: char| first.is_ascii_lowercase()))
        .collect::<Vec<_>>()
        .join(" ");
    format!("{}; see '{command} --help'", strip(&said.join("; ")))
}

fn strip(text: &str) -> &str {
    text.strip_prefix("error: ").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::Cli;

    fn told(line_of_words: &str) -> String {
        match Cli::try_parse_from(line_of_words.split(' ')) {
            Ok(_) => panic!("{line_of_words} is no mistake"),
            Err(error) => line(&error),
        }
    }

    #[test]
    fn mistakes_are_one_line_that_names_the_way_out() {
        for (words, expected) in [
            ("tamis nothing", "unrecognized subcommand 'nothing'; see 'tamis --help'"),
            (
                "tamis build file",
                "the following required arguments were not provided: --output <FILE>; see 'tamis \
                 build --help'",
            ),
            (
                "tamis dedup --exact --approx 0.1",
                "the argument '--exact' cannot be used with '--approx <RATE>'; see 'tamis dedup --help'",
            ),
            (
                "tamis dedup --stats=no",
                "invalid value 'no' for '--stats[=<FORM>]' [possible values: text, json]; see 'tamis \
                 --help'",
            ),
            (
                "tamis ints uniq --memory no",
                "invalid value 'no' for '--memory <SIZE>': 'no' is not a size: write bytes, or 64K, \
                 512M, 2G, 1T",
            ),
        ] {
            assert_eq!(told(words), expected, "{words}");
        }
        assert!(
            told("tamis ints uniq --fromat u32").contains("similar argument exists: '--format'")
        );
    }
}
