//! The files of the page, embedded in the program.

use xxhash_rust::xxh3::xxh3_64;

/// A file of the page.
pub(super) struct Asset {
    path: &'static str,
    pub kind: &'static str,
    pub bytes: &'static [u8],
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($path:literal, $kind:expr) => {
        Asset {
            path: concat!("/console/", $path),
            kind: $kind,
            bytes: include_bytes!(concat!("../../console/", $path)),
        }
    };
}

static ASSETS: [Asset; 19] = [
    Asset { path: "/", ..asset!("index.html", HTML) },
    asset!("style.css", CSS),
    asset!("icon.svg", SVG),
    asset!("theme.js", JS),
    asset!("main.js", JS),
    asset!("server.js", JS),
    asset!("settings.js", JS),
    asset!("address.js", JS),
    asset!("page.js", JS),
    asset!("translations.js", JS),
    asset!("numbers.js", JS),
    asset!("chart.js", JS),
    asset!("overview.js", JS),
    asset!("trends.js", JS),
    asset!("filter.js", JS),
    asset!("forecast.js", JS),
    asset!("sizing.js", JS),
    asset!("login.js", JS),
    asset!("nothing.js", JS),
];

/// Returns the file at a path.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

impl Asset {
    /// Returns the entity tag of the file.
    pub fn tag(&self) -> String {
        format!("\"{:016x}\"", xxh3_64(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_refers_to_no_other_host() {
        for asset in &ASSETS {
            let text = str::from_utf8(asset.bytes).unwrap();
            for (at, _) in text.match_indices("//") {
                let before = text[..at].chars().next_back();
                let is_svg = text[at..].starts_with("//www.w3.org/2000/svg");
                assert!(before != Some(':') || is_svg, "{}: {}", asset.path, &text[at..][..40]);
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/console");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        for name in files.filter(|name| name != "index.html") {
            assert!(find(&format!("/console/{}", name.to_str().unwrap())).is_some(), "{name:?}");
        }
        assert!(find("/").is_some() && find("/console/../Cargo.toml").is_none());
    }
}
