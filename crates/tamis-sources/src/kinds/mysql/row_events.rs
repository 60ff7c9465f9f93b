//! Extracts the ids from the row events of the binary log.
//!
//! A row event refers to a table map, which contains the types of the columns. A value in a row has no length prefix,
//! so the decoder skips each column by its type. The decoder does not decode any column except the id and the columns
//! of the condition.
//!
//! ```text
//! TABLE_MAP   table id 6 │ flags 2 │ len, database, 0 │ len, table, 0 │ columns │ types │ len, metadata │ …
//! *_ROWS      table id 6 │ flags 2 │ [len 2, extra] │ columns │ present bits │ [present bits after] │ rows
//! row         NULL bits of the present columns │ their values
//! ```
//!
//! MariaDB writes version 1 of the row events. MySQL writes version 2, which contains the extra bytes.

use std::collections::HashMap;

use mysql_async::Value;

use crate::kinds::mysql::condition::RowCondition;
use crate::kinds::mysql::numbers::{decimal_bytes, signed};
use crate::kinds::mysql::table::Table;
use crate::kinds::mysql::unreadable::Unreadable;

/// The maximum number of tables per transaction whose maps the decoder keeps. In a transaction with more than
/// `MAX_TABLES` tables, the decoder does not find the rows of the further tables.
const MAX_TABLES: usize = 1 << 16;

/// The types of row events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowChange {
    Insert,
    Update,
    Delete,
}

/// The id of a row before and after a change. `None` stands for NULL, for a row that does not exist, and for a row that
/// does not satisfy the condition of the source.
pub(super) type Ids = (Option<Vec<u8>>, Option<Vec<u8>>);

/// A column of a table map: its type and metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    kind: u8,
    metadata: u16,
}

/// The table maps of a transaction.
#[derive(Debug, Default)]
pub(super) struct TableMaps {
    /// The decoded table map events, indexed by table id. The map contains `None` for every table except the followed
    /// table.
    maps: HashMap<u64, Option<Result<Vec<Column>, Unreadable>>>,
}

impl TableMaps {
    /// Removes all maps. Each transaction has its own maps.
    pub(super) fn clear(&mut self) {
        self.maps.clear();
    }

    /// Decodes a table map event.
    pub(super) fn add(&mut self, event: &[u8], table: &Table) -> Result<(), Unreadable> {
        let mut event = Cursor(event);
        let number = event.number(6)?;
        event.take(2)?;
        let mut name = || {
            let length = usize::from(event.byte()?);
            let name = event.take(length)?;
            event.byte().map(|_| name)
        };
        let names = [name()?, name()?];
        let is_table = names == [table.database.as_bytes(), table.name.as_bytes()];
        if self.maps.len() >= MAX_TABLES {
            self.maps.clear();
        }
        // The decoder needs the column types of the followed table only.
        self.maps.insert(number, is_table.then(|| columns(&mut event)));
        Ok(())
    }

    /// Returns the ids of the rows in an event. Returns no ids if the event belongs to another table. `kind` is the
    /// event type.
    pub(super) fn ids(
        &self,
        kind: u8,
        event: &[u8],
        table: &Table,
    ) -> Result<Vec<Ids>, Unreadable> {
        let mut event = Cursor(event);
        let columns = match self.maps.get(&event.number(6)?).ok_or(Unreadable)? {
            None => return Ok(Vec::new()),
            Some(columns) => columns.as_ref().map_err(|_| Unreadable)?,
        };
        event.take(2)?;
        if kind >= 30 {
            let extra = event.number(2)?.checked_sub(2).ok_or(Unreadable)?;
            event.take(extra as usize)?;
        }
        let change = match kind {
            23 | 30 => RowChange::Insert,
            24 | 31 | PARTIAL_UPDATE => RowChange::Update,
            25 | 32 => RowChange::Delete,
            _ => return Err(Unreadable),
        };
        let count = event.length()?;
        if count != columns.len() as u64 || columns.len() != table.columns {
            return Err(Unreadable);
        }
        let present = event.take(columns.len().div_ceil(8))?;
        let present_after = match change {
            RowChange::Update => event.take(columns.len().div_ceil(8))?,
            RowChange::Insert | RowChange::Delete => present,
        };
        let row = Row { columns, table };
        let mut ids = Vec::new();
        while !event.0.is_empty() {
            ids.push(match change {
                RowChange::Insert => (None, row.id(&mut event, present)?),
                RowChange::Delete => (row.id(&mut event, present)?, None),
                RowChange::Update => {
                    let before = row.id(&mut event, present)?;
                    if kind == PARTIAL_UPDATE {
                        row.skip_json_bits(&mut event)?;
                    }
                    (before, row.id(&mut event, present_after)?)
                }
            });
        }
        Ok(ids)
    }
}

/// The event `PARTIAL_UPDATE_ROWS_EVENT` of MySQL. The event contains changes of JSON values instead of whole values.
const PARTIAL_UPDATE: u8 = 39;

/// The column type `JSON` of MySQL.
const JSON: u8 = 245;

/// Tests whether events of a type contain rows.
pub(super) fn has_rows(kind: u8) -> bool {
    matches!(kind, 23..=25 | 30..=32 | PARTIAL_UPDATE)
}

/// The data that the rows of an event share.
struct Row<'m> {
    columns: &'m [Column],
    table: &'m Table,
}

impl Row<'_> {
    /// Skips a row. Returns the id of the row. Returns `None` if the row does not satisfy the condition of the source.
    fn id<'e>(
        &'e self,
        event: &mut Cursor<'e>,
        present: &[u8],
    ) -> Result<Option<Vec<u8>>, Unreadable> {
        let bit = |bits: &[u8], at: usize| bits[at / 8] >> (at % 8) & 1 == 1;
        let count = (0..self.columns.len()).filter(|&at| bit(present, at)).count();
        if !bit(present, self.table.id) {
            return Err(Unreadable);
        }
        let nulls = event.take(count.div_ceil(8))?;
        let mut id = None;
        let mut fields = self.table.condition.as_ref().map(RowCondition::row);
        let there = self.columns.iter().enumerate().filter(|(at, _)| bit(present, *at));
        for (place, (at, column)) in there.enumerate() {
            let bytes = if bit(nulls, place) { None } else { Some(event.value(*column)?) };
            if let Some(fields) = &mut fields {
                fields.set(at, bytes);
            }
            if at == self.table.id
                && let Some(bytes) = bytes
            {
                id = self.table.id_of(as_sql(bytes, column.kind)?)?;
            }
        }
        Ok(id.filter(|_| fields.is_none_or(|fields| fields.may_hold())))
    }

    /// Skips the bits that mark partial JSON values in the row after an update.
    fn skip_json_bits(&self, event: &mut Cursor<'_>) -> Result<(), Unreadable> {
        if event.length()? & 1 == 1 {
            let count = self.columns.iter().filter(|column| column.kind == JSON).count();
            event.take(count.div_ceil(8))?;
        }
        Ok(())
    }
}

/// Decodes the column types in a table map.
fn columns(event: &mut Cursor<'_>) -> Result<Vec<Column>, Unreadable> {
    let count = usize::try_from(event.length()?).map_err(|_| Unreadable)?;
    let kinds = event.take(count)?;
    let length = usize::try_from(event.length()?).map_err(|_| Unreadable)?;
    let mut metadata = Cursor(event.take(length)?);
    let column = |&kind: &u8| {
        let metadata = match kind {
            // FLOAT, DOUBLE, times with fractions, BLOB, COMPRESSED BLOB, VECTOR, JSON and GEOMETRY have one byte of
            // metadata.
            4 | 5 | 17..=19 | 140 | 242 | JSON | 249..=252 | 255 => metadata.number(1)?,
            // VARCHAR, BIT, COMPRESSED VARCHAR and VAR_STRING have two bytes of metadata.
            15 | 16 | 141 | 253 => metadata.number(2)?,
            // DECIMAL, ENUM, SET and CHAR have two values of one byte as metadata.
            246..=248 | 254 => metadata.number(2)?,
            0..=3 | 6..=14 => 0,
            _ => return Err(Unreadable),
        };
        Ok(Column { kind, metadata: metadata as u16 })
    };
    kinds.iter().map(column).collect()
}

/// Converts the bytes of a value to the form that queries return: an integer or bytes.
fn as_sql(bytes: &[u8], kind: u8) -> Result<Value, Unreadable> {
    match kind {
        1..=3 | 8 | 9 => signed(bytes).map(Value::Int).ok_or(Unreadable),
        // The bytes of VARCHAR, DECIMAL, BLOB, VAR_STRING and CHAR.
        15 | 246 | 249..=254 => Ok(Value::Bytes(bytes.to_vec())),
        _ => Err(Unreadable),
    }
}

/// A cursor over an event. Each method returns an error at the end of the event.
struct Cursor<'e>(&'e [u8]);

impl<'e> Cursor<'e> {
    fn take(&mut self, length: usize) -> Result<&'e [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Unreadable)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Unreadable> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// Reads a little-endian integer of up to 8 bytes.
    fn number(&mut self, bytes: usize) -> Result<u64, Unreadable> {
        let mut wide = [0; 8];
        wide[..bytes].copy_from_slice(self.take(bytes)?);
        Ok(u64::from_le_bytes(wide))
    }

    /// Reads an integer whose first byte encodes its length.
    fn length(&mut self) -> Result<u64, Unreadable> {
        match self.byte()? {
            short @ 0..=250 => Ok(short.into()),
            252 => self.number(2),
            253 => self.number(3),
            254 => self.number(8),
            _ => Err(Unreadable),
        }
    }

    /// Reads the bytes of a value that is not NULL.
    fn value(&mut self, Column { kind, metadata }: Column) -> Result<&'e [u8], Unreadable> {
        let [low, high] = metadata.to_le_bytes().map(usize::from);
        let fraction = low.div_ceil(2);
        let length = match kind {
            1 | 13 => 1,
            2 => 2,
            9 | 10 | 11 | 14 => 3,
            3 | 7 => 4,
            // The metadata of FLOAT and DOUBLE is their size.
            4 | 5 => low,
            8 | 12 => 8,
            6 => 0,
            // BIT: the upper byte is the number of full bytes, and the lower byte is the number of additional bits.
            16 => high + usize::from(low > 0),
            // The types 17 to 19 are TIMESTAMP, DATETIME and TIME with fractions of seconds.
            17 => 4 + fraction,
            18 => 5 + fraction,
            19 => 3 + fraction,
            // VARCHAR, COMPRESSED VARCHAR and VAR_STRING have a length prefix of one or two bytes.
            15 | 141 | 253 => self.number(if metadata < 256 { 1 } else { 2 })? as usize,
            // The metadata of BLOB, COMPRESSED BLOB, VECTOR, JSON and GEOMETRY is the size of the length prefix.
            140 | 242 | JSON | 249..=252 | 255 if (1..=4).contains(&low) => {
                self.number(low)? as usize
            }
            // The metadata of DECIMAL is the number of digits and the number of digits after the point.
            246 => decimal_bytes(low.checked_sub(high).ok_or(Unreadable)?) + decimal_bytes(high),
            // The metadata of ENUM and SET is the number of bytes.
            247 | 248 => high,
            254 => match low {
                247 | 248 => high,
                _ => {
                    // The first byte of the metadata contains the two upper bits of the length, inverted.
                    let most = high | ((low & 0x30) ^ 0x30) << 4;
                    self.number(if most < 256 { 1 } else { 2 })? as usize
                }
            },
            _ => return Err(Unreadable),
        };
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::fold::Fold;
    use crate::kinds::mysql::column::ColumnKind;

    /// Returns a table with the columns `n INT, squeezed VARCHAR(300) COMPRESSED, id BIGINT UNSIGNED`.
    fn table() -> Table {
        Table {
            database: "shop".to_owned(),
            name: "products".to_owned(),
            table_type: String::new(),
            column: "id".to_owned(),
            has_index: true,
            is_unique: true,
            columns: 3,
            id: 2,
            kind: ColumnKind::Unsigned(64),
            fold: Fold::Exact,
            is_trimmed: false,
            condition: None,
            filter: "TRUE".to_owned(),
            shape: String::new(),
        }
    }

    fn table_map(name: &[u8]) -> Vec<u8> {
        let types = [3, 3, 141, 8, 2, 0x2d, 1, 0];
        [&[7, 0, 0, 0, 0, 0, 0, 0, 4], &b"shop\0"[..], &[name.len() as u8], name, &[0], &types]
            .concat()
    }

    /// Returns a row with NULL, a text and an id.
    fn row(id: u64) -> Vec<u8> {
        [&[0b001, 3, 0, b't', b'e', b'a'], &id.to_le_bytes()[..]].concat()
    }

    /// Returns an event of version 1 with all columns. An update event contains the column bits twice.
    fn rows(is_update: bool, rows: &[Vec<u8>]) -> Vec<u8> {
        let present = if is_update { &[3, 0b111, 0b111][..] } else { &[3, 0b111] };
        [&[7, 0, 0, 0, 0, 0, 0, 0], present, &rows.concat()].concat()
    }

    fn maps() -> TableMaps {
        let mut maps = TableMaps::default();
        maps.add(&table_map(b"products"), &table()).unwrap();
        maps
    }

    #[test]
    fn ids_are_found_behind_other_columns() {
        let text = |id: u64| Some(id.to_string().into_bytes());
        let [one, large] = [1, u64::MAX - 1];
        let ids = |kind, event: &[u8]| maps().ids(kind, event, &table());
        let two = rows(false, &[row(one), row(large)]);
        assert_eq!(ids(23, &two), Ok(vec![(None, text(one)), (None, text(large))]));
        assert_eq!(ids(25, &two), Ok(vec![(text(one), None), (text(large), None)]));
        assert_eq!(
            ids(24, &rows(true, &[row(one), row(large)])),
            Ok(vec![(text(one), text(large))])
        );
        // Version 2 has an additional length and extra bytes.
        let extra = [&two[..8], &[3, 0, 9], &two[8..]].concat();
        assert_eq!(ids(30, &extra), ids(23, &two));
    }

    #[test]
    fn rows_of_other_tables_have_no_ids_and_unknown_ones_are_unreadable() {
        let event = rows(false, &[row(1)]);
        let mut maps = TableMaps::default();
        assert_eq!(maps.ids(23, &event, &table()), Err(Unreadable));
        maps.add(&table_map(b"others"), &table()).unwrap();
        assert_eq!(maps.ids(23, &event, &table()), Ok(Vec::new()));
        // An unknown column type matters only in the followed table.
        let mut unknown = table_map(b"products");
        let at = unknown.len() - 6;
        unknown[at] = 200;
        maps.add(&unknown, &table()).unwrap();
        assert_eq!(maps.ids(23, &event, &table()), Err(Unreadable));
    }

    #[test]
    fn bytes_that_are_cut_or_changed_cause_no_panic() {
        let event = rows(true, &[row(1), row(2)]);
        for length in 0..event.len() {
            _ = maps().ids(24, &event[..length], &table());
        }
        let mut random = 1_u64;
        for _ in 0..20_000 {
            let (mut map, mut event) = (table_map(b"products"), event.clone());
            for _ in 0..3 {
                // The constants are from Knuth, The Art of Computer Programming, volume 2, section 3.3.4.
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let bytes = if random >> 60 & 1 == 0 { &mut map } else { &mut event };
                let at = (random >> 33) as usize % bytes.len();
                bytes[at] = (random >> 25) as u8;
            }
            let mut maps = TableMaps::default();
            _ = maps.add(&map, &table());
            for kind in [23, 24, 25, 30, 31, 32, PARTIAL_UPDATE] {
                _ = maps.ids(kind, &event, &table());
            }
        }
    }
}
