//! Lists the crates that a program contains, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::steps::Steps;
use crate::tools::{cargo, read_text, root};
use crate::zig;

/// A crate in a program.
pub struct Dependency {
    pub name: String,
    pub version: String,
    /// The licence as an SPDX expression.
    pub licence: String,
    /// The folder with the sources.
    pub folder: PathBuf,
    /// The SHA-256 of the download, or `None` for a crate of this workspace.
    pub checksum: Option<String>,
    /// The crates that this crate uses, as positions in the list of dependencies.
    pub uses: Vec<usize>,
}

impl Dependency {
    /// Tests whether the crate belongs to this workspace.
    pub fn is_own(&self) -> bool {
        self.checksum.is_none()
    }

    /// Returns the crate as a package URL, such as `pkg:cargo/serde@1.0.0`.
    pub fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// Returns the crates `packages` of the workspace and the crates on which they depend, sorted by name. The list has no
/// crate that only runs during the build.
///
/// # Errors
///
/// Returns why cargo failed.
pub fn of(steps: &Steps, packages: &[&str]) -> Result<Vec<Dependency>, String> {
    let metadata = metadata(steps, &["--filter-platform", &zig::triple()])?;
    let lock = read_text(&root().join("Cargo.lock"))?;
    Ok(contained(&metadata, &checksums(&lock), packages))
}

/// Returns the output of `cargo metadata` with these options.
///
/// # Errors
///
/// Returns why cargo failed.
pub fn metadata(steps: &Steps, options: &[&str]) -> Result<Value, String> {
    let mut metadata = cargo(&["metadata", "--locked", "--format-version", "1"]);
    let text = steps.finish_quietly(metadata.args(options))?;
    // cargo may print warnings before the JSON.
    let json = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// Returns the crates of a dependency graph that a program contains.
fn contained(
    metadata: &Value,
    checksums: &BTreeMap<(&str, &str), &str>,
    packages: &[&str],
) -> Vec<Dependency> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let by_id = |items: &Value| -> BTreeMap<String, Value> {
        list(items).into_iter().map(|item| (text(&item["id"]), item)).collect()
    };
    let (crates, nodes) = (by_id(&metadata["packages"]), by_id(&metadata["resolve"]["nodes"]));
    let is_start = |package: &Value| {
        package["source"].is_null() && packages.contains(&text(&package["name"]).as_str())
    };
    let mut open: Vec<String> =
        crates.iter().filter(|(_, package)| is_start(package)).map(|(id, _)| id.clone()).collect();
    let mut uses = BTreeMap::new();
    while let Some(id) = open.pop() {
        let is_normal =
            |edge: &Value| list(&edge["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
        let edges: BTreeSet<String> = list(&nodes[&id]["deps"])
            .iter()
            .filter(|edge| is_normal(edge))
            .map(|edge| text(&edge["pkg"]))
            .collect();
        open.extend(edges.iter().filter(|id| !uses.contains_key(*id)).cloned());
        uses.insert(id, edges);
    }
    let mut ids: Vec<&String> = uses.keys().collect();
    ids.sort_by_key(|id| (text(&crates[*id]["name"]), text(&crates[*id]["version"])));
    let position =
        |id: &String| ids.iter().position(|other| *other == id).expect("a reached crate");
    let dependency = |id: &String| {
        let package = &crates[id];
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let manifest = text(&package["manifest_path"]);
        let checksum = checksums.get(&(name.as_str(), version.as_str()));
        Dependency {
            licence: licence(&text(&package["license"])),
            folder: Path::new(&manifest).parent().unwrap_or(root()).to_owned(),
            checksum: checksum.map(|sum| (*sum).to_owned()),
            uses: uses[id].iter().map(position).collect(),
            name,
            version,
        }
    };
    ids.iter().map(|id| dependency(id)).collect()
}

/// Returns a licence as an SPDX expression. Old crates write `MIT/Apache-2.0`.
fn licence(text: &str) -> String {
    text.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

/// Returns a string of the JSON, or an empty string.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the checksums in a file `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let packages = lock.split("[[package]]").skip(1);
    let entry = |package| {
        let key = (field(package, "name")?, field(package, "version")?);
        Some((key, field(package, "checksum")?))
    };
    packages.filter_map(entry).collect()
}

/// Returns the string of a field of a package in `Cargo.lock`.
fn field<'a>(package: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = package.split_once(&format!("\n{name} = \""))?;
    Some(value.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"b\"\nversion = \"1.2.0\"\nsource = \"registry\"\n\
        checksum = \"abc\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";

    #[test]
    fn the_lock_file_has_a_checksum_for_each_download() {
        assert_eq!(checksums(LOCK), BTreeMap::from([(("b", "1.2.0"), "abc")]));
    }

    #[test]
    fn only_normal_dependencies_are_contained() {
        let package = |id: &str, source: Value| {
            serde_json::json!({
                "id": id, "name": id, "version": "1.2.0", "source": source,
                "license": "MIT/Apache-2.0", "manifest_path": format!("/crates/{id}/Cargo.toml"),
            })
        };
        let edge =
            |id: &str, kind: Value| serde_json::json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let registry = || Value::from("registry");
        let metadata = serde_json::json!({
            "packages": [package("own", Value::Null), package("b", registry()), package("c", registry())],
            "resolve": {"nodes": [
                {"id": "own", "deps": [edge("b", Value::Null), edge("c", Value::from("build"))]},
                {"id": "b", "deps": []}, {"id": "c", "deps": []},
            ]},
        });
        let found = contained(&metadata, &checksums(LOCK), &["own"]);
        let names: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.is_own())).collect();
        assert_eq!(names, [("b", false), ("own", true)]);
        assert_eq!(found[1].uses, [0]);
        assert_eq!(
            (found[0].licence.as_str(), found[0].url().as_str()),
            ("MIT OR Apache-2.0", "pkg:cargo/b@1.2.0")
        );
    }
}
