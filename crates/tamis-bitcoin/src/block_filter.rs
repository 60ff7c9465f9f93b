//! Creates the filters of blocks (BIP-158) and the headers of these filters (BIP-157). A Bitcoin node offers wallets
//! one filter for each block.

use std::fmt;

use tamis_formats::bip158::key;
use tamis_formats::bitcoin::Hash256;
use tamis_formats::{GolombError, GolombParams, GolombSet};

use crate::block::Block;
use crate::script::OP_RETURN;
use crate::transaction::Transaction;

/// The reason why [`basic_filter`] cannot create the filter of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterError {
    /// The number of passed scripts differs from the number of outputs that the block spends.
    Spent {
        /// The number of outputs that the block spends.
        expected: usize,
        /// The number of scripts that the caller passed.
        found: usize,
    },
    /// The Golomb-coded set cannot be built.
    Set(GolombError),
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Spent { expected, found } => write!(
                f,
                "the block spends {expected} outputs, and {found} scripts were given: give one for \
                each input except those of the first transaction, including empty ones"
            ),
            FilterError::Set(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FilterError {}

/// Creates the basic filter of a block. The filter contains the scripts of all outputs of the block, except empty
/// scripts and scripts that start with `OP_RETURN`. In addition to the scripts of the block's own outputs, the filter
/// contains the scripts of all outputs that the block spends, except empty scripts.
///
/// A block does not store the scripts of the outputs that the block spends. The caller must pass the scripts of the
/// spent outputs in `spent`, one script for each input, in order. The input of the first transaction spends no output,
/// so `spent` must not contain a script for this input.
///
/// # Errors
///
/// [`FilterError`] if the number of scripts is wrong, or if the set cannot be built.
///
/// # Examples
///
/// ```
/// use tamis_bitcoin::{Block, basic_filter};
///
/// // A header of zeros, and a transaction that creates new coins and pays the coins to OP_1.
/// let first = [&[1, 0, 0, 0, 1][..], &[0; 32], &[0xff; 4], &[0], &[0xff; 4]].concat();
/// let output = [&[1][..], &[0; 8], &[1, 0x51], &[0; 4]].concat();
/// let bytes = [&[0; 80][..], &[1], &first, &output].concat();
/// let filter = basic_filter(&Block::decode(&bytes).unwrap(), &[] as &[&[u8]])?;
/// assert!(filter.contains(&[0x51]) && !filter.contains(&[0x52]));
/// # Ok::<(), tamis_bitcoin::FilterError>(())
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

/// Returns the header of a filter (BIP-157). The header of a filter is a hash that covers the filter and the filters of
/// all previous blocks. Wallets compare the filter headers that several nodes send.
///
/// `previous` is the filter header of the previous block. For the first block, pass 32 zero bytes,
/// which is the default value of [`Hash256`].
///
/// # Examples
///
/// ```
/// use tamis_bitcoin::filter_header;
/// use tamis_formats::bip158::decode;
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
