//! Decodes transactions with their inputs and outputs.

use tamis_formats::bitcoin::{Hash256, compact_size};
use tamis_formats::{ByteReader, DecodeError, DecodeErrorKind};

/// A transaction, with or without witnesses, that borrows the encoded bytes.
///
/// # Examples
///
/// ```
/// use tamis_bitcoin::Transaction;
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

/// An input of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input<'a> {
    /// The spent outpoint: the hash of the transaction that created the output, and the index of
    /// the output (32 bits, little-endian).
    pub outpoint: &'a [u8; 36],
    /// The script that unlocks the outpoint, without witnesses.
    pub script: &'a [u8],
}

/// An output of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output<'a> {
    /// The amount, in units of 10⁻⁸ bitcoins.
    pub satoshis: u64,
    /// The script that locks the output.
    pub script: &'a [u8],
}

// The minimum sizes of an input and an output. The smallest input has an outpoint, an empty script
// and a sequence. The smallest output has an amount and an empty script.
const MIN_INPUT_BYTES: u64 = 36 + 1 + 4;
const MIN_OUTPUT_BYTES: u64 = 8 + 1;
/// The minimum size of a transaction: version, one input, no outputs and lock time.
pub(crate) const MIN_BYTES: u64 = 4 + 1 + MIN_INPUT_BYTES + 1 + 4;

impl<'a> Transaction<'a> {
    /// Decodes a transaction. Rejects trailing bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if a node would reject the bytes, or if the transaction has no inputs. An
    /// input count of 0 marks a transaction with witnesses, so a transaction without inputs would
    /// be ambiguous.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = ByteReader::new(bytes);
        let transaction = Self::read(&mut reader)?;
        reader.end("lock time")?;
        Ok(transaction)
    }

    pub(crate) fn read(reader: &mut ByteReader<'a>) -> Result<Self, DecodeError> {
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
                let expected = "1, because an input count of 0 marks a transaction with witnesses";
                return Err(flag.unexpected("flag", expected, found));
            }
            body = reader.at();
            inputs_at = reader.clone();
            count = compact_size::read_count(reader, "number of inputs", MIN_INPUT_BYTES)?;
        }
        if count == 0 {
            return Err(inputs_at.unexpected("number of inputs", "1 or more", 0));
        }
        let mut inputs = Vec::with_capacity(count);
        for _ in 0..count {
            let outpoint = reader.bytes("outpoint", 36)?.try_into().expect("36 bytes");
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
                let reason = "a transaction stores witnesses that are all empty";
                return Err(witnesses.error("witnesses", DecodeErrorKind::Damaged { reason }));
            }
        }
        let lock_time = reader.bytes("lock time", 4)?;
        // The transaction hash does not cover the witnesses.
        let txid = Hash256::of(&[version, body, lock_time]);
        Ok(Self { bytes: reader.since(start), txid, inputs, outputs })
    }

    /// Returns the encoded bytes of the transaction.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the hash of the transaction without witnesses. Other transactions refer to a
    /// transaction by its hash without witnesses.
    #[must_use]
    pub fn txid(&self) -> Hash256 {
        self.txid
    }

    /// Returns the inputs of the transaction, at least one.
    #[must_use]
    pub fn inputs(&self) -> &[Input<'a>] {
        &self.inputs
    }

    /// Returns the outputs of the transaction.
    #[must_use]
    pub fn outputs(&self) -> &[Output<'a>] {
        &self.outputs
    }

    /// Returns the outpoint of output `index`.
    #[must_use]
    pub fn outpoint(&self, index: u32) -> [u8; 36] {
        let mut outpoint = [0; 36];
        outpoint[..32].copy_from_slice(&self.txid.0);
        outpoint[32..].copy_from_slice(&index.to_le_bytes());
        outpoint
    }
}

impl Input<'_> {
    /// Tests whether the input spends no output. In a block, only the single input of the first
    /// transaction spends no output.
    #[must_use]
    pub fn is_coinbase(&self) -> bool {
        let (hash, index) = self.outpoint.split_at(32);
        hash == [0; 32] && index == [0xff; 4]
    }
}
