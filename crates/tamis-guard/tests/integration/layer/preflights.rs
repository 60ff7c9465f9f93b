//! Cross-origin requests of browsers.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use tamis_guard::Cors;

use super::*;

const PAGE: &str = "https://shop.example.com";

/// Returns a route that refuses requests without an id.
fn strict(place: &str) -> Route {
    set(route("/products/{id}", &[place], &products()), |it| it.refuses_missing = true)
}

fn preflight(target: &str, method: &str) -> Request<Full<Bytes>> {
    let request = Request::options(target).header(ORIGIN, PAGE);
    let request = request.header(ACCESS_CONTROL_REQUEST_HEADERS, "content-type,x-id");
    request.header(ACCESS_CONTROL_REQUEST_METHOD, method).body(Full::default()).unwrap()
}

#[tokio::test]
async fn a_preflight_of_an_id_that_it_does_not_have_passes() {
    for place in ["header:x-id", "cookie:id", "json:/id"] {
        let mut guarded = Guarded::new(vec![strict(place)]);
        guarded.answer(preflight("/products/777", "GET")).await;
        assert_eq!(guarded.reached(), 1, "{place}");
        // Other requests with this method have no special meaning.
        for (origin, method) in [(true, false), (false, true), (false, false)] {
            let mut request = preflight("/products/777", "GET");
            if !origin {
                request.headers_mut().remove(ORIGIN);
            }
            if !method {
                request.headers_mut().remove(ACCESS_CONTROL_REQUEST_METHOD);
            }
            guarded.answer(request).await;
        }
        assert_eq!(guarded.reached(), 0, "{place}");
    }
}

#[tokio::test]
async fn preflights_of_absent_ids_do_not_reach_the_program() {
    for (place, target) in [
        ("path:id", "/products/777"),
        ("query:id", "/products/1?id=777"),
        ("path:id", "/products/x"),
    ] {
        for cors in [None, Some(Cors::default())] {
            let mut route = strict(place);
            route.methods = vec![Method::GET];
            route.refusal.cors.clone_from(&cors);
            let mut guarded = Guarded::new(vec![route]);
            let answer = guarded.answer(preflight(target, "GET")).await;
            assert_eq!(guarded.reached(), 0, "{place} {cors:?}");
            let text = |name| answer.headers().get(name).map(|it| it.to_str().unwrap());
            if cors.is_none() {
                assert_eq!(answer.status(), 404);
                assert_eq!(text(ACCESS_CONTROL_ALLOW_ORIGIN), None);
                continue;
            }
            // The browser sends the request, and the page reads the 404.
            assert_eq!(answer.status(), 204);
            assert_eq!(text(ACCESS_CONTROL_ALLOW_ORIGIN), Some("*"));
            assert_eq!(text(ACCESS_CONTROL_ALLOW_METHODS), Some("GET"));
            assert_eq!(text(ACCESS_CONTROL_ALLOW_HEADERS), Some("content-type,x-id"));
            assert_eq!(text(ACCESS_CONTROL_MAX_AGE), Some("0"));
            let request = Request::get(target).header(ORIGIN, PAGE).body(Full::default()).unwrap();
            let answer = guarded.answer(request).await;
            assert_eq!(answer.status(), 404);
            assert!(answer.headers().contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
            // The route does not guard this method.
            guarded.answer(preflight(target, "PUT")).await;
            assert_eq!(guarded.reached(), 1);
        }
    }
}

#[tokio::test]
async fn preflights_of_known_ids_reach_the_program() {
    let route = strict("path:id");
    let route = route.with_id("header:x-id", products()).unwrap();
    let mut guarded = Guarded::new(vec![route]);
    guarded.answer(preflight("/products/1", "GET")).await;
    assert_eq!(guarded.reached(), 1);
    let answer = guarded.answer(preflight("/products/777", "GET")).await;
    assert_eq!((answer.status().as_u16(), guarded.reached()), (404, 0));
    // Any of the ids is enough, and the one in the header may exist.
    let route = set(strict("path:id"), |it| it.required = Required::Any);
    let route = route.with_id("header:x-id", products()).unwrap();
    let mut guarded = Guarded::new(vec![route]);
    guarded.answer(preflight("/products/777", "GET")).await;
    assert_eq!(guarded.reached(), 1);
}

#[tokio::test]
async fn a_page_can_read_a_refusal() {
    let origins = vec![HeaderValue::from_static(PAGE)];
    for (cors, origin, allowed, credentials, varies) in [
        (None, PAGE, None, false, false),
        (Some(Cors::default()), PAGE, Some("*"), false, false),
        (
            Some(Cors { origins: origins.clone(), has_credentials: true }),
            PAGE,
            Some(PAGE),
            true,
            true,
        ),
        (Some(Cors { origins, has_credentials: true }), "https://other.com", None, false, true),
    ] {
        let mut route = set(strict("json:/id"), |it| it.max_body_bytes = 10);
        route.refusal.cors = cors;
        let mut guarded = Guarded::new(vec![route]);
        for (body, status) in [(r#"{"id":7777}"#, 413), (r#"{"id":777}"#, 404)] {
            let request = Request::post("/products/1").header(ORIGIN, origin);
            let answer = guarded.answer(request.body(Full::from(body)).unwrap()).await;
            assert_eq!(answer.status(), status);
            let text = |name| answer.headers().get(name).map(|it| it.to_str().unwrap());
            assert_eq!(text(ACCESS_CONTROL_ALLOW_ORIGIN), allowed, "{origin}");
            assert_eq!(text(ACCESS_CONTROL_ALLOW_CREDENTIALS).is_some(), credentials, "{origin}");
            assert_eq!(text(VARY).is_some(), varies, "{origin}");
        }
    }
}
