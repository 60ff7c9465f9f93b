//! `tamis build` and `tamis add` as a user runs them.

use tamis_testing::CommandExt as _;

use crate::program::{Folder, gzip, lines};

#[test]
fn items_are_counted_first_so_that_the_size_is_right() {
    let folder = Folder::new();
    // The file has every item twice. Repeats do not increase the size.
    folder.write("a.txt", lines((0..5000).chain(0..5000)));
    folder.ok("build a.txt -o counted.tamis");
    folder.ok("build --items 5000 a.txt -o planned.tamis");
    assert_eq!(folder.read("counted.tamis"), folder.read("planned.tamis"));
    folder.shows(
        "info counted.tamis",
        &["capacity      5,000 items", "added         10,000, repeats included"],
    );
    folder.prints("check -c counted.tamis a.txt", "10000\n");
}

#[test]
fn equal_items_are_equal_bytes_in_any_order_and_from_anywhere() {
    let folder = Folder::new();
    folder.write("down.txt", lines((0..3000).rev()));
    folder.write("low.txt", lines(0..1000));
    folder.write("high.txt", lines(1000..3000));
    folder.build("up", lines(0..3000));
    let expected = folder.read("up.tamis");
    for inputs in ["down.txt", "low.txt high.txt", "high.txt low.txt"] {
        folder.ok(format!("build {inputs} -o other.tamis"));
        assert!(folder.read("other.tamis") == expected, "{inputs}");
    }
    folder.feed("build -o pipe.tamis", lines(0..3000)).says(0, "");
    assert!(folder.read("pipe.tamis") == expected);
    assert!(folder.command("build up.txt -o -").run().stdout == expected);
}

#[test]
fn compressed_items_are_items() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..2000));
    folder.write("a.txt.gz", gzip(lines(0..2000)));
    folder.write("a.txt.zst", zstd::encode_all(lines(0..2000).as_bytes(), 1).unwrap());
    folder.ok("build a.txt -o plain.tamis");
    for packed in ["a.txt.gz", "a.txt.zst"] {
        folder.ok(format!("build {packed} -o packed.tamis"));
        assert!(folder.read("packed.tamis") == folder.read("plain.tamis"), "{packed}");
    }
}

#[test]
fn keys_may_be_fields_json_values_or_urls() {
    let folder = Folder::new();
    folder.write("a.csv", "x,1\ny,2\nnone\n");
    folder
        .run("build -d , -k 2 a.csv -o field.tamis")
        .says(0, "tamis: skipped a record that has no such key\n");
    folder.feed("check field.tamis", "1\n2\nx\n").prints("1\n2\n");
    folder.write("a.json", "{\"id\":\"u1\"}\n{\"id\":7}\n");
    folder.ok("build --json /id a.json -o json.tamis");
    folder.feed("check json.tamis", "u1\n7\n8\n").prints("u1\n7\n");
    folder.write("urls.txt", "HTTP://Example.org:80/a/../b#part\n");
    folder.ok("build --url urls.txt -o urls.tamis");
    let query = "http://example.org/b\n";
    folder.feed("check --url urls.tamis", query).prints(query);
    // A query with raw text would miss items that are stored in canonical form.
    for line in ["check urls.tamis urls.txt", "add urls.tamis urls.txt"] {
        folder.refused(line, "urls.tamis: was built with --url: add --url");
    }
    folder.write("names.txt", "\u{3000}Ada \nBOB\n");
    folder.ok("build -i --trim names.txt -o names.tamis");
    folder.feed("check -i --trim names.tamis", "ADA\n bob\nc\n").prints("ADA\n bob\n");
    folder.refused(
        "check -i names.tamis names.txt",
        "names.tamis: was built with --trim: add --trim",
    );
    let both = "was built with --trim and --ignore-case: add --trim and --ignore-case";
    folder.refused("check names.tamis names.txt", both);
    // A builder that stores no such metadata may have written lower case.
    folder.ok("build names.txt -o raw.tamis");
    let ended = folder.feed("check -i raw.tamis", "BOB\n");
    ended.warns(1, "raw.tamis: was not built with --ignore-case");
    ended.prints("");
}

#[test]
fn records_end_with_nul_if_asked() {
    let folder = Folder::new();
    folder.feed("build -0 -o nul.tamis", "a\nb\0c\0").has_status(0);
    folder.feed("check -0 nul.tamis", "a\nb\0x\0c").prints("a\nb\0c\0");
}

#[test]
fn parquet_filters_have_parquets_own_hash_and_words() {
    let folder = Folder::new();
    folder
        .feed("build --kind parquet --items 4 -o p.tamis", "key0\nkey1\nkey2\nkey3\n")
        .has_status(0);
    folder.shows("info p.tamis", &["hash          xxh64 seed 0"]);
    // The file in tests/golden/parquet has `key0` to `key3` in one block. parquet-java wrote it.
    let bytes = folder.read("p.tamis");
    let words = &bytes[128..bytes.len() - 8];
    let hex: String = words.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "400520000042200800201010000580200020210200d080002010001000080206");
}

#[test]
fn a_filter_is_refused_that_would_end_over_its_rate() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..3000));
    folder.refused(
        "build --items 1000 a.txt -o a.tamis",
        "items and was planned for 1,000; its rate is 0.",
    );
    folder
        .run("build --items 1000 --force a.txt -o a.tamis")
        .warns(3, "items and was planned for 1,000; its rate is 0.");
    folder.run("info a.tamis").warns(3, "over its rate");
}

#[test]
fn exactly_as_many_items_as_planned_are_within_the_rate() {
    let folder = Folder::new();
    for items in [1, 2, 10, 100, 3000] {
        folder.write("a.txt", lines(0..items));
        for rate in ["50%", "1%", "1e-6"] {
            folder.ok(format!("build --items {items} --rate {rate} a.txt -o a.tamis"));
            folder.ok("info a.tamis");
        }
    }
}

#[test]
fn add_grows_a_filter_up_to_its_capacity() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..600));
    folder.write("b.txt", lines(400..1000));
    folder.write("c.txt", lines(1000..3000));
    folder.write("all.txt", lines(0..1000));
    folder.ok("build --items 1000 a.txt -o seen.tamis");
    folder.ok("add seen.tamis b.txt");
    folder.prints("check -c seen.tamis all.txt", "1000\n");
    folder.shows("info seen.tamis", &["added         1,200"]);
    folder.refused("add seen.tamis c.txt", "nothing was written");
    folder.run("add --force seen.tamis c.txt").has_status(3);
    folder.run("check -q seen.tamis c.txt").has_status(3);
    folder.run("check -q --force seen.tamis c.txt").has_status(0);
}

#[test]
fn two_processes_do_not_change_one_filter_at_once() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..10));
    folder.ok("build --items 100 a.txt -o seen.tamis");
    let held = std::fs::File::open(folder.path("seen.tamis")).unwrap();
    held.lock().unwrap();
    folder.refused("add seen.tamis a.txt", "another process is changing it");
    drop(held);
    folder.ok("add seen.tamis a.txt");
}

#[test]
fn metadata_are_kept_and_builds_repeat_unless_stamped() {
    let folder = Folder::new();
    folder.write("a.txt", "a\n");
    folder.ok("build a.txt -o a.tamis --meta owner=ops --meta 来源=日志");
    folder.shows("info a.tamis", &["meta owner    ops", "meta 来源     日志"]);
    folder.ok("build a.txt -o b.tamis --meta 来源=日志 --meta owner=ops");
    assert!(folder.read("a.tamis") == folder.read("b.tamis"));
    folder.ok("build a.txt -o c.tamis --stamp");
    folder.shows("info c.tamis", &["meta built    20", "meta source   a.txt"]);
}

#[cfg(unix)]
#[test]
fn a_keyed_filter_is_its_owners_alone_and_never_the_same() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    folder.write("a.txt", lines(0..10));
    folder.ok("build --keyed a.txt -o a.tamis");
    folder.ok("build --keyed a.txt -o b.tamis");
    let mode = folder.path("a.tamis").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    assert_ne!(folder.read("a.tamis"), folder.read("b.tamis"));
    folder.prints("check -c a.tamis a.txt", "10\n");
    folder.refused("merge a.tamis b.tamis -o c.tamis", "its secret key is different");
    folder.shows("info a.tamis", &["hash          siphash-1-3 with a key"]);
}

#[test]
fn bad_numbers_are_refused_in_one_line() {
    let folder = Folder::new();
    folder.write("a.txt", "a\n");
    for rate in ["0", "1", "-1", "NaN", "2", "100%", "x"] {
        folder.refused(format!("build a.txt -o a.tamis --rate={rate}"), "is not a rate");
    }
    for items in ["0", "-5", "x", "1e300", "99999999999999999999"] {
        folder.refused(format!("build a.txt -o a.tamis --items={items}"), "number of items");
    }
    folder.refused("build a.txt -o a.tamis --memory 1X", "is not a size");
    folder.refused("build a.txt -o a.tamis --items 16T", "cannot allocate");
    folder.refused("build a.txt -o a.tamis --items 18446744073709551615", "plan fewer items");
    folder.refused("build a.txt -o a.tamis --kind parquet --items 1T", "no parquet filter");
    folder.refused("build a.txt -o a.tamis --meta x", "is not KEY=VALUE");
}

#[test]
fn memory_is_a_limit() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..200_000));
    folder.refused("build a.txt -o a.tamis --memory 1M", "too little: give at least 9.0 MiB");
    folder.refused("build a.txt -o a.tamis --memory 9M", "--items N");
    folder.refused(
        "build a.txt -o a.tamis --memory 9M --items 2M",
        "--memory 9.0 MiB leaves 1.0 MiB",
    );
    folder.ok("build a.txt -o a.tamis --memory 9M --items 200K");
}

#[test]
fn files_that_cannot_be_read_or_written_are_named() {
    let folder = Folder::new();
    folder.write("a.txt", lines(0..100_000));
    folder.write("cut.gz", b"\x1f\x8b\x08\x00\x00\x00");
    std::fs::create_dir(folder.path("folder")).unwrap();
    for (line, words) in [
        ("build missing.txt -o a.tamis", "missing.txt: no such file"),
        ("build folder -o a.tamis", "folder: is a directory"),
        ("build a.txt -o folder", "folder: is a directory"),
        ("build a.txt -o missing/a.tamis", "missing/a.tamis: no such file"),
        ("build cut.gz -o a.tamis", "cut.gz: the gzip data is cut short"),
        ("build a.txt -o a.txt", "a.txt: is an input too"),
        ("add missing.tamis a.txt", "missing.tamis: no such file"),
        ("add a.txt a.txt", "a.txt: not a Tamis filter"),
        ("add folder a.txt", "folder: "),
        ("add - a.txt", "must be a file"),
    ] {
        folder.refused(line, words);
    }
    #[cfg(target_os = "linux")]
    folder.refused("build a.txt -o /dev/full", "/dev/full: no space left on device");
}
