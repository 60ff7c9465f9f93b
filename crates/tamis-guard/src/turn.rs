//! The turn of a request for one id, on a route with [`SingleFlight`](crate::SingleFlight).

use http::Method;

use crate::route::{Decision, Route};
use crate::single_flight::Turn;
use crate::verdict::{PassReason, Verdict};

/// Waits for the turn of a request that passed, and decides about it again. Returns `None` if the
/// request needs no turn.
pub(crate) async fn take<'r>(
    route: &'r Route,
    method: &Method,
    decision: &mut Decision,
) -> Option<Turn<'r>> {
    let single = route.single_flight.as_ref()?;
    // Other methods may change something, and a shadow route must not delay requests.
    if !matches!(*method, Method::GET | Method::HEAD) || route.is_shadow {
        return None;
    }
    if decision.verdict != Verdict::Pass(PassReason::Known) {
        return None;
    }
    let turn = single.enter(decision.only_id()?).await;
    decision.decide_again();
    Some(turn)
}
