//! When an id is learnt, and what the client gets.

use http::{Method, Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use tamis_guard::{NotLearnt, RefuseReason};

use super::scripted::*;

const IN_JSON: &[(&str, &[&str])] = &[("/products", &["answer json:/data/id"])];

#[tokio::test]
async fn an_id_passes_before_the_client_has_read_it() {
    let parts = ["{\"data\":", "{\"id\":10", "00}", "}", "\n"];
    let guarded =
        Guarded::new(IN_JSON, move |_| created(Script::chunked(parts.map(str::as_bytes))));
    assert_eq!(guarded.get("/products/1000").await, 404);
    let answer = guarded.create().await;
    assert_eq!(answer.status(), 201);
    let mut body = answer.into_body();
    for (i, part) in parts.iter().enumerate() {
        // Each frame comes at once and unchanged.
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), part);
        // The fourth one has the last bracket.
        assert_eq!(guarded.knows("1000"), i >= 3, "{i}");
    }
    assert!(body.frame().await.is_none());
    assert_eq!(guarded.get("/products/1000").await, 201);
    assert_eq!(guarded.counts(), (1, vec![]));
}

#[tokio::test]
async fn the_length_and_the_trailers_of_an_answer_stay() {
    let text = "{\"data\":{\"id\":1000}}";
    let script = Script { trailers: true, ..Script::whole(text) };
    let guarded = Guarded::new(IN_JSON, move |_| created(script.clone()));
    let answer = guarded.create().await;
    let body = answer.into_body();
    assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
    assert!(!body.is_end_stream());
    let body = body.collect().await.unwrap();
    assert!(body.trailers().is_some());
    assert_eq!(body.to_bytes(), text);
    assert!(guarded.knows("1000"));
}

#[tokio::test]
async fn an_id_in_the_negative_cache_passes_after_it_is_created_again() {
    let guarded = Guarded::new(IN_JSON, |request| match *request.method() {
        Method::POST => created(Script::whole("{\"data\":{\"id\":500}}")),
        _ => Response::builder().status(404).body(Script::default()).unwrap(),
    });
    let refused = || guarded.layer.routes()[0].counters.refused(RefuseReason::Negative);
    std::thread::sleep(RECENT);
    for expected in [0, 1] {
        assert_eq!(guarded.get("/products/500").await, 404);
        assert_eq!(refused(), expected);
    }
    guarded.post("/products", "").await;
    guarded.get("/products/500").await;
    assert_eq!(refused(), 1, "the id exists again");
}

#[tokio::test]
async fn a_deleted_id_passes_after_it_is_created_again_and_a_late_deletion_does_not_hide_it() {
    let guarded = Guarded::new(IN_JSON, |_| created(Script::whole("{\"data\":{\"id\":\"07\"}}")));
    guarded.ids.delete(b"7").unwrap();
    assert!(!guarded.knows("7"));
    guarded.post("/products", "").await;
    assert!(guarded.knows("7"));
    // The source reports the deletion from before.
    guarded.ids.delete(b"7").unwrap();
    assert!(guarded.knows("7"));
}

#[tokio::test]
async fn only_successful_answers_to_the_methods_of_the_rule_teach() {
    for (method, status, learns) in [
        ("POST", 200, true),
        ("PUT", 202, true),
        ("POST", 299, true),
        ("GET", 200, false),
        ("DELETE", 200, false),
        ("PATCH", 200, false),
        ("POST", 302, false),
        ("POST", 400, false),
        ("POST", 404, false),
        ("POST", 500, false),
    ] {
        let guarded = Guarded::new(IN_JSON, move |_| {
            let body = Script::whole("{\"data\":{\"id\":1000}}");
            Response::builder().status(status).body(body).unwrap()
        });
        let request = Request::builder().method(method).uri("/products").body(Full::default());
        let (_, body) = guarded.send(request.unwrap()).await;
        assert_eq!(body, b"{\"data\":{\"id\":1000}}");
        assert_eq!(guarded.knows("1000"), learns, "{method} {status}");
        assert_eq!(guarded.counts(), (u64::from(learns), vec![]), "{method} {status}");
    }
}

#[tokio::test]
async fn answers_without_an_id_are_counted_by_their_reason() {
    let gzip = |encoding: &str| {
        let body = Script::whole("{\"data\":{\"id\":1000}}");
        Response::builder().header("content-encoding", encoding).body(body).unwrap()
    };
    let plain = |text: &str| created(Script::whole(text));
    let cut = Script::chunked([&b"{\"data\":{\"id\":1000}"[..]]).broken();
    let empty = Response::builder().status(204).body(Script::whole("")).unwrap();
    let large = format!("{{\"data\":{{\"id\":1000}},\"x\":\"{}\"}}", "x".repeat(70_000));
    let chunked = created(Script::chunked(large.as_bytes().chunks(1000)));
    let deep = format!("{{\"data\":{{\"id\":1000,\"x\":{}{}}}}}", "[".repeat(200), "]".repeat(200));
    for (answer, reason) in [
        (gzip("gzip"), Some(NotLearnt::Encoded)),
        (gzip("br, identity"), Some(NotLearnt::Encoded)),
        (gzip("Identity"), None),
        (empty, Some(NotLearnt::NoId)),
        (created(Script::chunked([])), Some(NotLearnt::Incomplete)),
        (plain("{}"), Some(NotLearnt::NoId)),
        (plain("{\"data\":{\"id\":null}}"), Some(NotLearnt::NoId)),
        (plain("{\"data\":{\"id\":\"seven\"}}"), Some(NotLearnt::NotAnId)),
        (plain("{\"data\":{\"id\":0}}"), Some(NotLearnt::NotAnId)),
        (plain("<html>{\"data\":{\"id\":1000}}"), Some(NotLearnt::NotJson)),
        (plain("{\"data\":{\"id\":1000]}"), Some(NotLearnt::NotJson)),
        (plain("{\"data\":{\"id\":1000}"), Some(NotLearnt::Incomplete)),
        (created(cut), Some(NotLearnt::Incomplete)),
        (plain(&large), Some(NotLearnt::TooLarge)),
        (chunked, Some(NotLearnt::TooLarge)),
        (plain(&deep), None),
    ] {
        let what = format!("{answer:?}");
        let answer = std::sync::Mutex::new(Some(answer));
        let guarded = Guarded::new(IN_JSON, move |_| answer.lock().unwrap().take().unwrap());
        guarded.post("/products", "").await;
        assert_eq!(guarded.knows("1000"), reason.is_none(), "{what}");
        let expected = reason.map_or((1, vec![]), |reason| (0, vec![(reason, 1)]));
        assert_eq!(guarded.counts(), expected, "{what}");
    }
}

#[tokio::test]
async fn an_answer_that_the_client_does_not_read_teaches_nothing() {
    let guarded = Guarded::new(IN_JSON, |_| created(Script::whole("{\"data\":{\"id\":1000}}")));
    drop(guarded.create().await);
    assert_eq!(guarded.counts(), (0, vec![(NotLearnt::Incomplete, 1)]));
}

#[tokio::test]
async fn an_answer_of_the_guard_teaches_nothing() {
    let mut refused = 0;
    let guarded = Guarded::with(
        &[("/products/{id}", &["path:id"])],
        |rule| rule.methods = Vec::new(),
        |_| created(Script::default()),
    );
    for _ in 0..3 {
        refused += usize::from(guarded.get("/products/1000").await == 404);
    }
    assert_eq!((refused, guarded.counts()), (3, (0, vec![])));
}
