//! The sources of records, and records of any length.

use std::io::Write;
use std::process::Stdio;

use tamis_testing::CommandExt as _;

use crate::program::{Folder, gzip};

use super::program::{command, dedup, first_occurrences, lines};

#[test]
fn packed_inputs_are_known_by_their_first_bytes() {
    let text = lines(50_000, 20_000);
    let expected = first_occurrences(&text);
    let (one, two) = text.split_at(400_001);
    let packed = [
        gzip(&text),
        [gzip(one), gzip(two)].concat(),
        zstd::encode_all(&text[..], 1).unwrap(),
        [zstd::encode_all(one, 1).unwrap(), zstd::encode_all(two, 1).unwrap()].concat(),
    ];
    for packed in packed {
        for threads in ["--threads=1", "--threads=2"] {
            assert!(dedup([threads], &packed).quietly() == expected);
        }
    }
}

const XZ: &[u8] = include_bytes!("../../packed/numbers.xz");
const BZIP2: &[u8] = include_bytes!("../../packed/numbers.bz2");

#[test]
fn xz_and_bzip2_are_unpacked() {
    let numbers: String = (1..=4000).map(|n| format!("{n}\n")).collect();
    for packed in [XZ, BZIP2] {
        for threads in ["--threads=1", "--threads=3"] {
            assert!(dedup([threads], packed).quietly() == numbers.as_bytes());
        }
    }
    for (format, packed) in [("xz", XZ), ("bzip2", BZIP2)] {
        for len in (12..packed.len()).step_by(97) {
            let run = dedup([""; 0], &packed[..len]);
            // A file that ends between two compressed streams is complete.
            assert!(run.status == 2 || run.stdout.ends_with(b"\n2000\n"), "{format} cut at {len}");
            assert!(run.status == 0 || run.stderr.contains(format), "{}", run.stderr);
        }
        let mut corrupt = packed.to_vec();
        corrupt[packed.len() / 3] ^= 0x55;
        dedup([""; 0], &corrupt).fails_with(format);
    }
    // A dictionary of 64 MiB (xz -9) exceeds the memory.
    dedup(["--memory=20M"], XZ).fails_with("decompressing the xz data takes more memory");
}

/// The window of the frame takes 256 MiB.
fn wide_zstd(folder: &Folder) {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(28).unwrap();
    encoder.write_all(b"1\n2\n1\n").unwrap();
    folder.write("wide.zst", encoder.finish().unwrap());
}

#[test]
fn the_memory_that_a_wide_zstd_window_is_said_to_need_is_enough() {
    let folder = Folder::new();
    wide_zstd(&folder);
    folder.write("one", "1\n");
    for command in ["dedup wide.zst", "ints count wide.zst", "build -o out.tamis wide.zst"] {
        for memory in ["", " --memory 100M"] {
            let stderr = folder.run(format!("{command}{memory}")).stderr;
            let (_, after) = stderr.split_once("use --memory ").expect(&stderr);
            let figure = after.split(' ').next().unwrap();
            folder.run(format!("{command} --memory {figure}")).has_status(0);
        }
    }
    // This command has no option --memory.
    folder.ok("build -o one.tamis one");
    let words = "the limit is 128 MiB: decompress them with 'zstd -dc";
    folder.run("check one.tamis wide.zst").warns(2, words);
    folder.refused("dedup --unpack gzip one", "one: is not gzip data: leave out --unpack gzip");
}

#[test]
fn records_that_end_with_nul_are_unpacked_on_request() {
    let packed = gzip(b"a\0b\0a\0");
    assert_eq!(dedup(["-0", "--unpack=gzip"], &packed).quietly(), b"a\0b\0");
    assert_eq!(dedup(["-0", "--unpack=auto"], &packed).quietly(), b"a\0b\0");
    let run = dedup(["-0"], &packed);
    assert!(run.status == 0 && run.stderr.contains("add --unpack gzip"), "{run:?}");
    assert_eq!(dedup(["--unpack=no"], b"\x1f\x8b\n").quietly(), b"\x1f\x8b\n");
    dedup(["--unpack=xz"], &packed).fails_with("xz");
}

#[test]
fn a_byte_order_mark_makes_no_difference() {
    let text = b"\xef\xbb\xbfa\nb\na\n";
    for threads in ["--threads=1", "--threads=2"] {
        assert_eq!(dedup([threads], text).quietly(), b"a\nb\n");
        assert_eq!(dedup([threads], &gzip(text)).quietly(), b"a\nb\n");
    }
    let json = b"\xef\xbb\xbf{\"a\":1}\n{\"a\": 1}\n";
    assert_eq!(dedup(["--json=/a"], json).quietly(), b"{\"a\":1}\n");
    assert_eq!(dedup(["-0"], b"\xef\xbb\xbfa\0a\0").quietly(), b"\xef\xbb\xbfa\0a\0");
}

#[test]
fn cut_and_corrupt_packed_inputs_fail_and_leave_the_output() {
    let text = lines(50_000, 20_000);
    let folder = Folder::new();
    folder.write("out", "old");
    for (format, packed) in
        [("gzip", gzip(&text)), ("zstd", zstd::encode_all(&text[..], 1).unwrap())]
    {
        let mut corrupt = packed.clone();
        corrupt[packed.len() / 2..].iter_mut().take(20).for_each(|byte| *byte ^= 0x55);
        for bad in [&packed[..packed.len() - 5], &packed[..packed.len() / 2], &corrupt] {
            folder.write("in", bad);
            folder.refused("dedup in -o out", format);
        }
    }
}

#[test]
fn a_record_may_be_longer_than_any_buffer() {
    let long = vec![b'x'; 64 << 20];
    let text = [&long[..], b"y\n", &long, b"y\nshort\n", &long, b"z"].concat();
    let expected = [&long[..], b"y\nshort\n", &long, b"z\n"].concat();
    assert!(dedup([""; 0], &text).quietly() == expected);
    assert!(dedup(["--full"], &text).quietly() == expected);
}

#[test]
fn a_slow_source_is_passed_on_at_once() {
    for threads in ["--threads=1", "--threads=2"] {
        let mut command = command([threads]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).start();
        let (mut source, mut sink) = (child.stdin.take().unwrap(), child.stdout_lines());
        for line in ["a", "b"] {
            writeln!(source, "{line}").unwrap();
            assert_eq!(sink.next().as_deref(), Some(line));
        }
        // One read returns more lines than a batch can hold.
        source.write_all(&[&b"a\n".repeat(30_000)[..], b"c\n"].concat()).unwrap();
        assert_eq!(sink.next().as_deref(), Some("c"));
        drop(source);
        assert!(child.wait().success());
    }
}
