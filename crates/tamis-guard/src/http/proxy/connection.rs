//! Serves one client connection: from the socket to the guard.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::HeaderValue;
use http::request::Parts;
use http::{Request, Response, Version};
use http_body::Body as _;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use pin_project_lite::pin_project;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::http::proxy::activity::{Due, InProgress};
use crate::http::proxy::admission;
use crate::http::proxy::client_stream::{ClientStream, Transport};
use crate::http::proxy::context::{ConnectionContext, Phase};
use crate::http::proxy::forward::{Forward, ForwardBody, ForwardFuture};
use crate::http::proxy::options::KEEPALIVE;
use crate::http::proxy::request_body::{RequestBody, Upload};
use crate::http::proxy::request_id::REQUEST_ID;
use crate::http::proxy::request_log::LoggedRequest;
use crate::http::proxy::response_body::ResponseBody;
use crate::request::guard_future::{AnswerBody, GuardFuture};

/// Serves a connection until the client, a limit or the shutdown ends the connection.
pub(super) async fn serve(stream: TcpStream, context: Arc<ConnectionContext>) {
    let mut phase = context.phase.clone();
    let options = &context.shared.options;
    // The connection also works without these socket options, so errors are ignored.
    _ = stream.set_nodelay(true);
    _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE));
    let transport = match &context.shared.tls {
        None => Transport::Plain(stream),
        Some(tls) => {
            // The handshake uses a separate receiver, because the loop below must see each change of the phase.
            let mut closed = phase.clone();
            let handshake = TlsAcceptor::from(tls.load_full()).accept(stream);
            tokio::select! {
                shaken = timeout(options.header_timeout, handshake) => match shaken {
                    Ok(Ok(stream)) => Transport::Tls(Box::new(stream)),
                    Ok(Err(error)) => {
                        tracing::debug!(remote = %context.remote, %error, "no TLS");
                        return;
                    }
                    Err(_) => return,
                },
                _ = closed.wait_for(|&phase| phase == Phase::Closed) => return,
            }
        }
    };
    let stream = TokioIo::new(ClientStream::new(transport, Arc::clone(&context.activity)));
    let mut builder = Builder::new(TokioExecutor::new());
    // The header timeout of hyper stays off, because it would also limit the time between two requests. Each message
    // uses one write buffer, as in `upstream.rs`.
    let max = options.max_head_bytes;
    builder.http1().header_read_timeout(None).max_buf_size(max).writev(false);
    let max = u32::try_from(max).unwrap_or(u32::MAX);
    builder.http2().max_concurrent_streams(200).max_header_list_size(max);
    let service = service_fn({
        let context = Arc::clone(&context);
        move |request| answer(request, &context)
    });
    let mut connection = pin!(builder.serve_connection_with_upgrades(stream, service));
    let mut is_closing = false;
    loop {
        let at = match context.activity.due(options) {
            Due::At(at) => at,
            Due::Idle if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
                tokio::time::Instant::now() + options.header_timeout
            }
            Due::Idle | Due::Slow => return,
        };
        tokio::select! {
            result = connection.as_mut() => {
                if let Err(error) = result {
                    tracing::debug!(remote = %context.remote, %error, "connection broken");
                }
                return;
            }
            () = sleep_until(at) => {}
            phase = changed(&mut phase) => match phase {
                Phase::Serving => {}
                Phase::Draining => {
                    is_closing = true;
                    connection.as_mut().graceful_shutdown();
                }
                Phase::Closed => return,
            }
        }
    }
}

async fn changed(phase: &mut watch::Receiver<Phase>) -> Phase {
    // If the sender was dropped, the proxy no longer serves requests.
    if phase.changed().await.is_err() {
        return Phase::Closed;
    }
    *phase.borrow_and_update()
}

/// Handles a request.
fn answer(request: Request<Incoming>, context: &Arc<ConnectionContext>) -> Answer {
    let in_progress = context.activity.begin(request.version() == Version::HTTP_2);
    let options = &context.shared.options;
    let (mut parts, body) = request.into_parts();
    let upload = Arc::new(Upload::new(body.is_end_stream()));
    let activity = Arc::clone(&context.activity);
    let body = RequestBody::new(body, activity, Arc::clone(&upload), options.body_timeout);
    let admitted = admission::admit(&mut parts, &body, options);
    let after = After::of(&mut parts, context);
    let guarded = match admitted {
        Err(failure) => GuardFuture::answered(failure.response().map(Either::Left)),
        Ok(()) => {
            let forward = Forward { context: Arc::clone(context), upload };
            let guard = context.shared.guard.load();
            guard.layer(forward).call(Request::from_parts(parts, body))
        }
    };
    Answer { guarded, in_progress: Some(in_progress), after }
}

pin_project! {
    /// A future for the response to a request.
    struct Answer {
        #[pin]
        guarded: GuardFuture<ForwardFuture, ForwardBody, Infallible>,
        in_progress: Option<InProgress>,
        after: Option<Box<After>>,
    }
}

impl Future for Answer {
    type Output = Result<Response<ResponseBody<AnswerBody<ForwardBody>>>, Infallible>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Ok(mut response) = ready!(this.guarded.poll(context));
        if let Some(after) = this.after.take() {
            after.apply(&mut response);
        }
        let mut in_progress = this.in_progress.take().expect("polled once after it is ready");
        in_progress.streams();
        Poll::Ready(Ok(response.map(|body| ResponseBody::new(body, in_progress))))
    }
}

/// The actions that the proxy takes when the response head is complete.
struct After {
    logged: Option<LoggedRequest>,
    request_id: Option<HeaderValue>,
}

impl After {
    /// Returns the actions for a request. Returns `None` if the settings require no action, so that a request has no
    /// extra cost.
    fn of(parts: &mut Parts, context: &ConnectionContext) -> Option<Box<Self>> {
        let shared = &context.shared;
        if !shared.options.logs_requests && shared.request_ids.is_none() {
            return None;
        }
        let request_id = shared.request_ids.as_ref().map(|ids| ids.of(&mut parts.headers));
        let is_logged = shared.options.logs_requests;
        let logged = is_logged.then(|| LoggedRequest::begin(parts, context.remote));
        Some(Box::new(Self { logged, request_id }))
    }

    fn apply<B>(self, response: &mut Response<B>) {
        if let Some(id) = self.request_id {
            // If the response of the upstream service already contains a request id, the proxy keeps that id.
            response.headers_mut().entry(REQUEST_ID).or_insert(id);
        }
        if let Some(mut logged) = self.logged {
            logged.answered(response.status());
        }
    }
}
