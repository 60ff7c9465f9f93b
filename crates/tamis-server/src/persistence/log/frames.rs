//! Reads the frames of a log file, and searches for valid frames after damaged bytes.

use crate::persistence::log::frame;
use crate::persistence::log::log_file::{HEADER_BYTES, LogFile};
use crate::system::procfs::memory_of_machine;

/// The size of one read, in bytes.
const PIECE_BYTES: u64 = 4 << 20;

/// Reads the frames of a log.
pub(crate) struct Frames<'l> {
    log: &'l LogFile,
    /// A window of the file that starts at offset `at`. The caller has already read the first
    /// `used` bytes.
    bytes: Vec<u8>,
    used: usize,
    at: u64,
    total: u64,
    /// The maximum length of a frame, in bytes.
    max_bytes: u64,
}

impl<'l> Frames<'l> {
    pub fn new(log: &'l LogFile) -> std::io::Result<Self> {
        let total = log.file.len()?;
        let max_bytes = memory_of_machine().unwrap_or(u64::MAX);
        Ok(Self { log, bytes: Vec::new(), used: 0, at: HEADER_BYTES as u64, total, max_bytes })
    }

    /// Returns the position after the last valid frame that was read.
    pub fn position(&self) -> u64 {
        self.log.began + (self.at + self.used as u64 - HEADER_BYTES as u64)
    }

    /// Returns the seed for the checks of the next frame.
    fn seed(&self) -> u64 {
        self.log.seed(self.position())
    }

    /// Returns the number of bytes of the file after the current position.
    pub fn left(&self) -> u64 {
        self.total.saturating_sub(self.at + self.used as u64)
    }

    /// Returns the position and the records of the next valid frame. Returns `None` at the end of
    /// the file or at invalid bytes.
    pub fn next(&mut self) -> std::io::Result<Option<(u64, &[u8])>> {
        let Some(len) = self.load()? else { return Ok(None) };
        let (position, start) = (self.position(), self.used);
        self.used += len;
        Ok(Some((position, &self.bytes[start + frame::HEADER_BYTES..self.used])))
    }

    /// Skips damaged bytes up to the next valid frame. Returns false if the file contains no valid
    /// frame after the current position. The search takes time proportional to the number of
    /// skipped bytes.
    ///
    /// If a damaged frame has a valid length, the whole frame is skipped.
    pub fn skip_to_valid(&mut self) -> std::io::Result<bool> {
        while self.load()?.is_none() {
            let left = self.left();
            if left == 0 {
                return Ok(false);
            }
            let len = frame::length(&self.bytes[self.used..], self.seed());
            let mut skipped = len.map_or(1, |len| len.saturating_add(frame::HEADER_BYTES as u64));
            if skipped > left {
                // Among many damaged bytes, some bytes look like a valid length by chance, but this
                // length exceeds the bytes up to the end of the file.
                skipped = 1;
            }
            let loaded = (self.bytes.len() - self.used) as u64;
            if skipped <= loaded {
                self.used += skipped as usize;
            } else {
                self.at += self.used as u64 + skipped;
                self.bytes.clear();
                self.used = 0;
            }
        }
        Ok(true)
    }

    /// Reads the next frame from the file into `bytes`. Returns the length of the frame including
    /// the header. Returns `None` at the end of the file, or if the frame is invalid.
    fn load(&mut self) -> std::io::Result<Option<usize>> {
        loop {
            let seed = self.seed();
            if let Some((_, len)) = frame::split(&self.bytes[self.used..], seed) {
                return Ok(Some(len));
            }
            let loaded = self.at + self.bytes.len() as u64;
            let unread = self.total.saturating_sub(loaded);
            let wanted = frame::length(&self.bytes[self.used..], seed);
            let wanted = wanted.map_or(0, |len| len.saturating_add(frame::HEADER_BYTES as u64));
            let have = (self.bytes.len() - self.used) as u64;
            let is_incomplete = wanted > have + unread;
            let is_bad = have >= frame::HEADER_BYTES as u64 && wanted <= have;
            if unread == 0 || is_incomplete || is_bad {
                return Ok(None);
            }
            if wanted > self.max_bytes {
                let what =
                    format!("a change of {wanted} bytes is larger than the machine's memory");
                return Err(std::io::Error::new(std::io::ErrorKind::OutOfMemory, what));
            }
            self.bytes.drain(..self.used);
            self.at += self.used as u64;
            self.used = 0;
            let more = unread.min(PIECE_BYTES.max(wanted.saturating_sub(have))) as usize;
            let before = self.bytes.len();
            self.bytes.try_reserve(more).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
            self.bytes.resize(before + more, 0);
            let read = self.log.file.read_at_most(&mut self.bytes[before..], loaded)?;
            self.bytes.truncate(before + read);
            if read == 0 {
                return Ok(None);
            }
        }
    }
}

/// The possible start positions and secrets of a log with a damaged header.
pub(crate) struct Candidates {
    /// The positions at which the log may begin.
    pub begins: Vec<u64>,
    /// The secrets that the log may have. No secret is 0, because a client could create frames that
    /// are valid with the secret 0.
    pub secrets: Vec<u64>,
}

/// Finds the start position and the secret of a log with a damaged header. A pair of a start
/// position and a secret is correct if a frame is valid with the pair. If no pair is correct,
/// returns false and does not change the log.
pub(crate) fn find_start(log: &mut LogFile, candidates: &Candidates) -> std::io::Result<bool> {
    let Candidates { begins, secrets } = candidates;
    let in_header = (log.began, log.secret);
    let len = log.file.len()?;
    // Usually the first frame is valid, and no search is necessary.
    for searches in [false, true] {
        for &secret in secrets {
            for &began in begins.iter().filter(|began| began.checked_add(len).is_some()) {
                (log.began, log.secret) = (began, secret);
                let mut frames = Frames::new(log)?;
                if frames.load()?.is_some() || searches && frames.skip_to_valid()? {
                    return Ok(true);
                }
            }
        }
    }
    (log.began, log.secret) = in_header;
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistence::sim_disk::SimDisk;

    /// Returns the bytes of two frames, and the offset of the second frame. The first frame
    /// contains a value that a client chose. In a log with the secret 0, the value of the first
    /// frame would be a valid frame.
    fn planted(log: &LogFile) -> (Vec<u8>, usize) {
        let mut bytes = Vec::new();
        frame::append(&mut bytes, log.seed(0), |records| {
            records.push(b'v');
            let mut planted = Vec::new();
            let position = (frame::HEADER_BYTES + records.len()) as u64;
            frame::append(&mut planted, position, |out| out.extend_from_slice(b"planted"));
            records.extend(planted);
        });
        let behind = bytes.len();
        let seed = log.seed(behind as u64);
        frame::append(&mut bytes, seed, |records| records.extend_from_slice(b"behind"));
        (bytes, behind)
    }

    /// Creates a log that begins at position 0.
    fn empty_log() -> LogFile {
        LogFile::begin(&SimDisk::default(), 0, 0, 0, 0, 99).unwrap()
    }

    #[test]
    fn frames_inside_a_damaged_frame_are_not_found() {
        // Damages a record, and the length of the frame.
        for at in [frame::HEADER_BYTES, 0] {
            let log = empty_log();
            let (mut bytes, behind) = planted(&log);
            bytes[at] ^= 1;
            log.file.write_all_at(&bytes, HEADER_BYTES as u64).unwrap();
            let mut frames = Frames::new(&log).unwrap();
            assert!(frames.next().unwrap().is_none(), "damaged at {at}");
            assert!(frames.skip_to_valid().unwrap(), "{at}");
            assert_eq!(frames.next().unwrap(), Some((behind as u64, &b"behind"[..])), "{at}");

            // Test the damaged first frame without its last byte, as an incomplete frame.
            let log = empty_log();
            log.file.write_all_at(&bytes[..behind - 1], HEADER_BYTES as u64).unwrap();
            let mut frames = Frames::new(&log).unwrap();
            assert!(!frames.skip_to_valid().unwrap(), "{at}");
            assert_eq!(frames.position(), behind as u64 - 1, "{at}");
        }
    }

    #[test]
    fn the_start_of_a_log_with_a_damaged_header_is_found() {
        let mut log = LogFile::begin(&SimDisk::default(), 1, 700, 0, 0, 99).unwrap();
        let mut bytes = Vec::new();
        for _ in 0..2 {
            let seed = log.seed(700 + bytes.len() as u64);
            frame::append(&mut bytes, seed, |out| out.extend_from_slice(b"records"));
        }
        // Damage the first frame in addition to the header.
        bytes[0] ^= 1;
        log.file.write_all_at(&bytes, HEADER_BYTES as u64).unwrap();
        (log.began, log.secret) = (5, 5);
        let candidates = |begins: &[u64], secrets: &[u64]| Candidates {
            begins: begins.to_vec(),
            secrets: secrets.to_vec(),
        };
        assert!(!find_start(&mut log, &candidates(&[0, 699], &[1, 99])).unwrap());
        assert!(!find_start(&mut log, &candidates(&[700], &[1])).unwrap());
        assert_eq!((log.began, log.secret), (5, 5));
        assert!(find_start(&mut log, &candidates(&[u64::MAX, 0, 700], &[1, 99])).unwrap());
        assert_eq!((log.began, log.secret), (700, 99));
    }
}
