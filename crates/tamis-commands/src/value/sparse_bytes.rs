//! A byte string that allocates no memory for pages of zeros.

use std::fmt;
use std::ops::Range;

use tamis::allocation_bytes;

use crate::value::small_bytes::SmallBytes;

/// A byte string stored in pages. A page of zeros is absent.
///
/// A string with a single 1 bit takes the memory of one page, plus eight bytes for every page before this page. A
/// string of up to one page is stored contiguously. Reading past the end of the string returns zeros. Writing past the
/// end makes the string longer. A string never becomes shorter.
///
/// # Examples
///
/// ```
/// use tamis_commands::SparseBytes;
///
/// let mut bytes = SparseBytes::default();
/// bytes.write((1 << 29) - 1, b"x");
/// assert_eq!((bytes.len(), bytes.byte((1 << 29) - 1), bytes.byte(0)), (1 << 29, b'x', 0));
/// assert!(bytes.memory_bytes() < (1 << 29) / 400);
/// ```
#[derive(Clone)]
pub struct SparseBytes(Pieces);

#[derive(Clone)]
enum Pieces {
    /// A string of up to one page.
    Short(SmallBytes),
    /// A string of more than one page.
    Long(Box<Pages>),
}

#[derive(Clone)]
struct Pages {
    table: Vec<Option<Page>>,
    /// The number of allocated pages.
    present: usize,
    /// The length of the string. The bytes of the last page after the end of the string are zeros.
    len: usize,
}

type Page = Box<[u8; PAGE_BYTES]>;

/// The size of a page, in bytes.
const PAGE_BYTES: usize = 4096;

impl SparseBytes {
    /// Returns the length of the string, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            Pieces::Short(bytes) => bytes.len(),
            Pieces::Long(pages) => pages.len,
        }
    }

    /// Tests whether the string is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the heap memory in bytes, computed by [`allocation_bytes`]. Constant time.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        match &self.0 {
            Pieces::Short(bytes) => bytes.heap_bytes(),
            Pieces::Long(pages) => {
                allocation_bytes(size_of::<Pages>())
                    + allocation_bytes(pages.table.capacity() * size_of::<Option<Page>>())
                    + pages.present as u64 * allocation_bytes(PAGE_BYTES)
            }
        }
    }

    /// Returns the whole string if the string is at most one page long.
    pub(crate) fn as_short(&self) -> Option<&[u8]> {
        match &self.0 {
            Pieces::Short(bytes) => Some(bytes),
            Pieces::Long(_) => None,
        }
    }

    /// Returns the byte at `at`; zero past the end of the string.
    #[must_use]
    pub fn byte(&self, at: usize) -> u8 {
        match &self.0 {
            Pieces::Short(bytes) => bytes.get(at).copied().unwrap_or(0),
            Pieces::Long(pages) => match pages.table.get(at / PAGE_BYTES) {
                Some(Some(page)) => page[at % PAGE_BYTES],
                _ => 0,
            },
        }
    }

    /// Fills `out` with the bytes from `at` on, and with zeros past the end of the string.
    pub fn read(&self, at: usize, out: &mut [u8]) {
        out.fill(0);
        let end = at.saturating_add(out.len());
        for (start, bytes) in self.pieces(at..end) {
            if let Some(bytes) = bytes {
                out[start - at..][..bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    /// Returns the bytes of a range. Omits positions past the end of the string.
    #[must_use]
    pub fn to_vec(&self, range: Range<usize>) -> Vec<u8> {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        let mut bytes = vec![0; end - start];
        self.read(start, &mut bytes);
        bytes
    }

    /// Extends the string to `len` bytes with zeros. Does nothing if the string already has at least `len` bytes.
    pub fn grow(&mut self, len: usize) {
        if len <= self.len() {
            return;
        }
        match &mut self.0 {
            Pieces::Short(bytes) if len <= PAGE_BYTES => bytes.resize(len),
            Pieces::Short(bytes) => {
                let first = page_of(bytes);
                let present = usize::from(first.is_some());
                let mut table = Vec::with_capacity(len.div_ceil(PAGE_BYTES));
                table.push(first);
                table.resize_with(len.div_ceil(PAGE_BYTES), || None);
                self.0 = Pieces::Long(Box::new(Pages { table, present, len }));
            }
            Pieces::Long(pages) => {
                pages.table.resize_with(len.div_ceil(PAGE_BYTES), || None);
                pages.len = len;
            }
        }
    }

    /// Writes bytes at `at`, and extends the string if necessary.
    ///
    /// # Panics
    ///
    /// Panics if the length of the string would not fit a `usize`.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.grow(at.checked_add(bytes.len()).expect("lengths fit"));
        let Pages { table, present, .. } = match &mut self.0 {
            Pieces::Short(all) => return all[at..][..bytes.len()].copy_from_slice(bytes),
            Pieces::Long(pages) => &mut **pages,
        };
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let inside = at % PAGE_BYTES;
            let (now, later) = rest.split_at(rest.len().min(PAGE_BYTES - inside));
            let slot = &mut table[at / PAGE_BYTES];
            if slot.is_none() && !is_zero(now) {
                *slot = Some(Box::new([0; PAGE_BYTES]));
                *present += 1;
            }
            if let Some(page) = slot {
                page[inside..][..now.len()].copy_from_slice(now);
            }
            at += now.len();
            rest = later;
        }
    }

    /// Returns the pieces of a range, up to the end of the string. A piece consists of the start position and the
    /// bytes. A piece has `None` instead of the bytes if the page is absent.
    pub(crate) fn pieces(
        &self,
        range: Range<usize>,
    ) -> impl Iterator<Item = (usize, Option<&[u8]>)> {
        let end = range.end.min(self.len());
        let range = if range.start < end { range.start..end } else { 0..0 };
        let pages = range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES);
        pages.map(move |number| {
            let page = number * PAGE_BYTES;
            let (start, end) = (range.start.max(page), range.end.min(page + PAGE_BYTES));
            (start, self.page(number).map(|bytes| &bytes[start - page..end - page]))
        })
    }

    /// Returns a page by its number. The only page of a short string is as long as the string.
    fn page(&self, number: usize) -> Option<&[u8]> {
        match &self.0 {
            Pieces::Short(bytes) => (number == 0).then_some(&**bytes),
            Pieces::Long(pages) => pages.table.get(number)?.as_ref().map(|page| &page[..]),
        }
    }

    /// Replaces each byte by `op(own, other)`, where `other` is the byte of the other string. The
    /// result has the length of the longer string. `op(0, 0)` must be zero.
    pub(crate) fn combine(&mut self, other: &SparseBytes, op: impl Fn(u8, u8) -> u8) {
        self.grow(other.len());
        // A page of zeros stays absent if the page of the other string is absent too, or if `op`
        // is AND.
        let fills = |number| op(0, 0xff) != 0 && other.page(number).is_some();
        self.change_pages(fills, |number, ours| {
            let theirs = other.page(number).unwrap_or_default();
            let (both, behind) = ours.split_at_mut(theirs.len());
            both.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours = op(*ours, *theirs));
            behind.iter_mut().for_each(|ours| *ours = op(*ours, 0));
        });
    }

    /// Inverts every bit of the string.
    pub(crate) fn invert(&mut self) {
        let len = self.len();
        self.change_pages(
            |_| true,
            |number, bytes| {
                let len = (len - number * PAGE_BYTES).min(bytes.len());
                bytes[..len].iter_mut().for_each(|byte| *byte = !*byte);
            },
        );
    }

    /// Calls `change` with the number and the bytes of each page. Skips an absent page unless
    /// `fills` returns true for its number.
    fn change_pages(&mut self, fills: impl Fn(usize) -> bool, change: impl Fn(usize, &mut [u8])) {
        let Pages { table, present, .. } = match &mut self.0 {
            Pieces::Short(bytes) => return change(0, bytes),
            Pieces::Long(pages) => &mut **pages,
        };
        *present = 0;
        for (number, page) in table.iter_mut().enumerate() {
            if page.is_some() || fills(number) {
                let bytes = page.get_or_insert_with(|| Box::new([0; PAGE_BYTES]));
                change(number, &mut bytes[..]);
                if is_zero(&bytes[..]) {
                    *page = None;
                }
            }
            *present += usize::from(page.is_some());
        }
    }
}

impl Default for SparseBytes {
    fn default() -> Self {
        Self(Pieces::Short(SmallBytes::default()))
    }
}

impl From<Vec<u8>> for SparseBytes {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= PAGE_BYTES {
            return Self(Pieces::Short(bytes.into()));
        }
        let mut sparse = Self::default();
        sparse.write(0, &bytes);
        sparse
    }
}

impl fmt::Debug for SparseBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SparseBytes")
            .field("len", &self.len())
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}

/// Creates a page that begins with the given bytes; `None` if all bytes are zeros.
fn page_of(bytes: &[u8]) -> Option<Page> {
    if is_zero(bytes) {
        return None;
    }
    let mut page = Box::new([0; PAGE_BYTES]);
    page[..bytes.len()].copy_from_slice(bytes);
    Some(page)
}

fn is_zero(bytes: &[u8]) -> bool {
    // Test 64 bytes at a time, to avoid a branch per byte.
    bytes.chunks(64).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An operation on a string and on a simple model of the string.
    #[derive(Clone, Debug)]
    enum Step {
        Write(usize, Vec<u8>),
        Grow(usize),
        Combine(fn(u8, u8) -> u8, Vec<(usize, u8)>, usize),
        Invert,
    }

    const END: usize = 5 * PAGE_BYTES;
    const OPS: [fn(u8, u8) -> u8; 3] = [|a, b| a & b, |a, b| a | b, |a, b| a ^ b];

    fn len() -> impl Strategy<Value = usize> {
        prop_oneof![0..40usize, 0..END, Just(PAGE_BYTES), Just(PAGE_BYTES + 1)]
    }

    fn step() -> impl Strategy<Value = Step> {
        let ones = prop::collection::vec((0..END, any::<u8>()), 0..8);
        prop_oneof![
            4 => (len(), prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..20))
                .prop_map(|(at, bytes)| Step::Write(at, bytes)),
            1 => (len(), len()).prop_map(|(at, zeros)| Step::Write(at, vec![0; zeros])),
            1 => (len(), len()).prop_map(|(at, ones)| Step::Write(at, vec![1; ones])),
            2 => len().prop_map(Step::Grow),
            3 => (prop::sample::select(OPS.to_vec()), ones, len())
                .prop_map(|(op, ones, len)| Step::Combine(op, ones, len)),
            1 => Just(Step::Invert),
        ]
    }

    fn dense(ones: &[(usize, u8)], len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        for &(at, byte) in ones.iter().filter(|(at, _)| *at < len) {
            bytes[at] = byte;
        }
        bytes
    }

    fn grow(twin: &mut Vec<u8>, len: usize) {
        twin.resize(twin.len().max(len), 0);
    }

    fn run(sparse: &mut SparseBytes, twin: &mut Vec<u8>, step: Step) {
        match step {
            Step::Write(at, bytes) => {
                sparse.write(at, &bytes);
                if !bytes.is_empty() {
                    grow(twin, at + bytes.len());
                    twin[at..][..bytes.len()].copy_from_slice(&bytes);
                }
            }
            Step::Grow(len) => {
                sparse.grow(len);
                grow(twin, len);
            }
            Step::Combine(op, ones, len) => {
                let mut other = dense(&ones, len);
                sparse.combine(&SparseBytes::from(other.clone()), op);
                grow(twin, other.len());
                grow(&mut other, twin.len());
                twin.iter_mut().zip(other).for_each(|(ours, theirs)| *ours = op(*ours, theirs));
            }
            Step::Invert => {
                sparse.invert();
                twin.iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
    }

    proptest! {
        #[test]
        fn a_sparse_string_is_the_dense_one(
            first in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..50),
                len().prop_map(|len| vec![7; len]),
            ],
            steps in prop::collection::vec(step(), 0..12),
            start in len(),
            end in len(),
        ) {
            let mut sparse = SparseBytes::from(first.clone());
            let mut twin = first;
            for step in steps {
                run(&mut sparse, &mut twin, step);
                prop_assert_eq!(sparse.len(), twin.len());
                prop_assert!(sparse.to_vec(0..usize::MAX) == twin);
                prop_assert_eq!(sparse.as_short(), (twin.len() <= PAGE_BYTES).then_some(&twin[..]));
                if let Pieces::Long(pages) = &sparse.0 {
                    prop_assert_eq!(pages.table.iter().flatten().count(), pages.present);
                }
            }
            prop_assert_eq!(sparse.byte(start), twin.get(start).copied().unwrap_or(0));
            let cut_end = end.min(twin.len());
            prop_assert!(sparse.to_vec(start..end) == twin[start.min(cut_end)..cut_end]);
            let mut read = vec![9; 100];
            sparse.read(start, &mut read);
            grow(&mut twin, start + 100);
            prop_assert!(read == twin[start..start + 100]);
        }
    }

    #[test]
    fn zeros_take_no_page() {
        let mut bytes = SparseBytes::from(vec![0; 100 * PAGE_BYTES]);
        let empty = bytes.memory_bytes();
        assert!(empty < 1000);
        bytes.write(0, &[0; 2 * PAGE_BYTES]);
        assert_eq!(bytes.memory_bytes(), empty);
        bytes.write(50 * PAGE_BYTES, b"x");
        assert_eq!(bytes.memory_bytes(), empty + allocation_bytes(PAGE_BYTES));
        let other = bytes.clone();
        bytes.combine(&other, |a, b| a ^ b);
        assert_eq!(bytes.memory_bytes(), empty);
    }
}
