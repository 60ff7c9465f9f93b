//! An id of a route: its place in a request, and the set of existing ids.

use std::borrow::Cow;
use std::sync::Arc;

use percent_encoding::percent_decode;
use tamis_sources::{IdSet, PassReason, RefuseReason, Verdict};

use crate::request::decision::{Decision, PassedId, is_certain};
use crate::request::place::IdPlace;

/// An id of a route: its place in a request, and the set of existing ids.
#[derive(Clone, Debug)]
pub struct RouteId {
    /// The place of the id in a request.
    pub place: IdPlace,
    /// The set of existing ids.
    pub ids: Arc<IdSet>,
}

impl RouteId {
    /// Decides about one id of a request. `is_shadow` is true if the route refuses no request.
    ///
    /// Some programs decode the value of a cookie, and other programs do not. Therefore the value of a cookie passes if
    /// its decoded form or its original form passes.
    pub(crate) fn decide(&self, id: &[u8], is_shadow: bool, decision: &mut Decision) -> Verdict {
        let verdict = self.decide_text(id, is_shadow, decision);
        if is_certain(verdict) || !self.place.is_cookie() || !id.contains(&b'%') {
            return verdict;
        }
        let decoded = self.decide_text(&Cow::from(percent_decode(id)), is_shadow, decision);
        decision.be_no_evidence();
        if decoded.passes() { decoded } else { verdict }
    }

    fn decide_text(&self, text: &[u8], is_shadow: bool, decision: &mut Decision) -> Verdict {
        let Ok(canonical) = self.ids.options().id.canonical(text) else {
            return Verdict::Refuse(RefuseReason::NotAnId);
        };
        let version = self.ids.passed(&canonical);
        let verdict = self.ids.decide_id(&canonical);
        match verdict {
            Verdict::Pass(PassReason::Known) => {
                let ids = Arc::clone(&self.ids);
                decision.passed.push(PassedId { ids, id: canonical.into_owned(), version });
            }
            Verdict::Pass(PassReason::Unproven) => {
                decision.unknown = Some((Arc::clone(&self.ids), canonical.into_owned()));
            }
            Verdict::Refuse(RefuseReason::Absent) if is_shadow => {
                decision.unknown = Some((Arc::clone(&self.ids), canonical.into_owned()));
            }
            _ => {}
        }
        verdict
    }
}
