//! An id of a route: its place in a request, and the set of existing ids.

use std::borrow::Cow;
use std::sync::Arc;

use http::request::Parts;
use percent_encoding::percent_decode;
use tamis_sources::{IdSet, PassReason, RefuseReason, Verdict};

use crate::request::decision::{Decision, PassedId, is_certain};
use crate::request::path::{PathTemplate, Split, Values};
use crate::request::place::IdPlace;

/// An id of a route: its place in a request, and the set of existing ids.
#[derive(Clone, Debug)]
pub struct RouteId {
    /// The place of the id in a request.
    pub place: IdPlace,
    /// The set of existing ids.
    pub ids: Arc<IdSet>,
    /// The candidates for the id. The value is `None` if the place has one value.
    split: Option<Split>,
}

impl RouteId {
    /// Creates the id of a route with the path template `path`.
    pub(crate) fn new(place: IdPlace, ids: Arc<IdSet>, path: &PathTemplate) -> Self {
        let split = match &place {
            IdPlace::Path(name) => path.split_of(name),
            _ => None,
        };
        Self { place, ids, split }
    }

    /// Tests whether a text at the place of the id may contain several candidates for the id.
    pub(crate) fn has_candidates(&self) -> bool {
        self.split.is_some()
    }

    /// Returns all values at the place in the head of a request. `path` contains the values of the path template.
    /// `separator` separates the ids of a list.
    pub(crate) fn values_in_head<'r>(
        &self,
        parts: &'r Parts,
        template: &PathTemplate,
        path: &Values<'r>,
        separator: Option<u8>,
    ) -> Values<'r> {
        let mut values = self.place.values_in_head(parts, template, path);
        let Some(separator) = separator.filter(|_| self.place.is_cookie()) else { return values };
        // A client encodes the separators of a cookie, because a cookie contains no comma (RFC 6265, section 4.1.1).
        for value in values.iter_mut().filter(|value| !value.contains(&separator)) {
            let decoded: Vec<u8> = percent_decode(value).collect();
            if decoded.contains(&separator) {
                *value = Cow::Owned(decoded);
            }
        }
        values
    }

    /// Returns the ids in a value. `separator` separates the ids of a list.
    pub(crate) fn elements<'v>(
        &self,
        value: &'v [u8],
        separator: Option<u8>,
    ) -> impl Iterator<Item = &'v [u8]> {
        // The candidates for an id beside another name are no lists.
        let separator = separator.filter(|_| self.split.is_none());
        let is_separator = move |&byte: &u8| Some(byte) == separator;
        // White space is part of the list syntax of headers (RFC 9110, section 5.6.1).
        let is_trimmed = separator.is_some() && matches!(self.place, IdPlace::Header(_));
        let elements = value.split(is_separator);
        let trimmed = move |id: &'v [u8]| if is_trimmed { id.trim_ascii() } else { id };
        // A form sends an empty field as `id=`.
        elements.map(trimmed).filter(|id| !id.is_empty())
    }

    /// Decides about one id of a request. `is_shadow` is true if the route refuses no request.
    ///
    /// Some programs decode the value of a cookie, and other programs do not. Therefore the value of a cookie passes if
    /// its decoded form or its original form passes.
    pub(crate) fn decide(&self, id: &[u8], is_shadow: bool, decision: &mut Decision) -> Verdict {
        if let Some(split) = &self.split {
            return self.decide_candidates(split, id, is_shadow, decision);
        }
        let verdict = self.decide_text(id, is_shadow, decision);
        if is_certain(verdict) || !self.place.is_cookie() || !id.contains(&b'%') {
            return verdict;
        }
        let decoded = self.decide_text(&Cow::from(percent_decode(id)), is_shadow, decision);
        decision.be_no_evidence();
        if decoded.passes() { decoded } else { verdict }
    }

    /// Decides about the candidates for an id. The id passes if a candidate passes, because programs choose different
    /// candidates.
    fn decide_candidates(
        &self,
        split: &Split,
        names: &[u8],
        is_shadow: bool,
        decision: &mut Decision,
    ) -> Verdict {
        let mut best = Verdict::Refuse(RefuseReason::NotAnId);
        let mut ids = 0;
        for candidate in split.candidates(names) {
            if self.ids.options().id.canonical(candidate).is_err() {
                continue;
            }
            ids += 1;
            if is_certain(best) {
                break;
            }
            let verdict = self.decide_text(candidate, is_shadow, decision);
            if !best.passes() || is_certain(verdict) {
                best = verdict;
            }
        }
        if ids > 1 {
            decision.be_no_evidence();
        }
        best
    }

    /// Decides about a text as one id, and records the id in the decision.
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
