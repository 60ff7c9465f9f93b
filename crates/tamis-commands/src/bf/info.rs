//! Implements `BF.INFO` and `BF.DEBUG`.

use tamis_resp::{Protocol, Reply};

use crate::command::argv::{Argv, is};
use crate::command::run::{Env, error};
use crate::filter_info::utilization::items_of;
use crate::text::{self, bf};
use crate::value::Value;

/// The fields of `BF.INFO`: the name in the command and the name in the reply.
const FIELDS: [(&str, &str); 5] = [
    ("CAPACITY", "Capacity"),
    ("SIZE", "Size"),
    ("FILTERS", "Number of filters"),
    ("ITEMS", "Number of items inserted"),
    ("EXPANSION", "Expansion rate"),
];

/// Runs `BF.INFO key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]`.
pub(crate) fn info(value: Option<&Value>, argv: Argv<'_>, env: &Env<'_>) -> Reply {
    let Some(value) = value else { return error(text::NOT_FOUND) };
    if argv.len() > 3 {
        return text::wrong_arity("bf.info");
    }
    let numbers = match value {
        Value::Bloom(filter) => [
            Some(filter.capacity()),
            Some(filter.memory_bytes()),
            Some(filter.parts()),
            Some(filter.items()),
            filter.expansion().map(u64::from),
        ],
        Value::RedisBloom(filter) => [
            Some(filter.capacity()),
            Some(filter.size_bytes()),
            Some(filter.layers().len() as u64),
            Some(filter.len()),
            filter.expansion().map(u64::from),
        ],
        Value::Filter(file) => [
            Some(file.filter.plan().items()),
            Some(value.memory_bytes()),
            Some(1),
            Some(items_of(file, env.now_millis)),
            None,
        ],
        Value::PartialLoad(_) => return error(bf::INCOMPLETE),
        Value::Empty(empty) => return info(Some(&empty.build()), argv, env),
        Value::RedisCuckoo(_) | Value::Bytes(_) => return error(text::WRONG_TYPE),
    };
    let number = |i: usize| {
        numbers[i].map_or(Reply::Null, |n| Reply::Integer(i64::try_from(n).unwrap_or(i64::MAX)))
    };
    let name = |i: usize| Reply::simple(FIELDS[i].1);
    match argv.get(2) {
        None => Reply::Map((0..FIELDS.len()).map(|i| (name(i), number(i))).collect()),
        Some(word) => match FIELDS.iter().position(|(field, _)| is(word, field)) {
            Some(i) if env.protocol == Protocol::Resp3 => Reply::Map(vec![(name(i), number(i))]),
            Some(i) => Reply::Array(vec![number(i)]),
            None => error(bf::UNKNOWN_FIELD),
        },
    }
}

/// Runs `BF.DEBUG key`.
pub(crate) fn debug(value: Option<&Value>, _: Argv<'_>, _: &Env<'_>) -> Reply {
    let lines: Vec<String> = match value {
        None => return error(text::NOT_FOUND),
        Some(Value::RedisBloom(filter)) => {
            let layers = filter.layers().map(|layer| {
                format!(
                    "bytes:{} bits:{} hashes:{} hashwidth:{} capacity:{} size:{} ratio:{}",
                    layer.bytes,
                    layer.bits,
                    layer.probes,
                    filter.hash_bits(),
                    layer.capacity,
                    layer.items,
                    percent_g(layer.rate),
                )
            });
            std::iter::once(format!("size:{}", filter.len())).chain(layers).collect()
        }
        Some(Value::Bloom(filter)) => vec![
            format!("size:{}", filter.items()),
            format!(
                "layout:tamis bytes:{} parts:{} capacity:{} ratio:{}",
                filter.memory_bytes(),
                filter.parts(),
                filter.capacity(),
                percent_g(filter.rate()),
            ),
        ],
        Some(_) => return error(text::WRONG_TYPE),
    };
    Reply::Array(lines.into_iter().map(|line| Reply::Bulk(line.into_bytes())).collect())
}

/// Formats a number like `%g` in C: six significant digits without trailing zeros. A very large or
/// very small number has an exponent.
fn percent_g(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    let (digits, exponent) =
        scientific.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is an integer");
    let trim = |digits: &str| {
        let digits = digits.to_owned();
        if digits.contains('.') {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            digits
        }
    };
    if (-4..6).contains(&exponent) {
        trim(&format!("{number:.*}", (5 - exponent) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(digits), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_c_does() {
        for (number, text) in [
            (0.005, "0.005"),
            (0.01, "0.01"),
            (0.25, "0.25"),
            (1e-5, "1e-05"),
            (0.000_123_456_78, "0.000123457"),
            (1.562_5e-5, "1.5625e-05"),
            (5e-301, "5e-301"),
            (0.125, "0.125"),
        ] {
            assert_eq!(percent_g(number), text);
        }
    }
}
