//! Tests that the extraction of a key from a record does not panic with any options. Also tests
//! that the same record always has the same key.

use clap::Parser as _;
use tamis_cli::key::KeyArgs;

#[derive(clap::Parser)]
struct Cli {
    #[command(flatten)]
    key: KeyArgs,
    /// The declaration of `--csv` excludes `--null`, so clap requires an option with this name.
    #[arg(long)]
    null: bool,
}

pub(crate) fn run(data: (u8, &str, u8, &[u8])) {
    let (choice, word, number, record) = data;
    // An argument of a process cannot contain a NUL byte.
    let word = word.replace('\0', "");
    let number = number.to_string();
    let mut words = vec!["key".to_owned()];
    match choice % 4 {
        0 => {}
        1 => words.extend([format!("-d{word}"), format!("-k{number}")]),
        2 => words.push(format!("--json=/{word}")),
        _ => words.push(format!("-k{number}")),
    }
    if choice & 4 != 0 {
        words.push("--url".to_owned());
    }
    let Ok(cli) = Cli::try_parse_from(words) else { return };
    assert!(!cli.null, "no word sets it");
    let rule = cli.key.rule();
    let (mut one, mut other) = (Vec::new(), b"left over from another record".to_vec());
    let key = rule.of(record, &mut one);
    assert_eq!(key, rule.of(record, &mut other));
    if rule.is_whole() {
        assert_eq!(key, Some(record));
    }
}
