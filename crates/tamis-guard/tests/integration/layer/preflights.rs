//! Cross-origin requests of browsers.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_REQUEST_METHOD,
    ORIGIN, VARY,
};
use tamis_guard::Cors;

use super::*;

const PAGE: &str = "https://shop.example.com";

/// Returns a route that refuses requests without an id.
fn strict(place: &str) -> Route {
    Route { refuses_missing: true, ..route("/products/{id}", &[place], &products()) }
}

#[tokio::test]
async fn a_preflight_passes() {
    for place in ["path:id", "header:x-id", "query:id", "cookie:id", "json:/id"] {
        let mut guarded = Guarded::new(vec![strict(place)]);
        let options = |origin: bool, method: bool| {
            let mut request = Request::options("/products/777");
            if origin {
                request = request.header(ORIGIN, PAGE);
            }
            if method {
                request = request.header(ACCESS_CONTROL_REQUEST_METHOD, "GET");
            }
            request.body(Full::default()).unwrap()
        };
        guarded.answer(options(true, true)).await;
        assert_eq!(guarded.reached(), 1, "{place}");
        // Other requests with this method have no special meaning.
        for (origin, method) in [(true, false), (false, true), (false, false)] {
            guarded.answer(options(origin, method)).await;
        }
        assert_eq!(guarded.reached(), 0, "{place}");
    }
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
        let mut route = Route { max_body_bytes: 10, ..strict("json:/id") };
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
