//! The guard as a layer of `tower`: for axum, hyper and every other program with such layers.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{Either, Full};
use tower_layer::Layer;
use tower_service::Service;

use crate::body::GuardedBody;
use crate::guard_future::{AnswerBody, Decided, GuardFuture};
use crate::route::{Decision, Route};

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
    type Future = GuardFuture<S::Future, A, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let (index, decision) = match decide_by_head(&self.routes, &parts) {
            ByHead::Unguarded => {
                let request = Request::from_parts(parts, GuardedBody::unread(body));
                return GuardFuture::passed(self.inner.call(request), None);
            }
            ByHead::NeedsBody(index) => {
                // The service that is ready is this one, and the clone replaces it.
                let clone = self.inner.clone();
                let inner = std::mem::replace(&mut self.inner, clone);
                let routes = Arc::clone(&self.routes);
                return GuardFuture::boxed(call_with_body(inner, routes, index, parts, body));
            }
            ByHead::Decided(index, decision) => (index, decision),
        };
        if let Some(refusal) = self.routes[index].refusal_of(&decision) {
            return GuardFuture::answered(refusal.map(Either::Left));
        }
        let request = Request::from_parts(parts, GuardedBody::unread(body));
        let decided = Decided { routes: Arc::clone(&self.routes), index, decision };
        GuardFuture::passed(self.inner.call(request), Some(decided))
    }
}

/// What the head of a request decides, with the index of the route.
enum ByHead {
    Unguarded,
    NeedsBody(usize),
    Decided(usize, Decision),
}

fn decide_by_head(routes: &[Route], parts: &Parts) -> ByHead {
    for (index, route) in routes.iter().enumerate() {
        if let Some(path) = route.matches(parts) {
            return match route.needs_body() {
                true => ByHead::NeedsBody(index),
                false => ByHead::Decided(index, route.decide(parts, &path, None)),
            };
        }
    }
    ByHead::Unguarded
}

/// Decides about a request by its body too.
async fn call_with_body<S, B, A>(
    mut inner: S,
    routes: Arc<[Route]>,
    index: usize,
    parts: Parts,
    body: B,
) -> Result<Response<AnswerBody<A>>, S::Error>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<A>>,
    B: Body<Data = Bytes> + Unpin,
{
    let route = &routes[index];
    // On an error, the client has gone, or its body is broken. Nothing can be forwarded.
    let Ok((bytes, body)) = GuardedBody::buffered(body, route.max_body_bytes).await else {
        return Ok(bad_body());
    };
    let json = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let decision = {
        let path = route.matches(&parts).expect("it matched before");
        route.decide(&parts, &path, json.as_ref())
    };
    if let Some(refusal) = route.refusal_of(&decision) {
        return Ok(refusal.map(Either::Left));
    }
    let answer = inner.call(Request::from_parts(parts, body)).await?;
    Decided { routes, index, decision }.learn(answer.status());
    Ok(answer.map(Either::Right))
}

fn bad_body<A>() -> Response<AnswerBody<A>> {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}
