//! Builds a filter on a Redis server.

use std::path::PathBuf;

use tamis::{Answers, Hasher, Kind, Span};
use tamis_formats::Format;
use tamis_redis::{
    RedisCreateError, RedisFilter, RedisItemError, RedisNodes, RedisPlan, RedisPlanError,
    RedisRebuildError, RedisWindow,
};

use crate::build::Args;
use crate::decode_options::{funnel, parse_funnel};
use crate::exit::{CommandResult, Exit, Failure};
use crate::input;
use crate::items::{ItemEncoding, RecordCount};
use crate::memory_limit::left_bytes;
use crate::numbers::{HumanCount, Rate};
use crate::redis_key::{RedisTarget, StoredKind, StoredValue, failure, patience};
use crate::redis_url::{RedisUrl, is_url};
use crate::secret_set::SecretSet;
use crate::temporary::{at_interruption, end_interruption_handler};
use crate::window_span::WindowSpan;

/// The items of a command: read while they are inserted, or counted before.
enum Items<'a> {
    Read(&'a [PathBuf]),
    Counted(SecretSet, RecordCount),
}

impl Args {
    /// Rejects options that apply only to files, or only to a server.
    pub(super) fn check_place(&self) -> Result<(), Failure> {
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
        let (options, place) =
            if is_on_server { (&of_file[..], "a file") } else { (&of_server[..], "a Redis key") };
        match options.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(Failure::new(format!("{option} is for -o with {place}"))),
            None => Ok(()),
        }
    }

    /// Builds a filter under the key of a URL.
    pub(super) fn build_on_server(&self) -> CommandResult {
        let url = RedisUrl::parse(&self.output)?;
        let paths = input::checked(&self.items_from.files)?;
        match &self.to {
            Some(format) => self.build_for_java(url, format, &paths),
            None => self.build_native(url, &paths),
        }
    }

    fn build_native(&self, url: RedisUrl, paths: &[PathBuf]) -> CommandResult {
        self.check_kind()?;
        let stored = StoredValue::open(url)?;
        let existing = self.replaced(&stored)?;
        let url = stored.url.clone();
        let mut existing = if existing { Some(stored.native()?.1) } else { None };
        // A rebuilt filter keeps its hash function: clients insert into both.
        let hasher = match &existing {
            Some(filter) if self.keyed => {
                return Err(refuse_key(&url, filter.plan().hash_function()));
            }
            Some(filter) => filter.plan().hash_function(),
            None => self.hasher()?,
        };
        let (items, planned) = match self.planned_items() {
            Some(items) => (Items::Read(paths), items),
            None => self.count_for_server(paths, hasher)?,
        };
        let plan = self
            .server_plan(planned, hasher)
            .map_err(|error| Failure::new(format!("{}: {error}", url.name)))?;
        match &mut existing {
            Some(filter) => self.rebuild_on_server(&url, filter, &plan, items),
            None => self.create_on_server(&url, &plan, items),
        }
    }

    /// Tests whether the key holds a filter that is to be replaced.
    fn replaced(&self, stored: &StoredValue) -> Result<bool, Failure> {
        match (&stored.kind, self.replace) {
            (StoredKind::Nothing, _) => Ok(false),
            (StoredKind::Native, true) => Ok(true),
            (StoredKind::Native, false) => Err(stored.failure(
                "the filter exists: add items with 'tamis add', or build a new one beside it and \
                 replace it with --replace",
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
                // The present slice is one more, so that an item stays for the whole span.
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

    /// Reads all items and keeps their distinct hashes. Returns them with their number.
    fn count_for_server(
        &self,
        paths: &[PathBuf],
        hasher: Hasher,
    ) -> Result<(Items<'static>, u64), Failure> {
        let mut distinct = SecretSet::within(left_bytes(self.memory, paths)?)?;
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
        Ok((Items::Counted(distinct, count), planned))
    }

    /// Creates the filter, and deletes it after a failure or an interruption.
    fn create_on_server(
        &self,
        url: &RedisUrl,
        plan: &RedisPlan,
        items: Items<'_>,
    ) -> CommandResult {
        let failed = |error: &RedisItemError| failure(url, error);
        let nodes = RedisNodes::connect(&url.server, patience()).map_err(|e| failed(&e))?;
        let mut filter =
            RedisFilter::create(nodes, &url.key, plan).map_err(|error| match error {
                RedisCreateError::Redis(error) => failed(&error),
                error => Failure::new(format!("{}: {error}", url.name)),
            })?;
        let interrupted = url.clone();
        at_interruption(move || {
            if let Ok(nodes) = RedisNodes::connect(&interrupted.server, patience())
                && let Ok(mut filter) = RedisFilter::open(nodes, &interrupted.key)
            {
                filter.delete().ok();
            }
        });
        let built = self
            .insert_all(url, plan, items, |hashes| filter.insert_hashes(hashes))
            .and_then(|exit| filter.flush().map(|()| exit).map_err(|error| failed(&error)));
        if built.is_err() {
            filter.delete().ok();
        }
        end_interruption_handler();
        built
    }

    /// Builds a new filter beside the present one, and replaces it. After a failure or an
    /// interruption the present one stays.
    fn rebuild_on_server(
        &self,
        url: &RedisUrl,
        filter: &mut RedisFilter<RedisNodes>,
        plan: &RedisPlan,
        items: Items<'_>,
    ) -> CommandResult {
        let failed = |error: RedisRebuildError| match error {
            RedisRebuildError::Redis(error) => failure(url, &error),
            RedisRebuildError::Running { .. } => Failure::new(format!(
                "{}: another client is building it again: wait until it ends; if it was killed, \
                 add --abort-rebuild",
                url.name
            )),
            error => Failure::new(format!("{}: {error}", url.name)),
        };
        if self.abort_rebuild {
            filter.abort_rebuild().map_err(failed)?;
        }
        let mut rebuild = filter.rebuild(plan).map_err(failed)?;
        let interrupted = url.clone();
        at_interruption(move || {
            if let Ok(nodes) = RedisNodes::connect(&interrupted.server, patience())
                && let Ok(mut filter) = RedisFilter::open(nodes, &interrupted.key)
            {
                filter.abort_rebuild().ok();
            }
        });
        let built = self.insert_all(url, plan, items, |hashes| rebuild.insert_hashes(hashes));
        let outcome = match built {
            Ok(exit) => rebuild.swap().map(|()| exit).map_err(failed),
            Err(reason) => {
                rebuild.abort().ok();
                Err(reason)
            }
        };
        end_interruption_handler();
        outcome
    }

    /// Inserts all items. Returns an error if there are more than planned, unless `--force` is
    /// given.
    fn insert_all(
        &self,
        url: &RedisUrl,
        plan: &RedisPlan,
        items: Items<'_>,
        mut insert: impl FnMut(&[u64]) -> Vec<Result<bool, RedisItemError>>,
    ) -> CommandResult {
        let mut new = 0_u64;
        let mut insert = |hashes: &[u64]| {
            for answer in insert(hashes) {
                new += u64::from(answer.map_err(|error| failure(url, &error))?);
            }
            Ok(())
        };
        let count = match items {
            Items::Read(paths) => {
                let encoding = ItemEncoding::Hash(plan.hash_function());
                let reader = self.items_from.reader(paths);
                reader.each_batch(encoding, |batch| insert(batch.hashes()))?
            }
            Items::Counted(distinct, count) => {
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
        let excess = format!(
            "{}: over its rate: it holds {} items and was planned for {} at {}",
            url.name,
            HumanCount(new),
            HumanCount(plan.items()),
            Rate(plan.rate())
        );
        if !self.force {
            return Err(Failure::new(format!(
                "{excess}; nothing was written: build one for more items, or accept it with --force"
            )));
        }
        note!("{excess}");
        Ok(Exit::OverRate)
    }

    /// Builds a filter in the layout of a Java program.
    fn build_for_java(&self, url: RedisUrl, format: &str, paths: &[PathBuf]) -> CommandResult {
        if self.kind().is_some() || self.keyed || self.seed != 0 || self.replace {
            return Err(Failure::new(
                "--to: filters of Java programs take no --kind, --window, --seed, --keyed or \
                 --replace",
            ));
        }
        let Some(HumanCount(items)) = self.items else {
            return Err(Failure::new("--to needs --items N: the Java program has the same number"));
        };
        let format = Format::named(format).expect("clap checked the name");
        let given = self.to_funnel.as_ref();
        let given = given.map(|name| parse_funnel(name, self.to_charset, "--to-charset"));
        let funnel = funnel(format, given.transpose()?, &url.name).map_err(|failure| {
            // The option of this command has another name.
            match failure {
                Failure::Message(text) => Failure::new(text.replace("--funnel", "--to-funnel")),
                Failure::BrokenPipe => failure,
            }
        })?;
        let mut target = RedisTarget::create_for_java(url, format, (items, self.rate), funnel)?;
        let reader = self.items_from.reader(paths);
        let count = reader.each_batch(target.encoding(), |batch| target.insert_each(batch))?;
        count.warn();
        Ok(Exit::Yes)
    }
}

fn refuse_key(url: &RedisUrl, hasher: Hasher) -> Failure {
    Failure::new(format!(
        "{}: --keyed: a filter keeps its hash function ({hasher}) when it is replaced; delete it \
         first, or leave the option out",
        url.name
    ))
}
