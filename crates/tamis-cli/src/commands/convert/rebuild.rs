//! Builds a filter from items and compares it with the filter that it replaces.

use std::path::PathBuf;

use tamis::{Answers, DigestSet};
use tamis_formats::{
    Contents, CreateError, DecodeOptions, FilterInfo, Format, Funnel, ItemCount, ItemDomain, Items,
    Parameter,
};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::decode_options::{funnel, has_charset, missing_to_write, parse_funnel};
use crate::arguments::hash_key::random_hasher;
use crate::arguments::numbers::{self, HumanCount, Rate};
use crate::commands::convert::Args;
use crate::exit::{CommandResult, Failure};
use crate::filters::open_filter::{FilterContents, OpenFilter};
use crate::filters::rate_notes::Notes;
use crate::io::input;
use crate::io::output::{self, refuse_input_as_output};
use crate::records::items::{ItemBatch, ItemEncoding, ItemReader, RecordCount};

/// The false positive rate of OUT if the user gives no rate and IN stores no rate.
const RATE: f64 = 0.01;

/// Returns by how much the number of given items may be below the number of items in `info`.
fn slack(info: &FilterInfo) -> f64 {
    if matches!(info.items_are, ItemCount::Distinct | ItemCount::Exact) {
        return 0.0;
    }
    match info.probes {
        // The fraction f of the m bits is set, with standard deviation σ. The number of items is
        // -m/k ln(1 - f), with standard deviation m/k · σ/(1 - f).
        Some(k) if info.rate_std_error > 0.0 => {
            let (m, k, f) = (info.bits as f64, f64::from(k), info.fill);
            let deviation = info.rate_std_error * f / k;
            4.0 * m / k * deviation / (1.0 - f) + 1.0
        }
        _ => 0.1 * info.items + 1.0,
    }
}

/// If a filter exceeds its rate, the command plans the filter for these multiples of the items in
/// turn.
const LARGER_PLANS: &[f64] = &[1.125, 1.25, 1.5, 2.0, 3.0, 4.0];

/// If the lowest possible rate exceeds the wanted rate by more than this factor, the format limits
/// the size of the filter. A smaller excess comes from rounding in the formulas of other systems.
const SIZE_LIMIT_RATIO: f64 = 1.5;

/// Tests whether a file stores its plan. If a file stores no plan, the program that reads the file
/// computes the plan from the rate.
fn has_own_plan(to: &Format) -> bool {
    !to.parameters.required.contains(&Parameter::Rate)
}

/// Returns an empty filter that is planned for `multiple` times the items, and its options.
/// Returns `None` if the filter cannot be created, or has at most `bits` bits.
///
/// The plan keeps the wanted rate: many formats store the planned rate, and readers compare this
/// rate with the rate of the bits. A list of items gets its size only when the list is written. For
/// a list, the plan therefore uses a power of the rate instead of a multiple of the items.
fn plan_for(
    options: &DecodeOptions,
    multiple: f64,
    bits: u64,
    create: impl Fn(&DecodeOptions) -> Result<Contents, Failure>,
) -> Option<(DecodeOptions, Contents)> {
    let items = options.items.map(|items| (items as f64 * multiple).ceil() as u64);
    let more = DecodeOptions { items, ..options.clone() };
    let contents = create(&more).ok()?;
    match contents.info().bits {
        0 => {
            let rate = options.rate.map(|rate| rate.powf(multiple));
            let lower = DecodeOptions { rate, ..options.clone() };
            Some((lower.clone(), create(&lower).ok()?))
        }
        planned => (planned > bits).then_some((more, contents)),
    }
}

/// Returns a lower bound of the rate of a filter that contains `items` items. Returns 0 if the
/// bound is unknown.
fn least_rate(info: &FilterInfo, items: u64) -> f64 {
    let Some(probes) = info.probes.filter(|_| info.bits > 0) else { return 0.0 };
    let fill = -(-f64::from(probes) * items as f64 / info.bits as f64).exp_m1();
    fill.powf(probes.into())
}

/// Returns the number of items and the rate that OUT is planned for.
fn planned(
    options: &DecodeOptions,
    to: &Format,
    distinct: u64,
    rate_of_input: Option<f64>,
) -> (Option<u64>, f64) {
    // The size of a bitmap of integers depends on the greatest integer, and not on the number of
    // integers.
    let items = options.items.or((to.item_domain != ItemDomain::Integers).then_some(distinct));
    let rate_of_input = rate_of_input.filter(|&rate| rate > 0.0 && rate < 1.0);
    (items, options.rate.or(rate_of_input).unwrap_or(RATE))
}

impl Args {
    /// Builds OUT from the items and tests each item in both filters.
    pub(super) fn rebuild(
        &self,
        from: &OpenFilter,
        to: &'static Format,
        options: DecodeOptions,
    ) -> CommandResult {
        let name = output::name(&self.output);
        let items = self.checked_items()?;
        let from_encoding = from.key_encoding()?;
        let to_funnel = self.funnel_of(to, from.funnel)?;
        let to_encoding = self.encoding_of(to, from_encoding, to_funnel);
        let (distinct, total) = self.count(&items)?;
        total.warn();
        let info = from.contents().info();
        self.check_count(from, &info, distinct)?;
        let (planned, rate) =
            planned(&options, to, distinct, from.options.rate.or(info.rate_planned));
        let options = DecodeOptions { items: planned, rate: Some(rate), ..options };
        let create = |options: &DecodeOptions| {
            (to.create)(options).map_err(|error| match error {
                CreateError::Missing(parameter) => missing_to_write(parameter, options, to, &name),
                error => Failure::new(format!("{name}: {error}")),
            })
        };
        let mut contents = create(&options)?;
        if let Some(planned) = planned {
            self.check_size(&contents.info(), to, planned, rate)?;
        }
        let lacking = self.count_lacking(from.contents(), &items, total, from_encoding)?;
        self.check_lacking(from, lacking, total.items)?;
        // The formulas of many systems plan a filter that exceeds its rate. The command therefore
        // plans the filter for larger and larger numbers of items, until the filter keeps the rate.
        let is_within_plan = planned.is_none_or(|planned| distinct <= planned);
        let plans = if has_own_plan(to) && is_within_plan { LARGER_PLANS } else { &[] };
        let mut plans = plans.iter();
        let (mut answers, mut first) = (Answers::new(), None::<OpenFilter>);
        let (mut plan, mut least) = (options.clone(), f64::INFINITY);
        let rebuilt = loop {
            self.each_again(&items, total, to_encoding, |batch| {
                contents
                    .insert_each(&batch.keys(), &mut answers)
                    .map_err(|error| Failure::new(format!("{name}: {error}; nothing was written")))
            })?;
            let built = OpenFilter {
                name: name.clone(),
                format: to,
                options: plan,
                funnel: Some(to_funnel),
                ..OpenFilter::new(&self.output, FilterContents::Decoded(contents))
            };
            let decoded = self.verify(&built, &items, total, to_encoding)?;
            let info = decoded.info();
            // The first filter may exceed the rate by chance. A filter that is planned for more
            // items than the inputs contain must keep the rate.
            let is_kept = match &first {
                None => decoded.exceeded_rate(&info, Some(rate)).is_none(),
                Some(_) => info.keeps(rate),
            };
            least = info.rate_now.min(least);
            let contents_of_file = FilterContents::Decoded(decoded);
            let built =
                OpenFilter { contents: contents_of_file, options: options.clone(), ..built };
            if is_kept {
                break built;
            }
            let over = first.take().unwrap_or(built);
            match plans.find_map(|&multiple| plan_for(&options, multiple, info.bits, create)) {
                Some(next) => {
                    first = Some(over);
                    (plan, contents) = next;
                }
                None => {
                    self.refuse_rate(&over, least)?;
                    break over;
                }
            }
        };
        rebuilt.save(&self.output, true, Notes::All)
    }

    /// Returns the rule that converts the items of OUT to bytes. Without `--to-funnel`, OUT keeps
    /// the funnel and the text form of a column of IN.
    fn encoding_of(&self, to: &Format, from: ItemEncoding, to_funnel: Funnel) -> ItemEncoding {
        let is_inherited = self.to_funnel.is_none() && to.items == Items::Unspecified;
        match from {
            ItemEncoding::Column(text, funnel) if is_inherited && funnel == to_funnel => {
                ItemEncoding::Column(text, funnel)
            }
            _ => ItemEncoding::Key(to_funnel),
        }
    }

    /// Rejects a filter that lacks items, unless `--force` is given.
    fn check_lacking(&self, from: &OpenFilter, lacking: u64, items: u64) -> Result<(), Failure> {
        if lacking == 0 {
            return Ok(());
        }
        self.refuse(&format!(
            "{}: lacks {} of the {}: the filter was made of other items, or with another --funnel \
             or --charset",
            from.name,
            HumanCount(lacking),
            numbers::items(items)
        ))
    }

    /// Rejects an empty filter that is too small for its items, unless `--force` is given. Some
    /// formats limit the size of a filter.
    fn check_size(
        &self,
        info: &FilterInfo,
        to: &Format,
        items: u64,
        rate: f64,
    ) -> Result<(), Failure> {
        let least = least_rate(info, items);
        if least <= rate * SIZE_LIMIT_RATIO {
            return Ok(());
        }
        self.refuse(&format!(
            "{}: a {} filter for {} has at most {}, so its rate with all of them is at least {}, not {}: give \
             fewer --to-items, or this rate with --to-rate",
            output::name(&self.output),
            to.name,
            numbers::items(items),
            ByteSize { bytes: info.bits.div_ceil(8) },
            Rate(least),
            Rate(rate)
        ))
    }

    /// Rejects a filter that is over its rate, unless `--force` is given. `least` is the lowest
    /// rate of all filters that were tried.
    fn refuse_rate(&self, filter: &OpenFilter, least: f64) -> Result<(), Failure> {
        let (_, excess) = filter.notes(Notes::Rate);
        let Some(excess) = excess.filter(|_| !self.force) else { return Ok(()) };
        Err(Failure::new(format!(
            "{}: {excess}; no {} filter that was tried for these items has a rate below {}; nothing \
             was written: give that rate with --to-rate, plan it for more items with --to-items, or \
             accept it with --force",
            filter.name,
            filter.format.name,
            Rate(least)
        )))
    }

    /// Returns the files of items. Pipes are rejected because the files are read several times.
    pub(super) fn checked_items(&self) -> Result<Vec<PathBuf>, Failure> {
        let items = input::checked(&self.items)?;
        for path in &items {
            if input::is_stdin(path) || !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
                return Err(Failure::new(format!(
                    "--items {}: items are read several times: name a file, not a pipe",
                    path.display()
                )));
            }
        }
        refuse_input_as_output(&items, &self.output)?;
        Ok(items)
    }

    /// Rejects an empty list of items. Rejects a list with far fewer items than IN holds, because
    /// OUT would not find the items that are not in the list.
    fn check_count(
        &self,
        from: &OpenFilter,
        info: &FilterInfo,
        distinct: u64,
    ) -> Result<(), Failure> {
        if distinct == 0 {
            return Err(Failure::new("--items: the file has no items; nothing was written"));
        }
        if !info.items.is_finite() || distinct as f64 >= info.items - slack(info) {
            return Ok(());
        }
        self.refuse(&format!(
            "{}: {}, and --items has {}: the others would not be found in {}",
            from.name,
            numbers::holds(info.items),
            HumanCount(distinct),
            output::name(&self.output)
        ))
    }

    /// Returns a failure with the message `state`. With `--force`, writes `state` as a note and
    /// returns `Ok`.
    fn refuse(&self, state: &str) -> Result<(), Failure> {
        if !self.force {
            return Err(Failure::new(format!("{state}; nothing was written (--force: convert)")));
        }
        note!("{state}");
        Ok(())
    }

    /// Returns the funnel of OUT.
    pub(super) fn funnel_of(
        &self,
        to: &Format,
        of_input: Option<Funnel>,
    ) -> Result<Funnel, Failure> {
        let options = match &self.to_funnel {
            Some(name) => {
                let charset = self.to_charset.or(self.decode.charset);
                let funnel = parse_funnel(name, charset, "--to-charset")?;
                if self.to_charset.is_some() && !has_charset(funnel) {
                    return Err(Failure::new(format!(
                        "--to-charset is for --to-funnel text or twice, not for {name}: leave it \
                         out"
                    )));
                }
                Some(funnel)
            }
            // The option `--funnel` describes IN and also OUT. A format with a fixed funnel keeps
            // the fixed funnel.
            None if to.items == Items::Unspecified => of_input,
            None => None,
        };
        let out = output::name(&self.output);
        funnel(to, options, "--to-funnel", &out)
    }

    /// Returns the number of distinct items, and the count of all items.
    fn count(&self, items: &[PathBuf]) -> Result<(u64, RecordCount), Failure> {
        let mut distinct = DigestSet::<u64>::within(u64::MAX);
        // The hash has a secret key because an attacker may have chosen the items.
        let (encoding, mut answers) = (ItemEncoding::Hash(random_hasher()?), Answers::new());
        let total = self.reader(items).each_batch(encoding, |batch| {
            distinct.insert_each(batch.hashes(), &mut answers).map_err(Failure::new)
        })?;
        Ok((distinct.len(), total))
    }

    /// Decodes the filter from its encoded bytes and tests every item. Returns the decoded filter.
    fn verify(
        &self,
        file: &OpenFilter,
        items: &[PathBuf],
        total: RecordCount,
        encoding: ItemEncoding,
    ) -> Result<Contents, Failure> {
        let (name, format, options) = (&file.name, file.format, &file.options);
        let mut bytes = Vec::new();
        file.write(&mut bytes, &self.output, format, options)?;
        let failure = |error: &dyn std::fmt::Display| Failure::new(format!("{name}: {error}"));
        let back = (format.decode)(&bytes, options).map_err(|error| failure(&error))?;
        drop(bytes);
        let lacking = self.count_lacking(&back, items, total, encoding)?;
        if lacking > 0 {
            return Err(failure(&format!(
                "{} lost in the conversion, a bug of tamis; nothing was written",
                numbers::items(lacking)
            )));
        }
        Ok(back)
    }

    /// Counts the items that `filter` does not contain.
    fn count_lacking(
        &self,
        filter: &Contents,
        items: &[PathBuf],
        total: RecordCount,
        encoding: ItemEncoding,
    ) -> Result<u64, Failure> {
        let (mut answers, mut lacking) = (Answers::new(), 0);
        self.each_again(items, total, encoding, |batch| {
            filter.contains_each(&batch.keys(), &mut answers);
            lacking += (batch.len() - answers.count_ones()) as u64;
            Ok(())
        })?;
        Ok(lacking)
    }

    /// Reads the items a second time, and returns a failure if the items have changed since the
    /// first pass.
    fn each_again(
        &self,
        items: &[PathBuf],
        total: RecordCount,
        encoding: ItemEncoding,
        each: impl FnMut(&ItemBatch) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        if self.reader(items).each_batch(encoding, each)? == total {
            return Ok(());
        }
        Err(Failure::new("--items: the items changed while they were read; nothing was written"))
    }

    fn reader<'a>(&self, paths: &'a [PathBuf]) -> ItemReader<'a> {
        ItemReader { paths, rule: self.key.rule(), form: self.records.form(&self.key) }
    }
}
