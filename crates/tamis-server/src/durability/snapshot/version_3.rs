//! Reads snapshots of version 3.
//!
//! ```text
//! | header, with the position of its log, without a secret |
//! | length of key: u64 | key | time + 1: u64 | position: u64 | length of image: u64 | image | checksum: u64 |  each key
//! | 2⁶⁴ − 1: u64 | number of keys: u64 | end: u64 | checksum: u64 |
//! ```
//!
//! An item has one checksum at its end. So a search behind a damaged item must read each candidate whole, and is given up when
//! it has read the file a hundred times.

use xxhash_rust::xxh3::Xxh3;

use super::super::error::DurabilityError;
use super::reader::{MAX_KEY_BYTES, SnapshotReader, read_u64};
use super::{END, finish_sum};

/// Bytes of a key besides its name and its image.
pub(super) const ENTRY_BYTES: u64 = 5 * 8;

impl SnapshotReader {
    /// Reads the numbers of an item, in the order of an item header of version 4, and its key.
    pub(super) fn read_front_of_version_3(
        &mut self,
    ) -> Result<([u64; 4], Vec<u8>), DurabilityError> {
        let key_len = self.read_number()?;
        if key_len == END {
            let (keys, end) = (self.read_number()?, self.read_number()?);
            if self.read_number()? != sum_of_end(keys, end) {
                return Err(self.damaged("the checksum of its end is wrong"));
            }
            return Ok(([END, keys, end, 0], Vec::new()));
        }
        let key = self.read_key(key_len)?;
        Ok(([key_len, self.read_number()?, self.read_number()?, self.read_number()?], key))
    }

    fn read_number(&mut self) -> Result<u64, DurabilityError> {
        read_u64(&mut self.file).map_err(|error| self.read_error(error))
    }

    /// Passes over the key that is damaged, as [`skip_damaged`](Self::skip_damaged).
    pub(super) fn skip_version_3(&mut self) -> Result<(Option<Vec<u8>>, bool), DurabilityError> {
        let from = self.at;
        // By its lengths, if something valid stands where they lead.
        if let Some((key_len, len)) = self.lengths(from)? {
            self.at = from + ENTRY_BYTES + key_len + len;
            if self.is_valid()? {
                let mut key = vec![0; key_len as usize];
                self.read_at(&mut key, from + 8)?;
                return Ok((Some(key), true));
            }
        }
        self.at = from + 1;
        while let Some(item_bytes) = self.find_candidate()? {
            if self.search_bytes < item_bytes {
                break;
            }
            self.search_bytes -= item_bytes;
            if self.is_valid()? {
                return Ok((None, true));
            }
            self.at += 1;
        }
        self.at = self.total;
        Ok((None, false))
    }

    /// Moves on to where an item may stand, and returns its bytes; `None` if there is no such place.
    fn find_candidate(&mut self) -> Result<Option<u64>, DurabilityError> {
        let mut piece = vec![0; 64 << 10];
        loop {
            let read = self.read_at(&mut piece, self.at)?;
            let Some(last) = read.checked_sub(8) else { return Ok(None) };
            let start = self.at;
            for offset in 0..=last {
                self.at = start + offset as u64;
                let number = number_at(&piece[..read], offset).expect("eight bytes");
                if number == END {
                    return Ok(Some(ENTRY_BYTES));
                }
                if number > MAX_KEY_BYTES {
                    continue;
                }
                // Most often in this piece.
                let len = number_at(&piece[..read], offset + 24 + number as usize);
                if len != Some(0)
                    && let Some((key_len, len)) = self.lengths(self.at)?
                {
                    return Ok(Some(ENTRY_BYTES + key_len + len));
                }
            }
            self.at += 1;
        }
    }

    /// Reads the lengths of the key at a byte and of its value; `None` if they cannot be those.
    fn lengths(&self, at: u64) -> Result<Option<(u64, u64)>, DurabilityError> {
        let left = self.total.saturating_sub(at + ENTRY_BYTES);
        let mut number = [0; 8];
        self.read_at(&mut number, at)?;
        let key_len = u64::from_le_bytes(number);
        if key_len > left.min(MAX_KEY_BYTES) {
            return Ok(None);
        }
        self.read_at(&mut number, at + 24 + key_len)?;
        let len = u64::from_le_bytes(number);
        Ok((1..=left - key_len).contains(&len).then_some((key_len, len)))
    }
}

fn sum_of_end(keys: u64, end: u64) -> u64 {
    finish_sum(Xxh3::new(), &[], &[keys, end])
}

fn number_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
