//! What a leader answers its followers.

use std::fmt;
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, RETRY_AFTER,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use tokio::sync::Mutex;

use crate::bearer_token::BearerToken;
use crate::entity_tag::EntityTag;
use crate::fleet::feed::{Feed, NoChanges};
use crate::fleet::position::FeedPosition;
use crate::generation::Generation;
use crate::http_answer::{Answer, error};
use crate::id_set::IdSet;
use crate::snapshot::SnapshotHead;

/// The longest time for which a request waits for changes.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// How long a snapshot stays in memory after its last use.
const SNAPSHOT_KEPT: Duration = Duration::from_secs(30);

/// How a set is published.
#[derive(Clone, Debug, PartialEq)]
pub struct PublicationOptions {
    /// The name of the set, which its snapshots contain.
    pub name: String,
    /// The token that followers need. A snapshot has the secret hash key of the set.
    pub token: BearerToken,
    /// How many bytes of changes the leader keeps. A follower that lacks more needs a snapshot.
    pub history_bytes: usize,
}

impl PublicationOptions {
    /// Returns the usual settings: 8 MiB of changes, which are some 800,000 integers.
    #[must_use]
    pub fn new(name: impl Into<String>, token: BearerToken) -> Self {
        Self { name: name.into(), token, history_bytes: 8 << 20 }
    }
}

/// A set of ids that followers copy. It answers their requests:
///
/// | request | answer |
/// | --- | --- |
/// | `GET PATH` | a snapshot, with its position as ETag |
/// | `GET PATH?since=POSITION&wait=MILLISECONDS` | the changes after the position, or 410 if they are forgotten |
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tamis_guard::{BearerToken, HttpServer, IdSet, IdSetOptions, IdType};
/// use tamis_guard::{Publication, PublicationOptions};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let ids = Arc::new(IdSet::new(IdSetOptions::new(IdType::Uuid))?);
/// // Before the source starts.
/// let options = PublicationOptions::new("orders", BearerToken::new("a long secret")?);
/// let publication = Arc::new(Publication::new(Arc::clone(&ids), &options));
/// let server = HttpServer::bind("127.0.0.1:0".parse()?).await?;
/// server.run(move |request| {
///     let publication = Arc::clone(&publication);
///     async move { publication.answer(&request).await }
/// }).await;
/// # Ok(())
/// # }
/// ```
pub struct Publication {
    name: String,
    ids: Arc<IdSet>,
    feed: Arc<Feed>,
    token: BearerToken,
    /// One for all followers. A second request waits until it is built.
    snapshot: Mutex<Option<Snapshot>>,
}

#[derive(Clone)]
struct Snapshot {
    position: FeedPosition,
    bytes: Bytes,
    used: Instant,
}

/// Why there is no snapshot.
enum NoSnapshot {
    Warming,
    Failed(io::Error),
}

impl Publication {
    /// Publishes a set. Call it before the source of the set starts, because followers wait for a
    /// generation that is published after this call.
    #[must_use]
    pub fn new(ids: Arc<IdSet>, options: &PublicationOptions) -> Self {
        Self {
            name: options.name.clone(),
            token: options.token.clone(),
            feed: ids.log().feed(options.history_bytes),
            ids,
            snapshot: Mutex::default(),
        }
    }

    /// Answers a request of a follower. The path does not matter.
    pub async fn answer<B>(self: &Arc<Self>, request: &Request<B>) -> Response<Full<Bytes>> {
        let asked = Instant::now();
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer =
                error(StatusCode::METHOD_NOT_ALLOWED, "a set is read with GET or HEAD");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        if !self.token.is_in(request.headers()) {
            return unauthorized();
        }
        let query = request.uri().query().unwrap_or_default();
        let value = |name| {
            let mut fields = query.split('&').filter_map(|field| field.split_once('='));
            fields.find_map(|(field, value)| (field == name).then_some(value))
        };
        let wait =
            value("wait").map_or(Some(0), |wait| wait.parse().ok()).map(Duration::from_millis);
        let Some(wait) = wait else {
            return error(StatusCode::BAD_REQUEST, "wait is a number of milliseconds");
        };
        let Some(since) = value("since") else { return self.whole(request).await };
        let Ok(since) = since.parse() else {
            return error(StatusCode::BAD_REQUEST, "since is a position: the ETag of a snapshot");
        };
        match self.feed.changes_after(since, asked, wait.min(MAX_WAIT)).await {
            Ok(delta) => with_bytes(Bytes::from(delta.encode()), delta.position(), "no-store"),
            Err(NoChanges::Warming) => warming(),
            Err(NoChanges::Gone) => {
                error(StatusCode::GONE, "the changes after this position are gone; get a snapshot")
            }
        }
    }

    async fn whole<B>(self: &Arc<Self>, request: &Request<B>) -> Answer {
        let snapshot = match self.snapshot().await {
            Ok(snapshot) => snapshot,
            Err(NoSnapshot::Warming) => return warming(),
            Err(NoSnapshot::Failed(failed)) => {
                tracing::warn!(ids = %self.name, error = %failed, "a snapshot cannot be built");
                return error(StatusCode::SERVICE_UNAVAILABLE, "the snapshot cannot be built");
            }
        };
        let tag = tag(snapshot.position);
        if tag.is_known(request.headers()) {
            let mut answer = Answer::default();
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            answer.headers_mut().insert(ETAG, tag.to_header());
            return answer;
        }
        // Shared caches must not keep the hash key.
        with_bytes(snapshot.bytes, snapshot.position, "private, no-cache")
    }

    /// Returns the last snapshot, or builds one if the changes after it are mostly forgotten. So a
    /// crowd of followers shares one, and it is built at most once for half of the history.
    async fn snapshot(self: &Arc<Self>) -> Result<Snapshot, NoSnapshot> {
        let mut kept = self.snapshot.lock().await;
        if let Some(snapshot) = &mut *kept
            && self.feed.is_recent(snapshot.position)
        {
            snapshot.used = Instant::now();
            return Ok(snapshot.clone());
        }
        // Its memory is free before the next one is built.
        *kept = None;
        let found = self.feed.at_position(|| self.ids.generation());
        let (position, generation) = found.ok_or(NoSnapshot::Warming)?;
        let head = SnapshotHead {
            ids: self.ids.options().id.to_string(),
            source: self.name.clone(),
            position: position.to_string().into_bytes(),
            created: SystemTime::now(),
            // Followers rebuild when their leader does.
            built: SystemTime::now(),
        };
        let built = tokio::task::spawn_blocking(move || encode(&generation, &head)).await;
        let built = built.map_err(io::Error::other).flatten();
        let bytes = Bytes::from(built.map_err(NoSnapshot::Failed)?);
        let snapshot = Snapshot { position, bytes, used: Instant::now() };
        *kept = Some(snapshot.clone());
        tokio::spawn(forget_unused(Arc::downgrade(self), position));
        Ok(snapshot)
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Drops the snapshot of a position when no follower has asked for it for a while.
async fn forget_unused(publication: Weak<Publication>, position: FeedPosition) {
    loop {
        tokio::time::sleep(SNAPSHOT_KEPT).await;
        let Some(publication) = publication.upgrade() else { return };
        let mut kept = publication.snapshot.lock().await;
        match &*kept {
            Some(snapshot) if snapshot.position == position => {
                if snapshot.used.elapsed() >= SNAPSHOT_KEPT {
                    *kept = None;
                }
            }
            // A younger snapshot has a task of its own.
            _ => return,
        }
    }
}

fn encode(generation: &Generation, head: &SnapshotHead) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The filters, and some more for the rest.
    let expected = usize::try_from(generation.bytes()).map_err(io::Error::other)?;
    let reserved = bytes.try_reserve_exact(expected.saturating_add(expected / 64 + (64 << 10)));
    reserved.map_err(|_| io::ErrorKind::OutOfMemory)?;
    // Followers get the changes by their positions, not by an end.
    generation.write_snapshot(head, Vec::new, &mut bytes)?;
    Ok(bytes)
}

fn tag(position: FeedPosition) -> EntityTag {
    EntityTag::new(position.to_string()).expect("a position is a tag")
}

fn with_bytes(bytes: Bytes, position: FeedPosition, cache: &'static str) -> Answer {
    let len = bytes.len();
    let mut answer = Answer::new(Full::new(bytes));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CONTENT_LENGTH, len.into());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(ETAG, tag(position).to_header());
    answer
}

/// The answer to a request for an unknown set too, so that names are not told.
pub(crate) fn unauthorized() -> Answer {
    error(StatusCode::UNAUTHORIZED, "the token is wrong, or ids.NAME.publish is not set")
}

fn warming() -> Answer {
    let mut answer = error(StatusCode::SERVICE_UNAVAILABLE, "the leader reads its source");
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}
