//! A guarded service that answers with what a test wants.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tamis_guard::{AnswerBody, GuardLayer, IdSet, IdSetOptions, LearnRule, NotLearnt};
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::checker::integers;
pub use crate::service::Script;
use crate::service::{Scripted, known, route};

/// A function that answers requests.
pub trait Answer: Fn(&Request<Bytes>) -> Response<Script> + Send + Sync + 'static {}

impl<F: Fn(&Request<Bytes>) -> Response<Script> + Send + Sync + 'static> Answer for F {}

fn scripted(answer: impl Answer) -> Scripted {
    Scripted::new(move |request| ready(answer(&request)))
}

/// A shop behind a guard that knows the products 1 to 99, and 500, which the shop does not have.
pub struct Guarded {
    pub layer: GuardLayer,
    pub ids: Arc<IdSet>,
    service: Scripted,
}

impl Guarded {
    /// Learns by rules with these paths and places.
    pub fn new(rules: &[(&str, &[&str])], answer: impl Answer) -> Self {
        Self::with(rules, |_| {}, answer)
    }

    pub fn with(
        rules: &[(&str, &[&str])],
        set: impl Fn(&mut LearnRule),
        answer: impl Answer,
    ) -> Self {
        let ids = products();
        let methods = vec![http::Method::GET];
        let mut route = route("/products/{id}", &["path:id"], &ids);
        route.methods = methods;
        let rules = rules.iter().map(|(path, places)| {
            let places = places.iter().map(|place| place.parse().unwrap()).collect();
            let mut rule = LearnRule::new(path.parse().unwrap(), places, Arc::clone(&ids));
            set(&mut rule);
            rule
        });
        let layer = GuardLayer::new(vec![route]).with_learn(rules.collect());
        Self { layer, ids, service: scripted(answer) }
    }

    /// Guards the service with a layer of the test.
    pub fn of(layer: GuardLayer, answer: impl Answer) -> Self {
        Self { layer, ids: products(), service: scripted(answer) }
    }

    /// Creates a product.
    pub async fn create(&self) -> Response<AnswerBody<Script>> {
        self.answer(Request::post("/products").body(Full::default()).unwrap()).await
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
    // No test sees a false positive.
    let (rate, recent_for) = (1e-7, RECENT);
    let options = IdSetOptions { rate, recent_for, ..IdSetOptions::new(integers()) };
    known(options, (1..100).chain([500]))
}

pub fn created(body: Script) -> Response<Script> {
    Response::builder().status(201).body(body).unwrap()
}
