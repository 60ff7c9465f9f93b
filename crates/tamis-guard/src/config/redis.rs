//! Reads the field `source` of a set with a Redis source.

use tamis_formats::{Charset, Format, Funnel};

use crate::config::file;
use crate::config::setting::{InvalidValue, invalid, set_to};
use crate::config::units::{Size, Text};
use crate::source::RedisOptions;

/// Returns the settings of a source.
pub(super) fn redis(table: &file::RedisSource) -> Result<RedisOptions, InvalidValue> {
    let file::RedisSource {
        url,
        format,
        funnel,
        charset,
        items_planned,
        rate_planned,
        max_size,
        min_items,
        min_share,
    } = table;
    let mut options = RedisOptions::new(&url.0);
    options.check().map_err(|error| invalid("url", error))?;
    if let Some(name) = format {
        let known = RedisOptions::FORMATS.contains(&name.as_str());
        let found = Format::named(name).filter(|_| known);
        let expected = || format!("write one of {}", RedisOptions::FORMATS.join(", "));
        options.format = Some(found.ok_or_else(|| invalid("format", expected()))?);
    }
    let charsets = || format!("write one of {}", Charset::ALL.map(Charset::name).join(", "));
    let named = |name: &String| Charset::named(name).ok_or_else(|| invalid("charset", charsets()));
    let charset = charset.as_ref().map(named).transpose()?;
    if let Some(name) = funnel {
        let names = Funnel::NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let expected = || format!("write one of {names}; text and twice need `charset` too");
        let found = Funnel::named(name, charset);
        options.funnel = Some(found.ok_or_else(|| invalid("funnel", expected()))?);
    } else if charset.is_some() {
        return Err(invalid("charset", "write `funnel = \"text\"` too"));
    }
    options.items_planned = *items_planned;
    options.rate_planned = *rate_planned;
    set_to(&mut options.max_bytes, max_size.map(|Text(Size(bytes))| bytes));
    set_to(&mut options.min_items, *min_items);
    set_to(&mut options.min_share, *min_share);
    Ok(options)
}
