//! A decision about a request.

use std::sync::Arc;

use http::HeaderMap;
use smallvec::SmallVec;
use tamis_sources::{IdSet, PassReason, Passed, RefuseReason, RequestKey, Verdict};

use crate::http::cache_control::CacheControl;

/// Tests whether a verdict passes, and would also pass if responses had proven the filter of the source.
pub(crate) fn is_certain(verdict: Verdict) -> bool {
    verdict.passes() && verdict != Verdict::Pass(PassReason::Unproven)
}

/// A decision about a request.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    /// The number of values at all places.
    pub(crate) values: usize,
    /// The ids that passed because they are in the filter.
    pub(crate) passed: SmallVec<[PassedId; 1]>,
    /// An id that the set does not contain. The value is `None` unless the filter is unproven or the route is a shadow
    /// route.
    pub(crate) unknown: Option<(Arc<IdSet>, Vec<u8>)>,
    /// True if the response of the upstream service is no evidence about the ids, because the service may extract other
    /// ids from the request.
    is_ambiguous: bool,
    /// True if the guard refuses the request because a place has too many ids.
    pub(crate) is_too_large: bool,
    /// The key of the request in the negative cache. The value is `None` if the guard must not store a 404 for this
    /// request.
    pub(crate) request: Option<RequestKey>,
    /// The cache permissions of the request for the negative cache.
    pub(crate) cache_control: CacheControl,
}

impl Default for Decision {
    fn default() -> Self {
        Self {
            verdict: Verdict::Pass(PassReason::NoId),
            values: 0,
            passed: SmallVec::new(),
            unknown: None,
            is_ambiguous: false,
            is_too_large: false,
            request: None,
            cache_control: CacheControl::DEFAULT,
        }
    }
}

/// An id that passed because it is in the filter.
#[derive(Debug)]
pub(crate) struct PassedId {
    pub(crate) ids: Arc<IdSet>,
    pub(crate) id: Vec<u8>,
    pub(crate) version: Passed,
}

impl Decision {
    /// Tests whether the request contains exactly one id, which is in the filter. If a request contains several ids, a
    /// 404 does not show which id is absent.
    pub(crate) fn is_of_one_known_id(&self) -> bool {
        self.values == 1 && self.verdict == Verdict::Pass(PassReason::Known)
    }

    /// Tests whether the request passes, and would also pass if responses had proven the filter of the source.
    pub(crate) fn is_certain(&self) -> bool {
        is_certain(self.verdict)
    }

    /// Refuses the request because a place has too many ids.
    pub(crate) fn refuse_too_large(&mut self) {
        self.verdict = Verdict::Refuse(RefuseReason::NotAnId);
        self.is_too_large = true;
        self.be_no_evidence();
    }

    /// Marks the response of the upstream service as no evidence about the ids, because the service may extract other
    /// ids from the request. The response is not even evidence about ids in the filter, because the filter may contain
    /// an id as a false positive. If the guard used ambiguous responses as evidence only about ids in the filter, a
    /// wrong filter would look correct.
    pub(crate) fn be_no_evidence(&mut self) {
        self.is_ambiguous = true;
    }

    /// Refuses the request if the upstream service recently responded with 404 to the same request.
    pub(crate) fn refuse_if_not_found(&mut self) {
        if let (Some(request), [PassedId { ids, id, .. }]) = (self.request, &self.passed[..])
            && self.cache_control.may_reuse
            && ids.is_not_found(id, request)
        {
            self.verdict = Verdict::Refuse(RefuseReason::Negative);
        }
    }

    /// Keeps the response to a request with a body out of the negative cache, because the response may depend on the body.
    pub(crate) fn forget_request_if(&mut self, has_body: bool) {
        if has_body {
            self.request = None;
        }
    }

    /// Records a 404 response, unless the headers of the request or the response forbid the cache to store the
    /// response.
    pub(crate) fn not_found(&self, headers: &HeaderMap) {
        let answer = CacheControl::of(headers);
        if let (Some(request), [PassedId { ids, id, version }]) = (self.request, &self.passed[..])
            && self.cache_control.may_store
            && answer.may_store
            && answer.may_reuse
        {
            ids.not_found(id, *version, request);
        }
    }

    /// Records a response with a status from 200 to 299, which shows that the ids of the request exist.
    pub(crate) fn succeeded(&self) {
        if self.is_ambiguous {
            return;
        }
        if let Some((ids, id)) = &self.unknown {
            ids.missed(id);
        }
        for PassedId { ids, id, .. } in &self.passed {
            ids.found(id);
        }
    }

    /// Returns the id of a request with exactly one id in the filter. Returns `None` if the request has several ids or
    /// no id in the filter, or if the negative cache must not store its 404.
    #[cfg(feature = "layer")]
    pub(crate) fn only_id(&self) -> Option<&[u8]> {
        match (self.request, &self.passed[..]) {
            (Some(_), [PassedId { id, .. }]) => Some(id),
            _ => None,
        }
    }

    /// Decides again about a request with exactly one id.
    #[cfg(feature = "layer")]
    pub(crate) fn decide_again(&mut self) {
        if let (Some(_), [PassedId { ids, id, version }]) = (self.request, &mut self.passed[..]) {
            *version = ids.passed(id);
            self.verdict = ids.decide_id(id);
        }
        if self.is_of_one_known_id() {
            self.refuse_if_not_found();
        }
    }
}
