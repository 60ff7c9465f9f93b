//! `tamis merge` as a user runs it.

use crate::program::{Folder, lines};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..600));
    folder.write("b.txt", lines(400..1000));
    folder.write("both.txt", lines(0..1000));
    folder.ok("build --items 1000 a.txt -o a.tamis --meta team=x --meta day=monday");
    folder.ok("build --items 1000 b.txt -o b.tamis --meta team=x --meta day=tuesday");
    folder
}

#[test]
fn merged_filters_are_the_filter_of_all_items() {
    let folder = folder();
    folder.ok("merge a.tamis b.tamis -o merged.tamis");
    folder.write("ab.txt", lines((0..600).chain(400..1000)));
    folder.ok("build --items 1000 ab.txt -o direct.tamis --meta team=x");
    assert!(folder.read("merged.tamis") == folder.read("direct.tamis"));
    folder.prints("check -c merged.tamis both.txt", "1000\n");
    folder.ok("merge b.tamis a.tamis -o other.tamis");
    assert!(folder.read("merged.tamis") == folder.read("other.tamis"));
}

#[test]
fn the_output_may_be_an_input() {
    let folder = folder();
    folder.ok("merge a.tamis b.tamis -o a.tamis --meta day=all");
    folder.prints("check -c a.tamis both.txt", "1000\n");
    assert!(folder.ok("info a.tamis").contains("meta day      all"));
    folder.ok("merge a.tamis -o copy.tamis");
}

#[test]
fn filters_that_do_not_match_are_refused_by_the_field() {
    let folder = folder();
    for (options, words) in [
        ("--items 5000", "bits, not "),
        ("--items 1000 --seed 7", "its hash is mix seed 7, not mix seed 0"),
        ("--items 1000 --kind classic", "its kind is classic, not split-block"),
        ("--items 1000 --url", "its items are of another kind: url, not record"),
    ] {
        folder.feed(format!("build {options} -o other.tamis"), "http://a/\n").has_status(0);
        folder.refused("merge a.tamis other.tamis -o out.tamis", words);
    }
}

#[test]
fn a_merge_over_the_rate_is_refused() {
    let folder = folder();
    folder.write("c.txt", lines(5000..5900));
    folder.ok("build --items 1000 c.txt -o c.tamis");
    folder.refused("merge a.tamis b.tamis c.tamis -o out.tamis", "nothing was written");
    let ended = folder.run("merge --force a.tamis b.tamis c.tamis -o out.tamis");
    assert_eq!(ended.status, 3);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    folder.run("check -c --force out.tamis c.txt").prints("900\n");
}

#[test]
fn a_filter_built_like_another_merges_with_it() {
    let folder = folder();
    for options in [
        "--items 1000",
        "--items 1000 --keyed",
        "--items 1000 --rate 1e-6 --seed 7",
        "--items 1000 --kind parquet",
        "--items 1000 --kind classic --keyed",
        "--items 1000 --kind counting --counter-bits 8 --keyed",
        "--items 2000 --kind cuckoo --keyed",
        "--kind growing --keyed",
        "--items 4000 --window 24h --slices 3 --refresh --keyed",
        "--window 3000-items --keyed",
    ] {
        folder.ok(format!("build {options} a.txt -o a.tamis"));
        folder.ok("build --like a.tamis b.txt -o b.tamis");
        folder.ok("merge a.tamis b.tamis -o merged.tamis");
        folder.prints("check -c merged.tamis both.txt", "1000\n");
    }
    folder.refused("build --like a.tamis --items 5 b.txt -o c.tamis", "--like");
    folder.refused("build --like a.tamis --keyed b.txt -o c.tamis", "--like");
    folder.refused("build --like a.tamis --copies b.txt -o c.tamis", "--copies is for");
    folder.refused("build --like a.tamis b.txt -o a.tamis", "is an input too");
    folder.refused("build --like missing b.txt -o c.tamis", "missing: no such file");
    folder.refused("build --like a.txt b.txt -o c.tamis", "a.txt: ");
    folder.ok("convert merged.tamis a.guava --items both.txt --to-funnel bytes");
    folder.refused("build --like a.guava b.txt -o c.tamis", "this is one of guava");
    folder.ok("build --items 100 /dev/null -o small.tamis");
    folder.refused("build --like small.tamis b.txt -o c.tamis", "nothing was written");
}
