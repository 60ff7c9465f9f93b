//! Checks the compose files, the manifests of Kubernetes, the SBOM and the workflows of a hosted CI against their public
//! schemas.

use std::path::Path;
use std::process::Command;

use crate::package::packager::Packager;
use crate::steps::Steps;
use crate::tools::{Outcome, entries, root};

/// Checks all files that have a public schema. `folder` is the folder with the SBOM.
pub fn check(steps: &Steps, packager: &Packager, folder: &Path) -> Outcome {
    let files = root().join("packaging");
    let mut compose = schema(packager, "vendor.compose-spec");
    for name in ["guard", "redis-module"] {
        compose.arg(files.join("compose").join(name).join("compose.yaml"));
    }
    steps.run("schema of the compose files", &mut compose)?;
    let mut kubernetes = Command::new(packager.tools.join("kubernetes-validate"));
    // The schemas of Kubernetes do not contain the PodMonitor of the Prometheus Operator.
    kubernetes.args(["--strict", "--quiet"]);
    for name in ["serve.yaml", "guard.yaml"] {
        kubernetes.arg(files.join("kubernetes").join(name));
    }
    steps.run("schemas of the Kubernetes manifests", &mut kubernetes)?;
    let mut sbom = Command::new(packager.tools.join("python"));
    sbom.args(["-c", CHECK_SBOM]).arg(folder.join(format!("{}.cdx.json", packager.release.name())));
    steps.run("schema of the SBOM", &mut sbom)?;
    let mut workflows = schema(packager, "vendor.github-workflows");
    workflows.args(entries(&root().join(".github/workflows"))?);
    steps.run("schema of the workflows", &mut workflows)
}

/// Checks an SBOM against the schema of CycloneDX.
const CHECK_SBOM: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(error) if error else 0)
";

/// Returns a command that checks files against a schema that `check-jsonschema` contains.
fn schema(packager: &Packager, name: &str) -> Command {
    let mut check = Command::new(packager.tools.join("check-jsonschema"));
    check.args(["--builtin-schema", name]);
    check
}
