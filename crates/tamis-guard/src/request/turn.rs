//! The turn of a request for one id, on a route with [`SingleFlight`](crate::SingleFlight).

use http::Method;
use tamis_sources::{PassReason, Verdict};

use crate::request::decision::Decision;
use crate::request::route::Route;
use crate::request::single_flight::{SingleFlight, Turn};

/// Tests whether a request may have to wait for other requests.
pub(crate) fn is_needed(route: &Route, method: &Method, decision: &Decision) -> bool {
    turns_of(route, method, decision).is_some_and(|(single, id)| !single.is_proven(id))
}

/// Waits for the turn of a request, and decides about the request again. Returns `None` if the request needs no turn.
pub(crate) async fn take<'r>(
    route: &'r Route,
    method: &Method,
    decision: &mut Decision,
) -> Option<Turn<'r>> {
    let (single, id) = turns_of(route, method, decision)?;
    let turn = single.enter(id).await;
    decision.decide_again();
    Some(turn)
}

/// Records that the upstream service responded with 404 for an id.
pub(crate) fn not_found(route: &Route, decision: &Decision) {
    if let (Some(single), Some(id)) = (&route.single_flight, decision.only_id()) {
        single.not_found(id);
    }
}

/// Returns two values: the [`SingleFlight`] of the route, and the only id of the request. Returns `None` if the request
/// needs no turn.
fn turns_of<'r, 'd>(
    route: &'r Route,
    method: &Method,
    decision: &'d Decision,
) -> Option<(&'r SingleFlight, &'d [u8])> {
    let single = route.single_flight.as_ref()?;
    // Only GET and HEAD requests wait for a turn, because requests with other methods than GET and HEAD may change
    // data. Requests of a shadow route do not wait, because a shadow route must not delay requests.
    let applies = matches!(*method, Method::GET | Method::HEAD)
        && !route.is_shadow
        && decision.verdict == Verdict::Pass(PassReason::Known);
    if applies { Some((single, decision.only_id()?)) } else { None }
}
