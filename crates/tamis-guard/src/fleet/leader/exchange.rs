//! Sends requests to a leader.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::fleet::delta::Delta;
use crate::fleet::leader::error::LeaderError;
use crate::fleet::leader::options::LeaderOptions;
use crate::fleet::position::FeedPosition;
use crate::http::client::{HttpAnswer, HttpClient, HttpClientError};

/// The time limit for the head of a response, in addition to the hold time of the request.
const HEAD_LIMIT: Duration = Duration::from_secs(5);
/// The time limit for a leader to build a snapshot.
const SNAPSHOT_LIMIT: Duration = Duration::from_secs(60);
/// The maximum size of a delta in bytes.
const MAX_DELTA: u64 = 4 << 20;

/// Sends requests to a leader.
pub(super) struct Exchange {
    client: HttpClient,
    headers: HeaderMap,
    path: String,
}

/// The response to a request for changes.
pub(super) enum Changes {
    After(Delta),
    /// The follower needs a snapshot.
    Gone,
}

impl Exchange {
    pub(super) fn new(
        options: &LeaderOptions,
        is_stopped: Arc<AtomicBool>,
    ) -> Result<Self, LeaderError> {
        let client = HttpClient::new(&options.url, options.ca.as_deref())?;
        let mut headers = HeaderMap::new();
        options.token.add_to(&mut headers);
        let path = options.url.path().to_owned();
        Ok(Self { client: client.with_stop(is_stopped), headers, path })
    }

    /// Requests the changes after a position. If no change exists yet, the leader holds the request for up to `wait`.
    pub(super) fn changes(
        &mut self,
        since: FeedPosition,
        wait: Duration,
    ) -> Result<Changes, LeaderError> {
        let path = format!("{}?since={since}&wait={}", self.path, wait.as_millis());
        let mut answer = self.client.get(&path, &self.headers, wait + HEAD_LIMIT)?;
        if answer.head().status == StatusCode::GONE {
            return Ok(Changes::Gone);
        }
        check(&answer)?;
        let mut bytes = Vec::new();
        // The buffer grows with the received bytes, so a wrong length allocates no memory.
        let read = (&mut answer).take(MAX_DELTA + 1).read_to_end(&mut bytes);
        read.map_err(|error| match error.downcast::<HttpClientError>() {
            Ok(error) => LeaderError::Http(error),
            Err(error) => LeaderError::Http(HttpClientError::Connect(error)),
        })?;
        if bytes.len() as u64 > MAX_DELTA {
            return Err(LeaderError::TooLarge);
        }
        let delta = Delta::decode(&bytes).map_err(LeaderError::Delta)?;
        if delta.since == since { Ok(Changes::After(delta)) } else { Err(LeaderError::Position) }
    }

    /// Starts the download of a snapshot.
    pub(super) fn snapshot(&mut self) -> Result<HttpAnswer<'_>, LeaderError> {
        let answer = self.client.get(&self.path, &self.headers, SNAPSHOT_LIMIT)?;
        check(&answer)?;
        Ok(answer)
    }
}

/// Tests whether the leader sends the requested content.
fn check(answer: &HttpAnswer<'_>) -> Result<(), LeaderError> {
    match answer.head().status {
        StatusCode::OK => Ok(()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(LeaderError::Unauthorized),
        StatusCode::SERVICE_UNAVAILABLE => Err(LeaderError::Warming),
        status => Err(LeaderError::Status(status)),
    }
}
