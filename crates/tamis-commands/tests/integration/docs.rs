//! `docs/commands.md` is generated from the table:
//! `TAMIS_WRITE_DOCS=1 cargo test -p tamis-commands docs::` writes the page.

use std::fmt::Write as _;

use tamis_commands::{COMMANDS, Category, Command, Settings};

/// Tests whether a command is in a group. The first group that matches lists the command.
type IsIn = fn(&Command) -> bool;

fn page() -> String {
    let mut page = String::from(
        "# Commands\n\n\
         After reading this page you can call every command of `tamis serve`, and set how new \
         filters are made.\n\n\
         The page is generated from the table of commands; `redis-cli HELP` and `COMMAND DOCS` \
         show the same.\n\
         Words in brackets may be left out. `BF.*` and `CF.*` answer exactly as RedisBloom \
         does.\n",
    );
    let groups: [(&str, IsIn); 8] = [
        ("Ours", |it| it.name.starts_with("TM.")),
        ("Bloom filters", |it| it.name.starts_with("BF.")),
        ("Cuckoo filters", |it| it.name.starts_with("CF.")),
        ("Bitmaps and texts", |it| {
            it.categories.contains(&Category::Bitmap) || it.categories.contains(&Category::String)
        }),
        ("Keys", |it| it.categories.contains(&Category::Keyspace)),
        ("Transactions", |it| it.categories.contains(&Category::Transaction)),
        ("The connection", |it| it.categories.contains(&Category::Connection)),
        ("The server", |_| true),
    ];
    let mut rest: Vec<&Command> = COMMANDS.iter().collect();
    for (title, is_in) in groups {
        let group: Vec<&Command> = rest.extract_if(.., |it| is_in(it)).collect();
        if group.is_empty() {
            continue;
        }
        write!(page, "\n## {title}\n\n| command | what it does | cost |\n| --- | --- | --- |\n")
            .unwrap();
        for Command { name, syntax, summary, complexity, .. } in group {
            let call = format!("{name} {syntax}").trim_end().replace('|', "\\|");
            writeln!(page, "| `{call}` | {summary} | {complexity} |").unwrap();
        }
    }
    page += "\n## Settings of new filters\n\n| option | default | meaning |\n| --- | --- | --- |\n";
    let settings = Settings::default();
    for setting in Settings::ALL {
        let value = settings.get(setting.name).unwrap();
        writeln!(page, "| `{}` | `{value}` | {} |", setting.name, setting.summary).unwrap();
    }
    page
}

#[test]
fn the_page_of_commands_is_that_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    let page = page();
    if std::env::var_os("TAMIS_WRITE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/commands.md is not that of the table: run this test with TAMIS_WRITE_DOCS=1"
    );
}
