//! The place of the id of a new row: in the response, or in the request that created the row.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use http::request::Parts;
use http::{HeaderMap, HeaderName};

use crate::request::learn::location;
use crate::request::path::{PathTemplate, Reading};
use crate::request::place::IdPlace;

/// The place of the id of a new row in a response or its request.
///
/// The text form is `answer json:/data/id`, `answer header:x-id`, `answer header:location /products/{id}`, or the text
/// of an [`IdPlace`] of the request.
///
/// # Examples
///
/// ```
/// use tamis_guard::LearnPlace;
///
/// let place: LearnPlace = "answer header:location /shops/{shop}/products/{id}".parse()?;
/// assert_eq!(place.to_string(), "answer header:location /shops/{shop}/products/{id}");
/// assert!("answer header:location /products".parse::<LearnPlace>().is_err());
/// # Ok::<(), tamis_guard::LearnPlaceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LearnPlace {
    /// A place in the request.
    Request(IdPlace),
    /// A value in the JSON body of the response. The field is the path to the value.
    AnswerJson(Vec<String>),
    /// A response header whose whole value is the id.
    AnswerHeader(HeaderName),
    /// A response header that contains the address of the row, such as `Location`.
    AnswerAddress {
        /// The name of the header.
        header: HeaderName,
        /// The template for the path of the address. The value of the name `{id}` is the id.
        path: PathTemplate,
    },
}

/// The error for a text that is not a valid place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnPlaceError {
    place: String,
}

impl fmt::Display for LearnPlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not the place of a new id: write `answer json:/PATH/TO/FIELD`, \
             `answer header:NAME`, `answer header:location /PATH/{{id}}`, or a place of the request \
             such as `path:NAME`",
            self.place
        )
    }
}

impl std::error::Error for LearnPlaceError {}

impl FromStr for LearnPlace {
    type Err = LearnPlaceError;

    fn from_str(place: &str) -> Result<Self, LearnPlaceError> {
        let wrong = || LearnPlaceError { place: place.to_owned() };
        let Some(answer) = place.strip_prefix("answer ") else {
            return place.parse().map(Self::Request).map_err(|_| wrong());
        };
        let answer = answer.trim();
        let (first, path) = match answer.split_once(' ') {
            Some((first, path)) if first.starts_with("header:") => (first, Some(path.trim())),
            _ => (answer, None),
        };
        match (first.parse().map_err(|_| wrong())?, path) {
            (IdPlace::Json(path), None) => Ok(Self::AnswerJson(path)),
            (IdPlace::Header(header), None) => Ok(Self::AnswerHeader(header)),
            (IdPlace::Header(header), Some(path)) => {
                let path: PathTemplate = path.parse().map_err(|_| wrong())?;
                let has_id = path.names().any(|name| name == "id");
                if has_id { Ok(Self::AnswerAddress { header, path }) } else { Err(wrong()) }
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for LearnPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(place) => place.fmt(f),
            Self::AnswerJson(path) => write!(f, "answer {}", IdPlace::Json(path.clone())),
            Self::AnswerHeader(header) => write!(f, "answer header:{header}"),
            Self::AnswerAddress { header, path } => write!(f, "answer header:{header} {path}"),
        }
    }
}

impl LearnPlace {
    /// Tests whether the guard must read the body of the request.
    #[must_use]
    pub fn needs_request_body(&self) -> bool {
        matches!(self, Self::Request(place) if place.needs_body())
    }

    /// Returns all values at this place in the head of a request. `template` is the path template of the rule. If a name
    /// has several candidates, the method returns all candidates, because the effect of a wrong id is small.
    pub(super) fn values_in_request<'r>(
        &self,
        parts: &'r Parts,
        template: &PathTemplate,
    ) -> Vec<Cow<'r, [u8]>> {
        let Self::Request(place) = self else { return Vec::new() };
        let path = template.values_of(parts.uri.path(), Reading::default()).unwrap_or_default();
        let values = place.values_in_head(parts, template, &path);
        let split = match place {
            IdPlace::Path(name) => template.split_of(name),
            _ => None,
        };
        let Some(split) = split else { return values.into_vec() };
        let candidates = values.iter().flat_map(|names| split.candidates(names));
        candidates.map(|id| Cow::Owned(id.to_vec())).collect()
    }

    /// Returns all values at this place in the headers of a response. A relative address is resolved against
    /// `request_path`, the path of the request.
    pub(super) fn values_in_answer(&self, headers: &HeaderMap, request_path: &str) -> Vec<Vec<u8>> {
        match self {
            Self::AnswerHeader(name) => {
                let values = headers.get_all(name).iter();
                values.map(|value| value.as_bytes().trim_ascii().to_vec()).collect()
            }
            Self::AnswerAddress { header, path } => {
                let addresses = headers.get_all(header).iter();
                let addresses = addresses.filter_map(|value| value.to_str().ok());
                addresses.flat_map(|address| ids_in(address.trim(), path, request_path)).collect()
            }
            Self::Request(_) | Self::AnswerJson(_) => Vec::new(),
        }
    }
}

/// Returns the candidates for the name `{id}` in an address.
fn ids_in(address: &str, template: &PathTemplate, request_path: &str) -> Vec<Vec<u8>> {
    let path = location::path_of(address, request_path);
    let texts = template.values_of(&path, Reading::default()).unwrap_or_default();
    let mut texts = template.names().zip(texts);
    let Some((_, text)) = texts.find(|(name, _)| *name == "id") else { return Vec::new() };
    match template.split_of("id") {
        Some(split) => split.candidates(&text).map(<[u8]>::to_vec).collect(),
        None => vec![text.into_owned()],
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn each_place_is_displayed_as_it_is_written() {
        for place in [
            "path:id",
            "json:/id",
            "header:x-id",
            "answer json:/data/*/id",
            "answer header:x-id",
            "answer header:location /products/{id}",
            "answer header:location /shops/{shop}/products/{id}/*",
            "answer header:location /products/{slug}-{id}.html",
            "form:id",
        ] {
            assert_eq!(place.parse::<LearnPlace>().unwrap().to_string(), place);
        }
        for wrong in [
            "",
            "answer",
            "answer ",
            "answer path:id",
            "answer cookie:id",
            "answer form:id",
            "answer json:id",
            "answer header:",
            "answer header:location products/{id}",
            "answer header:location /products/{name}",
            "answer header:location /{id",
            "body:id",
        ] {
            let error = wrong.parse::<LearnPlace>().expect_err(wrong);
            assert!(error.to_string().contains("`answer json:/PATH/TO/FIELD`"), "{error}");
        }
    }

    #[test]
    fn an_address_has_the_id_in_its_path() {
        let place: LearnPlace = "answer header:location /products/{id}".parse().unwrap();
        for (address, id) in [
            ("/products/7", Some("7")),
            ("http://shop.example/products/7?x=/products/8#y", Some("7")),
            ("//shop.example/products/%37", Some("7")),
            ("products/7", Some("7")),
            ("./7", None),
            ("/products/", None),
            ("/orders/7", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("location", HeaderValue::from_str(address).unwrap());
            let found = place.values_in_answer(&headers, "/products");
            let expected: Vec<Vec<u8>> = id.into_iter().map(Vec::from).collect();
            assert_eq!(found, expected, "{address}");
        }
        let mut headers = HeaderMap::new();
        headers.insert("location", HeaderValue::from_bytes(b"/products/\xff").unwrap());
        assert!(place.values_in_answer(&headers, "/").is_empty());
        // All candidates are learnt.
        let place: LearnPlace = "answer header:location /p/{slug}-{id}.html".parse().unwrap();
        headers.insert("location", HeaderValue::from_static("/p/red-shoes-7.html"));
        assert_eq!(place.values_in_answer(&headers, "/"), [&b"7"[..], b"shoes-7"]);
    }
}
