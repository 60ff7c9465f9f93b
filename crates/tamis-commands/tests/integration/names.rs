//! Code reads the properties of a command from its row and never compares command names.

use std::fs;
use std::path::{Path, PathBuf};

use tamis_commands::COMMANDS;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// Returns whether a line decides something by the name of a command.
fn compares_a_name(line: &str) -> bool {
    let is_pattern = |name: &str| {
        line.match_indices(&format!("\"{name}\"")).any(|(at, text)| {
            let before = line[..at].trim_end();
            let behind = line[at + text.len()..].trim_start();
            // A byte string is a word of a client, which may be an option of the same name.
            let is_text = !before.ends_with('b');
            is_text && (behind.starts_with('|') || behind.starts_with("=>"))
                || before.ends_with("==")
                || before.ends_with("!=")
        })
    };
    ["command.name ==", "command.name !=", "match command.name", ".contains(&command.name)"]
        .iter()
        .any(|code| line.contains(code))
        || COMMANDS.iter().any(|command| is_pattern(command.name))
}

#[test]
fn no_code_outside_the_table_compares_a_command_name() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for name in ["tamis-commands", "tamis-server", "tamis-resp"] {
        sources(&crates.join(name).join("src"), &mut files);
    }
    assert!(files.len() > 100, "{}", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().enumerate().filter(|(_, line)| compares_a_name(line));
        wrong.extend(lines.map(|(i, line)| format!("{}:{}: {line}", file.display(), i + 1)));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_search_finds_comparisons_with_names() {
    for line in [
        r#""PING" => client::ping(words),"#,
        r#""DEL" | "UNLINK" => 1,"#,
        r#"if name == "SAVE" {"#,
        "if command.name != other {",
        "match command.name {",
    ] {
        assert!(compares_a_name(line), "{line}");
    }
    for line in [r#"(b"GET", []) => 1,"#, r#"find(b"TM.INFO")"#, r#"vec![&b"DEL"[..], key]"#] {
        assert!(!compares_a_name(line), "{line}");
    }
}
