//! `tamis build`: builds a filter from items.

mod count_first;
#[cfg(feature = "network")]
mod on_server;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tamis::{AnyFilter, Geometry, Hasher, Kind, Plan, Span, Window};
use tamis_formats::{Charset, Contents, Format, TamisFile};

use crate::arguments::byte_size::ByteSize;
use crate::arguments::decode_options::{DecodeArgs, charset_parser, funnel_parser};
use crate::arguments::hash_key::random_hasher;
use crate::arguments::memory_limit::left_bytes;
use crate::arguments::numbers::{self, HumanCount, Rate};
use crate::arguments::window_span::{WindowSpan, even_slices};
use crate::clock::now_millis;
use crate::exit::{CommandResult, Failure};
use crate::filters::metadata::MetadataArgs;
use crate::filters::open_filter::{FilterContents, OpenFilter, Trust};
use crate::filters::opener::Opener;
use crate::filters::rate_notes::Notes;
#[cfg(not(feature = "network"))]
use crate::filters::redis_url;
use crate::filters::redis_url::is_url;
use crate::io::input;
use crate::io::output::{
    self, check_filter_output, refuse_input_as_output, refuse_name_of_other_format,
};
use crate::records::items::{ItemArgs, ItemEncoding, RecordCount};
use crate::records::key::rate;
use crate::records::repeats::{Inserter, RepeatArgs};

/// Build a filter from items and write it to a file
///
/// Without --items, the command counts the distinct items first and builds a filter for this number
/// of items. The command reads files and pipes once. The command keeps 11 to 22 bytes in memory for
/// each distinct item, and eight bytes for each repeat that the filter counts. With --items, only
/// the filter is in memory, and `tamis add` can add items up to N. For a cuckoo filter with --items
/// and without --copies, the distinct hashes are in memory too.
///
/// The same items in the same order with the same options produce the same bytes. The order matters
/// only for cuckoo, growing and window filters. The time matters only for window filters; the
/// environment variable SOURCE_DATE_EPOCH sets the time.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  tamis build urls.txt.gz -o urls.tamis             one item per line, false positive rate 1 %
  tamis build -k 2 -d , --rate 1e-6 users.csv -o users.tamis
  zcat logs/*.gz | tamis build --items 50M -o seen.tamis      needs only the memory of the filter
  tamis build --keyed --items 1M -o tokens.tamis < /dev/null  empty, with a secret key
  tamis build --like tokens.tamis more.txt -o more.tamis      can be merged with it: same key
  tamis build urls.txt -o redis://localhost/urls              on a Redis server, for many clients

Exit status: 0 built, 2 failed, 3 built, but over its rate (with --force; a window on a server also
without).")]
pub struct Args {
    /// Write the filter to FILE; replace FILE only when the filter is complete. Or create the
    /// filter under a key of a Redis or Valkey server: redis://HOST/KEY
    #[arg(short, long, value_name = "FILE|URL")]
    output: PathBuf,

    /// Plan for N distinct items (such as 10M) instead of counting the items first; with --copies,
    /// each copy counts as an item
    #[arg(long, value_name = "N")]
    items: Option<HumanCount>,

    /// False positive rate at capacity: a probability such as 0.01, or 1%
    #[arg(long, value_name = "R", default_value = "0.01", value_parser = rate)]
    rate: f64,

    /// Kind of filter [default: the best kind for the rate]
    #[arg(long, value_parser = kind_parser())]
    kind: Option<Kind>,

    /// With --kind counting: bits of a counter; 4, 8 or 16 bits count up to 15, 255 or 65535
    #[arg(long, value_name = "BITS", value_parser = ["4", "8", "16"])]
    counter_bits: Option<String>,

    /// Expire items after a time such as 24h, or after a number of other items such as 1M-items
    /// (--kind window)
    #[arg(long, value_name = "SPAN")]
    window: Option<WindowSpan>,

    /// With --window: expire items in N steps. An item is kept for at least SPAN and at most SPAN/N
    /// longer. If N is above 1, a time window keeps its rate only if items arrive evenly. A small
    /// window of items may use more than N steps [default: 1 for a window of time; 3 to 5 for a
    /// window of items, depending on the rate]
    #[arg(long, value_name = "N", value_parser = crate::arguments::numbers::slices)]
    slices: Option<u8>,

    /// With --window: restart the span of an item when the item is repeated
    #[arg(long)]
    refresh: bool,

    /// Seed of the hash; filters with the same seed can be merged and share their false positives
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,

    /// Hash with a new secret key. Use a key if an attacker can choose items: without a key, the
    /// attacker can cause false positives. The file contains the key: keep the file private
    #[arg(long, conflicts_with = "seed")]
    keyed: bool,

    /// Build a filter that can be merged with the Tamis filter in FILE: same kind, size, rate, and
    /// seed or secret key
    #[arg(long, value_name = "FILE", conflicts_with_all = ["items", "rate", "kind", "counter_bits", "window", "slices",
        "refresh", "seed", "keyed"])]
    like: Option<PathBuf>,

    /// Use at most SIZE of memory, such as 512M
    #[arg(long, value_name = "SIZE")]
    memory: Option<ByteSize>,

    /// Write the filter even if its false positive rate exceeds --rate; the exit status is 3
    #[arg(long)]
    force: bool,

    /// With -o URL: build a new filter beside the filter under the key, then replace the old
    /// filter. During the build, clients can look up items, and the inserts of clients go to the
    /// old and the new filter. If the key does not exist, create the filter
    #[arg(long)]
    replace: bool,

    /// With --replace: first abort an unfinished rebuild of another client
    #[arg(long, requires = "replace")]
    abort_rebuild: bool,

    /// With -o URL: the layout of a Java program: redisson, redis-bitmap (BloomFilterHelper) or
    /// redis-bitmaps (RedisBitmaps) [default: the layout of tamis-redis]
    #[arg(long, value_name = "FORMAT", ignore_case = true, value_parser = ["redisson", "redis-bitmap", "redis-bitmaps"], hide_possible_values = true)]
    to: Option<String>,

    /// With --to: how the Java program converts an item to bytes: see --funnel of 'tamis check'
    #[arg(long, value_name = "FUNNEL", ignore_case = true, hide_possible_values = true, value_parser = funnel_parser(), requires = "to")]
    to_funnel: Option<String>,

    /// With --to-funnel text or twice: how the Java program encodes text
    #[arg(long, value_name = "CHARSET", ignore_case = true, value_parser = charset_parser(), requires = "to_funnel")]
    to_charset: Option<Charset>,

    #[command(flatten)]
    repeats: RepeatArgs,

    #[command(flatten)]
    items_from: ItemArgs,

    #[command(flatten)]
    metadata: MetadataArgs,
}

/// The number of items that are inserted between two checks of the filter's memory.
const GROWTH_CHUNK: usize = 8192;

/// Slots per bucket of a cuckoo filter for `--copies`. An item has two buckets; with two slots per
/// bucket, a filter would hold at most two copies of each item.
const BUCKET_OF_COPIES: u32 = 4;

/// Returns the parser that clap uses for the name of a filter kind.
fn kind_parser() -> impl TypedValueParser<Value = Kind> {
    let values = Kind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.summary()));
    PossibleValuesParser::new(values).map(|name| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.expect("clap checked the name")
    })
}

/// Runs the command.
pub fn run(args: &Args) -> CommandResult {
    args.check()?;
    args.check_place()?;
    if is_url(&args.output) {
        #[cfg(feature = "network")]
        return args.build_on_server();
        #[cfg(not(feature = "network"))]
        redis_url::parse(&args.output)?.not_in_this_program();
    }
    refuse_name_of_other_format(&args.output, Format::named("tamis").expect("the first row"))?;
    let paths = input::checked(&args.items_from.files)?;
    refuse_input_as_output(&paths, &args.output)?;
    refuse_input_as_output(args.like.as_slice(), &args.output)?;
    check_filter_output(&args.output)?;
    let metadata = args.metadata.collect(&args.items_from)?;
    let max_bytes = left_bytes(args.memory, &paths, args.items_from.records.lines().input)?;
    let (filter, count) = match (&args.like, args.planned_items()) {
        (Some(like), _) => args.stream(&paths, args.empty_like(like, max_bytes)?, max_bytes)?,
        (None, Some(items)) => {
            let empty = args.empty(&args.plan(args.places(items), max_bytes)?, args.hasher()?)?;
            args.stream(&paths, empty, max_bytes)?
        }
        (None, None) => args.count_first(&paths, max_bytes)?,
    };
    let mut file = TamisFile::new(filter);
    file.added = count.items;
    file.metadata = metadata;
    count.warn();
    let contents = FilterContents::Decoded(Contents::new(file));
    OpenFilter::new(&args.output, contents).save(&args.output, args.force, Notes::Rate)
}

impl Args {
    /// Rejects options that apply only to files, or only to a server.
    fn check_place(&self) -> Result<(), Failure> {
        let is_on_server = is_url(&self.output);
        let of_server = [
            ("--replace", self.replace),
            ("--to", self.to.is_some()),
            ("--abort-rebuild", self.abort_rebuild),
            ("--to-funnel", self.to_funnel.is_some()),
            ("--to-charset", self.to_charset.is_some()),
        ];
        let of_file = [
            ("--like", self.like.is_some()),
            ("--refresh", self.refresh),
            ("--counter-bits", self.counter_bits.is_some()),
            ("--copies", self.repeats.copies),
            ("--meta and --stamp", !self.metadata.is_empty()),
        ];
        let (options, place) = if is_on_server {
            (&of_file[..], "a file")
        } else {
            (&of_server[..], "the URL of a key")
        };
        match options.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(Failure::new(format!("{option}: only with -o and {place}"))),
            None => Ok(()),
        }
    }

    /// Rejects options that do not apply to the chosen kind of filter.
    fn check(&self) -> Result<(), Failure> {
        let kind = self.kind();
        let wrong = |option, of| Err(Failure::new(format!("{option} is for --kind {of}")));
        if self.counter_bits.is_some() && kind != Some(Kind::Counting) {
            return wrong("--counter-bits", Kind::Counting);
        }
        match (kind, self.window) {
            (Some(Kind::Window), None) => Err(Failure::new(
                "--kind window needs the span after which items are forgotten, such as --window \
                 24h or --window 1M-items",
            )),
            (Some(Kind::Window), Some(WindowSpan(Span::Millis(_)))) if self.items.is_none() => {
                Err(Failure::new(
                    "--window with a time needs --items N: how many distinct items come in that \
                     time",
                ))
            }
            (Some(Kind::Window) | None, Some(_)) | (_, None) => Ok(()),
            (Some(_), Some(_)) => wrong("--window", Kind::Window),
        }?;
        if kind != Some(Kind::Window) && (self.slices.is_some() || self.refresh) {
            let option = if self.refresh { "--refresh" } else { "--slices" };
            return Err(Failure::new(format!("{option} is for a window: add --window SPAN")));
        }
        if let (Some(WindowSpan(Span::Items(items))), Some(slices)) = (self.window, self.slices)
            && u64::from(slices) > items
        {
            return Err(Failure::new("--slices: a window has no more slices than items"));
        }
        if self.like.is_none() {
            self.repeats.of(kind)?;
        }
        if self.keyed && kind == Some(Kind::Parquet) {
            return Err(Failure::new("--keyed: filters of Parquet have no key; leave out --kind"));
        }
        Ok(())
    }

    fn kind(&self) -> Option<Kind> {
        self.kind.or(self.window.map(|_| Kind::Window))
    }

    /// Returns the planned number of items if the command need not count the items first.
    fn planned_items(&self) -> Option<u64> {
        let of_window = match self.window {
            Some(WindowSpan(Span::Items(items))) => Some(items),
            _ => None,
        };
        // A growing filter needs no planned number of items.
        let of_growing = self.kind().is_some_and(Kind::grows).then_some(1);
        self.items.map(|HumanCount(items)| items).or(of_window).or(of_growing)
    }

    /// Returns the capacity to plan for a filter that must hold `items`.
    fn places(&self, items: u64) -> u64 {
        match self.kind() {
            // Copies of an item share the two buckets of the item. With three copies of each item,
            // a filter of 10 to 10⁶ items is full at 1/1.27 of its capacity.
            Some(kind) if kind.stores_copies() && self.repeats.copies => {
                items.saturating_add(items.div_ceil(10).saturating_mul(3))
            }
            _ => items,
        }
    }

    /// Creates an empty filter with this plan.
    fn empty(&self, plan: &Plan, hasher: Hasher) -> Result<AnyFilter, Failure> {
        empty(plan, hasher, self.window.map(|WindowSpan(span)| span), self.refresh)
    }

    /// Creates an empty filter that can be merged with the filter in the file `like`.
    fn empty_like(&self, like: &Path, max_bytes: u64) -> Result<AnyFilter, Failure> {
        let name = input::name(like);
        let like = Opener::new(&DecodeArgs::default()).one(like, Trust::Assume)?;
        let file = like.view()?.ok_or_else(|| {
            Failure::new(format!(
                "{name}: --like takes a Tamis filter, and this is one of {}: add the items to a \
                 copy of it with 'tamis add', or convert it first",
                like.format.name
            ))
        })?;
        let (plan, hasher) = (file.filter.plan(), file.filter.hasher());
        self.repeats.of(Some(plan.kind()))?;
        self.check_memory(plan, max_bytes)?;
        let (span, refreshes) = match &file.filter {
            AnyFilter::Window(window) => (Some(window.span()), window.refreshes()),
            _ => (None, false),
        };
        empty(plan, hasher, span, refreshes)
    }

    fn hasher(&self) -> Result<Hasher, Failure> {
        if self.keyed {
            return random_hasher();
        }
        Ok(match self.kind {
            // With Parquet's own hash, the words of the filter equal the words of a Parquet
            // column's filter.
            Some(Kind::Parquet) => Hasher::xxh64(self.seed),
            _ => Hasher::mix(self.seed),
        })
    }

    /// Plans a filter of at most `max_bytes` bytes.
    fn plan(&self, items: u64, max_bytes: u64) -> Result<Plan, Failure> {
        let counter_bits = self.counter_bits.as_ref().and_then(|bits| bits.parse().ok());
        let plan = match (self.kind(), counter_bits, self.slices) {
            (Some(Kind::Counting), Some(bits), _) => Plan::counting(items, self.rate, bits),
            (Some(Kind::Window), _, Some(slices)) => {
                Plan::window(items, self.rate, u32::from(slices))
            }
            // All items of a time window may arrive at once.
            (Some(Kind::Window), ..)
                if matches!(self.window, Some(WindowSpan(Span::Millis(_)))) =>
            {
                Plan::window(items, self.rate, 1)
            }
            (Some(Kind::Cuckoo), ..) if self.repeats.copies => {
                Plan::cuckoo(items, self.rate, BUCKET_OF_COPIES)
            }
            (Some(kind), ..) => Plan::for_kind(kind, items, self.rate),
            (None, ..) => Plan::new(items, self.rate),
        };
        let plan = plan.and_then(|plan| match (self.window, plan.geometry()) {
            // A small span does not divide evenly into the slices, so the number of slices is
            // adjusted.
            (Some(WindowSpan(Span::Items(span))), Geometry::Slices(slices)) => {
                let even = even_slices(span, slices.into());
                Plan::window(items, self.rate, u8::try_from(even).map_or(slices, u32::from))
            }
            _ => Ok(plan),
        });
        let plan = plan.map_err(Failure::new)?;
        self.check_memory(&plan, max_bytes)?;
        Ok(plan)
    }

    fn check_memory(&self, plan: &Plan, max_bytes: u64) -> Result<(), Failure> {
        match self.memory {
            Some(limit) if plan.bytes() > max_bytes => Err(Failure::new(format!(
                "{} at a rate of {} take {}, and --memory {limit} leaves {}: allow more \
                 memory, a higher rate or fewer items",
                numbers::items(plan.items()),
                Rate(plan.rate()),
                ByteSize { bytes: plan.bytes() },
                ByteSize { bytes: max_bytes },
            ))),
            _ => Ok(()),
        }
    }

    /// Inserts items while the command reads them.
    fn stream(
        &self,
        paths: &[PathBuf],
        mut filter: AnyFilter,
        max_bytes: u64,
    ) -> Result<(AnyFilter, RecordCount), Failure> {
        let (plan, hasher) = (filter.plan(), filter.hasher());
        let left_bytes = max_bytes - plan.bytes().min(max_bytes);
        let repeats = self.repeats.of(Some(plan.kind()))?;
        let advice = match (&self.like, plan.kind()) {
            (Some(_), kind) if kind.grows() => {
                "it has the rate of the filter of --like: build both with a higher --rate"
            }
            (Some(_), _) => "it has the size of the filter of --like: build both for more items",
            (None, kind) => repeats.advice(kind),
        };
        let mut inserter = Inserter::new(repeats, left_bytes, advice)?;
        let reader = self.items_from.reader(paths);
        let count = reader.each_batch(ItemEncoding::Hash(hasher), |batch| {
            // A window filter records each batch at the time when the batch arrives.
            filter.advance(now_millis());
            // A growing filter grows only a little within one chunk, so one check per chunk is
            // enough.
            batch.hashes().chunks(GROWTH_CHUNK).try_for_each(|hashes| {
                inserter.insert(&mut filter, hashes, &self.output)?;
                self.check_growth(&filter, max_bytes)
            })
        })?;
        Ok((filter, count))
    }

    /// Rejects a growing filter that has grown beyond `max_bytes`. Constant time.
    fn check_growth(&self, filter: &AnyFilter, max_bytes: u64) -> Result<(), Failure> {
        match (filter, self.memory) {
            (AnyFilter::Growing(growing), Some(limit)) if growing.heap_bytes() > max_bytes => {
                Err(Failure::new(format!(
                    "{}: with {} the filter needs more than --memory {limit}; nothing was \
                     written: allow more memory or a higher rate, or plan a filter of another kind \
                     with --items N",
                    output::name(&self.output),
                    numbers::items(growing.len()),
                )))
            }
            _ => Ok(()),
        }
    }
}

/// Creates an empty filter. `window` is the span of a window filter.
fn empty(
    plan: &Plan,
    hasher: Hasher,
    window: Option<Span>,
    refreshes: bool,
) -> Result<AnyFilter, Failure> {
    let Some(span) = window else {
        return AnyFilter::from_plan(plan, hasher).map_err(Failure::new);
    };
    let window = Window::from_plan(plan, hasher, span).map_err(Failure::new)?;
    let mut filter = AnyFilter::Window(if refreshes { window.refreshing() } else { window });
    filter.advance(now_millis());
    Ok(filter)
}
