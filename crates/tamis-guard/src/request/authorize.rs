//! Decides about a request that another proxy carries.

use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};
use http_body::Body;
use http_body_util::Full;
use tamis_sources::Verdict;

use crate::request::decide::{ByHead, decide_by_head, decide_with_body, read_body};
use crate::request::layer::GuardLayer;

/// The decision about a request that another proxy carries.
#[derive(Debug)]
pub(crate) enum Authorization {
    /// The request passes. The field is the verdict of the route, or `None` if no route matches the request. A shadow
    /// route passes a request that its verdict refuses.
    Pass(Option<Verdict>),
    /// The request does not pass. The field is the response for the client.
    Refuse(Response<Full<Bytes>>),
}

impl GuardLayer {
    /// Decides about a request, and counts the decision. `parts` is the head of the request as the client sent it, and
    /// `body` is the body of the request if the other proxy passes bodies on.
    ///
    /// The guard does not see the response to the request. Therefore no response proves a filter, fills the negative
    /// cache or teaches an id.
    pub(crate) async fn authorize<B>(&self, parts: &Parts, body: B) -> Authorization
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let routes = self.shared_routes();
        routes.count_request();
        let (index, decision) = match decide_by_head(routes, parts) {
            ByHead::Unguarded => return Authorization::Pass(None),
            ByHead::Decided(index, decision) => (index, decision),
            ByHead::NeedsBody(matches) => {
                let max_bytes =
                    matches.iter().map(|&(index, _)| routes[index].max_body_bytes).max();
                let Ok((text, body)) = read_body(body, max_bytes).await else {
                    let mut malformed = Response::new(Full::default());
                    *malformed.status_mut() = StatusCode::BAD_REQUEST;
                    return Authorization::Refuse(malformed);
                };
                match decide_with_body(routes, parts, &matches, text, body.len_bytes()) {
                    Ok(decided) => decided,
                    Err(route) => {
                        return Authorization::Refuse(route.too_large_response(parts));
                    }
                }
            }
        };
        let route = &routes[index];
        route.counters.count(decision.verdict);
        match decision.verdict {
            Verdict::Refuse(reason) if !route.is_shadow => {
                // A preflight also gets the refusal: the response with 204 would be a permission for the other proxy.
                Authorization::Refuse(route.refuse(reason, &decision, parts))
            }
            verdict => Authorization::Pass(Some(verdict)),
        }
    }
}
