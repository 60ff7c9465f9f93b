//! Bitcoin's block filters (BIP-158, BIP-157). Layout: `docs/formats/bip158.md`.
//!
//! A node builds a set of all scripts that a block pays to or spends. A wallet downloads the sets
//! of all blocks, tests its own scripts against each set, and downloads the blocks that match. The
//! node does not learn which scripts the wallet has. The crate `tamis-bitcoin` builds the set of a
//! block.

use std::io;

use crate::encoding::bitcoin::Hash256;
use crate::errors::{CreateError, DecodeError, EncodeError};
use crate::filters::{Contents, GolombParams, GolombSet};
use crate::format::{DecodeOptions, Detection, Format, Items, Parameter, Parameters};
use crate::items::Funnel;
use crate::items::item_collector::ItemCollector;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "bip158",
    extensions: &["bip158", "cfilter"],
    summary: "Bitcoin's basic filters of blocks (BIP-158)",
    // Detection can check only the number of items and the end of the last code. A short text file often has a valid
    // number of items and a valid end of the last code.
    detection: Detection::ByName,
    items: Items::Default(Funnel::Hex),
    parameters: Parameters { required: &[Parameter::BlockHash], planning: &[], ..Parameters::NONE },
    decode: |bytes, options| decode(bytes, options.block_hash()?).map(Contents::new),
    encode,
    create: |options| {
        block_hash(options)?;
        Ok(Contents::new(ItemCollector::new("bip158")))
    },
    ..Format::BASE
};

fn block_hash(options: &DecodeOptions) -> Result<Hash256, CreateError> {
    options.block_hash.ok_or(CreateError::Missing(Parameter::BlockHash))
}

/// Returns the SipHash key of the filter of a block: the first half of the block's hash.
#[must_use]
pub fn key(block_hash: Hash256) -> [u64; 2] {
    let (words, _) = block_hash.0.as_chunks::<8>();
    [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
}

/// Reads the basic filter of a block. Rejects trailing bytes.
///
/// # Errors
///
/// The errors of [`GolombSet::decode`].
pub fn decode(bytes: &[u8], block_hash: Hash256) -> Result<GolombSet, DecodeError> {
    GolombSet::decode(bytes, key(block_hash), GolombParams::BASIC)
}

fn encode(
    contents: &Contents,
    options: &DecodeOptions,
    out: &mut dyn io::Write,
) -> Result<(), EncodeError> {
    if let Some(set) = contents.downcast_ref::<GolombSet>() {
        let (p, m) = (set.params().p(), set.params().m());
        if set.params() != GolombParams::BASIC {
            return Err(EncodeError::needs_items(format!(
                "basic filters have P = 19 and M = 784931, not {p} and {m}"
            )));
        }
        return Ok(out.write_all(set.bytes())?);
    }
    let collector = contents.downcast_ref::<ItemCollector>();
    let Some(collector) = collector.filter(|it| it.format() == FORMAT.name) else {
        return Err(EncodeError::needs_items(
            "BIP-158 stores hashes, which other filters do not have",
        ));
    };
    let set = GolombSet::new(key(block_hash(options)?), GolombParams::BASIC, &collector.sorted());
    let set = set.map_err(|error| EncodeError::refused(error.to_string()))?;
    Ok(out.write_all(set.bytes())?)
}
