//! Decode options of filters of other systems. Names may be in any case, one error lists all
//! missing options, and no option is ignored.

use crate::program::Folder;
use tamis_formats::RedisValue;

/// Creates a folder with the items `item 0` to `item 999`, and a Tamis filter of these items.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.build("items", (0..1000).map(|i| format!("item {i}\n")).collect::<String>());
    folder
}

const ITEMS: &str = "--items items.txt";

#[test]
fn names_are_taken_in_any_case() {
    let folder = folder();
    folder.ok(format!(
        "convert items.tamis a.bin --to Guava {ITEMS} --to-funnel TEXT --to-charset utf8"
    ));
    folder.ok(format!("convert items.tamis b.bin --to GUAVA {ITEMS} --funnel Text --charset UTF8"));
    assert_eq!(folder.read("a.bin"), folder.read("b.bin"));
    let check = "check -c a.bin items.txt --format gUAVA --funnel text --charset";
    folder.prints(format!("{check} Utf-8"), "1000\n");
    folder.ok(format!("convert items.tamis c.dump --to RedisBloom {ITEMS}"));
    folder.prints("check -c --format RedisBloom c.dump items.txt", "1000\n");
}

#[test]
fn all_that_is_missing_is_named_at_once() {
    let folder = folder();
    folder.write("bits", [1, 2, 3]);
    folder.refused(
        "info --format redis-bitmap bits",
        "bits: reading it requires the planned number of items and the planned rate: give --items-planned N \
         --rate-planned R\n",
    );
    folder.refused(
        "check --format redis-bitmap --rate-planned 0.1 bits items.txt",
        "requires the planned number of items and the type of its items: give --items-planned N --funnel (bytes, hex,",
    );
    let convert = format!("convert --format redis-bitmap bits a.db {ITEMS}");
    folder.refused_with(
        &convert,
        &[
            "--items-planned N --rate-planned R --funnel (",
            "a.db: the type of its items is unknown",
            "give --to-version V",
        ],
    );
    let plan = "--items-planned 1000 --rate-planned 0.01";
    for part in [
        "bits: the type of its items is unknown",
        "a.db: the type of its items is unknown",
        "give --to-version V",
    ] {
        folder.refused(format!("{convert} {plan}"), part);
    }
    folder.ok(format!("convert items.tamis a.guava {ITEMS} --funnel bytes"));
    let moved = "convert --funnel bytes a.guava b.bits --to redis-bitmaps";
    folder.refused_with(moved, &["give --to-items N", "give --to-rate R"]);
}

#[test]
fn a_conversion_names_all_that_is_missing_on_both_sides() {
    let folder = folder();
    folder.write("bits", [1, 2, 3]);
    folder.ok(format!("convert items.tamis a.guava {ITEMS} --funnel bytes"));
    folder.refused_with(
        "convert bits out",
        &[
            "bits: not a Tamis filter",
            "out: the file name does not determine the format: give --to",
        ],
    );
    folder.refused_with(
        "convert bits out --to cassandra --items missing.txt",
        &[
            "bits: not a Tamis",
            "out: the type of its items is unknown",
            "give --to-version V",
            "missing.txt: no such",
        ],
    );
    folder.refused_with(
        format!("convert --format redis-bitmap bits a.db --funnel text {ITEMS} --to-funnel text"),
        &[
            "give --items-planned N --rate-planned R",
            "funnel text needs a charset: add --charset (",
            "funnel text needs a charset: add --to-charset (",
            "give --to-version V",
        ],
    );
    folder.refused_with(
        "convert a.guava b.bits --to redis-bitmaps",
        &["give --to-items N", "give --to-rate R", "give --funnel ("],
    );
    folder.refused_with(
        format!("convert a.guava b.roaring {ITEMS} --to-funnel text --to-version 31 --key k --md5"),
        &[
            "a.guava: the type of its items is unknown",
            "needs a charset",
            "--key has no effect",
            "--md5 has no",
        ],
    );
    folder.refused_with(
        "convert --funnel bytes a.guava b.guava --to-items 5 --to-rate 0.1 --to-version 31 --union",
        &[
            "--to-items has no effect",
            "--to-rate has no effect",
            "--to-version 31",
            "--union has no",
        ],
    );
    folder.refused(
        format!("convert items.tamis b.guava {ITEMS} --to-funnel bytes --to-charset GBK"),
        "--to-charset is for --to-funnel text or twice, not for bytes",
    );
    folder.refused(
        format!("convert items.tamis b.guava {ITEMS} --to-funnel bytes --charset GBK"),
        "--charset is for text",
    );
}

#[test]
fn an_option_without_effect_is_refused_by_name() {
    let folder = folder();
    folder.ok(format!("convert items.tamis a.guava {ITEMS} --funnel bytes"));
    folder.ok(format!("convert items.tamis a.dump --to redisbloom {ITEMS}"));
    folder.write("more.txt", "one more\n");
    let hash = "00".repeat(32);
    for option in [
        "--md5",
        "--key k",
        "--column c",
        "--items-planned 5",
        "--rate-planned 0.1",
        &format!("--block-hash {hash}"),
        "--format-version 2",
        "--funnel bytes",
        "--funnel text",
        "--charset UTF-8",
        "--format guava",
    ] {
        let name = option.split(' ').next().unwrap();
        for line in [
            "info items.tamis",
            "check items.tamis more.txt",
            "add items.tamis more.txt",
            "merge items.tamis items.tamis -o b.tamis",
        ] {
            folder.refused(format!("{line} {option}"), &format!("{name} has no effect here: "));
        }
    }
    folder.refused(
        "info items.tamis --md5 --key k",
        "--key has no effect here: it names a key in a Redis snapshot or in commands that load a filter; formats that take it: java-bitmap, \
         redis-bits, redis-bitmap, redisbloom, redisson; --md5 has no effect here: it is for pybloom-live, pybloom-live-scalable; leave \
         them out",
    );
    folder.refused(
        format!("convert items.tamis - --to cassandra {ITEMS}"),
        "standard output: the version is missing: give --to-version V",
    );
    folder.refused("info a.dump --key a", "--key has no effect");
    folder.refused("add a.dump more.txt --key a", "--key has no effect");
    folder.refused("info a.guava --format-version 14", "--format-version has no effect");
    // An option has an effect if it has one on any of the files.
    folder.ok("info items.tamis a.guava --rate-planned 0.5");
    folder.ok("check -c -f items.tamis -f a.guava more.txt --funnel bytes -v");
    // The option has an effect on OUT.
    folder.ok(format!("convert items.tamis b.dump --to redisbloom {ITEMS} --key k"));
    folder.refused(
        format!("convert items.tamis b.redisbits --to redis-bits {ITEMS} --key k --force"),
        "--key has no effect",
    );
    folder.ok("info b.dump --key k");
    folder.refused("info b.dump --key other", "no command loads this key");
}

#[test]
fn a_version_fits_the_name_and_the_bytes() {
    let folder = folder();
    folder.build("numbers", "1\n2\n");
    let items = "--items numbers.txt --to-funnel unsigned";
    folder.refused(
        format!("convert numbers.tamis a.roaring64 {items} --to-version 32"),
        "a.roaring64 is a name for version 64",
    );
    folder.ok(format!("convert numbers.tamis a.roaring64 {items} --to-version 64"));
    folder.ok(format!("convert items.tamis a.spark {ITEMS} --to-funnel bytes --to-version 2"));
    folder.ok("info a.spark --format-version 2");
    folder.refused("info a.spark --format-version 1", "expected 2, as in the file");
}

#[test]
fn a_version_that_would_change_nothing_is_refused() {
    let folder = folder();
    folder.ok(format!("convert items.tamis a.guava {ITEMS} --funnel bytes --to-version 31"));
    folder.refused(
        "convert a.guava b.guava --to-version 14",
        "--to-version 14: versions of guava differ only in how filters are planned",
    );
    folder.refused("info a.guava --format-version 14", "--format-version has no effect here");
}

#[test]
fn a_roaring_file_has_64_bits_by_its_name() {
    let folder = Folder::new();
    folder.build("numbers", "1\n2\n");
    let items = "--items numbers.txt --to-funnel unsigned";
    folder.ok(format!("convert numbers.tamis a.roaring {items}"));
    folder.ok(format!("convert numbers.tamis a.roaring64 {items}"));
    folder.ok(format!("convert numbers.tamis b.roaring {items} --to-version 64"));
    assert_eq!(folder.read("a.roaring64")[..8], 1_u64.to_le_bytes());
    assert_eq!(folder.read("a.roaring64"), folder.read("b.roaring"));
    assert_eq!(folder.read("a.roaring64")[12..], folder.read("a.roaring"));
    folder.shows("info a.roaring64", &["64 bits"]);
    folder.prints("check -c a.roaring64 numbers.txt", "2\n");
}

#[test]
fn a_dump_of_a_string_is_read_as_its_bits() {
    let folder = Folder::new();
    let dump = RedisValue::String(vec![0b0100_0000, 0x0a]).to_payload();
    folder.write("numbers.txt", "1\n2\n12\n14\n");
    folder.write("ids.dump", &dump);
    folder.write("raw.dump", [&dump[..], b"\n"].concat());
    for name in ["ids.dump", "raw.dump"] {
        folder.refused(
            format!("info {name}"),
            "the DUMP of a Redis string, whose bits may have several formats: give one with --format (redis-bits,",
        );
        folder.prints(format!("check --format redis-bits {name} numbers.txt"), "1\n12\n14\n");
        // Without the rest of the payload, the bits are not a DUMP.
        folder.refused(
            format!("add --format redis-bits {name} numbers.txt"),
            "copy the filter to a separate file",
        );
        folder.ok(format!("convert --format redis-bits {name} {name}.redisbits"));
        assert_eq!(folder.read(&format!("{name}.redisbits")), [0b0100_0000, 0x0a]);
    }
}

#[test]
fn a_line_feed_behind_bits_is_named() {
    let folder = Folder::new();
    folder.write("ids", [0b0100_0000, b'\n']);
    folder
        .run("info --format redis-bits ids")
        .warns(0, "ids: its last byte is a line feed, and is read as bits");
    folder.write("ids", [0b0100_0000]);
    assert_eq!(folder.run("info --format redis-bits ids").stderr, "");
}

#[test]
fn all_keys_of_a_snapshot_are_listed() {
    let folder = Folder::new();
    let bytes = folder.copy_golden("redis_rdb/lfu.rdb", "dump.rdb");
    let keys = tamis_formats::Rdb::new(&bytes).unwrap().entries().count();
    let text = folder.ok("info --keys dump.rdb");
    assert_eq!(text.lines().count(), 2 + keys, "{text}");
    assert!(text.lines().any(|line| line.trim_start() == "0         string  bitmap"), "{text}");
    let json = folder.json("info --keys --json dump.rdb");
    let rows = json.as_array().unwrap();
    assert_eq!(rows.len(), keys);
    assert!(rows.iter().any(|it| it["key"] == "bitmap" && it["type"] == "string"), "{json}");
    folder.write("text", "a\n");
    folder.refused("info --keys text", "not a snapshot of Redis");
}

#[test]
fn a_list_of_keys_takes_no_decode_option() {
    let folder = Folder::new();
    folder.copy_golden("redis_rdb/lfu.rdb", "dump.rdb");
    let hash = "00".repeat(32);
    for option in [
        "--format redis-bits",
        "--funnel text",
        "--charset GBK",
        "--items-planned 5",
        "--rate-planned 0.1",
        "--key k",
        "--column c",
        "--format-version 2",
        &format!("--block-hash {hash}"),
        "--md5",
    ] {
        let name = option.split(' ').next().unwrap();
        folder.refused(
            format!("info --keys dump.rdb {option}"),
            &format!("info --keys lists all keys and decodes no filter: leave out {name}\n"),
        );
    }
    folder.refused(
        "info --keys dump.rdb --funnel text --charset GBK",
        "decodes no filter: leave out --funnel, --charset\n",
    );
}

#[test]
fn a_key_is_refused_with_the_formats_that_read_one() {
    let folder = folder();
    folder.ok(format!(
        "convert items.tamis dump.rdb --to redis-bitmaps {ITEMS} --to-items 1000 --to-rate 0.1"
    ));
    folder.refused(
        "info --format redis-bitmaps dump.rdb --items-planned 1000 --rate-planned 0.1 --key k",
        "dump.rdb: --key has no effect here: it names a key in a Redis snapshot or in commands that load a filter; formats that take it: java-bitmap, \
         redis-bits, redis-bitmap, redisbloom, redisson; leave it out\n",
    );
}

#[test]
fn filters_of_hadoop_rocksdb_leveldb_and_bitcoin_are_built_from_items() {
    let folder = folder();
    let hash = "00".repeat(32);
    for (to, options) in [
        ("hadoop", "--funnel bytes".to_owned()),
        ("hadoop-counting", "--funnel bytes".to_owned()),
        ("hadoop-dynamic", "--funnel bytes".to_owned()),
        ("rocksdb", String::new()),
        ("leveldb", String::new()),
        ("hive", "--to-funnel text --to-charset utf8".to_owned()),
        ("orc", "--to-funnel orc-bytes".to_owned()),
        ("stream-lib", String::new()),
        ("bits-and-blooms", String::new()),
        ("bits-and-blooms-json", String::new()),
        ("bloom-filters", String::new()),
        ("abloom", "--to-funnel abloom-bytes".to_owned()),
        ("bip158", format!("--to-funnel bytes --block-hash {hash}")),
    ] {
        folder.ok(format!("convert items.tamis out --to {to} {ITEMS} {options}"));
        let of_items = options.replace("--to-", "--");
        let ask = if to == "bip158" || of_items.contains("--funnel") { &of_items } else { "" };
        folder.prints(format!("check -c --format {to} {ask} out items.txt"), "1000\n");
    }
    folder.refused(
        format!("convert items.tamis out --to bip158 {ITEMS}"),
        "the hash of its block is missing: give --block-hash HASH",
    );
}

#[test]
fn a_java_object_is_named_by_its_class() {
    let folder = Folder::new();
    for (class, words) in [
        (
            "cn.hutool.bloomfilter.BitMapBloomFilter",
            "Hutool's BitMapBloomFilter, serialized by Java",
        ),
        ("com.example.BloomFilter", "an object of the class com.example.BloomFilter"),
    ] {
        let start = b"\xac\xed\0\x05sr\0";
        let object = [&start[..], &[class.len() as u8], class.as_bytes(), &[0; 90]].concat();
        folder.write("object.ser", &object);
        folder.refused("info object.ser", words);
    }
}

#[test]
fn integers_are_read_from_a_key_of_a_snapshot() {
    let folder = Folder::new();
    folder.copy_golden("redis_rdb/lfu.rdb", "s.rdb");
    folder.write("items", "6\n7\n1000\n1001\n");
    // Java numbers the bits of each byte in the opposite order: 7 is 0 there, and 1000 is 1007.
    folder.write("java-items", "0\n7\n1000\n1007\n");
    let bits = "--format redis-bits";
    folder.prints(format!("check s.rdb items {bits} --key bitmap"), "7\n1000\n");
    let java = "--format java-bitmap --key bitmap";
    folder.prints(format!("check s.rdb java-items {java}"), "0\n1007\n");
    for format in ["redis-bits", "java-bitmap"] {
        folder.refused(
            format!("info s.rdb --format {format} --key nosuch"),
            "the snapshot has no key \"nosuch\"",
        );
        folder.refused(format!("info s.rdb --format {format} --key list"), "is a list");
        folder.refused(format!("info s.rdb --format {format}"), "give --key KEY (");
    }
    // The command would lose the other keys of the snapshot.
    folder.refused(format!("add s.rdb {bits} --key bitmap items"), "holds more than this filter");
    folder.ok(format!("convert s.rdb a.redisbits {bits} --key bitmap"));
    let dump = RedisValue::String(folder.read("a.redisbits")).to_payload();
    folder.write("a.dump", dump);
    folder.prints(format!("check a.dump items {bits}"), "7\n1000\n");
    folder.prints("check a.dump java-items --format java-bitmap", "0\n1007\n");
}

#[test]
fn the_type_of_a_key_chooses_the_format_in_a_snapshot() {
    let folder = Folder::new();
    folder.copy_golden("redis_rdb/valkey.rdb", "valkey.rdb");
    folder.shows("info --key bloom valkey.rdb", &["redisbloom"]);
    folder.refused("info --key missing valkey.rdb", "several formats match its bytes");
}
