//! Bitcoin's filters of blocks (BIP-158, BIP-157). Layout: `docs/formats/bip158.md`.
//!
//! A node builds a set of all scripts that a block pays to or spends. A wallet downloads the sets
//! of all blocks, tests its own scripts against each set, and downloads the blocks that match. The
//! node does not learn which scripts the wallet has.

use std::fmt;
use std::io;

use crate::bitcoin::script::OP_RETURN;
use crate::bitcoin::{Block, Hash256, Transaction};
use crate::contents::Contents;
use crate::create_error::CreateError;
use crate::decode_error::DecodeError;
use crate::decode_options::DecodeOptions;
use crate::encode_error::EncodeError;
use crate::format::{Format, ItemDomain, Items, Parameters, Sniff};
use crate::funnel::Funnel;
use crate::golomb_set::{GolombError, GolombParams, GolombSet, check};
use crate::item_collector::ItemCollector;
use crate::parameter::Parameter;

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "bip158",
    extensions: &["bip158", "cfilter"],
    summary: "Bitcoin's basic filters of blocks (BIP-158)",
    sniff: Some(|bytes| Sniff::maybe(check(bytes, GolombParams::BASIC).is_ok())),
    items: Items::Default(Funnel::Hex),
    item_domain: ItemDomain::Bytes,
    parameters: Parameters { required: &[Parameter::BlockHash], ..Parameters::NONE },
    versions: None,
    decode: |bytes, options| decode(bytes, options.block_hash()?).map(Contents::new),
    encode,
    create: |options| {
        block_hash(options)?;
        Ok(Contents::new(ItemCollector::new("bip158")))
    },
};

fn block_hash(options: &DecodeOptions) -> Result<Hash256, CreateError> {
    options.block_hash.ok_or(CreateError::Missing(Parameter::BlockHash))
}

/// Why a block has no filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterError {
    /// The number of scripts differs from the number of outputs that the block spends.
    Spent {
        /// The number of outputs that the block spends.
        expected: usize,
        /// The number of scripts that were given.
        found: usize,
    },
    /// The set cannot be built.
    Set(GolombError),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Spent { expected, found } => write!(
                f,
                "the block spends {expected} outputs, and {found} scripts were given: give one for each \
                 input except those of the first transaction, including empty ones"
            ),
            FilterError::Set(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FilterError {}

/// Returns the SipHash key of the filter of a block: the first half of the block's hash.
#[must_use]
pub fn key(block_hash: Hash256) -> [u64; 2] {
    let (words, _) = block_hash.0.as_chunks::<8>();
    [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])]
}

/// Creates the basic filter of a block. It holds the scripts of all outputs, except empty ones and
/// those that start with `OP_RETURN`, and the scripts of all outputs that the block spends, except
/// empty ones.
///
/// `spent` are the scripts of the outputs that the block spends, which the block itself does not
/// store. It has one script for each input, in order, without the input of the first transaction,
/// which spends nothing.
///
/// # Errors
///
/// [`FilterError`] if the number of scripts is wrong.
///
/// # Examples
///
/// ```
/// use tamis_formats::bip158::basic_filter;
/// use tamis_formats::bitcoin::Block;
///
/// // A header of zeros, and a transaction that makes new coins and pays them to OP_1.
/// let first = [&[1, 0, 0, 0, 1][..], &[0; 32], &[0xff; 4], &[0], &[0xff; 4]].concat();
/// let output = [&[1][..], &[0; 8], &[1, 0x51], &[0; 4]].concat();
/// let bytes = [&[0; 80][..], &[1], &first, &output].concat();
/// let filter = basic_filter(&Block::decode(&bytes).unwrap(), &[] as &[&[u8]])?;
/// assert!(filter.contains(&[0x51]) && !filter.contains(&[0x52]));
/// # Ok::<(), tamis_formats::bip158::FilterError>(())
/// ```
pub fn basic_filter(
    block: &Block<'_>,
    spent: &[impl AsRef<[u8]>],
) -> Result<GolombSet, FilterError> {
    let transactions = block.transactions().iter();
    let inputs = transactions.clone().flat_map(Transaction::inputs);
    let expected = inputs.filter(|input| !input.is_coinbase()).count();
    if spent.len() != expected {
        return Err(FilterError::Spent { expected, found: spent.len() });
    }
    let outputs = transactions.flat_map(Transaction::outputs).map(|output| output.script);
    let outputs = outputs.filter(|script| script.first() != Some(&OP_RETURN));
    let scripts = outputs.chain(spent.iter().map(AsRef::as_ref)).filter(|it| !it.is_empty());
    let scripts: Vec<_> = scripts.collect();
    GolombSet::new(key(block.header().hash()), GolombParams::BASIC, &scripts)
        .map_err(FilterError::Set)
}

/// Reads the basic filter of a block. Rejects trailing bytes.
///
/// # Errors
///
/// The errors of [`GolombSet::decode`].
pub fn decode(bytes: &[u8], block_hash: Hash256) -> Result<GolombSet, DecodeError> {
    GolombSet::decode(bytes, key(block_hash), GolombParams::BASIC)
}

/// Returns the header of a filter, which commits to this filter and to all filters before it
/// (BIP-157). Wallets compare the headers of several nodes.
///
/// `previous` is the header of the filter of the previous block. For the first block it is 32 zero
/// bytes, the default.
///
/// # Examples
///
/// ```
/// use tamis_formats::bip158::{decode, filter_header};
/// use tamis_formats::bitcoin::Hash256;
///
/// let first = "000000000933ea01ad0ee984209779baaec3ced90fa3f408719526f8d77f4943".parse()?;
/// let filter = decode(&[0x01, 0x9d, 0xfc, 0xa8], first)?;
/// let header = filter_header(filter.hash(), Hash256::default());
/// assert_eq!(header.to_string(), "21584579b7eb08997773e5aeff3a7f932700042d0ed2a6129012b7d7ae81b750");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn filter_header(filter_hash: Hash256, previous: Hash256) -> Hash256 {
    Hash256::of(&[&filter_hash.0, &previous.0])
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
