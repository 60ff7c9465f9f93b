//! Runs the commands of README.md, README.zh-CN.md and the pages in `docs` in order, and compares
//! their output with the pages.
//!
//! The language of a code block decides how the test treats it:
//!
//! * `console`: a command after `$ `, and below it everything that the command prints on stdout and
//!   stderr;
//! * `sh`: commands, one per line, whose output is not compared;
//! * `text`, `toml`, `yaml`, `rust`, `python`, `java`, `nginx`, `haproxy`, `lua` or `caddyfile`: no commands.
//!   Any other language fails. The tests of the Python package run the programs in Python. `cargo xtask test`
//!   compiles the code in Java.
//!
//! Each command must succeed. `...` in a line of output matches any text. A comment before a block
//! changes how the block runs:
//!
//! * `<!-- setup: commands -->` runs commands that readers do not see, for example to create input
//!   files;
//! * `<!-- varies: word word -->` lists first words: of a line that begins with one of them, only
//!   that word is compared;
//! * `<!-- not run: reason -->` skips the block;
//! * `<!-- file: NAME -->` writes a block without commands to a file in the folder of the page.
//!
//! The comment `<!-- short form -->` marks a Chinese page that lacks parts of the English page. The test ignores this
//! comment.
//!
//! All commands of a page run in one bash, in a folder that contains only a copy of `examples`.
//! `prelude.sh` defines the differences from the reader's terminal. The test uses the machine's
//! `redis-cli` if it is of Redis 7 or newer, and a replacement otherwise.

mod page;
mod redis_cli;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use page::Page;

/// The marker after the output of each step. The exit status and another marker follow it.
const END: char = '\u{1}';

/// The time limit of a page.
const TIME_LIMIT: Duration = Duration::from_secs(600);

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn pages() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let mut pages = vec![root.join("README.md"), root.join("README.zh-CN.md")];
    for folder in ["docs", "docs/formats"] {
        let entries = root.join(folder).read_dir().unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|it| it == "md")));
    }
    pages.sort();
    pages
}

fn read(path: &Path) -> Page {
    let name = path.strip_prefix(ROOT).unwrap().display().to_string();
    Page::parse(&name, &fs::read_to_string(path).unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_commands_of_each_page_print_what_it_shows() {
    let pages: Vec<Page> = pages().iter().map(|path| read(path)).collect();
    for page in &pages {
        for (line, reason) in &page.not_run {
            println!("{}:{line}: not run: {reason}", page.name);
        }
    }
    let machine = redis_cli::of_the_machine();
    let failures = std::thread::scope(|scope| {
        let runs: Vec<_> = pages
            .iter()
            .filter(|page| !page.steps.is_empty())
            .map(|page| scope.spawn(|| run(page, machine.as_deref())))
            .collect();
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Tests the replacement on machines that have redis-cli, where no page uses it.
#[test]
fn the_stand_in_for_redis_cli_prints_what_the_readme_shows() {
    let failures = run(&read(&Path::new(ROOT).join("README.md")), None);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn each_page_begins_with_what_its_reader_can_do() {
    let wrong: Vec<_> = pages()
        .into_iter()
        .filter(|path| path.starts_with(Path::new(ROOT).join("docs")))
        .filter(|path| !path.to_string_lossy().ends_with(".zh-CN.md"))
        .filter(|path| {
            let text = fs::read_to_string(path).unwrap();
            !text.lines().skip(1).find(|line| !line.is_empty()).unwrap().contains("you can")
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "the first paragraph says 'After reading this page you can ...': {wrong:?}"
    );
}

/// The last column of the table names commands, and a block below the table runs the same commands.
#[test]
fn each_command_in_the_table_of_scenarios_runs() {
    for name in ["docs/scenarios.md", "docs/scenarios.zh-CN.md"] {
        let path = Path::new(ROOT).join(name);
        let text = fs::read_to_string(&path).unwrap();
        let page = read(&path);
        let rows = text.lines().filter(|line| line.starts_with("| ")).skip(2);
        let mut named = Vec::new();
        for row in rows {
            let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
            let code = cell.split('`').skip(1).step_by(2);
            named.extend(code.filter(|code| code.starts_with("tamis ") || code.contains("-cli ")));
        }
        assert!(named.len() > 12, "{name}: {named:?}");
        for command in named {
            assert!(
                page.steps.iter().any(|step| step.command == command),
                "{name}: no block runs {command}"
            );
        }
    }
}

/// `cargo xtask test` compiles and runs only the code of the English page.
#[test]
fn the_chinese_page_of_java_has_the_code_of_the_english_page() {
    let blocks = |name: &str| -> Vec<String> {
        let text = fs::read_to_string(Path::new(ROOT).join(name)).unwrap();
        let fenced = text.split("```").skip(1).step_by(2);
        let is_code = |block: &&str| {
            ["java\n", "toml\n", "rust\n", "yaml\n"].iter().any(|it| block.starts_with(it))
        };
        fenced.filter(is_code).map(str::to_owned).collect()
    };
    let (english, chinese) = (blocks("docs/java-spring.md"), blocks("docs/java-spring.zh-CN.md"));
    assert!(english.len() > 10);
    assert_eq!(chinese.len(), english.len(), "blocks of code");
    for (english, chinese) in english.iter().zip(&chinese) {
        assert_eq!(chinese, english);
    }
}

/// Runs the steps of a page, and returns a text for each that failed.
fn run(page: &Page, redis_cli: Option<&Path>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let hidden = tempfile::tempdir().unwrap();
    symlink(Path::new(ROOT).join("examples"), folder.path().join("examples")).unwrap();
    certificates(hidden.path());
    let redis_cli = redis_cli.map_or_else(|| stand_in(hidden.path()), Path::to_owned);
    let mut script = format!("{}\n", include_str!("prelude.sh"));
    for step in &page.steps {
        script += &format!("{}\nprintf '\\001%d\\001' $?\n", step.command);
    }
    let script_path = hidden.path().join("page.sh");
    fs::write(&script_path, script).unwrap();
    let output_path = hidden.path().join("output");
    fs::write(&output_path, "").unwrap();
    let output = || File::options().append(true).open(&output_path).unwrap();

    let program = Path::new(env!("CARGO_BIN_EXE_tamis"));
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("bash")
        .arg(&script_path)
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .env("GOLDEN", Path::new(ROOT).join("tests/golden"))
        .env("HIDDEN", hidden.path())
        .env("REDIS_CLI", redis_cli)
        .envs([("LC_ALL", "C.UTF-8"), ("TZ", "UTC")])
        .env_remove("SOURCE_DATE_EPOCH")
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .process_group(0)
        .spawn()
        .unwrap();
    let start = Instant::now();
    while shell.try_wait().unwrap().is_none() {
        if start.elapsed() > TIME_LIMIT {
            let group = format!("-{}", shell.id());
            _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            _ = shell.wait();
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = String::from_utf8_lossy(&fs::read(&output_path).unwrap()).into_owned();
    compare(page, &output)
}

fn compare(page: &Page, output: &str) -> Vec<String> {
    let mut parts = output.split(END);
    let mut failures = Vec::new();
    for step in &page.steps {
        let place = format!("{}:{}: $ {}", page.name, step.line, step.command);
        let printed = parts.next().unwrap_or_default();
        let Some(status) = parts.next() else {
            failures.push(format!("{place}\nthe shell did not get over it:\n{printed}"));
            return failures;
        };
        if status != "0" {
            failures.push(format!("{place}\nexit status {status}:\n{printed}"));
        } else if !step.shows(printed) {
            let shown = step.expected.as_deref().unwrap_or_default().join("\n");
            failures.push(format!("{place}\n--- the page shows\n{shown}\n--- printed\n{printed}"));
        }
    }
    failures
}

/// Writes the certificate and the key of a server, and the certificate as that of an authority.
fn certificates(folder: &Path) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let own = rcgen::generate_simple_self_signed(names).unwrap();
    fs::write(folder.join("cert.pem"), own.cert.pem()).unwrap();
    fs::write(folder.join("ca.pem"), own.cert.pem()).unwrap();
    fs::write(folder.join("key.pem"), own.signing_key.serialize_pem()).unwrap();
}

/// Writes a script that runs the replacement, which is a test of this program. The script discards
/// the output of the test harness.
fn stand_in(folder: &Path) -> PathBuf {
    let path = folder.join("redis-cli");
    let harness = std::env::current_exe().unwrap();
    let text = format!(
        "#!/usr/bin/env bash\nexec 3>&1 >/dev/null\nexec '{}' --ignored --exact redis_cli::stand_in -- \"$@\"\n",
        harness.display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}
