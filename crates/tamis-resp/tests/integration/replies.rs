//! An encoded reply decodes to the same reply, as far as the protocol can represent it.

use proptest::prelude::*;
use tamis_resp::{Protocol, Reply};

/// Returns what a client sees of a reply: the oracle of the round trip.
fn seen(reply: &Reply, protocol: Protocol) -> Reply {
    let resp3 = protocol == Protocol::Resp3;
    let line = |text: &str| text.replace(['\r', '\n'], " ");
    let each = |values: &[Reply]| values.iter().map(|value| seen(value, protocol)).collect();
    match reply {
        Reply::Simple(text) => Reply::simple(line(text)),
        Reply::Error(text) => Reply::error(line(text)),
        Reply::NullArray if resp3 => Reply::Null,
        Reply::Bool(value) if !resp3 => Reply::Integer(i64::from(*value)),
        Reply::Double(value) if !resp3 => {
            // The encoder chooses the digits, so check that they parse to the same number.
            let mut bytes = Vec::new();
            reply.encode(Protocol::Resp3, &mut bytes);
            let text = bytes[1..bytes.len() - 2].to_vec();
            assert_eq!(std::str::from_utf8(&text).unwrap().parse(), Ok(*value));
            Reply::Bulk(text)
        }
        Reply::BigNumber(digits) if !resp3 => Reply::bulk(digits.as_bytes()),
        Reply::Verbatim { text, .. } if !resp3 => Reply::Bulk(text.clone()),
        Reply::Array(values) => Reply::Array(each(values)),
        Reply::Set(values) if resp3 => Reply::Set(each(values)),
        Reply::Push(values) if resp3 => Reply::Push(each(values)),
        Reply::Set(values) | Reply::Push(values) => Reply::Array(each(values)),
        Reply::Map(pairs) => {
            let pairs =
                pairs.iter().map(|(key, value)| (seen(key, protocol), seen(value, protocol)));
            if resp3 {
                Reply::Map(pairs.collect())
            } else {
                Reply::Array(pairs.flat_map(|(key, value)| [key, value]).collect())
            }
        }
        Reply::Bools { mask, len } => {
            let answer = |i| mask.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1);
            let answers = (0..*len).map(|i| seen(&Reply::Bool(answer(i)), protocol));
            Reply::Array(answers.collect())
        }
        other => other.clone(),
    }
}

fn reply() -> impl Strategy<Value = Reply> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..20);
    let leaf = prop_oneof![
        any::<String>().prop_map(Reply::simple),
        any::<String>().prop_map(Reply::error),
        any::<i64>().prop_map(Reply::Integer),
        (0_i64..12).prop_map(Reply::Integer),
        bytes().prop_map(Reply::Bulk),
        Just(Reply::Null),
        Just(Reply::NullArray),
        any::<bool>().prop_map(Reply::Bool),
        // NaN is not equal to itself, so a comparison would fail.
        any::<u64>()
            .prop_map(f64::from_bits)
            .prop_filter("nan", |value| !value.is_nan())
            .prop_map(Reply::Double),
        any::<u128>().prop_map(|number| Reply::BigNumber(number.to_string().into())),
        (any::<[u8; 3]>(), bytes()).prop_map(|(format, text)| Reply::Verbatim { format, text }),
        (prop::collection::vec(any::<u64>(), 0..4), 0_usize..300)
            .prop_map(|(mask, len)| Reply::Bools { mask, len }),
    ];
    leaf.prop_recursive(5, 40, 6, |value| {
        let values = prop::collection::vec(value.clone(), 0..6);
        prop_oneof![
            values.clone().prop_map(Reply::Array),
            values.clone().prop_map(Reply::Set),
            values.prop_map(Reply::Push),
            prop::collection::vec((value.clone(), value), 0..4).prop_map(Reply::Map),
        ]
    })
}

proptest! {
    #[test]
    fn an_encoded_reply_decodes_to_itself(reply in reply(), behind: Vec<u8>) {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut bytes = Vec::new();
            reply.encode(protocol, &mut bytes);
            let len = bytes.len();
            for cut in 0..len {
                prop_assert_eq!(Reply::decode(&bytes[..cut]), Ok(None));
            }
            bytes.extend_from_slice(&behind);
            prop_assert_eq!(Reply::decode(&bytes), Ok(Some((seen(&reply, protocol), len))));
        }
    }

    #[test]
    fn any_bytes_are_a_reply_or_an_error(
        bytes in prop::collection::vec(prop::sample::select(&b"+-:$*_#,(=!%~>|0123tf\r\n\r\n\r\nx"[..]), 0..60),
    ) {
        if let Ok(Some((reply, len))) = Reply::decode(&bytes) {
            prop_assert!(len <= bytes.len());
            let mut again = Vec::new();
            reply.encode(Protocol::Resp3, &mut again);
            prop_assert!(Reply::decode(&again).unwrap().is_some());
        }
    }
}
