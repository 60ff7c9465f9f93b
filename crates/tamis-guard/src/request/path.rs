//! Path templates, such as `/pms/productInfo/{id}`.
//!
//! Programs interpret the same path differently. An attacker could bypass the guard with a path that only the upstream
//! service accepts. To prevent a bypass, the guard matches a path in the most tolerant way. The guard ignores empty
//! segments, resolves `.` and `..`, and ignores the case of letters in the template. Programs also interpret `;v=1`,
//! `%2F` and `..` differently. A [`Reading`] describes one interpretation of a path.
//!
//! A tolerant match is wrong for a path that the guard must not check, because the tolerance would exempt paths of
//! other requests. For these paths, [`PathTemplate::matches_exactly`] accepts a single spelling.

mod literal;
mod mixed;
mod reading;
mod segment;

use std::borrow::Cow;
use std::fmt;

use smallvec::SmallVec;

pub(crate) use crate::request::path::literal::Comparison;
pub(crate) use crate::request::path::mixed::Split;
pub(crate) use crate::request::path::reading::{Ambiguities, Reading};
use crate::request::path::reading::{
    decoded, has_one_reading, is_plain, meaningful_segments, with_decoded_slashes,
    without_parameters,
};
use crate::request::path::segment::Segment;

/// A path template with names at the positions of ids.
///
/// `{name}` stands for one segment, and `*` at the end for any number of segments. All other segments are literal. The
/// case of letters, empty segments and a slash at the end have no effect. A literal segment may be percent-encoded,
/// such as `%3Alatest` for the segment `:latest`.
///
/// A segment may have other text besides a name, such as `{id}.json` and `item-{id}.html`, and two names, such as
/// `{id}-{slug}`. Programs split `7-red-shoes` differently: at the first dash, at the last dash, or in their own code. A
/// name beside another name therefore has several candidates. The candidates of `{id}` in `{id}-{slug}` are `7` and
/// `7-red`. An id passes if one of its candidates passes.
///
/// # Examples
///
/// ```
/// use tamis_guard::PathTemplate;
///
/// let template: PathTemplate = "/shops/{shop}/products/{id}".parse()?;
/// let values = template.values("/shops/9/products/%E4%B8%83").expect("it matches");
/// assert_eq!(*values[0], *b"9");
/// assert_eq!(*values[1], *"七".as_bytes());
/// assert_eq!(template.names().collect::<Vec<_>>(), ["shop", "id"]);
///
/// let template: PathTemplate = "/products/{slug}-{id}.html".parse()?;
/// let values = template.values("/products/red-shoes-7.html").expect("it matches");
/// assert_eq!(*values[1], *b"7");
///
/// let error = "/products/:id".parse::<PathTemplate>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the path \"/products/:id\" has the segment \":id\": write {id} to match one segment, \
///      or %3Aid to match the text \":id\""
/// );
/// # Ok::<(), tamis_guard::TemplateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTemplate {
    segments: Vec<Segment>,
    names: Vec<String>,
}

/// The error for a text that is not a valid path template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    template: String,
    why: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the path {:?} {}", self.template, self.why)
    }
}

impl std::error::Error for TemplateError {}

impl std::str::FromStr for PathTemplate {
    type Err = TemplateError;

    /// Parses a template. The names of other routers, such as `:id`, `<id>`, `{*rest}` and `{id:int}`, are errors:
    /// a segment that is read as a literal text would never match a request.
    fn from_str(template: &str) -> Result<Self, TemplateError> {
        let wrong = |why| TemplateError { template: template.to_owned(), why };
        let begin =
            || wrong("does not begin with a slash: write a path such as /products/{id}".into());
        let rest = template.strip_prefix('/').ok_or_else(begin)?;
        let (mut segments, mut names) = (Vec::new(), Vec::new());
        let mut parts = rest.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let segment = Segment::parse(part, is_last, &mut names);
            let of_part = |why| wrong(format!("has the segment {part:?}: {why}"));
            segments.push(segment.map_err(of_part)?);
        }
        let mut others = names.iter().enumerate();
        if let Some((_, name)) = others.find(|(at, name)| names[..*at].contains(name)) {
            return Err(wrong(format!("has {{{name}}} twice: write another name")));
        }
        Ok(Self { segments, names })
    }
}

impl TryFrom<&str> for PathTemplate {
    type Error = TemplateError;

    fn try_from(template: &str) -> Result<Self, TemplateError> {
        template.parse()
    }
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        let mut names = self.names();
        self.segments.iter().try_for_each(|segment| segment.write(f, &mut names))
    }
}

impl PathTemplate {
    /// Returns the names in the template, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns the decoded value of each name. Returns `None` if the path does not match. A value keeps its matrix
    /// parameters, such as `;v=1`. If a name has several candidates, the value is the shortest candidate.
    #[must_use]
    pub fn values<'p>(&self, path: &'p str) -> Option<Vec<Cow<'p, [u8]>>> {
        let texts = self.values_of(path, Reading::default())?;
        let values = self.names().zip(texts).map(|(name, text)| match self.split_of(name) {
            Some(split) => Cow::Owned(split.shortest(&text)),
            None => text,
        });
        Some(values.collect())
    }

    /// Returns the rule for the candidates of a name. Returns `None` if the name has one value.
    pub(crate) fn split_of(&self, name: &str) -> Option<Split> {
        let mut index = self.names().position(|other| other == name)?;
        for segment in &self.segments {
            let len = segment.len_names();
            match segment {
                Segment::Mixed(mixed) if index < len => {
                    return mixed.splits().map(|splits| splits[index].clone());
                }
                _ if index < len => return None,
                _ => index -= len,
            }
        }
        None
    }

    /// Tests whether a segment contains a name and other text.
    pub(crate) fn is_mixed(&self) -> bool {
        self.segments.iter().any(|segment| matches!(segment, Segment::Mixed(_)))
    }

    /// Tests whether each path that the template `other` matches also matches this template. Returns false if the
    /// answer needs more than a comparison of the segments.
    #[cfg(feature = "proxy")]
    pub(crate) fn covers(&self, other: &Self, comparison: Comparison) -> bool {
        let mut others = other.segments.iter();
        for segment in &self.segments {
            match others.next() {
                _ if *segment == Segment::Rest => return true,
                Some(other) if segment.covers(other, comparison) => {}
                _ => return false,
            }
        }
        others.next().is_none()
    }

    /// Tests whether a path is a spelling of the template that all programs interpret in the same way. Unlike
    /// [`values`](Self::values), the method compares the case of letters. A slash at the end has no effect.
    pub(crate) fn matches_exactly(&self, path: &str) -> bool {
        if !has_one_reading(path) {
            return false;
        }
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        for segment in &self.segments {
            if *segment == Segment::Rest {
                return true;
            }
            let Some(part) = parts.next() else { return false };
            let part = decoded(part);
            let is_match = match segment {
                Segment::Text(text) => *text.bytes() == *part,
                Segment::Mixed(mixed) => mixed.matches(&part, Comparison::Exact),
                Segment::Name | Segment::Rest => true,
            };
            if !is_match {
                return false;
            }
        }
        parts.next().is_none()
    }

    /// Returns the text of each name. Returns `None` if the path does not match. For a name with several candidates,
    /// the text is the text of both names of the segment.
    ///
    /// A path that matches without its matrix parameters also matches with its matrix parameters.
    pub(crate) fn values_of<'p>(&self, path: &'p str, reading: Reading) -> Option<Values<'p>> {
        if is_plain(path) {
            return self.values_in(path.split('/').filter(|part| !part.is_empty()), false);
        }
        if !reading.decodes_slashes {
            let segments = meaningful_segments(path, reading.keeps_dots);
            return self.values_in(segments.into_iter(), reading.cuts_parameters);
        }
        let path = with_decoded_slashes(path);
        let segments = meaningful_segments(&path, reading.keeps_dots);
        let values = self.values_in(segments.into_iter(), reading.cuts_parameters)?;
        Some(values.into_iter().map(|value| Cow::Owned(value.into_owned())).collect())
    }

    /// Returns the text of each name. `parts` are the segments of a path.
    fn values_in<'p>(
        &self,
        parts: impl Iterator<Item = &'p str>,
        cuts_parameters: bool,
    ) -> Option<Values<'p>> {
        let mut segments = self.segments.iter();
        let mut values = Values::new();
        for part in parts {
            match segments.next()? {
                Segment::Text(text) => {
                    if !decoded(without_parameters(part)).eq_ignore_ascii_case(text.bytes()) {
                        return None;
                    }
                }
                Segment::Name if cuts_parameters => values.push(decoded(without_parameters(part))),
                Segment::Name => values.push(decoded(part)),
                Segment::Mixed(mixed) => {
                    let names = mixed.names_in(part, cuts_parameters)?;
                    if mixed.separator.is_some() {
                        values.push(names.clone());
                    }
                    values.push(names);
                }
                Segment::Rest => return Some(values),
            }
        }
        matches!(segments.next(), None | Some(Segment::Rest)).then_some(values)
    }
}

/// The values of a path template. One or two values need no heap allocation.
pub(crate) type Values<'p> = SmallVec<[Cow<'p, [u8]>; 2]>;

#[cfg(test)]
mod tests {
    use super::*;

    fn values(template: &str, path: &str) -> Option<Vec<String>> {
        let template: PathTemplate = template.parse().unwrap();
        let text = |value: Cow<'_, [u8]>| String::from_utf8(value.into_owned()).unwrap();
        Some(template.values(path)?.into_iter().map(text).collect())
    }

    #[test]
    fn names_stand_for_one_segment() {
        let template = "/pms/productInfo/{id}";
        for path in [
            "/pms/productInfo/7",
            "/pms/productInfo/7/",
            "/pms//productInfo/7",
            "/pms/./productInfo/7",
            "/x/../pms/productInfo/7",
            "/x/%2e%2E/pms/productInfo/7",
            "/pms;a=b/productInfo/7",
            "/PMS/PRODUCTinfo/7",
            "/pms/product%49nfo/%37",
        ] {
            assert_eq!(values(template, path), Some(vec!["7".to_owned()]), "{path}");
        }
        for path in ["/pms/productInfo", "/pms/productInfo/7/8", "/", "", "/pms/product/7"] {
            assert_eq!(values(template, path), None, "{path}");
        }
        // An encoded slash belongs to the id.
        assert_eq!(values(template, "/pms/productInfo/a%2Fb"), Some(vec!["a/b".to_owned()]));
        assert_eq!(values(template, "/pms/productInfo/%zz"), Some(vec!["%zz".to_owned()]));
    }

    #[test]
    fn each_reading_of_a_path_is_tried() {
        let read = |template: &str, path: &str, reading: Reading| {
            let template: PathTemplate = template.parse().unwrap();
            let values = template.values_of(path, reading)?;
            Some(String::from_utf8(values[0].to_vec()).unwrap())
        };
        let usual = Reading::default();
        let cut = usual.without_parameters();
        assert_eq!(read("/p/{id}", "/p/7;v=1", usual).as_deref(), Some("7;v=1"));
        assert_eq!(read("/p/{id}", "/p/7;v=1", cut).as_deref(), Some("7"));
        for path in ["/p%2F7", "/p%5c7", "/x/..%2fp/7", "/p\\7", "/%2fp%2F%2f%37"] {
            assert_eq!(read("/p/{id}", path, usual), None, "{path}");
            let others = Reading::others(path);
            assert_eq!(others[0], Reading { decodes_slashes: true, ..usual });
            assert_eq!(read("/p/{id}", path, others[0]).as_deref(), Some("7"), "{path}");
        }
        let path = "/p/7/..;x";
        assert_eq!(read("/p/{id}/*", path, usual), None);
        let others = Reading::others(path);
        assert_eq!(read("/p/{id}/*", path, others[0]).as_deref(), Some("7"));
        for path in ["/p/7", "/p/%37.html", "/p/7;v=1", "/p/a%2", "/p/50%"] {
            assert_eq!(Reading::others(path).len(), 0, "{path}");
        }
    }

    #[test]
    fn a_star_stands_for_the_rest() {
        for (path, expected) in [("/a/7", true), ("/a/7/x/y", true), ("/a", false)] {
            assert_eq!(values("/a/{id}/*", path).is_some(), expected, "{path}");
        }
        assert_eq!(values("/*", "/anything/at/all"), Some(vec![]));
    }

    #[test]
    fn an_encoded_text_of_a_template_matches_both_forms_of_a_path() {
        for (template, path) in [
            ("/p/%3Alatest/{id}", "/p/:latest/7"),
            ("/p/%3Alatest/{id}", "/p/%3alatest/7"),
            ("/%E4%BA%A7/{id}", "/%e4%ba%a7/7"),
            ("/产/{id}", "/%E4%BA%A7/7"),
            ("/p/v1:batch/{id}/", "/p/v1:batch/7"),
            ("/P//{id}/", "/p/7"),
        ] {
            assert_eq!(values(template, path), Some(vec!["7".to_owned()]), "{template}");
            let parsed: PathTemplate = template.parse().unwrap();
            assert_eq!(parsed.to_string().parse(), Ok(parsed), "{template}");
        }
    }

    #[test]
    fn a_segment_may_have_names_and_other_text() {
        for (template, path, expected) in [
            ("/p/{id}.json", "/p/7.json", &["7"][..]),
            ("/p/{id}.json", "/p/7%2EJSON", &["7"]),
            ("/p/{id}.json", "/p/a.json.json", &["a.json"]),
            ("/p/{id}.json", "/p/%E4%B8%83.json", &["七"]),
            ("/p/item-{id}.html", "/p/ITEM-7.html", &["7"]),
            ("/p/{id}-{slug}", "/p/7-red-shoes", &["7", "shoes"]),
            ("/p/{slug}-{id}", "/p/red-shoes-7", &["red", "7"]),
            ("/p/{slug}-{id}", "/p/-", &["", ""]),
            ("/p/{slug}-p-{id}.html", "/p/a-p-7.html/", &["a", "7"]),
            ("/产{id}/{name}", "/%e4%ba%a77/a", &["7", "a"]),
            ("/{a}-{b}/{c}_{d}/*", "/1-2/3_4/5", &["1", "2", "3", "4"]),
        ] {
            let found = values(template, path);
            assert_eq!(
                found.as_deref(),
                Some(&*expected.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()),
                "{template} {path}"
            );
            let parsed: PathTemplate = template.parse().unwrap();
            assert_eq!(parsed.to_string(), template);
        }
        for (template, path) in [
            ("/p/{id}.json", "/p/7"),
            ("/p/{id}.json", "/p/7.xml"),
            ("/p/{id}-{slug}", "/p/7"),
            ("/p/item-{id}", "/p/item"),
            ("/p/a{id}a", "/p/a"),
            ("/p/{id}.json", "/p/7.json/x"),
        ] {
            assert_eq!(values(template, path), None, "{template} {path}");
        }
        let template: PathTemplate = "/{a}.json/{b}/{c}-{d}".parse().unwrap();
        let has_split = |name: &str| template.split_of(name).is_some();
        assert_eq!(["a", "b", "c", "d", "e"].map(has_split), [false, false, true, true, false]);
        assert_ne!(template.split_of("c"), template.split_of("d"));
    }

    #[test]
    fn whole_segments_need_no_heap() {
        let template: PathTemplate = "/shops/{shop}/{id}-{slug}".parse().unwrap();
        let values = template.values_of("/shops/9/7-red", Reading::default()).unwrap();
        assert!(values.iter().all(|value| matches!(value, Cow::Borrowed(_))));
        let template: PathTemplate = "/shops/{shop}/products/{id}".parse().unwrap();
        let values = template.values_of("/shops/9/products/7", Reading::default()).unwrap();
        assert!(!values.spilled() && values.iter().all(|it| matches!(it, Cow::Borrowed(_))));
    }

    #[test]
    fn one_spelling_of_a_path_matches_exactly() {
        let is_exact = |template: &str, path: &str| {
            template.parse::<PathTemplate>().unwrap().matches_exactly(path)
        };
        for (template, path) in [
            ("/p/search", "/p/search"),
            ("/p/search/", "/p/search"),
            ("/p/search", "/p/search/"),
            ("/p/{shop}/list", "/p/a%20b/list"),
            ("/p/搜索", "/p/%E6%90%9c%E7%B4%A2"),
            ("/p/%3Alatest", "/p/:latest"),
            ("/p/page-{n}.html", "/p/page-7.html"),
            ("/static/*", "/static"),
            ("/static/*", "/static/a/b.css"),
            ("/", "/"),
        ] {
            assert!(is_exact(template, path), "{template} {path}");
        }
        for (template, path) in [
            ("/p/search", "/p/Search"),
            ("/p/search", "/p/%73earch"),
            ("/p/search", "/p//search"),
            ("/p/search", "/p/search//"),
            ("/p/search", "/p/./search"),
            ("/p/search", "/p/search;"),
            ("/p/search", "/p/search%00"),
            ("/p/search", "/p/search/7"),
            ("/p/search", "/p/search/../7"),
            ("/p/search", "/p"),
            ("/p/page-{n}.html", "/p/Page-7.html"),
            ("/p/page-{n}.html", "/p/page-7%2Ehtml"),
            ("/static/*", "/static/../p/7"),
            ("/static/*", "/static/..;/p/7"),
            ("/static/*", "/static/..%2fp%2f7"),
            ("/static/*", "/static/%2e%2e/p/7"),
            ("/static/*", "/static\\..\\p\\7"),
            ("/static/*", "/Static/a"),
        ] {
            assert!(!is_exact(template, path), "{template} {path}");
        }
    }

    #[cfg(feature = "proxy")]
    #[test]
    fn a_template_covers_narrower_templates() {
        let covers = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|it| it.parse::<PathTemplate>().unwrap());
            one.covers(&other, Comparison::IgnoreCase)
        };
        for (wide, narrow) in [
            ("/p/{id}", "/P/{sku}/"),
            ("/p/{id}", "/p/search"),
            ("/p/{id}", "/p/{id}.json"),
            ("/p/*", "/p"),
            ("/p/*", "/p/{shop}/{id}"),
            ("/p/*", "/p/*"),
            ("/*", "/"),
            ("/p/{id}.json", "/p/{sku}.JSON"),
            ("/p/{id}-{slug}", "/p/{a}-{b}"),
        ] {
            assert!(covers(wide, narrow), "{wide} {narrow}");
        }
        for (one, other) in [
            ("/p/search", "/p/{id}"),
            ("/p/{id}", "/p/*"),
            ("/p/{id}", "/p/{shop}/{id}"),
            ("/p/{id}", "/p"),
            ("/p/{id}.json", "/p/{id}"),
            ("/p/{id}.json", "/p/{id}.xml"),
            ("/p/{id}-{slug}", "/p/{id}_{slug}"),
            ("/p/{id}-", "/p/{id}-{slug}"),
        ] {
            assert!(!covers(one, other), "{one} {other}");
        }
        let [one, other] = ["/p/a", "/p/A"].map(|it| it.parse::<PathTemplate>().unwrap());
        assert!(!one.covers(&other, Comparison::Exact));
    }
}
