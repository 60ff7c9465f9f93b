//! The guard as a layer of `tower`: for axum, hyper and every other program with such layers.

use std::future::Future;
use std::pin::Pin;
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
use crate::json::Json;
use crate::learn::{LearnBody, LearnRule, Lessons};
use crate::route::{Decision, Route};
#[cfg(feature = "single-flight")]
use crate::turn;
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
    /// `None` if there are no rules, so that a request does not count a reference.
    rules: Option<Arc<[LearnRule]>>,
}

impl GuardLayer {
    /// Creates a layer. The first route that matches a request decides about it; a request that
    /// matches none passes.
    #[must_use]
    pub fn new(routes: Vec<Route>) -> Self {
        Self { routes: routes.into(), rules: None }
    }

    /// Sets the rules by which answers teach ids. All rules that match a request apply, also to
    /// requests that no route matches. The rules do not apply to the guard's own answers.
    #[must_use]
    pub fn with_learn(mut self, rules: Vec<LearnRule>) -> Self {
        self.rules = if rules.is_empty() { None } else { Some(rules.into()) };
        self
    }

    /// Returns the rules by which answers teach ids, with their counters.
    #[must_use]
    pub fn learn_rules(&self) -> &[LearnRule] {
        self.rules.as_deref().unwrap_or_default()
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
        GuardService { routes: Arc::clone(&self.routes), rules: self.rules.clone(), inner }
    }
}

/// A service behind a guard.
#[derive(Clone, Debug)]
pub struct GuardService<S> {
    routes: Arc<[Route]>,
    rules: Option<Arc<[LearnRule]>>,
    inner: S,
}

/// The body of an answer: the guard's own, or that of the service.
pub type AnswerBody<B> = Either<Full<Bytes>, LearnBody<B>>;

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
    A: Body + Send + 'static,
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
        let lessons = Lessons::of_request(self.rules.as_ref(), &parts);
        let route = routes.iter().position(|route| route.matches(&parts).is_some());
        if route.is_none() && lessons.is_none() {
            let request = Request::from_parts(parts, GuardedBody::unread(body));
            return Box::pin(pass(inner, request, None));
        }
        Box::pin(async move {
            let route = route.map(|index| &routes[index]);
            decide_and_pass(inner, route, lessons, parts, body).await
        })
    }
}

/// Decides about a request that a route or a rule matches.
async fn decide_and_pass<S, B, A>(
    inner: S,
    route: Option<&Route>,
    mut lessons: Option<Lessons>,
    parts: Parts,
    body: B,
) -> Result<Response<AnswerBody<A>>, S::Error>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<A>>,
    B: Body<Data = Bytes> + Unpin,
    A: Body,
{
    let route_bytes = route.filter(|route| route.needs_body()).map(|route| route.max_body_bytes);
    let lesson_bytes = lessons.as_ref().and_then(Lessons::max_request_bytes);
    // On an error, the client has gone, or its body is broken. Nothing can be forwarded.
    let Ok((json, body)) = read_json(body, route_bytes.max(lesson_bytes)).await else {
        return Ok(bad_body());
    };
    if let (Some(lessons), Some(json)) = (&mut lessons, &json) {
        lessons.read_request(json);
    }
    let Some(route) = route else {
        return pass(inner, Request::from_parts(parts, body), lessons).await;
    };
    let json = json.as_ref().filter(|json| route_bytes.is_some_and(|most| json.len_bytes <= most));
    let path = route.matches(&parts).expect("it matched before");
    #[cfg_attr(not(feature = "single-flight"), expect(unused_mut))]
    let mut decision = route.decide(&parts, path, json.map(|json| &json.value));
    #[cfg(feature = "single-flight")]
    let turn = turn::take(route, &parts.method, &mut decision).await;
    route.counters.count(decision.verdict);
    if let Verdict::Refuse(reason) = decision.verdict
        && !route.is_shadow
    {
        return Ok(route.refusal.response(reason).map(Either::Left));
    }
    let answer = pass(inner, Request::from_parts(parts, body), lessons).await?;
    learn(route, &decision, answer.status());
    #[cfg(feature = "single-flight")]
    if let Some(turn) = turn {
        turn.answered(answer.status());
    }
    Ok(answer)
}

/// Reads a JSON body of at most `max_bytes`. Returns no value without a limit, and for a larger
/// body or one that is no JSON. The body stays as it was.
async fn read_json<B>(
    body: B,
    max_bytes: Option<usize>,
) -> Result<(Option<Json>, GuardedBody<B>), B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    let Some(max_bytes) = max_bytes else { return Ok((None, GuardedBody::unread(body))) };
    let (bytes, body) = GuardedBody::buffered(body, max_bytes).await?;
    let json = bytes.and_then(|bytes| Json::parse(&bytes));
    Ok((json, body))
}

async fn pass<S, B, A>(
    mut inner: S,
    request: Request<GuardedBody<B>>,
    lessons: Option<Lessons>,
) -> Result<Response<AnswerBody<A>>, S::Error>
where
    S: Service<Request<GuardedBody<B>>, Response = Response<A>>,
    A: Body,
{
    let answer = inner.call(request).await?;
    let answer = match lessons {
        None => answer.map(LearnBody::unread),
        Some(lessons) => lessons.learn_from(answer),
    };
    Ok(answer.map(Either::Right))
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
