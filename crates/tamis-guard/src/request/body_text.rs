//! The text of a request body, in which the guard finds ids.

use std::borrow::Cow;

use bytes::Bytes;

use crate::request::form;
use crate::request::json::Json;

/// The text of a request body that the guard has read.
///
/// The guard does not use the header `Content-Type`, because programs accept different types. If the guard used the
/// header, a client could hide an id with another type.
#[derive(Debug)]
pub(crate) struct BodyText {
    bytes: Bytes,
    /// The value is `None` if the body is not valid JSON.
    json: Option<Json>,
}

impl BodyText {
    /// Parses a body.
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self { json: Json::parse(&bytes), bytes }
    }

    /// Returns the length of the body in bytes. The callers compare the length with their own limits.
    pub(crate) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the values at a path in a JSON body.
    pub(crate) fn json_values(&self, path: &[String]) -> Vec<Vec<u8>> {
        self.json.as_ref().map(|json| json.values_at(path)).unwrap_or_default()
    }

    /// Returns the values of a name in the body of a form.
    pub(crate) fn form_values(&self, name: &str) -> Vec<Vec<u8>> {
        form::values_of(&self.bytes, name).map(Cow::into_owned).collect()
    }
}
