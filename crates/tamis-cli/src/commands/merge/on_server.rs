//! Merges filters on Redis servers.

use std::path::{Path, PathBuf};

use tamis_redis::{
    RedisCreateError, RedisDraft, RedisFilter, RedisGrowth, RedisItemError, RedisMergeError,
    RedisNodes,
};

use crate::arguments::numbers::{self, HumanCount};
use crate::arguments::unused_options::UnusedOptions;
use crate::commands::merge::Args;
use crate::exit::{Exit, Failure};
use crate::filters::redis_key::{
    StoredKind, StoredValue, discard_at_interruption, failure, native_excess, patience,
};
use crate::filters::redis_url::{self, RedisUrl, is_url};
use crate::io::input;
use crate::io::output;
use crate::io::temporary::{end_interruption_handler, uninterrupted};

/// A filter of `tamis-redis` and its URL.
struct Native {
    url: RedisUrl,
    filter: RedisFilter<RedisNodes>,
}

impl Native {
    fn open(stored: StoredValue) -> Result<Self, Failure> {
        let (url, filter) = stored.native()?;
        Ok(Self { url, filter })
    }

    fn failure(&self, error: &RedisItemError) -> Failure {
        failure(&self.url, error)
    }
}

/// Opens the inputs if all inputs are filters of `tamis-redis`. Returns `None` if the first input
/// is another kind of filter.
fn inputs(paths: &[PathBuf]) -> Result<Option<Vec<Native>>, Failure> {
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        if !is_url(path) {
            return if all.is_empty() { Ok(None) } else { Err(mixed(path)) };
        }
        let stored = StoredValue::open(redis_url::parse(path)?)?;
        match stored.kind {
            StoredKind::Native => all.push(Native::open(stored)?),
            StoredKind::Nothing | StoredKind::Other(_) => return Err(stored.not_found()),
            _ if all.is_empty() => return Ok(None),
            _ => return Err(mixed(path)),
        }
    }
    Ok(Some(all))
}

/// Rejects filters that cannot be merged, before the command creates a filter.
fn check_plans(inputs: &[Native]) -> Result<(), Failure> {
    let first = &inputs[0];
    for input in inputs {
        let (name, plan) = (&input.url.name, input.filter.plan());
        if plan.window_span().is_some() {
            return Err(Failure::new(format!("{name}: windows do not merge")));
        }
        let differences = input.filter.differences(&first.filter.plan());
        if !differences.is_empty() {
            let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
            return Err(Failure::new(format!(
                "{name}: does not merge with {}: {}",
                first.url.name,
                differences.join("; ")
            )));
        }
    }
    Ok(())
}

fn mixed(path: &Path) -> Failure {
    let name = input::name(path);
    Failure::new(format!(
        "{name}: is not a filter of tamis-redis, and the first one is: they do not merge"
    ))
}

impl Args {
    /// Merges filters of `tamis-redis` on their servers. Returns `None` if the inputs are not
    /// filters of `tamis-redis`.
    pub(super) fn merge_on_server(&self) -> Result<Option<Exit>, Failure> {
        if !self.filters.iter().any(|path| is_url(path)) {
            return Ok(None);
        }
        let Some(mut inputs) = inputs(&self.filters)? else { return Ok(None) };
        if !is_url(&self.output) {
            return Err(Failure::new(format!(
                "{}: filters of tamis-redis are only on servers: give the URL of a key",
                output::name(&self.output)
            )));
        }
        if !self.metadata.is_empty() {
            return Err(Failure::new("--meta and --stamp: only with -o and a file"));
        }
        let names: Vec<&str> = inputs.iter().map(|input| &*input.url.name).collect();
        UnusedOptions::of(&self.decode).check(&names.join(", "))?;
        check_plans(&inputs)?;
        self.check_capacity(&inputs)?;
        let output = redis_url::parse(&self.output)?;
        let same = inputs
            .iter()
            .position(|input| (&input.url.server, &input.url.key) == (&output.server, &output.key));
        let target = match same {
            Some(index) => inputs.remove(index),
            None => self.create(output, &inputs[0])?,
        };
        let merged = inputs.iter().try_for_each(|input| {
            let done = target.filter.merge(&input.filter);
            done.map_err(|error| match error {
                RedisMergeError::Redis(error) => failure(&input.url, &error),
                error => Failure::new(format!("{}: {error}", input.url.name)),
            })
        });
        merged.map_err(|reason| match (reason, same) {
            (Failure::Message(text), None) => Failure::new(format!(
                "{text}; {} was created and holds only some of the items: repeat the command with \
                 it as another input",
                target.url.name
            )),
            (reason, _) => reason,
        })?;
        let info = target.filter.info().map_err(|error| target.failure(&error))?;
        let excess = native_excess(&info);
        if let Some(excess) = &excess {
            note!("{}: {excess}", target.url.name);
        }
        Ok(Some(if excess.is_some() { Exit::OverRate } else { Exit::Yes }))
    }

    /// Rejects filters of fixed size if the filters together have more items than planned,
    /// unless `--force` is given.
    fn check_capacity(&self, inputs: &[Native]) -> Result<(), Failure> {
        let mut items = 0_u64;
        for input in inputs {
            let info = input.filter.info().map_err(|error| failure(&input.url, &error))?;
            items = items.saturating_add(info.items);
        }
        let plan = inputs[0].filter.plan();
        if self.force || plan.growth() == RedisGrowth::Doubling || items <= plan.items() {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{}: over its rate: the filters hold {}, and each was planned for {}; nothing \
             was merged: accept it with --force",
            output::name(&self.output),
            numbers::items(items),
            HumanCount(plan.items())
        )))
    }

    /// Creates the target filter with the plan of the first input.
    fn create(&self, url: RedisUrl, first: &Native) -> Result<Native, Failure> {
        let connected = RedisNodes::connect(&url.server, patience());
        let nodes = connected.map_err(|error| failure(&url, &error))?;
        let plan = first.filter.plan();
        let created = RedisDraft::new(nodes, redis_url::text_key(&url)?, &plan).and_then(|draft| {
            discard_at_interruption(&url, &draft.generation());
            let created = uninterrupted(|| {
                draft.start()?;
                draft.publish()
            });
            end_interruption_handler();
            created
        });
        match created {
            Ok(filter) => Ok(Native { url, filter }),
            Err(RedisCreateError::Redis(error)) => Err(failure(&url, &error)),
            Err(RedisCreateError::Exists { .. }) => Err(Failure::new(format!(
                "{}: the key exists: name it as an input too, or write to another key",
                url.name
            ))),
            Err(error) => Err(Failure::new(format!("{}: {error}", url.name))),
        }
    }
}
