//! The list of all files, as HTML and as JSON.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::numbers::HumanEstimate;
use crate::commands::publish::catalog::{Catalog, Unavailable};
use crate::commands::publish::published_file::PublishedFile;

/// The names of all files, and the files that can be downloaded.
pub type Listed<'c> = Vec<(&'c str, Result<Arc<PublishedFile>, Unavailable>)>;

/// Returns the current state of all files.
pub async fn list(catalog: &Catalog) -> Listed<'_> {
    let mut listed = Vec::new();
    for name in catalog.names() {
        listed.push((name, catalog.get(name).await));
    }
    listed
}

/// Returns the list as JSON.
pub fn json(listed: &Listed<'_>) -> Value {
    let file = |(name, file): &(&str, Result<Arc<PublishedFile>, Unavailable>)| match file {
        Ok(file) => json!({
            "name": name,
            "path": path(name),
            "bytes": file.stamp.len_bytes,
            "format": file.format,
            "kind": file.kind,
            "items": file.items,
            "etag": file.tag.to_string(),
        }),
        Err(_) => json!({ "name": name, "path": path(name), "etag": null }),
    };
    listed.iter().map(file).collect()
}

/// Returns the list as an HTML page.
pub fn html(listed: &Listed<'_>) -> String {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Filters</title>\n\
         <style>body{font:16px sans-serif;margin:2em}td,th{padding:.2em 1em;text-align:left}\
         td.n{text-align:right}</style></head><body>\n<h1>Filters</h1>\n<table>\n<tr><th>name\
         <th>format<th>kind<th>size<th>items<th>ETag\n",
    );
    for (name, file) in listed {
        // Writing to a `String` cannot fail.
        _ = write!(page, "<tr><td><a href=\"{}\">{}</a>", path(name), escape(name));
        match file {
            Ok(file) => {
                let size = ByteSize { bytes: file.stamp.len_bytes };
                let items = file.items.map(|items| format!("about {}", HumanEstimate(items)));
                let (format, kind, items) = (file.format, &file.kind, items.unwrap_or_default());
                _ = write!(
                    page,
                    "<td>{format}<td>{kind}<td class=n>{size}<td class=n>{items}<td><code>{}</code>",
                    file.tag
                );
            }
            Err(_) => page.push_str("<td colspan=5>not available at the moment"),
        }
        page.push('\n');
    }
    page.push_str("</table>\n<p><a href=\"/index.json\">JSON</a></body></html>\n");
    page
}

fn path(name: &str) -> String {
    format!(
        "/filters/{}",
        percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC)
    )
    .replace("%2E", ".")
    .replace("%2D", "-")
    .replace("%5F", "_")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless_in_the_page() {
        let listed = vec![("a<b>\" .tamis", Err(Unavailable::Later))];
        let page = html(&listed);
        assert!(page.contains("href=\"/filters/a%3Cb%3E%22%20.tamis\">a&lt;b&gt;&quot; .tamis<"));
        assert_eq!(json(&listed)[0]["path"], "/filters/a%3Cb%3E%22%20.tamis");
    }
}
