//! `tamis plan`, `tamis completions` and `tamis man` as a user runs them.

use std::process::Stdio;

use crate::program::{Ended, Folder, tamis};
use tamis_testing::CommandExt as _;

#[test]
fn any_two_of_three_give_the_third() {
    let folder = Folder::new();
    let text = folder.ok("plan --items 10M --rate 1%");
    assert!(text.starts_with("10,000,000 items at a rate of 0.01\n"), "{text}");
    let best = text.lines().find(|line| line.ends_with("<- best")).unwrap();
    assert!(best.starts_with("split-block") && best.contains("12.0 MiB"), "{best}");
    for kind in ["parquet", "classic", "(exact)"] {
        assert!(text.lines().any(|line| line.starts_with(kind)), "{kind}");
    }
    assert!(folder.ok("plan --memory 512M --rate 0.001").starts_with("a rate of 0.001 in 512 MiB"));
    assert!(folder.ok("plan --items 1G --memory 1G").starts_with("1,000,000,000 items in 1.0 GiB"));
}

#[test]
fn json_has_the_numbers_of_the_table() {
    let folder = Folder::new();
    let plan = folder.json("plan --items 1M --rate 0.01 --json");
    assert_eq!(plan["best"], "split-block");
    let kinds: Vec<_> = plan["plans"].as_array().unwrap().iter().map(|p| &p["kind"]).collect();
    let expected = ["split-block", "parquet", "classic", "counting", "cuckoo", "growing", "window"];
    assert_eq!(kinds, expected);
    for plan in plan["plans"].as_array().unwrap() {
        let rate = plan["rate_at_capacity"].as_f64().unwrap();
        // These kinds have a whole number of bits per entry, so they cannot reach every rate.
        let is_coarse = plan["kind"] == "cuckoo" || plan["kind"] == "growing";
        assert!(rate <= 0.01 && rate > if is_coarse { 0.002 } else { 0.0099 }, "{plan}");
        assert_eq!(plan["items"], 1_000_000);
    }
    assert!(plan["exact"]["rate"].as_f64().unwrap() < 1e-12);
}

#[test]
fn a_plan_is_what_build_makes() {
    let folder = Folder::new();
    for rate in ["0.5", "1%", "1e-6"] {
        let plan = folder.json(format!("plan --items 700 --rate {rate} --json"));
        folder.feed(format!("build --items 700 --rate {rate} -o a.tamis"), "a\n");
        let info = folder.json("info --json a.tamis");
        let plans = plan["plans"].as_array().unwrap();
        let best = plans.iter().find(|row| row["kind"] == plan["best"]).unwrap();
        assert_eq!((&best["kind"], &best["bits"]), (&info[0]["kind"], &info[0]["bits"]), "{rate}");
    }
}

#[test]
fn curves_are_drawn() {
    let folder = Folder::new();
    for question in ["--items 10M --rate 1%", "--items 3 --rate 1e-12", "--memory 64 --items 20"] {
        folder.ok(format!("plan {question} --svg plan.svg"));
        let svg = String::from_utf8(folder.read("plan.svg")).unwrap();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{question}");
        for words in ["split-block", "parquet", "classic", "bits an item"] {
            assert!(svg.contains(words), "{question}: {words}");
        }
    }
}

#[test]
fn questions_without_an_answer_are_refused() {
    let folder = Folder::new();
    for (line, words) in [
        ("plan", "give two of"),
        ("plan --items 10", "give two of"),
        ("plan --items 10 --rate 1% --memory 1M", "give two, and the third follows"),
        ("plan --items 0 --rate 1%", "must be above zero"),
        ("plan --items 10 --rate=-1", "is not a rate"),
        ("plan --items 10 --rate NaN", "is not a rate"),
        ("plan --items 1G --memory 1", "1 bytes are too few"),
        ("plan --rate 1e-300 --memory 8", "8 bytes are too few"),
        ("plan --items 18446744073709551615 --rate 1e-300", "plan fewer items"),
        ("plan --items 10 --rate 1% --svg missing/x.svg", "missing/x.svg: no such file"),
    ] {
        folder.refused(line, words);
    }
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.ok(format!("completions {shell}"));
        for command in ["dedup", "build", "check", "ints"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    folder.ok("man pages");
    let page = std::fs::read_to_string(folder.path("pages/tamis-build.1")).unwrap();
    assert!(page.contains("Examples:") && page.contains("Exit status"), "{page}");
    folder.write("file", "");
    folder.refused("man file", "file: ");
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_said_so() {
    for line in ["--help", "dedup --help", "--version"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = tamis(line).stdout(full).stderr(Stdio::piped()).start().output();
        Ended::of(line, output).says(2, "tamis: standard output: no space left on device\n");
    }
}
