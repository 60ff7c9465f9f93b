//! The first matching route decides, and a path with several interpretations must pass each route.

use super::*;

/// Returns a set of the integers below `end`.
fn below(end: i64) -> Arc<IdSet> {
    known(IdSetOptions { recent_for: Duration::ZERO, ..IdSetOptions::new(integers()) }, 1..end)
}

#[tokio::test]
async fn the_first_route_in_the_written_order_decides() {
    let methods = |route: Route, method: Method| set(route, |it| it.methods = vec![method]);
    let mut guarded = Guarded::new(vec![
        Route::exempt("/p/search").unwrap(),
        methods(route("/p/{id}", &["path:id"], &below(10)), Method::GET),
        methods(route("/p/{id}", &["query:owner"], &below(20)), Method::POST),
        route("/p/{shop}/{id}", &["path:shop", "path:id"], &below(30)),
        set(route("/p/*", &["query:id"], &below(40)), |it| it.refuses_missing = true),
    ]);
    for (method, uri, passes) in [
        ("GET", "/p/search", true),
        ("GET", "/p/9", true),
        ("GET", "/p/10", false),
        ("HEAD", "/p/10", false),
        ("POST", "/p/10?owner=19", true),
        ("POST", "/p/9?owner=20", false),
        // The first route with the method decides.
        ("PUT", "/p/9", false),
        ("PUT", "/p/9?id=39", true),
        ("GET", "/p/29/29", true),
        ("GET", "/p/29/30", false),
        ("GET", "/p/search/29", false),
        ("GET", "/p/1/2/3?id=39", true),
        ("GET", "/p/1/2/3?id=40", false),
        ("GET", "/p", false),
        ("GET", "/q/999", true),
    ] {
        let request = Request::builder().method(method).uri(uri);
        let _ = guarded.answer(request.body(Full::default()).unwrap()).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{method} {uri}");
    }
}

#[tokio::test]
async fn a_name_that_is_no_id_hides_no_encoded_slash() {
    // For a program that decodes slashes first, the path `/p/a%2F999-x/7` is `/p/a/999-x/7`.
    let mut guarded = Guarded::new(vec![
        route("/p/{category}/{id}", &["path:id"], &products()),
        route("/p/{category}/{id}-{slug}/*", &["path:id"], &products()),
        route("/q/{slug}-{id}", &["path:id"], &products()),
        route("/q/{category}/{id}-{slug}", &["path:id"], &products()),
    ]);
    for (uri, passes) in [
        ("/p/a/7", true),
        ("/p/a%2F9-x/7", true),
        ("/p/a%2F999-x/7", false),
        ("/p/a%5c999-x/7", false),
        ("/q/x%2F9-7", true),
        ("/q/x%2F999-7", false),
        ("/q/x%2F9-999", false),
    ] {
        guarded.get(uri).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{uri}");
    }
}

#[tokio::test]
async fn a_shadow_route_hides_no_refusal_of_another_route() {
    let mut guarded = Guarded::new(vec![
        set(route("/q/{id}/*", &["path:id"], &products()), |it| it.is_shadow = true),
        route("/p/{id}/*", &["path:id"], &products()),
    ]);
    for (uri, passes, of_shadow) in [
        ("/q/999", true, 1),
        ("/p/7/../../q/999", true, 2),
        ("/p/999/../../q/7", false, 2),
        ("/p/999/../../q/999", false, 2),
        ("/q/999/../../p/999", false, 2),
        ("/q/999/../../p/7", true, 3),
    ] {
        guarded.get(uri).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{uri}");
        let counters = &guarded.layer.routes()[0].counters;
        assert_eq!(counters.refused(RefuseReason::Absent), of_shadow, "{uri}");
    }
}

#[tokio::test]
async fn an_id_with_slashes_passes_although_another_route_matches_its_parts() {
    let ids = texts(&["a/b", "a\\b", "a/../b", "7"]);
    let mut guarded = Guarded::new(vec![route("/products/{id}/*", &["path:id"], &ids)]);
    for (uri, passes) in [
        ("/products/a%2Fb", true),
        ("/products/a%5Cb", true),
        ("/products/a%2F..%2Fb", true),
        ("/products/a%2Fc", false),
        ("/products/7%2F..%2F999", false),
        // The id that exists ends at the semicolon, and another program finds the id 999.
        ("/products/7;x%2F..%2F999", false),
    ] {
        guarded.get(uri).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{uri}");
    }
}
