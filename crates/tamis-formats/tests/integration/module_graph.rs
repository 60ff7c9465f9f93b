//! No two modules of the crate import each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The names of the modules, each with the text of its file. The path `a/b.rs` is the module `a::b`.
fn modules() -> BTreeMap<String, String> {
    fn read(folder: &Path, prefix: &str, modules: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if path.is_dir() {
                read(&path, &format!("{prefix}{name}::"), modules);
            } else if name == "mod" {
                modules.insert(
                    prefix.trim_end_matches("::").into(),
                    fs::read_to_string(path).unwrap(),
                );
            } else if name != "lib" {
                modules.insert(format!("{prefix}{name}"), fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut modules = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut modules);
    modules
}

/// Returns the paths that a `use` tree names, such as `a::b` and `a::c` of `a::{b, c}`.
fn paths(tree: &str) -> Vec<String> {
    let Some((prefix, rest)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap().trim().into()];
    };
    let inner = &rest[..rest.rfind('}').expect("braces are closed")];
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts.flat_map(paths).map(|path| format!("{}{path}", prefix.trim())).collect()
}

/// Returns the modules that the file of `module` imports from: `use crate::`, and `use` of a module that the file declares.
fn imports(module: &str, text: &str, modules: &BTreeMap<String, String>) -> BTreeSet<String> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap()).collect();
    let code = code.join("\n");
    assert!(
        !text.lines().any(|line| line.starts_with("use super::")),
        "{module}: import by `crate::`"
    );
    let mut found = BTreeSet::new();
    for statement in code.split(';') {
        let statement = statement.trim_start();
        let statement =
            statement.rsplit_once("\n\n").map_or(statement, |(_, last)| last.trim_start());
        let uses = ["use ", "pub use ", "pub(crate) use "];
        let Some(tree) = uses.iter().find_map(|it| statement.strip_prefix(it)) else { continue };
        for path in paths(tree) {
            let path = match path.strip_prefix("crate::") {
                Some(path) => path.to_owned(),
                None => format!("{module}::{path}"),
            };
            // The longest part of the path that is a module.
            let parts: Vec<&str> = path.split("::").collect();
            let prefixes = (1..=parts.len()).rev().map(|len| parts[..len].join("::"));
            found.extend(prefixes.into_iter().find(|prefix| modules.contains_key(prefix)));
        }
    }
    found.remove(module);
    found
}

/// Returns a path of modules from `path`'s last one back to itself, if there is one.
fn circle<'g>(
    graph: &'g BTreeMap<String, BTreeSet<String>>,
    path: &mut Vec<&'g str>,
    done: &mut BTreeSet<&'g str>,
) -> Option<String> {
    let last = *path.last().expect("a module");
    for next in &graph[last] {
        if let Some(at) = path.iter().position(|it| it == next) {
            return Some(format!("{} -> {next}", path[at..].join(" -> ")));
        }
        if !done.contains(next.as_str()) {
            path.push(next);
            let found = circle(graph, path, done);
            path.pop();
            if found.is_some() {
                return found;
            }
        }
    }
    done.insert(last);
    None
}

#[test]
fn no_modules_import_each_other() {
    let modules = modules();
    assert!(modules.contains_key("format_table") && modules.contains_key("bip37::rule"));
    let graph: BTreeMap<_, _> =
        modules.iter().map(|(name, text)| (name.clone(), imports(name, text, &modules))).collect();
    assert!(graph["format_table"].contains("guava"), "imports are found");
    assert!(graph["guava"].contains("reader"), "imports are found");
    let mut done = BTreeSet::new();
    for module in graph.keys() {
        if let Some(circle) = circle(&graph, &mut vec![module], &mut done) {
            panic!(
                "modules import each other: {circle}; move the part that both need to a file of its own"
            );
        }
    }
}

#[test]
fn only_the_table_knows_all_formats() {
    let modules = modules();
    let importers = modules
        .iter()
        .filter(|(name, text)| imports(name, text, &modules).contains("format_table"));
    assert_eq!(importers.map(|(name, _)| name).collect::<Vec<_>>(), [] as [&str; 0]);
}
