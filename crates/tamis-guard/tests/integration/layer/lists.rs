//! Several ids at one place: lists with a separator, and JSON lists.

use super::*;

/// Returns a guard whose ids are separated by commas.
fn by_commas(path: &str, place: &str, required: Required) -> Guarded {
    let route = set(route(path, &[place], &products()), |it| {
        it.list_separator = Some(b',');
        it.required = required;
    });
    Guarded::new(vec![route])
}

#[tokio::test]
async fn each_id_of_a_list_is_checked() {
    for (path, place, prefix) in [
        ("/p/{ids}", "path:ids", "/p/"),
        ("/p/{ids}.json", "path:ids", "/p/"),
        ("/p", "query:ids", "/p?ids="),
        ("/p", "header:x-ids", "/p"),
        ("/p", "cookie:ids", "/p"),
        ("/p", "form:ids", "/p"),
        ("/p", "json:/ids", "/p"),
    ] {
        for (list, all, any) in [
            ("1,2", true, true),
            ("1,999", false, true),
            ("999,1", false, true),
            ("998,999", false, false),
            ("1", true, true),
            ("1,,2,", true, true),
            (",", true, true),
            ("1,x", false, true),
            ("1;2", false, false),
        ] {
            // For a servlet, a value in a path ends at the semicolon.
            if list == "1;2" && (prefix == "/p/" || place.starts_with("cookie")) {
                continue;
            }
            for (required, passes) in [(Required::All, all), (Required::Any, any)] {
                let mut guarded = by_commas(path, place, required);
                let suffix = if path.ends_with(".json") { ".json" } else { "" };
                let uri = match prefix {
                    "/p" => prefix.to_owned(),
                    _ => format!("{prefix}{}{suffix}", list.replace(',', "%2C")),
                };
                let body = match place {
                    "form:ids" => format!("a=b&ids={list}"),
                    "json:/ids" => format!("{{\"ids\":\"{list}\"}}"),
                    _ => String::new(),
                };
                let request = Request::post(uri)
                    .header("x-ids", list.replace(',', " , "))
                    .header("cookie", format!("ids={}", list.replace(',', "%2c")));
                let _ = guarded.answer(request.body(Full::from(body)).unwrap()).await;
                assert_eq!(guarded.reached(), usize::from(passes), "{path} {place} {list}");
            }
        }
    }
}

#[tokio::test]
async fn a_value_is_a_list_only_with_a_separator() {
    let ids = texts(&["a,b", "c"]);
    let mut guarded = Guarded::new(vec![route("/p", &["query:id"], &ids)]);
    for (uri, passes) in [("/p?id=a,b", true), ("/p?id=c,c", false), ("/p?id=c", true)] {
        guarded.get(uri).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{uri}");
    }
    // A text keeps its spaces, except in a header.
    let with_list = set(route("/p", &["query:id"], &ids), |it| it.list_separator = Some(b','));
    let mut guarded = Guarded::new(vec![with_list]);
    for (uri, passes) in [("/p?id=c,c", true), ("/p?id=c,+c", false), ("/p?id=a,b", false)] {
        guarded.get(uri).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{uri}");
    }
    // A cookie passes in its original form too.
    let ids = texts(&["a%20b", "c d"]);
    let with_list = set(route("/p", &["cookie:id"], &ids), |it| it.list_separator = Some(b','));
    let mut guarded = Guarded::new(vec![with_list]);
    for (value, passes) in [("a%20b", true), ("a%20b|c", false), ("c%20d%2Cc%20d", true)] {
        let request = Request::get("/p").header("cookie", format!("id={value}"));
        let _ = guarded.answer(request.body(Full::default()).unwrap()).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{value}");
    }
}

#[tokio::test]
async fn a_body_may_be_a_list() {
    for (place, known, absent) in [
        ("json:/*", "[1, \"2\"]", "[1, 999]"),
        ("json:/*/id", r#"[{"id": 1}, {"ID": 2}]"#, r#"[{"id": 1}, {"Id": 999}]"#),
        ("json:/0", "[1, 999]", "[999, 1]"),
    ] {
        let mut guarded = Guarded::new(vec![route("/p", &[place], &products())]);
        for (body, passes) in [(known, true), (absent, false), ("[]", true), ("7", true)] {
            let _ = guarded.answer(post("/p", body)).await;
            assert_eq!(guarded.reached(), usize::from(passes), "{place} {body}");
        }
    }
}

#[tokio::test]
async fn a_list_over_the_limit_is_treated_like_a_body_over_the_limit() {
    let list = |count: usize| vec!["1"; count - 1].join(",") + ",999";
    for (refuses_missing, is_shadow, status) in
        [(true, false, 413), (false, false, 200), (true, true, 200)]
    {
        let with_list = |place: &str| {
            set(route("/p", &[place], &products()), |it| {
                it.list_separator = Some(b',');
                it.refuses_missing = refuses_missing;
                it.is_shadow = is_shadow;
                it.max_body_bytes = 1 << 17;
            })
        };
        let of_limit = if is_shadow { 200 } else { 404 };
        for (place, start, end) in [("json:/*", "[", "]"), ("form:ids", "ids=", "")] {
            let mut guarded = Guarded::new(vec![with_list(place)]);
            let body = |count| format!("{start}{}{end}", list(count));
            assert_eq!(guarded.answer(post("/p", &body(1 << 15))).await.status(), of_limit);
            assert_eq!(guarded.answer(post("/p", &body((1 << 15) + 1))).await.status(), status);
            // A shadow route also passes a body over the limit.
            let large = format!("{start}1{}{end}", " ".repeat(1 << 17));
            assert_eq!(guarded.answer(post("/p", &large)).await.status(), status);
        }
    }
}

#[tokio::test]
async fn no_head_of_the_default_size_exceeds_the_limit_of_a_list() {
    let mut guarded = by_commas("/p", "query:ids", Required::All);
    let uri = format!("/p?ids={}999", "1,".repeat(32_760));
    assert_eq!(guarded.get(&uri).await, StatusCode::NOT_FOUND);
    let body = format!("[{}999]", "1,".repeat(32_765));
    assert!(body.len() <= 64 << 10);
    let mut guarded = by_commas("/p", "json:/*", Required::All);
    assert_eq!(guarded.answer(post("/p", &body)).await.status(), StatusCode::NOT_FOUND);
}
