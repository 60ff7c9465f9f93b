//! A guarded service with a route for one request at a time.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use tamis_guard::{
    GuardLayer, GuardedBody, IdSet, IdSetOptions, IdType, IntegerForm, RefuseReason, Route,
    RouteId, SingleFlight, SyncState,
};
use tokio::task::JoinHandle;
use tower_layer::Layer as _;
use tower_service::Service;

type Answer = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, Infallible>> + Send>>;

type Status = Pin<Box<dyn Future<Output = u16> + Send>>;

/// A service whose answers depend on the number of the request, from 0.
#[derive(Clone)]
struct Upstream {
    requests: Arc<AtomicUsize>,
    answer: Arc<dyn Fn(usize) -> Status + Send + Sync>,
}

impl Service<Request<GuardedBody<Full<Bytes>>>> for Upstream {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<GuardedBody<Full<Bytes>>>) -> Answer {
        let status = (self.answer)(self.requests.fetch_add(1, Ordering::SeqCst));
        Box::pin(async move {
            let mut response = Response::new(Full::default());
            *response.status_mut() = StatusCode::from_u16(status.await).unwrap();
            Ok(response)
        })
    }
}

#[derive(Clone)]
pub struct Guarded {
    pub layer: GuardLayer,
    upstream: Upstream,
}

impl Guarded {
    /// Guards a service with a route that knows the ids 1 to 99.
    pub fn new<F>(single: SingleFlight, answer: impl Fn(usize) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = u16> + Send + 'static,
    {
        Self::with(single, 1000, |_| {}, answer)
    }

    pub fn with<F>(
        single: SingleFlight,
        negative_ids: u64,
        set: impl Fn(&mut Route),
        answer: impl Fn(usize) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = u16> + Send + 'static,
    {
        let id = IdType::Integer { min: 1, max: i64::MAX.into(), form: IntegerForm::default() };
        // No id is recent, so that the negative cache takes each of them.
        let recent_for = Duration::ZERO;
        let options = IdSetOptions { negative_ids, recent_for, ..IdSetOptions::new(id) };
        let ids = Arc::new(IdSet::new(options).unwrap());
        let generation = ids.start_generation(1000).unwrap();
        for id in 1..100 {
            generation.load(id.to_string().as_bytes(), Some(id)).unwrap();
        }
        ids.publish_generation();
        ids.set_state(SyncState::Synced);
        let place = |place: &str| RouteId { place: place.parse().unwrap(), ids: Arc::clone(&ids) };
        let places = vec![place("path:id"), place("query:id")];
        let mut route = Route::new("/products/{id}".parse().unwrap(), places);
        route.single_flight = Some(single);
        set(&mut route);
        let upstream = Upstream {
            requests: Arc::default(),
            answer: Arc::new(move |number| Box::pin(answer(number))),
        };
        Self { layer: GuardLayer::new(vec![route]), upstream }
    }

    pub fn send(&self, method: Method, uri: &str) -> impl Future<Output = StatusCode> + use<> {
        let request = Request::builder().method(method).uri(uri).body(Full::default()).unwrap();
        let answer = self.layer.layer(self.upstream.clone()).call(request);
        async move { answer.await.unwrap().status() }
    }

    /// Starts a task with a GET request for a product.
    pub fn get(&self, id: u32) -> JoinHandle<StatusCode> {
        tokio::spawn(self.send(Method::GET, &format!("/products/{id}")))
    }

    /// Starts a number of requests, and waits until none of them can go on at the present time.
    pub async fn get_many(&self, id: u32, count: usize) -> Vec<JoinHandle<StatusCode>> {
        let tasks = (0..count).map(|_| self.get(id)).collect();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        tasks
    }

    pub fn reached(&self) -> usize {
        self.upstream.requests.load(Ordering::SeqCst)
    }

    pub fn single(&self) -> &SingleFlight {
        self.layer.routes()[0].single_flight.as_ref().unwrap()
    }

    pub fn refused(&self, reason: RefuseReason) -> u64 {
        self.layer.routes()[0].counters.refused(reason)
    }

    /// Asserts that no request has left anything behind.
    pub fn assert_empty(&self) {
        assert_eq!(self.single().ids_in_flight(), 0);
    }
}
