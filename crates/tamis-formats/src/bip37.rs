//! Bitcoin's filters of wallets (BIP-37). Drawn in `docs/formats/bip37.md`.
//!
//! A wallet sends a node a filter of its keys; the node sends back, of each block, the transactions that match and a proof that
//! they are in it. `examples/spv.rs` is such a wallet and such a node.

mod merkle_block;
mod rule;
mod wallet_filter;

use std::fmt;
use std::io;

use tamis::OutOfMemory;

use crate::bitcoin::compact_size;
use crate::contents::Contents;
use crate::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::format::{Format, ItemDomain, Items, Sniff};
use crate::funnel::Funnel;
use crate::reader::Reader;

pub use merkle_block::{BlockTooLarge, MAX_TRANSACTIONS, MerkleBlock};
pub use rule::Bip37;
pub use wallet_filter::{MessageError, PeerFilter, WalletFilter};

/// The row of [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "bip37",
    extensions: &["bip37", "filterload"],
    summary: "Bitcoin's filters of wallets, as filterload carries them (BIP-37)",
    sniff: Some(sniff),
    items: Items::Default(Funnel::Hex),
    item_domain: ItemDomain::Bytes,
    required: &[],
    read_uses: &[],
    write_uses: &[],
    versions: None,
    decode: |bytes, _| WalletFilter::decode(bytes).map(|filter| Contents::Flat(filter.into())),
    encode: |contents, _, out| encode(contents, out),
    create: |options| {
        let (items, rate) = options.plan()?;
        let no_place = |why: String| EncodeError::NoPlace(why.into());
        let items = u32::try_from(items)
            .map_err(|_| no_place(format!("BIP-37 plans 2³² − 1 items at most, not {items}")))?;
        let refused = |error: CreateError| no_place(error.to_string());
        let (bytes, probes) = plan(items, rate, Sizing::Core).map_err(refused)?;
        if bytes == 0 || probes == 0 {
            return Err(no_place(format!(
                "Bitcoin Core would make a filter of {bytes} bytes and {probes} hash functions, in which every item is: \
                 plan 144,000 items at most, and a rate of 0.01 or less"
            )));
        }
        let filter = WalletFilter::create(items, rate, 0, Update::None, Sizing::Core);
        filter.map(|filter| Contents::Flat(filter.into())).map_err(refused)
    },
};

/// The largest filter that nodes take.
pub const MAX_BYTES: usize = 36_000;

/// The most probes ("hash functions") that nodes take.
pub const MAX_PROBES: u32 = 50;

/// The largest item that `filteradd` carries.
pub const MAX_ITEM_BYTES: usize = 520;

/// Whose arithmetic plans the number of probes. A message says how many there are, so only new filters depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sizing {
    /// Bitcoin Core's: from whole bits an item.
    #[default]
    Core,
    /// That of the BIP's text and of most other programs: from bits an item.
    Real,
}

/// Which outpoints a node inserts by itself when a transaction pays to an item: otherwise the wallet would miss the one that
/// spends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Update {
    /// None.
    #[default]
    None = 0,
    /// All.
    All = 1,
    /// Those locked by a public key or by several, whose spending does not show the key.
    PublicKeyOnly = 2,
}

impl Update {
    /// The bits of the flags that are not reserved.
    pub(crate) const MASK: u8 = 0b11;

    /// Returns what flags mean to Bitcoin Core, which ignores reserved bits.
    #[must_use]
    pub const fn of(flags: u8) -> Self {
        match flags & Self::MASK {
            1 => Update::All,
            2 => Update::PublicKeyOnly,
            _ => Update::None,
        }
    }
}

impl fmt::Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Update::None => "none",
            Update::All => "all",
            Update::PublicKeyOnly => "public keys and bare multisig only",
        })
    }
}

/// Why no filter is made.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CreateError {
    /// Bitcoin Core divides by the number of items.
    NoItems,
    /// The rate is not above 0 and at most 1.
    Rate {
        /// What was asked for.
        rate: f64,
    },
    /// The memory is not there.
    Memory(OutOfMemory),
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CreateError::NoItems => f.write_str("BIP-37 has no filter of 0 items: plan 1 or more"),
            CreateError::Rate { rate } => {
                write!(f, "BIP-37 takes rates above 0 and up to 1, not {rate}")
            }
            CreateError::Memory(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CreateError {}

/// Returns how many bytes and how many probes a filter is planned with.
///
/// Both are cut off at the limits of nodes, and then the rate is higher than the one asked for. Either may be 0, and then every
/// item is in the filter: bytes at rates near 1, probes if there are more items than bits.
///
/// # Errors
///
/// [`CreateError`] where the arithmetic has no answer.
///
/// # Examples
///
/// ```
/// use tamis_formats::bip37::{Sizing, plan};
///
/// assert_eq!(plan(3, 0.01, Sizing::Core)?, (3, 5));
/// assert_eq!(plan(1_000_000, 0.01, Sizing::Core)?, (36_000, 0));
/// # Ok::<(), tamis_formats::bip37::CreateError>(())
/// ```
pub fn plan(items: u32, rate: f64, sizing: Sizing) -> Result<(usize, u32), CreateError> {
    // As Bitcoin Core writes it: the square of ln 2, rounded once.
    const LN_2_SQUARED: f64 = 0.480_453_013_918_201_4;
    if items == 0 {
        return Err(CreateError::NoItems);
    }
    if !(rate > 0.0 && rate <= 1.0) {
        return Err(CreateError::Rate { rate });
    }
    let n = f64::from(items);
    let bits = (-1.0 / LN_2_SQUARED * n * rate.ln()) as u64;
    let bytes = (bits / 8).min(MAX_BYTES as u64);
    let bits_an_item = match sizing {
        Sizing::Core => (bytes * 8 / u64::from(items)) as f64,
        Sizing::Real => (bytes * 8) as f64 / n,
    };
    let probes = (bits_an_item * std::f64::consts::LN_2) as u32;
    Ok((bytes as usize, probes.min(MAX_PROBES)))
}

/// Reads the payload of `filteradd`: an item. Bytes behind it are left unread, as nodes do.
///
/// # Errors
///
/// [`DecodeError`] if it is longer than 520 bytes or cut short.
///
/// # Examples
///
/// ```
/// use tamis_formats::bip37::{decode_filter_add, encode_filter_add};
///
/// let payload = encode_filter_add(b"\x01\x02").expect("short");
/// assert_eq!(payload, [2, 1, 2]);
/// assert_eq!(decode_filter_add(&payload)?, [1, 2]);
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
pub fn decode_filter_add(payload: &[u8]) -> Result<&[u8], DecodeError> {
    let mut reader = Reader::new(payload);
    let found = compact_size::read(&mut reader.clone(), "item")?;
    if found > MAX_ITEM_BYTES as u64 {
        let kind =
            DecodeErrorKind::Unexpected { expected: "520 bytes at most", found: found.into() };
        return Err(reader.error("length of the item", kind));
    }
    compact_size::read_bytes(&mut reader, "item")
}

/// Writes the payload of `filteradd`; `None` if the item is longer than 520 bytes, for which nodes hang up.
#[must_use]
pub fn encode_filter_add(item: &[u8]) -> Option<Vec<u8>> {
    (item.len() <= MAX_ITEM_BYTES).then(|| {
        let mut payload = Vec::with_capacity(3 + item.len());
        compact_size::write(item.len() as u64, &mut payload);
        payload.extend_from_slice(item);
        payload
    })
}

fn sniff(bytes: &[u8]) -> Sniff {
    if WalletFilter::decode(bytes).is_ok() { Sniff::Maybe } else { Sniff::No }
}

fn encode(contents: &Contents, out: &mut dyn io::Write) -> Result<(), EncodeError> {
    let why = match contents {
        Contents::Flat(filter) => match WalletFilter::try_from(filter.clone()) {
            Ok(filter) => return Ok(out.write_all(&filter.encode())?),
            Err(filter) => format!(
                "BIP-37 places items otherwise: by murmur3 x86 32, not by {}; build one from the items",
                filter.rule()
            ),
        },
        _ => "BIP-37 has no place for such a filter: build one from the items".into(),
    };
    Err(EncodeError::NoPlace(why.into()))
}
