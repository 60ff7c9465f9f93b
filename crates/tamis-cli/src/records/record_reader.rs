//! Reads the records of a command's inputs in order, in blocks of whole records.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::exit::Failure;
use crate::io::input::{self, Input};
use crate::io::progress::Progress;
use crate::records::csv::count_lines;
use crate::records::key::RecordForm;
use crate::records::split::{BlockBuffer, BlockReader, RecordEnd, records};

/// A position in the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputPosition {
    /// The index of the input.
    pub input: usize,
    /// The byte offset in the input after decompression.
    pub at_bytes: u64,
}

/// Reads several inputs in order.
pub struct RecordReader {
    paths: Vec<PathBuf>,
    form: RecordForm,
    position: InputPosition,
    // The blocks of the input at `position`, if the input at `position` is open.
    blocks: Option<BlockReader<Input>>,
    is_unpacked_ahead: bool,
    // True if the last block is a header.
    is_header: bool,
    // The number of bytes read from all earlier inputs, before decompression.
    done_bytes: u64,
}

impl RecordReader {
    /// Creates a reader of the inputs `paths`.
    pub fn new(paths: &[PathBuf], form: RecordForm) -> Self {
        Self {
            paths: paths.to_vec(),
            form,
            position: InputPosition::default(),
            blocks: None,
            is_unpacked_ahead: false,
            is_header: false,
            done_bytes: 0,
        }
    }

    /// Starts at `position`, at which an earlier run stopped. If `is_unpacked_ahead` is true, the
    /// reader decompresses on a second thread.
    #[must_use]
    pub fn starting_at(self, position: InputPosition, is_unpacked_ahead: bool) -> Self {
        Self { position, is_unpacked_ahead, ..self }
    }

    /// Reads the next records into `block`. All records of a block belong to one input. Returns
    /// false at the end of the inputs.
    ///
    /// If the inputs have headers, the header of each input is a block of its own, before the
    /// records of the input.
    ///
    /// # Errors
    ///
    /// A message with the name of the input that cannot be read.
    pub fn next(&mut self, block: &mut BlockBuffer) -> Result<bool, Failure> {
        self.is_header = false;
        loop {
            let Some(path) = self.paths.get(self.position.input) else { return Ok(false) };
            if self.blocks.is_none() {
                let mut input = Input::open(path, self.form.input)?;
                if self.is_unpacked_ahead {
                    input = input.unpacked_ahead();
                }
                let blocks = self.blocks.insert(BlockReader::new(input, self.form.end));
                if self.form.end.has_header() && read_header(blocks, block)? {
                    self.is_header = true;
                    let header_bytes = block.len() as u64;
                    skip(blocks, header_bytes, self.position.at_bytes)?;
                    self.position.at_bytes = self.position.at_bytes.max(header_bytes);
                    return Ok(true);
                }
                skip(blocks, 0, self.position.at_bytes)?;
            }
            let blocks = self.blocks.as_mut().expect("opened above");
            let is_there = blocks.read_block(block);
            if is_there.map_err(|error| blocks.reader().failure(&error))? {
                self.position.at_bytes += block.len() as u64;
                return Ok(true);
            }
            self.done_bytes += blocks.reader().consumed_bytes();
            self.blocks = None;
            self.position = InputPosition { input: self.position.input + 1, at_bytes: 0 };
        }
    }

    /// Shortens the last block to its first `len_bytes`, which must be complete records. The next
    /// block starts with the records after the first `len_bytes`.
    pub fn take_back(&mut self, block: &mut BlockBuffer, len_bytes: usize) {
        self.position.at_bytes -= (block.len() - len_bytes) as u64;
        if let Some(blocks) = &mut self.blocks {
            blocks.take_back(block, len_bytes);
        }
    }

    /// Tests whether the last block is the header of its input.
    pub fn is_header(&self) -> bool {
        self.is_header
    }

    /// Returns the failure for the header in the last block.
    pub fn header_failure(&self, why: &str) -> Failure {
        let path = &self.paths[self.position.input];
        Failure::new(format!("{}: line 1: {why}", input::name(path)))
    }

    /// Returns the position after the last block.
    pub fn position(&self) -> InputPosition {
        self.position
    }

    /// Returns the number of bytes read so far from all inputs, before decompression.
    pub fn consumed_bytes(&self) -> u64 {
        let of_input = self.blocks.as_ref().map_or(0, |blocks| blocks.reader().consumed_bytes());
        self.done_bytes + of_input
    }

    /// Tests whether the next read may block, as on a pipe. If the next read may block, the caller
    /// should write its results before the read.
    pub fn may_wait(&self) -> bool {
        self.blocks.as_ref().is_some_and(BlockReader::may_wait)
    }

    /// Passes all blocks to `visit` until `visit` breaks. `visit` returns the number of records in
    /// the block. Messages use the returned number of records to count lines. The method draws the
    /// progress.
    ///
    /// # Errors
    ///
    /// An error of reading or of `visit`.
    pub fn for_each(
        mut self,
        mut visit: impl FnMut(&RecordBlock<'_>) -> Result<ControlFlow<(), usize>, Failure>,
    ) -> Result<(), Failure> {
        let mut progress = Progress::new(input::total_len_bytes(&self.paths));
        let (mut block, mut of_input, mut records_before) = (BlockBuffer::default(), 0, 0);
        while self.next(&mut block)? {
            if self.position.input != of_input {
                (of_input, records_before) = (self.position.input, 0);
            }
            let (path, end) = (&self.paths[of_input], self.form.end);
            let lines_before = match end {
                RecordEnd::Byte(_) => records_before,
                RecordEnd::Csv(_) => {
                    let lines = self.blocks.as_ref().map_or(0, BlockReader::lines);
                    lines - count_lines(&block)
                }
            };
            let is_header = self.is_header;
            let records = RecordBlock { bytes: &block, end, is_header, path, lines_before };
            let ControlFlow::Continue(len) = visit(&records)? else { break };
            records_before += len as u64;
            progress.at(self.consumed_bytes());
        }
        Ok(())
    }
}

/// Consecutive records of one input.
pub struct RecordBlock<'a> {
    bytes: &'a [u8],
    end: RecordEnd,
    /// True if the block is the header of its input. A header block contains no records.
    pub is_header: bool,
    path: &'a Path,
    // The number of lines of the input before this block.
    lines_before: u64,
}

impl<'a> RecordBlock<'a> {
    /// Iterates over the records, without their delimiters.
    #[inline]
    pub fn records(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        records(self.bytes, self.end)
    }

    /// Returns the header, without its newline.
    pub fn header(&self) -> &'a [u8] {
        self.records().next().unwrap_or_default()
    }

    /// Returns the byte that ends a record.
    pub fn delimiter(&self) -> u8 {
        self.end.byte()
    }

    /// Returns the failure for the record at `index`. The message names its file and line.
    pub fn failure(&self, index: usize, why: &str) -> Failure {
        let lines = match self.end {
            RecordEnd::Byte(_) => index as u64,
            RecordEnd::Csv(_) => {
                self.records().take(index).map(|record| count_lines(record) + 1).sum()
            }
        };
        let line = self.lines_before + lines + 1;
        Failure::new(format!("{}: line {line}: {why}", input::name(self.path)))
    }
}

/// Reads the header into `block`. Returns false if the input is empty.
fn read_header(blocks: &mut BlockReader<Input>, block: &mut BlockBuffer) -> Result<bool, Failure> {
    let is_there = blocks.read_block(block);
    if !is_there.map_err(|error| blocks.reader().failure(&error))? {
        return Ok(false);
    }
    let end = blocks.end().ends(block).next().unwrap_or(block.len());
    blocks.take_back(block, end);
    Ok(true)
}

/// Skips the bytes that an earlier run has processed. Of the bytes to skip, `read_bytes` bytes have
/// already been read.
fn skip(blocks: &mut BlockReader<Input>, read_bytes: u64, len_bytes: u64) -> Result<(), Failure> {
    let skipped = blocks.skip(len_bytes.saturating_sub(read_bytes));
    let input = blocks.reader();
    match skipped.map_err(|error| input.failure(&error))? + read_bytes {
        skipped if skipped >= len_bytes => Ok(()),
        skipped => Err(Failure::new(format!(
            "{}: ends at byte {skipped}, but an earlier run has read {len_bytes}; give it the same \
             input, or --restart",
            input.name()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::key::RecordArgs;

    #[test]
    fn a_failure_names_the_line_of_its_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        let many: String = (0..100_000).map(|i| format!("line {i}\n")).collect();
        std::fs::write(&paths[0], &many).unwrap();
        std::fs::write(&paths[1], many + "last").unwrap();
        let mut found = Vec::new();
        let read = RecordReader::new(&paths, RecordArgs::default().lines()).for_each(|block| {
            if let Some(index) = block.records().position(|record| record == b"last") {
                return Err(block.failure(index, "is here"));
            }
            found.extend(block.records().map(<[u8]>::to_vec));
            Ok(ControlFlow::Continue(block.records().count()))
        });
        let Err(Failure::Message(line)) = read else { panic!() };
        assert_eq!(line, format!("{}: line 100001: is here", paths[1].display()));
        assert!(found.len() >= 100_000);
    }
}
