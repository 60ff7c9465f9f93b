//! Builds ORC files without compression, also damaged ones. Layout: `docs/formats/orc.md`.

use tamis::Answers;
use tamis_formats::orc::create;
use tamis_formats::{Funnel, OrcType};

/// A file whose columns are the members `a`, `b`, ... of a struct.
#[derive(Default)]
pub struct OrcBuilder {
    /// The kinds of the types of the columns.
    pub kinds: Vec<u64>,
    pub row_group_rows: u64,
    pub stripes: Vec<StripeBuilder>,
    /// How often the footer lists the stripes once more.
    pub stripe_copies: usize,
    /// The last fields of the footer.
    pub footer_end: Vec<u8>,
    /// The length of the footer in the PostScript, if it is wrong.
    pub footer_bytes: Option<u64>,
}

/// A stripe without data.
#[derive(Default)]
pub struct StripeBuilder {
    pub rows: u64,
    /// Kind, column and bytes.
    pub streams: Vec<(u64, u64, Vec<u8>)>,
    /// The encodings of the columns, the struct first.
    pub encodings: Vec<Vec<u8>>,
    /// The length of the streams, if it is wrong.
    pub stream_bytes: Option<u64>,
}

impl OrcBuilder {
    pub fn build(&self) -> Vec<u8> {
        let (mut file, mut footer) = (b"ORC".to_vec(), Vec::new());
        for stripe in &self.stripes {
            let at = file.len() as u64;
            let mut of_stripe = Vec::new();
            for (kind, column, data) in &stripe.streams {
                let len = stripe.stream_bytes.unwrap_or(data.len() as u64);
                let stream = [number(1, *kind), number(2, *column), number(3, len)].concat();
                of_stripe.extend(bytes(1, &stream));
                file.extend_from_slice(data);
            }
            for encoding in &stripe.encodings {
                of_stripe.extend(bytes(2, encoding));
            }
            let index_bytes = file.len() as u64 - at;
            file.extend_from_slice(&of_stripe);
            let information = [
                number(1, at),
                number(2, index_bytes),
                number(4, of_stripe.len() as u64),
                number(5, stripe.rows),
            ];
            footer.extend(bytes(3, &information.concat()));
        }
        footer = footer.repeat(1 + self.stripe_copies);
        let members: Vec<u8> = (1..=self.kinds.len() as u8).collect();
        let mut root = [number(1, 12), bytes(2, &members)].concat();
        for index in 0..self.kinds.len() {
            let name = char::from(b'a' + (index % 26) as u8).to_string().repeat(1 + index / 26);
            root.extend(bytes(3, name.as_bytes()));
        }
        footer.extend(bytes(4, &root));
        for &kind in &self.kinds {
            footer.extend(bytes(4, &number(1, kind)));
        }
        let rows: u64 = self.stripes.iter().map(|stripe| stripe.rows).sum();
        footer.extend(number(6, rows * (1 + self.stripe_copies as u64)));
        footer.extend(number(8, self.row_group_rows));
        footer.extend_from_slice(&self.footer_end);
        file.extend_from_slice(&footer);
        let footer_bytes = self.footer_bytes.unwrap_or(footer.len() as u64);
        let post_script = [number(1, footer_bytes), bytes(8000, b"ORC")].concat();
        file.extend_from_slice(&post_script);
        file.push(post_script.len() as u8);
        file
    }
}

/// Returns a field with a number.
pub fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// Returns a field with bytes.
pub fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [&varint(field << 3 | 2), &varint(value.len() as u64), value].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut varint = Vec::new();
    while value >= 0x80 {
        varint.push(value as u8 | 0x80);
        value >>= 7;
    }
    varint.push(value as u8);
    varint
}

/// Returns a stream `BLOOM_FILTER_UTF8` with the same filter for each of `row_groups`.
pub fn filters(items: &[i64], row_groups: usize) -> Vec<u8> {
    let (probes, words) = filter(items);
    bytes(1, &[number(1, probes), bytes(3, &words.concat())].concat()).repeat(row_groups)
}

/// Returns the same as a stream `BLOOM_FILTER`.
pub fn original_filters(items: &[i64], row_groups: usize) -> Vec<u8> {
    let (probes, words) = filter(items);
    let words = words.iter().flat_map(|word| [&varint(2 << 3 | 1), &word[..]].concat());
    bytes(1, &[number(1, probes), words.collect()].concat()).repeat(row_groups)
}

/// Returns the probes and the words of a filter.
fn filter(items: &[i64]) -> (u64, Vec<[u8; 8]>) {
    let mut filter = create(items.len() as u64, 0.001).unwrap();
    for item in items {
        let mut hash = Vec::new();
        Funnel::Orc(OrcType::Long).key(item.to_string().as_bytes(), &mut hash).unwrap();
        filter.insert_each(&[&hash], &mut Answers::new());
    }
    let words = filter.words().iter().map(|word| word.to_le_bytes()).collect();
    (filter.rule().probes().into(), words)
}
