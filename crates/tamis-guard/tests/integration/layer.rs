//! The guard as a layer in front of a service.

mod evidence;
mod exempt;
mod forms;
mod lists;
mod negative;
mod order;
mod preflights;
mod segments;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use tamis_guard::{
    AnswerBody, GuardLayer, GuardService, GuardedBody, IdSet, IdSetOptions, PassReason, Policies,
    Policy, Refusal, RefuseReason, Required, Route, SyncState,
};
use tower_layer::Layer as _;
use tower_service::Service;

use crate::checker::{integers, text};
use crate::service::{Script, Scripted, known, route, set};

/// A program that knows the products 1 to 99, and counts the requests that reach it.
#[derive(Clone, Default)]
struct Shop {
    requests: Arc<AtomicUsize>,
    bodies: Arc<Mutex<Vec<Bytes>>>,
    /// Answers only `GET /products/7` with the token `a`.
    is_strict: Arc<AtomicBool>,
    /// The header `cache-control` of each answer.
    caching: Arc<Mutex<Option<&'static str>>>,
}

impl Shop {
    fn answer(&self, request: Request<Bytes>) -> Response<Script> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let is_good = request.method() == Method::GET
            && request.uri() == "/products/7"
            && request.headers().get("token").is_some_and(|token| token == "a");
        let is_missing = self.is_strict.load(Ordering::Relaxed) && !is_good;
        let id = request.uri().path().rsplit('/').next().unwrap().parse::<u64>();
        let mut response = Response::new(Script::whole("a product"));
        if is_missing || id.is_ok_and(|id| !(1..100).contains(&id)) {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        if let Some(value) = *self.caching.lock().unwrap() {
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(value));
        }
        self.bodies.lock().unwrap().push(request.into_body());
        response
    }
}

/// Returns a set that knows the ids 1 to 99, and 500, which the shop does not have.
fn products() -> Arc<IdSet> {
    // No id is recent, so that the negative cache takes each of them.
    products_with(IdSetOptions { recent_for: Duration::ZERO, ..IdSetOptions::new(integers()) })
}

fn products_with(options: IdSetOptions) -> Arc<IdSet> {
    known(options, (1..100).chain([500]))
}

/// Returns a set that knows some texts.
fn texts(known_texts: &[&str]) -> Arc<IdSet> {
    let ids = known(IdSetOptions::new(text()), []);
    for id in known_texts {
        ids.insert(id.as_bytes()).unwrap();
    }
    ids
}

fn get(uri: &str) -> Request<Full<Bytes>> {
    Request::get(uri).body(Full::default()).unwrap()
}

fn post(uri: &str, body: &str) -> Request<Full<Bytes>> {
    Request::post(uri).body(Full::from(body.to_owned())).unwrap()
}

struct Guarded {
    service: GuardService<Scripted>,
    shop: Shop,
    layer: GuardLayer,
}

impl Guarded {
    /// Guards the shop with a route for the products.
    fn of_products(change: impl FnOnce(&mut Route)) -> Self {
        Self::new(vec![set(route("/products/{id}", &["path:id"], &products()), change)])
    }

    fn new(routes: Vec<Route>) -> Self {
        let (shop, layer) = (Shop::default(), GuardLayer::new(routes));
        let answering = shop.clone();
        let service = Scripted::new(move |request| ready(answering.answer(request)));
        Self { service: layer.layer(service), shop, layer }
    }

    async fn answer<B>(&mut self, request: Request<B>) -> Response<AnswerBody<Script>>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::fmt::Debug + Send,
    {
        self.service.call(request).await.unwrap()
    }

    async fn get(&mut self, uri: &str) -> StatusCode {
        self.answer(get(uri)).await.status()
    }

    fn reached(&self) -> usize {
        self.shop.requests.swap(0, Ordering::Relaxed)
    }
}

#[tokio::test]
async fn only_requests_for_ids_that_exist_reach_the_service() {
    let mut guarded = Guarded::of_products(|_| {});
    for uri in ["/products/1", "/products/099", "/products/7/", "/products//7", "/other/5", "/"] {
        assert_eq!(guarded.get(uri).await, StatusCode::OK, "{uri}");
    }
    assert_eq!(guarded.reached(), 6);
    for uri in [
        "/products/100",
        "/products/0",
        "/products/-1",
        "/products/x",
        "/products/1%2F2",
        "/products/1%00",
        "/products/%EF%BC%91",
        "/products/99999999999999999999999999999999999999999999",
        "//products/./100;a=b/",
    ] {
        assert_eq!(guarded.get(uri).await, StatusCode::NOT_FOUND, "{uri}");
    }
    assert_eq!(guarded.reached(), 0);
    let counters = &guarded.layer.routes()[0].counters;
    assert_eq!(counters.passed(PassReason::Known), 4);
    assert_eq!(counters.refused(RefuseReason::Absent), 2);
    assert_eq!(counters.refused(RefuseReason::NotAnId), 7);
}

#[tokio::test]
async fn the_refusal_is_that_of_the_route() {
    let refusal = Refusal::json(r#"{"code":404,"message":"产品不存在!"}"#);
    let mut guarded = Guarded::of_products(|route| route.refusal = refusal);
    let answer = guarded.answer(get("/products/100")).await;
    assert_eq!(answer.headers()["content-type"], "application/json; charset=utf-8");
    assert_eq!(answer.headers()["x-tamis-guard"], "absent");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, r#"{"code":404,"message":"产品不存在!"}"#);
}

#[tokio::test]
async fn the_refusal_has_the_status_the_headers_and_the_time_of_the_route() {
    let mut refusal = Refusal { retry_after: 7, ..Refusal::json("gone") };
    refusal.status = StatusCode::GONE;
    refusal.headers.insert("content-type", "text/plain".parse().unwrap());
    refusal.headers.insert("x-shop", "1".parse().unwrap());
    let mut guarded = Guarded::of_products(|route| route.refusal = refusal);
    let answer = guarded.answer(get("/products/100")).await;
    assert_eq!(answer.status(), StatusCode::GONE);
    assert_eq!(answer.headers()["content-type"], "text/plain");
    assert_eq!(answer.headers()["x-shop"], "1");
    assert!(!answer.headers().contains_key("retry-after"));
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "gone");

    // The set does not know whether the id exists, and its policy refuses.
    let policies = Policies { warming: Policy::Reject, ..Policies::default() };
    let ids = IdSet::new(IdSetOptions { policies, ..IdSetOptions::new(integers()) }).unwrap();
    let refusal = Refusal { retry_after: 7, ..Refusal::default() };
    let guarded_route = route("/products/{id}", &["path:id"], &Arc::new(ids));
    let mut guarded = Guarded::new(vec![set(guarded_route, |it| it.refusal = refusal)]);
    let answer = guarded.answer(get("/products/100")).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers()["retry-after"], "7");
    assert_eq!(answer.headers()["x-tamis-guard"], "unsure");
    assert_eq!(guarded.reached(), 0);
}

#[tokio::test]
async fn ids_are_all_required_or_any() {
    let ids = products();
    let places = ["path:id", "query:related", "header:x-id"];
    for (required, uri, header, passes) in [
        (Required::All, "/p/1?related=2", "3", true),
        (Required::All, "/p/1?related=2", "300", false),
        (Required::All, "/p/1?related=200", "3", false),
        (Required::All, "/p/100?related=2", "3", false),
        (Required::All, "/p/1", "3", true),
        (Required::Any, "/p/100?related=2", "300", true),
        (Required::Any, "/p/100?related=200", "300", false),
        (Required::Any, "/p/100", "300", false),
        // A program may use any of several values at one place.
        (Required::All, "/p/1?related=200&related=2", "3", false),
        (Required::All, "/p/1?related=2&related=200", "3", false),
        (Required::All, "/p/1?related=2&related=4", "3", true),
        (Required::Any, "/p/100?related=2&related=200", "300", true),
    ] {
        let by_places = set(route("/p/{id}", &places, &ids), |it| it.required = required);
        let mut guarded = Guarded::new(vec![by_places]);
        let request = Request::get(uri).header("x-id", header).body(Full::default()).unwrap();
        let _ = guarded.answer(request).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{required:?} {uri} {header}");
    }
    let strict = set(route("/p", &["query:id"], &ids), |it| it.refuses_missing = true);
    let mut guarded = Guarded::new(vec![strict]);
    assert_eq!(guarded.get("/p?id=1").await, 200);
    for without in ["/p", "/p?id", "/p?id=", "/p?id=&ID="] {
        assert_eq!(guarded.get(without).await, 404, "{without}");
    }
    // A form sends a field that its user left empty.
    let mut guarded = Guarded::new(vec![route("/p", &["query:id"], &ids)]);
    for (uri, expected) in
        [("/p?id=&name=x", 200), ("/p?id=&id=1", 200), ("/p?id=1&ID=100", 404), ("/p?Id=100", 404)]
    {
        assert_eq!(guarded.get(uri).await, expected, "{uri}");
    }
}

#[tokio::test]
async fn a_cookie_passes_if_it_is_an_id_before_or_after_its_decoding() {
    let ids = texts(&["产品", "a%20b"]);
    let mut guarded = Guarded::new(vec![route("/cart", &["cookie:product"], &ids)]);
    for (value, status) in [
        ("%E4%BA%A7%E5%93%81", StatusCode::OK),
        ("a%20b", StatusCode::OK),
        ("a%2520b", StatusCode::OK),
        ("a b", StatusCode::NOT_FOUND),
        ("%E4%BA%A7", StatusCode::NOT_FOUND),
        ("%", StatusCode::NOT_FOUND),
    ] {
        let request = Request::get("/cart").header("cookie", format!("product={value}"));
        let answer = guarded.answer(request.body(Full::default()).unwrap()).await;
        assert_eq!(answer.status(), status, "{value}");
    }
}

#[tokio::test]
async fn ids_in_a_body_are_found_and_the_body_is_unchanged() {
    let by_body = route("/orders", &["json:/items/*/id"], &products());
    let mut guarded = Guarded::new(vec![set(by_body, |it| it.max_body_bytes = 100)]);
    for (body, expected) in [
        (r#"{"items":[{"id":1},{"id":"2"}]}"#.to_owned(), 200),
        (r#"{"items":[{"id":100}]}"#.to_owned(), 404),
        // Programs differ in which of these they take.
        (r#"{"items":[{"id":1,"id":100}]}"#.to_owned(), 404),
        (r#"{"items":[{"id":1}],"Items":[{"ID":100}]}"#.to_owned(), 404),
        (r#"{"items":[{"id":1}],"ITEMS":[{"Id":2}]}"#.to_owned(), 200),
        (r#"{"items":[]}"#.to_owned(), 200),
        ("no JSON".to_owned(), 200),
        (String::new(), 200),
        // A larger body passes unchanged.
        (format!(r#"{{"items":[{{"id":100}}],"x":"{}"}}"#, "x".repeat(200)), 200),
    ] {
        assert_eq!(guarded.answer(post("/orders", &body)).await.status(), expected, "{body}");
        let mut bodies = guarded.shop.bodies.lock().unwrap();
        assert_eq!(bodies.pop(), (expected == 200).then(|| Bytes::from(body)));
    }
}

#[tokio::test]
async fn a_404_counts_only_for_the_same_request() {
    // The service knows 7, but not all paths with it.
    let mut guarded = Guarded::new(vec![
        route("/products/{id}", &["path:id"], &products()),
        route("/products/{id}/*", &["path:id"], &products()),
    ]);
    guarded.shop.is_strict.store(true, Ordering::Relaxed);
    for (method, uri, header) in [
        ("GET", "/products/7/", "a"),
        ("GET", "//products/7", "a"),
        ("GET", "/x/../products/7", "a"),
        ("GET", "/products/7;x", "a"),
        ("GET", "/products/7?x", "a"),
        ("GET", "/products/7/nothing", "a"),
        ("POST", "/products/7", "a"),
        ("HEAD", "/products/7", "a"),
        ("GET", "/products/7", "b"),
    ] {
        let request = || {
            let request = Request::builder().method(method).uri(uri).header("token", header);
            request.body(Full::default()).unwrap()
        };
        assert_eq!(guarded.answer(request()).await.status(), 404, "{method} {uri}");
        let _ = guarded.answer(request()).await;
        let reached = if method == "POST" { 2 } else { 1 };
        assert_eq!(guarded.reached(), reached, "{method} {uri}: the second one is refused");
        let good = Request::get("/products/7").header("token", "a").body(Full::default()).unwrap();
        assert_eq!(guarded.answer(good).await.status(), 200, "after {method} {uri}");
        guarded.reached();
    }
}

#[tokio::test]
async fn paths_that_only_some_programs_understand_do_not_pass_the_guard() {
    let ids = texts(&["7", "a;b", "a/b", "a/../b"]);
    let reads = route("/products/{id}/*", &["path:id"], &ids);
    let mut guarded = Guarded::new(vec![set(reads, |it| it.methods = vec![Method::GET])]);
    for (known, absent) in [
        ("/products%2F7", "/products%2f999"),
        ("/products%5C7", "/products%5c999"),
        ("/PRODUCTS/7", "/Products/999"),
        ("/products/7/..", "/products/999/.."),
        ("/products/7;v=1", "/products/999;v=1"),
        ("/products/a;b", "/products/c;b"),
        ("/products/a%2Fb", "/products/c%2Fb"),
        ("/products/a%2F..%2Fb", "/products/c%2F..%2Fb"),
        ("/products/a%2f%2E%2e%2Fb", "/products/a%2F..%2Fb/../999"),
    ] {
        for (uri, expected) in [(known, 1), (absent, 0)] {
            for method in [Method::GET, Method::HEAD] {
                let request = Request::builder().method(method).uri(uri);
                let _ = guarded.answer(request.body(Full::default()).unwrap()).await;
                assert_eq!(guarded.reached(), expected, "{uri}");
            }
        }
    }
}

#[tokio::test]
async fn a_path_with_dots_passes_only_if_each_of_its_ids_exists() {
    let ids = products();
    let by_path = || route("/shops/{id}/*", &["path:id"], &ids);
    let by_body = || {
        let by_body = route("/shops/{shop}/*", &["path:shop", "json:/id"], &ids);
        set(by_body, |it| it.methods = vec![Method::POST])
    };
    let mut guarded = Guarded::new(vec![by_body(), by_path()]);
    for (uri, passes) in [
        ("/shops/1/../2/x", true),
        ("/shops/1/..%2F2/x", true),
        ("/shops/100/../1/x", false),
        ("/shops/1/../100/x", false),
        ("/shops/1/%2e%2E%5c100/x", false),
        ("/shops/100%2f..%2f1/x", false),
        ("/shops/1/..;a/100/x", false),
        // No route has the id `x/..`.
        ("/x/../shops/1/x", true),
    ] {
        for (method, body) in [(Method::GET, ""), (Method::POST, r#"{"id":3}"#)] {
            let request = Request::builder().method(&method).uri(uri).body(Full::from(body));
            let _ = guarded.answer(request.unwrap()).await;
            assert_eq!(guarded.reached(), usize::from(passes), "{method} {uri}");
        }
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_not_answered_as_an_absent_id() {
    let strict = set(route("/orders", &["json:/id"], &products()), |it| {
        it.max_body_bytes = 100;
        it.refuses_missing = true;
    });
    let mut guarded = Guarded::new(vec![strict]);
    for (body, expected) in [
        (r#"{"id":1}"#.to_owned(), 200),
        (format!(r#"{{"id":1,"x":"{}"}}"#, "x".repeat(200)), 413),
        ("{}".to_owned(), 404),
    ] {
        assert_eq!(guarded.answer(post("/orders", &body)).await.status(), expected, "{body}");
    }
}

#[tokio::test]
async fn a_streamed_body_keeps_its_bytes() {
    let mut guarded = Guarded::new(vec![route("/orders", &["json:/id"], &products())]);
    let body = Script::chunked(["{\"id\"", ":", "7}"].map(str::as_bytes));
    let answer = guarded.answer(Request::post("/orders").body(body).unwrap()).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(guarded.shop.bodies.lock().unwrap().pop().unwrap(), "{\"id\":7}");

    let body = Script::chunked([&b"{"[..]]).broken();
    let answer = guarded.answer(Request::post("/orders").body(body).unwrap()).await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    assert_eq!(answer.body().size_hint().exact(), Some(0));
}

#[tokio::test]
async fn a_false_positive_is_refused_after_its_first_404() {
    let ids = products();
    let mut guarded = Guarded::new(vec![route("/products/{id}", &["path:id"], &ids)]);
    assert_eq!(guarded.get("/products/500").await, 404);
    assert_eq!(guarded.reached(), 1);
    assert_eq!(guarded.get("/products/500").await, 404);
    assert_eq!(guarded.reached(), 0);
    // Once the id exists, it passes.
    ids.insert(b"500").unwrap();
    guarded.get("/products/500").await;
    assert_eq!(guarded.reached(), 1);
    assert_eq!(guarded.layer.routes()[0].counters.not_found(), 2);
}

#[tokio::test]
async fn a_shadow_route_only_counts() {
    let mut guarded = Guarded::of_products(|route| route.is_shadow = true);
    guarded.layer.routes()[0].ids()[0].ids.delete(b"5").unwrap();
    assert_eq!(guarded.get("/products/5").await, 200);
    assert_eq!(guarded.get("/products/1000").await, 404);
    let counters = &guarded.layer.routes()[0].counters;
    assert_eq!((counters.refused(RefuseReason::Absent), counters.misjudged()), (2, 1));
    assert_eq!(guarded.reached(), 2);
}

#[tokio::test]
async fn a_method_decides_about_the_route() {
    let mut guarded = Guarded::of_products(|route| route.methods = vec![Method::POST]);
    assert_eq!(guarded.get("/products/x").await, 200);
    assert_eq!(guarded.answer(post("/products/x", "")).await.status(), 404);
}

#[test]
fn a_service_that_is_not_ready_is_not_called() {
    #[derive(Clone)]
    struct Busy;
    impl Service<Request<GuardedBody<Full<Bytes>>>> for Busy {
        type Response = Response<Full<Bytes>>;
        type Error = Infallible;
        type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Pending
        }

        fn call(&mut self, _: Request<GuardedBody<Full<Bytes>>>) -> Self::Future {
            ready(Ok(Response::default()))
        }
    }
    let mut service = GuardLayer::new(Vec::new()).layer(Busy);
    let mut context = Context::from_waker(std::task::Waker::noop());
    let ready = Service::<Request<Full<Bytes>>>::poll_ready(&mut service, &mut context);
    assert!(ready.is_pending());
}
