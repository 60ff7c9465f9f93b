//! A transaction: what it spends and what it pays to.

use crate::bitcoin::compact_size;
use crate::bitcoin::hash::Hash256;
use crate::decode_error::{DecodeError, DecodeErrorKind};
use crate::reader::Reader;

/// A transaction, with or without witnesses, in bytes of somebody else.
///
/// # Examples
///
/// ```
/// use tamis_formats::bitcoin::Transaction;
///
/// // One input without a script, one output of 5,000 satoshis to OP_1.
/// let spent = [7; 36];
/// let bytes = [
///     &[1, 0, 0, 0, 1][..], &spent, &[0], &[0xff; 4],
///     &[1], &5000_u64.to_le_bytes(), &[1, 0x51], &[0; 4],
/// ].concat();
/// let transaction = Transaction::decode(&bytes)?;
/// assert_eq!(transaction.inputs()[0].outpoint, &spent);
/// assert_eq!(transaction.outputs()[0].satoshis, 5000);
/// # Ok::<(), tamis_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction<'a> {
    bytes: &'a [u8],
    txid: Hash256,
    inputs: Vec<Input<'a>>,
    outputs: Vec<Output<'a>>,
}

/// What a transaction spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input<'a> {
    /// The output that is spent: the hash of its transaction and its number in it, 32 bits little-endian.
    pub outpoint: &'a [u8; 36],
    /// The script that unlocks it, witnesses apart.
    pub script: &'a [u8],
}

/// What a transaction pays to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output<'a> {
    /// How much, in units of 10⁻⁸ bitcoins.
    pub satoshis: u64,
    /// The script that locks it.
    pub script: &'a [u8],
}

// The least that each of them takes: outpoint, empty script, sequence; amount, empty script.
const MIN_INPUT_BYTES: u64 = 36 + 1 + 4;
const MIN_OUTPUT_BYTES: u64 = 8 + 1;
/// The least that a transaction takes: version, one input, no outputs, lock time.
pub(super) const MIN_BYTES: u64 = 4 + 1 + MIN_INPUT_BYTES + 1 + 4;

impl<'a> Transaction<'a> {
    /// Reads a transaction, and nothing behind it.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] where a node refuses the bytes, and if a transaction has no inputs: it would look as one with
    /// witnesses does.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let transaction = Self::read(&mut reader)?;
        reader.end("lock time")?;
        Ok(transaction)
    }

    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let start = reader.at();
        let version = reader.bytes("version", 4)?;
        let mut body = reader.at();
        let mut inputs_at = reader.clone();
        let mut count = compact_size::read_count(reader, "number of inputs", MIN_INPUT_BYTES)?;
        let has_witnesses = count == 0;
        if has_witnesses {
            let flag = reader.clone();
            let found = reader.u8("flag")?;
            if found != 1 {
                let expected = "1: no inputs mean witnesses";
                let kind = DecodeErrorKind::Unexpected { expected, found: found.into() };
                return Err(flag.error("flag", kind));
            }
            body = reader.at();
            inputs_at = reader.clone();
            count = compact_size::read_count(reader, "number of inputs", MIN_INPUT_BYTES)?;
        }
        if count == 0 {
            let kind = DecodeErrorKind::Unexpected { expected: "1 or more", found: 0 };
            return Err(inputs_at.error("number of inputs", kind));
        }
        let mut inputs = Vec::with_capacity(count);
        for _ in 0..count {
            let outpoint = reader.bytes("outpoint", 36)?.try_into().expect("36 bytes were taken");
            let script = compact_size::read_bytes(reader, "input script")?;
            reader.bytes("sequence", 4)?;
            inputs.push(Input { outpoint, script });
        }
        let count = compact_size::read_count(reader, "number of outputs", MIN_OUTPUT_BYTES)?;
        let mut outputs = Vec::with_capacity(count);
        for _ in 0..count {
            let satoshis = reader.u64("amount")?;
            let script = compact_size::read_bytes(reader, "output script")?;
            outputs.push(Output { satoshis, script });
        }
        let body = reader.since(body);
        if has_witnesses {
            let witnesses = reader.clone();
            let mut is_empty = true;
            for _ in &inputs {
                let count = compact_size::read_count(reader, "number of witnesses", 1)?;
                is_empty &= count == 0;
                for _ in 0..count {
                    compact_size::read_bytes(reader, "witness")?;
                }
            }
            if is_empty {
                let reason = "left out, though all are empty";
                return Err(witnesses.error("witnesses", DecodeErrorKind::Invalid { reason }));
            }
        }
        let lock_time = reader.bytes("lock time", 4)?;
        // Witnesses are no part of what is hashed.
        let txid = Hash256::of(&[version, body, lock_time]);
        Ok(Self { bytes: reader.since(start), txid, inputs, outputs })
    }

    /// Returns the bytes that it was read from.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns its hash without witnesses, by which others refer to it.
    #[must_use]
    pub fn txid(&self) -> Hash256 {
        self.txid
    }

    /// Returns what it spends; at least one.
    #[must_use]
    pub fn inputs(&self) -> &[Input<'a>] {
        &self.inputs
    }

    /// Returns what it pays to.
    #[must_use]
    pub fn outputs(&self) -> &[Output<'a>] {
        &self.outputs
    }

    /// Returns how its output `index` is named where it is spent.
    #[must_use]
    pub fn outpoint(&self, index: u32) -> [u8; 36] {
        let mut outpoint = [0; 36];
        outpoint[..32].copy_from_slice(&self.txid.0);
        outpoint[32..].copy_from_slice(&index.to_le_bytes());
        outpoint
    }
}

impl Input<'_> {
    /// Tells whether it spends nothing: the one input of a block's first transaction.
    #[must_use]
    pub fn is_coinbase(&self) -> bool {
        let (hash, index) = self.outpoint.split_at(32);
        hash == [0; 32] && index == [0xff; 4]
    }
}
