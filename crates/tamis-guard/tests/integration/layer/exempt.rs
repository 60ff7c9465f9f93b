//! Exempt routes: no spelling of a path hides an id from a later route.

use super::*;
use crate::checker::Random;

/// Returns the exempt routes before a route that checks texts.
fn shop(has_exemptions: bool) -> Guarded {
    let ids = texts(&["7", "static", "p"]);
    let by_path = || route("/p/{id}/*", &["path:id"], &ids);
    let exempt =
        ["/p/search", "/p/item-{n}.html", "/static/*"].map(|it| Route::exempt(it).unwrap());
    let exempt = exempt.into_iter().filter(|_| has_exemptions);
    Guarded::new(exempt.chain([by_path()]).collect())
}

#[tokio::test]
async fn an_exempt_path_passes_without_a_check() {
    let mut guarded = shop(true);
    let passing = ["/p/search", "/p/search/", "/p/search?q=1", "/p/item-9.html", "/static/a%20b"];
    for uri in passing.into_iter().chain(["/p/7", "/p/7/x"]) {
        guarded.get(uri).await;
        assert_eq!(guarded.reached(), 1, "{uri}");
    }
    assert_eq!(guarded.layer.routes()[0].counters.passed(PassReason::NoId), 3);
    // An exempt route is not idle, although the route has checked no id.
    let idle: Vec<_> = guarded.layer.idle_routes().map(|route| &*route.name).collect();
    assert_eq!(idle, [""; 0]);
}

#[tokio::test]
async fn an_exemption_is_no_bypass_for_another_interpretation_of_the_path() {
    let mut guarded = shop(true);
    for uri in [
        "/p/search;/../999",
        "/p/search%2F..%2F999",
        "/p/search%2f%2E%2e%2f999",
        "/p/search/../999",
        "/p/search/..;x/999",
        "/p/search\\..\\999",
        "/p/search%5c..%5C999",
        "/p/search/../search/../999",
        "/p/x/../search/../999",
        // A program that is not a servlet finds the id `search;1`.
        "/p/search;1",
        "/p/search;/",
        "/p/search%3B1",
        // A program that distinguishes the case finds the id `Search`.
        "/p/Search",
        // Some programs choose the route before decoding.
        "/p/%73earch",
        "/p/search%00",
        "/p/search%20",
        "/p//search",
        "/p/./search",
        "/p/search/999",
        "/p/item-9.html;1",
        "/p/item-9%2Ehtml",
        "/p/item-%2F..%2F999.html",
        "/static/../p/999",
        "/static/..;/p/999",
        "/static/..;a=b/p/999",
        "/static/%2e%2e/p/999",
        "/static/..%2Fp%2F999",
        "/static%2F..%2Fp%2F999",
        "/static/..%5Cp%5c999",
        "/static\\..\\p\\999",
        "/static/x/../../p/999",
        "/p/999/../../static/a",
    ] {
        assert_eq!(guarded.get(uri).await, StatusCode::NOT_FOUND, "{uri}");
        assert_eq!(guarded.reached(), 0, "{uri}");
    }
}

#[tokio::test]
async fn an_exemption_changes_the_decision_about_its_own_spellings_only() {
    let tokens = [
        "/p",
        "/search",
        "/static",
        "/item-9.html",
        "/7",
        "/999",
        "/",
        "..",
        ".",
        ";",
        ";x",
        "%2F",
        "%5c",
        "\\",
        "%2e",
        "search",
        "S",
        "%73",
        "static",
        "/..",
        "//",
        "/..;/p/999",
        "/../p/999",
        "%2F..%2Fp%2F999",
    ];
    let (mut guarded, mut without) = (shop(true), shop(false));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut exempted = 0;
    for _ in 0..20_000 {
        let mut path = "/".to_owned();
        for _ in 0..random.below(7) {
            path.push_str(tokens[random.below(tokens.len() as u64) as usize]);
        }
        if path.starts_with("//") {
            path.remove(0);
        }
        let Ok(uri) = path.parse::<http::Uri>() else { continue };
        let (uri, path) = (uri.to_string(), uri.path().to_owned());
        guarded.get(&uri).await;
        without.get(&uri).await;
        let (passes, passes_without) = (guarded.reached() == 1, without.reached() == 1);
        if passes != passes_without {
            let spelling = path.strip_suffix('/').unwrap_or(&path);
            assert!(passes && ["/p/search", "/p/item-9.html"].contains(&spelling), "{path}");
            exempted += 1;
        }
    }
    assert!(exempted > 5, "{exempted}");
}

#[tokio::test]
async fn the_methods_of_an_exempt_route_limit_the_exemption() {
    let search = set(Route::exempt("/p/search").unwrap(), |it| it.methods = vec![Method::GET]);
    let mut guarded = Guarded::new(vec![search, route("/p/{id}", &["path:id"], &texts(&[]))]);
    for (method, reaches) in
        [(Method::GET, 1), (Method::HEAD, 1), (Method::POST, 0), (Method::OPTIONS, 0)]
    {
        let request = Request::builder().method(&method).uri("/p/search");
        let _ = guarded.answer(request.body(Full::default()).unwrap()).await;
        assert_eq!(guarded.reached(), reaches, "{method}");
    }
}

#[test]
fn a_route_with_an_id_is_not_exempt() {
    let search = Route::exempt("/p/search").unwrap();
    assert!(search.is_exempt() && search.ids().is_empty() && !search.needs_body());
    let search = search.with_id("query:shop", products()).unwrap();
    assert!(!search.is_exempt() && search.matches_path("/p/SEARCH"));
    assert!(Route::exempt("/p/:id").is_err());
}
