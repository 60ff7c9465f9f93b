//! Contains the files that the web consoles of the server and the guard share, and the HTTP headers
//! of all console responses.
//!
//! A console is a set of [`Asset`]s under `/console/`, without a build step. Each console must
//! provide a file `translations.js` with the texts in English and Chinese. The shared scripts
//! import `translations.js`, which must contain the texts `chart.keys`, `chart.none` and `time.*`.
#![forbid(unsafe_code)]

use xxhash_rust::xxh3::xxh3_64;

/// A file of a console.
#[derive(Debug)]
pub struct Asset {
    /// The path of the file in an HTTP request.
    pub path: &'static str,
    /// The value of the header `Content-Type`.
    pub kind: &'static str,
    /// The content of the file.
    pub bytes: &'static [u8],
}

impl Asset {
    /// Creates a page.
    #[must_use]
    pub const fn html(path: &'static str, bytes: &'static [u8]) -> Self {
        Self { path, kind: "text/html; charset=utf-8", bytes }
    }

    /// Creates a style sheet.
    #[must_use]
    pub const fn css(path: &'static str, bytes: &'static [u8]) -> Self {
        Self { path, kind: "text/css; charset=utf-8", bytes }
    }

    /// Creates a script.
    #[must_use]
    pub const fn js(path: &'static str, bytes: &'static [u8]) -> Self {
        Self { path, kind: "text/javascript; charset=utf-8", bytes }
    }

    /// Creates an image.
    #[must_use]
    pub const fn svg(path: &'static str, bytes: &'static [u8]) -> Self {
        Self { path, kind: "image/svg+xml", bytes }
    }

    /// Returns the entity tag (`ETag`) of the file, with quotes.
    #[must_use]
    pub fn tag(&self) -> String {
        format!("\"{:016x}\"", xxh3_64(self.bytes))
    }

    /// Tests whether the value of `If-None-Match` contains the entity tag of the file.
    #[must_use]
    pub fn has_tag(&self, if_none_match: &str) -> bool {
        let tag = self.tag();
        if_none_match.split(',').any(|known| known.trim() == tag)
    }

    /// Tests whether the file contains no address of another host.
    #[must_use]
    pub fn is_self_contained(&self) -> bool {
        let text = String::from_utf8_lossy(self.bytes);
        text.match_indices("//").all(|(at, _)| {
            let before = text[..at].chars().next_back();
            before != Some(':') || text[at..].starts_with("//www.w3.org/2000/svg")
        })
    }
}

/// The files that all consoles share.
pub static SHARED: [Asset; 7] = [
    Asset::css("/console/style.css", include_bytes!("../files/style.css")),
    Asset::svg("/console/icon.svg", include_bytes!("../files/icon.svg")),
    Asset::js("/console/theme.js", include_bytes!("../files/theme.js")),
    Asset::js("/console/settings.js", include_bytes!("../files/settings.js")),
    Asset::js("/console/dom.js", include_bytes!("../files/dom.js")),
    Asset::js("/console/numbers.js", include_bytes!("../files/numbers.js")),
    Asset::js("/console/chart.js", include_bytes!("../files/chart.js")),
];

/// The headers of every HTTP response of a console. The headers forbid resources from other hosts,
/// inline resources and frames around the page.
pub const HEADERS: [(&str, &str); 5] = [
    (
        "content-security-policy",
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("x-frame-options", "DENY"),
    ("cross-origin-resource-policy", "same-origin"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shared_file_is_in_the_list_and_refers_to_no_other_host() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/files");
        for file in std::fs::read_dir(folder).unwrap() {
            let path = format!("/console/{}", file.unwrap().file_name().to_str().unwrap());
            let asset = SHARED.iter().find(|asset| asset.path == path);
            assert!(asset.is_some_and(Asset::is_self_contained), "{path}");
        }
    }

    #[test]
    fn a_tag_is_found_among_several() {
        let asset = &SHARED[0];
        assert!(asset.has_tag(&format!("\"a\", {}", asset.tag())));
        assert!(!asset.has_tag("\"a\"") && !asset.has_tag(""));
    }

    #[test]
    fn an_address_of_another_host_is_found() {
        let script = Asset::js("/a.js", b"fetch('https://a.example/')");
        assert!(!script.is_self_contained());
        assert!(Asset::js("/a.js", b"// a comment").is_self_contained());
    }
}
