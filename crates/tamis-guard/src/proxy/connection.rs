//! One connection of a client: from the socket to the guard.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use http::{Request, Response, Version};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::layer::AnswerBody;
use crate::proxy::activity::Due;
use crate::proxy::admission;
use crate::proxy::client_stream::{ClientStream, Transport};
use crate::proxy::context::{ConnectionContext, Phase};
use crate::proxy::forward::{Forward, ForwardBody};
use crate::proxy::options::KEEPALIVE;
use crate::proxy::request_body::{RequestBody, Upload};
use crate::proxy::response_body::ResponseBody;

/// Serves a connection until the client, a limit or the shutdown ends it.
pub(super) async fn serve(
    stream: TcpStream,
    context: Arc<ConnectionContext>,
    mut phase: watch::Receiver<Phase>,
) {
    let options = &context.shared.options;
    // Without these, a connection works too.
    _ = stream.set_nodelay(true);
    _ = SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE));
    let transport = match &context.shared.tls {
        None => Transport::Plain(stream),
        Some(tls) => {
            // A receiver of its own: the loop below must see each change.
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
    // No header timeout of hyper: it would also limit the time between two requests.
    builder.http1().header_read_timeout(None).max_buf_size(options.max_head_bytes);
    builder.http2().max_concurrent_streams(200);
    let service = service_fn({
        let context = Arc::clone(&context);
        let phase = phase.clone();
        move |request| answer(request, Arc::clone(&context), phase.clone())
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
    // A proxy that was dropped serves no more.
    if phase.changed().await.is_err() {
        return Phase::Closed;
    }
    *phase.borrow_and_update()
}

type Answer = Response<ResponseBody<AnswerBody<ForwardBody>>>;

/// Answers a request.
async fn answer(
    request: Request<Incoming>,
    context: Arc<ConnectionContext>,
    phase: watch::Receiver<Phase>,
) -> Result<Answer, Infallible> {
    let mut in_progress = context.activity.begin(request.version() == Version::HTTP_2);
    let options = &context.shared.options;
    let (mut parts, body) = request.into_parts();
    let upload = Arc::new(Upload::new());
    let body = RequestBody::new(
        body,
        Arc::clone(&context.activity),
        Arc::clone(&upload),
        options.body_timeout,
    );
    let response = match admission::admit(&mut parts, &body, context.remote, options) {
        Err(failure) => failure.response().map(Either::Left),
        Ok(()) => {
            let guard = context.shared.guard.load_full();
            let forward = Forward { context, upload, phase };
            let Ok(response) = guard.layer(forward).call(Request::from_parts(parts, body)).await;
            response
        }
    };
    in_progress.streams();
    Ok(response.map(|body| ResponseBody::new(body, in_progress)))
}
