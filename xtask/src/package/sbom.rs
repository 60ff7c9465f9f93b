//! Writes a software bill of materials (SBOM) in the format CycloneDX 1.6.

use serde_json::{Value, json};

use crate::package::dependencies::Dependency;
use crate::package::version::Release;

/// Returns the SBOM of a release as JSON: each crate with its version, licence and checksum, and the crates that the
/// crate uses.
pub fn json(release: &Release, dependencies: &[Dependency]) -> String {
    let component = |it: &Dependency| {
        let mut component = json!({
            "type": "library",
            "bom-ref": it.url(),
            "name": it.name,
            "version": it.version,
            "purl": it.url(),
            "licenses": [{"expression": it.licence}],
        });
        if let Some(checksum) = &it.checksum {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    };
    let edges = |it: &Dependency| {
        let uses: Vec<String> = it.uses.iter().map(|&at| dependencies[at].url()).collect();
        json!({"ref": it.url(), "dependsOn": uses})
    };
    let sbom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": release.date(),
            "component": {
                "type": "application",
                "bom-ref": "tamis",
                "name": "tamis",
                "version": release.version,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            },
        },
        "components": dependencies.iter().map(component).collect::<Vec<Value>>(),
        "dependencies": dependencies.iter().map(edges).collect::<Vec<Value>>(),
    });
    let text = serde_json::to_string_pretty(&sbom).expect("the values of the SBOM are JSON");
    format!("{text}\n")
}
