//! A segment of a path template.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

#[cfg(feature = "proxy")]
use crate::request::path::literal::Comparison;
use crate::request::path::literal::Literal;
use crate::request::path::mixed::MixedSegment;

/// A segment of a path template, without its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    /// A literal text.
    Text(Literal),
    /// A name that stands for a whole segment.
    Name,
    /// One name or two names, and other text.
    Mixed(MixedSegment),
    /// Any number of segments at the end of the path.
    Rest,
}

impl Segment {
    /// Parses a segment of a template, and adds its names to `names`.
    ///
    /// # Errors
    ///
    /// Returns an instruction for the author of the template if the segment is a name of another router, or a text
    /// that no request matches.
    pub(crate) fn parse(
        part: &str,
        is_last: bool,
        names: &mut Vec<String>,
    ) -> Result<Self, String> {
        if part == "*" && is_last {
            return Ok(Self::Rest);
        }
        if part.starts_with('*') {
            return Err("write * for the rest of the path, as the last segment".to_owned());
        }
        if part.starts_with([':', '<', '[']) {
            return Err(of_another_router(part));
        }
        let (literals, of_segment) = pieces(part)?;
        for literal in &literals {
            check_characters(literal)?;
        }
        let literals: Vec<Literal> = literals.into_iter().map(Literal::new).collect();
        let segment = match (&literals[..], &of_segment[..]) {
            ([text], _) if matches!(text.bytes(), b"." | b"..") => {
                return Err("write the path without . and ..".to_owned());
            }
            ([text], _) => Self::Text(text.clone()),
            ([prefix, suffix], _) if prefix.is_empty() && suffix.is_empty() => Self::Name,
            ([prefix, suffix], _) => Self::Mixed(MixedSegment {
                prefix: prefix.clone(),
                separator: None,
                suffix: suffix.clone(),
            }),
            ([_, separator, _], [a, b]) if separator.is_empty() => {
                return Err(format!("write a text between the names, such as {{{a}}}-{{{b}}}"));
            }
            ([prefix, separator, suffix], _) => Self::Mixed(MixedSegment {
                prefix: prefix.clone(),
                separator: Some(separator.clone()),
                suffix: suffix.clone(),
            }),
            _ => return Err("write at most two names in a segment".to_owned()),
        };
        names.extend(of_segment.into_iter().map(str::to_owned));
        Ok(segment)
    }

    /// Returns the number of names.
    pub(crate) fn len_names(&self) -> usize {
        match self {
            Self::Text(_) | Self::Rest => 0,
            Self::Name => 1,
            Self::Mixed(mixed) => 1 + usize::from(mixed.separator.is_some()),
        }
    }

    /// Tests whether this segment matches each text that the segment `other` of another template matches. Returns
    /// false if the answer needs more than a comparison of the texts.
    #[cfg(feature = "proxy")]
    pub(crate) fn covers(&self, other: &Self, comparison: Comparison) -> bool {
        let is_same =
            |one: &Literal, other: &Literal| comparison.is_same(other.bytes(), one.bytes());
        match (self, other) {
            (Self::Rest, _) => true,
            (_, Self::Rest) => false,
            (Self::Name, _) => true,
            (Self::Text(one), Self::Text(other)) => is_same(one, other),
            (Self::Mixed(one), Self::Mixed(other)) => {
                let separators = match (&one.separator, &other.separator) {
                    (Some(one), Some(other)) => is_same(one, other),
                    (one, other) => one.is_none() && other.is_none(),
                };
                separators
                    && is_same(&one.prefix, &other.prefix)
                    && is_same(&one.suffix, &other.suffix)
            }
            _ => false,
        }
    }

    /// Writes the segment with its names.
    pub(crate) fn write<'n>(
        &self,
        f: &mut fmt::Formatter<'_>,
        mut names: impl Iterator<Item = &'n str>,
    ) -> fmt::Result {
        let mut name = || names.next().unwrap_or_default();
        match self {
            Self::Text(text) => write!(f, "/{text}"),
            Self::Name => write!(f, "/{{{}}}", name()),
            Self::Mixed(MixedSegment { prefix, separator, suffix }) => {
                write!(f, "/{prefix}{{{}}}", name())?;
                if let Some(separator) = separator {
                    write!(f, "{separator}{{{}}}", name())?;
                }
                write!(f, "{suffix}")
            }
            Self::Rest => f.write_str("/*"),
        }
    }
}

/// Splits a segment into its literal texts and its names. One literal text is before each name and after the last name.
fn pieces(part: &str) -> Result<(Vec<&str>, Vec<&str>), String> {
    let (mut literals, mut names) = (Vec::new(), Vec::new());
    let mut rest = part;
    while let Some((literal, from)) = rest.split_once('{') {
        let Some((name, after)) = from.split_once('}') else { break };
        if name.starts_with('*') {
            return Err("write * for the rest of the path".to_owned());
        }
        if name.is_empty() || !name.chars().all(is_in_name) {
            return Err(of_another_router(&rest[literal.len()..]));
        }
        literals.push(literal);
        names.push(name);
        rest = after;
    }
    literals.push(rest);
    Ok((literals, names))
}

/// Tests whether a name may contain a character.
fn is_in_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-')
}

/// Returns the message about a name of another router: `:id`, `<id>`, `<int:id>`, `[id]`, `{id:[0-9]+}` or `{id?}`.
fn of_another_router(part: &str) -> String {
    let inner = part.trim_start_matches([':', '<', '[', '{', '.', ' ']);
    let of_type = inner.strip_suffix('>').and_then(|inner| inner.rsplit(':').next());
    let inner = of_type.unwrap_or(inner);
    let end = inner.find(|it| !is_in_name(it));
    let name = Some(&inner[..end.unwrap_or(inner.len())]).filter(|name| !name.is_empty());
    let mut why = format!("write {{{}}} to match one segment", name.unwrap_or("id"));
    if let Some(text) = part.strip_prefix(':') {
        why += &format!(", or %3A{text} to match the text {part:?}");
    }
    why
}

/// Rejects a literal text that contains a character that no path contains, or that has another meaning in other
/// routers.
fn check_characters(literal: &str) -> Result<(), String> {
    let is_wrong = |char: &char| "{}*?#;<>".contains(*char) || char.is_whitespace();
    let Some(char) = literal.chars().find(is_wrong) else { return Ok(()) };
    let encoded: String =
        utf8_percent_encode(char.encode_utf8(&mut [0; 4]), NON_ALPHANUMERIC).collect();
    Err(format!("write {{id}} to match one segment, or {encoded} to match the character {char:?}"))
}

#[cfg(test)]
mod tests {
    use crate::request::path::PathTemplate;

    #[test]
    fn wrong_templates_are_refused() {
        for (template, expected) in [
            ("", "write a path such as /products/{id}"),
            ("a/{id}", "write a path such as /products/{id}"),
            ("http://a/{id}", "write a path such as /products/{id}"),
            ("/{}", "write {id} to match one segment"),
            ("/{a}/{a}", "has {a} twice: write another name"),
            ("/a{id", "write {id} to match one segment, or %7B to match the character '{'"),
            ("/a}", "write {id} to match one segment, or %7D to match the character '}'"),
            ("/{a}{b}", "write a text between the names, such as {a}-{b}"),
            ("/p-{a}{b}.json", "write a text between the names, such as {a}-{b}"),
            ("/{a}-{b}-{c}", "write at most two names in a segment"),
            ("/{a}-{a}", "has {a} twice: write another name"),
            ("/{a}.json/{b}-{a}", "has {a} twice: write another name"),
            ("/{a}*", "or %2A to match the character '*'"),
            ("/{a};v", "or %3B to match the character ';'"),
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
            ("/p/{id:int}.json", "write {id} to match one segment"),
            ("/p/item-{id:int}", "write {id} to match one segment"),
            ("/p/{*rest}.json", "write * for the rest of the path"),
            ("/p/item-<id>", "or %3C to match the character '<'"),
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
}
