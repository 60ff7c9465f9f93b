//! Ids in the body of a form.

use super::*;

#[tokio::test]
async fn ids_in_a_form_are_found_and_the_body_is_unchanged() {
    let by_form = route("/orders", &["form:id"], &products());
    let mut guarded = Guarded::new(vec![set(by_form, |it| it.max_body_bytes = 100)]);
    for (body, expected) in [
        ("id=1&name=a%26b".to_owned(), 200),
        ("name=a+b&id=100".to_owned(), 404),
        ("ID=100".to_owned(), 404),
        ("i%64=%31%30%30".to_owned(), 404),
        ("id=1&id=100".to_owned(), 404),
        ("id=&name=x".to_owned(), 200),
        ("name=id%3D100".to_owned(), 200),
        (String::new(), 200),
        ("\u{0}&=&&&=\u{ff}".to_owned(), 200),
        // A larger body passes unchanged.
        (format!("id=100&name={}", "x".repeat(200)), 200),
    ] {
        assert_eq!(guarded.answer(post("/orders", &body)).await.status(), expected, "{body}");
        let mut bodies = guarded.shop.bodies.lock().unwrap();
        assert_eq!(bodies.pop(), (expected == 200).then(|| Bytes::from(body)));
    }
}

#[tokio::test]
async fn the_type_of_a_body_hides_no_id() {
    for (place, body) in [("form:id", "id=100"), ("json:/id", r#"{"id":100}"#)] {
        let mut guarded = Guarded::new(vec![route("/orders", &[place], &products())]);
        for of_body in [
            None,
            Some("application/x-www-form-urlencoded"),
            Some("APPLICATION/X-WWW-FORM-URLENCODED; charset=utf-8"),
            Some("application/json"),
            Some("text/plain"),
            Some("multipart/form-data; boundary=a"),
            Some(""),
        ] {
            let mut request = Request::post("/orders");
            if let Some(of_body) = of_body {
                request = request.header("content-type", of_body);
            }
            let answer = guarded.answer(request.body(Full::from(body)).unwrap()).await;
            assert_eq!(answer.status(), 404, "{place} {of_body:?}");
        }
    }
}

#[tokio::test]
async fn a_multipart_body_has_no_id() {
    let body = "--a\r\nContent-Disposition: form-data; name=\"id\"\r\n\r\n100\r\n--a--\r\n";
    for (refuses_missing, status) in [(false, 200), (true, 404)] {
        let by_form = route("/orders", &["form:id"], &products());
        let by_form = set(by_form, |it| it.refuses_missing = refuses_missing);
        let mut guarded = Guarded::new(vec![by_form]);
        let request =
            Request::post("/orders").header("content-type", "multipart/form-data; boundary=a");
        let answer = guarded.answer(request.body(Full::from(body)).unwrap()).await;
        assert_eq!(answer.status(), status);
    }
}

#[tokio::test]
async fn a_query_parameter_and_a_form_field_of_one_name_are_one_place() {
    let both = route("/orders", &["query:id", "form:ID"], &products());
    let mut guarded = Guarded::new(vec![set(both, |it| it.refuses_missing = true)]);
    for (uri, body, passes) in [
        ("/orders", "id=1", true),
        ("/orders?id=1", "", true),
        ("/orders?id=1", "name=x", true),
        ("/orders?id=1", "id=2", true),
        // A servlet uses the first of the values, and another program uses the last.
        ("/orders?id=1", "id=100", false),
        ("/orders?id=100", "id=1", false),
        ("/orders", "name=x", false),
        ("/orders?id=", "id=", false),
    ] {
        let _ = guarded.answer(post(uri, body)).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{uri} {body}");
    }
    // Fields of other names are other places.
    let both = route("/orders", &["query:shop", "form:id"], &products());
    let mut guarded = Guarded::new(vec![set(both, |it| it.refuses_missing = true)]);
    for (uri, body, passes) in [
        ("/orders?shop=1", "id=1", true),
        ("/orders", "id=1", false),
        ("/orders?shop=1", "", false),
    ] {
        let _ = guarded.answer(post(uri, body)).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{uri} {body}");
    }
}

#[tokio::test]
async fn a_preflight_of_a_form_reaches_the_program() {
    let both = route("/orders", &["query:id", "form:id"], &products());
    let mut guarded = Guarded::new(vec![set(both, |it| it.refuses_missing = true)]);
    for (uri, passes) in [("/orders", true), ("/orders?id=1", true), ("/orders?id=100", false)] {
        let request = Request::options(uri)
            .header("origin", "https://shop.example")
            .header("access-control-request-method", "POST");
        let _ = guarded.answer(request.body(Full::default()).unwrap()).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{uri}");
    }
}
