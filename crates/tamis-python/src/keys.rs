//! Items in the form in which a set tests them.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tamis::{Hasher, Item as _};
use tamis_formats::{AbloomType, Funnel, OrcType};

use crate::item::Item;

/// The form in which a set tests its items. The form of a set never changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Encoding {
    /// A 64-bit hash.
    Hash64(Hasher),
    /// A 128-bit hash.
    Hash128(Hasher),
    /// An unsigned integer of 64 bits: only integers are items.
    Integer,
    /// The bytes that another system hashes for the text of an item.
    Foreign(Funnel),
}

/// A batch of items in the form of one [`Encoding`].
#[derive(Clone, Debug)]
pub enum Keys {
    Hash64(Vec<u64>),
    Hash128(Vec<u128>),
    Integer(Vec<u64>),
    Foreign { funnel: Funnel, bytes: Vec<u8>, ends: Vec<usize> },
}

impl Encoding {
    /// Creates an empty batch.
    pub fn keys(self) -> Keys {
        match self {
            Encoding::Hash64(_) => Keys::Hash64(Vec::new()),
            Encoding::Hash128(_) => Keys::Hash128(Vec::new()),
            Encoding::Integer => Keys::Integer(Vec::new()),
            Encoding::Foreign(funnel) => {
                Keys::Foreign { funnel, bytes: Vec::new(), ends: Vec::new() }
            }
        }
    }

    /// Appends a Python object to a batch of this encoding.
    ///
    /// # Errors
    ///
    /// The errors of [`Item::new`], `TypeError` if the set does not hold such items, and
    /// `ValueError` if the other system cannot have the item.
    pub fn push(self, object: Borrowed<'_, '_, PyAny>, keys: &mut Keys) -> PyResult<()> {
        if let (Encoding::Hash64(hasher), Keys::Hash64(hashes)) = (self, &mut *keys)
            && let Some(hash) = crate::raw::hash::hash_fast(hasher, object)
        {
            hashes.push(hash);
            return Ok(());
        }
        self.push_item(&Item::new(&object)?, keys)
    }

    fn push_item(self, item: &Item<'_>, keys: &mut Keys) -> PyResult<()> {
        match (self, keys) {
            (Encoding::Hash64(hasher), Keys::Hash64(hashes)) => {
                hashes.push(hasher.hash(&item.stable_bytes()));
            }
            (Encoding::Hash128(hasher), Keys::Hash128(hashes)) => {
                hashes.push(hasher.hash128(&item.stable_bytes()));
            }
            (Encoding::Integer, Keys::Integer(integers)) => match *item {
                Item::Integer { bits, is_negative: false } => integers.push(bits),
                Item::Integer { .. } => return Err(PyValueError::new_err(NEGATIVE)),
                _ => return Err(PyTypeError::new_err("an IntSet holds int items only")),
            },
            (Encoding::Foreign(funnel), keys) => match item {
                &Item::Integer { bits, is_negative } if is_number(funnel) => {
                    keys.push_integer(bits, is_negative)?;
                }
                Item::Text(text) => keys.push_text(text.as_bytes())?,
                Item::Bytes(bytes) if takes_bytes(funnel) => keys.push_text(bytes)?,
                _ => {
                    return Err(PyTypeError::new_err(format!(
                        "the items of this filter are {}: {}",
                        description(funnel),
                        if is_number(funnel) { "give an int" } else { "give a str" }
                    )));
                }
            },
            _ => unreachable!("the batch was created by this encoding"),
        }
        Ok(())
    }

    /// Appends integers of 64 bits. `is_signed` is true if the bits are two's complement.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_integers(self, bits: &[u64], is_signed: bool, keys: &mut Keys) -> PyResult<()> {
        match (self, keys) {
            (Encoding::Hash64(hasher), Keys::Hash64(hashes)) => {
                let start = hashes.len();
                hashes.resize(start + bits.len(), 0);
                u64::hash_each(bits, &hasher, &mut hashes[start..]);
            }
            (Encoding::Hash128(hasher), Keys::Hash128(hashes)) => {
                hashes.extend(bits.iter().map(|bits| hasher.hash128(&bits.to_le_bytes())));
            }
            (Encoding::Integer, Keys::Integer(integers)) => {
                if is_signed && bits.iter().any(|&bits| (bits as i64) < 0) {
                    return Err(PyValueError::new_err(NEGATIVE));
                }
                integers.extend_from_slice(bits);
            }
            (_, keys) => {
                for &bits in bits {
                    let is_negative = is_signed && (bits as i64) < 0;
                    self.push_item(&Item::Integer { bits, is_negative }, keys)?;
                }
            }
        }
        Ok(())
    }

    /// Appends byte strings. `is_text` is true if the bytes are UTF-8.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_slices(self, items: &[&[u8]], is_text: bool, keys: &mut Keys) -> PyResult<()> {
        match (self, keys) {
            (Encoding::Hash64(hasher), Keys::Hash64(hashes)) => {
                let start = hashes.len();
                hashes.resize(start + items.len(), 0);
                <&[u8]>::hash_each(items, &hasher, &mut hashes[start..]);
            }
            (Encoding::Hash128(hasher), Keys::Hash128(hashes)) => {
                let start = hashes.len();
                hashes.resize(start + items.len(), 0);
                hasher.hash128_each(items, &mut hashes[start..]);
            }
            (Encoding::Foreign(funnel), keys) if is_text || takes_bytes(funnel) => {
                for item in items {
                    keys.push_text(item)?;
                }
            }
            (_, keys) => {
                for item in items {
                    self.push_item(&Item::Bytes((*item).into()), keys)?;
                }
            }
        }
        Ok(())
    }
}

const NEGATIVE: &str = "an IntSet holds integers from 0 to 2**64 - 1, and this one is negative";

impl Keys {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        match self {
            Keys::Hash64(hashes) | Keys::Integer(hashes) => hashes.len(),
            Keys::Hash128(hashes) => hashes.len(),
            Keys::Foreign { ends, .. } => ends.len(),
        }
    }

    /// Appends item number `index` of another batch of the same encoding.
    pub fn push_from(&mut self, other: &Keys, index: usize) {
        match (self, other) {
            (Keys::Hash64(to), Keys::Hash64(from)) | (Keys::Integer(to), Keys::Integer(from)) => {
                to.push(from[index]);
            }
            (Keys::Hash128(to), Keys::Hash128(from)) => to.push(from[index]),
            (
                Keys::Foreign { bytes: to, ends, .. },
                Keys::Foreign { bytes: from, ends: from_ends, .. },
            ) => {
                let start = index.checked_sub(1).map_or(0, |before| from_ends[before]);
                to.extend_from_slice(&from[start..from_ends[index]]);
                ends.push(to.len());
            }
            _ => unreachable!("the batches have one encoding"),
        }
    }

    /// Removes all items.
    pub fn clear(&mut self) {
        match self {
            Keys::Hash64(hashes) | Keys::Integer(hashes) => hashes.clear(),
            Keys::Hash128(hashes) => hashes.clear(),
            Keys::Foreign { bytes, ends, .. } => {
                bytes.clear();
                ends.clear();
            }
        }
    }

    /// Appends the text of an item of another system.
    fn push_text(&mut self, text: &[u8]) -> PyResult<()> {
        let Keys::Foreign { funnel, bytes, ends } = self else {
            unreachable!("the encoding is foreign")
        };
        let mut scratch = Vec::new();
        let key = funnel.key(text, &mut scratch).map_err(|error| {
            PyValueError::new_err(format!("{}: {error}", String::from_utf8_lossy(text)))
        })?;
        bytes.extend_from_slice(key);
        ends.push(bytes.len());
        Ok(())
    }

    fn push_integer(&mut self, bits: u64, is_negative: bool) -> PyResult<()> {
        let text = if is_negative { (bits as i64).to_string() } else { bits.to_string() };
        self.push_text(text.as_bytes())
    }
}

/// Returns the byte strings of a batch for another system.
pub fn slices<'a>(bytes: &'a [u8], ends: &[usize]) -> Vec<&'a [u8]> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(ends).map(|(start, &end)| &bytes[start..end]).collect()
}

/// Tests whether the items of a funnel are numbers.
fn is_number(funnel: Funnel) -> bool {
    use tamis_formats::JavaType;
    match funnel {
        Funnel::Bytes
        | Funnel::Hex
        | Funnel::Text(_)
        | Funnel::Twice(_)
        | Funnel::Chars
        | Funnel::Orc(OrcType::Bytes)
        | Funnel::Abloom(AbloomType::Bytes) => false,
        Funnel::HashCode(java) => {
            matches!(java, JavaType::Integer | JavaType::Long | JavaType::Double)
        }
        _ => true,
    }
}

/// Tests whether a funnel takes any bytes, not only text.
fn takes_bytes(funnel: Funnel) -> bool {
    matches!(
        funnel,
        Funnel::Bytes | Funnel::Orc(OrcType::Bytes) | Funnel::Abloom(AbloomType::Bytes)
    )
}

fn description(funnel: Funnel) -> String {
    let name = Funnel::NAMES.iter().find(|(name, _)| {
        Funnel::named(name, Some(tamis_formats::Charset::Utf8))
            .is_some_and(|named| std::mem::discriminant(&named) == std::mem::discriminant(&funnel))
    });
    name.map_or_else(|| format!("{funnel:?}"), |(_, description)| (*description).to_owned())
}
