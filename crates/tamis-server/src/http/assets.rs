//! The files of the page, embedded in the program.

use tamis_console::{Asset, SHARED};

/// Creates the asset of a script in the folder `console`.
macro_rules! script {
    ($name:literal) => {
        Asset::js(concat!("/console/", $name), include_bytes!(concat!("../../console/", $name)))
    };
}

static ASSETS: [Asset; 13] = [
    Asset::html("/", include_bytes!("../../console/index.html")),
    script!("main.js"),
    script!("server.js"),
    script!("address.js"),
    script!("page.js"),
    script!("translations.js"),
    script!("overview.js"),
    script!("trends.js"),
    script!("filter.js"),
    script!("forecast.js"),
    script!("sizing.js"),
    script!("login.js"),
    script!("nothing.js"),
];

/// Returns the embedded file with the path `path`.
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
