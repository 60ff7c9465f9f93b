//! Runs the program on filters of other systems, as a user does.

use tamis::Hasher;
use tamis_commands::{ScalableBloom, Value};
use tamis_formats::RedisValue;

use crate::program::{Folder, golden_json, gzip, lines};

/// Creates a folder with a Guava filter of `item 0` to `item 999`. `convert` writes the filter; the
/// golden tests check its bytes.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.build("items", texts(0..1000));
    folder.ok("convert items.tamis users.guava --items items.txt --funnel text --charset utf-8");
    folder
}

fn texts(range: std::ops::Range<u64>) -> String {
    range.map(|i| format!("item {i}\n")).collect()
}

const TEXT: &str = "--funnel text --charset UTF-8";

#[test]
fn every_format_is_listed() {
    let folder = Folder::new();
    let text = folder.ok("formats");
    for name in ["tamis", "guava", "redisbloom", "parquet", "bip158", "roaring"] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}:\n{text}");
    }
    let json = folder.json("formats --json");
    // The first line is a heading. An empty line and a remark follow the rows.
    let rows = text.lines().skip(1).take_while(|line| !line.is_empty());
    assert_eq!(json.as_array().unwrap().len(), rows.count());
    assert_eq!(json[1]["name"], "guava");
    assert_eq!(json[1]["requires_funnel"], true);
}

#[test]
fn a_filter_is_asked_as_its_system_asks_it() {
    let folder = folder();
    folder.write("asked.txt", texts(990..1010));
    folder.prints(format!("check {TEXT} users.guava asked.txt"), texts(990..1000));
    folder.run(format!("check -v -c {TEXT} users.guava asked.txt")).gives(0, "10\n");
    // With two filters, each output line names its filter. One of them is in the Tamis format.
    folder.prints(
        format!("check -f users.guava -f items.tamis {TEXT} items.txt -c"),
        "users.guava:1000\nitems.tamis:1000\n",
    );
    folder.feed(format!("check -q {TEXT} users.guava"), "item 7\n").has_status(0);
    folder.feed(format!("check -q {TEXT} users.guava"), "nobody\n").has_status(1);
}

/// Returns the result of `DUMP` for a filter that `BF.RESERVE key 0.01 100` created on a server.
fn server_dump(items: std::ops::Range<u64>) -> Vec<u8> {
    let mut filter = ScalableBloom::reserve_by(100, 0.01, Some(2), Hasher::keyed([1, 2])).unwrap();
    for item in texts(items).lines() {
        filter.insert_hash(filter.hasher().hash(item.as_bytes())).unwrap();
    }
    RedisValue::Tamis(Value::Bloom(Box::new(filter)).to_image()).to_payload()
}

#[test]
fn a_filter_of_the_server_that_has_grown_is_read_from_its_dump() {
    let folder = Folder::new();
    folder.write("items.txt", texts(0..800));
    folder.write("one.dump", server_dump(0..500));
    // The same items are in the reserved part, so that the merged filter keeps its rate.
    folder.write("two.dump", server_dump(0..800));
    folder.shows("info one.dump", &["about 500", "rate planned  0.01"]);
    let found: u64 = folder.ok("check -c one.dump items.txt").trim().parse().unwrap();
    assert!((500..520).contains(&found), "{found}");
    folder.ok("merge one.dump two.dump -o all.dump");
    folder.prints("check -c all.dump items.txt", "800\n");
    folder.ok("convert all.dump copy.dump --to redisbloom");
    assert_eq!(folder.read("copy.dump"), folder.read("all.dump"));
    folder.ok("add one.dump items.txt");
    folder.prints("check -c one.dump items.txt", "800\n");
    // The filter has two parts.
    folder.refused("convert all.dump all.tamis", "has two parts, and a Tamis file stores one");
    folder.ok("convert all.dump all.tamis --items items.txt");
    folder.prints("check -c all.tamis items.txt", "800\n");
}

#[test]
fn a_filter_of_the_server_in_one_part_becomes_its_file() {
    let folder = Folder::new();
    folder.write("items.txt", texts(0..100));
    folder.write("one.dump", server_dump(0..100));
    folder.ok("convert one.dump one.tamis");
    folder.prints("check -c one.tamis items.txt", "100\n");
    folder.refused("add one.dump items.txt", "the file holds more than this filter");
}

#[test]
fn what_the_bytes_do_not_say_is_asked_for_by_its_option() {
    let folder = folder();
    folder.refused("check users.guava items.txt", "give --funnel (bytes, hex, text");
    folder.refused("check --funnel text users.guava items.txt", "add --charset (UTF-8,");
    folder.refused(
        "check --funnel int users.guava items.txt",
        "items.txt: line 1: not a decimal number of 32 bits: \"item 0\"",
    );
    folder.write("bits", [0xff; 20]);
    folder.refused("info bits", "give its format with --format");
    folder.refused("info --format redis-bitmap bits", "give --items-planned N");
    folder.refused("info --format cassandra users.guava", "give --format-version V");
    folder.refused(
        "info --format cassandra --format-version nb items.txt",
        "items.txt: as cassandra: the number of probes at byte 0",
    );
    folder.refused(
        "check --format redis-bitmaps --items-planned 10 bits items.txt",
        "--rate-planned R",
    );
}

#[test]
fn a_file_with_a_weak_header_is_neither_recognised_nor_changed() {
    let folder = folder();
    // The first number is 1, as in many files.
    let text = [&[1, 0, 0, 0, 0, 0, 0, 0][..], b"a text of a user\n"].concat();
    folder.write("notes", &text);
    folder.write("hashes", "17\n");
    folder.refused("info notes", "no other format is recognised");
    folder.refused("check notes hashes", "no other format is recognised");
    folder.refused("add notes hashes", "no other format is recognised");
    assert_eq!(folder.read("notes"), text);
    // The user may know better, by the option and by the file name.
    folder.run("add --format rbloom --force notes hashes").has_status(0);
    folder.write("notes.rbloom", &text);
    folder.run("add --force notes.rbloom hashes").has_status(0);
    assert_eq!(folder.read("notes.rbloom"), folder.read("notes"));
}

#[test]
fn a_file_whose_format_is_a_guess_is_read_but_not_changed() {
    let folder = folder();
    let guava = folder.read("users.guava");
    folder.write("users", &guava);
    folder.ok(format!("check -q {TEXT} users items.txt"));
    let message = "users: looks like guava, but has no magic number that proves it";
    folder.refused(format!("add {TEXT} users items.txt"), message);
    folder.refused(format!("merge {TEXT} users.guava users -o users"), message);
    folder.refused("convert users users --to guava", message);
    assert_eq!(folder.read("users"), guava);
    folder.ok(format!("add {TEXT} --format guava users items.txt"));
    folder.ok("merge --format guava users.guava users -o users");
    folder.ok("merge users.guava users -o both.guava");
}

#[test]
fn a_known_file_that_is_not_read_is_named() {
    let folder = Folder::new();
    folder.write("t.orc", b"ORC\x01....");
    folder.refused("info t.orc", "t.orc: an ORC file whose end is missing: copy the whole file");
    folder.write("t.sst", b"\x01table");
    folder.refused("info t.sst", "t.sst: neither a whole block-based table of LevelDB or RocksDB");
    folder.write("t.json", b"{\"type\":\"CuckooFilter\",\"_size\":96,\"_seed\":1}\n");
    folder.refused("info t.json", "npm's bloom-filters");
}

#[test]
fn the_filter_of_a_whole_table_is_read_and_the_table_is_kept() {
    let folder = Folder::new();
    let keys: String = (0..200).map(|i| format!("key{i:05}\n")).collect();
    folder.write("keys.txt", keys);
    for (golden, name, format) in
        [("leveldb.ldb", "t.ldb", "leveldb"), ("rocksdb-6.sst", "t.sst", "rocksdb")]
    {
        folder.copy_golden(&format!("lsm/{golden}"), name);
        folder.prints(format!("check -c {name} keys.txt"), "200\n");
        folder.shows(format!("info {name}"), &["in a file of"]);
        folder.refused(format!("add {name} keys.txt"), "the file holds more than this filter");
        folder.ok(format!("convert {name} block --to {format}"));
        folder.prints(format!("check -c --format {format} block keys.txt"), "200\n");
    }
    folder.copy_golden("lsm/rocksdb-none.sst", "none.sst");
    folder.refused("check none.sst keys.txt", "has no Bloom filter: write the table with one");
}

#[test]
fn an_option_that_does_not_change_the_plan_is_refused() {
    let folder = folder();
    folder.build("ids", lines(0..100));
    let hash = format!("{}{}", "0".repeat(8), "5".repeat(56));
    for (format, options, option) in [
        ("leveldb", "--to-items 5000", "--to-items"),
        ("roaring", "--to-items 5000", "--to-items"),
        ("roaring", "--to-rate 0.1", "--to-rate"),
        ("redis-bits", "--to-rate 0.1", "--to-rate"),
        ("c-hashcode", "--to-rate 0.1", "--to-rate"),
        ("bip158", &format!("--to-funnel bytes --block-hash {hash} --to-items 9"), "--to-items"),
    ] {
        folder.refused(
            format!("convert ids.tamis out --to {format} --items ids.txt {options}"),
            &format!("{option} has no effect on {format}"),
        );
    }
}

#[test]
fn a_funnel_that_the_other_program_cannot_have_is_refused() {
    let folder = folder();
    folder.run("convert items.tamis items.pybloom --items items.txt").has_status(0);
    folder.run("check -q items.pybloom items.txt").has_status(0);
    for funnel in ["bytes", "hex", "long", "text --charset gbk"] {
        folder.refused(
            format!("check --funnel {funnel} items.pybloom items.txt"),
            "pybloom-live cannot hold items of this funnel",
        );
    }
}

#[test]
fn a_block_hash_in_the_order_of_the_network_is_refused() {
    let folder = folder();
    folder.write("x.bip158", [0]);
    let hash = "6fe28c0ab6f1b372c1a6a246ae63f74f931e8365e15a089c68d6190000000000";
    let shown = "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f";
    folder.refused(format!("info x.bip158 --block-hash {hash}"), shown);
    folder.ok(format!("info x.bip158 --block-hash {shown}"));
}

#[test]
fn only_items_that_a_filter_can_have_are_taken() {
    let folder = folder();
    folder.build("numbers", lines(1..100));
    folder.ok("convert numbers.tamis ids.roaring --items numbers.txt");
    folder.ok("check ids.roaring numbers.txt --funnel long");
    // The array is as long as its greatest value needs, or as long as --to-items requires.
    for (from, items) in [("numbers.tamis", " --items numbers.txt"), ("ids.roaring", "")] {
        for (planned, len) in [("", 13), (" --to-items 1000", 125)] {
            folder.ok(format!("convert {from} ids.bits --to java-bitmap{items}{planned}"));
            assert_eq!(folder.read("ids.bits").len(), len, "{from}{planned}");
            folder.ok("check --format java-bitmap ids.bits numbers.txt");
        }
    }
    folder.refused(
        format!("check ids.roaring numbers.txt {TEXT}"),
        "roaring cannot hold items of this funnel: give another one (int, long, unsigned)",
    );
    let convert = "convert items.tamis words.bitset --to my-bloom-filter --items items.txt";
    folder.refused(
        convert,
        "the type of its items is unknown: give --to-funnel (hash-string, hash-integer,",
    );
    folder
        .run(format!("{convert} --to-funnel hash-string --force"))
        .warns(0, "its six probes are the same number");
    let asked = "--format my-bloom-filter words.bitset";
    folder.refused(format!("check {asked} items.txt"), "give --funnel (hash-string,");
    // `info` warns about these filters; `check` does not.
    folder.prints(format!("check -c {asked} items.txt --funnel hash-string"), "1000\n");
}

#[test]
fn each_side_has_its_own_version_option() {
    let folder = folder();
    let rebuild = "--items items.txt --funnel bytes";
    folder.refused(format!("convert items.tamis a.db {rebuild}"), "give --to-version V");
    folder.ok(format!("convert items.tamis a.db {rebuild} --to-version me"));
    folder.ok("convert a.db b.db --format-version me --to-version nb");
    let (old, new) = (folder.read("a.db"), folder.read("b.db"));
    assert_eq!(old.len(), new.len());
    assert_ne!(old, new, "the bytes of its words are turned");
    folder.prints("check -c b.db --format-version nb --funnel bytes items.txt", "1000\n");
    // Without --to-version, OUT has the version of IN.
    folder.ok("convert a.db c.db --format-version me");
    assert!(folder.read("c.db") == old);
    folder.ok(format!("convert items.tamis 1.spark {rebuild}"));
    folder.ok(format!("convert items.tamis 2.spark {rebuild} --to-version 2"));
    let version = |name: &str| u32::from_be_bytes(*folder.read(name).first_chunk().unwrap());
    assert_eq!((version("1.spark"), version("2.spark")), (1, 2));
    folder.refused(
        format!("convert items.tamis 3.spark {rebuild} --to-version 3"),
        "expected 1 (every Spark reads it, and up to 4.0 nothing else) or 2 (Spark 4.1 and later)",
    );
}

#[test]
fn a_pipe_is_read_as_a_file_is() {
    let folder = folder();
    let (guava, tamis) = (folder.read("users.guava"), folder.read("items.tamis"));
    folder.feed("info -", &guava).shows(&["guava: Guava's BloomFilter"]);
    folder.feed("info -", &tamis).shows(&["split-block"]);
    folder.feed("merge - items.tamis -o merged.tamis", &tamis).says(0, "");
    folder.prints("check -c merged.tamis items.txt", "1000\n");
    folder.feed(format!("convert {TEXT} - x.guava --items items.txt"), &tamis).says(0, "");
    for (start, words) in
        [(&tamis[..8], "standard input"), (&guava[..3], "give its format with --format")]
    {
        let ended = folder.feed("info -", start);
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""));
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
}

#[test]
fn a_damaged_file_is_what_its_name_says() {
    let folder = folder();
    let bytes = folder.read("users.guava");
    folder.write("cut.guava", &bytes[..700]);
    folder.refused("info cut.guava", "cut.guava: as guava: truncated");
    folder.write("cut.unknown", &bytes[..700]);
    folder.refused("info cut.unknown", "give its format with --format");
    folder.write("empty.guava", "");
    folder.refused("info empty.guava", "empty.guava: as guava: truncated");
    folder.write("empty", "");
    folder.refused("info empty", "empty: is empty");
}

#[test]
fn several_filters_become_one_only_if_that_is_wanted() {
    let folder = folder();
    let plan = "--items-planned 500 --rate-planned 0.01";
    let ended = folder.run(format!(
        "convert items.tamis grown.rdb --to redis-bitmaps --items items.txt {plan} --force"
    ));
    assert!(folder.names().contains(&"grown.rdb".into()), "{ended:?}");
    let convert =
        format!("convert grown.rdb one.guava --format redis-bitmaps {plan} --funnel bytes");
    folder.refused(&convert, "accept it with --union");
    folder.run(format!("{convert} --union")).is_done();
    folder.prints(format!("check -c one.guava items.txt {TEXT}"), "1000\n");
}

#[test]
fn info_tells_what_a_filter_is() {
    let folder = folder();
    folder.shows(
        "info users.guava",
        &["guava: Guava's BloomFilter", "9,600 bits, 7 probes", "MITZ_64", "about 9", "rate now"],
    );
    let json = folder.json("info --json users.guava items.tamis");
    assert_eq!((&json[0]["format"], &json[0]["bits"]), (&"guava".into(), &9600.into()));
    assert_eq!(json[1]["kind"], "split-block");
    folder.run("info --rate-planned 0.001 users.guava").warns(3, "over its rate");
    folder.refused("info users.guava --svg out.svg", "filters of Tamis only");
}

#[test]
fn added_items_are_in_and_the_file_is_still_its_systems() {
    let folder = folder();
    folder.write("more.txt", "one\ntwo\n");
    folder.ok(format!("add {TEXT} users.guava more.txt"));
    folder.prints(format!("check {TEXT} users.guava more.txt"), "one\ntwo\n");
    folder.prints(format!("check -c {TEXT} users.guava items.txt"), "1000\n");
    assert_eq!(folder.read("users.guava")[..6], [1, 7, 0, 0, 0, 150]);
    folder.write("many.txt", texts(1000..9000));
    let add = format!("add {TEXT} --rate-planned 1% users.guava many.txt");
    folder.refused(&add, "nothing was written");
    folder.run(format!("{add} --force")).has_status(3);
}

#[test]
fn filters_of_one_layout_merge_and_others_are_refused() {
    let folder = folder();
    folder.build("other", texts(500..1500));
    folder.ok(format!("convert {TEXT} other.tamis other.guava --items other.txt"));
    folder.ok("merge users.guava other.guava -o both.guava");
    folder.write("both.txt", texts(0..1500));
    folder.prints(format!("check -c {TEXT} both.guava both.txt"), "1500\n");
    folder.refused(
        "merge --rate-planned 0.01 users.guava other.guava -o out.guava",
        "nothing was written",
    );
    folder.ok(format!("convert {TEXT} other.tamis large.guava --items other.txt --rate 0.001"));
    folder.refused("merge users.guava large.guava -o out.guava", "layouts differ");
    folder.refused("merge users.guava items.tamis -o out.guava", "does not merge with users.guava");
    folder.refused("merge --meta a=b users.guava -o out.guava", "no place for --meta");
}

#[test]
fn bits_move_where_both_systems_place_items_alike() {
    let folder = folder();
    let plan = "--items-planned 1000 --rate-planned 0.01";
    // Items that are numbers in IN would be text in OUT.
    let to = "users.guava users.bitmap --to redis-bitmaps";
    folder.refused(format!("convert {plan} {to}"), "give --funnel");
    folder.refused(format!("convert {plan} --funnel long {to}"), "with --items FILE");
    folder.ok(format!("convert {plan} {TEXT} {to}"));
    // The conversion reverses the bits of each byte, and the words become little-endian.
    let (guava, bitmap) = (folder.read("users.guava"), folder.read("users.bitmap"));
    assert_eq!(bitmap.len(), 1200);
    assert_eq!(bitmap[0].reverse_bits(), guava[6 + 7]);
    folder.ok(format!("convert --format redis-bitmaps {plan} users.bitmap back.guava"));
    assert!(folder.read("back.guava") == guava);
    folder
        .prints(format!("check -c --format redis-bitmaps {plan} users.bitmap items.txt"), "1000\n");
}

#[test]
fn where_bits_cannot_move_the_items_are_asked_for() {
    let folder = folder();
    folder.refused(format!("convert {TEXT} users.guava users.tamis"), "--items FILE");
    folder.refused("check --charset GBK users.guava items.txt", "--charset is for text");
    folder.refused(
        "convert users.guava users",
        "the file name does not determine the format: give --to",
    );
    folder.ok(format!("convert {TEXT} users.guava users.tamis --items items.txt"));
    folder.prints("check -c users.tamis items.txt", "1000\n");
    folder.write("wrong.txt", texts(5000..6000));
    folder.refused(
        format!("convert {TEXT} users.guava wrong.tamis --items wrong.txt"),
        "the filter was made of other items",
    );
    // The items are numbers in IN and text in OUT.
    folder.build("numbers", lines(0..100));
    folder.ok(
        "convert numbers.tamis numbers.guava --items numbers.txt --funnel bytes --to-funnel long",
    );
    folder.prints("check -c --funnel long numbers.guava numbers.txt", "100\n");
}

#[test]
fn items_that_are_not_all_there_make_no_filter() {
    let folder = folder();
    let convert = |items: &str| {
        format!("convert items.tamis x.guava {items} --to-funnel text --to-charset UTF-8")
    };
    folder.refused(convert("--items -"), "name a file, not a pipe");
    folder.refused(convert("--items /dev/stdin"), "name a file, not a pipe");
    folder.write("empty.txt", "");
    folder.refused(convert("--items empty.txt"), "the file has no items");
    folder.write("one.txt", "item 1\n");
    folder.refused(convert("--items one.txt"), "the others would not be found in x.guava");
    folder.refused(
        "convert items.tamis items.txt --to guava --items items.txt --to-funnel bytes",
        "is an input too",
    );
    // The conversion also fails if only few items are lost.
    folder.build("ten", texts(0..10));
    folder.refused("convert ten.tamis x.guava --items one.txt --to-funnel bytes", "holds about 10");
    folder.write("fewer.txt", lines(1..1000));
    folder.build("numbers", lines(0..1000));
    folder.ok("convert numbers.tamis all.roaring --items numbers.txt");
    folder.refused("convert all.roaring fewer.roaring --items fewer.txt", "has 999: the others");
    folder.run(convert("--items one.txt --force")).warns(0, "would not be found");
    // A file whose records are all skipped is rejected.
    folder.refused(convert("--items empty.txt -k 2"), "the file has no items");
    folder.run(convert("--items items.txt -k 3")).warns(2, "no line has the key (field 3");
    folder.refused(format!("add x.guava -k 3 {TEXT} items.txt"), "no line has the key");
}

#[test]
fn options_for_in_do_not_apply_to_out() {
    let folder = folder();
    let plan = "--items-planned 5000 --rate-planned 0.02";
    let to = "items.tamis a.bits --to redis-bitmap";
    folder.ok(format!("convert {to} {plan} {TEXT} --items items.txt"));
    let plan = format!("--format redis-bitmap {plan}");
    // IN was planned for 5,000 items. OUT is planned for the items in the file, at the same rate.
    folder.ok(format!("convert {plan} {TEXT} a.bits a.tamis --items items.txt"));
    let has_plan = |name: &str, capacity: u64, rate: f64| {
        let info = &folder.json(format!("info --json {name}"))[0];
        let plan = (&info["capacity"], &info["rate_planned"]);
        assert_eq!(plan, (&capacity.into(), &rate.into()), "{name}");
    };
    has_plan("a.tamis", 1000, 0.02);
    folder.ok(format!(
        "convert {plan} {TEXT} a.bits b.tamis --items items.txt --to-items 2000 --to-rate 0.1"
    ));
    has_plan("b.tamis", 2000, 0.1);
    folder.refused(
        format!("convert --items-planned 5000 {TEXT} users.guava c.tamis --items items.txt"),
        "set the capacity of OUT with --to-items",
    );
    folder.refused(
        format!("convert {TEXT} users.guava c.tamis --to-version 2 --items items.txt"),
        "leave the option out",
    );
    folder.refused("info --format-version 3 users.guava", "--format-version has no effect here");
    folder.ok("convert items.tamis 2.spark --items items.txt --to-funnel bytes --to-version 2");
    folder.refused(
        "convert 2.spark 1.spark --to-version 1",
        "Spark's other version: build one from the items, with --items FILE",
    );
    folder.refused(
        "convert 2.spark 3.spark --to-version 99",
        "expected 1 (every Spark reads it, and up to 4.0 nothing else) or 2 (Spark 4.1 and later)",
    );
    // The format of OUT does not store its plan, so --to-items and --to-rate apply without --items.
    let moved = format!("convert {TEXT} users.guava moved.bits --to redis-bitmaps");
    folder.refused(&moved, "the planned number of items is missing: give --to-items N");
    folder.refused(
        format!("{moved} --to-items 1000"),
        "the planned rate is missing: give --to-rate R",
    );
    folder.ok(format!("{moved} --to-items 1000 --to-rate 0.01"));
    for option in ["--to-items 5", "--to-rate 0.5"] {
        folder
            .refused(format!("convert users.guava again.guava {option}"), "has no effect on guava");
    }
    // The error does not ask for a funnel if a funnel would not help.
    folder.refused("convert users.guava x.rbloom", "with --items FILE");
    folder.refused("convert users.guava x --to hadoop", "with --items FILE");
}

#[test]
fn a_snapshot_keeps_what_else_it_holds() {
    let folder = Folder::new();
    folder.copy_golden("redis_rdb/lfu.rdb", "dump.rdb");
    folder.write("items.txt", "1\n");
    let plan = "--format redis-bitmap --items-planned 1000 --rate-planned 0.01 --funnel bytes";
    folder.refused(
        format!("add dump.rdb --key bitmap {plan} items.txt"),
        "holds more than this filter",
    );
}

#[test]
fn a_given_plan_is_kept() {
    let folder = folder();
    let plan = format!("--items-planned 5000 --rate-planned 0.02 {TEXT}");
    folder.ok(format!("convert items.tamis a.bits --to redis-bitmap {plan} --items items.txt"));
    folder.prints(format!("check -c a.bits --format redis-bitmap {plan} items.txt"), "1000\n");
    folder.refused("build items.txt -o built.guava", "this is a file name of guava");
    folder.refused("convert users.guava t.rdb", "give --to (");
}

#[test]
fn a_table_is_asked_by_row_group_and_column() {
    let folder = Folder::new();
    let table = folder.copy_golden("parquet/pyarrow.parquet", "table.parquet");
    let filters = golden_json("parquet/filters.json");
    let mut asked = 0;
    for column in filters["parquet_file_pyarrow"]["columns"].as_array().unwrap() {
        let name = column["column"].as_str().unwrap();
        let check = format!("check table.parquet --no-name --column {name} --funnel hex");
        let Some(absent) = column["absent_plain_hex"].as_array() else {
            folder.refused(&check, "has no Bloom filter; columns that have one: ");
            continue;
        };
        let found = column["absent_results"].as_str().unwrap().chars().map(|c| c == '1');
        let hex = |json: &serde_json::Value| format!("{}\n", json.as_str().unwrap());
        let present: String =
            column["present_plain_hex"].as_array().unwrap().iter().map(hex).collect();
        let expected = absent.iter().zip(found).filter(|(_, is_found)| *is_found);
        let expected: String =
            expected.map(|(item, _)| hex(item)).chain([present.clone()]).collect();
        let items: String = absent.iter().map(hex).chain([present]).collect();
        folder.feed(&check, items).prints(expected);
        asked += absent.len();
    }
    assert!(asked > 100, "{asked}");
    // The type of the column determines the funnel.
    let duckdb = folder.copy_golden("parquet/duckdb.parquet", "duckdb.parquet");
    folder.feed("info - --column s", duckdb).shows(&["in a file of"]);
    folder.feed("check -c duckdb.parquet --column k", "0\n1001\n19019\n").gives(0, "3\n");
    folder.feed("check -c duckdb.parquet --column s", "name-0\nname-14\n").gives(0, "2\n");
    let info = folder.ok("info table.parquet");
    assert!(info.starts_with("table.parquet\n") && info.contains("  0  i32 "), "{info}");
    folder.refused("check table.parquet --column none", "has no column none");
    folder.refused("check table.parquet", "choose one with --column (");
    folder.refused("merge table.parquet -o out", "choose one with --column");
    folder.refused("merge table.parquet --column i32 -o table.parquet", "the file holds more");
    folder.write("items.txt", "1\n");
    folder.refused(
        "add table.parquet --column i32 items.txt",
        "the file holds more than this filter",
    );
    folder.write("cut.parquet", &table[..table.len() - 5]);
    folder.refused("info cut.parquet", "a Parquet file whose end is missing");
    // The test changes every byte of the footer.
    for at in (table.len() - 800..table.len() - 8).step_by(7) {
        let mut broken = table.clone();
        broken[at] ^= 0x55;
        folder.write("broken.parquet", &broken);
        let ended = folder.run("info broken.parquet");
        assert!([0, 2].contains(&ended.status), "{at}: {}", ended.stderr);
    }
}

#[test]
fn a_small_filter_is_not_over_its_rate_by_chance() {
    let folder = Folder::new();
    for start in 0..8 {
        folder.write("users.txt", texts(1000 * start..1000 * start + 500));
        folder.ok("build users.txt -o first.tamis");
        folder.ok(format!("convert {TEXT} first.tamis users.guava --items users.txt"));
        folder.ok(format!("convert {TEXT} users.guava users.tamis --items users.txt"));
        folder.ok("info users.guava --rate-planned 0.01");
    }
}

#[test]
fn a_conversion_keeps_the_rate_that_it_is_asked_for() {
    let folder = Folder::new();
    for count in [100, 3000] {
        folder.build("users", texts(0..count));
        for (to, rate) in [
            ("rocksdb", "1e-4"),
            ("redisbloom", "1e-4"),
            ("redisbloom", "1e-6"),
            ("redisbloom", "0.9"),
            ("hive", "1e-3"),
            ("spark", "1e-4"),
            ("dcso", "1e-3"),
            ("dcso", "0.9"),
            ("pybloom-live", "0.9"),
            ("pybloomfiltermmap", "0.9"),
        ] {
            // Small filters of these rules keep no low rate.
            if count == 100 && (to, rate) != ("redisbloom", "1e-4") && !rate.starts_with("0.9") {
                continue;
            }
            let convert = format!(
                "convert {TEXT} users.tamis out --to {to} --to-rate {rate} --items users.txt"
            );
            folder.run(&convert).has_status(0);
            for planned in ["", &format!("--rate-planned {rate}")] {
                let ended = folder.run(format!("info out --format {to} {planned}"));
                assert_eq!(ended.status, 0, "{count} {rate}: {ended:?}");
                assert!(!ended.stderr.contains("over-full"), "{count} {rate}: {ended:?}");
            }
        }
    }
}

#[test]
fn a_conversion_that_cannot_keep_its_rate_names_the_lowest() {
    let folder = Folder::new();
    folder.build("users", texts(0..20));
    let convert = format!("convert {TEXT} users.tamis out.guava --to-rate 1e-5 --items users.txt");
    folder.refused(
        &convert,
        "give that rate with --to-rate, plan it for more items with --to-items, or accept",
    );
    folder.run(format!("{convert} --force")).warns(3, "over its rate");
    // Version 1 reaches 2³¹ bits. The plan is refused before any item is inserted.
    let large = format!(
        "convert {TEXT} users.tamis out.spark --items users.txt --to-items 300000000 --to-rate 0.001"
    );
    folder.refused(&large, "version 2, which Spark 4.1 and later read, keeps it");
    // parquet-java plans at most 128 MiB.
    let large = format!(
        "convert {TEXT} users.tamis out.sbbf --items users.txt --to-items 1000000000 --to-rate 0.01"
    );
    folder.refused(
        &large,
        "has at most 128 MiB, so its rate with all of them is at least 0.995, not 0.01",
    );
}

#[test]
fn a_filter_planned_for_a_high_rate_is_not_over_full() {
    let folder = Folder::new();
    folder.build("users", texts(0..500));
    folder.ok(format!(
        "convert {TEXT} users.tamis users --to pybloomfiltermmap --to-rate 0.5 --items users.txt"
    ));
    let ended = folder.run("info users --format pybloomfiltermmap");
    assert_eq!(ended.status, 0, "{ended:?}");
    assert!(!ended.stderr.contains("over-full"), "{ended:?}");
}

#[test]
fn a_filter_that_grew_is_not_over_the_rate_it_was_asked_for() {
    let folder = folder();
    for (to, plan) in [
        ("pybloom-live-scalable", "--rate-planned 0.01"),
        ("redis-bitmaps", "--items-planned 100 --rate-planned 0.01"),
        ("redisbloom", "--rate-planned 0.01"),
    ] {
        let convert = format!(
            "convert items.tamis grown --to {to} --to-items 100 --to-rate 0.01 --items items.txt"
        );
        for line in [convert, format!("info grown --format {to} {plan}")] {
            // The command succeeds; it may write notes about these filters.
            folder.run(&line).has_status(0);
        }
    }
}

#[test]
fn a_snapshot_names_its_keys_and_says_when_it_is_cut_short() {
    let folder = Folder::new();
    let bytes = folder.copy_golden("redis_rdb/lfu.rdb", "dump.rdb");
    let ended = folder.run("info --format redis-bitmap dump.rdb");
    ended.warns(2, "give --key KEY (");
    assert!(ended.stderr.contains("bitmap") && !ended.stderr.contains("more"), "{ended:?}");
    folder.refused("info --format redis-bitmap --key bitmap dump.rdb", "give --items-planned N");
    for len in [12, 500, bytes.len() - 1] {
        folder.write("cut.rdb", &bytes[..len]);
        folder.refused("info cut.rdb", "a snapshot of Redis: truncated");
    }
    let mut damaged = bytes.clone();
    damaged[700] ^= 1;
    folder.write("damaged.rdb", damaged);
    folder.refused("info damaged.rdb", "a snapshot of Redis: damaged: the checksum");
}

#[test]
fn packed_filters_are_asked_and_never_replaced() {
    let folder = folder();
    folder.ok("build items.txt --kind cuckoo -o cuckoo.tamis");
    folder.write("more.txt", "one\n");
    for name in ["users.guava", "items.tamis", "cuckoo.tamis"] {
        let bytes = folder.read(name);
        folder.write(&format!("{name}.gz"), gzip(&bytes));
        folder.write(&format!("{name}.zst"), zstd::encode_all(&bytes[..], 1).unwrap());
        for packed in [format!("{name}.gz"), format!("{name}.zst")] {
            let tell = if name == "users.guava" { TEXT } else { "" };
            folder.prints(format!("check -c {tell} {packed} items.txt"), "1000\n");
            folder.ok(format!("info {packed}"));
            folder.refused(format!("add {tell} {packed} more.txt"), "decompress it first");
        }
    }
    folder.refused("remove cuckoo.tamis.gz items.txt", "decompress it first");
    for line in [
        "merge users.guava.gz users.guava.gz -o users.guava.gz",
        "convert users.guava.gz users.guava.gz --to guava",
        "build items.txt -o items.tamis.zst",
    ] {
        folder.refused(line, "filters are written uncompressed");
    }
}

#[test]
fn bits_that_begin_as_packed_data_are_read_as_they_are() {
    let folder = folder();
    let plan = format!("--format redis-bitmap --items-planned 1000 --rate-planned 0.01 {TEXT}");
    folder.ok(format!("convert items.tamis a.bits --to redis-bitmap {TEXT} --items items.txt"));
    let bits = folder.read("a.bits");
    for start in [&b"\x1f\x8b\x08"[..], b"\x28\xb5\x2f\xfd"] {
        let mut like_packed = bits.clone();
        like_packed.iter_mut().zip(start).for_each(|(byte, start)| *byte = *start);
        folder.write("b.bits", &like_packed);
        folder.write("one.txt", "one\n");
        for (command, stdout) in [("add", ""), ("check", "one\n")] {
            let ended = folder.run(format!("{command} {plan} b.bits one.txt"));
            ended.warns(0, "is read as plain bits");
            ended.prints(stdout);
        }
        folder.write("b.bits.gz", &like_packed);
        folder.refused(format!("info {plan} b.bits.gz"), "b.bits.gz: ");
    }
    // A compressed filter is decompressed if its file name ends like compressed data.
    folder.write("a.bits.gz", gzip(&bits));
    folder.prints(format!("check -c {plan} a.bits.gz items.txt"), "1000\n");
    folder.refused(format!("add {plan} a.bits.gz one.txt"), "decompress it first");
    folder.feed(format!("check {plan} - items.txt -c"), &bits).gives(0, "1000\n");
}

#[test]
fn filters_that_can_be_read_are_shown_beside_one_that_cannot() {
    let folder = folder();
    let ended = folder.run("info items.tamis nofile users.guava");
    ended.has_status(2);
    assert!(ended.stdout.starts_with("items.tamis\n"), "{ended:?}");
    assert!(ended.stdout.contains("\n\nusers.guava\n"), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.starts_with("tamis: nofile: "), "{ended:?}");
    let ended = folder.run("info --json nofile users.guava items.txt");
    assert_eq!((ended.status, ended.json().as_array().unwrap().len()), (2, 1));
    assert_eq!(ended.stderr.lines().count(), 2, "{ended:?}");
    std::fs::create_dir(folder.path("dir")).unwrap();
    for line in ["info dir", "merge dir -o out.tamis", "merge items.tamis dir -o out.tamis"] {
        folder.refused(line, "dir: is a directory, not a filter");
    }
    folder.run("build --force --items 10 items.txt -o full.tamis");
    let ended = folder.run("info full.tamis");
    ended.warns(3, "over its rate: saturated");
    ended.shows(&["none: saturated"]);
}

#[test]
fn a_merged_filter_has_a_name_of_its_format() {
    let folder = folder();
    folder.refused(
        "merge items.tamis users.guava -o out.tamis",
        "does not merge with items.tamis: it is a filter of guava",
    );
    folder.refused("merge users.guava users.guava -o out.tamis", "this is a file name of tamis");
    folder.refused("merge items.tamis items.tamis -o out.guava", "this is a file name of guava");
    folder.ok("merge users.guava users.guava -o out");
}

#[test]
fn a_filter_of_npm_bloom_filters_is_read_changed_and_written() {
    let folder = Folder::new();
    let golden = golden_json("bloom-filters/bloom-filters.json");
    let items: Vec<_> = (0..20).map(|i| golden["items"][i].as_str().unwrap()).collect();
    folder.write("twelve.txt", items[..12].join("\n"));
    folder.write("more.txt", items[12..].join("\n"));
    let case = &golden["filters"][3];
    folder.write("users.json", case["json"].as_str().unwrap());
    folder.shows("info users.json", &["seed 7, cubic sums (bloom-filters)"]);
    folder.prints("check -c users.json twelve.txt", "12\n");
    // The same items in an empty filter of the same seed give the text that Node wrote.
    let empty = r#"{"type":"BloomFilter","_size":97,"_nbHashes":7,"_filter":{"size":104,"content":"AAAAAAAAAAAAAAAAAA=="},"_seed":7}"#;
    folder.write("empty.json", empty);
    folder.ok("add empty.json twelve.txt");
    assert_eq!(folder.read("empty.json"), folder.read("users.json"));
    folder.run("add --force users.json more.txt");
    folder.prints("check -c users.json more.txt", "8\n");
    folder.run("merge --force empty.json users.json -o all.json");
    assert_eq!(folder.read("all.json"), folder.read("users.json"));
    folder.build("items", texts(0..1000));
    folder.ok("convert items.tamis out.json --to bloom-filters --items items.txt");
    folder.prints("check -c out.json items.txt", "1000\n");
    folder.ok("convert out.json back.tamis --items items.txt");
    folder.prints("check -c back.tamis items.txt", "1000\n");
    folder.refused("merge out.json users.json -o all.json", "layouts differ");
    // 20 items at 1e-9 have 863 bits, so equal pairs of hashes alone give 2.7e-5.
    folder.build("few", texts(0..20));
    folder.refused(
        "convert few.tamis low.json --to bloom-filters --items few.txt --to-rate 1e-9",
        "give that rate with --to-rate",
    );
    folder.write(
        "old.json",
        r#"{"type":"BloomFilter","_size":3,"_nbHashes":1,"_filter":[0,1,0],"_length":1,"_seed":1}"#,
    );
    folder.refused("info old.json", "as bloom-filters before 2.0.0 writes them");
    folder.write("two.json", format!("{empty}\n{empty}\n"));
    folder.refused("info two.json", "is not the JSON of a filter: trailing characters at line");
    folder.write("other.json", r#"{"type":"CuckooFilter","_size":3,"_seed":1}"#);
    folder.refused("info other.json", "not of its class BloomFilter");
    folder.write("cut.json", empty.replace("AAA", ""));
    folder.refused("info cut.json", "the content of _filter at byte 0 is not base64");
}

#[test]
fn a_filter_of_abloom_is_read_changed_and_written() {
    const FUNNEL: &str = "--funnel abloom-bytes";
    let folder = Folder::new();
    let golden = golden_json("abloom/abloom.json");
    let file = golden["filters"][1]["to_bytes_hex"].as_str().unwrap();
    let pairs = file.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let bytes: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    folder.write("users.bloom", &bytes);
    let lines = |of: &str| -> String {
        let items = golden["items"].as_array().unwrap()[..20].iter();
        let of_type = items.filter(|item| item[0] == of);
        of_type.map(|item| format!("{}\n", item[1].as_str().unwrap())).collect()
    };
    for (of, funnel) in [("str", "bytes"), ("int", "int"), ("float", "float")] {
        folder.write("items.txt", lines(of));
        let check = format!("check -c --funnel abloom-{funnel} users.bloom items.txt");
        folder.prints(&check, "5\n");
    }
    folder.refused("check users.bloom items.txt", "give --funnel (abloom-bytes, abloom-int");
    folder.write("nan.txt", "nan\n");
    folder.refused("check --funnel abloom-float users.bloom nan.txt", "not a decimal number");
    folder.refused("check --funnel abloom-int users.bloom nan.txt", "not a whole decimal number");
    folder.shows("info users.bloom", &["64-bit hash of abloom", "rate planned  0.01"]);
    folder.build("items", texts(0..1000));
    let to = "--to-funnel abloom-bytes --items items.txt";
    folder.ok(format!("convert items.tamis out.abloom {to}"));
    folder.prints(format!("check -c {FUNNEL} out.abloom items.txt"), "1000\n");
    folder.ok(format!("convert out.abloom back.tamis {FUNNEL} --items items.txt"));
    folder.prints("check -c back.tamis items.txt", "1000\n");
    folder.ok("merge out.abloom out.abloom -o both.abloom");
    assert_eq!(folder.read("both.abloom"), folder.read("out.abloom"));
    // No plan has more than 300 bits an item.
    folder.refused(
        format!("convert items.tamis low.abloom {to} --to-rate 1e-12"),
        "give that rate with --to-rate",
    );
    folder.write("cut.bloom", &bytes[..93]);
    folder.refused("info cut.bloom", "as abloom: truncated in the words at byte 30");
    let mut newer = bytes.clone();
    newer[4] = 3;
    folder.write("newer.bloom", &newer);
    folder.refused("info newer.bloom", "the version at byte 4 is 3, expected 2");
}
