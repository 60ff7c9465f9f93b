//! Creates, opens and deletes filters.
//!
//! A filter is created shards first. The metadata follows with `SET NX`: the first client wins, and
//! a filter whose metadata can be read has all its shards. The keys of the shards contain a random
//! generation, so that two clients never write to each other's shards.

use redis::Value;

use crate::clock::Clock;
use crate::error::{Difference, RedisCreateError, RedisItemError, RedisOpenError, printable};
use crate::exchange::{Exchange, perform};
use crate::header::{State, header};
use crate::metadata::{GenerationRecord, Metadata};
use crate::plan::RedisPlan;
use crate::request::{NodeReply, NodeRequest, Operation, Step, bytes, value};
use crate::view::{Generation, View};

/// Creates a shard, unless it exists: a repeated request must not reset flags and counters.
/// Arguments: the last byte of the string, the header.
///
/// A string that is created at its full length takes no spare memory.
pub(crate) const CREATE_SHARD: &str = "\
if redis.call('GETRANGE', KEYS[1], 0, 1) == 'TM' then return 0 end
redis.call('SETRANGE', KEYS[1], ARGV[1], '\\0')
redis.call('SETRANGE', KEYS[1], 0, ARGV[2])
return 1";

/// How many shards a pipeline creates. The server clears up to 4 MiB for each.
const SHARDS_AT_ONCE: u32 = 32;

/// Creates the shards of a generation.
pub(crate) struct CreateShards {
    generation: Generation,
    expires_at: Option<u64>,
    sent: u32,
    is_waiting: bool,
}

impl CreateShards {
    /// Prepares the shards of `record`. With `expires_at`, a time in milliseconds, they expire.
    pub(crate) fn new(generation: Generation, expires_at: Option<u64>) -> Self {
        Self { generation, expires_at, sent: 0, is_waiting: false }
    }

    fn requests(&self, shard: u32) -> impl Iterator<Item = NodeRequest> + use<> {
        let layer = self.generation.layer(0);
        let header = header(State::new(self.generation.record.id), layer);
        let key = self.generation.key(shard, 0);
        let mut create = NodeRequest::script(CREATE_SHARD, std::slice::from_ref(&key));
        create.command.arg(layer.bytes() - 1).arg(&header[..]);
        let expiry = self.expires_at.map(|at| expire_at(key, at));
        [create].into_iter().chain(expiry)
    }
}

impl Operation for CreateShards {
    type Output = Result<(), RedisItemError>;

    fn step(&mut self, replies: Vec<NodeReply>) -> Step<Self::Output> {
        if std::mem::take(&mut self.is_waiting)
            && let Some(error) = replies.into_iter().find_map(|reply| value(b"", reply).err())
        {
            return Step::Done(Err(error));
        }
        let next = self.sent..(self.sent + SHARDS_AT_ONCE).min(self.generation.shards());
        if next.is_empty() {
            return Step::Done(Ok(()));
        }
        self.sent = next.end;
        self.is_waiting = true;
        Step::Send(next.flat_map(|shard| self.requests(shard)).collect())
    }
}

/// Returns the request that lets a key expire at a time in milliseconds since 1970.
pub(crate) fn expire_at(key: Vec<u8>, millis: u64) -> NodeRequest {
    let mut request = NodeRequest::new("PEXPIREAT", key);
    request.command.arg(millis);
    request
}

/// Creates a filter.
pub(crate) struct Create {
    name: Vec<u8>,
    metadata: Metadata,
    shards: CreateShards,
    phase: CreatePhase,
}

enum CreatePhase {
    Start,
    Looking,
    Filling,
    Publishing,
    /// The error is that of the command that publishes, if it has one.
    Comparing(Option<RedisItemError>),
    Removing(RedisCreateError),
}

impl Create {
    pub(crate) fn new(name: &[u8], metadata: Metadata) -> Result<Self, RedisCreateError> {
        let record = metadata.generations[0].clone();
        let view = View::new(name, metadata.clone())?;
        let expires_at = view.slice_expiry(&record);
        let shards = CreateShards::new(Generation::new(name, record)?, expires_at);
        Ok(Self { name: name.to_vec(), metadata, shards, phase: CreatePhase::Start })
    }

    fn exists(&self) -> RedisCreateError {
        RedisCreateError::Exists { name: printable(&self.name) }
    }

    fn fill(&mut self, replies: Vec<NodeReply>) -> Step<Result<View, RedisCreateError>> {
        match self.shards.step(replies) {
            Step::Send(requests) => {
                self.phase = CreatePhase::Filling;
                Step::Send(requests)
            }
            Step::Done(Ok(())) => {
                self.phase = CreatePhase::Publishing;
                let mut request = NodeRequest::new("SET", self.name.clone());
                request.command.arg(self.metadata.encode()).arg("NX");
                Step::Send(vec![request])
            }
            Step::Done(Err(error)) => self.remove(error.into()),
        }
    }

    fn remove(&mut self, error: RedisCreateError) -> Step<Result<View, RedisCreateError>> {
        self.phase = CreatePhase::Removing(error);
        let generation = &self.shards.generation;
        let request = |shard| NodeRequest::new("UNLINK", generation.key(shard, 0));
        Step::Send((0..self.shards.sent).map(request).collect())
    }

    fn compare(&mut self, error: Option<RedisItemError>) -> Step<Result<View, RedisCreateError>> {
        self.phase = CreatePhase::Comparing(error);
        Step::Send(vec![NodeRequest::new("GET", self.name.clone())])
    }

    /// Tests whether metadata names the generation of this client.
    fn is_own(&self, metadata: &Metadata) -> bool {
        let id = self.metadata.generations[0].id;
        metadata.generations.iter().any(|record| record.id == id)
    }

    fn created(&self, metadata: Metadata) -> Step<Result<View, RedisCreateError>> {
        Step::Done(View::new(&self.name, metadata).map_err(Into::into))
    }
}

impl Operation for Create {
    type Output = Result<View, RedisCreateError>;

    fn step(&mut self, mut replies: Vec<NodeReply>) -> Step<Self::Output> {
        match std::mem::replace(&mut self.phase, CreatePhase::Start) {
            CreatePhase::Start => {
                self.phase = CreatePhase::Looking;
                Step::Send(vec![NodeRequest::new("EXISTS", self.name.clone())])
            }
            CreatePhase::Looking => match value(&self.name, replies.remove(0)) {
                Ok(Value::Int(0)) => self.fill(Vec::new()),
                Ok(_) => Step::Done(Err(self.exists())),
                Err(error) => Step::Done(Err(error.into())),
            },
            CreatePhase::Filling => self.fill(replies),
            CreatePhase::Publishing => match value(&self.name, replies.remove(0)) {
                // The driver may have sent the command twice, so the key may be our own.
                Ok(Value::Nil) => self.compare(None),
                Ok(_) => self.created(self.metadata.clone()),
                // The server may have executed the command.
                Err(error) => self.compare(Some(error)),
            },
            CreatePhase::Comparing(error) => match bytes(&self.name, replies.remove(0)) {
                Ok(Some(text)) => match Metadata::decode(&text) {
                    Ok(metadata) if self.is_own(&metadata) => self.created(metadata),
                    _ => self.remove(self.exists()),
                },
                Ok(None) => {
                    let error = error.map_or_else(|| self.exists(), RedisCreateError::Redis);
                    self.remove(error)
                }
                Err(RedisItemError::WrongType { .. }) => self.remove(self.exists()),
                // The metadata may name the shards, so they stay.
                Err(unknown) => Step::Done(Err(error.unwrap_or(unknown).into())),
            },
            CreatePhase::Removing(error) => Step::Done(Err(error)),
        }
    }
}

/// Opens a filter.
pub(crate) struct Open {
    name: Vec<u8>,
    is_sent: bool,
}

impl Open {
    pub(crate) fn new(name: &[u8]) -> Self {
        Self { name: name.to_vec(), is_sent: false }
    }
}

impl Operation for Open {
    type Output = Result<View, RedisOpenError>;

    fn step(&mut self, mut replies: Vec<NodeReply>) -> Step<Self::Output> {
        if !std::mem::replace(&mut self.is_sent, true) {
            return Step::Send(vec![NodeRequest::new("GET", self.name.clone())]);
        }
        let name = || printable(&self.name);
        let view =
            bytes(&self.name, replies.remove(0)).map_err(RedisOpenError::Redis).and_then(|text| {
                let text = text.ok_or_else(|| RedisOpenError::NotFound { name: name() })?;
                let metadata = Metadata::decode(&text)
                    .map_err(|source| RedisOpenError::Metadata { name: name(), source })?;
                Ok(View::new(&self.name, metadata)?)
            });
        Step::Done(view)
    }
}

/// Creates a filter. The first slice of a window is that of the present time.
pub(crate) async fn create<X: Exchange>(
    exchange: &mut X,
    name: &[u8],
    plan: &RedisPlan,
) -> Result<View, RedisCreateError> {
    let now = match plan.window_span() {
        Some(_) => Clock::read(exchange, name).await?.now(),
        None => 0,
    };
    let create = Create::new(name, Metadata::new(plan, now))?;
    perform(exchange, create).await
}

/// Opens a filter, or creates it if it does not exist. Compares it with the plan.
pub(crate) async fn open_or_create<X: Exchange>(
    exchange: &mut X,
    name: &[u8],
    plan: &RedisPlan,
) -> Result<View, RedisOpenError> {
    let view = match perform(exchange, Open::new(name)).await {
        Err(RedisOpenError::NotFound { .. }) => match create(exchange, name, plan).await {
            Ok(view) => view,
            // Another client was faster.
            Err(RedisCreateError::Exists { .. }) => perform(exchange, Open::new(name)).await?,
            Err(RedisCreateError::Name(error)) => return Err(error.into()),
            Err(RedisCreateError::Redis(error)) => return Err(error.into()),
        },
        opened => opened?,
    };
    checked(plan, view)
}

/// Returns an error if the filter differs from the plan.
fn checked(plan: &RedisPlan, view: View) -> Result<View, RedisOpenError> {
    let found = current(&view);
    let differences: Vec<Difference> = [
        Difference::of("items", &plan.items(), &found.items),
        Difference::of("rate", &plan.rate(), &found.rate),
        Difference::of("growth", &plan.growth(), &found.growth),
        Difference::of("hash", &plan.hash_function(), &view.metadata.hasher),
        Difference::of("shards", &plan.shards(), &found.geometry.shards),
        Difference::of("window", &plan.window_span(), &view.metadata.window),
    ]
    .into_iter()
    .flatten()
    .collect();
    if differences.is_empty() {
        return Ok(view);
    }
    Err(RedisOpenError::Differs { name: printable(view.name()), differences })
}

/// Returns the generation that answers lookups of a filter without a window.
fn current(view: &View) -> &GenerationRecord {
    &view.metadata.generations[0]
}
