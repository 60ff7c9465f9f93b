//! Segments with names and other text.

use super::*;

#[tokio::test]
async fn an_id_beside_other_text_is_checked() {
    let ids = products();
    for (template, known, absent) in [
        ("/p/{id}.json", "/p/7.json", "/p/999.json"),
        ("/p/{id}.json", "/p/7.JSON", "/p/999%2Ejson"),
        ("/p/{id}.json", "/p/7.json;v=1", "/p/999.json;v=1"),
        ("/p/item-{id}.html", "/p/item-7.html", "/p/item-999.html"),
        ("/p/{id}-{slug}", "/p/7-red-shoes", "/p/999-red-shoes"),
        ("/p/{id}-{slug}", "/p/7-", "/p/999-"),
        ("/p/{id}-{slug}", "/p/7-999", "/p/999-7"),
        ("/p/{slug}-{id}", "/p/red-shoes-7", "/p/red-shoes-999"),
        ("/p/{slug}-{id}", "/p/999-7;v=1", "/p/7-999;v=1"),
        // For a servlet, the segment ends at the semicolon.
        ("/p/{slug}-{id}", "/p/red-7;-999", "/p/red-999;-7"),
        ("/p/{id}.json", "/p/7.json;999.json", "/p/999.json;7.json"),
        // For another program, the id is `7;x`.
        ("/p/{id}.json", "/p/7.json", "/p/7;x.json"),
    ] {
        let mut guarded = Guarded::new(vec![route(template, &["path:id"], &ids)]);
        for (uri, passes) in [(known, true), (absent, false)] {
            guarded.get(uri).await;
            assert_eq!(guarded.reached(), usize::from(passes), "{template} {uri}");
        }
    }
}

#[tokio::test]
async fn an_id_passes_if_one_of_its_splits_passes() {
    let ids = texts(&["a", "b-c", "-", "七-"]);
    let mut by_start = Guarded::new(vec![route("/p/{id}-{slug}", &["path:id"], &ids)]);
    let mut by_end = Guarded::new(vec![route("/p/{slug}-{id}", &["path:id"], &ids)]);
    for (start, end, passes) in [
        ("/p/a-red", "/p/red-a", true),
        ("/p/b-c-red", "/p/red-b-c", true),
        ("/p/b-c", "/p/c-b", false),
        ("/p/---", "/p/---", true),
        ("/p/%E4%B8%83--x", "/p/x-%E4%B8%83-", true),
        ("/p/b-red", "/p/red-c", false),
        ("/p/A-red", "/p/red-A", false),
    ] {
        for (guarded, uri) in [(&mut by_start, start), (&mut by_end, end)] {
            guarded.get(uri).await;
            assert_eq!(guarded.reached(), usize::from(passes), "{uri}");
        }
    }
}

#[tokio::test]
async fn a_semicolon_hides_no_route_of_a_servlet() {
    let by_slug = route("/p/{slug}-{id}", &["path:id"], &products());
    let by_text = route("/p/{id}", &["path:id"], &texts(&["known"]));
    let mut guarded = Guarded::new(vec![by_slug, by_text]);
    for (uri, passes) in [
        ("/p/red-7", true),
        ("/p/red-999", false),
        ("/p/known", true),
        ("/p/absent", false),
        // For a servlet, the id is the text before the semicolon.
        ("/p/absent;-7", false),
        ("/p/known;-7", true),
        ("/p/red-999;-7", false),
        ("/p/red-7;-999", true),
    ] {
        guarded.get(uri).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{uri}");
    }
}

#[tokio::test]
async fn a_404_of_a_request_with_several_candidates_is_kept_for_the_request() {
    let options = IdSetOptions { recent_for: Duration::ZERO, ..IdSetOptions::new(text()) };
    let ids = known(options, []);
    ids.insert(b"a").unwrap();
    let mut guarded = Guarded::new(vec![route("/p/{id}-{slug}", &["path:id"], &ids)]);
    assert_eq!(guarded.get("/p/a-999").await, 200);
    guarded.shop.is_strict.store(true, Ordering::Relaxed);
    assert_eq!(guarded.get("/p/a-999").await, 404);
    assert_eq!(guarded.reached(), 2);
    assert_eq!(guarded.get("/p/a-999").await, 404);
    assert_eq!(guarded.reached(), 0);
}

#[tokio::test]
async fn a_long_segment_of_separators_is_decided_at_once() {
    let options = IdSetOptions::new(tamis_guard::IdType::Text { max_bytes: 1 << 20 });
    let ids = known(options, []);
    let mut guarded = Guarded::new(vec![route("/p/{slug}-{id}.json", &["path:id"], &ids)]);
    let uri = format!("/p/{}.json", "-".repeat(60_000));
    let start = std::time::Instant::now();
    for _ in 0..10 {
        assert_eq!(guarded.get(&uri).await, StatusCode::NOT_FOUND);
    }
    // Each candidate of 60 000 bytes would take seconds.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[tokio::test]
async fn both_names_of_a_segment_may_be_ids() {
    let ids = products();
    let mut guarded = Guarded::new(vec![route("/p/{shop}-{id}", &["path:shop", "path:id"], &ids)]);
    for (uri, passes) in [("/p/7-8", true), ("/p/7-999", false), ("/p/999-8", false)] {
        guarded.get(uri).await;
        assert_eq!(guarded.reached(), usize::from(passes), "{uri}");
    }
}
