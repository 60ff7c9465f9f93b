//! Lists the crates for crates.io in the order of their publication, from `cargo metadata`.

use serde_json::Value;

use crate::links;
use crate::package::dependencies::metadata;
use crate::steps::Steps;

/// A crate of this workspace that is published on crates.io.
#[derive(Clone, Debug)]
pub struct Crate {
    pub name: String,
    pub version: String,
    /// The crates of this workspace that must be published before this crate, with the required versions.
    uses: Vec<(String, String)>,
    /// The fields that crates.io requires or shows, but that are missing in the manifest.
    missing: Vec<&'static str>,
    /// The text of the README, or an empty text if there is none.
    readme: String,
}

impl Crate {
    /// Returns the name of the package, such as `tamis-0.1.0.crate`.
    pub fn file_name(&self) -> String {
        format!("{}-{}.crate", self.name, self.version)
    }

    /// Returns the problems of the manifest and of the README.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> =
            self.missing.iter().map(|field| format!("{} has no {field}", self.name)).collect();
        for (name, requirement) in &self.uses {
            if *requirement != format!("^{}", self.version) {
                problems.push(format!("{} requires {name} {requirement}", self.name));
            }
        }
        // crates.io resolves relative links only if the manifest names a public repository.
        let dead = links::links(&self.readme);
        problems.extend(dead.map(|link| {
            format!("the README of {} leads to {link}, which crates.io does not have", self.name)
        }));
        problems
    }
}

/// Returns the published crates. Each crate comes after the crates that it uses.
///
/// # Errors
///
/// Returns why cargo failed, or the crates that use each other or a crate that is not published.
pub fn published(steps: &Steps) -> Result<Vec<Crate>, String> {
    let metadata = metadata(steps, &["--no-deps"])?;
    in_order(metadata["packages"].as_array().into_iter().flatten().filter_map(parse).collect())
}

/// Parses a package of `cargo metadata`. Returns `None` if the crate is not published.
fn parse(package: &Value) -> Option<Crate> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if package["publish"].as_array().is_some_and(Vec::is_empty) {
        return None;
    }
    let is_missing = |field: &str| match &package[field] {
        Value::Array(values) => values.is_empty(),
        value => value.as_str().is_none_or(str::is_empty),
    };
    let fields = ["description", "license", "readme", "keywords", "categories", "rust_version"];
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    // cargo removes a development dependency without a version from the published manifest.
    let is_used = |it: &&Value| it["path"].is_string() && (it["kind"] != "dev" || it["req"] != "*");
    let folder = text(&package["manifest_path"]).replace("Cargo.toml", "");
    let readme = std::fs::read_to_string(folder + &text(&package["readme"]));
    Some(Crate {
        name: text(&package["name"]),
        version: text(&package["version"]),
        uses: dependencies
            .filter(is_used)
            .map(|it| (text(&it["name"]), text(&it["req"])))
            .collect(),
        missing: fields.into_iter().filter(|field| is_missing(field)).collect(),
        readme: readme.unwrap_or_default(),
    })
}

/// Sorts the crates by name, but moves each crate behind the crates that it uses.
fn in_order(mut open: Vec<Crate>) -> Result<Vec<Crate>, String> {
    open.sort_by(|one, other| one.name.cmp(&other.name));
    let mut sorted: Vec<Crate> = Vec::new();
    while !open.is_empty() {
        let is_ready = |it: &Crate| {
            it.uses.iter().all(|(name, _)| sorted.iter().any(|before| before.name == *name))
        };
        let Some(ready) = open.iter().position(is_ready) else {
            let names: Vec<_> = open.iter().map(|it| it.name.as_str()).collect();
            let names = names.join(", ");
            return Err(format!(
                "no order of publication: {names} use each other, or a private crate"
            ));
        };
        sorted.push(open.remove(ready));
    }
    Ok(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, publish: &Value, uses: &[(&str, Value, &str)]) -> Value {
        let dependency = |(name, kind, req): &(&str, Value, &str)| json!({"name": name, "kind": kind, "req": req, "path": "/crates"});
        json!({
            "name": name, "version": "0.1.0", "publish": publish, "description": "a crate",
            "license": "MIT", "readme": "README.md", "keywords": ["a"], "categories": [],
            "rust_version": "1.95", "manifest_path": "/crates/Cargo.toml",
            "dependencies": uses.iter().map(dependency).collect::<Vec<_>>(),
        })
    }

    fn crates(packages: &[Value]) -> Result<Vec<Crate>, String> {
        in_order(packages.iter().filter_map(parse).collect())
    }

    #[test]
    fn each_crate_comes_after_the_crates_that_it_uses() {
        let dev = || Value::from("dev");
        let sorted = crates(&[
            package("a", &Value::Null, &[("z", Value::Null, "^0.1.0"), ("private", dev(), "*")]),
            package("m", &Value::Null, &[("a", dev(), "^0.1.0")]),
            package("z", &Value::Null, &[]),
            package("private", &json!([]), &[]),
        ]);
        let names: Vec<_> = sorted.unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["z", "a", "m"]);
    }

    #[test]
    fn a_use_of_a_private_crate_is_an_error() {
        let why = crates(&[package("a", &Value::Null, &[("private", Value::Null, "^0.1.0")])]);
        assert!(why.unwrap_err().contains("no order of publication: a use"));
    }

    #[test]
    fn missing_fields_and_other_versions_are_problems() {
        let crates = crates(&[
            package("a", &Value::Null, &[]),
            package("b", &Value::Null, &[("a", Value::Null, "^0.0.9")]),
        ]);
        let problems = crates.unwrap()[1].problems();
        assert_eq!(problems, ["b has no categories", "b requires a ^0.0.9"]);
    }
}
