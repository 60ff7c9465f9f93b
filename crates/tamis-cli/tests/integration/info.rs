//! `tamis info` as a user runs it.

use crate::program::{Folder, lines};
use serde_json::Value;

#[test]
fn numbers_are_those_of_the_bits() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..5000));
    folder.ok("build --items 10K a.txt -o a.tamis --meta owner=ops");
    let list = folder.json("info --json a.tamis");
    let info = &list[0];
    let number = |name: &str| info[name].as_f64().unwrap();
    assert_eq!((number("capacity"), number("added"), number("probes")), (1e4, 5e3, 8.0));
    assert!((number("items") / 5000.0 - 1.0).abs() < 0.03, "{info}");
    assert!((number("headroom_items") / 5000.0 - 1.0).abs() < 0.03, "{info}");
    assert!(number("rate_now") < 0.001 && number("rate_planned") == 0.01);
    assert_eq!(number("bits"), number("bytes") * 8.0);
    assert_eq!(info["kind"], "split-block");
    assert_eq!(info["over_rate"], false);
    assert_eq!(info["metadata"]["owner"], "ops");
}

#[test]
fn a_growing_filter_that_has_used_all_bits_of_the_hash_is_full() {
    let folder = Folder::new();
    for (items, is_full) in [(165_887, false), (165_888, true)] {
        folder.write("a.txt", lines(0..items));
        folder.ok("build --kind growing --rate 2.2e-14 a.txt -o a.tamis");
        let ended = folder.run("info a.tamis");
        ended.has_status(0);
        let advice = "full: refuses adds; build one with a higher --rate\n";
        assert_eq!(ended.stdout.contains(&format!("  none: {advice}")), is_full, "{ended:?}");
        assert_eq!(ended.stderr == format!("tamis: a.tamis: {advice}"), is_full, "{ended:?}");
        assert_eq!(ended.stdout.contains("any number of items"), !is_full, "{ended:?}");
        let list = folder.run("info --json a.tamis").json();
        let headroom = if is_full { 0.into() } else { Value::Null };
        assert_eq!((&list[0]["full"], &list[0]["headroom_items"]), (&is_full.into(), &headroom));
    }
}

#[test]
fn several_filters_are_shown_one_after_the_other() {
    let folder = Folder::new();
    folder.build("a", lines(0..50));
    folder.ok("build --rate 1e-6 a.txt -o b.tamis");
    let text = folder.ok("info a.tamis b.tamis");
    assert!(text.starts_with("a.tamis\n  kind ") && text.contains("\n\nb.tamis\n"), "{text}");
    let list = folder.json("info --json a.tamis b.tamis");
    assert_eq!(list.as_array().unwrap().len(), 2);
    folder.refused("info a.tamis b.tamis --svg x.svg", "name one");
}

#[test]
fn a_full_filter_has_no_number_of_items() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..100_000));
    folder.run("build --force --items 1 a.txt -o full.tamis");
    let ended = folder.run("info full.tamis");
    ended.has_status(3);
    ended.shows(&["items         unknown: the filter is saturated", "rate now      1\n"]);
    let list = folder.run("info --json full.tamis").json();
    assert!(list[0]["items"].is_null() && list[0]["over_rate"] == true);
    folder.run("info full.tamis --svg full.svg");
    let svg = String::from_utf8(folder.read("full.svg")).unwrap();
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
}

#[test]
fn a_picture_shows_blocks_and_the_way_to_the_rate() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..5000));
    for kind in ["split-block", "parquet", "classic"] {
        folder.ok(format!("build --kind {kind} a.txt -o a.tamis"));
        folder.ok("info a.tamis --svg a.svg");
        let svg = String::from_utf8(folder.read("a.svg")).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{kind}");
        for words in ["capacity: 5,000", "planned: 0.01", "now: ", "class=\"bar\"", kind] {
            assert!(svg.contains(words), "{kind}: {words}");
        }
    }
    folder.refused("info a.tamis --svg missing/a.svg", "missing/a.svg: no such file");
}

#[test]
fn text_of_a_file_does_not_steer_the_terminal() {
    let folder = Folder::new();
    folder.write("a.txt", "a\n");
    folder.ok("build a.txt -o a.tamis --meta x=\u{1b}[31mred");
    let text = folder.ok("info a.tamis");
    assert!(text.contains("meta x        \\u{1b}[31mred") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn a_filter_that_refuses_adds_says_so() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..1000));
    folder.ok("build --kind cuckoo --items 2000 a.txt -o a.tamis");
    assert!(!folder.ok("info a.tamis").contains("full"));
    // Adds a few items at a time until the filter is full.
    let mut next = 1000;
    let refused = loop {
        let ended = folder.feed("add a.tamis", lines(next..next + 10));
        next += 10;
        if ended.status != 0 {
            break ended;
        }
        assert!(next < 4000);
    };
    assert!(refused.stderr.contains("full with"), "{}", refused.stderr);
    while folder.feed("add a.tamis", format!("{next}\n")).status == 0 || next % 64 != 0 {
        next += 1;
    }
    let ended = folder.run("info a.tamis");
    ended.warns(0, "a.tamis: full: refuses adds");
    ended.shows(&["full: refuses adds"]);
    let list = folder.run("info --json a.tamis").json();
    assert_eq!((&list[0]["full"], &list[0]["headroom_items"]), (&true.into(), &0.into()));
}

#[test]
fn an_exact_set_is_described_exactly() {
    let folder = Folder::new();
    folder.write("values", lines((0..133_579_u64).map(|i| i * i)));
    // The empty bitmap of 32 bits.
    folder.write("a.roaring", [0x3a, 0x30, 0, 0, 0, 0, 0, 0]);
    folder.write("few", lines([1, 5, 70_000]));
    assert_eq!(folder.run("add a.roaring few").stderr, "");
    let info = folder.ok("info a.roaring");
    let bytes = folder.read("a.roaring").len();
    assert!(info.contains(&format!("size      {bytes} bytes\n")), "{info}");
    assert!(info.contains("items     3\n") && !info.contains("fill"), "{info}");
    let words = "a.roaring: was a 32-bit Roaring bitmap and is now a 64-bit one";
    folder.run("add a.roaring values").warns(0, &format!("tamis: {words}"));
    assert_eq!(folder.run("add a.roaring values").stderr, "", "it has 64 bits already");
    folder.shows("info a.roaring", &["items     133,581\n"]);
    // Merging widens a bitmap too.
    folder.write("b.roaring", [0x3a, 0x30, 0, 0, 0, 0, 0, 0]);
    let merged = folder.run("merge b.roaring a.roaring -o c.roaring");
    merged.warns(0, &words.replace("a.roaring", "c.roaring"));
}

#[test]
fn an_empty_file_is_an_empty_string_of_redis() {
    let folder = Folder::new();
    folder.write("empty", "");
    folder.write("values", "9\n");
    assert!(folder.ok("info --format redis-bits empty").contains("items     0\n"));
    folder.ok("info --format redis-bitmap --items-planned 10 --rate-planned 0.1 empty");
    folder.write("empty.redisbits", "");
    assert!(folder.ok("info empty.redisbits").contains("items     0\n"));
    folder.ok("add --format redis-bits empty values");
    assert_eq!(folder.read("empty"), [0, 0b0100_0000]);
}
