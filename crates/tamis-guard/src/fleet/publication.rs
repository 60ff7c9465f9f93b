//! The responses of a leader to its followers.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tamis_sources::{Generation, IdSet, SnapshotHead};
use tokio::sync::Mutex;

use crate::fleet::feed::{Feed, NoChanges};
use crate::fleet::position::FeedPosition;
use crate::fleet::shared_snapshot::{PublicationBody, SharedSnapshot};
use crate::http::answer::{Answer, error};
use crate::http::bearer_token::BearerToken;
use crate::http::entity_tag::EntityTag;

/// The maximum time for which a request waits for changes.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The time for which a snapshot stays in memory after its last use.
const SNAPSHOT_KEPT: Duration = Duration::from_secs(30);

/// The settings for publishing a set.
#[derive(Clone, Debug, PartialEq)]
pub struct PublicationOptions {
    /// The name of the set. Each snapshot contains the name of the set.
    pub name: String,
    /// The token that followers must present. A snapshot contains the secret hash key of the set.
    pub token: BearerToken,
    /// The maximum size of the recent changes in bytes. A follower that lacks older changes needs a snapshot.
    pub history_bytes: usize,
}

impl PublicationOptions {
    /// Returns the default settings: 8 MiB of changes, which are about 800,000 integers.
    #[must_use]
    pub fn new(name: impl Into<String>, token: BearerToken) -> Self {
        Self { name: name.into(), token, history_bytes: 8 << 20 }
    }
}

/// A set of ids that followers copy. The publication handles these requests:
///
/// | request | response |
/// | --- | --- |
/// | `GET PATH` | a snapshot, with its position as ETag |
/// | `GET PATH?since=POSITION&wait=MILLISECONDS` | the later changes, or 410 if the leader has dropped them |
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tamis_guard::{BearerToken, HttpServer, IdSet, IdType};
/// use tamis_guard::{Publication, PublicationOptions};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let ids = Arc::new(IdSet::new(IdType::Uuid)?);
/// // Create the publication before the source starts.
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
    /// The mutex is locked while a snapshot is built, so that concurrent requests wait for one snapshot.
    snapshots: Arc<Mutex<Snapshots>>,
}

/// The snapshots in memory: at most two, including a snapshot that is being built.
#[derive(Default)]
struct Snapshots {
    /// The last snapshot, which all followers share.
    last: Option<Snapshot>,
    /// The snapshot before the last snapshot, while a response still sends its bytes.
    retired: Weak<SharedSnapshot>,
}

#[derive(Clone)]
struct Snapshot {
    position: FeedPosition,
    bytes: Arc<SharedSnapshot>,
    used: Instant,
}

impl Snapshot {
    /// Tests whether a response is sending this snapshot.
    fn is_being_sent(&self) -> bool {
        Arc::strong_count(&self.bytes) > 1
    }
}

impl Snapshots {
    /// Removes the last snapshot to free memory for a new snapshot. Responses that send the last snapshot continue
    /// until the next call of this method.
    ///
    /// The leader retires a snapshot after a new generation, or when the changes after the snapshot fill half of the
    /// history. At the next call of this method, the history no longer contains the position of the snapshot, so
    /// followers cannot use the snapshot.
    fn retire_last(&mut self) {
        let Some(last) = self.last.take() else { return };
        if !last.is_being_sent() {
            return;
        }
        let retired = std::mem::replace(&mut self.retired, Arc::downgrade(&last.bytes));
        if let Some(retired) = retired.upgrade() {
            retired.take_away();
        }
    }
}

/// The request of a follower.
enum Asked {
    Whole,
    Changes { since: FeedPosition, wait: Duration },
}

/// The reason why no snapshot is available.
enum NoSnapshot {
    Warming,
    Failed(io::Error),
}

impl Publication {
    /// Publishes a set. The caller must call this function before the source of the set starts. Followers wait for a
    /// generation that the source publishes after this call. Several publications of one set share the recorded
    /// changes.
    ///
    /// # Panics
    ///
    /// Panics if the set already has a listener that is not a publication.
    #[must_use]
    pub fn new(ids: Arc<IdSet>, options: &PublicationOptions) -> Self {
        let listener: Arc<dyn Any + Send + Sync> =
            ids.listen(|| Arc::new(Feed::new(options.history_bytes)));
        Self {
            name: options.name.clone(),
            token: options.token.clone(),
            feed: listener.downcast().expect("only publications listen to the set"),
            ids,
            snapshots: Arc::default(),
        }
    }

    /// Handles a request of a follower. The method ignores the path of the request.
    pub async fn answer<B>(self: &Arc<Self>, request: &Request<B>) -> Response<PublicationBody> {
        let received = Instant::now();
        match self.asked(request) {
            Ok(Asked::Whole) => self.whole(request).await,
            Ok(Asked::Changes { since, wait }) => {
                self.changes(since, wait, received).await.map(Into::into)
            }
            Err(refusal) => (*refusal).map(Into::into),
        }
    }

    /// Parses a request. Returns the error response if the request is invalid.
    fn asked<B>(&self, request: &Request<B>) -> Result<Asked, Box<Answer>> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer =
                error(StatusCode::METHOD_NOT_ALLOWED, "a set is read with GET or HEAD");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Err(Box::new(answer));
        }
        if !self.token.is_in(request.headers()) {
            return Err(Box::new(unauthorized()));
        }
        let bad = |message| Box::new(error(StatusCode::BAD_REQUEST, message));
        let query = request.uri().query().unwrap_or_default();
        let value = |name| {
            let mut fields = query.split('&').filter_map(|field| field.split_once('='));
            fields.find_map(|(field, value)| (field == name).then_some(value))
        };
        let wait = value("wait").unwrap_or("0").parse::<u64>();
        let wait = wait.map_err(|_| bad("wait is a number of milliseconds"))?;
        let wait = Duration::from_millis(wait).min(MAX_WAIT);
        let Some(since) = value("since") else { return Ok(Asked::Whole) };
        let since = since
            .parse::<FeedPosition>()
            .map_err(|_| bad("since is a position: the ETag of a snapshot"))?;
        Ok(Asked::Changes { since, wait })
    }

    async fn changes(&self, since: FeedPosition, wait: Duration, received: Instant) -> Answer {
        match self.feed.changes_after(since, received, wait).await {
            Ok(delta) => {
                let mut answer = Answer::new(Bytes::from(delta.encode()).into());
                add_headers(answer.headers_mut(), delta.position(), "no-store");
                answer
            }
            Err(NoChanges::Warming) => warming(),
            Err(NoChanges::Gone) => {
                error(StatusCode::GONE, "the changes after this position are gone; get a snapshot")
            }
        }
    }

    async fn whole<B>(self: &Arc<Self>, request: &Request<B>) -> Response<PublicationBody> {
        let snapshot = match self.snapshot().await {
            Ok(snapshot) => snapshot,
            Err(NoSnapshot::Warming) => return warming().map(Into::into),
            Err(NoSnapshot::Failed(failed)) => {
                tracing::warn!(ids = %self.name, error = %failed, "a snapshot cannot be built");
                let message = "the snapshot cannot be built";
                return error(StatusCode::SERVICE_UNAVAILABLE, message).map(Into::into);
            }
        };
        let tag = tag(snapshot.position);
        if tag.is_known(request.headers()) {
            let mut answer = Answer::default();
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            answer.headers_mut().insert(ETAG, tag.to_header());
            return answer.map(Into::into);
        }
        let mut answer = Response::new(PublicationBody::of_snapshot(snapshot.bytes));
        // Shared caches must not store the response, because the response contains the secret hash key.
        add_headers(answer.headers_mut(), snapshot.position, "private, no-cache");
        answer
    }

    /// Returns the last snapshot. Builds a new snapshot if the changes after the last snapshot fill more than half of
    /// the history. All followers share a snapshot, so the leader builds at most one snapshot for each half of the
    /// history.
    async fn snapshot(self: &Arc<Self>) -> Result<Snapshot, NoSnapshot> {
        let mut snapshots = Arc::clone(&self.snapshots).lock_owned().await;
        if let Some(last) = &mut snapshots.last
            && self.feed.is_recent(last.position)
        {
            last.used = Instant::now();
            return Ok(last.clone());
        }
        let found = self.feed.at_position(|| self.ids.generations());
        let (position, generations) = found.ok_or(NoSnapshot::Warming)?;
        // A set with a listener has one source.
        let generation = generations.iter().next().cloned().expect("a set has a source");
        let head = SnapshotHead {
            ids: self.ids.options().id.to_string(),
            source: self.name.clone(),
            position: position.to_string().into_bytes(),
            created: SystemTime::now(),
            // With the current time as the build time, followers rebuild their filters when their leader does.
            built: SystemTime::now(),
        };
        // The memory of an old snapshot is freed before the next snapshot is built.
        snapshots.retire_last();
        tokio::spawn(forget_unused(Arc::downgrade(self), position));
        // The thread holds the lock until its end, even if the follower disconnects.
        let build = tokio::task::spawn_blocking(move || -> io::Result<Snapshot> {
            let bytes = Arc::new(SharedSnapshot::new(encode(&generation, &head)?));
            let snapshot = Snapshot { position, bytes, used: Instant::now() };
            snapshots.last = Some(snapshot.clone());
            Ok(snapshot)
        });
        build.await.map_err(io::Error::other).flatten().map_err(NoSnapshot::Failed)
    }
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Drops the snapshot at a position after no follower has used it for [`SNAPSHOT_KEPT`].
async fn forget_unused(publication: Weak<Publication>, position: FeedPosition) {
    loop {
        tokio::time::sleep(SNAPSHOT_KEPT).await;
        let Some(publication) = publication.upgrade() else { return };
        let mut snapshots = publication.snapshots.lock().await;
        match &snapshots.last {
            Some(last) if last.position == position => {
                if last.used.elapsed() >= SNAPSHOT_KEPT && !last.is_being_sent() {
                    snapshots.last = None;
                }
            }
            // The last snapshot has another position, and has its own task.
            _ => return,
        }
    }
}

fn encode(generation: &Generation, head: &SnapshotHead) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The capacity covers the filters and a reserve for the other fields.
    let expected = usize::try_from(generation.bytes()).map_err(io::Error::other)?;
    let reserved = bytes.try_reserve_exact(expected.saturating_add(expected / 64 + (64 << 10)));
    reserved.map_err(|_| io::ErrorKind::OutOfMemory)?;
    // Followers get the changes by position, so the snapshot needs no end position.
    generation.write_snapshot(head, Vec::new, &mut bytes)?;
    Ok(bytes)
}

fn tag(position: FeedPosition) -> EntityTag {
    EntityTag::new(position.to_string()).expect("a position is a tag")
}

/// Adds the headers of a response that contains ids.
fn add_headers(headers: &mut HeaderMap, position: FeedPosition, cache: &'static str) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(ETAG, tag(position).to_header());
}

/// Returns the response for a wrong token and for an unknown set. The same response for a wrong token and an unknown
/// set hides the names of sets.
pub(crate) fn unauthorized() -> Answer {
    error(StatusCode::UNAUTHORIZED, "the token is wrong, or ids.NAME.publish is not set")
}

fn warming() -> Answer {
    let mut answer = error(StatusCode::SERVICE_UNAVAILABLE, "the leader reads its source");
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

#[cfg(test)]
mod tests {
    use http::header::AUTHORIZATION;
    use http_body_util::BodyExt as _;

    use super::*;
    use tamis_sources::IdSetOptions;
    use tamis_sources::{IdType, IntegerForm};

    fn publication() -> Arc<Publication> {
        let id = IdType::Integer { min: 1, max: i64::MAX.into(), form: IntegerForm::default() };
        // This capacity produces several chunks in a response.
        let options = IdSetOptions { items: 200_000, ..IdSetOptions::new(id) };
        let ids = Arc::new(IdSet::new(options).unwrap());
        let token = BearerToken::new("secret").unwrap();
        let options =
            PublicationOptions { history_bytes: 0, ..PublicationOptions::new("products", token) };
        let publication = Publication::new(Arc::clone(&ids), &options);
        ids.start_generation(200_000).unwrap();
        ids.publish_generation();
        Arc::new(publication)
    }

    fn request() -> Request<()> {
        Request::get("/").header(AUTHORIZATION, "Bearer secret").body(()).unwrap()
    }

    fn position(answer: &Response<PublicationBody>) -> FeedPosition {
        let tag = EntityTag::of_answer(answer.headers()).unwrap();
        tag.to_string().parse().unwrap()
    }

    /// Inserts ids that fill more than half of the history.
    fn fill_history(publication: &Publication) {
        let (before, _) = publication.feed.at_position(|| ()).unwrap();
        for id in 1.. {
            if !publication.feed.is_recent(before) {
                return;
            }
            publication.ids.insert(format!("{id}").as_bytes()).unwrap();
        }
    }

    #[tokio::test]
    async fn a_follower_that_goes_away_leaves_the_snapshot_to_the_next_one() {
        let publication = publication();
        let (begin, _) = publication.feed.at_position(|| ()).unwrap();
        let request = request();
        {
            let mut first = std::pin::pin!(publication.answer(&request));
            tokio::select! {
                biased;
                _ = &mut first => {}
                () = std::future::ready(()) => {}
            }
        }
        // A second build of the snapshot would contain the id 7.
        publication.ids.insert(b"7").unwrap();
        let second = publication.answer(&request).await;
        assert_eq!(position(&second), begin);
    }

    #[tokio::test]
    async fn a_slow_follower_loses_its_snapshot_to_the_second_one_after_it() {
        let publication = publication();
        let mut slow = publication.answer(&request()).await.into_body();
        let first = slow.frame().await.unwrap().unwrap().into_data().unwrap();
        fill_history(&publication);
        let mut second = publication.answer(&request()).await;
        // The first and the second snapshot are in memory.
        let next = slow.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first.len(), next.len());
        fill_history(&publication);
        let third = publication.answer(&request()).await;
        assert!(slow.frame().await.unwrap().is_err());
        assert_ne!(position(&second), position(&third));
        for answer in [&mut second, &mut { third }] {
            let position = position(answer);
            let body = answer.body_mut().collect().await.unwrap().to_bytes();
            let snapshot = Generation::read_snapshot(&body[..], 1 << 30).unwrap();
            assert_eq!(snapshot.head.position, position.to_string().into_bytes());
        }
    }

    #[tokio::test]
    async fn a_snapshot_that_no_follower_gets_makes_room_for_the_next_one() {
        let publication = publication();
        let mut slow = publication.answer(&request()).await.into_body();
        for _ in 0..3 {
            fill_history(&publication);
            // The follower of this response disconnects.
            drop(publication.answer(&request()).await);
        }
        // Only two snapshots are in memory: the snapshot that is being sent, and the last snapshot.
        slow.frame().await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_snapshot_is_dropped_after_its_last_use_but_not_while_it_is_sent() {
        let publication = publication();
        let mut slow = publication.answer(&request()).await.into_body();
        // The time of the last use comes from the real clock, so the test sets an older time.
        if let Some(last) = &mut publication.snapshots.lock().await.last {
            last.used = Instant::now().checked_sub(SNAPSHOT_KEPT).unwrap();
        }
        let is_kept = async || publication.snapshots.lock().await.last.is_some();
        tokio::time::sleep(SNAPSHOT_KEPT * 3).await;
        assert!(is_kept().await);
        slow.frame().await.unwrap().unwrap();
        drop(slow);
        tokio::time::sleep(SNAPSHOT_KEPT * 2).await;
        assert!(!is_kept().await);
    }
}
