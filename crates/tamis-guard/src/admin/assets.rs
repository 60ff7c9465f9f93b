//! The files of the console page, which are embedded in the program.

use tamis_console::{Asset, SHARED};

/// Creates an asset from a script in the folder `console`.
macro_rules! script {
    ($name:literal) => {
        Asset::js(concat!("/console/", $name), include_bytes!(concat!("../../console/", $name)))
    };
}

static ASSETS: [Asset; 9] = [
    Asset::html("/", include_bytes!("../../console/index.html")),
    Asset::css("/console/guard.css", include_bytes!("../../console/guard.css")),
    script!("main.js"),
    script!("history.js"),
    script!("tiles.js"),
    script!("sets.js"),
    script!("routes.js"),
    script!("demo.js"),
    script!("translations.js"),
];

/// Returns the file at a path.
pub(super) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().chain(&SHARED).find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_refers_to_no_other_host() {
        for asset in &ASSETS {
            assert!(asset.is_self_contained(), "{}", asset.path);
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
