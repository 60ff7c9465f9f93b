//! The guard as a layer of `tower`, for axum, hyper and other frameworks that use `tower` layers.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{Either, Full};
use tower_layer::Layer;
use tower_service::Service;

use crate::request::body::GuardedBody;
use crate::request::decide::{ByHead, decide_by_head, decide_with_body, read_body};
use crate::request::guard_future::{AnswerBody, Decided, GuardFuture, answer_of};
use crate::request::learn::{LearnRule, Lessons};
use crate::request::route::Route;
use crate::request::routes::Routes;
#[cfg(feature = "layer")]
use crate::request::turn;
#[cfg(feature = "proxy")]
use crate::request::verdict_slot::VerdictSlot;

/// A layer that decides about requests before they reach the inner service.
///
/// A route checks the path that the layer receives. `Router::nest` of axum removes the prefix from the path before the
/// inner router: a layer on the outer router gets `/api/products/7`, and a layer on the inner router gets
/// `/products/7`. `Router::layer` applies a layer only to the routes that were added before, so add the guard after all
/// routes. [`idle_routes`](Self::idle_routes) shows the routes that have checked no id.
///
/// # Examples
///
/// ```
/// use tamis_guard::{GuardLayer, IdSet, IdType, Route};
///
/// let products = IdSet::from_ids(IdType::integer(), 1..=1000)?;
/// let layer = GuardLayer::new([Route::new("/products/{id}", "path:id", products)?]);
/// // axum: Router::new().route("/products/{id}", get(product)).layer(layer)
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct GuardLayer {
    routes: Arc<Routes>,
    /// The learn rules. The value is `None` if no rules exist, so that a request does not increment a reference count.
    rules: Option<Arc<[LearnRule]>>,
}

impl GuardLayer {
    /// Creates a layer. The first matching route decides about a request, so a route with a wide path such as `/*`
    /// hides the routes after it. A request without a matching route passes. [`Route::exempt`] creates a route whose
    /// requests pass.
    ///
    /// Programs interpret some paths differently, such as paths with `..` or `%2F`. If the interpretations reach several
    /// routes, each of these routes must pass the request.
    ///
    /// While a set is not [`Synced`](crate::SyncState::Synced), unknown ids pass by default
    /// ([`Policies`](crate::Policies)). Denied ids are refused in every state.
    #[must_use]
    pub fn new(routes: impl IntoIterator<Item = Route>) -> Self {
        Self { routes: Arc::new(Routes::new(routes)), rules: None }
    }

    /// Sets the rules for learning ids from responses. All matching rules apply to a request, even if no route matches
    /// the request. The rules do not apply to responses of the guard itself.
    #[must_use]
    pub fn with_learn(mut self, rules: Vec<LearnRule>) -> Self {
        self.rules = if rules.is_empty() { None } else { Some(rules.into()) };
        self
    }

    /// Returns the rules for learning ids from responses, with their counters.
    #[must_use]
    pub fn learn_rules(&self) -> &[LearnRule] {
        self.rules.as_deref().unwrap_or_default()
    }

    /// Returns the routes, with their counters.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// Returns the routes with the counter of requests.
    #[cfg(feature = "proxy")]
    pub(crate) fn shared_routes(&self) -> &Routes {
        &self.routes
    }

    /// Returns the routes that have checked no id so far ([`RouteCounters::checked`](crate::RouteCounters::checked)). If
    /// a route is idle although requests for its ids have arrived, its path, its methods or its places do not match
    /// these requests, or its sets were never [`Synced`](crate::SyncState::Synced) and let the unknown ids pass.
    ///
    /// With the feature `layer`, the layer logs a warning for each route that is idle after the first 10 000 requests.
    /// The warning is an event of `tracing`, so the program needs a subscriber of `tracing`.
    pub fn idle_routes(&self) -> impl Iterator<Item = &Route> {
        self.routes.idle()
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = GuardService<S>;

    fn layer(&self, inner: S) -> GuardService<S> {
        GuardService { routes: Arc::clone(&self.routes), rules: self.rules.clone(), inner }
    }
}

/// A guarded service.
#[derive(Clone, Debug)]
pub struct GuardService<S> {
    routes: Arc<Routes>,
    rules: Option<Arc<[LearnRule]>>,
    inner: S,
}

impl<S, B, A> Service<Request<B>> for GuardService<S>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<A>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Send,
    A: Body + Send + 'static,
{
    type Response = Response<AnswerBody<A>>;
    type Error = S::Error;
    type Future = GuardFuture<S::Future, A, S::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        #[cfg(feature = "layer")]
        self.routes.count_request();
        let (parts, body) = request.into_parts();
        let rules = self.rules.as_ref();
        let lessons = rules.and_then(|rules| Lessons::of_request(rules, &parts));
        let by_head = decide_by_head(&self.routes, &parts);
        if lessons.is_some() || by_head.needs_more(&self.routes, &parts.method) {
            // `poll_ready` has prepared this instance, so this instance handles the request and a clone replaces it.
            let clone = self.inner.clone();
            let inner = std::mem::replace(&mut self.inner, clone);
            let routes = Arc::clone(&self.routes);
            return GuardFuture::boxed(call_with_more(
                inner, routes, by_head, lessons, parts, body,
            ));
        }
        let ByHead::Decided(index, mut decision) = by_head else {
            let request = Request::from_parts(parts, GuardedBody::unread(body));
            return GuardFuture::passed(self.inner.call(request), None);
        };
        decision.forget_request_if(!body.is_end_stream());
        let route = &self.routes[index];
        #[cfg(feature = "proxy")]
        VerdictSlot::write(&parts.extensions, &route.name, decision.verdict);
        if let Some(refusal) = route.refusal_of(&decision, &parts) {
            return GuardFuture::answered(refusal.map(Either::Left));
        }
        let request = Request::from_parts(parts, GuardedBody::unread(body));
        let decided = Decided { routes: Arc::clone(&self.routes), index, decision };
        GuardFuture::passed(self.inner.call(request), Some(decided))
    }
}

/// Handles a request that needs more than its head: its body, its turn, or learn rules.
async fn call_with_more<S, B, A>(
    mut inner: S,
    routes: Arc<Routes>,
    by_head: ByHead,
    mut lessons: Option<Lessons>,
    parts: Parts,
    body: B,
) -> Result<Response<AnswerBody<A>>, S::Error>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<A>>,
    B: Body<Data = Bytes> + Unpin,
    A: Body,
{
    let route_bytes = match by_head {
        ByHead::NeedsBody(ref matches) => {
            matches.iter().map(|&(index, _)| routes[index].max_body_bytes).max()
        }
        _ => None,
    };
    let has_body = !body.is_end_stream();
    let lesson_bytes = lessons.as_ref().and_then(Lessons::max_request_bytes);
    // An error means that the client has disconnected or that its body is malformed, so the request cannot be
    // forwarded.
    let Ok((text, body)) = read_body(body, route_bytes.max(lesson_bytes)).await else {
        return Ok(without_body(StatusCode::BAD_REQUEST));
    };
    if let (Some(lessons), Some(text)) = (&mut lessons, &text) {
        lessons.read_request(text);
    }
    let (index, mut decision) = match by_head {
        ByHead::Unguarded => {
            let answer = inner.call(Request::from_parts(parts, body)).await?;
            return Ok(answer_of(answer, lessons));
        }
        ByHead::Decided(index, decision) => (index, decision),
        ByHead::NeedsBody(matches) => {
            match decide_with_body(&routes, &parts, &matches, text, body.len_bytes()) {
                Ok(decided) => decided,
                Err(route) => return Ok(route.too_large_response(&parts).map(Either::Left)),
            }
        }
    };
    decision.forget_request_if(has_body);
    #[cfg(feature = "layer")]
    let turn = turn::take(&routes[index], &parts.method, &mut decision).await;
    #[cfg(feature = "proxy")]
    VerdictSlot::write(&parts.extensions, &routes[index].name, decision.verdict);
    if let Some(refusal) = routes[index].refusal_of(&decision, &parts) {
        return Ok(refusal.map(Either::Left));
    }
    let answer = inner.call(Request::from_parts(parts, body)).await?;
    Decided { routes: Arc::clone(&routes), index, decision }.learn(&answer);
    #[cfg(feature = "layer")]
    if let Some(turn) = turn {
        turn.answered(answer.status());
    }
    Ok(answer_of(answer, lessons))
}

fn without_body<A>(status: StatusCode) -> Response<AnswerBody<A>> {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = status;
    response
}
