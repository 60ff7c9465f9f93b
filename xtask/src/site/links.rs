//! Checks each link of the built pages: the file and the anchor must exist, and a page loads files only from the site.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::site::html::{Page, Reference};
use crate::site::same::files;
use crate::tools::{Outcome, read_text};

/// Checks all pages and styles of a site.
///
/// # Errors
///
/// Returns a line for each wrong link.
pub fn check(site: &Path) -> Outcome {
    let files = files(site)?;
    let with_extension = |extension| {
        files.iter().filter(move |name| name.extension().is_some_and(|it| it == extension))
    };
    let mut pages = BTreeMap::new();
    for name in with_extension("html") {
        pages.insert(name.clone(), Page::parse(&read_text(&site.join(name))?));
    }
    if pages.is_empty() {
        return Err(format!("{} has no pages", site.display()));
    }
    let mut wrong = Vec::new();
    for (name, page) in &pages {
        for reference in &page.references {
            let exists = |path: &Path| files.contains(path);
            if let Err(why) = follow(name, reference, exists, &pages) {
                wrong.push(format!("{}: {}: {why}", name.display(), reference.target));
            }
        }
    }
    for name in with_extension("css") {
        if loads_other_host(&read_text(&site.join(name))?) {
            wrong.push(format!("{}: the style loads a file from another host", name.display()));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Follows a reference of the page `name`. Returns the reason if the reference is wrong.
fn follow(
    name: &Path,
    reference: &Reference,
    exists: impl Fn(&Path) -> bool,
    pages: &BTreeMap<PathBuf, Page>,
) -> Outcome {
    let Reference { element, target } = reference;
    let has_host = target.starts_with("//") || target.contains("://");
    if has_host || target.starts_with("mailto:") || target.starts_with("data:") {
        let is_loaded = has_host && element != "a";
        return if is_loaded {
            Err("the page loads a file from another host".into())
        } else {
            Ok(())
        };
    }
    let (address, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match address.split('?').next().unwrap_or_default() {
        "" => name.to_owned(),
        path if path.starts_with('/') => {
            return Err("the link depends on the path of the site".into());
        }
        path => resolve(name, path).ok_or("the link leaves the site")?,
    };
    if !exists(&path) {
        return Err(format!("the site has no {}", path.display()));
    }
    match pages.get(&path) {
        Some(page) if !anchor.is_empty() && !page.anchors.contains(anchor) => {
            Err(format!("{} has no such anchor", path.display()))
        }
        _ => Ok(()),
    }
}

/// Returns the file at an address that is relative to a page. The file of a folder is its `index.html`. Returns `None`
/// if the address is outside the site.
fn resolve(name: &Path, address: &str) -> Option<PathBuf> {
    let mut path = name.parent()?.to_owned();
    for part in Path::new(address).components() {
        match part {
            Component::ParentDir => path.pop().then_some(())?,
            Component::Normal(part) => path.push(part),
            _ => {}
        }
    }
    let is_folder = address.ends_with('/') || address.ends_with('.');
    Some(if is_folder { path.join("index.html") } else { path })
}

/// Tests whether a style loads a file from another host.
fn loads_other_host(style: &str) -> bool {
    let addresses = style.split("url(").skip(1).chain(style.split("@import").skip(1));
    let mut addresses = addresses.map(|it| it.trim_start_matches(['"', '\'', ' ']));
    addresses.any(|it| it.starts_with("http") || it.starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows a link of the page `docs/guard/index.html` in a site with this page and a home page.
    fn follow_in(element: &str, target: &str) -> Outcome {
        let guard = PathBuf::from("docs/guard/index.html");
        let page = |html| Page::parse(html);
        let pages = BTreeMap::from([
            (guard.clone(), page(r#"<h2 id="kinds">"#)),
            (PathBuf::from("index.html"), page(r#"<h2 id="start">"#)),
        ]);
        let reference = Reference { element: element.to_owned(), target: target.to_owned() };
        follow(&guard, &reference, |path| pages.contains_key(path), &pages)
    }

    #[test]
    fn links_to_pages_and_anchors_of_the_site_are_right() {
        for target in ["", "./", "#kinds", "../guard/#kinds", "../..", "../../#start", "../../?q=1"]
        {
            assert_eq!(follow_in("a", target), Ok(()), "{target}");
        }
        assert_eq!(follow_in("a", "https://example.org/#x"), Ok(()));
        assert_eq!(follow_in("img", "data:image/png;base64,"), Ok(()));
    }

    #[test]
    fn dead_links_and_files_of_other_hosts_are_found() {
        for target in ["#start", "../../#kinds", "../guard", "../x/", "../../../", "/"] {
            assert!(follow_in("a", target).is_err(), "{target}");
        }
        for target in ["https://example.org/a.js", "//example.org/a.js"] {
            assert!(follow_in("script", target).is_err(), "{target}");
        }
    }

    #[test]
    fn a_style_may_load_files_of_the_site() {
        assert!(!loads_other_host(
            "a { mask: url(data:image/svg+xml;x) } b { src: url('x.woff') }"
        ));
        assert!(loads_other_host("@import \"https://example.org/a.css\";"));
        assert!(loads_other_host("a { src: url(//example.org/x.woff) }"));
    }
}
