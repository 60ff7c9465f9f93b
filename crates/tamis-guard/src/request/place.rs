//! The place of an id in a request: in the path, the query, a header, a cookie, or the body.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use http::HeaderName;
use http::header::COOKIE;
use http::request::Parts;

use crate::request::body_text::BodyText;
use crate::request::form;
use crate::request::path::{PathTemplate, Values};

/// The place of an id in a request.
///
/// The text form is `path:id`, `query:id`, `header:x-product-id`, `cookie:product`, `form:id` or `json:/product/id`. In
/// a JSON pointer, `*` stands for all elements of a list: `json:/*` for a body that is a list, and `json:/*/id` for a
/// list of objects. The case of letters has no effect in the names of query parameters, headers, form fields and JSON
/// fields. The name of a cookie is exact, because programs treat two cookies as different if their names differ in case.
///
/// The guard ignores the header `Content-Type`, and reads a body as JSON and as a form. The guard finds no id in a body of the
/// type `multipart/form-data`.
///
/// # Examples
///
/// ```
/// use tamis_guard::IdPlace;
///
/// let place: IdPlace = "json:/items/*/id".parse()?;
/// assert_eq!(place.to_string(), "json:/items/*/id");
/// assert!("body:id".parse::<IdPlace>().is_err());
/// # Ok::<(), tamis_guard::PlaceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdPlace {
    /// A name in the path template.
    Path(String),
    /// The decoded name of a parameter in the query. The parameter `a+b` of a request has the name `a b`.
    Query(String),
    /// The name of a header.
    Header(HeaderName),
    /// The name of a cookie.
    Cookie(String),
    /// The decoded name of a field in the body of a form (`application/x-www-form-urlencoded`).
    Form(String),
    /// A value in the JSON body. The field is the path to the value.
    Json(Vec<String>),
}

/// The error for a text that is not a valid place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceError {
    place: String,
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not the place of an id: write path:NAME, query:NAME, header:NAME, cookie:NAME, \
             form:NAME or json:/PATH/TO/FIELD; a name has no braces, no spaces around it, and in a \
             query or a form no encoding such as %20 or +",
            self.place
        )
    }
}

impl std::error::Error for PlaceError {}

impl FromStr for IdPlace {
    type Err = PlaceError;

    fn from_str(place: &str) -> Result<Self, PlaceError> {
        let wrong = || PlaceError { place: place.to_owned() };
        let (kind, name) = place.split_once(':').ok_or_else(wrong)?;
        // The guard decodes the names of a query and a form: `?a+b=7` has the name `a b`. The name `a+b` would match only
        // `?a%2Bb=7`. A header has no control characters.
        let is_wrong = match kind {
            "query" | "form" => name.contains(['?', '&', '=', '%', '+', '#', '{', '}']),
            "cookie" => {
                name.contains(['=', ';', ',', '"', '{', '}', ' '])
                    || name.contains(char::is_control)
            }
            _ => false,
        };
        if name.is_empty() || is_wrong || name.trim() != name {
            return Err(wrong());
        }
        Ok(match kind {
            "path" => Self::Path(name.to_owned()),
            "query" => Self::Query(name.to_owned()),
            "header" => Self::Header(name.parse().map_err(|_| wrong())?),
            "cookie" => Self::Cookie(name.to_owned()),
            "form" => Self::Form(name.to_owned()),
            "json" => {
                let path = name.strip_prefix('/').ok_or_else(wrong)?;
                if path.split('/').any(str::is_empty) {
                    return Err(wrong());
                }
                // RFC 6901, section 3, defines the escapes `~0` and `~1`.
                let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
                Self::Json(path.split('/').map(unescaped).collect())
            }
            _ => return Err(wrong()),
        })
    }
}

impl TryFrom<&str> for IdPlace {
    type Error = PlaceError;

    fn try_from(place: &str) -> Result<Self, PlaceError> {
        place.parse()
    }
}

impl fmt::Display for IdPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(name) => write!(f, "path:{name}"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Cookie(name) => write!(f, "cookie:{name}"),
            Self::Form(name) => write!(f, "form:{name}"),
            Self::Json(path) => {
                f.write_str("json:")?;
                path.iter().try_for_each(|part| {
                    write!(f, "/{}", part.replace('~', "~0").replace('/', "~1"))
                })
            }
        }
    }
}

impl IdPlace {
    /// Tests whether the guard must read the body.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        matches!(self, Self::Form(_) | Self::Json(_))
    }

    /// Returns all values at this place in the head of a request, without decoding them as ids. `path` contains the
    /// values of the path template.
    pub(crate) fn values_in_head<'r>(
        &self,
        parts: &'r Parts,
        template: &PathTemplate,
        path: &Values<'r>,
    ) -> Values<'r> {
        match self {
            Self::Path(name) => {
                let values = template.names().zip(path).filter(|(other, _)| other == name);
                values.map(|(_, value)| value.clone()).collect()
            }
            Self::Query(name) => {
                let query = parts.uri.query().unwrap_or_default();
                form::values_of(query.as_bytes(), name).collect()
            }
            Self::Header(name) => {
                let values = parts.headers.iter().filter(|(other, _)| is_same_header(other, name));
                values.map(|(_, value)| Cow::Borrowed(value.as_bytes().trim_ascii())).collect()
            }
            Self::Cookie(name) => {
                let headers = parts.headers.get_all(COOKIE).iter();
                let pairs = headers.flat_map(|text| text.as_bytes().split(|&byte| byte == b';'));
                let values = pairs.filter_map(|pair| value_of_cookie(pair, name.as_bytes()));
                values.map(Cow::Borrowed).collect()
            }
            Self::Form(_) | Self::Json(_) => Values::new(),
        }
    }

    /// Tests whether the ids are in the path or the query, which a preflight also contains.
    pub(crate) fn is_in_target(&self) -> bool {
        matches!(self, Self::Path(_) | Self::Query(_))
    }

    /// Tests whether the ids are in a cookie.
    pub(crate) fn is_cookie(&self) -> bool {
        matches!(self, Self::Cookie(_))
    }

    /// Tests whether programs may treat two places as one place. A servlet does not distinguish a query parameter from a
    /// form field of the same name.
    pub(crate) fn is_same_parameter(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Query(name), Self::Form(other)) | (Self::Form(name), Self::Query(other)) => {
                name.eq_ignore_ascii_case(other)
            }
            _ => self == other,
        }
    }

    /// Returns all values at this place in a body.
    pub(crate) fn values_in_body(&self, body: &BodyText) -> Vec<Vec<u8>> {
        match self {
            Self::Form(name) => body.form_values(name),
            Self::Json(path) => body.json_values(path),
            Self::Path(_) | Self::Query(_) | Self::Header(_) | Self::Cookie(_) => Vec::new(),
        }
    }
}

/// Tests whether a program may treat two headers as the same header. CGI and similar interfaces replace `-` by `_`, so
/// `X_Id` sets the same variable as `X-Id`.
pub(crate) fn is_same_header(name: &HeaderName, other: &HeaderName) -> bool {
    let dashed = |byte: u8| if byte == b'_' { b'-' } else { byte };
    let (name, other) = (name.as_str().bytes(), other.as_str().bytes());
    name.map(dashed).eq(other.map(dashed))
}

/// Returns the value of a cookie if the cookie has the name `name`.
fn value_of_cookie<'c>(pair: &'c [u8], name: &[u8]) -> Option<&'c [u8]> {
    let equals = pair.iter().position(|&byte| byte == b'=')?;
    if pair[..equals].trim_ascii() != name {
        return None;
    }
    let value = pair[equals + 1..].trim_ascii();
    let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    Some(unquoted.unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;

    use super::*;

    fn body(text: &'static str) -> BodyText {
        BodyText::new(Bytes::from_static(text.as_bytes()))
    }

    fn in_body(place: &str, body: &BodyText) -> Vec<String> {
        let place: IdPlace = place.parse().unwrap();
        let values = place.values_in_body(body);
        values.into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
    }

    fn values(place: &str, parts: &Parts) -> Vec<String> {
        let place: IdPlace = place.parse().unwrap();
        let template = "/p/{id}".parse().unwrap();
        let path = Values::from_iter([Cow::Borrowed(&b"9"[..])]);
        let values = place.values_in_head(parts, &template, &path);
        values.into_iter().map(|value| String::from_utf8_lossy(&value).into_owned()).collect()
    }

    #[test]
    fn ids_are_found_in_the_head() {
        let request = Request::builder()
            .uri("/p/9?id=7&other=x&id=%38&i%64=+1&id&ID=6")
            .header("x-id", " 5 ")
            .header("x-id", "6")
            .header("cookie", "a=b; product=\"4\"; c")
            .header("cookie", "product=3")
            .header("x_ID", "7")
            .header(
                "cookie",
                http::HeaderValue::from_bytes(b"name=\xe5\xbc\xa0; product=2").unwrap(),
            )
            .body(())
            .unwrap();
        let (parts, ()) = request.into_parts();
        assert_eq!(values("path:id", &parts), ["9"]);
        assert_eq!(values("path:other", &parts), [""; 0]);
        assert_eq!(values("query:id", &parts), ["7", "8", " 1", "", "6"]);
        assert_eq!(values("header:X-Id", &parts), ["5", "6", "7"]);
        assert_eq!(values("cookie:product", &parts), ["4", "3", "2"]);
        assert_eq!(values("query:absent", &parts), [""; 0]);
    }

    #[test]
    fn ids_are_found_in_json() {
        let body = body(
            r#"{"id": 7, "big": 18446744073709551616, "whole": 7.0, "text": "七", "no": null,
                "items": [{"id": 1}, {"id": "2"}, 5], "a/b": {"~": 9}}"#,
        );
        let values = |place: &str| in_body(place, &body);
        assert_eq!(values("json:/id"), ["7"]);
        assert_eq!(values("json:/big"), ["18446744073709551616"]);
        assert_eq!(values("json:/whole"), ["7"]);
        assert_eq!(values("json:/text"), ["七"]);
        assert_eq!(values("json:/items/*/id"), ["1", "2"]);
        assert_eq!(values("json:/items/*"), ["5"]);
        // A list at the place stands for its elements.
        assert_eq!(values("json:/items"), ["5"]);
        assert_eq!(values("json:/items/1/id"), ["2"]);
        assert_eq!(values("json:/a~1b/~0"), ["9"]);
        for none in ["json:/no", "json:/absent", "json:/id/x", "json:/items/9/id"] {
            assert_eq!(values(none), [""; 0], "{none}");
        }
    }

    #[test]
    fn ids_are_found_in_a_json_list_at_the_root() {
        for (text, place, expected) in [
            (r#"[1, "2", null, [3]]"#, "json:/*", &["1", "2", "3"][..]),
            (r#"[{"id": 1}, {"ID": "2"}, 3]"#, "json:/*/id", &["1", "2"]),
            (r#"[{"ids": [1, 2]}, {"ids": 3}]"#, "json:/*/ids", &["1", "2", "3"]),
            (r#"[{"items": [{"id": 1}]}]"#, "json:/*/items/*/id", &["1"]),
            ("[4, 5]", "json:/0", &["4"]),
            ("[]", "json:/*", &[]),
            ("7", "json:/*", &[]),
            // In an object, `*` is the name of a field.
            (r#"{"a": 1, "*": 2}"#, "json:/*", &["2"]),
        ] {
            assert_eq!(in_body(place, &body(text)), expected, "{place} {text}");
        }
    }

    #[test]
    fn ids_are_found_in_a_form() {
        let form = body("id=7&name=a%26id%3D9&ID=%38&i%64=+1&id&ids[]=5");
        assert_eq!(in_body("form:id", &form), ["7", "8", " 1", ""]);
        assert_eq!(in_body("form:ids[]", &form), ["5"]);
        assert_eq!(in_body("form:absent", &form), [""; 0]);
        assert_eq!(in_body("json:/id", &form), [""; 0]);
        assert_eq!(in_body("form:id", &body(r#"{"id": 7}"#)), [""; 0]);
        assert_eq!("form:id".parse::<IdPlace>().unwrap().to_string(), "form:id");
    }

    #[test]
    fn wrong_places_are_refused() {
        for place in ["", "id", "path:", "json:id", "header:a b", "body:x"] {
            assert!(place.parse::<IdPlace>().is_err(), "{place}");
        }
    }

    #[test]
    fn a_name_that_no_request_contains_is_refused() {
        for place in [
            "query: id",
            "query:id ",
            "query:{id}",
            "query:?id",
            "query:id=",
            "query:a%20b",
            "query:a+b",
            "query:+id",
            "query:id#",
            "form:",
            "form: id",
            "form:a+b",
            "form:{id}",
            "cookie: product",
            "cookie:product=",
            "cookie:{product}",
            "cookie:pro\nduct",
            "cookie:pro\0duct",
            "json:/",
            "json:/items/",
            "json://id",
            "Query:id",
        ] {
            assert!(place.parse::<IdPlace>().is_err(), "{place}");
        }
    }

    #[test]
    fn a_name_with_a_space_or_a_plus_sign_is_found() {
        let request = Request::builder()
            .uri("/p/9?a+b=1&a%20b=2&a%2Bb=3&id[]=4&id%5B%5D=5")
            .header("cookie", "a+b=6; a%20b=7")
            .body(())
            .unwrap();
        let (parts, ()) = request.into_parts();
        assert_eq!(values("query:a b", &parts), ["1", "2"]);
        assert_eq!(values("query:id[]", &parts), ["4", "5"]);
        // The guard does not decode the names of cookies and JSON fields.
        assert_eq!(values("cookie:a+b", &parts), ["6"]);
        assert_eq!(values("cookie:a%20b", &parts), ["7"]);
        let body = body(r#"{"a+b": 8, "a b": 9, "a%20b": 10}"#);
        for (place, value) in [("json:/a+b", "8"), ("json:/a b", "9"), ("json:/a%20b", "10")] {
            assert_eq!(in_body(place, &body), [value]);
        }
        // A plus sign in a path is no space.
        let template: PathTemplate = "/a+b/{id}".parse().unwrap();
        assert!(template.values("/a+b/7").is_some() && template.values("/a%20b/7").is_none());
    }

    #[test]
    fn the_case_of_a_name_has_no_effect_except_in_a_cookie() {
        let request = Request::builder().uri("/p/9?id=7").header("x-id", "5");
        let (parts, ()) = request.header("cookie", "product=4").body(()).unwrap().into_parts();
        assert_eq!(values("query:ID", &parts), ["7"]);
        assert_eq!(values("header:X-ID", &parts), ["5"]);
        assert_eq!(values("cookie:product", &parts), ["4"]);
        assert_eq!(values("cookie:Product", &parts), [""; 0]);
        assert_eq!(in_body("json:/ID", &body(r#"{"id": 7}"#)), ["7"]);
        assert_eq!(in_body("form:ID", &body("id=7")), ["7"]);
    }
}
