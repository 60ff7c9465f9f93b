//! Builds a filter on a Redis server.

use std::path::PathBuf;

use tamis::{Answers, Hasher, Kind, Span};
use tamis_formats::{DecodeOptions, Format};
use tamis_redis::{
    RedisCreateError, RedisDraft, RedisFilter, RedisItemError, RedisNodes, RedisPlan,
    RedisPlanError, RedisRebuildError, RedisWindow,
};

use crate::arguments::decode_options::{funnel, parse_funnel};
use crate::arguments::memory_limit::left_bytes;
use crate::arguments::numbers::{self, HumanCount};
use crate::arguments::window_span::WindowSpan;
use crate::commands::build::Args;
use crate::exit::{CommandResult, Exit, Failure};
use crate::filters::open_filter::{FilterContents, OpenFilter};
use crate::filters::rate_notes::Notes;
use crate::filters::redis_key::{
    StoredKind, StoredValue, discard, discard_at_interruption, failure,
};
use crate::filters::redis_url::{self, RedisUrl};
use crate::io::input;
use crate::io::temporary::{end_interruption_handler, uninterrupted};
use crate::records::items::{ItemEncoding, RecordCount};
use crate::records::secret_set::SecretSet;

/// The source of the items: a stream that is read while items are inserted, or a set of hashes that
/// was counted before the filter is created.
enum ItemSource<'a> {
    Stream(&'a [PathBuf]),
    Counted(SecretSet, RecordCount),
}

/// The current value of the key.
enum Place {
    /// The key does not exist.
    Free(RedisNodes),
    /// A filter that the command replaces.
    Filter(RedisFilter<RedisNodes>),
}

impl Args {
    /// Builds a filter under the key of a URL.
    pub(super) fn build_on_server(&self) -> CommandResult {
        let url = redis_url::parse(&self.output)?;
        let paths = input::checked(&self.items_from.files)?;
        match &self.to {
            Some(format) => self.build_for_java(&url, format, &paths),
            None => self.build_native(url, &paths),
        }
    }

    fn build_native(&self, url: RedisUrl, paths: &[PathBuf]) -> CommandResult {
        self.check_kind()?;
        let stored = StoredValue::open(url)?;
        self.check_replaced(&stored)?;
        let url = stored.url.clone();
        let (hasher, place) = match stored.kind {
            StoredKind::Native => {
                let filter = stored.native()?.1;
                let hasher = filter.plan().hash_function();
                if self.keyed || self.seed != 0 {
                    return Err(refuse_key(&url, hasher));
                }
                // A rebuilt filter keeps its hash function because clients insert into the old and
                // the new filter.
                (hasher, Place::Filter(filter))
            }
            _ => (self.hasher()?, Place::Free(stored.nodes)),
        };
        let (items, planned) = match self.planned_items() {
            Some(_) if self.memory.is_some() => {
                return Err(Failure::new(
                    "--memory limits counting on a server: leave it out with --items, --window and \
                     --kind growing",
                ));
            }
            Some(items) => (ItemSource::Stream(paths), items),
            None => self.count_for_server(paths, hasher)?,
        };
        let plan = self
            .server_plan(planned, hasher)
            .map_err(|error| Failure::new(format!("{}: {error}", url.name)))?;
        match place {
            Place::Filter(filter) => self.rebuild_on_server(&url, &filter, &plan, items),
            Place::Free(nodes) => self.create_on_server(&url, nodes, &plan, items),
        }
    }

    /// Rejects a key that exists, unless the key holds a filter and `--replace` is given.
    fn check_replaced(&self, stored: &StoredValue) -> Result<(), Failure> {
        match (&stored.kind, self.replace) {
            (StoredKind::Nothing, _) | (StoredKind::Native, true) => Ok(()),
            (StoredKind::Native, false) => Err(stored.failure(
                "the filter exists: add items with 'tamis add', or build it again with --replace",
            )),
            _ => Err(stored.failure(
                "the key exists and holds another value: delete it (redis-cli DEL), or write to \
                 another key",
            )),
        }
    }

    fn check_kind(&self) -> Result<(), Failure> {
        match (self.kind(), self.window) {
            (None | Some(Kind::Growing), _)
            | (Some(Kind::Window), Some(WindowSpan(Span::Millis(_)))) => Ok(()),
            (Some(Kind::Window), _) => Err(Failure::new(
                "on a server, a window is a time such as --window 24h, not a number of items",
            )),
            (Some(kind), _) => Err(Failure::new(format!(
                "--kind {kind} is for files: on a server, a filter has a fixed size (no --kind), \
                 grows (--kind growing) or forgets (--window 24h)"
            ))),
        }
    }

    /// Returns the plan of the filter on the server.
    fn server_plan(&self, items: u64, hasher: Hasher) -> Result<RedisPlan, RedisPlanError> {
        let plan = match self.window {
            Some(WindowSpan(Span::Millis(millis))) => {
                let parts = u64::from(self.slices.unwrap_or(1));
                // The newest slice is still open, so one more slice is needed to keep an item for
                // the whole span.
                let slices = parts as u32 + 1;
                let span = RedisWindow { slices, slice_millis: millis.div_ceil(parts) };
                RedisPlan::new(items.div_ceil(parts), self.rate / f64::from(slices))?
                    .window(span)?
            }
            _ => RedisPlan::new(items, self.rate)?,
        };
        let grows = self.kind().is_some_and(Kind::grows);
        Ok(if grows { plan.growing()? } else { plan }.hasher(hasher))
    }

    /// Reads all items and keeps their distinct hashes. Returns the hashes and the number of items
    /// to plan for.
    fn count_for_server(
        &self,
        paths: &[PathBuf],
        hasher: Hasher,
    ) -> Result<(ItemSource<'static>, u64), Failure> {
        let mut distinct = SecretSet::within(left_bytes(
            self.memory,
            paths,
            self.items_from.records.lines().input,
        )?)?;
        let mut answers = Answers::new();
        let reader = self.items_from.reader(paths);
        let count = reader.each_batch(ItemEncoding::Hash(hasher), |batch| {
            distinct.insert_each(batch.hashes(), &mut answers).map_err(|_| {
                Failure::new(format!(
                    "counting over {} distinct items takes more memory than --memory allows: give \
                     their number with --items N",
                    HumanCount(distinct.len())
                ))
            })
        })?;
        let planned = distinct.len();
        Ok((ItemSource::Counted(distinct, count), planned))
    }

    /// Creates a filter. Other clients see the filter only when the filter is complete. After an
    /// error or an interruption, the keys of the filter are deleted. A window filter is visible at
    /// once and stays after an error, because its items expire.
    fn create_on_server(
        &self,
        url: &RedisUrl,
        nodes: RedisNodes,
        plan: &RedisPlan,
        items: ItemSource<'_>,
    ) -> CommandResult {
        let failed = |error| match error {
            RedisCreateError::Redis(error) => failure(url, &error),
            error => Failure::new(format!("{}: {error}", url.name)),
        };
        let key = redis_url::text_key(url)?;
        if plan.window_span().is_some() {
            // The items of a window filter expire, so the command inserts each item when the item
            // arrives.
            let filter = RedisFilter::create(nodes, key, plan).map_err(failed)?;
            let exit = self.insert_all(url, plan, items, |hashes| filter.insert_hashes(hashes))?;
            return filter.flush().map(|()| exit).map_err(|error| failure(url, &error));
        }
        let draft = RedisDraft::new(nodes, key, plan).map_err(failed)?;
        let generation = draft.generation();
        discard_at_interruption(url, &generation);
        uninterrupted(|| draft.start()).map_err(failed)?;
        let built = self.insert_all(url, plan, items, |hashes| draft.insert_hashes(hashes));
        let built =
            built.and_then(|exit| uninterrupted(|| draft.publish()).map(|_| exit).map_err(failed));
        end_interruption_handler();
        if built.is_err() {
            discard(url, &generation);
        }
        built
    }

    /// Builds a new filter beside the current filter, then replaces the current filter. After a
    /// failure or an interruption, the current filter stays.
    fn rebuild_on_server(
        &self,
        url: &RedisUrl,
        filter: &RedisFilter<RedisNodes>,
        plan: &RedisPlan,
        items: ItemSource<'_>,
    ) -> CommandResult {
        let failed = |error: RedisRebuildError| match error {
            RedisRebuildError::Redis(error) => failure(url, &error),
            RedisRebuildError::Running { .. } => Failure::new(format!(
                "{}: another client is rebuilding the filter: wait until it has finished; if that \
                 client was killed, add --abort-rebuild",
                url.name
            )),
            error => Failure::new(format!("{}: {error}", url.name)),
        };
        if self.abort_rebuild {
            filter.abort_rebuild().map_err(failed)?;
        }
        let generation = filter.next_generation(plan).map_err(failed)?;
        discard_at_interruption(url, &generation);
        let built = uninterrupted(|| filter.rebuild_as(&generation)).map_err(failed);
        let built = built.and_then(|rebuild| {
            let exit = self.insert_all(url, plan, items, |hashes| rebuild.insert_hashes(hashes))?;
            uninterrupted(|| rebuild.swap()).map_err(failed)?;
            Ok(exit)
        });
        end_interruption_handler();
        if built.is_err() {
            discard(url, &generation);
        }
        built
    }

    /// Inserts all items. Without `--force`, returns an error if there are more items than planned.
    fn insert_all(
        &self,
        url: &RedisUrl,
        plan: &RedisPlan,
        items: ItemSource<'_>,
        mut insert: impl FnMut(&[u64]) -> Vec<Result<bool, RedisItemError>>,
    ) -> CommandResult {
        let mut new = 0_u64;
        let mut insert = |hashes: &[u64]| {
            for answer in uninterrupted(|| insert(hashes)) {
                new += u64::from(answer.map_err(|error| failure(url, &error))?);
            }
            Ok(())
        };
        let count = match items {
            ItemSource::Stream(paths) => {
                let encoding = ItemEncoding::Hash(plan.hash_function());
                let reader = self.items_from.reader(paths);
                reader.each_batch(encoding, |batch| insert(batch.hashes()))?
            }
            ItemSource::Counted(distinct, count) => {
                let mut outcome = Ok(());
                distinct.drain_each(|hashes| {
                    if outcome.is_ok() {
                        outcome = insert(hashes);
                    }
                });
                outcome?;
                count
            }
        };
        count.warn();
        let is_over = new > plan.items() && !self.kind().is_some_and(Kind::grows);
        if !is_over {
            return Ok(Exit::Yes);
        }
        let each = if plan.window_span().is_some() { "a slice" } else { "it" };
        let excess = format!(
            "{}: over its rate: it holds {}, and {each} was planned for {}",
            url.name,
            numbers::items(new),
            HumanCount(plan.items()),
        );
        if plan.window_span().is_some() {
            note!("{excess}; a window with fewer --slices takes more items at once");
            return Ok(Exit::OverRate);
        }
        if !self.force {
            return Err(Failure::new(format!(
                "{excess}; nothing was written: give a larger --items, or accept it with --force"
            )));
        }
        note!("{excess}");
        Ok(Exit::OverRate)
    }

    /// Builds a filter in the layout of a Java program in memory, and writes the filter to the keys
    /// of this layout.
    fn build_for_java(&self, url: &RedisUrl, format: &str, paths: &[PathBuf]) -> CommandResult {
        if self.kind().is_some() || self.keyed || self.seed != 0 || self.replace {
            return Err(Failure::new(
                "--to: filters of Java programs take no --kind, --window, --seed, --keyed or \
                 --replace",
            ));
        }
        if self.memory.is_some() {
            return Err(Failure::new("--memory is for filters of Tamis: leave it out with --to"));
        }
        let Some(HumanCount(items)) = self.items else {
            return Err(Failure::new(
                "--to needs --items N: the number for which the Java program plans its filter",
            ));
        };
        let format = Format::named(format).expect("clap checked the name");
        let given = self.to_funnel.as_ref();
        let given = given.map(|name| parse_funnel(name, self.to_charset, "--to-charset"));
        let funnel = funnel(format, given.transpose()?, "--to-funnel", &url.name)?;
        StoredValue::open(url.clone())?.check_absent(format)?;
        let options =
            DecodeOptions { items: Some(items), rate: Some(self.rate), ..DecodeOptions::default() };
        let contents = (format.create)(&options)
            .map_err(|error| Failure::new(format!("{}: {error}", url.name)))?;
        let mut filter = OpenFilter {
            format,
            options,
            ..OpenFilter::new(&self.output, FilterContents::Decoded(contents))
        };
        let mut answers = Answers::new();
        let reader = self.items_from.reader(paths);
        let count = reader.each_batch(ItemEncoding::Key(funnel), |batch| {
            let inserted = filter.contents_mut().insert_each(&batch.keys(), &mut answers);
            inserted.map_err(|error| {
                Failure::new(format!("{}: {error}; nothing was written", url.name))
            })
        })?;
        count.warn();
        filter.save(&self.output, self.force, Notes::Rate)
    }
}

fn refuse_key(url: &RedisUrl, hasher: Hasher) -> Failure {
    Failure::new(format!(
        "{}: --keyed and --seed: --replace keeps the hash function of the filter ({hasher}): leave \
         them out, or write to another key",
        url.name
    ))
}
