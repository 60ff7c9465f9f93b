//! Parses the source `redis`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use tamis_formats::{Charset, Format, Funnel};
use tamis_sources::{RedisOptions, SourceKind};

use crate::config::secret_url::SecretUrl;
use crate::config::setting::{InvalidValue, invalid, set_to};
use crate::config::source::fields::SourceFields;
use crate::config::units::{Size, Text};

/// The table `source = { kind = "redis", url = "redis://host/key" }`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redis {
    url: SecretUrl,
    ca: Option<PathBuf>,
    format: Option<String>,
    funnel: Option<String>,
    charset: Option<String>,
    items_planned: Option<u64>,
    rate_planned: Option<f64>,
    max_size: Option<Text<Size>>,
    min_items: Option<u64>,
    min_share: Option<f64>,
}

impl SourceFields for Redis {
    fn needs_proof(&self) -> bool {
        true
    }

    fn kinds(&self, folder: &Path) -> Result<Vec<Arc<dyn SourceKind>>, InvalidValue> {
        let mut options = RedisOptions::new(&self.url.0);
        options.ca = self.ca.as_ref().map(|ca| folder.join(ca));
        options.check().map_err(|error| invalid("url", error))?;
        if self.ca.is_some() && !options.is_encrypted() {
            return Err(invalid("ca", "only with rediss://, which encrypts the connection"));
        }
        if let Some(name) = &self.format {
            let known = RedisOptions::FORMATS.contains(&name.as_str());
            let found = Format::named(name).filter(|_| known);
            let expected = || format!("write one of {}", RedisOptions::FORMATS.join(", "));
            options.format = Some(found.ok_or_else(|| invalid("format", expected()))?);
        }
        options.funnel = self.funnel()?;
        options.items_planned = self.items_planned;
        options.rate_planned = self.rate_planned;
        set_to(&mut options.max_bytes, self.max_size.map(|Text(Size(bytes))| bytes));
        set_to(&mut options.min_items, self.min_items);
        set_to(&mut options.min_share, self.min_share);
        Ok(vec![Arc::new(options)])
    }
}

impl Redis {
    fn funnel(&self) -> Result<Option<Funnel>, InvalidValue> {
        let charsets = || format!("write one of {}", Charset::ALL.map(Charset::name).join(", "));
        let named =
            |name: &String| Charset::named(name).ok_or_else(|| invalid("charset", charsets()));
        let charset = self.charset.as_ref().map(named).transpose()?;
        let Some(name) = &self.funnel else {
            return match charset {
                Some(_) => Err(invalid("charset", "write `funnel = \"text\"` too")),
                None => Ok(None),
            };
        };
        let names = Funnel::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let expected = || format!("write one of {names}; text and twice need `charset` too");
        let found = Funnel::named(name, charset);
        Ok(Some(found.ok_or_else(|| invalid("funnel", expected()))?))
    }
}
