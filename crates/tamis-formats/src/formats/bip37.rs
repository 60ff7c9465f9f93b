//! Bitcoin's wallet filters (BIP-37). Layout: `docs/formats/bip37.md`.
//!
//! A wallet sends a filter of its keys to a node. For each block, the node returns the matching transactions and a
//! proof that the transactions are in the block. The crate `tamis-bitcoin` creates and checks the proofs that
//! transactions are in a block.

mod plan;
pub(crate) mod rule;
mod wallet_filter;

use std::io::Write;

use crate::errors::{CreateError, EncodeError};
use crate::filters::{Contents, ForeignBloom};
use crate::format::{DecodeOptions, Detection, Format, Items, Sniff};
use crate::items::Funnel;

pub use plan::{Bip37Sizing, MAX_BYTES, MAX_PROBES, plan};
pub use rule::{Bip37, Update};
pub use wallet_filter::WalletFilter;

/// The row of this format in [`FORMATS`](crate::FORMATS).
pub(crate) const FORMAT: Format = Format {
    name: "bip37",
    extensions: &["bip37", "filterload"],
    summary: "Bitcoin's filters of wallets, as filterload carries them (BIP-37)",
    detection: Detection::ByBytes(sniff),
    items: Items::Default(Funnel::Hex),
    decode: |bytes, _| WalletFilter::decode(bytes).map(contents_of),
    encode,
    create: |options| {
        let (items, rate) = options.plan()?;
        let items = u32::try_from(items).map_err(|_| {
            CreateError::refused(format!("BIP-37 plans at most 2³² − 1 items, not {items}"))
        })?;
        let (bytes, probes) = plan(items, rate, Bip37Sizing::Core)?;
        if bytes == 0 || probes == 0 {
            return Err(CreateError::refused(format!(
                "Bitcoin Core would make a filter of {bytes} bytes and {probes} hash functions, \
                which matches every item: plan at most 144,000 items, and a rate of 0.01 or less"
            )));
        }
        WalletFilter::create(items, rate, 0, Update::None, Bip37Sizing::Core).map(contents_of)
    },
    ..Format::BASE
};

fn sniff(bytes: &[u8]) -> Sniff {
    // The largest value of the flags that Bitcoin Core uses.
    const MAX_FLAGS: u8 = 3;
    // An empty filter consists mostly of zero bytes, as many files of other formats do.
    let has_bits = |filter: WalletFilter| !filter.filter().words().is_empty();
    let is_possible = bytes.last().is_some_and(|&flags| flags <= MAX_FLAGS);
    Sniff::maybe(is_possible && WalletFilter::decode(bytes).is_ok_and(has_bits))
}

fn contents_of(filter: WalletFilter) -> Contents {
    Contents::new(ForeignBloom::from(filter))
}

fn encode(contents: &Contents, _: &DecodeOptions, out: &mut dyn Write) -> Result<(), EncodeError> {
    let (filter, _) = ForeignBloom::with_rule::<Bip37>(contents, "BIP-37")?;
    let wallet = WalletFilter::try_from(filter.clone()).expect("`with_rule` checked the rule");
    Ok(out.write_all(&wallet.encode())?)
}
