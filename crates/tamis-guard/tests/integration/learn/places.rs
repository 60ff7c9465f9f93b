//! Where the id of a new row may be.

use http::{Request, Response};
use http_body_util::Full;
use tamis_guard::{GuardLayer, LearnRule, NotLearnt};

use super::scripted::*;
use crate::service::{route, set};

#[tokio::test]
async fn each_place_teaches_its_ids() {
    let json =
        "{\"data\":{\"id\":1000},\"items\":[{\"id\":1001},{\"id\":\"1002\"},{\"id\":\"x\"}]}";
    for (path, place, learnt) in [
        ("/products", "answer json:/data/id", vec!["1000"]),
        ("/products", "answer json:/items/*/id", vec!["1001", "1002"]),
        ("/products", "answer header:x-id", vec!["1003", "1004"]),
        ("/products", "answer header:location /shops/{shop}/products/{id}", vec!["1005"]),
        ("/shop/{name}", "path:name", vec!["1006"]),
        ("/products", "query:id", vec!["1007"]),
        ("/products", "header:x-new", vec!["1008"]),
        ("/products", "cookie:new", vec!["1009"]),
        ("/products", "json:/id", vec!["1010"]),
    ] {
        let guarded = Guarded::new(&[(path, &[place])], move |request| {
            assert_eq!(request.body(), "{\"id\":1010}");
            Response::builder()
                .header("x-id", "1003")
                .header("x-id", "1004")
                .header("location", "/shops/9/products/1005?new")
                .body(Script::whole(json))
                .unwrap()
        });
        let uri = if path == "/products" { "/products?id=1007" } else { "/shop/1006" };
        let request = Request::put(uri)
            .header("x-new", "1008")
            .header("cookie", "new=1009")
            .body(Full::from("{\"id\":1010}"))
            .unwrap();
        assert_eq!(guarded.send(request).await.1, json.as_bytes());
        for id in 1000..=1010 {
            let id = id.to_string();
            assert_eq!(guarded.knows(&id), learnt.contains(&&*id), "{place} {id}");
        }
        assert_eq!(guarded.counts(), (learnt.len() as u64, vec![]), "{place}");
    }
}

#[tokio::test]
async fn ids_in_the_head_are_learnt_before_the_body_of_the_answer() {
    let places = &["path:id", "answer header:x-id", "answer json:/other"][..];
    let guarded = Guarded::new(&[("/products/{id}", places)], |_| {
        Response::builder().header("x-id", "1001").body(Script::chunked([])).unwrap()
    });
    let request = Request::put("/products/1000").body(Full::default()).unwrap();
    let answer = guarded.answer(request).await;
    assert!(guarded.knows("1000") && guarded.knows("1001"));
    drop(answer);
    // Something was learnt, so the missing body does not count.
    assert_eq!(guarded.counts(), (2, vec![]));
}

#[tokio::test]
async fn all_rules_that_match_apply() {
    let rules: &[(&str, &[&str])] =
        &[("/products", &["answer json:/a"]), ("/*", &["answer json:/b"]), ("/x", &["json:/a"])];
    let guarded = Guarded::new(rules, |_| created(Script::whole("{\"a\":1000,\"b\":1001}")));
    guarded.post("/products", "").await;
    assert!(guarded.knows("1000") && guarded.knows("1001"));
    let learnt = guarded.layer.learn_rules().iter().map(|rule| rule.counters.learnt());
    assert_eq!(learnt.collect::<Vec<_>>(), [1, 1, 0]);
}

#[tokio::test]
async fn each_rule_has_its_own_limit() {
    let rules: &[(&str, &[&str])] = &[
        ("/products", &["answer json:/id", "json:/id"]),
        ("/products", &["answer json:/id", "json:/other"]),
    ];
    let text = format!("{{\"x\":\"{}\",\"id\":1000}}", "x".repeat(500));
    let answer = text.clone();
    let set = |rule: &mut LearnRule| {
        let is_first = rule.places[1].to_string() == "json:/id";
        rule.max_body_bytes = if is_first { 400 } else { 600 };
    };
    let guarded = Guarded::with(rules, set, move |request| {
        assert_eq!(request.body().len(), 520);
        created(Script::whole(&answer))
    });
    let request = text.replace("1000", "\"1001\"");
    assert_eq!(guarded.post("/products", &request[..]).await.1, text.as_bytes());
    let rules = guarded.layer.learn_rules();
    assert_eq!(rules[0].counters.not_learnt(NotLearnt::TooLarge), 1);
    assert_eq!((rules[0].counters.learnt(), rules[1].counters.learnt()), (0, 1));
    assert!(!guarded.knows("1001"));
}

#[tokio::test]
async fn an_upstream_without_a_body_teaches_by_the_request() {
    let guarded = Guarded::new(&[("/products", &["json:/id"])], |_| {
        Response::builder().status(204).body(Script::whole("")).unwrap()
    });
    guarded.post("/products", "{\"id\":1000}").await;
    assert!(guarded.knows("1000"));
    for body in ["", "no JSON", "[", "{\"id\":{}}"] {
        assert_eq!(guarded.post("/products", body).await.0, 204);
    }
    assert_eq!(guarded.counts(), (1, vec![(NotLearnt::NoId, 4)]));
}

#[tokio::test]
async fn a_rule_does_not_change_the_limit_of_a_route() {
    let ids = products();
    let route = set(route("/products", &["json:/id"], &ids), |it| it.max_body_bytes = 100);
    let place = "json:/id".parse().unwrap();
    let rule = LearnRule::new("/products".parse().unwrap(), vec![place], ids);
    let guarded = Guarded::of(GuardLayer::new(vec![route]).with_learn(vec![rule]), |_| {
        created(Script::whole(""))
    });
    // A small body with an unknown id is refused, and a larger one passes unchanged.
    assert_eq!(guarded.post("/products", "{\"id\":1000}").await.0, 404);
    let large = format!("{{\"id\":1000,\"x\":\"{}\"}}", "x".repeat(100));
    assert_eq!(guarded.post("/products", &large).await.0, 201);
    // The rule has learnt the id.
    assert_eq!(guarded.post("/products", "{\"id\":1000}").await.0, 201);
}
