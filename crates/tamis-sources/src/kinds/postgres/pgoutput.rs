//! Decodes the messages of the output plugin `pgoutput`, protocol version 1.

use bytes::{Buf as _, Bytes};

use crate::kinds::postgres::lsn::Lsn;

/// A message of the output plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The columns of a relation. The message precedes the first change of the relation, and the first change after
    /// each new definition.
    Relation(Relation),
    Insert {
        relation: u32,
        new: Tuple,
    },
    /// An update of a row. `old` is absent if the key is unchanged, unless the log contains the whole old row.
    Update {
        relation: u32,
        old: Option<Old>,
        new: Tuple,
    },
    Delete {
        relation: u32,
        old: Old,
    },
    Truncate {
        relations: Vec<u32>,
    },
    /// The end of a transaction. `end` is the position after the commit record.
    Commit {
        end: Lsn,
    },
    /// A message that changes no ids.
    Other,
}

/// The definition of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) id: u32,
    /// The names and types of the columns.
    pub(super) columns: Vec<(Bytes, u32)>,
}

/// The old values of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Old {
    pub(super) values: Tuple,
    /// True if only the columns of the replica identity have values.
    pub(super) is_key: bool,
}

/// The values of a row.
pub(super) type Tuple = Vec<Value>;

/// The value of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    /// A long value that an update has not changed. The server does not send the value.
    Unchanged,
    Text(Bytes),
}

/// The error for a message that ends too early or is invalid in protocol version 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Decodes a message.
pub(super) fn decode(mut bytes: Bytes) -> Result<Change, Malformed> {
    let bytes = &mut bytes;
    Ok(match u8(bytes)? {
        b'R' => Change::Relation(relation(bytes)?),
        b'I' => {
            let relation = u32(bytes)?;
            expect(bytes, b'N')?;
            Change::Insert { relation, new: tuple(bytes)? }
        }
        b'U' => {
            let relation = u32(bytes)?;
            let (old, tag) = match u8(bytes)? {
                tag @ (b'K' | b'O') => (Some(old(bytes, tag)?), u8(bytes)?),
                tag => (None, tag),
            };
            if tag != b'N' {
                return Err(Malformed);
            }
            Change::Update { relation, old, new: tuple(bytes)? }
        }
        b'D' => {
            let (relation, tag) = (u32(bytes)?, u8(bytes)?);
            if tag != b'K' && tag != b'O' {
                return Err(Malformed);
            }
            Change::Delete { relation, old: old(bytes, tag)? }
        }
        b'T' => {
            let (count, _) = (u32(bytes)?, u8(bytes)?);
            // Each relation takes four bytes, so a wrong count ends the loop early.
            let relations = (0..count).map(|_| u32(bytes)).collect::<Result<_, _>>()?;
            Change::Truncate { relations }
        }
        b'C' => {
            let (_flags, _place) = (u8(bytes)?, u64(bytes)?);
            Change::Commit { end: Lsn(u64(bytes)?) }
        }
        b'B' | b'O' | b'Y' | b'M' => Change::Other,
        _ => return Err(Malformed),
    })
}

fn old(bytes: &mut Bytes, tag: u8) -> Result<Old, Malformed> {
    Ok(Old { values: tuple(bytes)?, is_key: tag == b'K' })
}

fn relation(bytes: &mut Bytes) -> Result<Relation, Malformed> {
    let id = u32(bytes)?;
    let (_namespace, _name) = (text(bytes)?, text(bytes)?);
    let (_identity, count) = (u8(bytes)?, u16(bytes)?);
    let mut columns = Vec::new();
    for _ in 0..count {
        let (_flags, name) = (u8(bytes)?, text(bytes)?);
        let (column_type, _modifier) = (u32(bytes)?, u32(bytes)?);
        columns.push((name, column_type));
    }
    Ok(Relation { id, columns })
}

fn tuple(bytes: &mut Bytes) -> Result<Tuple, Malformed> {
    let count = u16(bytes)?;
    let value = |bytes: &mut Bytes| {
        Ok(match u8(bytes)? {
            b'n' => Value::Null,
            b'u' => Value::Unchanged,
            b't' => {
                let length = u32(bytes)? as usize;
                Value::Text(take(bytes, length)?)
            }
            _ => return Err(Malformed),
        })
    };
    (0..count).map(|_| value(bytes)).collect()
}

fn take(bytes: &mut Bytes, length: usize) -> Result<Bytes, Malformed> {
    if length > bytes.len() { Err(Malformed) } else { Ok(bytes.split_to(length)) }
}

/// Reads a text up to its terminating zero byte.
fn text(bytes: &mut Bytes) -> Result<Bytes, Malformed> {
    let end = bytes.iter().position(|&byte| byte == 0).ok_or(Malformed)?;
    let text = bytes.split_to(end);
    bytes.advance(1);
    Ok(text)
}

fn expect(bytes: &mut Bytes, tag: u8) -> Result<(), Malformed> {
    if u8(bytes)? == tag { Ok(()) } else { Err(Malformed) }
}

fn u8(bytes: &mut Bytes) -> Result<u8, Malformed> {
    bytes.try_get_u8().map_err(|_| Malformed)
}

fn u16(bytes: &mut Bytes) -> Result<u16, Malformed> {
    bytes.try_get_u16().map_err(|_| Malformed)
}

fn u32(bytes: &mut Bytes) -> Result<u32, Malformed> {
    bytes.try_get_u32().map_err(|_| Malformed)
}

fn u64(bytes: &mut Bytes) -> Result<u64, Malformed> {
    bytes.try_get_u64().map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns messages that a server sent. The positions and times are replaced by simple numbers.
    fn messages() -> Vec<(Vec<u8>, Change)> {
        let text = |text: &'static str| Value::Text(Bytes::from_static(text.as_bytes()));
        let relation = b"R\0\0\x40\x01public\0products\0d\0\x02\
            \x01id\0\0\0\0\x14\xff\xff\xff\xff\0name\0\0\0\0\x19\xff\xff\xff\xff";
        let columns = vec![(Bytes::from_static(b"id"), 20), (Bytes::from_static(b"name"), 25)];
        let id = 0x4001;
        let new = vec![text("7"), Value::Null];
        let old = |is_key| Old { values: vec![text("6"), Value::Null], is_key };
        vec![
            (b"B\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x01\0\0\x02\xf1".to_vec(), Change::Other),
            (relation.to_vec(), Change::Relation(Relation { id, columns })),
            (
                b"I\0\0\x40\x01N\0\x02t\0\0\0\x017n".to_vec(),
                Change::Insert { relation: id, new: new.clone() },
            ),
            (
                b"U\0\0\x40\x01N\0\x02t\0\0\0\x017u".to_vec(),
                Change::Update { relation: id, old: None, new: vec![text("7"), Value::Unchanged] },
            ),
            (
                b"U\0\0\x40\x01K\0\x02t\0\0\0\x016nN\0\x02t\0\0\0\x017n".to_vec(),
                Change::Update { relation: id, old: Some(old(true)), new },
            ),
            (
                b"D\0\0\x40\x01O\0\x02t\0\0\0\x016n".to_vec(),
                Change::Delete { relation: id, old: old(false) },
            ),
            (b"T\0\0\0\x01\0\0\0\x40\x01".to_vec(), Change::Truncate { relations: vec![id] }),
            (
                b"C\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0\x01".to_vec(),
                Change::Commit { end: Lsn(0x40) },
            ),
        ]
    }

    #[test]
    fn messages_of_a_server_are_decoded() {
        for (bytes, change) in messages() {
            assert_eq!(decode(Bytes::from(bytes)), Ok(change));
        }
    }

    #[test]
    fn hostile_messages_are_errors() {
        for (bytes, _) in messages() {
            for end in 0..bytes.len() {
                // The end of a transaction contains a time, which the decoder ignores.
                _ = decode(Bytes::copy_from_slice(&bytes[..end]));
            }
            for at in 0..bytes.len() {
                for byte in [0, 0x7f, 0xff, b'N', b'K'] {
                    let mut changed = bytes.clone();
                    changed[at] = byte;
                    _ = decode(Bytes::from(changed));
                }
            }
        }
        for wrong in
            [&b""[..], b"S", b"I\0\0\0\x01N\xff\xff", b"T\xff\xff\xff\xff\0", b"R\0\0\0\x01a"]
        {
            assert_eq!(decode(Bytes::copy_from_slice(wrong)), Err(Malformed), "{wrong:?}");
        }
    }
}
