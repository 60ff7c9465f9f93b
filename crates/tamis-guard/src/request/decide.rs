//! Decides which route checks a request, and whether the request passes.
//!
//! A path may have several interpretations ([`Reading`]). The guard decides for each interpretation, because the
//! program may use any interpretation.

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use http_body::Body;
use smallvec::SmallVec;

use crate::request::body::GuardedBody;
use crate::request::body_text::BodyText;
use crate::request::cors::method_after_preflight;
use crate::request::decision::Decision;
use crate::request::path::{Reading, Values};
use crate::request::route::Route;
#[cfg(feature = "layer")]
use crate::request::turn;

/// The decision that the guard makes from the request head alone, with the index of the route.
pub(crate) enum ByHead {
    /// No route matches the request.
    Unguarded,
    /// A route finds ids in the body. The field has the routes that match.
    NeedsBody(Matches),
    /// The index of the route that decides, and its decision.
    Decided(usize, Decision),
}

/// The indexes of the routes that match a request, each with its interpretation of the path. Only a path with `..` or an
/// encoded slash has several matches.
pub(crate) type Matches = SmallVec<[(usize, Reading); 1]>;

/// Decides about a request from its head, unless a route that matches finds ids in the body.
pub(crate) fn decide_by_head(routes: &[Route], parts: &Parts) -> ByHead {
    let has_body = method_after_preflight(parts).is_none();
    let usual = first_match(routes, parts, Reading::default());
    let others = Reading::others(parts.uri.path());
    if others.is_empty() {
        let Some((index, path)) = usual else { return ByHead::Unguarded };
        let (route, reading) = (&routes[index], Reading::default());
        return match has_body && route.needs_body() {
            true => ByHead::NeedsBody(Matches::from_elem((index, reading), 1)),
            false => ByHead::Decided(index, route.decide(parts, reading, &path, None)),
        };
    }
    let usual = usual.map(|(index, _)| (index, Reading::default()));
    let others = others.into_iter();
    let others = others.filter_map(|it| Some((first_match(routes, parts, it)?.0, it)));
    let matches: Matches = usual.into_iter().chain(others).collect();
    if has_body && matches.iter().any(|&(index, _)| routes[index].needs_body()) {
        return ByHead::NeedsBody(matches);
    }
    match decide_in_each(routes, parts, &matches, None) {
        Some((index, decision)) => ByHead::Decided(index, decision),
        None => ByHead::Unguarded,
    }
}

/// Returns the index of the first route that matches a request, and the values of its path template.
fn first_match<'r>(
    routes: &[Route],
    parts: &'r Parts,
    reading: Reading,
) -> Option<(usize, Values<'r>)> {
    let first_in = |reading: Reading| {
        let mut matching = routes.iter().enumerate();
        matching.find_map(|(index, route)| Some((index, route.matches(parts, reading)?)))
    };
    if !parts.uri.path().contains(';') {
        return first_in(reading);
    }
    // A servlet chooses the route for `/p/7;.json` by the text before the semicolon. The other interpretation matters
    // only if no route matches the path of the servlet.
    let (index, _) = first_in(reading.without_parameters()).or_else(|| first_in(reading))?;
    let values = routes[index].matches(parts, reading);
    Some((
        index,
        values.expect("a path that matches without its parameters matches with its parameters"),
    ))
}

/// Decides for each interpretation of the path that matches a route, because the upstream service may use any
/// interpretation. Returns the first refusal, but the refusal of a shadow route only if no other route refuses the
/// request. If all decisions pass, returns the first decision.
///
/// Exception: an existing id may contain slashes and dots, for example `a/../b`, which a request writes
/// as `a%2F..%2Fb`. A request for such an existing id passes, although a service that decodes slashes first would find
/// another id in the path.
fn decide_in_each(
    routes: &[Route],
    parts: &Parts,
    matches: &Matches,
    body: Option<&BodyText>,
) -> Option<(usize, Decision)> {
    let mut chosen = None;
    for &(index, reading) in matches {
        let route = &routes[index];
        let path =
            route.matches(parts, reading).expect("the route matched this interpretation before");
        let mut decision = route.decide(parts, reading, &path, body);
        if matches.len() > 1 {
            decision.be_no_evidence();
        }
        // A shadow route refuses nothing, so another route may still refuse the request.
        let is_refused = !decision.verdict.passes();
        if is_refused && !route.is_shadow {
            return Some((index, decision));
        }
        let is_usual = reading == Reading::default() && decision.is_certain();
        if is_usual && route.are_ambiguities_in_ids(parts.uri.path(), &path) {
            return Some((index, decision));
        }
        if is_refused || chosen.is_none() {
            chosen = Some((index, decision));
        }
    }
    chosen
}

impl ByHead {
    /// Tests whether a request must wait for its body or for other requests.
    #[cfg_attr(not(feature = "layer"), expect(unused_variables))]
    pub(crate) fn needs_more(&self, routes: &[Route], method: &Method) -> bool {
        match self {
            Self::Unguarded => false,
            Self::NeedsBody(..) => true,
            #[cfg(feature = "layer")]
            Self::Decided(index, decision) => turn::is_needed(&routes[*index], method, decision),
            #[cfg(not(feature = "layer"))]
            Self::Decided(..) => false,
        }
    }
}

/// Decides about a request whose routes find ids in the body. `text` is the body, or `None` if the body exceeds the limit
/// of [`read_body`]. `len_bytes` is the length of the body.
///
/// # Errors
///
/// Returns the route that refuses requests without an id if the body exceeds the limit. A body beyond the limit may
/// contain an existing id, so the response ([`Route::too_large_response`]) differs from the response for an absent id.
pub(crate) fn decide_with_body<'r>(
    routes: &'r [Route],
    parts: &Parts,
    matches: &Matches,
    text: Option<BodyText>,
    len_bytes: u64,
) -> Result<(usize, Decision), &'r Route> {
    let limit = matches.iter().map(|&(index, _)| routes[index].max_body_bytes).min();
    let limit = limit.expect("a route matches");
    let is_too_large = len_bytes > limit as u64;
    let mut matching = matches.iter().map(|&(index, _)| &routes[index]);
    let is_strict = |route: &&Route| route.refuses_missing && !route.is_shadow;
    if is_too_large && let Some(route) = matching.find(is_strict) {
        return Err(route);
    }
    let text = text.filter(|text| text.len_bytes() <= limit);
    Ok(decide_in_each(routes, parts, matches, text.as_ref()).expect("a route matches"))
}

/// Reads a body of at most `max_bytes`. Returns no text if `max_bytes` is `None`, or if the body exceeds the limit. The
/// returned body is equivalent to the original body.
pub(crate) async fn read_body<B>(
    body: B,
    max_bytes: Option<usize>,
) -> Result<(Option<BodyText>, GuardedBody<B>), B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    let Some(max_bytes) = max_bytes else { return Ok((None, GuardedBody::unread(body))) };
    let (bytes, body) = GuardedBody::buffered(body, max_bytes).await?;
    Ok((bytes.map(BodyText::new), body))
}
