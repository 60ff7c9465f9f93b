//! Filters of blocks and their headers equal the test vectors of BIP-158.

use serde_json::Value as Json;
use tamis_bitcoin::{Block, FilterError, basic_filter, filter_header};
use tamis_formats::bip158::{decode, key};
use tamis_formats::bitcoin::Hash256;

use crate::json::{hex, hexes, json, list, sip_key, text, to_hex};

fn hash(json: &Json) -> Hash256 {
    text(json).parse().unwrap()
}

#[test]
fn filters_of_blocks_and_their_headers_are_those_of_the_bip() {
    let golden = json("bitcoin/bip158.json");
    assert_eq!(list(&golden["blocks"]).len(), 7);
    for case in list(&golden["blocks"]) {
        let bytes = hex(&case["block_hex"]);
        let block = Block::decode(&bytes).unwrap();
        let spent = hexes(&case["prev_output_scripts"]);
        let filter = basic_filter(&block, &spent).unwrap();
        assert_eq!(to_hex(filter.bytes()), text(&case["basic_filter_hex"]), "{}", case["note"]);
        let header = filter_header(filter.hash(), hash(&case["prev_header"]));
        assert_eq!(header, hash(&case["basic_header"]), "{}", case["note"]);
        let block_hash = hash(&case["block_hash"]);
        assert_eq!(key(block_hash), sip_key(case));
        assert_eq!(decode(filter.bytes(), block_hash).unwrap(), filter);

        let outputs = block.transactions().iter().flat_map(|it| it.outputs().iter());
        for script in outputs.map(|output| output.script).chain(spent.iter().map(Vec::as_slice)) {
            let is_counted = !script.is_empty() && script[0] != 0x6a;
            assert_eq!(filter.contains(script), is_counted, "{}", to_hex(script));
        }
        let one_more = [&spent[..], &[vec![1]]].concat();
        let error = basic_filter(&block, &one_more).unwrap_err();
        assert_eq!(error, FilterError::Spent { expected: spent.len(), found: one_more.len() });
    }
}
