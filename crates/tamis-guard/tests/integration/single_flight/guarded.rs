//! A guarded service with a route for one request at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use tamis_guard::{GuardLayer, IdSetOptions, RefuseReason, Route, SingleFlight};
use tokio::task::JoinHandle;
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::checker::integers;
use crate::service::{Script, Scripted, known, route};

#[derive(Clone)]
pub struct Guarded {
    pub layer: GuardLayer,
    upstream: Scripted,
    requests: Arc<AtomicUsize>,
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
        negative_requests: u64,
        set: impl Fn(&mut Route),
        answer: impl Fn(usize) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = u16> + Send + 'static,
    {
        // No id is recent, so that the negative cache takes each of them.
        let recent_for = Duration::ZERO;
        let options =
            IdSetOptions { negative_requests, recent_for, ..IdSetOptions::new(integers()) };
        let ids = known(options, 1..100);
        let mut route = route("/products/{id}", &["path:id", "query:id"], &ids);
        route.single_flight = Some(single);
        set(&mut route);
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let upstream = Scripted::new(move |_| {
            let status = answer(counted.fetch_add(1, Ordering::SeqCst));
            async { Response::builder().status(status.await).body(Script::whole("")).unwrap() }
        });
        Self { layer: GuardLayer::new(vec![route]), upstream, requests }
    }

    pub fn send(&self, method: Method, uri: &str) -> impl Future<Output = StatusCode> + use<> {
        let request =
            Request::builder().method(method).uri(uri).body(Full::<Bytes>::default()).unwrap();
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
        self.requests.load(Ordering::SeqCst)
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
