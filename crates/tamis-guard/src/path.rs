//! Path templates, such as `/pms/productInfo/{id}`.
//!
//! A path is compared as most programs read it: empty segments, `.` and `..` and matrix parameters
//! (`;v=1`) have no meaning, so `/pms//productInfo/7;v=1/` matches too. Otherwise an attacker would
//! pass the guard with a path that the program behind it still understands.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::percent_decode;
use smallvec::SmallVec;

/// A path with names in the place of ids.
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
/// # Ok::<(), tamis_guard::TemplateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTemplate {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Text(String),
    Name(String),
    /// Any number of further segments.
    Rest,
}

/// Why a text is not a path template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    template: String,
    why: &'static str,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the path {:?} {}; write a path such as /products/{{id}}",
            self.template, self.why
        )
    }
}

impl std::error::Error for TemplateError {}

impl std::str::FromStr for PathTemplate {
    type Err = TemplateError;

    /// Parses a template. `{name}` stands for one segment, and `*` at the end for any number.
    fn from_str(template: &str) -> Result<Self, TemplateError> {
        let wrong = |why| TemplateError { template: template.to_owned(), why };
        let rest =
            template.strip_prefix('/').ok_or_else(|| wrong("does not begin with a slash"))?;
        let mut segments = Vec::new();
        let mut parts = rest.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next() {
            let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
            segments.push(match name {
                Some("") => return Err(wrong("has a name without letters")),
                Some(name) if segments.contains(&Segment::Name(name.to_owned())) => {
                    return Err(wrong("has a name twice"));
                }
                Some(name) if !name.contains(['{', '}']) => Segment::Name(name.to_owned()),
                None if part == "*" && parts.peek().is_none() => Segment::Rest,
                None if !part.contains(['{', '}', '*', '?', '#']) => Segment::Text(part.to_owned()),
                _ => return Err(wrong("has a brace, a star or a question mark in a segment")),
            });
        }
        Ok(Self { segments })
    }
}

impl fmt::Display for PathTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.segments.is_empty() {
            return f.write_str("/");
        }
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Text(text) => write!(f, "/{text}"),
            Segment::Name(name) => write!(f, "/{{{name}}}"),
            Segment::Rest => f.write_str("/*"),
        })
    }
}

impl PathTemplate {
    /// Returns the names in the template, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            Segment::Name(name) => Some(&**name),
            _ => None,
        })
    }

    /// Returns the decoded value of each name, or `None` if the path does not match.
    #[must_use]
    pub fn values<'p>(&self, path: &'p str) -> Option<Vec<Cow<'p, [u8]>>> {
        self.values_of(path).map(Values::into_vec)
    }

    pub(crate) fn values_of<'p>(&self, path: &'p str) -> Option<Values<'p>> {
        if is_plain(path) {
            self.values_in(path.split('/').filter(|part| !part.is_empty()))
        } else {
            self.values_in(meaningful_segments(path).into_iter())
        }
    }

    fn values_in<'p>(&self, parts: impl Iterator<Item = &'p str>) -> Option<Values<'p>> {
        let mut segments = self.segments.iter();
        let mut values = Values::new();
        for part in parts {
            match segments.next()? {
                Segment::Text(text) => {
                    if *part != **text && *decoded(part) != *text.as_bytes() {
                        return None;
                    }
                }
                Segment::Name(_) => values.push(decoded(part)),
                Segment::Rest => return Some(values),
            }
        }
        matches!(segments.next(), None | Some(Segment::Rest)).then_some(values)
    }
}

/// The values of a path template. One or two need no memory of their own.
pub(crate) type Values<'p> = SmallVec<[Cow<'p, [u8]>; 2]>;

/// Tests whether each segment of a path has a meaning, except the empty ones.
fn is_plain(path: &str) -> bool {
    !path.bytes().any(|byte| matches!(byte, b'%' | b';' | b'.'))
}

fn decoded(part: &str) -> Cow<'_, [u8]> {
    percent_decode(part.as_bytes()).into()
}

/// Returns the segments of a path that have a meaning.
fn meaningful_segments(path: &str) -> Vec<&str> {
    let mut segments = Vec::new();
    for part in path.split('/') {
        let part = part.split(';').next().unwrap_or_default();
        match &*decoded(part) {
            b"" | b"." => {}
            b".." => _ = segments.pop(),
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
            "/pms;a=b/productInfo/7;c=d",
            "/pms/product%49nfo/%37",
        ] {
            assert_eq!(values(template, path), Some(vec!["7".to_owned()]), "{path}");
        }
        for path in ["/pms/productInfo", "/pms/productInfo/7/8", "/", "", "/PMS/productInfo/7"] {
            assert_eq!(values(template, path), None, "{path}");
        }
        // An encoded slash belongs to the id.
        assert_eq!(values(template, "/pms/productInfo/a%2Fb"), Some(vec!["a/b".to_owned()]));
        assert_eq!(values(template, "/pms/productInfo/%zz"), Some(vec!["%zz".to_owned()]));
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
        for template in
            ["", "a/{id}", "/{}", "/{a}/{a}", "/a{id}", "/{a}b", "/*/a", "/a?x", "/{a{b}}"]
        {
            let error = template.parse::<PathTemplate>().expect_err(template);
            assert!(error.to_string().contains("/products/{id}"), "{error}");
        }
    }
}
