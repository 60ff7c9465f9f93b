//! Reads the anchors and the references of an HTML page.

use std::collections::BTreeSet;

/// The anchors and the references of a page.
#[derive(Debug, Default)]
pub struct Page {
    /// The values of the attributes `id` and `name`.
    pub anchors: BTreeSet<String>,
    pub references: Vec<Reference>,
}

/// The value of an attribute that names another file.
#[derive(Debug, PartialEq, Eq)]
pub struct Reference {
    /// The name of the element, such as `a` or `img`.
    pub element: String,
    /// The target, without entities and percent encoding.
    pub target: String,
}

/// The attributes whose value is the address of a file.
const ADDRESSES: [&str; 5] = ["href", "src", "data", "poster", "action"];

impl Page {
    /// Parses a page. The parser expects the well-formed pages of the builder, in which text has `&lt;` in place of `<`.
    pub fn parse(html: &str) -> Self {
        let mut page = Self::default();
        let mut rest = html;
        while let Some((_, tail)) = rest.split_once('<') {
            rest = match tail.strip_prefix("!--") {
                Some(comment) => comment.split_once("-->").map_or("", |(_, after)| after),
                None => page.element(tail),
            };
        }
        page
    }

    /// Reads the element after `<`, and returns the text after the element.
    fn element<'h>(&mut self, text: &'h str) -> &'h str {
        let end = text.find(|c: char| c.is_whitespace() || c == '>').unwrap_or(text.len());
        let (element, mut rest) = text.split_at(end);
        while let Some((name, value, tail)) = attribute(rest) {
            rest = tail;
            if name == "id" || name == "name" {
                self.anchors.insert(value);
            } else if ADDRESSES.contains(&name) {
                let element = element.to_owned();
                self.references.push(Reference { element, target: value });
            }
        }
        // A script and a style may contain any text.
        match element {
            "script" | "style" => rest.find(&format!("</{element}")).map_or("", |at| &rest[at..]),
            _ => rest,
        }
    }
}

/// Reads the next attribute of an element: the name, the decoded value, and the text after the attribute. Returns `None`
/// at the end of the element.
fn attribute(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
    let end = text.find(|c: char| c.is_whitespace() || "=>/".contains(c))?;
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return None;
    }
    let Some(value) = rest.strip_prefix('=') else { return Some((name, String::new(), rest)) };
    let quote = value.chars().next().filter(|c| "'\"".contains(*c));
    let (value, rest) = match quote {
        Some(quote) => value[1..].split_once(quote)?,
        None => value.split_at(value.find(|c: char| c.is_whitespace() || c == '>')?),
    };
    Some((name, decode(value), rest))
}

/// Replaces the entities and the percent encoding of an address.
fn decode(value: &str) -> String {
    let value = value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    let value = value.replace("&#39;", "'").replace("&amp;", "&").into_bytes();
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_slice();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).filter(|_| *first == b'%');
        let byte = hex.and_then(|it| u8::from_str_radix(str::from_utf8(it).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_and_references_are_read() {
        let html = r##"<!doctype html><!-- <a href="no"> --><body dir=ltr hidden>
            <h1 id="top">a &lt; b</h1><a class=x href='b/?q=1&amp;r=2#%E5%8E%BB%E9%87%8D'>c</a>
            <script>if (1<2) "<a href='no'>"</script><img alt="a > b" src=d.png><input name="on"/>"##;
        let page = Page::parse(html);
        assert_eq!(page.anchors, BTreeSet::from(["top", "on"].map(str::to_owned)));
        let of = |(element, target): (&str, &str)| Reference {
            element: element.to_owned(),
            target: target.to_owned(),
        };
        assert_eq!(page.references, [("a", "b/?q=1&r=2#去重"), ("img", "d.png")].map(of));
    }

    #[test]
    fn a_page_that_ends_early_is_read() {
        for html in ["<", "<a", "<a href", "<a href=", "<a href='x", "<!-- ", "<script>", "%"] {
            assert!(Page::parse(html).references.is_empty(), "{html}");
        }
        assert_eq!(decode("%"), "%");
        assert_eq!(decode("%zz%41"), "%zzA");
    }
}
