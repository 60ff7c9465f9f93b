//! A snapshot file: a generation, with a position in the change stream of the source.
//!
//! A guard that starts with a snapshot does not read all ids from its source. The guard loads the ids from the
//! snapshot, and continues the change stream at the position.
//!
//! # Consistency
//!
//! The writer takes the position before it reads the bits. Other threads continue to apply changes during the write.
//! Therefore the snapshot file contains all changes up to the position, and possibly some changes after the position.
//! The reader applies all changes after the position in order. Two cases are possible for each id:
//!
//! * The stream has a change of the id after the position. The last change decides the state of the id. An insert sets
//!   bits, which may be set already, and removes the tombstone. A deletion adds the tombstone.
//! * The stream has no change of the id after the position. The id has its state at the position: its bits were set
//!   before the write started, and bits are never cleared.
//!
//! During the replay, an id may have a wrong state. Example: the file contains the tombstone of an id, and the writer
//! had already applied a later insert of the same id. The state is correct after the reader has replayed all changes
//! that the writer had applied. Therefore, after copying the tombstones, the writer takes a second position, called the
//! end. The file contains no change after the end. The reader becomes synced only after it has applied all changes up
//! to the end.
//!
//! If the stream does not contain the end, the stream is not the stream that the writer read. For example, the source
//! may have lost its last changes in a crash. Without the end in the stream, the reader reads all ids from the source.
//!
//! # Layout
//!
//! Integers are little-endian. A text is its length (u32) and its bytes.
//!
//! | bytes | field |
//! | --- | --- |
//! | 8 | magic number `89 54 47 55 41 52 44 0a` |
//! | 4 | version: 1 |
//! | 8 | time at which the file was written, in milliseconds since 1970 |
//! | 8 | time at which all ids were read, in milliseconds since 1970 |
//! | text | type of the ids |
//! | text | identity of the source |
//! | text | position in the change stream of the source |
//! | 8 | false positive rate of the parts (f64) |
//! | 8 | highest integer id (i64); `i64::MIN` without an integer id |
//! | 4 | number of parts, at least 1 |
//! | 1 | 1 if a base filter precedes the parts, otherwise 0 |
//! | 1 | fold of text ids: 0 exact, 1 ignores trailing spaces, 2 ignores case, 3 to 5 follow a collation |
//! | | each filter: number of ids (u64), length (u64), a Tamis file |
//! | 8 | number of deleted ids |
//! | | each deleted id: a text |
//! | text | end: the position in the change stream after the copy |
//! | 8 | XXH3 of all bytes before |

mod error;
mod fields;
mod head;
mod store;

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tamis::AnyFilter;
use tamis_formats::TamisFile;

pub use error::SnapshotError;
use fields::{FieldReader, FieldWriter};
pub use head::{Snapshot, SnapshotHead};
pub use store::{SnapshotOptions, SnapshotStore};

use crate::ids::base::BaseFilter;
use crate::ids::fold::Fold;
use crate::ids::generation::Generation;
use crate::ids::part::Part;
use crate::ids::tombstones::Tombstones;

/// The first byte of the magic number is not ASCII, and the last byte is a line feed, so that the reader detects a
/// text-mode transfer.
const MAGIC: [u8; 8] = *b"\x89TGUARD\n";

const VERSION: u32 = 1;

/// The maximum number of parts of a generation. Each part doubles the capacity of the generation.
const MAX_PARTS: u32 = 64;

impl Generation {
    /// Writes the generation. Other threads may change the generation during the write. The caller must have taken the
    /// position before this call. The function copies one part at a time. After the last copy, the function calls
    /// `end`, which returns the position of the last applied change.
    ///
    /// The bytes contain the secret hash key of the generation.
    ///
    /// # Errors
    ///
    /// The errors of `out`; [`io::ErrorKind::OutOfMemory`] if the system has no memory for a copy;
    /// [`io::ErrorKind::InvalidInput`] if a text of `head` or the end exceeds 64 KiB; [`io::ErrorKind::Unsupported`] if
    /// the base filter comes from another system.
    pub fn write_snapshot(
        &self,
        head: &SnapshotHead,
        end: impl FnOnce() -> Vec<u8>,
        out: impl Write,
    ) -> io::Result<()> {
        let base = match self.base().map(|base| &base.filter) {
            None => None,
            Some(BaseFilter::Tamis(filter)) => Some(&**filter),
            #[cfg(feature = "databases")]
            Some(BaseFilter::Foreign(_)) => return Err(io::ErrorKind::Unsupported.into()),
        };
        let mut out = FieldWriter::new(out);
        out.bytes(&MAGIC)?;
        out.u32(VERSION)?;
        for time in [head.created, head.built] {
            let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
            out.u64(since.as_millis() as u64)?;
        }
        out.text(head.ids.as_bytes())?;
        out.text(head.source.as_bytes())?;
        out.text(&head.position)?;
        let parts = self.parts();
        out.u64(self.rate_of_parts().to_bits())?;
        out.u64(self.highest().unwrap_or(i64::MIN) as u64)?;
        out.u32(parts.len() as u32)?;
        out.bytes(&[u8::from(base.is_some()), self.fold().number()])?;
        if let Some(base) = base {
            write_filter(&mut out, base.clone(), 0)?;
        }
        for part in &*parts {
            // The count is read before the copy, so that the copy contains the bits of each counted id.
            let items = part.items.load(Ordering::Relaxed);
            let copy = part.copy().map_err(|_| io::ErrorKind::OutOfMemory)?;
            write_filter(&mut out, copy, items)?;
        }
        let deleted = self.tombstones().copy();
        out.u64(deleted.len() as u64)?;
        // The end position is read after the last part is copied.
        let end = end();
        for id in deleted {
            out.text(&id)?;
        }
        out.text(&end)?;
        out.finish()
    }

    /// Reads a snapshot that [`write_snapshot`](Self::write_snapshot) has written. The function reads at most
    /// `max_bytes`, and allocates memory in proportion to the received bytes.
    ///
    /// # Errors
    ///
    /// [`SnapshotError`] unless the bytes are exactly one valid snapshot.
    pub fn read_snapshot(stream: impl Read, max_bytes: u64) -> Result<Snapshot, SnapshotError> {
        let mut fields = FieldReader::new(stream, max_bytes);
        let head = read_head(&mut fields)?;
        let generation = read_generation(&mut fields)?;
        let end = fields.text()?;
        fields.finish()?;
        Ok(Snapshot { head, generation, end })
    }
}

fn write_filter(
    out: &mut FieldWriter<impl Write>,
    filter: AnyFilter,
    items: u64,
) -> io::Result<()> {
    let file = TamisFile::new(filter);
    out.u64(items)?;
    out.u64(file.len_bytes())?;
    file.write_to(out)
}

/// Reads the fields that precede the rate.
fn read_head(fields: &mut FieldReader<impl Read>) -> Result<SnapshotHead, SnapshotError> {
    if fields.array()? != MAGIC {
        return Err(SnapshotError::NotASnapshot);
    }
    let version = fields.u32()?;
    if version != VERSION {
        return Err(SnapshotError::Version { found: version, known: VERSION });
    }
    let (created, built) = (read_time(fields)?, read_time(fields)?);
    let utf8 = |bytes, field| String::from_utf8(bytes).map_err(|_| SnapshotError::Invalid(field));
    Ok(SnapshotHead {
        ids: utf8(fields.text()?, "type of the ids")?,
        source: utf8(fields.text()?, "source")?,
        position: fields.text()?,
        created,
        built,
    })
}

fn read_time(fields: &mut FieldReader<impl Read>) -> Result<SystemTime, SnapshotError> {
    let since = Duration::from_millis(fields.u64()?);
    UNIX_EPOCH.checked_add(since).ok_or(SnapshotError::Invalid("time"))
}

fn read_generation(fields: &mut FieldReader<impl Read>) -> Result<Generation, SnapshotError> {
    let rate = f64::from_bits(fields.u64()?);
    if !(rate > 0.0 && rate < 1.0) {
        return Err(SnapshotError::Invalid("rate"));
    }
    let highest = fields.u64()? as i64;
    let count = fields.u32()?;
    if !(1..=MAX_PARTS).contains(&count) {
        return Err(SnapshotError::Invalid("number of parts"));
    }
    let [has_base, fold] = fields.array()?;
    let fold = Fold::of_number(fold).ok_or(SnapshotError::Invalid("collation"))?;
    let base = match has_base {
        0 => None,
        1 => Some(read_filter(fields)?.0),
        _ => return Err(SnapshotError::Invalid("filter of a file")),
    };
    if matches!(base, Some(AnyFilter::Window(_))) {
        return Err(SnapshotError::Invalid("filter of a file"));
    }
    let mut parts: Vec<Arc<Part>> = Vec::new();
    for _ in 0..count {
        let (filter, items) = read_filter(fields)?;
        let part = Part::restore(filter, items).ok_or(SnapshotError::Invalid("part"))?;
        let is_same = |first: &Arc<Part>| first.filter.hasher() == part.filter.hasher();
        if !parts.first().is_none_or(is_same) {
            return Err(SnapshotError::Invalid("hash key"));
        }
        parts.push(part);
    }
    let count = fields.u64()?;
    // The ids are read one at a time, so that a wrong count allocates no memory.
    let deleted = (0..count).map(|_| fields.text().map(Box::from));
    let deleted: Tombstones = deleted.collect::<Result<_, _>>()?;
    Ok(Generation::restore(rate, base, parts, deleted, highest, fold))
}

fn read_filter(fields: &mut FieldReader<impl Read>) -> Result<(AnyFilter, u64), SnapshotError> {
    let items = fields.u64()?;
    let len_bytes = fields.u64()?;
    // The filter is at most as long as the file, so the length of the file limits the memory.
    let file = TamisFile::read_from(fields.take(len_bytes)?, len_bytes)?;
    Ok((file.filter, items))
}
