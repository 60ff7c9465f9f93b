//! A guarded service that answers with what a test wants.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use tamis_guard::{
    AnswerBody, GuardLayer, GuardedBody, IdSet, IdSetOptions, IdType, IntegerForm, LearnRule,
    NotLearnt, Route, RouteId, SyncState,
};
use tower_layer::Layer as _;
use tower_service::Service;

/// A body with these frames.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub frames: VecDeque<Result<Bytes, io::ErrorKind>>,
    pub trailers: bool,
    /// The length that the head of the answer promises.
    pub promised: Option<u64>,
}

impl Script {
    pub fn whole(text: &str) -> Self {
        let frames: VecDeque<_> =
            if text.is_empty() { [].into() } else { [Ok(text.to_owned().into())].into() };
        Self { frames, promised: Some(text.len() as u64), trailers: false }
    }

    /// Returns a body without a promised length.
    pub fn chunked<'t>(parts: impl IntoIterator<Item = &'t [u8]>) -> Self {
        let frames = parts.into_iter().map(|part| Ok(Bytes::copy_from_slice(part))).collect();
        Self { frames, ..Self::default() }
    }
}

impl Body for Script {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(match self.frames.pop_front() {
            Some(frame) => Some(frame.map(Frame::data).map_err(io::Error::from)),
            None if self.trailers => {
                self.trailers = false;
                Some(Ok(Frame::trailers(http::HeaderMap::new())))
            }
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.promised.is_some() && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.promised.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

type Answer = dyn Fn(&Request<Bytes>) -> Response<Script> + Send + Sync;

/// A service that answers with a function.
#[derive(Clone)]
pub struct Scripted(Arc<Answer>);

impl Service<Request<GuardedBody<Full<Bytes>>>> for Scripted {
    type Response = Response<Script>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Script>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<GuardedBody<Full<Bytes>>>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let mut body = std::pin::pin!(body.collect());
        let mut context = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Ok(body)) = body.as_mut().poll(&mut context) else { panic!("a body") };
        ready(Ok((self.0)(&Request::from_parts(parts, body.to_bytes()))))
    }
}

/// A shop behind a guard that knows the products 1 to 99, and 500, which the shop does not have.
pub struct Guarded {
    pub layer: GuardLayer,
    pub ids: Arc<IdSet>,
    service: Scripted,
}

impl Guarded {
    /// Learns by rules with these paths and places.
    pub fn new(
        rules: &[(&str, &[&str])],
        answer: impl Fn(&Request<Bytes>) -> Response<Script> + Send + Sync + 'static,
    ) -> Self {
        Self::with(rules, |_| {}, answer)
    }

    pub fn with(
        rules: &[(&str, &[&str])],
        set: impl Fn(&mut LearnRule),
        answer: impl Fn(&Request<Bytes>) -> Response<Script> + Send + Sync + 'static,
    ) -> Self {
        let ids = products();
        let id = RouteId { place: "path:id".parse().unwrap(), ids: Arc::clone(&ids) };
        let mut route = Route::new("/products/{id}".parse().unwrap(), vec![id]);
        route.methods = vec![http::Method::GET];
        let rules = rules.iter().map(|(path, places)| {
            let places = places.iter().map(|place| place.parse().unwrap()).collect();
            let mut rule = LearnRule::new(path.parse().unwrap(), places, Arc::clone(&ids));
            set(&mut rule);
            rule
        });
        let layer = GuardLayer::new(vec![route]).with_learn(rules.collect());
        Self { layer, ids, service: Scripted(Arc::new(answer)) }
    }

    /// Guards the service with a layer of the test.
    pub fn of(
        layer: GuardLayer,
        answer: impl Fn(&Request<Bytes>) -> Response<Script> + Send + Sync + 'static,
    ) -> Self {
        Self { layer, ids: products(), service: Scripted(Arc::new(answer)) }
    }

    pub async fn answer(&self, request: Request<Full<Bytes>>) -> Response<AnswerBody<Script>> {
        self.layer.layer(self.service.clone()).call(request).await.unwrap()
    }

    /// Sends a request and reads its answer. An error in the body ends it.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> (StatusCode, Vec<u8>) {
        let answer = self.answer(request).await;
        let (status, mut body, mut bytes) = (answer.status(), answer.into_body(), Vec::new());
        while let Some(Ok(frame)) = body.frame().await {
            bytes.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
        }
        (status, bytes)
    }

    pub async fn post(&self, path: &str, body: &str) -> (StatusCode, Vec<u8>) {
        self.send(Request::post(path).body(Full::from(body.to_owned())).unwrap()).await
    }

    pub async fn get(&self, path: &str) -> StatusCode {
        self.send(Request::get(path).body(Full::default()).unwrap()).await.0
    }

    pub fn knows(&self, id: &str) -> bool {
        self.ids.decide(id.as_bytes()).passes()
    }

    /// Returns how many ids the first rule has learnt, and how many answers taught none.
    pub fn counts(&self) -> (u64, Vec<(NotLearnt, u64)>) {
        let counters = &self.layer.learn_rules()[0].counters;
        let counts = NotLearnt::ALL.map(|reason| (reason, counters.not_learnt(reason)));
        (counters.learnt(), counts.into_iter().filter(|(_, count)| *count > 0).collect())
    }
}

/// How long an id is recent.
pub const RECENT: Duration = Duration::from_secs(1);

pub fn products() -> Arc<IdSet> {
    let id = IdType::Integer { min: 1, max: i64::MAX.into(), form: IntegerForm::default() };
    // No test sees a false positive.
    let recent_for = RECENT;
    let ids = IdSet::new(IdSetOptions { rate: 1e-7, recent_for, ..IdSetOptions::new(id) }).unwrap();
    let generation = ids.start_generation(1000).unwrap();
    for id in (1..100).chain([500]) {
        generation.load(id.to_string().as_bytes(), Some(id)).unwrap();
    }
    ids.publish_generation();
    ids.set_state(SyncState::Synced);
    Arc::new(ids)
}

pub fn created(body: Script) -> Response<Script> {
    Response::builder().status(201).body(body).unwrap()
}
