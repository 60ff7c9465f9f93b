//! The programs of `docs/library.md` are at most as long as the same programs with other libraries.

use std::path::Path;

/// Compiles the programs of a rival.
macro_rules! compile {
    ($rival:literal: $($program:ident),*) => { $(
        #[allow(dead_code)]
        mod $program {
            include!(concat!(
                env!("CARGO_MANIFEST_DIR"), "/programs/", $rival, "/", stringify!($program), ".rs"
            ));
        }
    )* };
}

mod with_fastbloom {
    compile!("fastbloom": all_processors, crawler, serde, web_handler, wrong_sizes);
}

mod with_bloomfilter {
    compile!("bloomfilter": all_processors, crawler, web_handler, wrong_sizes);
}

/// The title of each row of the page's table, with the file of Tamis' program.
const PROGRAMS: [(&str, &str); 12] = [
    ("web handler", "examples/web_handler.rs"),
    ("crawler", "examples/crawler.rs"),
    ("any filter", "examples/generic.rs"),
    ("window", "examples/window.rs"),
    ("counts", "examples/counting.rs"),
    ("all processors", "examples/all_processors.rs"),
    ("serde", "examples/serde.rs"),
    ("no_std", "examples/no_std/src/lib.rs"),
    ("mapped file", "examples/mapped_file.rs"),
    ("wrong sizes", "examples/wrong_sizes.rs"),
    ("guard", "crates/tamis-guard/examples/products.rs"),
    ("Redis", "examples/redis.rs"),
];

/// Programs that compile, but do not do what the program of Tamis does.
const WITHOUT_THE_FEATURE: [&str; 1] = ["fastbloom/wrong_sizes.rs"];

/// Counts the lines of a program that are neither empty nor comments. Returns `None` if there is no such program.
fn lines(file: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(file).ok()?;
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    Some(text.lines().filter(is_code).count())
}

#[test]
fn no_program_is_longer_than_the_shortest_of_a_rival_and_the_page_states_the_lengths() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(root.join("docs/library.md")).unwrap();
    for (title, file) in PROGRAMS {
        let file = root.join(file);
        let ours = lines(&file).unwrap_or_else(|| panic!("{} is missing", file.display()));
        let name = if title == "no_std" { "no_std.rs".as_ref() } else { file.file_name().unwrap() };
        let rivals = ["fastbloom", "bloomfilter"].map(|rival| {
            let program = Path::new(rival).join(name);
            let has_feature = !WITHOUT_THE_FEATURE.iter().any(|it| program == Path::new(it));
            lines(&root.join("bench/programs").join(program)).filter(|_| has_feature)
        });
        for theirs in rivals.into_iter().flatten() {
            assert!(ours <= theirs, "{title}: {ours} lines, and a rival has {theirs}");
        }
        let [fastbloom, bloomfilter] =
            rivals.map(|it| it.map_or("–".into(), |it| it.to_string()));
        let row = format!("| {title} | {ours} | {fastbloom} | {bloomfilter} |");
        assert!(page.contains(&row), "docs/library.md lacks this row:\n{row}");
    }
}
