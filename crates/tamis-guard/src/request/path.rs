//! Path templates, such as `/pms/productInfo/{id}`.
//!
//! Programs interpret the same path differently. An attacker could bypass the guard with a path that only the upstream
//! service accepts. To prevent a bypass, the guard matches a path in the most tolerant way. The guard ignores empty
//! segments, resolves `.` and `..`, and ignores the case of letters in the template. Programs also interpret `;v=1`,
//! `%2F` and `..` differently. A [`Reading`] describes one interpretation of a path.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};
use smallvec::SmallVec;

/// A path template with names at the positions of ids.
///
/// `{name}` stands for one segment, and `*` at the end for any number of segments. All other segments are literal. The
/// case of letters, empty segments and a slash at the end have no effect. A literal segment may be percent-encoded,
/// such as `%3Alatest` for the segment `:latest`.
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
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// A literal text as it is written in the template, and its decoded bytes.
    Text(String, Vec<u8>),
    Name(String),
    /// Any number of segments at the end of the path.
    Rest,
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
        let mut segments = Vec::new();
        let mut parts = rest.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            let segment = segment(part, is_last);
            let segment =
                segment.map_err(|why| wrong(format!("has the segment {part:?}: {why}")))?;
            if matches!(segment, Segment::Name(_)) && segments.contains(&segment) {
                return Err(wrong(format!("has {part} twice: write another name")));
            }
            segments.push(segment);
        }
        Ok(Self { segments })
    }
}

/// Parses a segment of a template. Returns an instruction for the author of the template if the segment is a name of
/// another router, or a text that no request matches.
fn segment(part: &str, is_last: bool) -> Result<Segment, String> {
    let is_in_name = |it: char| it.is_alphanumeric() || matches!(it, '_' | '-');
    let braced = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
    match braced {
        Some(name) if !name.is_empty() && name.chars().all(is_in_name) => {
            return Ok(Segment::Name(name.to_owned()));
        }
        Some(name) if name.starts_with('*') => {
            return Err("write * for the rest of the path".to_owned());
        }
        None if part == "*" && is_last => return Ok(Segment::Rest),
        _ => {}
    }
    // `:id`, `<id>`, `<int:id>`, `[id]`, `{id:[0-9]+}`, `{id?}` and `*rest` are names of other routers.
    if part.starts_with('*') {
        return Err("write * for the rest of the path, as the last segment".to_owned());
    }
    if part.starts_with([':', '<', '[', '{']) {
        let inner = part.trim_start_matches([':', '<', '[', '{', '.', ' ']);
        let of_type = inner.strip_suffix('>').and_then(|inner| inner.rsplit(':').next());
        let inner = of_type.unwrap_or(inner);
        let end = inner.find(|it| !is_in_name(it));
        let name = Some(&inner[..end.unwrap_or(inner.len())]).filter(|name| !name.is_empty());
        let mut why = format!("write {{{}}} to match one segment", name.unwrap_or("id"));
        if let Some(text) = part.strip_prefix(':') {
            why += &format!(", or %3A{text} to match the text {part:?}");
        }
        return Err(why);
    }
    let text: Vec<u8> = percent_decode(part.as_bytes()).collect();
    if matches!(&*text, b"." | b"..") {
        return Err("write the path without . and ..".to_owned());
    }
    if let Some(char) = part.chars().find(|&it| "{}*?#;<>".contains(it) || it.is_whitespace()) {
        let encoded: String =
            utf8_percent_encode(char.encode_utf8(&mut [0; 4]), NON_ALPHANUMERIC).collect();
        return Err(format!(
            "write {{id}} to match one segment, or {encoded} to match the character {char:?}"
        ));
    }
    Ok(Segment::Text(part.to_owned(), text))
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
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Text(text, _) => write!(f, "/{text}"),
            Segment::Name(name) => write!(f, "/{{{name}}}"),
            Segment::Rest => f.write_str("/*"),
        })
    }
}

impl PathTemplate {
    /// Returns the names in the template, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Name(name) => Some(&**name),
            _ => None,
        })
    }

    /// Returns the decoded value of each name. Returns `None` if the path does not match. A value keeps its matrix
    /// parameters, such as `;v=1`.
    #[must_use]
    pub fn values<'p>(&self, path: &'p str) -> Option<Vec<Cow<'p, [u8]>>> {
        self.values_of(path, Reading::default()).map(Values::into_vec)
    }

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

    fn values_in<'p>(
        &self,
        parts: impl Iterator<Item = &'p str>,
        cuts_parameters: bool,
    ) -> Option<Values<'p>> {
        let mut segments = self.segments.iter();
        let mut values = Values::new();
        for part in parts {
            match segments.next()? {
                Segment::Text(_, text) => {
                    if !decoded(without_parameters(part)).eq_ignore_ascii_case(text) {
                        return None;
                    }
                }
                Segment::Name(_) if cuts_parameters => {
                    values.push(decoded(without_parameters(part)));
                }
                Segment::Name(_) => values.push(decoded(part)),
                Segment::Rest => return Some(values),
            }
        }
        matches!(segments.next(), None | Some(Segment::Rest)).then_some(values)
    }
}

/// An interpretation of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// True if a value ends at its first semicolon, as in servlets.
    cuts_parameters: bool,
    /// True if `%2F`, `%5C` and a backslash separate segments, as in servers that decode a path before routing.
    decodes_slashes: bool,
    /// True if `..` is an ordinary segment, as in servers that do not resolve `..`.
    keeps_dots: bool,
}

impl Reading {
    /// Returns this interpretation with values that end at their first semicolon.
    pub(crate) fn without_parameters(self) -> Self {
        Self { cuts_parameters: true, ..self }
    }

    /// Returns the interpretations, except the default interpretation, in which a route may match a path. `is_matched`
    /// is true if a route matches in the default interpretation. If `is_matched` is true, another interpretation can
    /// find a different id only in a path with `..`.
    pub(crate) fn others(path: &str, is_matched: bool) -> SmallVec<[Self; 3]> {
        let mut readings = SmallVec::new();
        if is_plain(path) {
            return readings;
        }
        let with_slashes = with_decoded_slashes(path);
        let has_slashes = *with_slashes != *path;
        let has_dots = count_dots(&with_slashes) > 0;
        if is_matched && !has_dots {
            return readings;
        }
        for (decodes_slashes, keeps_dots) in [(true, false), (false, true), (true, true)] {
            if decodes_slashes <= has_slashes && keeps_dots <= has_dots {
                readings.push(Self { decodes_slashes, keeps_dots, ..Self::default() });
            }
        }
        readings
    }
}

fn count_dots(path: &str) -> usize {
    path.split('/').filter(|part| &*decoded(without_parameters(part)) == b"..").count()
}

/// Counts the segments `..` of a path after decoding its slashes.
pub(crate) fn dots_in_path(path: &str) -> usize {
    count_dots(&with_decoded_slashes(path))
}

/// Counts the segments `..` of a decoded value.
pub(crate) fn dots_in_value(value: &[u8]) -> usize {
    value.split(|byte| matches!(byte, b'/' | b'\\')).filter(|part| *part == b"..").count()
}

/// The values of a path template. One or two values need no heap allocation.
pub(crate) type Values<'p> = SmallVec<[Cow<'p, [u8]>; 2]>;

/// Tests whether a path contains no characters that programs interpret differently.
fn is_plain(path: &str) -> bool {
    !path.bytes().any(|byte| matches!(byte, b'%' | b';' | b'.' | b'\\'))
}

fn decoded(part: &str) -> Cow<'_, [u8]> {
    percent_decode(part.as_bytes()).into()
}

fn without_parameters(part: &str) -> &str {
    part.split(';').next().unwrap_or_default()
}

fn with_decoded_slashes(path: &str) -> Cow<'_, str> {
    let has_encoded = |path: &str| path.as_bytes().windows(3).any(is_encoded_slash);
    if !path.contains('\\') && !has_encoded(path) {
        return Cow::Borrowed(path);
    }
    let mut decoded = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find(['%', '\\']) {
        let (before, from) = rest.split_at(at);
        decoded.push_str(before);
        let length = match from.as_bytes() {
            [b'\\', ..] => 1,
            bytes if bytes.get(..3).is_some_and(is_encoded_slash) => 3,
            _ => 0,
        };
        decoded.push(if length > 0 { '/' } else { '%' });
        rest = &from[length.max(1)..];
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// Tests whether the bytes are an encoded slash or backslash.
fn is_encoded_slash(bytes: &[u8]) -> bool {
    bytes.eq_ignore_ascii_case(b"%2f") || bytes.eq_ignore_ascii_case(b"%5c")
}

/// Returns the segments of a path without empty segments and dot segments.
fn meaningful_segments(path: &str, keeps_dots: bool) -> Vec<&str> {
    let mut segments = Vec::new();
    for part in path.split('/') {
        match &*decoded(without_parameters(part)) {
            b"" | b"." => {}
            b".." if !keeps_dots => _ = segments.pop(),
            _ => segments.push(part),
        }
    }
    segments
}

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
            let others = Reading::others(path, false);
            assert_eq!(others[0], Reading { decodes_slashes: true, ..usual });
            assert_eq!(read("/p/{id}", path, others[0]).as_deref(), Some("7"), "{path}");
        }
        let path = "/p/7/..;x";
        assert_eq!(read("/p/{id}/*", path, usual), None);
        let others = Reading::others(path, false);
        assert_eq!(read("/p/{id}/*", path, others[0]).as_deref(), Some("7"));
        for path in ["/p/7", "/p/%37.html", "/p/7;v=1", "/p/a%2", "/p/50%"] {
            assert_eq!(Reading::others(path, false).len(), 0, "{path}");
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
    fn wrong_templates_are_refused() {
        for (template, expected) in [
            ("", "write a path such as /products/{id}"),
            ("a/{id}", "write a path such as /products/{id}"),
            ("http://a/{id}", "write a path such as /products/{id}"),
            ("/{}", "write {id} to match one segment"),
            ("/{a}/{a}", "has {a} twice: write another name"),
            ("/a{id}", "write {id} to match one segment, or %7B to match the character '{'"),
            ("/{a}b", "write {a} to match one segment"),
            ("/*/a", "write * for the rest of the path, as the last segment"),
            ("/a?x", "or %3F to match the character '?'"),
            ("/{a{b}}", "write {a} to match one segment"),
            ("/ {id}", "write {id} to match one segment, or %20 to match the character ' '"),
            ("/{ id }", "write {id} to match one segment"),
        ] {
            let error = template.parse::<PathTemplate>().expect_err(template).to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }

    #[test]
    fn the_names_of_other_routers_are_refused_with_the_form_to_write() {
        for (template, expected) in [
            (
                "/p/:id",
                "has the segment \":id\": write {id} to match one segment, or %3Aid to match the text \":id\"",
            ),
            ("/p/:id/x", "write {id} to match one segment, or %3Aid to match the text \":id\""),
            ("/p/:", "write {id} to match one segment, or %3A to match the text \":\""),
            ("/p/<id>", "has the segment \"<id>\": write {id} to match one segment"),
            ("/p/<int:sku>", "write {sku} to match one segment"),
            ("/p/[slug]", "write {slug} to match one segment"),
            ("/p/[...slug]", "write {slug} to match one segment"),
            ("/p/{*rest}", "has the segment \"{*rest}\": write * for the rest of the path"),
            ("/p/*rest", "write * for the rest of the path, as the last segment"),
            ("/p/{id:[0-9]+}", "write {id} to match one segment"),
            ("/p/{id:int}", "write {id} to match one segment"),
            ("/p/{id?}", "write {id} to match one segment"),
        ] {
            let error = template.parse::<PathTemplate>().expect_err(template).to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }

    #[test]
    fn texts_that_no_request_matches_are_refused() {
        for template in ["/a/./{id}", "/a/../{id}", "/a;v=1/{id}", "/a /{id}", "/{id} "] {
            assert!(template.parse::<PathTemplate>().is_err(), "{template}");
        }
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
}
