//! Parses the source `leader`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tamis_sources::SourceKind;

use crate::config::setting::{InvalidValue, invalid, set_to};
use crate::config::source::fields::SourceFields;
use crate::config::units::{Secret, Size, Text};
use crate::fleet::LeaderOptions;
use crate::http::bearer_token::BearerToken;

/// The table `source = { kind = "leader", url = "http://host:9090/filters/products", token = "${TOKEN}" }`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Leader {
    url: Secret,
    token: Secret,
    max_size: Option<Text<Size>>,
    ca: Option<PathBuf>,
}

impl SourceFields for Leader {
    fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        let url: http::Uri = self.url.0.parse().map_err(|error| invalid("url", error))?;
        let form = "write http://HOST:PORT/filters/NAME, or the same with https";
        if !matches!(url.scheme_str(), Some("http" | "https")) || url.query().is_some() {
            return Err(invalid("url", form));
        }
        if url.authority().is_none_or(|it| it.as_str().contains('@')) {
            return Err(invalid("url", format!("has a user name; {form}")));
        }
        let token = BearerToken::new(&self.token.0).map_err(|error| invalid("token", error))?;
        let mut options = LeaderOptions::new(url, token);
        set_to(&mut options.max_bytes, self.max_size.map(|Text(Size(bytes))| bytes));
        options.ca = self.ca.as_ref().map(|ca| folder.join(ca));
        Ok(vec![Arc::new(options)])
    }
}
