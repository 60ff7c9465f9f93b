//! No two modules of a crate import each other, directly or through others.
//!
//! A module is a file: `a/b.rs` is the module `a::b`. It imports the modules that its `use`
//! statements and its paths with `crate::` name, and the modules that it declares and names in
//! paths. A name that `lib.rs` exports stands for its module. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The crates whose modules form no circle.
const CRATES: [&str; 16] = [
    "tamis",
    "tamis-redisbloom",
    "tamis-bitcoin",
    "tamis-formats",
    "tamis-guard",
    "tamis-module",
    "tamis-redis",
    "tamis-resp",
    "tamis-commands",
    "tamis-console",
    "tamis-python",
    "tamis-server",
    "tamis-sources",
    "tamis-state",
    "tamis-cli",
    "xtask",
];

/// The code of each module, without comments and tests.
type Modules = BTreeMap<String, String>;

/// The modules that each module imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

fn modules(name: &str) -> Modules {
    fn read(folder: &Path, prefix: &str, modules: &mut Modules) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if path.is_dir() {
                read(&path, &format!("{prefix}{name}::"), modules);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let name = match name {
                    "lib" if prefix.is_empty() => String::new(),
                    // The library of `tamis-cli` lies beside its program.
                    "main" if prefix.is_empty() && !folder.join("lib.rs").exists() => String::new(),
                    name => format!("{prefix}{name}"),
                };
                modules.insert(name, code(&fs::read_to_string(path).unwrap()));
            }
        }
    }
    let mut modules = Modules::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let parent = if name == "xtask" { root.to_owned() } else { root.join("crates") };
    let source = parent.join(name).join("src");
    read(&source, "", &mut modules);
    // A file of tests is declared under `cfg(test)`.
    let is_test = |name: &str| {
        let mut parents = name.match_indices("::").map(|(at, _)| &name[..at]).chain([name]);
        parents.any(|name| {
            let (parent, child) = name.rsplit_once("::").unwrap_or(("", name));
            let declared = modules.get(parent).map(|code| declares_test(code, child));
            declared.unwrap_or(false)
        })
    };
    let tests: Vec<String> = modules.keys().filter(|name| is_test(name)).cloned().collect();
    modules.retain(|name, _| !tests.contains(name));
    modules
}

/// Returns the lines of a file before its tests, without comments.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    let is_start = |pair: &[&str]| {
        let starts = |mark| pair[1].strip_prefix(mark).is_some_and(|it| it == "mod tests {");
        pair[0] == "#[cfg(test)]" && VISIBILITIES.into_iter().any(starts)
    };
    let end = lines.windows(2).position(is_start).unwrap_or(lines.len());
    lines[..end].join("\n").replace("r#gen", "gen")
}

fn declares_test(code: &str, child: &str) -> bool {
    let declares = |mark| code.contains(&format!("#[cfg(test)]\n{mark}mod {child};"));
    VISIBILITIES.into_iter().any(declares)
}

/// The visibilities of a module of tests.
const VISIBILITIES: [&str; 3] = ["", "pub(crate) ", "pub(super) "];

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

/// Returns the path that starts at byte `start`.
fn path_at(code: &str, start: usize) -> &str {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let rest = &code[start..];
    &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
}

/// Tests whether a path starts at byte `at`, instead of ending another path.
fn is_path_start(code: &str, at: usize) -> bool {
    !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
}

/// Returns the paths that the `use` statements of a file name.
fn used(code: &str) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for statement in code.split(';') {
        let uses = ["use ", "pub use ", "pub(crate) use ", "pub(super) use "];
        let tree = statement.lines().enumerate().find_map(|(i, line)| {
            let start = uses.iter().find_map(|it| line.strip_prefix(it))?;
            let rest = statement.lines().skip(i + 1);
            Some(std::iter::once(start).chain(rest).collect::<Vec<_>>().join(" "))
        });
        named.extend(tree.map_or_else(Vec::new, |tree| paths(&tree)));
    }
    named
}

/// Returns the modules that the code of `module` imports from.
fn imports(module: &str, code: &str, modules: &Modules) -> BTreeSet<String> {
    let is_super = |line: &str| line.starts_with("use super::");
    assert!(!code.lines().any(is_super), "{module}: import by `crate::`");
    let mut named = used(code);
    for (at, _) in code.match_indices("crate::") {
        let path = path_at(code, at);
        // A path before a brace is part of a `use` tree.
        if is_path_start(code, at) && !code[..at].ends_with("pub(in ") && !path.ends_with("::") {
            named.push(path.to_owned());
        }
    }
    for child in modules.keys().filter_map(|it| it.strip_prefix(&format!("{module}::"))) {
        let path = format!("{child}::");
        let mut uses = code.match_indices(&path);
        if !child.contains("::") && uses.any(|(at, _)| is_path_start(code, at)) {
            named.push(child.to_owned());
        }
    }
    let exports = used(&modules[""]);
    let mut found = BTreeSet::new();
    for path in named {
        let path = match path.strip_prefix("crate::") {
            Some(path) => {
                let end = path.find("::").unwrap_or(path.len());
                let exported =
                    exports.iter().find(|it| it.ends_with(&format!("::{}", &path[..end])));
                exported.map_or(path, String::as_str).to_owned()
            }
            None => format!("{module}::{path}"),
        };
        // The longest part of the path that is a module.
        let parts: Vec<&str> = path.split("::").collect();
        let prefixes = (1..=parts.len()).rev().map(|len| parts[..len].join("::"));
        found.extend(prefixes.into_iter().find(|prefix| modules.contains_key(prefix)));
    }
    found.remove(module);
    found
}

fn graph(modules: &Modules) -> Graph {
    let imports_of =
        |(name, code): (&String, &String)| (name.clone(), imports(name, code, modules));
    modules.iter().map(imports_of).collect()
}

/// Returns a path of modules from `path`'s last one back to itself, if there is one.
fn circle<'g>(
    graph: &'g Graph,
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
    for name in CRATES {
        let graph = graph(&modules(name));
        assert!(!graph.is_empty(), "{name} has modules");
        let mut done = BTreeSet::new();
        for module in graph.keys() {
            if let Some(circle) = circle(&graph, &mut vec![module], &mut done) {
                panic!(
                    "{name}: modules import each other: {circle}; move the part that both need to a file of its own"
                );
            }
        }
    }
}

#[test]
fn imports_are_found() {
    let formats = graph(&modules("tamis-formats"));
    assert!(formats.contains_key("formats::bip37::rule"));
    assert!(formats["format_table"].contains("formats::guava"));
    assert!(formats["formats::guava"].contains("encoding"));
    let server = modules("tamis-server");
    assert!(!server.contains_key("keyspace::tests") && !server.contains_key("persistence::model"));
    let server = graph(&server);
    assert!(server["handlers"].contains("handlers::acl"), "a path in the code");
    assert!(server["keyspace"].contains("keyspace::access"), "a path from the own module");
}

#[test]
fn only_the_table_knows_all_formats() {
    let graph = graph(&modules("tamis-formats"));
    let importers = graph.iter().filter(|(_, imports)| imports.contains("format_table"));
    assert_eq!(importers.map(|(name, _)| name).collect::<Vec<_>>(), [] as [&str; 0]);
}
