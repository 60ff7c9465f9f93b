//! A route that would check nothing is refused when it is created.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::Empty;
use tamis_guard::source::{FileFormat, FileOptions, Source, SourceOptions};
use tamis_guard::{
    GuardLayer, IdPlace, IdSet, IdSetOptions, IdType, PathTemplate, Policies, Policy, Route,
    RouteError, SyncState,
};
use tamis_testing::wait_until;
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::service::{Script, Scripted, set};

fn products() -> Arc<IdSet> {
    Arc::new(IdSet::from_ids(IdType::integer(), 1..100).unwrap())
}

/// Returns the message about a route.
fn refused(path: &str, place: &str) -> String {
    Route::new(path, place, products()).expect_err(path).to_string()
}

/// Returns the status of a request for the absent product 777.
async fn status_of_absent(route: Route, method: &str, path: &str) -> StatusCode {
    let answer = Scripted::new(|_| std::future::ready(http::Response::new(Script::whole("a"))));
    let mut service = GuardLayer::new([route]).layer(answer);
    let request = Request::builder().method(method).uri(path);
    service.call(request.body(Empty::<bytes::Bytes>::new()).unwrap()).await.unwrap().status()
}

#[test]
fn a_place_that_the_path_lacks_is_refused_with_the_names_of_the_path() {
    let message = refused("/shops/{shop}/p/{id}", "path:oops");
    assert_eq!(
        message,
        "the path \"/shops/{shop}/p/{id}\" has no {oops}; the path has: path:shop, path:id"
    );
    // Names are exact, as in the router of the program.
    assert!(refused("/p/{id}", "path:ID").ends_with("has no {ID}; the path has: path:id"));
    assert!(refused("/p/*", "path:id").ends_with("write {id} in the path, such as /products/{id}"));
    let route = Route::new("/p/{id}", "path:id", products()).unwrap();
    assert!(matches!(route.with_id("path:no", products()), Err(RouteError::NoName { .. })));
}

#[test]
fn a_path_or_a_place_of_another_form_is_refused() {
    assert!(refused("/p/:id", "path:id").contains("write {id} to match one segment"));
    assert!(refused("/p/{*rest}", "path:rest").contains("write * for the rest of the path"));
    assert!(refused("/p/{id}", "{id}").contains("is not the place of an id"));
}

#[test]
fn a_route_takes_texts_and_parsed_values() -> Result<(), Box<dyn std::error::Error>> {
    let (path, place): (PathTemplate, IdPlace) = ("/p/{id}".parse()?, "path:id".parse()?);
    let ids = products();
    let route = Route::new(path.clone(), place.clone(), Arc::clone(&ids))?;
    let route = route.with_id("query:related", ids)?;
    assert_eq!((route.path(), &route.ids()[0].place), (&path, &place));
    assert_eq!((route.ids().len(), &*route.name), (2, "/p/{id}"));
    Ok(())
}

#[test]
fn a_set_without_a_source_is_refused() {
    let options = IdSetOptions::new(IdType::integer());
    let warming = || Arc::new(IdSet::new(options.clone()).unwrap());
    let ids = warming();
    ids.insert(7).unwrap();
    let error = Route::new("/p/{id}", "path:id", ids).unwrap_err().to_string();
    assert!(error.starts_with("the set of path:id has no running source"), "{error}");
    assert!(error.contains("IdSet::from_ids"), "{error}");

    // The program fills the set and sets its state.
    let ids = warming();
    ids.set_state(SyncState::Warming);
    assert!(Route::new("/p/{id}", "path:id", ids).is_ok());
    // The set fails closed.
    let policies = Policies { warming: Policy::Reject, ..Policies::default() };
    let closed = IdSet::new(IdSetOptions { policies, ..options.clone() }).unwrap();
    assert!(Route::new("/p/{id}", "path:id", closed).is_ok());
    // A source fills the set, although the source has read nothing yet.
    let ids = warming();
    let file = FileOptions::new("no such file", FileFormat::Lines);
    let source = Source::start(Arc::clone(&ids), file, SourceOptions::default());
    assert!(Route::new("/p/{id}", "path:id", Arc::clone(&ids)).is_ok());
    // A program that does not keep the source, such as `let _ = Source::start(...)`, stops it.
    drop(source);
    let error = Route::new("/p/{id}", "path:id", ids).unwrap_err().to_string();
    assert!(error.ends_with("keep the source"), "{error}");
}

#[test]
fn a_set_whose_source_was_dropped_after_its_first_sync_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("ids.txt");
    std::fs::write(&list, "1\n2\n").unwrap();
    let sync_and_drop = |policies| {
        let options = IdSetOptions { policies, ..IdSetOptions::new(IdType::integer()) };
        let ids = Arc::new(IdSet::new(options).unwrap());
        let file =
            FileOptions { quiet: Duration::ZERO, ..FileOptions::new(&list, FileFormat::Lines) };
        let source = Source::start(Arc::clone(&ids), file, SourceOptions::default());
        wait_until("synced", || ids.state() == SyncState::Synced);
        drop(source);
        assert_eq!(ids.state(), SyncState::Stale);
        ids
    };
    let ids = sync_and_drop(Policies::default());
    let error = Route::new("/p/{id}", "path:id", Arc::clone(&ids)).unwrap_err();
    assert!(matches!(error, RouteError::NoSource { .. }), "{error}");
    // A new source fills the set.
    let file = FileOptions::new(&list, FileFormat::Lines);
    let _source = Source::start(Arc::clone(&ids), file, SourceOptions::default());
    assert!(Route::new("/p/{id}", "path:id", ids).is_ok());
    // The policy of the present state decides whether unknown ids would pass.
    let policies = |warming, stale| Policies { warming, stale, ..Policies::default() };
    let ids = sync_and_drop(policies(Policy::Pass, Policy::Reject));
    assert!(Route::new("/p/{id}", "path:id", ids).is_ok());
    let ids = sync_and_drop(policies(Policy::Reject, Policy::Pass));
    assert!(Route::new("/p/{id}", "path:id", ids).is_err());
    // A program may keep the set itself.
    let ids = sync_and_drop(Policies::default());
    ids.set_state(SyncState::Stale);
    assert!(Route::new("/p/{id}", "path:id", ids).is_ok());
}

#[tokio::test]
async fn the_case_of_a_method_has_no_effect() {
    for (of_route, of_request) in
        [("get", "GET"), ("Get", "HEAD"), ("GET", "get"), ("GET", "head"), ("PoSt", "POST")]
    {
        let method: Method = of_route.parse().unwrap();
        let route = Route::new("/p/{id}", "path:id", products()).unwrap();
        let route = set(route, |it| it.methods = vec![method]);
        let status = status_of_absent(route, of_request, "/p/777").await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{of_route} {of_request}");
    }
}

#[tokio::test]
async fn the_spelling_of_a_path_has_no_effect() {
    for (path, of_request) in [
        ("/p/{id}/", "/p/777"),
        ("/p/{id}", "/p/777/"),
        ("/P//{id}", "/p/777"),
        ("/p/%3Anew/{id}", "/p/:new/777"),
    ] {
        let route = Route::new(path, "path:id", products()).unwrap();
        assert!(route.matches_path(of_request), "{path}");
        let status = status_of_absent(route, "GET", of_request).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
}
