//! Which requests the guard decides about, and by which ids.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response};
use http_body_util::Full;
use serde_json::Value;
use smallvec::SmallVec;

use crate::counters::RouteCounters;
use crate::id_set::{IdSet, Passed};
use crate::path::{PathTemplate, Values};
use crate::place::IdPlace;
use crate::refusal::Refusal;
#[cfg(feature = "single-flight")]
use crate::single_flight::SingleFlight;
use crate::verdict::{PassReason, RefuseReason, Verdict};

/// An id of a route: where it is, and which ids exist.
#[derive(Clone, Debug)]
pub struct RouteId {
    /// Where a request has it.
    pub place: IdPlace,
    /// The ids that exist.
    pub ids: Arc<IdSet>,
}

/// Which ids of a route must exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Required {
    /// All of them.
    #[default]
    All,
    /// At least one.
    Any,
}

/// Requests that the guard decides about.
#[derive(Debug)]
pub struct Route {
    /// The name in messages and metrics.
    pub name: String,
    /// The methods. Empty for all.
    pub methods: Vec<Method>,
    /// The path.
    pub path: PathTemplate,
    /// The ids.
    pub ids: Vec<RouteId>,
    /// Which of the ids must exist.
    pub required: Required,
    /// True if a request without an id is refused. Otherwise it passes.
    pub refuses_missing: bool,
    /// The answer to a refused request.
    pub refusal: Refusal,
    /// True if the route refuses nothing and only counts what it would have refused.
    pub is_shadow: bool,
    /// The largest body in which ids are looked for, in bytes. A larger one passes unchanged.
    pub max_body_bytes: usize,
    /// The turns of GET and HEAD requests for one id. `None` if requests do not wait for each
    /// other. It has no effect without the negative cache, on a shadow route, and on requests with
    /// several ids.
    #[cfg(feature = "single-flight")]
    pub single_flight: Option<SingleFlight>,
    /// What was decided so far.
    pub counters: RouteCounters,
}

impl Route {
    /// Returns a route with the usual settings.
    #[must_use]
    pub fn new(path: PathTemplate, ids: Vec<RouteId>) -> Self {
        Self {
            name: String::new(),
            methods: Vec::new(),
            path,
            ids,
            required: Required::All,
            refuses_missing: false,
            refusal: Refusal::default(),
            is_shadow: false,
            max_body_bytes: 64 << 10,
            #[cfg(feature = "single-flight")]
            single_flight: None,
            counters: RouteCounters::default(),
        }
    }

    /// Tests whether the ids of a request may be in its body.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        self.ids.iter().any(|id| id.place.needs_body())
    }

    /// Returns the values of the path template if the route is for this request.
    pub(crate) fn matches<'r>(&self, parts: &'r Parts) -> Option<Values<'r>> {
        let is_method = self.methods.is_empty() || self.methods.contains(&parts.method);
        if is_method { self.path.values_of(parts.uri.path()) } else { None }
    }

    /// Decides about a request. `body` is its JSON body, if it was read and is one.
    pub(crate) fn decide<'r>(
        &self,
        parts: &'r Parts,
        path: &Values<'r>,
        body: Option<&Value>,
    ) -> Decision {
        let mut decision = Decision::default();
        let (mut has_known, mut refusal) = (false, None);
        for id in &self.ids {
            let in_head = id.place.values_in_head(parts, &self.path, path);
            let in_body = body.map_or_else(Vec::new, |body| id.place.values_in_body(body));
            let values = in_head.iter().map(|value| &**value).chain(in_body.iter().map(|it| &**it));
            decision.values += in_head.len() + in_body.len();
            match self.decide_values(id, values, &mut decision.passed) {
                Verdict::Pass(PassReason::NoId) => {}
                Verdict::Pass(reason) => {
                    has_known = true;
                    decision.verdict = Verdict::Pass(reason);
                }
                Verdict::Refuse(reason) => refusal = refusal.or(Some(reason)),
            }
        }
        let is_refused = self.required == Required::All || !has_known;
        if is_refused && let Some(reason) = refusal {
            decision.verdict = Verdict::Refuse(reason);
        }
        decision
    }

    /// Counts a decision. Returns the answer of the guard, if the request does not pass.
    pub(crate) fn refusal_of(&self, decision: &Decision) -> Option<Response<Full<Bytes>>> {
        self.counters.count(decision.verdict);
        match decision.verdict {
            Verdict::Refuse(reason) if !self.is_shadow => Some(self.refusal.response(reason)),
            _ => None,
        }
    }

    /// Decides about all values at one place. A program may use any of several values, so one that
    /// may exist is enough.
    fn decide_values<'v>(
        &self,
        id: &RouteId,
        values: impl Iterator<Item = &'v [u8]>,
        passed: &mut SmallVec<[PassedId; 1]>,
    ) -> Verdict {
        let mut refusal = None;
        for value in values {
            let canonical = match id.ids.options().id.canonical(value) {
                Ok(canonical) => canonical,
                Err(_) => {
                    refusal = Some(RefuseReason::NotAnId);
                    continue;
                }
            };
            let before = id.ids.passed(&canonical);
            match id.ids.decide_id(&canonical) {
                Verdict::Pass(reason) => {
                    if reason == PassReason::Known {
                        let id = (Arc::clone(&id.ids), canonical.into_owned(), before);
                        passed.push(PassedId(id));
                    }
                    return Verdict::Pass(reason);
                }
                Verdict::Refuse(reason) => refusal = Some(reason),
            }
        }
        match refusal {
            Some(reason) => Verdict::Refuse(reason),
            None if self.refuses_missing => Verdict::Refuse(RefuseReason::NotAnId),
            None => Verdict::Pass(PassReason::NoId),
        }
    }
}

/// What is decided about a request.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    /// The number of values at all places.
    values: usize,
    /// The ids that passed because the filter has them.
    passed: SmallVec<[PassedId; 1]>,
}

impl Default for Decision {
    fn default() -> Self {
        Self { verdict: Verdict::Pass(PassReason::NoId), values: 0, passed: SmallVec::new() }
    }
}

/// An id that passed because the filter has it.
#[derive(Debug)]
pub(crate) struct PassedId((Arc<IdSet>, Vec<u8>, Passed));

impl Decision {
    /// Learns from the answer 404: the only id of the request does not exist.
    pub(crate) fn not_found(&self) {
        // Of several ids, any may be the absent one.
        if let (1, [PassedId((ids, id, passed))]) = (self.values, &self.passed[..]) {
            ids.not_found(id, *passed);
        }
    }

    /// Returns the only id of a request that passed because the filter has it.
    #[cfg(feature = "single-flight")]
    pub(crate) fn only_id(&self) -> Option<&[u8]> {
        match (self.values, &self.passed[..]) {
            (1, [PassedId((_, id, _))]) => Some(id),
            _ => None,
        }
    }

    /// Decides again about a request with only one id.
    #[cfg(feature = "single-flight")]
    pub(crate) fn decide_again(&mut self) {
        if let (1, [PassedId((ids, id, passed))]) = (self.values, &mut self.passed[..]) {
            *passed = ids.passed(id);
            self.verdict = ids.decide_id(id);
        }
    }
}
