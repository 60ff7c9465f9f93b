//! Implements `CF.SCANDUMP` and `CF.LOADCHUNK`.

use tamis_redisbloom::RedisCuckoo;
use tamis_resp::Reply;

use crate::command::argv::{Argv, parse_integer};
use crate::command::run::{Env, Outcome, Written, error};
use crate::text::{self, cf};
use crate::value::Value;
use crate::value::partial_load::MAX_CHUNK_BYTES;

/// The length of a header, in bytes.
const HEADER_BYTES: usize = 38;

/// Runs `CF.SCANDUMP key position`.
pub(crate) fn scan_dump(value: Option<&Value>, argv: Argv<'_>, env: &Env<'_>) -> Reply {
    let Some(position) = parse_integer(argv[2]).filter(|&n| n >= 0) else {
        return error(cf::POSITION);
    };
    let filter = match value {
        None => return error(text::NOT_FOUND),
        Some(Value::RedisCuckoo(filter)) => filter,
        Some(_) => return error(text::WRONG_TYPE),
    };
    // The maximum length of a chunk is the same as in RedisBloom.
    if let Err(text) = env.check_reply(filter.size_bytes().min(MAX_CHUNK_BYTES as u64)) {
        return error(text);
    }
    let chunk = match position {
        _ if filter.is_empty() => None,
        0 => Some((1, filter.header().to_vec())),
        _ => filter.chunk(position),
    };
    let (next, bytes) = match chunk {
        Some((next, bytes)) => (next, Reply::Bulk(bytes)),
        None => (0, Reply::Null),
    };
    Reply::Array(vec![Reply::Integer(next), bytes])
}

/// Runs `CF.LOADCHUNK key position data`.
pub(crate) fn load_chunk(value: &mut Option<Value>, argv: Argv<'_>, env: &Env<'_>) -> Written {
    let position = parse_integer(argv[2]).filter(|&n| n != 0).ok_or(cf::POSITION)?;
    let (data, settings) = (argv[3], env.settings);
    match value {
        Some(Value::RedisCuckoo(_)) if position == 1 => return Err(text::ITEM_EXISTS.into()),
        Some(Value::RedisCuckoo(filter)) => {
            filter.load_chunk(position, data).map_err(|_| cf::BAD_CHUNK)?;
        }
        Some(_) => return Err(text::WRONG_TYPE.into()),
        None if position != 1 => return Err(text::NOT_FOUND.into()),
        None if data.len() != HEADER_BYTES => return Err(cf::HEADER.into()),
        // Reject too many sub-filters, because each sub-filter allocates memory before its bits
        // arrive.
        None if sub_filters(data) > u64::from(settings.cf_max_expansions) => {
            return Err(cf::BAD_HEADER.into());
        }
        None => {
            let filter = RedisCuckoo::from_header_within(data, settings.max_filter_bytes);
            let filter = filter.map_err(|_| cf::BAD_HEADER)?;
            *value = Some(Value::RedisCuckoo(Box::new(filter)));
        }
    }
    Ok(Outcome::changed(Reply::ok()))
}

/// Returns the number of sub-filters in a header.
fn sub_filters(header: &[u8]) -> u64 {
    header.get(24..).and_then(|rest| rest.first_chunk()).map_or(0, |n| u64::from_le_bytes(*n))
}

#[cfg(test)]
mod tests {
    use tamis_resp::{Protocol, Reply};

    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_header_takes_no_more_memory_than_the_settings_allow() {
        let settings = Settings { max_filter_bytes: 1 << 20, ..Settings::default() };
        let env = Env::new(&settings, Protocol::Resp2, 0);
        for (buckets, sub_filters, is_loaded) in
            [(1_u64 << 30, 1_u64, false), (1 << 18, 600, false), (4, 33, false), (1 << 18, 2, true)]
        {
            let mut header = [0; HEADER_BYTES];
            header[8..16].copy_from_slice(&buckets.to_le_bytes());
            header[24..32].copy_from_slice(&sub_filters.to_le_bytes());
            header[32..].copy_from_slice(&[2, 0, 20, 0, 1, 0]);
            let words: [&[u8]; 4] = [b"CF.LOADCHUNK", b"k", b"1", &header];
            let mut value = None;
            let changed = load_chunk(&mut value, &words, &env) == Ok(Outcome::changed(Reply::ok()));
            assert_eq!((changed, value.is_some()), (is_loaded, is_loaded), "{buckets} buckets");
        }
    }
}
