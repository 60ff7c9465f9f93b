//! Forwards requests that passed the guard to the upstream service.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::{Request, Response, StatusCode, Version};
use http_body_util::{Either, Full};
use hyper::upgrade::OnUpgrade;
use tokio::time::{Instant, sleep_until};
use tower_service::Service;

use crate::http::proxy::answer::Failure;
use crate::http::proxy::context::ConnectionContext;
use crate::http::proxy::request_body::{RequestBody, RequestBodyError, Upload};
use crate::http::proxy::upstream::SendError;
use crate::http::proxy::upstream_body::UpstreamBody;
use crate::http::proxy::{forwarded, hop_by_hop, tunnel};
use crate::request::body::GuardedBody;

/// The body of a response. The proxy or the upstream service has created the body.
pub(super) type ForwardBody = Either<Full<Bytes>, UpstreamBody>;

/// A future for the response to a forwarded request.
pub(super) type ForwardFuture =
    Pin<Box<dyn Future<Output = Result<Response<ForwardBody>, Infallible>> + Send>>;

const UNREACHABLE: Failure =
    Failure::new(StatusCode::BAD_GATEWAY, "the upstream cannot be reached");
const BROKEN: Failure = Failure::new(StatusCode::BAD_GATEWAY, "the upstream gave no valid answer");
const LATE: Failure =
    Failure::new(StatusCode::GATEWAY_TIMEOUT, "the upstream did not answer in time");
const SLOW_BODY: Failure =
    Failure::new(StatusCode::REQUEST_TIMEOUT, "the body of the request did not arrive in time");
const BAD_BODY: Failure =
    Failure::new(StatusCode::BAD_REQUEST, "the body of the request is malformed");

/// The inner service behind the guard. Each `Forward` serves one request.
#[derive(Clone, Debug)]
pub(super) struct Forward {
    pub(super) context: Arc<ConnectionContext>,
    pub(super) upload: Arc<Upload>,
}

impl Service<Request<GuardedBody<RequestBody>>> for Forward {
    type Response = Response<ForwardBody>;
    type Error = Infallible;
    type Future = ForwardFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<GuardedBody<RequestBody>>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

impl Forward {
    async fn answer(
        self,
        mut request: Request<GuardedBody<RequestBody>>,
    ) -> Result<Response<ForwardBody>, Infallible> {
        let upgrade = self.prepare(&mut request);
        let upstream = self.context.shared.upstream.load_full();
        let mut sent = pin!(upstream.send(request, &self.upload));
        let sent = loop {
            let late = self.late();
            tokio::select! {
                biased;
                sent = sent.as_mut() => break sent,
                () = sleep_until(late) => {
                    if self.late() <= Instant::now() {
                        return Ok(LATE.response().map(Either::Left));
                    }
                }
            }
        };
        let answer = sent.map_err(|error| {
            tracing::warn!(error = %Chain(&error), "no answer of the upstream");
            failure_of(&error)
        });
        let answer = answer.and_then(|answer| self.finish(answer, upgrade));
        Ok(answer.unwrap_or_else(|failure| failure.response().map(Either::Left)))
    }

    /// Returns the time after which the response is late, if the client sends no more data.
    fn late(&self) -> Instant {
        self.upload.idle_since() + self.context.shared.options.response_timeout
    }

    /// Adds the headers that describe the client. Returns the protocol upgrade that the client requests.
    fn prepare(
        &self,
        request: &mut Request<GuardedBody<RequestBody>>,
    ) -> Option<(HeaderValue, OnUpgrade)> {
        let upgrade = request.headers().get(UPGRADE).cloned();
        let upgrade = upgrade.map(|protocols| (protocols, hyper::upgrade::on(&mut *request)));
        request.extensions_mut().clear();
        let is_tls = self.context.shared.options.tls.is_some();
        forwarded::add(request.headers_mut(), self.context.remote.ip(), is_tls);
        upgrade
    }

    /// Prepares the response of the upstream service for the client.
    fn finish(
        &self,
        mut answer: Response<UpstreamBody>,
        upgrade: Option<(HeaderValue, OnUpgrade)>,
    ) -> Result<Response<ForwardBody>, Failure> {
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            self.switch(&mut answer, upgrade)?;
        } else {
            clean(&mut answer)?;
        }
        *answer.version_mut() = Version::HTTP_11;
        Ok(answer.map(Either::Right))
    }

    /// Starts the tunnel after a response with status 101.
    fn switch(
        &self,
        answer: &mut Response<UpstreamBody>,
        upgrade: Option<(HeaderValue, OnUpgrade)>,
    ) -> Result<(), Failure> {
        let Some((protocols, client)) = upgrade else { return Err(BROKEN) };
        if !tunnel::is_expected(&protocols, answer) {
            return Err(BROKEN);
        }
        let upstream = hyper::upgrade::on(&mut *answer);
        tokio::spawn(tunnel::run(client, upstream, Arc::clone(&self.context)));
        hop_by_hop::remove(answer.headers_mut()).map_err(|_| BROKEN)?;
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
        Ok(())
    }
}

/// Removes the headers that belong to the connection to the upstream service.
fn clean(answer: &mut Response<UpstreamBody>) -> Result<(), Failure> {
    let status = answer.status();
    let headers = answer.headers_mut();
    if !hop_by_hop::is_framing_clear(headers) {
        return Err(BROKEN);
    }
    hop_by_hop::remove(headers).map_err(|_| BROKEN)?;
    headers.remove(TRANSFER_ENCODING);
    if status != StatusCode::UPGRADE_REQUIRED {
        headers.remove(UPGRADE);
    } else if headers.contains_key(UPGRADE) {
        // The header `Upgrade` names the protocol that the client must request. If the client requests the protocol,
        // the proxy opens a tunnel to the upstream service.
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    Ok(())
}

/// Returns the response for a request that failed.
fn failure_of(error: &SendError) -> Failure {
    for cause in causes(error) {
        match cause.downcast_ref::<RequestBodyError>() {
            Some(RequestBodyError::Slow) => return SLOW_BODY,
            Some(RequestBodyError::Broken(_)) => return BAD_BODY,
            None => {}
        }
        let is_late = cause.downcast_ref::<io::Error>();
        if is_late.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            return LATE;
        }
    }
    match error {
        SendError::Connect(_) => UNREACHABLE,
        SendError::Http(_) => BROKEN,
    }
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// Formats an error together with its causes.
struct Chain<'e>(&'e SendError);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, cause) in causes(self.0).enumerate() {
            write!(f, "{}{cause}", if i > 0 { ": " } else { "" })?;
        }
        Ok(())
    }
}
