//! Runs the programs of this folder, each as a process with its own folder.

use std::path::Path;
use std::process::Command;

use tamis_testing::CommandExt as _;

/// Compiles each program as a module with an ignored test, which runs the program.
macro_rules! programs {
    ($($program:ident),* $(,)?) => { $(
        mod $program {
            include!(concat!(env!("CARGO_MANIFEST_DIR"), "/", stringify!($program), ".rs"));

            #[test]
            #[ignore = "the other tests of this file start the program"]
            fn program() {
                use std::process::{ExitCode, Termination as _};

                assert!(main().report() == ExitCode::SUCCESS);
            }
        }
    )* };
}

programs! {
    all_processors, counting, crawler, generic, mapped_file, serde, window, wrong_sizes,
}

/// Runs a program in a folder. Returns its output. The test harness adds lines to the output.
fn run(program: &str, folder: &Path, arguments: &[&str], stdin: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = format!("{program}::program");
    command.args(["--exact", "--ignored", "--nocapture", "--quiet", &name]).args(arguments);
    let output = command.current_dir(folder).feed(stdin);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {stdout}{stderr}");
    assert!(stdout.contains("1 passed"), "{program} is not in this file: {stdout}");
    stdout
}

/// Runs a program, and checks that its output has each of the lines.
fn assert_output(program: &str, stdin: &str, lines: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    assert_lines(&run(program, folder.path(), &[], stdin), lines);
}

fn assert_lines(output: &str, lines: &[&str]) {
    for line in lines {
        assert!(output.lines().any(|found| found == *line), "no line {line:?} in:\n{output}");
    }
}

#[test]
fn the_crawler_remembers_its_urls_in_a_file_that_other_programs_map() {
    let folder = tempfile::tempdir().unwrap();
    let first = run("crawler", folder.path(), &[], "https://a\nhttps://b\nhttps://a\n");
    assert_lines(&first, &["fetch https://a", "fetch https://b"]);
    assert_eq!(first.matches("fetch").count(), 2, "{first}");
    let second = run("crawler", folder.path(), &[], "https://b\nhttps://c\n");
    assert_lines(&second, &["fetch https://c"]);
    assert_eq!(second.matches("fetch").count(), 1, "{second}");
    let mapped = run("mapped_file", folder.path(), &["https://a", "https://d"], "");
    assert_lines(&mapped, &["https://a: true", "https://d: false"]);
}

#[test]
fn filters_of_any_type_find_the_distinct_words() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("generic", folder.path(), &[], "");
    assert_eq!(output.matches("[\"to\", \"be\", \"or\", \"not\"]\n").count(), 3, "{output}");
}

#[test]
fn a_window_reports_a_repeated_message_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("window", folder.path(), &[], "disk full\ndisk full\nno route\n");
    assert_lines(&output, &["alert: disk full", "alert: no route"]);
    assert_eq!(output.matches("alert").count(), 2, "{output}");
}

#[test]
fn a_counting_filter_counts_and_removes() {
    assert_output("counting", "", &["apples: 2", "removed: Yes", "pear: false"]);
}

#[test]
fn all_processors_count_each_id_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = run("all_processors", folder.path(), &[], "");
    let line = output.lines().find(|line| line.ends_with(" new ids")).expect("a count");
    let new: u64 = line.split(' ').next().unwrap().parse().unwrap();
    assert!((495_000..=500_000).contains(&new), "{new}");
}

#[test]
fn a_filter_is_a_field_of_a_serialized_struct() {
    assert_output("serde", "", &["import has seen a: true"]);
}

#[test]
fn wrong_sizes_are_errors_that_say_what_to_do() {
    let output = [
        "1262464 bytes",
        "the number of items must not be negative, and must be at most 18446744073709551615",
        "the rate must be between 0 and 1, for example 0.01 for one percent: 1.5",
    ];
    assert_output("wrong_sizes", "", &output);
}

mod web_handler {
    // The test calls only `app`.
    #![allow(dead_code)]

    include!("../web_handler.rs");

    #[tokio::test]
    async fn the_web_handler_answers_whether_an_id_is_new() {
        use axum::body::Body;
        use axum::http::Request;
        use http_body_util::BodyExt as _;
        use tower::ServiceExt as _;

        let app = app(Arc::new(SharedBloom::for_items(1_000, 0.01).unwrap()));
        for expected in ["true", "false"] {
            let request = Request::post("/seen/7").body(Body::empty()).unwrap();
            let response = app.clone().oneshot(request).await.unwrap();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body, expected);
        }
    }
}
