//! Filters that delete, count, grow or expire items, from the shell.

use tamis_testing::CommandExt as _;

use crate::program::{Ended, Folder, lines};

/// Creates a folder with a file of the numbers below 1000.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("n.txt", lines(0..1000));
    folder
}

/// Runs a line of arguments at a time, in seconds.
fn at(folder: &Folder, seconds: u64, line: &str) -> Ended {
    Ended::of(line, folder.command(line).env("SOURCE_DATE_EPOCH", seconds.to_string()).run())
}

#[test]
fn what_was_added_can_be_removed() {
    for kind in ["counting", "cuckoo"] {
        let folder = folder();
        folder.ok(format!("build --kind {kind} n.txt -o f.tamis"));
        folder.prints("check -c f.tamis n.txt", "1000\n");
        folder.write("gone.txt", lines(0..600));
        folder.prints("remove f.tamis gone.txt", "");
        let left: u64 = folder.ok("check -c f.tamis n.txt").trim().parse().unwrap();
        assert!((400..430).contains(&left), "{kind}: {left}");
        folder.write("stay.txt", lines(600..1000));
        folder.prints("check -c f.tamis stay.txt", "400\n");
        assert!(folder.ok("info f.tamis").contains("added         400,"), "{kind}");
    }
}

#[test]
fn what_is_not_there_is_refused_and_changes_nothing() {
    for kind in ["counting", "cuckoo"] {
        let folder = folder();
        folder.ok(format!("build --kind {kind} --rate 1e-6 n.txt -o f.tamis"));
        let before = folder.read("f.tamis");
        let ended = folder.feed("remove f.tamis", "never\nadded\n");
        ended.warns(1, "f.tamis: 2 lines not in it");
        ended.prints("");
        assert!(folder.read("f.tamis") == before);
        // If only some of the items are present, these are removed.
        folder.feed("remove f.tamis", "never\n7\n").has_status(1);
        folder.prints("check -c f.tamis n.txt", "999\n");
    }
}

#[test]
fn filters_that_cannot_delete_say_which_can() {
    let folder = folder();
    for kind in ["split-block", "parquet", "classic", "growing"] {
        folder.ok(format!("build --kind {kind} n.txt -o f.tamis"));
        let words = [kind, "--kind counting or --kind cuckoo"];
        folder.refused_with("remove f.tamis n.txt", &words);
    }
    folder.refused("remove - n.txt", "must be a file");
    folder.refused("remove missing.tamis n.txt", "missing.tamis");
    folder.refused("remove . n.txt", "is a directory, not a filter");
    folder.refused_with("remove n.txt n.txt", &["n.txt", "not a Tamis filter"]);
}

#[test]
fn copies_are_counted() {
    for kind in ["counting", "cuckoo"] {
        let folder = Folder::new();
        let lines = "one\ntwo\ntwo\nthree\nthree\nthree\n";
        let copies = if kind == "cuckoo" { "--copies" } else { "" };
        for build in ["", "--items 100"] {
            folder
                .feed(format!("build --kind {kind} {copies} {build} -o f.tamis"), lines)
                .has_status(0);
            folder
                .feed("check --copies f.tamis", "one\ntwo\nthree\nfour\n")
                .prints("      1 one\n      2 two\n      3 three\n");
            folder.feed("remove f.tamis", "two\n");
            folder.feed(format!("add {copies} f.tamis"), "one\n");
            folder
                .feed("check --copies f.tamis", "one\ntwo\n")
                .prints("      2 one\n      1 two\n");
        }
    }
    let folder = folder();
    folder.ok("build n.txt -o f.tamis");
    folder.refused("check --copies f.tamis n.txt", "does not count");
}

#[test]
fn a_cuckoo_filter_takes_a_repeated_line_once() {
    let folder = folder();
    let six = "n.txt ".repeat(6);
    for build in ["", "--items 1000"] {
        folder.ok(format!("build --kind cuckoo {build} {six} -o f.tamis"));
        folder.prints("check -c f.tamis n.txt", "1000\n");
        // Two items may have equal fingerprints.
        let single =
            |copies: String| copies.lines().filter(|it| it.starts_with("      1 ")).count();
        assert!(single(folder.ok("check --copies f.tamis n.txt")) > 950, "{build}");
        let before = folder.read("f.tamis");
        for _ in 0..6 {
            folder.ok("add --if-absent f.tamis n.txt");
        }
        // Only the number of lines that were added has changed.
        assert!(single(folder.ok("check --copies f.tamis n.txt")) > 950, "{build}");
        assert_eq!(folder.read("f.tamis").len(), before.len());
        folder.ok("remove f.tamis n.txt");
        let left: u64 = folder.run("check -c f.tamis n.txt").stdout.trim().parse().unwrap();
        assert_eq!(left, 0, "{build}");
        folder.ok(format!("add f.tamis {six}"));
        folder.prints("check -c f.tamis n.txt", "1000\n");
    }
    folder.ok("build --kind cuckoo --items 1000 n.txt -o f.tamis");
    folder.refused_with(
        "add --copies f.tamis n.txt n.txt n.txt",
        &["full with", "--copies --items N, where each copy counts"],
    );
    folder.write("more.txt", lines(1000..3000));
    folder
        .refused_with("add f.tamis more.txt", &["full with", "build a larger one with --items N"]);
}

#[test]
fn a_counting_filter_counts_every_repeat_and_takes_no_copies() {
    let folder = folder();
    let words = "--copies is for cuckoo filters: a counting filter counts every repeat without it; leave it out";
    folder.refused("build --copies --kind counting n.txt -o f.tamis", words);
    folder.ok("build --kind counting n.txt -o f.tamis");
    folder.refused("add --copies f.tamis n.txt", words);
    folder.refused("build --copies --like f.tamis n.txt -o g.tamis", words);
}

#[test]
fn a_full_filter_is_refused_with_advice_that_helps() {
    let folder = folder();
    folder.ok("build --kind cuckoo n.txt -o f.tamis");
    folder.refused_with("add f.tamis n.txt", &[
        "f.tamis: full with",
        "each copy counted",
        "skip them with --if-absent if you delete nothing from this filter; otherwise build a larger one with --items N\n",
    ]);
    assert!(!folder.run("add f.tamis n.txt").stderr.contains("--copies"));
    folder.ok("add --if-absent f.tamis n.txt");
    folder.write("more.txt", lines(1000..3000));
    folder.refused_with(
        "add --if-absent f.tamis more.txt",
        &["full with", "nothing was written: build one for more with --items N\n"],
    );
    folder.refused_with(
        "build --like f.tamis more.txt -o g.tamis",
        &["full with", "--like: build both for more items\n"],
    );
    // At this rate a growing filter of 226,304 items has used all bits of the hash.
    folder.write("many.txt", lines(0..250_000));
    let build = "build --kind growing --rate 3e-14 many.txt -o g.tamis";
    let words = ["full with", "nothing was written: build one with a higher --rate\n"];
    folder.refused_with(build, &words);
    assert!(!folder.run(build).stderr.contains("cop"));
    folder.ok("build --kind growing --rate 3e-14 n.txt -o f.tamis");
    folder.refused_with(
        "build --like f.tamis many.txt -o g.tamis",
        &[
            "full with",
            "it has the rate of the filter of --like: build both with a higher --rate\n",
        ],
    );
}

#[test]
fn what_is_deleted_as_often_as_it_was_added_takes_no_other_line_with_it() {
    let folder = folder();
    folder.write("a.txt", lines(0..50_000));
    folder.write("b.txt", lines(50_000..100_000));
    folder.ok("build --kind cuckoo --items 100000 a.txt -o f.tamis");
    // Some hundred lines are false positives.
    folder.ok("add f.tamis b.txt b.txt");
    folder.ok("remove f.tamis b.txt");
    folder.prints("check -c f.tamis a.txt", "50000\n");
    folder.refused("add --if-absent --copies f.tamis a.txt", "cannot be used with");
    folder.ok("build n.txt -o f.tamis");
    folder
        .refused("add --if-absent f.tamis n.txt", "--if-absent is for counting and cuckoo filters");
}

#[test]
fn a_cuckoo_filter_holds_three_copies_of_every_line() {
    let folder = folder();
    for copies in 1..=4 {
        let files = "n.txt ".repeat(copies);
        // With `--items`, a filter has space for three copies of each line. Without it, `build`
        // counts the lines, and four copies fit.
        let planned = (copies <= 3).then(|| format!("--items {}", 1000 * copies));
        for build in planned.into_iter().chain(["".to_owned()]) {
            // With seed 2, no two lines share their buckets and their fingerprint. The filter would
            // count two such lines as one line with eight copies, which is above the highest count.
            folder.ok(format!("build --kind cuckoo --seed 2 --copies {build} {files} -o f.tamis"));
            let counted = folder.ok("check --copies f.tamis n.txt");
            let exact = counted.lines().filter(|line| line.starts_with(&format!("{copies:>7} ")));
            assert!(exact.count() > 900, "{copies} {build}");
            for _ in 0..copies {
                folder.ok("remove f.tamis n.txt");
            }
            folder.run("check -q f.tamis n.txt").has_status(1);
        }
    }
}

#[test]
fn an_item_that_was_added_too_often_stays_and_is_reported() {
    for (kind, times) in [("counting", 15), ("cuckoo --copies", 8)] {
        let folder = Folder::new();
        let lines = "often\n".repeat(times);
        folder.feed(format!("build --kind {kind} --items 100 -o f.tamis"), lines);
        folder.feed("remove f.tamis", "often\n").warns(1, "1 line not removed");
        folder.feed("check f.tamis", "often\n").prints("often\n");
    }
    let folder = Folder::new();
    folder.feed("build --kind counting --counter-bits 8 --items 9 -o f.tamis", "x\n".repeat(254));
    folder.feed("remove f.tamis", "x\n").has_status(0);
    folder.feed("check --copies f.tamis", "x\n").prints("    253 x\n");
}

#[test]
fn a_growing_filter_takes_any_number_of_items() {
    let folder = Folder::new();
    folder.ok("build --kind growing /dev/null -o f.tamis");
    let mut from = 0;
    for to in [10, 1000, 50_000, 200_000] {
        folder.write("n.txt", lines(from..to));
        folder.ok("add f.tamis n.txt");
        folder.prints("check -c f.tamis n.txt", format!("{}\n", to - from));
        from = to;
    }
    folder.write("all.txt", lines(0..200_000));
    folder.prints("check -c f.tamis all.txt", "200000\n");
    folder.shows("info f.tamis", &["unlimited: the filter grows"]);
    folder.write("absent.txt", lines(1_000_000..1_100_000));
    let wrong: u64 = folder.feed("check -c f.tamis absent.txt", "").stdout.trim().parse().unwrap();
    assert!(wrong < 1000, "{wrong} of 100000 at 1 %");
    // A filter from a pipe gives the same answers as a mapped file.
    folder.feed("info -", folder.read("f.tamis")).has_status(0);
}

#[test]
fn growing_filters_merge_whatever_their_sizes() {
    let folder = folder();
    folder.write("more.txt", lines(1000..9000));
    folder.ok("build --kind growing n.txt -o a.tamis");
    folder.ok("build --kind growing more.txt -o b.tamis");
    folder.ok("merge a.tamis b.tamis -o both.tamis");
    folder.write("all.txt", lines(0..9000));
    folder.prints("check -c both.tamis all.txt", "9000\n");
    folder.ok("build --kind growing --rate 1e-3 n.txt -o c.tamis");
    folder.refused("merge a.tamis c.tamis -o x.tamis", "does not merge");
}

#[test]
fn a_window_of_items_forgets_the_oldest() {
    let folder = folder();
    folder.ok("build --window 100-items --rate 1e-4 n.txt -o f.tamis");
    let found = folder.ok("check f.tamis n.txt");
    let found: Vec<u64> = found.lines().map(|line| line.parse().unwrap()).collect();
    assert!((100..=135).contains(&found.len()), "{}", found.len());
    // At this rate, one expired item may be a false positive.
    assert!(found.iter().filter(|&&n| n < 860).count() <= 1, "{found:?}");
    assert!((900..1000).all(|n| found.contains(&n)), "{found:?}");
    folder.shows("info f.tamis", &["remembered at least 100 "]);
}

/// An earlier version rounded the length of the slices up, so a window of 5 items remembered 8.
#[test]
fn a_window_of_few_items_remembers_at_most_a_slice_more() {
    let folder = folder();
    for items in [1, 2, 3, 5, 6, 7, 9, 10, 33, 101] {
        let slices = items.min(4);
        folder.ok(format!(
            "build --window {items}-items --slices {slices} --rate 1e-6 n.txt -o f.tamis"
        ));
        let found = folder.ok("check f.tamis n.txt").lines().count();
        // An item stays until `items` other items were added.
        assert!((items..=items + items / 4 + 1).contains(&found), "{items}: {found}");
    }
}

#[test]
fn a_window_of_time_forgets_by_the_clock() {
    let folder = folder();
    let run = |line: &str, seconds: u64| {
        let ended = at(&folder, seconds, line);
        assert_eq!(ended.stderr, "", "{line}");
        ended.stdout
    };
    let start = 1_700_000_000;
    run("build --window 1h --items 1000 --rate 1e-6 n.txt -o f.tamis", start);
    assert_eq!(run("check -c f.tamis n.txt", start + 3600), "1000\n");
    assert_eq!(run("check -c f.tamis n.txt", start + 7200 + 3600), "0\n");
    folder.write("late.txt", "late\n");
    run("add f.tamis late.txt", start + 3500);
    assert_eq!(run("check -c f.tamis n.txt", start + 3600), "1000\n");
    assert_eq!(run("check f.tamis late.txt", start + 7000), "late\n");
    // All items arrived at once, and the filter keeps its rate.
    assert!(run("info f.tamis", start + 3600).contains("at least 1h, at most 2h"));
    // Equal items at the same time give equal bytes.
    let bytes = folder.read("f.tamis");
    run("build --window 1h --items 1000 --rate 1e-6 n.txt -o f.tamis", start);
    run("add f.tamis late.txt", start + 3500);
    assert!(folder.read("f.tamis") == bytes);
}

#[test]
fn a_window_from_the_future_is_refused() {
    let folder = folder();
    let (now, future) = (1_700_000_000, 1_900_000_000);
    at(&folder, now, "build --window 1h --items 2000 n.txt -o now.tamis").has_status(0);
    at(&folder, future, "build --window 1h --items 2000 n.txt -o future.tamis").has_status(0);
    for line in ["add future.tamis n.txt", "merge now.tamis future.tamis -o x.tamis"] {
        at(&folder, now, line).warns(2, "future.tamis: its clock is");
    }
    assert!(at(&folder, now, "info future.tamis").stderr.contains("its clock is"));
    at(&folder, now, "check -c now.tamis n.txt").has_status(0);
}

#[test]
fn repeats_are_kept_within_memory() {
    let folder = Folder::new();
    folder
        .feed("build --kind counting --memory 9M -o f.tamis", "same\n".repeat(300_000))
        .has_status(0);
    folder.feed("check --copies f.tamis", "same\n").prints("    15+ same\n");
}

#[test]
fn an_uneven_window_says_that_it_is_over_its_rate() {
    let folder = folder();
    folder.refused_with(
        "build --window 1h --slices 6 --items 1000 n.txt -o f.tamis",
        &["f.tamis", "nothing was written", "--force"],
    );
    folder
        .feed("build --force --window 1h --slices 6 --items 1000 n.txt -o f.tamis", "")
        .has_status(3);
    folder.feed("info f.tamis", "").has_status(3);
}

#[test]
fn options_of_one_kind_are_refused_with_another() {
    let folder = folder();
    for (line, word) in [
        ("build --kind cuckoo --counter-bits 8 n.txt -o f", "--kind counting"),
        ("build --kind counting --counter-bits 5 n.txt -o f", "5"),
        ("build --kind window n.txt -o f", "--window 24h"),
        ("build --window 24h n.txt -o f", "--items"),
        ("build --kind cuckoo --window 24h --items 5 n.txt -o f", "--kind window"),
        ("build --window 24 --items 5 n.txt -o f", "24h"),
        ("build --window 0h --items 5 n.txt -o f", "0h"),
        ("build --window 1h --slices 0 --items 5 n.txt -o f", "0"),
        ("build --slices 3 n.txt -o f", "--window"),
        ("build --refresh --kind window n.txt -o f", "--window 24h"),
        ("build --window 3-items --slices 4 n.txt -o f", "no more slices than items"),
        (
            "build --copies n.txt -o f",
            "--copies is for cuckoo filters: leave it out, or build with --kind cuckoo\n",
        ),
        (
            "build --copies --kind growing n.txt -o f",
            "a growing filter does not count repeats; leave it out, or build with --kind cuckoo\n",
        ),
        ("build --kind parquet --keyed n.txt -o f", "--keyed"),
        ("build --kind unknown n.txt -o f", "unknown"),
    ] {
        folder.refused(line, word);
    }
    assert_eq!(folder.names(), ["n.txt"]);
}

#[test]
fn every_kind_is_described() {
    let folder = folder();
    for kind in ["counting", "cuckoo", "growing"] {
        folder.ok(format!("build --keyed --kind {kind} n.txt -o f.tamis"));
        let json = folder.json("info --json f.tamis");
        assert_eq!(json[0]["kind"], kind);
        // Each run has a new secret key, so the bits of a small filter differ by chance.
        assert!(json[0]["rate_now"].as_f64().unwrap() <= 0.02, "{kind}: {}", json[0]);
        let items = json[0]["items"].as_f64().unwrap();
        assert!((items - 1000.0).abs() < 150.0, "{kind}: {items}");
        folder.ok("info f.tamis --svg f.svg");
        assert!(String::from_utf8(folder.read("f.svg")).unwrap().contains("rate by items"));
    }
}
