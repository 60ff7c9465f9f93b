//! The messages that a wallet sends to a node to set and change a filter.

use std::fmt;

use tamis_formats::bip37::WalletFilter;
use tamis_formats::bitcoin::compact_size;
use tamis_formats::{ByteReader, DecodeError};

/// The maximum length of an item in `filteradd`, in bytes.
pub const MAX_ITEM_BYTES: usize = 520;

/// Decodes the payload of `filteradd` and returns the item. Ignores trailing bytes, as a Bitcoin
/// node does.
///
/// # Errors
///
/// [`DecodeError`] if the item is longer than 520 bytes or truncated.
///
/// # Examples
///
/// ```
/// use tamis_bitcoin::{decode_filter_add, encode_filter_add};
///
/// let payload = encode_filter_add(b"\x01\x02").expect("short");
/// assert_eq!(payload, [2, 1, 2]);
/// assert_eq!(decode_filter_add(&payload)?, [1, 2]);
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
pub fn decode_filter_add(payload: &[u8]) -> Result<&[u8], DecodeError> {
    let mut reader = ByteReader::new(payload);
    let found = compact_size::read(&mut reader.clone(), "item")?;
    if found > MAX_ITEM_BYTES as u64 {
        return Err(reader.unexpected("length of the item", "at most 520 bytes", found));
    }
    compact_size::read_bytes(&mut reader, "item")
}

/// Encodes the payload of `filteradd`. Returns `None` if the item is longer than 520 bytes, because
/// a node would disconnect the wallet.
#[must_use]
pub fn encode_filter_add(item: &[u8]) -> Option<Vec<u8>> {
    (item.len() <= MAX_ITEM_BYTES).then(|| {
        let mut payload = Vec::with_capacity(3 + item.len());
        compact_size::write(item.len() as u64, &mut payload);
        payload.extend_from_slice(item);
        payload
    })
}

/// The filter that a node stores for a connected wallet. A new `PeerFilter` contains no filter.
///
/// # Examples
///
/// ```
/// use tamis_bitcoin::{MessageError, PeerFilter};
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

/// The reason why a node disconnects a wallet.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MessageError {
    /// The message is not `filterload`, `filteradd` or `filterclear`.
    OtherMessage,
    /// The wallet sent `filteradd` before `filterload`.
    NoFilter,
    /// The payload of the message is not valid.
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
    /// Handles a message with the name `command`. `filterload` replaces the filter, `filteradd`
    /// inserts an item, and `filterclear` removes the filter. Ignores trailing bytes, like Bitcoin
    /// Core.
    ///
    /// # Errors
    ///
    /// [`MessageError`] if a node would disconnect the wallet. After an error, the filter is
    /// unchanged.
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

    /// Returns the filter. Returns `None` if the wallet has loaded no filter.
    #[must_use]
    pub fn filter(&self) -> Option<&WalletFilter> {
        self.loaded.as_ref()
    }

    /// Returns the filter for [`match_transaction`](crate::match_transaction). Returns `None` if
    /// the wallet has loaded no filter.
    pub fn filter_mut(&mut self) -> Option<&mut WalletFilter> {
        self.loaded.as_mut()
    }
}
