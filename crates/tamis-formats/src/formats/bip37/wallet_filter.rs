//! The filter of a wallet. The items are keys, hashes and outpoints of the wallet.

use crate::encoding::ByteReader;
use crate::encoding::bitcoin::compact_size;
use crate::errors::{CreateError, DecodeError, DecodeErrorKind};
use crate::filters::ForeignBloom;
use crate::formats::bip37::plan::{Bip37Sizing, MAX_BYTES, MAX_PROBES, plan};
use crate::formats::bip37::rule::{Bip37, Update};
use crate::rules::Rule;

/// A filter of keys, hashes of keys, transactions and outpoints. A wallet sends the filter to a node in the message
/// `filterload`.
///
/// # Examples
///
/// ```
/// use tamis_formats::bip37::{Bip37Sizing, Update, WalletFilter};
///
/// let key_hash = [7; 20];
/// let mut wallet = WalletFilter::create(3, 0.01, 0, Update::All, Bip37Sizing::Core)?;
/// wallet.insert(&key_hash);
/// assert!(wallet.contains(&key_hash));
/// let payload = wallet.encode();
/// assert_eq!((payload.len(), WalletFilter::decode(&payload).unwrap()), (13, wallet));
/// # Ok::<(), tamis_formats::CreateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WalletFilter {
    filter: ForeignBloom,
    // Invariant: `rule` equals the rule of `filter`.
    rule: Bip37,
}

impl WalletFilter {
    /// Creates an empty filter with the bytes and probes of [`plan`].
    ///
    /// With a random `tweak`, two filters of one wallet have different bits, so two nodes cannot detect that the
    /// filters belong to the same wallet.
    ///
    /// # Errors
    ///
    /// [`CreateError`] if `items` is 0, or if the rate is not above 0 and at most 1.
    pub fn create(
        items: u32,
        rate: f64,
        tweak: u32,
        update: Update,
        sizing: Bip37Sizing,
    ) -> Result<Self, CreateError> {
        let (bytes, probes) = plan(items, rate, sizing)?;
        let rule = Bip37::new(bytes, probes, tweak, update as u8);
        let filter = ForeignBloom::new(Rule::new(rule)).map_err(CreateError::Memory)?;
        Ok(Self { filter, rule })
    }

    /// Decodes the payload of `filterload`. Rejects trailing bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if a node would disconnect the wallet, or if bytes follow the filter. A node disconnects the
    /// wallet if the filter has more than 36,000 bytes or more than 50 hash functions. A node disconnects the wallet if
    /// bytes of the payload are missing, or if a length is not in its shortest form.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new(payload);
        let filter = Self::read(&mut reader)?;
        reader.end("flags")?;
        Ok(filter)
    }

    /// Decodes the payload of `filterload`. Returns the filter and the trailing bytes, which Bitcoin Core ignores.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if a Bitcoin node would disconnect a peer that sends this payload.
    pub fn decode_start(payload: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = ByteReader::new(payload);
        let filter = Self::read(&mut reader)?;
        Ok((filter, reader.rest()))
    }

    fn read(reader: &mut ByteReader<'_>) -> Result<Self, DecodeError> {
        let len = compact_size::read(&mut reader.clone(), "length")?;
        if len > MAX_BYTES as u64 {
            return Err(reader.unexpected("length", "at most 36,000 bytes", len));
        }
        let bits = compact_size::read_bytes(reader, "bits")?;
        let probes_at = reader.clone();
        let probes = reader.u32("hash functions")?;
        if probes > MAX_PROBES {
            return Err(probes_at.unexpected("number of hash functions", "50 at most", probes));
        }
        let rule = Bip37::new(bits.len(), probes, reader.u32("tweak")?, reader.u8("flags")?);
        let filter = ForeignBloom::from_bytes(Rule::new(rule), bits)
            .map_err(|memory| probes_at.error("bits", DecodeErrorKind::Memory(memory)))?;
        Ok(Self { filter, rule })
    }

    /// Returns the payload of `filterload`.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(3 + self.rule.bytes() + 9);
        compact_size::write(self.rule.bytes() as u64, &mut payload);
        let end = payload.len() + self.rule.bytes();
        payload.extend(self.filter.words().iter().flat_map(|word| word.to_le_bytes()));
        payload.truncate(end);
        payload.extend(self.filter.rule().probes().to_le_bytes());
        payload.extend(self.rule.tweak().to_le_bytes());
        payload.push(self.rule.flags());
        payload
    }

    /// Returns the bits and the rule.
    #[must_use]
    pub fn filter(&self) -> &ForeignBloom {
        &self.filter
    }

    /// Tests whether an item may be in the filter. A filter without bytes or hash functions matches every item.
    #[must_use]
    pub fn contains(&self, item: &[u8]) -> bool {
        self.filter.contains(item)
    }

    /// Inserts an item. Returns true if a bit changed. Does nothing if the filter has no bytes.
    pub fn insert(&mut self, item: &[u8]) -> bool {
        self.filter.insert(item)
    }

    /// Returns the setting that selects the outpoints that a node inserts.
    #[must_use]
    pub fn update(&self) -> Update {
        Update::of(self.rule.flags())
    }
}

impl TryFrom<ForeignBloom> for WalletFilter {
    type Error = ForeignBloom;

    /// Converts a filter with the rule of BIP-37. If the rule of the filter has a different type, returns the unchanged
    /// filter as the error.
    fn try_from(filter: ForeignBloom) -> Result<Self, ForeignBloom> {
        match filter.rule().downcast_ref() {
            Some(&rule) => Ok(Self { filter, rule }),
            None => Err(filter),
        }
    }
}

impl From<WalletFilter> for ForeignBloom {
    fn from(wallet: WalletFilter) -> Self {
        wallet.filter
    }
}
