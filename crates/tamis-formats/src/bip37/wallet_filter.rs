//! The filter of a wallet: which transactions are its own, and what a node learns from them.

use std::fmt;

use crate::bip37::{
    Bip37, BlockTooLarge, CreateError, MAX_BYTES, MAX_PROBES, MerkleBlock, Sizing, Update,
    decode_filter_add, plan,
};
use crate::bitcoin::script::{is_bare_multisig, is_pay_to_public_key};
use crate::bitcoin::{Block, Transaction, compact_size, pushes};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::foreign_bloom::ForeignBloom;
use crate::reader::Reader;
use crate::rule::Rule;

/// A filter of keys, hashes of keys, transactions and outpoints, as `filterload` carries it.
///
/// # Examples
///
/// ```
/// use tamis_formats::bip37::{Sizing, Update, WalletFilter};
///
/// let key_hash = [7; 20];
/// let mut wallet = WalletFilter::create(3, 0.01, 0, Update::All, Sizing::Core)?;
/// wallet.insert(&key_hash);
/// assert!(wallet.contains(&key_hash));
/// let payload = wallet.encode();
/// assert_eq!((payload.len(), WalletFilter::decode(&payload).unwrap()), (13, wallet));
/// # Ok::<(), tamis_formats::bip37::CreateError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WalletFilter {
    filter: ForeignBloom,
    // Invariant: that of the filter.
    rule: Bip37,
}

impl WalletFilter {
    /// Makes an empty filter of as many bytes and probes as [`plan`] says.
    ///
    /// A `tweak` by chance keeps two nodes from telling by their bits that two filters are of one wallet.
    ///
    /// # Errors
    ///
    /// [`CreateError`] where the arithmetic has no answer.
    pub fn create(
        items: u32,
        rate: f64,
        tweak: u32,
        update: Update,
        sizing: Sizing,
    ) -> Result<Self, CreateError> {
        let (bytes, probes) = plan(items, rate, sizing)?;
        let rule = Bip37::new(bytes, probes, tweak, update as u8);
        let filter = ForeignBloom::new(Rule::Bip37(rule)).map_err(CreateError::Memory)?;
        Ok(Self { filter, rule })
    }

    /// Reads the payload of `filterload`, and nothing behind it.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] where a node hangs up: more than 36,000 bytes or 50 hash functions, too few bytes, a length that could be
    /// written shorter; and if bytes are left.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(payload);
        let filter = Self::read(&mut reader)?;
        reader.end("flags")?;
        Ok(filter)
    }

    /// Reads the payload of `filterload`; returns it with the bytes that follow, which Bitcoin Core leaves unread.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] where a node hangs up.
    pub fn decode_start(payload: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::new(payload);
        let filter = Self::read(&mut reader)?;
        Ok((filter, reader.rest()))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let limit = |reader: &Reader<'_>, field, expected, found: u64| {
            reader.error(field, DecodeErrorKind::Unexpected { expected, found: found.into() })
        };
        let len = compact_size::read(&mut reader.clone(), "length")?;
        if len > MAX_BYTES as u64 {
            return Err(limit(reader, "length", "36,000 bytes at most", len));
        }
        let bits = compact_size::read_bytes(reader, "bits")?;
        let probes_at = reader.clone();
        let probes = reader.u32("hash functions")?;
        if probes > MAX_PROBES {
            return Err(limit(&probes_at, "number of hash functions", "50 at most", probes.into()));
        }
        let rule = Bip37::new(bits.len(), probes, reader.u32("tweak")?, reader.u8("flags")?);
        let filter = ForeignBloom::from_bytes(Rule::Bip37(rule), bits)
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

    /// Tells whether an item may be in. Every item is in a filter of no bytes or no hash functions.
    #[must_use]
    pub fn contains(&self, item: &[u8]) -> bool {
        self.filter.contains(item)
    }

    /// Inserts an item; true if a bit changed. Does nothing to a filter of no bytes.
    pub fn insert(&mut self, item: &[u8]) -> bool {
        self.filter.insert(item)
    }

    /// Tells whether a transaction may be of the wallet, and inserts the outpoints that [`Update`] asks for.
    ///
    /// A transaction is if its hash is in, if a script of its outputs pushes an item, if it spends an outpoint that is in, or if a
    /// script of its inputs pushes an item. Witnesses are not looked at.
    pub fn matches(&mut self, transaction: &Transaction<'_>) -> bool {
        let update = Update::of(self.rule.flags());
        let mut is_found = self.contains(&transaction.txid().0);
        for (index, output) in (0..).zip(transaction.outputs()) {
            if !pushes(output.script).any(|data| self.contains(data)) {
                continue;
            }
            is_found = true;
            let is_spent_unseen =
                || is_pay_to_public_key(output.script) || is_bare_multisig(output.script);
            match update {
                Update::All => self.insert(&transaction.outpoint(index)),
                Update::PublicKeyOnly if is_spent_unseen() => {
                    self.insert(&transaction.outpoint(index))
                }
                Update::PublicKeyOnly | Update::None => continue,
            };
        }
        is_found
            || transaction.inputs().iter().any(|input| {
                self.contains(input.outpoint) || pushes(input.script).any(|it| self.contains(it))
            })
    }

    /// Returns what a node answers of a block: a proof of the transactions that match, which are [asked](Self::matches) in the
    /// order of the block.
    ///
    /// # Errors
    ///
    /// [`BlockTooLarge`] if no wallet would take the proof; nothing has changed then.
    pub fn merkle_block(&mut self, block: &Block<'_>) -> Result<MerkleBlock, BlockTooLarge> {
        MerkleBlock::new(block, |transaction| self.matches(transaction))
    }
}

impl TryFrom<ForeignBloom> for WalletFilter {
    type Error = ForeignBloom;

    /// Returns the filter itself if it is of another rule.
    fn try_from(filter: ForeignBloom) -> Result<Self, ForeignBloom> {
        match *filter.rule() {
            Rule::Bip37(rule) => Ok(Self { filter, rule }),
            _ => Err(filter),
        }
    }
}

impl From<WalletFilter> for ForeignBloom {
    fn from(wallet: WalletFilter) -> Self {
        wallet.filter
    }
}

/// What a node knows of the wallet at the other end: nothing at first.
///
/// # Examples
///
/// ```
/// use tamis_formats::bip37::{MessageError, PeerFilter};
///
/// let mut peer = PeerFilter::default();
/// peer.receive("filterload", b"\x03\x61\x4e\x9b\x05\0\0\0\0\0\0\0\x01")?;
/// peer.receive("filteradd", b"\x02\xaa\xbb")?;
/// assert!(peer.filter().is_some_and(|filter| filter.contains(b"\xaa\xbb")));
/// peer.receive("filterclear", b"")?;
/// assert_eq!(peer.receive("filteradd", b"\x01\xaa"), Err(MessageError::NoFilter));
/// # Ok::<(), MessageError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeerFilter {
    loaded: Option<WalletFilter>,
}

/// Why a node hangs up on a wallet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MessageError {
    /// The message is not about filters.
    OtherMessage,
    /// `filteradd` before `filterload`.
    NoFilter,
    /// The payload is not that of such a message.
    Payload(DecodeError),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MessageError::OtherMessage => {
                f.write_str("not a message of filters: filterload, filteradd or filterclear")
            }
            MessageError::NoFilter => f.write_str("no filter to add to: send filterload first"),
            MessageError::Payload(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MessageError {}

impl From<DecodeError> for MessageError {
    fn from(error: DecodeError) -> Self {
        MessageError::Payload(error)
    }
}

impl PeerFilter {
    /// Takes a message by its name: `filterload` replaces the filter, `filteradd` inserts an item, `filterclear` takes the filter
    /// away. Bytes behind what it needs are left unread, as Bitcoin Core does.
    ///
    /// # Errors
    ///
    /// [`MessageError`] where a node hangs up; nothing has changed then.
    pub fn receive(&mut self, command: &str, payload: &[u8]) -> Result<(), MessageError> {
        match command {
            "filterload" => self.loaded = Some(WalletFilter::decode_start(payload)?.0),
            "filteradd" => {
                let item = decode_filter_add(payload)?;
                self.loaded.as_mut().ok_or(MessageError::NoFilter)?.insert(item);
            }
            "filterclear" => self.loaded = None,
            _ => return Err(MessageError::OtherMessage),
        }
        Ok(())
    }

    /// Returns the filter, if one is loaded.
    #[must_use]
    pub fn filter(&self) -> Option<&WalletFilter> {
        self.loaded.as_ref()
    }

    /// Returns the filter to match transactions by, if one is loaded.
    pub fn filter_mut(&mut self) -> Option<&mut WalletFilter> {
        self.loaded.as_mut()
    }
}
