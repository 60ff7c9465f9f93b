//! Reports mistakes on the command line in one line, like every other failure.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap::builder::ValueHint;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::Cli;
use crate::exit::{Failure, report};

/// Tests whether `error` is a mistake of the user and not a request for help.
pub fn is_mistake(error: &clap::Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// Prints the requested text, such as help, and returns the exit status. If the user gave no
/// command, the help goes to stderr and the status reports a mistake.
pub fn show(help: &clap::Error) -> ExitCode {
    match help.print().and_then(|()| std::io::stdout().flush()) {
        Ok(()) => ExitCode::from(help.exit_code() as u8),
        Err(error) => report(Err(Failure::io("standard output", &error))),
    }
}

/// Returns one line with the mistake, a tip of clap if available, and a reference to the
/// help. `arguments` are the arguments after the program name.
pub fn line(error: &clap::Error, arguments: &[OsString]) -> String {
    let words = arguments.iter().filter_map(|word| word.to_str());
    let all_words = words.clone();
    let program = Cli::command();
    let (command, name) = command(&program, words.clone());
    if error.kind() == ErrorKind::InvalidUtf8
        && let Some(source) =
            undecodable_option(command, arguments).or_else(|| undecodable_variable(command))
    {
        return format!("{source}: its value is not valid UTF-8");
    }
    let mut text = error.to_string();
    if let Some((option, variable)) = source_variable(error, command, words) {
        text = text.replace(&format!("'{option}'"), &format!("'{variable}'"));
    }
    if error.kind() == ErrorKind::ValueValidation {
        // The parsers of Tamis return complete messages, so the other lines of clap's message are
        // dropped.
        return strip(text.lines().next().unwrap_or_default()).into();
    }
    if let Some(ContextValue::Number(least)) = error.get(ContextKind::MinValues) {
        return format!("at least {least} files are required; see '{name} --help'");
    }
    if error.kind() == ErrorKind::InvalidValue && all_words.clone().any(str::is_empty) {
        return format!("'' is an empty word, not a file or a value; see '{name} --help'");
    }
    if error.kind() == ErrorKind::UnknownArgument {
        let argument = error.get(ContextKind::InvalidArg).map(ToString::to_string);
        let argument = argument.unwrap_or_default();
        let habit = HABITS
            .iter()
            .find(|(of, flag, _)| of.contains(&command.get_name()) && argument == *flag);
        if let Some((_, flag, instead)) = habit {
            return format!(
                "'{flag}' is no option of '{name}': use {instead}; see '{name} --help'"
            );
        }
    }
    if error.kind() == ErrorKind::MissingRequiredArgument
        && error.get(ContextKind::InvalidArg).is_some_and(|it| it.to_string().contains("--field"))
    {
        let repeated = match command.get_name() {
            "dedup" => " (to print only repeated lines, use --repeated)",
            _ => "",
        };
        return format!(
            "-d sets the delimiter of fields: add -k N or --csv{repeated}; see '{name} --help'"
        );
    }
    let said: Vec<String> = text
        .split("\n\n")
        .filter(|text| !text.starts_with("Usage: ") && !text.starts_with("For more information"))
        // Removes the tip of clap to pass a mistyped option as a file name.
        .filter(|text| !text.contains("as a value, use"))
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    format!("{}; see '{name} --help'", strip(&said.join("; ")))
}

/// Options of `uniq`, `sort` and CSV programs, with the equivalent options of `tamis`. Each row has
/// the commands of `tamis`, the foreign option and the equivalent option of `tamis`.
const HABITS: [(&[&str], &str, &str); 14] = [
    (&["dedup"], "-u", "--unique, the lines that occur once"),
    (&["dedup"], "-D", "--repeated=all, all occurrences after the first"),
    (RECORDS, "-z", "-0, records that end with NUL"),
    (&["dedup"], "-f", "-k N, the field to compare"),
    (&["dedup"], "-n", "'tamis ints', which compares numbers"),
    (&["dedup"], "--skip-fields", "-k N, the field to compare"),
    (&["dedup"], "--group", "--repeated=all, all occurrences after the first"),
    (&["dedup"], "-s", "-k N with -d DELIM, the field to compare"),
    (&["dedup"], "-w", "-k N with -d DELIM, the field to compare"),
    (RECORDS, "-t", "-d DELIM, the delimiter of fields"),
    (RECORDS, "--zero-terminated", "-0, records that end with NUL"),
    (RECORDS, "--header", "--csv, which reads the first row of each file as its header"),
    (RECORDS, "--headers", "--csv, which reads the first row of each file as its header"),
    (RECORDS, "--no-headers", "--csv --no-header"),
];

/// The commands that read records.
const RECORDS: &[&str] = &["dedup", "build", "add", "remove", "check", "convert"];

/// Returns the command that `words` name, and the full name of the command. Skips flags before the
/// command, because none of these flags takes a value.
fn command<'a, 'p>(
    program: &'p clap::Command,
    words: impl Iterator<Item = &'a str>,
) -> (&'p clap::Command, String) {
    let (mut at, mut names) = (program, vec![program.get_name()]);
    for word in words.filter(|word| !word.starts_with('-')) {
        let Some(command) = at.find_subcommand(word) else { break };
        names.push(command.get_name());
        at = command;
    }
    (at, names.join(" "))
}

/// Returns the option with the invalid value, in the notation of the error, and its environment
/// variable. Returns `None` if `words` contain the option, because the value of this option comes
/// from the command line.
fn source_variable<'a, 'p>(
    error: &clap::Error,
    command: &'p clap::Command,
    mut words: impl Iterator<Item = &'a str>,
) -> Option<(String, &'p str)> {
    let option = error.get(ContextKind::InvalidArg)?.to_string();
    let flag = option.split([' ', '=', '[']).next()?;
    let mut args = command.get_arguments();
    let arg = args.find(|arg| arg.get_long().is_some_and(|long| flag == format!("--{long}")))?;
    let variable = arg.get_env()?.to_str()?;
    let is_flag = |word: &str| word.split_once('=').map_or(word, |(name, _)| name) == flag;
    (!words.any(is_flag)).then_some((option, variable))
}

/// Returns an option that takes text, but whose value in `arguments` is not UTF-8. Options that take
/// paths accept any bytes.
fn undecodable_option(command: &clap::Command, arguments: &[OsString]) -> Option<String> {
    let option = |at: usize| {
        let word = arguments[at].to_string_lossy();
        match word.split_once('=') {
            Some((option, _)) if option.starts_with('-') => Some(option.to_owned()),
            _ => arguments[..at].last()?.to_str().map(str::to_owned),
        }
    };
    let takes_text = |option: &str| {
        command.get_arguments().any(|arg| {
            let long = arg.get_long().map(|long| format!("--{long}"));
            let short = arg.get_short().map(|short| format!("-{short}"));
            arg.get_value_hint() != ValueHint::AnyPath
                && [long, short].iter().flatten().any(|name| name == option)
        })
    };
    let undecodable = (0..arguments.len()).filter(|&at| arguments[at].to_str().is_none());
    undecodable.filter_map(option).find(|option| takes_text(option))
}

/// Returns an environment variable whose option takes text, but whose value is not UTF-8. Options
/// that take paths accept any bytes.
fn undecodable_variable(command: &clap::Command) -> Option<String> {
    let mut args = command.get_arguments().filter(|arg| arg.get_value_hint() != ValueHint::AnyPath);
    args.find_map(|arg| {
        let variable = arg.get_env()?.to_str()?;
        let is_text = std::env::var_os(variable).is_none_or(|value| value.to_str().is_some());
        (!is_text).then(|| variable.to_owned())
    })
}

fn strip(text: &str) -> &str {
    text.strip_prefix("error: ").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn arguments(line_of_words: &str) -> Vec<OsString> {
        line_of_words.split(' ').skip(1).map(OsString::from).collect()
    }

    fn message(line_of_words: &str) -> String {
        match Cli::try_parse_from(line_of_words.split(' ')) {
            Ok(_) => panic!("{line_of_words} is no mistake"),
            Err(error) => line(&error, &arguments(line_of_words)),
        }
    }

    #[test]
    fn mistakes_are_one_line_that_names_the_way_out() {
        for (words, expected) in [
            ("tamis nothing", "unrecognized subcommand 'nothing'; see 'tamis --help'"),
            (
                "tamis build file",
                "the following required arguments were not provided: --output <FILE|URL>; see 'tamis \
                 build --help'",
            ),
            (
                "tamis dedup --exact --approx 0.1",
                "the argument '--exact' cannot be used with '--approx <RATE>'; see 'tamis dedup \
                 --help'",
            ),
            (
                "tamis dedup --stats=no",
                "invalid value 'no' for '--stats[=<FORM>]' [possible values: text, json]; see \
                 'tamis dedup --help'",
            ),
            (
                "tamis --quiet dedup --stats=no",
                "invalid value 'no' for '--stats[=<FORM>]' [possible values: text, json]; see \
                 'tamis dedup --help'",
            ),
            ("tamis ints and a", "at least 2 files are required; see 'tamis ints and --help'"),
            (
                "tamis --no-progress ints --quiet uniq --colour",
                "unexpected argument '--colour' found; see 'tamis ints uniq --help'",
            ),
            (
                "tamis dedup -u f",
                "'-u' is no option of 'tamis dedup': use --unique, the lines that occur once; see 'tamis dedup --help'",
            ),
            (
                "tamis dedup --window 1h --slices 0",
                "invalid value '0' for '--slices <N>': '0' is not a number of slices: write 1 to 255",
            ),
            (
                "tamis ints uniq --memory no",
                "invalid value 'no' for '--memory <SIZE>': 'no' is not a size: write bytes, or \
                 64K, 512M, 2G, 1T",
            ),
        ] {
            assert_eq!(message(words), expected, "{words}");
        }
        assert!(
            message("tamis ints uniq --fromat u32").contains("similar argument exists: '--format'")
        );
    }
}
