//! Iterates over the keys of a snapshot.

use crate::errors::{DecodeError, DecodeErrorKind};
use crate::redis::rdb::entry::RdbEntry;
use crate::redis::rdb::flavor::Flavor;
use crate::redis::rdb::opcode;
use crate::redis::rdb::skip::{skip_lengths, skip_of, skip_strings};
use crate::redis::rdb_encoding::RdbReader;

/// The state of an iteration over a snapshot.
pub(super) struct Walk<'a> {
    pub(super) flavor: Flavor,
    pub(super) version: u32,
    /// The length of the snapshot in bytes.
    pub(super) len: usize,
    pub(super) from: RdbReader<'a>,
    pub(super) database: u64,
}

impl<'a> Walk<'a> {
    /// Returns the next key, or `None` at the end of the snapshot.
    pub(super) fn next(&mut self) -> Result<Option<RdbEntry<'a>>, DecodeError> {
        loop {
            let at = self.at();
            let kind = self.expect("opcode", |from| from.take(1))?[0];
            match kind {
                opcode::END if self.from.is_empty() => return Ok(None),
                opcode::END => return Err(DecodeError::too_long("end", self.at())),
                opcode::SELECT_DATABASE => {
                    self.database = self.expect("database", RdbReader::length)?;
                }
                opcode::RESIZE_DATABASE => {
                    self.skip("sizes of a database", |from| skip_lengths(from, 2))?;
                }
                opcode::IMPORT_OR_METADATA => match self.flavor {
                    Flavor::Valkey => self.skip("import of slots", |from| {
                        from.skip_bytes()?;
                        let ranges = from.length()?;
                        (0..ranges).try_for_each(|_| skip_lengths(from, 2))
                    })?,
                    Flavor::Redis => self.skip("modules' data of a key", |from| {
                        let modules = from.length()?;
                        (0..modules).try_for_each(|_| {
                            from.take(4)?;
                            from.skip_values()
                        })
                    })?,
                },
                opcode::SLOT_INFO => self.skip("sizes of a slot", |from| skip_lengths(from, 3))?,
                opcode::AUX => self.skip("auxiliary field", |from| skip_strings(from, 2))?,
                opcode::FUNCTION => self.skip("function", RdbReader::skip_bytes)?,
                opcode::IDLE => self.skip("idle time", |from| skip_lengths(from, 1))?,
                opcode::FREQUENCY => self.skip("frequency", |from| from.take(1).map(drop))?,
                opcode::EXPIRES_SECONDS => self.skip("expiry", |from| from.take(4).map(drop))?,
                opcode::EXPIRES_MILLISECONDS => {
                    self.skip("expiry", |from| from.take(8).map(drop))?;
                }
                opcode::MODULE_AUX => self.skip("module's data", |from| {
                    from.length()?;
                    from.skip_values()
                })?,
                kind => return self.entry(kind, at).map(Some),
            }
        }
    }

    fn entry(&mut self, kind: u8, kind_at: u64) -> Result<RdbEntry<'a>, DecodeError> {
        let key = self.expect("key", RdbReader::bytes)?;
        let (at, value) = (self.at(), self.from.rest());
        let Self { flavor, version, .. } = *self;
        let Some(skip) = skip_of(kind, flavor) else {
            let newest = flavor.max_version();
            let newer = match version > newest {
                true => format!(" (version {version} of the file is newer than {newest})"),
                false => String::new(),
            };
            let why = format!(
                "values of type {kind} are unknown{newer}, so nothing behind byte {kind_at} can \
                be read: use a newer tamis, or save a server without key {:?}",
                String::from_utf8_lossy(&key)
            );
            return Err(self.error("type", kind_at, DecodeErrorKind::Refused { why: why.into() }));
        };
        self.skip("value", skip)?;
        let value = &value[..(self.at() - at) as usize];
        Ok(RdbEntry { database: self.database, key, kind, value, at })
    }

    fn at(&self) -> u64 {
        (self.len - self.from.rest().len()) as u64
    }

    fn expect<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&mut RdbReader<'a>) -> Option<T>,
    ) -> Result<T, DecodeError> {
        let at = self.at();
        let reason = "whole, as Redis writes it";
        read(&mut self.from)
            .ok_or_else(|| self.error(field, at, DecodeErrorKind::Invalid { reason }))
    }

    fn skip(
        &mut self,
        field: &'static str,
        skip: impl FnOnce(&mut RdbReader<'a>) -> Option<()>,
    ) -> Result<(), DecodeError> {
        self.expect(field, skip)
    }

    fn error(&self, field: &'static str, at: u64, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { field, at, kind }
    }
}
