//! Stories of a site, for each proxy.

use std::time::{Duration, Instant};

use tamis_testing::wait_until;

use crate::proxies::{Caddy, Envoy, Haproxy, Nginx, OtherProxy, WhileDown};
use crate::site::{Response, Site};

const REFUSAL: &str = "{\"code\":404,\"message\":\"产品不存在!\"}";
/// The time for two responses while the guard is down. The limit of a question is 2 s in the tests.
const LIMIT: Duration = Duration::from_secs(20);

#[track_caller]
fn is_refused<P: OtherProxy>(response: &Response) {
    assert_eq!((response.status, &*response.body), (404, REFUSAL), "{}: {response:?}", P::NAME);
    assert!(response.head.contains("content-type: application/json"), "{response:?}");
    assert!(response.head.contains("cache-control: no-store"), "{response:?}");
}

#[track_caller]
fn passes<P: OtherProxy>(site: &Site<P>, target: &str) {
    let response = site.get(target);
    let expected = (200, format!("GET {target} "));
    assert_eq!((response.status, response.body), expected, "{}", P::NAME);
}

/// Checks that only requests for existing ids reach the shop, and that the client gets the JSON of the article.
pub fn an_absent_id_gets_the_refusal_and_other_requests_reach_the_shop<P: OtherProxy>() {
    let site = Site::<P>::start(WhileDown::Refuse);
    let body = |response: Response| (response.status, response.body);
    assert_eq!(
        body(site.get("/pms/productInfo/7?a=1")),
        (200, "GET /pms/productInfo/7?a=1 ".into())
    );
    assert_eq!(body(site.get("/cart/777")), (200, "GET /cart/777 ".into()));
    assert_eq!(body(site.get("/forbidden")), (403, "GET /forbidden ".into()));
    let posted = site.send("POST", "/pms/productInfo/7", "", "{\"count\":1}");
    assert_eq!(body(posted), (200, "POST /pms/productInfo/7 {\"count\":1}".into()));
    for target in [
        "/pms/productInfo/777",
        "/pms/productInfo/777?a=1",
        "/PMS/productInfo/%37%37%37",
        "/pms//productInfo/777/",
        "/cart/../pms/productInfo/777",
        "/pms/productInfo/abc",
    ] {
        is_refused::<P>(&site.get(target));
    }
    let put = site.send("PUT", "/pms/productInfo/777", "", "{\"count\":1}");
    is_refused::<P>(&put);
    assert!(!site.has_reached_shop("productInfo/777") && !site.has_reached_shop("%37"));
}

/// Checks that no header of a client changes the request about which the guard decides.
pub fn a_client_cannot_choose_the_request_by_headers<P: OtherProxy>() {
    let site = Site::<P>::start(WhileDown::Refuse);
    let uri = "/pms/productInfo/7";
    for name in
        ["X-Original-URI", "X-Forwarded-Uri", "X_Original_URI", "X-Original-Url", "X-Rewrite-Url"]
    {
        for headers in [
            format!("{name}: {uri}\r\n"),
            format!("{name}: {uri}\r\n{name}: {uri}\r\n"),
            format!("{name}: {uri}\r\nConnection: {name}\r\n"),
            format!(
                "{name}: {uri}\r\nX-Original-Method: OPTIONS\r\nX-Forwarded-Method: OPTIONS\r\n"
            ),
        ] {
            is_refused::<P>(&site.send("GET", "/pms/productInfo/777", &headers, ""));
            let response = site.send("GET", uri, &headers, "");
            assert_eq!(response.status, 200, "{headers}: {response:?}");
        }
    }
    assert!(!site.has_reached_shop("777"));
}

/// Checks that the guard decides about the same path as the shop serves, over HTTP/2 without TLS.
fn http2_requests_are_decided_by_their_path<P: OtherProxy>() {
    let site = Site::<P>::start(WhileDown::Refuse);
    let passes = |authority: &str, path: &str, more: &[(&str, &str)]| {
        let fields =
            [(":method", "GET"), (":scheme", "http"), (":authority", authority), (":path", path)];
        site.passes_http2(&[&fields[..], more].concat())
    };
    assert!(passes("shop.example", "/pms/productInfo/7?a=1", &[]), "{}", P::NAME);
    assert!(site.has_reached_shop_exactly("/pms/productInfo/7?a=1"));
    let absent = "/pms/productInfo/777";
    for authority in [
        "shop.example",
        "a?",
        "a#",
        "a/",
        "a/?x=",
        "/pms/productInfo/7?",
        "a@b",
        "a:8080?",
        "[::1]?",
        "",
        " ",
        "*",
    ] {
        // HAProxy moves a path out of the authority, and the shop then serves that path.
        _ = passes(authority, absent, &[]);
    }
    for path in [
        "http://a/pms/productInfo/777",
        "//pms/productInfo/777",
        "/pms/productInfo/777#",
        "/pms/productInfo/777?#/pms/productInfo/7",
        "/cart/../pms/productInfo/777",
        "/pms/productInfo/%37%37%37",
        "pms/productInfo/777",
        "",
    ] {
        // A proxy may forward a path that no route matches.
        _ = passes("shop.example", path, &[]);
    }
    for more in [
        [(":path", "/pms/productInfo/7")],
        [("x-original-uri", "/pms/productInfo/7")],
        [("x-forwarded-uri", "/pms/productInfo/7")],
        [("host", "a?")],
        [("te", "trailers, /pms/productInfo/7")],
    ] {
        assert!(!passes("shop.example", absent, &more), "{}: {more:?}", P::NAME);
    }
    for target in site.targets() {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        assert!(!path.contains("777") && !path.contains("%37"), "{}: {target}", P::NAME);
    }
}

#[test]
fn http2_requests_to_haproxy_are_decided_by_their_path() {
    http2_requests_are_decided_by_their_path::<Haproxy>();
}

#[test]
fn http2_requests_to_envoy_are_decided_by_their_path() {
    http2_requests_are_decided_by_their_path::<Envoy>();
}

/// Checks that requests that programs read differently, and requests with many headers, do not reach the shop.
pub fn hostile_requests_do_not_reach_the_shop<P: OtherProxy>() {
    let site = Site::<P>::start(WhileDown::Pass);
    for target in ["/pms/productInfo/777#/x", "/pms/productInfo/777#/../7"] {
        let response = site.get(target);
        // Caddy encodes the number sign, so the guard and the shop read the same target.
        let is_encoded = response.body.contains("777%23");
        assert!(is_encoded || matches!(response.status, 400 | 404), "{}: {response:?}", P::NAME);
    }
    assert!(!site.has_reached_shop("777#"), "{}", P::NAME);
    for count in [95, 100, 101, 200] {
        let headers: Vec<String> = (0..count).map(|i| format!("x-{i}: a\r\n")).collect();
        let response = site.send("GET", "/pms/productInfo/777", &headers.concat(), "");
        let is_refused = matches!(response.status, 400 | 404 | 431 | 500);
        assert!(is_refused, "{}: {count} headers: {response:?}", P::NAME);
    }
    let long = format!("cookie: a={}\r\n", "x".repeat(7000));
    let response = site.send("GET", "/pms/productInfo/777", &long, "");
    assert_eq!(response.status, 404, "{}: {response:?}", P::NAME);
    passes(&site, "/pms/productInfo/7");
    assert!(!site.has_reached_shop_exactly("/pms/productInfo/777"), "{}", P::NAME);
}

/// Makes the guard fail in each way, and checks each response with `check`.
fn each_failure<P: OtherProxy>(while_down: WhileDown, check: impl Fn(&Site<P>)) {
    let failures: [fn(&mut Site<P>); 4] = [
        |site| site.freeze_guard(),
        |site| site.kill_guard(),
        |site| site.answer_questions_with("HTTP/1.1 200 OK\r\ncontent-le"),
        |site| {
            let failure = "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n";
            site.answer_questions_with(failure);
        },
    ];
    for (number, fail) in failures.into_iter().enumerate() {
        // nginx and Caddy treat an answer with the status 500 as an error of the request, so these proxies do not fail
        // open.
        let is_answer = number == 3 && matches!(P::NAME, "nginx" | "caddy");
        if is_answer && while_down == WhileDown::Pass {
            continue;
        }
        let mut site = Site::<P>::start(while_down);
        is_refused::<P>(&site.get("/pms/productInfo/777"));
        fail(&mut site);
        let start = Instant::now();
        check(&site);
        let time = start.elapsed();
        assert!(time < LIMIT, "{} took {time:?} after failure {number}", P::NAME);
    }
}

/// Checks that requests reach the shop while the guard is down, and that the guard decides again after its start.
pub fn requests_pass_while_the_guard_is_down_if_the_proxy_fails_open<P: OtherProxy>() {
    each_failure::<P>(WhileDown::Pass, |site| {
        passes(site, "/pms/productInfo/7");
        passes(site, "/pms/productInfo/777");
    });
    let mut site = Site::<P>::start(WhileDown::Pass);
    site.kill_guard();
    passes(&site, "/pms/productInfo/777");
    site.start_guard("");
    wait_until(format_args!("{} asks the guard again", P::NAME), || {
        site.get("/pms/productInfo/777").status == 404
    });
}

/// Checks that no request reaches the shop while the guard is down.
pub fn no_request_passes_while_the_guard_is_down_if_the_proxy_fails_closed<P: OtherProxy>() {
    each_failure::<P>(WhileDown::Refuse, |site| {
        for target in ["/pms/productInfo/8", "/pms/productInfo/777"] {
            let response = site.get(target);
            assert!(matches!(response.status, 403 | 500..=504), "{}: {response:?}", P::NAME);
        }
        assert!(!site.has_reached_shop("productInfo"), "{}", P::NAME);
    });
}

/// Checks that a route with `shadow = true` refuses nothing.
pub fn a_shadow_route_refuses_nothing<P: OtherProxy>() {
    let mut site = Site::<P>::start(WhileDown::Refuse);
    site.kill_guard();
    site.start_guard("shadow = true\n");
    wait_until(format_args!("{} asks the guard again", P::NAME), || {
        site.get("/pms/productInfo/777").body == "GET /pms/productInfo/777 "
    });
}

/// Instantiates all stories for a proxy.
macro_rules! stories {
    ($module:ident, $proxy:ty) => {
        mod $module {
            use super::*;

            #[test]
            fn an_absent_id_gets_the_refusal_and_other_requests_reach_the_shop() {
                super::an_absent_id_gets_the_refusal_and_other_requests_reach_the_shop::<$proxy>();
            }

            #[test]
            fn a_client_cannot_choose_the_request_by_headers() {
                super::a_client_cannot_choose_the_request_by_headers::<$proxy>();
            }

            #[test]
            fn hostile_requests_do_not_reach_the_shop() {
                super::hostile_requests_do_not_reach_the_shop::<$proxy>();
            }

            #[test]
            fn requests_pass_while_the_guard_is_down_if_the_proxy_fails_open() {
                super::requests_pass_while_the_guard_is_down_if_the_proxy_fails_open::<$proxy>();
            }

            #[test]
            fn no_request_passes_while_the_guard_is_down_if_the_proxy_fails_closed() {
                super::no_request_passes_while_the_guard_is_down_if_the_proxy_fails_closed::<$proxy>();
            }

            #[test]
            fn a_shadow_route_refuses_nothing() {
                super::a_shadow_route_refuses_nothing::<$proxy>();
            }
        }
    };
}

stories!(nginx, Nginx);
stories!(haproxy, Haproxy);
stories!(caddy, Caddy);
stories!(envoy, Envoy);
