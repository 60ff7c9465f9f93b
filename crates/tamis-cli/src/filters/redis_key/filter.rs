//! Adds and looks up items in a filter on a Redis server.

use redis::{Cmd, Value};
use tamis_formats::redis_bitmap::RedisBitmapPlan;
use tamis_formats::{FilterInfo, Format, Funnel, Parameter};
use tamis_redis::{
    BitmapsFilter, HelperFilter, RedisFilter, RedisFilterInfo, RedisItemError, RedisNodes,
    RedisOpenError, RedissonFilter,
};

use crate::arguments::decode_options::{DecodeArgs, funnel, missing};
use crate::arguments::numbers::{self, HumanCount, Rate};
use crate::arguments::unused_options::{FileKind, FilterLocation};
use crate::exit::Failure;
use crate::filters::redis_key::value::{StoredKind, StoredValue, failure, open_failure};
use crate::filters::redis_url::{RedisUrl, text_key};
use crate::records::items::{ItemBatch, ItemEncoding};

/// The largest number of items in one command of a module.
const MODULE_BATCH: usize = 1000;

/// A filter on a server. Commands add items to the filter or look up items in the filter.
pub struct RedisTarget {
    /// The URL of the filter, without the password.
    pub name: String,
    /// The properties that decide which decode options have an effect.
    pub kind: FileKind,
    /// The note that the filter is over its rate, or `None`.
    pub excess: Option<String>,
    url: RedisUrl,
    client: Client,
    funnel: Funnel,
}

enum Client {
    Native(Box<RedisFilter<RedisNodes>>),
    Helper(HelperFilter<RedisNodes>),
    Bitmaps(Box<BitmapsFilter<RedisNodes>>),
    Redisson(RedissonFilter<RedisNodes>),
    Module { nodes: RedisNodes, insert: &'static [&'static str], lookup: &'static str },
}

impl RedisTarget {
    /// Opens the filter of a URL. Returns `None` if the server cannot look up items in the value.
    /// If the result is `None`, the caller can copy the value with
    /// [`download`](crate::filters::redis_key::download).
    ///
    /// # Errors
    ///
    /// A message if there is no filter, or if decode options are missing. A message with the error
    /// of the server or the connection.
    pub fn open(url: RedisUrl, decode: &DecodeArgs) -> Result<Option<Self>, Failure> {
        let stored = StoredValue::open(url)?;
        let format = decode.format.as_deref();
        let named = match (&stored.kind, format) {
            (StoredKind::Native, _) => return Self::native(stored).map(Some),
            (StoredKind::Module(kind), _) => {
                return Ok(commands_of(kind).map(|commands| Self::module(stored, commands)));
            }
            (StoredKind::Other(_), _) | (StoredKind::Nothing, None) => {
                return Err(stored.not_found());
            }
            (StoredKind::Redisson, None) => "redisson",
            (StoredKind::String, None) => return Err(stored.unknown_format()),
            (_, Some(format)) => format,
        };
        let format = Format::named(named).expect("clap checked the name");
        match (format.name, &stored.kind) {
            ("redisson", StoredKind::Redisson) => {}
            ("redisson", _) => {
                return Err(stored.failure(
                    "the key has no settings of Redisson: the Java program must call tryInit first",
                ));
            }
            ("redis-bitmap" | "redis-bitmaps", StoredKind::Nothing) => {
                return Err(stored.not_found());
            }
            ("redis-bitmap" | "redis-bitmaps", _) => {}
            _ => return Ok(None),
        }
        let (options, name) = (decode.options(), stored.url.name.clone());
        for parameter in [Parameter::Items, Parameter::Rate] {
            if named != "redisson" && !options.has(parameter) {
                return Err(missing(parameter, "", decode, format, &name));
            }
        }
        let plan = (options.items.unwrap_or(0), options.rate.unwrap_or(0.0));
        let funnel = funnel(format, decode.funnel()?, "--funnel", &name)?;
        Self::java(stored, format, plan, funnel).map(Some)
    }

    /// Opens a filter in the layout of a Java program. A filter of Redisson stores its plan in its
    /// settings.
    fn java(
        mut stored: StoredValue,
        format: &'static Format,
        (items, rate): (u64, f64),
        funnel: Funnel,
    ) -> Result<Self, Failure> {
        let (url, key) = (stored.url.clone(), stored.url.key.clone());
        let opened = |error: RedisOpenError| open_failure(&url, error);
        let (client, excess) = match format.name {
            "redisson" => {
                let ones = stored.count("BITCOUNT", &key)?;
                let filter = RedissonFilter::open(stored.nodes, text_key(&url)?).map_err(opened)?;
                let rule = filter.rule();
                let planned = filter.false_probability();
                let fill = fill(ones, rule.size());
                let excess = excess(rule.rate_at_fill(fill), planned);
                (Client::Redisson(filter), excess)
            }
            "redis-bitmap" => {
                let ones = stored.count("BITCOUNT", &key)?;
                let refused = || {
                    stored.failure("BloomFilterHelper cannot have this plan: check --items-planned and --rate-planned")
                };
                let plan = RedisBitmapPlan::new(i32::try_from(items).map_err(|_| refused())?, rate);
                let no_bits = refused();
                let filter = HelperFilter::new(stored.nodes, key, plan).ok_or(no_bits)?;
                let fill = fill(ones, plan.bits.unsigned_abs().into());
                (Client::Helper(filter), excess(plan.rate_at_fill(fill), rate))
            }
            _ => {
                stored.check_key_of_bitmaps()?;
                let filter = BitmapsFilter::open_or_create(stored.nodes, items, rate);
                (Client::Bitmaps(Box::new(filter.map_err(opened)?)), None)
            }
        };
        let kind = FileKind { format, place: FilterLocation::File };
        Ok(Self { name: url.name.clone(), kind, excess, url, client, funnel })
    }

    fn native(stored: StoredValue) -> Result<Self, Failure> {
        let (url, filter) = stored.native()?;
        let info = filter.info().map_err(|error| failure(&url, &error))?;
        let mut target = Self::of_bytes(url, Client::Native(Box::new(filter)));
        target.excess = native_excess(&info);
        Ok(target)
    }

    fn module(stored: StoredValue, (insert, lookup): Commands) -> Self {
        let StoredValue { url, nodes, .. } = stored;
        Self::of_bytes(url, Client::Module { nodes, insert, lookup })
    }

    /// Creates a filter whose items are bytes, and on which no decode option has an effect.
    fn of_bytes(url: RedisUrl, client: Client) -> Self {
        let kind = FileKind {
            format: Format::named("tamis").expect("the first row"),
            place: FilterLocation::File,
        };
        Self { name: url.name.clone(), kind, excess: None, url, client, funnel: Funnel::Bytes }
    }

    /// Writes a note to stderr and returns true if the filter is over its rate.
    pub fn report(&self) -> bool {
        if let Some(excess) = &self.excess {
            note!("{}: {excess}", self.name);
        }
        self.excess.is_some()
    }

    /// Returns the encoding of items for this filter.
    pub fn encoding(&self) -> ItemEncoding {
        ItemEncoding::Key(self.funnel)
    }

    /// Adds a batch of items.
    ///
    /// # Errors
    ///
    /// A message with the first error. After an error, some items of the batch may have been added.
    pub fn insert_each(&mut self, batch: &ItemBatch) -> Result<(), Failure> {
        let keys = batch.keys();
        let answers = match &mut self.client {
            Client::Native(filter) => filter.insert_each(&keys),
            Client::Helper(filter) => filter.insert_each(&keys),
            Client::Bitmaps(filter) => filter.insert_each(&keys),
            Client::Redisson(filter) => filter.insert_each(&keys),
            Client::Module { nodes, insert, .. } => {
                return ask_module(nodes, insert, &self.url, &keys).map(drop);
            }
        };
        self.checked(answers).map(drop)
    }

    /// Looks up a batch of items.
    ///
    /// # Errors
    ///
    /// A message with the first error.
    pub fn contains_each(&mut self, batch: &ItemBatch) -> Result<Vec<bool>, Failure> {
        let keys = batch.keys();
        let answers = match &mut self.client {
            Client::Native(filter) => filter.contains_each(&keys),
            Client::Helper(filter) => filter.contains_each(&keys),
            Client::Bitmaps(filter) => filter.contains_each(&keys),
            Client::Redisson(filter) => filter.contains_each(&keys),
            Client::Module { nodes, lookup, .. } => {
                return ask_module(nodes, &[lookup], &self.url, &keys);
            }
        };
        self.checked(answers)
    }

    fn checked(&self, answers: Vec<Result<bool, RedisItemError>>) -> Result<Vec<bool>, Failure> {
        let answers: Result<Vec<bool>, RedisItemError> = answers.into_iter().collect();
        answers.map_err(|error| failure(&self.url, &error))
    }

    /// Opens the filter again, to update the note about its rate.
    ///
    /// # Errors
    ///
    /// The errors of [`open`](Self::open).
    pub fn reopened(self, decode: &DecodeArgs) -> Result<Self, Failure> {
        let url = self.url.clone();
        let opened = Self::open(url, decode)?;
        Ok(opened.unwrap_or(self))
    }

    /// Completes all inserts.
    ///
    /// # Errors
    ///
    /// A message with the error of the server or the connection.
    pub fn finish(&mut self) -> Result<(), Failure> {
        match &mut self.client {
            Client::Native(filter) => filter.flush().map_err(|error| failure(&self.url, &error)),
            _ => Ok(()),
        }
    }
}

/// A pair of commands for a value of a module. The first command adds items, and its arguments
/// stand between the key and the items. The second command looks up items.
type Commands = (&'static [&'static str], &'static str);

/// Returns the commands for a type of value.
fn commands_of(kind: &str) -> Option<Commands> {
    match kind {
        "MBbloom--" => Some((&["BF.MADD"], "BF.MEXISTS")),
        // As in a file of RedisBloom, an item that the filter contains is not added again.
        "MBbloomCF" => Some((&["CF.INSERTNX", "ITEMS"], "CF.MEXISTS")),
        "tamis-flt" => Some((&["TM.MADD"], "TM.MEXISTS")),
        _ => None,
    }
}

/// Runs a command of a module on items. `argv` contains the command, followed by the arguments
/// between the key and the items.
fn ask_module(
    nodes: &mut RedisNodes,
    argv: &[&str],
    url: &RedisUrl,
    items: &[&[u8]],
) -> Result<Vec<bool>, Failure> {
    let mut answers = Vec::with_capacity(items.len());
    for items in items.chunks(MODULE_BATCH) {
        let mut command = Cmd::new();
        command.arg(argv[0]).arg(&url.key).arg(&argv[1..]).arg(items);
        // The client must not retry this command, because a counting filter would count the item
        // twice.
        let reply = nodes.query_once(&url.key, command);
        let Value::Array(values) = reply.map_err(|error| failure(url, &error))? else {
            return Err(Failure::new(format!("{}: the server sent no list", url.name)));
        };
        for value in values {
            answers.push(match value {
                Value::Int(answer @ 0..) => answer > 0,
                Value::Int(_) => {
                    let name = &url.name;
                    return Err(Failure::new(format!(
                        "{name}: the filter is full: reserve a larger one"
                    )));
                }
                value => {
                    let name = &url.name;
                    return Err(Failure::new(match value {
                        Value::ServerError(error) => format!("{name}: {error}"),
                        _ => format!("{name}: the server sent no number"),
                    }));
                }
            });
        }
    }
    Ok(answers)
}

fn fill(ones: u64, bits: u64) -> f64 {
    (ones as f64 / bits as f64).min(1.0)
}

/// Returns a note if a bitmap is over its rate.
fn excess(rate_now: f64, planned: f64) -> Option<String> {
    let info = FilterInfo { rate_now, ..FilterInfo::default() };
    info.is_over(planned)
        .then(|| format!("over its rate: its rate is {}, not {}", Rate(rate_now), Rate(planned)))
}

/// Returns a note if a filter of `tamis-redis` is over its rate.
pub fn native_excess(info: &RedisFilterInfo) -> Option<String> {
    let is_over = info.rate > info.rate_planned && info.items > info.items_planned;
    is_over.then(|| {
        format!(
            "over its rate: it holds {} and was planned for {}; its rate is {}, not {}",
            numbers::items(info.items),
            HumanCount(info.items_planned),
            Rate(info.rate),
            Rate(info.rate_planned)
        )
    })
}
