//! The files that a power loss may leave: the disk may have stored any part of the writes since the
//! last sync.

use crate::disk::journal::DiskOp;

/// A disk writes a sector completely or not at all.
const SECTOR_BYTES: u64 = 512;

/// A generator with a fixed seed (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn is_kept(&mut self) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 & 1 == 1
    }
}

/// Splits an operation into the parts that reach the disk independently.
fn parts(op: &DiskOp) -> Vec<DiskOp> {
    let DiskOp::Write(at, bytes) = op else { return vec![op.clone()] };
    let (mut parts, mut from) = (Vec::new(), 0);
    while from < bytes.len() {
        let start = at + from as u64;
        let len = (SECTOR_BYTES - start % SECTOR_BYTES) as usize;
        let end = bytes.len().min(from + len);
        parts.push(DiskOp::Write(start, bytes[from..end].to_vec()));
        from = end;
    }
    parts
}

fn apply(image: &mut Vec<u8>, op: &DiskOp) {
    match op {
        DiskOp::Write(at, bytes) => {
            let end = *at as usize + bytes.len();
            image.resize(image.len().max(end), 0);
            image[*at as usize..end].copy_from_slice(bytes);
        }
        DiskOp::SetLen(len) => image.resize(*len as usize, 0),
        DiskOp::Sync => {}
    }
}

/// Calls `each` with each file that a power loss after the operations `ops` may leave.
pub(crate) fn each_image(
    start: &[u8],
    ops: &[DiskOp],
    random: &mut Random,
    mut each: impl FnMut(&[u8]),
) {
    let synced = ops.iter().rposition(|op| *op == DiskOp::Sync).map_or(0, |at| at + 1);
    let mut base = start.to_vec();
    ops[..synced].iter().for_each(|op| apply(&mut base, op));
    let pending: Vec<_> = ops[synced..].iter().flat_map(parts).collect();
    let mut with = |is_kept: &mut dyn FnMut(usize) -> bool| {
        let mut image = base.clone();
        let kept = (0..pending.len()).filter(|&part| is_kept(part));
        kept.for_each(|part| apply(&mut image, &pending[part]));
        each(&image);
    };
    with(&mut |_| false);
    with(&mut |_| true);
    for one in 0..pending.len() {
        with(&mut |part| part == one);
        with(&mut |part| part != one);
    }
    for _ in 0..8 {
        with(&mut |_| random.is_kept());
    }
}
