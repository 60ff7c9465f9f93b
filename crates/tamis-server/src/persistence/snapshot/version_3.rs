//! Reads snapshots of version 3.
//!
//! ```text
//! | header, with the position of its log, without a secret |
//! | key length | key | time + 1 | position | value length | value | checksum |        each key
//! | 2⁶⁴ − 1 | number of keys | end | checksum |
//! ```
//!
//! Every number is a `u64`. An item has one checksum at its end. So a search after a damaged item
//! must read each candidate in full, and ends after it has read the file a hundred times.

use xxhash_rust::xxh3::Xxh3;

use crate::persistence::error::DurabilityError;
use crate::persistence::snapshot::reader::{MAX_KEY_BYTES, SnapshotReader, read_u64};
use crate::persistence::snapshot::{END, VERSION_3_ENTRY_BYTES, finish_sum};

/// The size of one read during a search, in bytes.
const PIECE_BYTES: usize = 4 << 10;

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

    /// Skips the damaged key, as [`skip_damaged`](Self::skip_damaged) does.
    pub(super) fn skip_version_3(&mut self) -> Result<(Option<Vec<u8>>, bool), DurabilityError> {
        let from = self.at;
        // Uses the lengths of the item if a valid item follows at their end.
        if let Some((key_len, len)) = self.lengths(from)? {
            self.at = from + VERSION_3_ENTRY_BYTES + key_len + len;
            if self.is_valid()? {
                let mut key = vec![0; key_len as usize];
                self.read_at(&mut key, from + 8)?;
                return Ok((Some(key), true));
            }
        }
        self.at = from + 1;
        while let Some((key_len, len)) = self.find_candidate()? {
            // The number of bytes that the search and the test of this candidate read.
            let cost = PIECE_BYTES as u64 + key_len + len;
            if self.search_bytes < cost {
                break;
            }
            self.search_bytes -= cost;
            if self.has_checksum(key_len, len)? {
                return Ok((None, true));
            }
            self.at += 1;
        }
        self.at = self.total;
        Ok((None, false))
    }

    /// Tests whether the checksum of an item with these lengths is correct; for the end item both
    /// lengths are 0.
    fn has_checksum(&self, key_len: u64, len: u64) -> Result<bool, DurabilityError> {
        let mut front = vec![0; 32 + key_len as usize];
        self.read_at(&mut front, self.at)?;
        let numbers = |at: usize| [0, 8, 16].map(|by| number_at(&front, at + by).unwrap_or(0));
        if front.starts_with(&END.to_le_bytes()) {
            let [keys, end, sum] = numbers(8);
            return Ok(sum == sum_of_end(keys, end));
        }
        let mut sum = Xxh3::new();
        let mut piece = vec![0; len.min(1 << 20) as usize];
        let (mut at, mut left) = (self.at + front.len() as u64, len);
        while left > 0 {
            let wanted = left.min(piece.len() as u64) as usize;
            let read = self.read_at(&mut piece[..wanted], at)?;
            if read < wanted {
                return Ok(false);
            }
            sum.update(&piece[..wanted]);
            (at, left) = (at + wanted as u64, left - wanted as u64);
        }
        let key = &front[8..8 + key_len as usize];
        let sum = finish_sum(sum, key, &numbers(8 + key_len as usize));
        let mut stored = [0; 8];
        self.read_at(&mut stored, at)?;
        Ok(sum == u64::from_le_bytes(stored))
    }

    /// Moves on to the next possible item, and returns the lengths of its key and its value; `None`
    /// if there is none.
    fn find_candidate(&mut self) -> Result<Option<(u64, u64)>, DurabilityError> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = self.read_at(&mut piece, self.at)?;
            let Some(last) = read.checked_sub(8) else { return Ok(None) };
            let start = self.at;
            for offset in 0..=last {
                self.at = start + offset as u64;
                let number = number_at(&piece[..read], offset).expect("eight bytes");
                if number == END {
                    return Ok(Some((0, 0)));
                }
                if number > MAX_KEY_BYTES {
                    continue;
                }
                // Most often the length is in this piece.
                let len = number_at(&piece[..read], offset + 24 + number as usize);
                if len != Some(0)
                    && let Some(lengths) = self.lengths(self.at)?
                {
                    return Ok(Some(lengths));
                }
            }
            self.at += 1;
        }
    }

    /// Reads the lengths of the key at an offset and of its value; `None` if they are not possible.
    fn lengths(&self, at: u64) -> Result<Option<(u64, u64)>, DurabilityError> {
        let left = self.total.saturating_sub(at + VERSION_3_ENTRY_BYTES);
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

#[cfg(test)]
mod tests {
    use tamis_commands::Value;

    use super::super::super::disk::Disk as _;
    use super::super::super::header;
    use super::super::super::sim_disk::SimDisk;
    use super::super::reader::SnapshotItem;
    use super::super::{KIND, path};
    use super::*;

    /// Returns a disk with snapshot 1 of version 3, of strings.
    fn snapshot_of(values: &[Vec<u8>]) -> SimDisk {
        let mut bytes = header::encode(&KIND, 7, 0);
        let put_each = |bytes: &mut Vec<u8>, numbers: &[u64]| {
            numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        };
        for (i, value) in values.iter().enumerate() {
            let key = format!("key{i}");
            let mut image = Vec::new();
            let value = Value::Bytes(value.clone().into());
            value.write_image(None, &mut image).unwrap();
            let numbers = [0, 9, image.len() as u64];
            let mut sum = Xxh3::new();
            sum.update(&image);
            put_each(&mut bytes, &[key.len() as u64]);
            bytes.extend(key.as_bytes());
            put_each(&mut bytes, &numbers);
            bytes.extend(image);
            put_each(&mut bytes, &[finish_sum(sum, key.as_bytes(), &numbers)]);
        }
        let keys = values.len() as u64;
        put_each(&mut bytes, &[END, keys, 9, sum_of_end(keys, 9)]);
        let disk = SimDisk::default();
        disk.create(&path(&disk, 1)).unwrap().write_all_at(&bytes, 0).unwrap();
        disk
    }

    #[test]
    fn the_next_key_is_found_or_the_search_is_given_up() {
        // The second value has numbers that could all be lengths.
        let lengths: Vec<u8> = (0..8 << 10).flat_map(|_| 0x2000_u64.to_le_bytes()).collect();
        for (value, is_found) in [(vec![b'x'; 64 << 10], true), (lengths, false)] {
            let disk = snapshot_of(&[value, b"last".to_vec()]);
            disk.open(&path(&disk, 1)).unwrap().write_all_at(&[0xff], 24 + 2).unwrap();
            let mut reader = SnapshotReader::open(&disk, 1).unwrap();
            assert!(reader.next().is_err());
            let total = reader.total;
            let before = disk.bytes_read();
            assert_eq!(reader.skip_damaged().unwrap(), (None, is_found));
            assert_eq!(
                reader.next().is_ok_and(|item| matches!(item, SnapshotItem::Key(_))),
                is_found
            );
            let read = disk.bytes_read() - before;
            assert!(read < 150 * total, "{read} of {total} bytes");
        }
    }
}
