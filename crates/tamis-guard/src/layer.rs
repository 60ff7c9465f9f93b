//! The guard as a layer of `tower`: for axum, hyper and every other program with such layers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{Either, Full};
use tower_layer::Layer;
use tower_service::Service;

use crate::body::GuardedBody;
use crate::route::{Decision, Route};
use crate::verdict::{PassReason, Verdict};

/// Decides about requests before they reach a service.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tamis_guard::{GuardLayer, IdSet, IdSetOptions, IdType, IntegerForm, Route, RouteId};
///
/// let id = IdType::Integer { min: 1, max: i64::MAX.into(), form: IntegerForm::default() };
/// let products = Arc::new(IdSet::new(IdSetOptions::new(id))?);
/// let id = RouteId { place: "path:id".parse()?, ids: Arc::clone(&products) };
/// let route = Route::new("/products/{id}".parse()?, vec![id]);
/// let layer = GuardLayer::new(vec![route]);
/// // axum: Router::new().route("/products/{id}", get(product)).layer(layer)
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct GuardLayer {
    routes: Arc<[Route]>,
}

impl GuardLayer {
    /// Creates a layer. The first route that matches a request decides about it; a request that
    /// matches none passes.
    #[must_use]
    pub fn new(routes: Vec<Route>) -> Self {
        Self { routes: routes.into() }
    }

    /// Returns the routes, with their counters.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = GuardService<S>;

    fn layer(&self, inner: S) -> GuardService<S> {
        GuardService { routes: Arc::clone(&self.routes), inner }
    }
}

/// A service behind a guard.
#[derive(Clone, Debug)]
pub struct GuardService<S> {
    routes: Arc<[Route]>,
    inner: S,
}

/// The body of an answer: the guard's own, or that of the service.
pub type AnswerBody<B> = Either<Full<Bytes>, B>;

/// The answer of a guarded service.
pub type GuardFuture<B, E> =
    Pin<Box<dyn Future<Output = Result<Response<AnswerBody<B>>, E>> + Send>>;

impl<S, B, A> Service<Request<B>> for GuardService<S>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<A>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Send,
    A: Send + 'static,
{
    type Response = Response<AnswerBody<A>>;
    type Error = S::Error;
    type Future = GuardFuture<A, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that is ready is this one, and the clone replaces it.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let routes = Arc::clone(&self.routes);
        let (parts, body) = request.into_parts();
        let found = routes.iter().position(|route| route.matches(&parts).is_some());
        let Some(index) = found else {
            return Box::pin(pass(inner, Request::from_parts(parts, GuardedBody::unread(body))));
        };
        Box::pin(async move {
            let route = &routes[index];
            let (json, body) = if route.needs_body() {
                match GuardedBody::buffered(body, route.max_body_bytes).await {
                    Ok((bytes, body)) => {
                        (bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()), body)
                    }
                    // The client has gone, or its body is broken. Nothing can be forwarded.
                    Err(_) => return Ok(bad_body()),
                }
            } else {
                (None, GuardedBody::unread(body))
            };
            let path = route.matches(&parts).expect("it matched before");
            let decision = route.decide(&parts, path, json.as_ref());
            route.counters.count(decision.verdict);
            if let Verdict::Refuse(reason) = decision.verdict
                && !route.is_shadow
            {
                return Ok(route.refusal.response(reason).map(Either::Left));
            }
            let answer = pass(inner, Request::from_parts(parts, body)).await?;
            learn(route, &decision, answer.status());
            Ok(answer)
        })
    }
}

async fn pass<S, B, A>(
    mut inner: S,
    request: Request<GuardedBody<B>>,
) -> Result<Response<AnswerBody<A>>, S::Error>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<A>>,
{
    Ok(inner.call(request).await?.map(Either::Right))
}

/// Learns from the answer of the service.
fn learn(route: &Route, decision: &Decision, status: StatusCode) {
    match decision.verdict {
        Verdict::Pass(PassReason::Known) if status == StatusCode::NOT_FOUND => {
            route.counters.count_not_found();
            decision.not_found();
        }
        Verdict::Refuse(_) if status.is_success() => route.counters.count_misjudged(),
        _ => {}
    }
}

fn bad_body<A>() -> Response<AnswerBody<A>> {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}
