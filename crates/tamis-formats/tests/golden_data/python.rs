//! The golden files of Python's formats.

use tamis_formats::DecodeOptions;

use super::{Golden, base64, hex, json, list};

pub(super) fn pybloom_live() -> Vec<Golden> {
    let golden = json("python/pybloom_live.json");
    let file = |format, case: &serde_json::Value| {
        let (name, bytes) = (case["error_rate"].to_string(), base64(case.get("file_base64")?));
        Some(Golden { format, name, bytes, options: DecodeOptions::default() })
    };
    let single = list(&golden["filters"]).iter().chain(list(&golden["more"]["filters"]));
    let scalable = list(&golden["more"]["scalable"]).iter().chain([&golden["scalable"]]);
    single
        .filter_map(|case| file("pybloom-live", case))
        .chain(scalable.filter_map(|case| file("pybloom-live-scalable", case)))
        .collect()
}

pub(super) fn pybloomfiltermmap() -> Vec<Golden> {
    let golden = json("python/pybloomfiltermmap.json");
    list(&golden["filters"])
        .iter()
        .map(|case| Golden {
            format: "pybloomfiltermmap",
            name: case["error_rate"].to_string(),
            bytes: base64(&case["file_base64"]),
            options: DecodeOptions::default(),
        })
        .collect()
}

pub(super) fn rbloom() -> Vec<Golden> {
    list(&json("python/rbloom.json"))
        .iter()
        .map(|case| Golden {
            format: "rbloom",
            name: case["fpr"].to_string(),
            bytes: hex(&case["saved_hex"]),
            options: DecodeOptions::default(),
        })
        .collect()
}
