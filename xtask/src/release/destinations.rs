//! Lists the destinations of a release: the files that each destination receives, and the commands that upload the files.
//!
//! The list is for one CPU. The workflow of the release runs the commands for both CPUs.

use std::env::consts::ARCH;

use crate::package::crates::Crate;
use crate::package::linux::PACKAGES as LINUX;
use crate::package::npm;
use crate::tools::debian_architecture;

/// The folders with the files, in the root of the project.
pub const PACKAGES: &str = "target/packages";
pub const CRATES: &str = "target/packages/crates";
pub const WHEELS: &str = "target/wheels";

/// A place that receives files.
pub struct Destination {
    pub name: &'static str,
    /// The paths of the files, in the root of the project.
    pub files: Vec<String>,
    /// The commands that upload the files.
    pub commands: Vec<String>,
}

/// Returns the destinations of a version. The crates are in the order of their publication.
pub fn of(version: &str, crates: &[Crate]) -> Vec<Destination> {
    let registry = format!("docker://ghcr.io/OWNER/tamis:{version}");
    let image = format!("{PACKAGES}/tamis-{version}-image-{}.tar", debian_architecture());
    let npm = npm_files(version);
    let names: String = crates.iter().map(|it| format!(" -p {}", it.name)).collect();
    vec![
        Destination {
            name: "crates.io, in this order",
            files: crates.iter().map(|it| format!("{CRATES}/{}", it.file_name())).collect(),
            commands: vec![format!("cargo publish --locked --no-verify{names}")],
        },
        Destination {
            name: "PyPI",
            files: vec![
                format!(
                    "{WHEELS}/tamis-{version}-cp311-abi3-manylinux2014_{ARCH}.manylinux_2_17_{ARCH}.whl"
                ),
                format!("{WHEELS}/tamis-{version}.tar.gz"),
            ],
            commands: vec![format!("twine upload {WHEELS}/*")],
        },
        Destination {
            name: "npm, in this order",
            commands: npm.iter().map(|it| format!("npm publish --access public {it}")).collect(),
            files: npm,
        },
        Destination {
            name: "a registry of container images",
            commands: vec![format!(
                "skopeo copy oci-archive:{image}:{version} {registry}-{}",
                debian_architecture()
            )],
            files: vec![image.clone()],
        },
        Destination {
            name: "the page of the release",
            files: page(version).into_iter().chain(npm_files(version)).chain([image]).collect(),
            commands: vec![format!(
                "gh release create v{version} --verify-tag --notes \"CHANGELOG.md lists the changes.\" {PACKAGES}/*.* {PACKAGES}/SHA256SUMS"
            )],
        },
    ]
}

/// Returns the files that are only on the page of the release.
fn page(version: &str) -> Vec<String> {
    let name = format!("{PACKAGES}/tamis-{version}-{ARCH}-linux-gnu");
    let mut files = vec![
        format!("{name}.tar.gz"),
        format!("{name}-debug.tar.gz"),
        format!("{name}.cdx.json"),
        format!("{PACKAGES}/tamis-docs-{version}-image-{}.tar", debian_architecture()),
    ];
    for package in LINUX {
        files.push(format!("{PACKAGES}/{package}_{version}_{}.deb", debian_architecture()));
        files.push(format!("{PACKAGES}/{package}-{version}-1.{ARCH}.rpm"));
    }
    files.push(format!("{PACKAGES}/SHA256SUMS"));
    files
}

/// Returns the npm packages in the order of their publication. The package `tamis` depends on the package with the
/// program, so the package with the program is the first.
fn npm_files(version: &str) -> Vec<String> {
    let cpu = npm::cpu();
    vec![
        format!("{PACKAGES}/tamis-filter-linux-{cpu}-{version}.tgz"),
        format!("{PACKAGES}/tamis-{version}.tgz"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::crates;
    use crate::steps::Steps;
    use crate::tools::root;

    #[test]
    fn the_workflow_of_the_release_runs_the_commands() {
        let steps = Steps::new(std::time::Duration::from_secs(60));
        let destinations = of("$VERSION", &crates::published(&steps).unwrap());
        let workflow =
            std::fs::read_to_string(root().join(".github/workflows/release.yml")).unwrap();
        let workflow = workflow.split_whitespace().collect::<Vec<_>>().join(" ");
        // The workflow uploads to PyPI with the action of PyPI, which has a short-lived token.
        for destination in destinations.iter().filter(|it| it.name != "PyPI") {
            for command in &destination.commands {
                let command = command.replace("OWNER", "$OWNER");
                assert!(workflow.contains(&command), "release.yml does not run: {command}");
            }
        }
    }

    #[test]
    fn a_file_has_the_version_in_its_name() {
        let names = of("1.2.3", &[]).into_iter().flat_map(|it| it.files);
        let others: Vec<_> = names.filter(|it| !it.contains("1.2.3")).collect();
        assert_eq!(others, ["target/packages/SHA256SUMS"]);
    }
}
