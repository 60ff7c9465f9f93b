//! A route: the requests that the guard checks, and the places of their ids.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body_util::Full;
use smallvec::SmallVec;
use tamis_sources::{IdSet, Policy, RefuseReason, RequestKey, Verdict};

use crate::http::cache_control::CacheControl;
use crate::request::body_text::BodyText;
use crate::request::cors::method_after_preflight;
use crate::request::counters::RouteCounters;
use crate::request::decision::Decision;
#[cfg(feature = "proxy")]
use crate::request::path::Comparison;
use crate::request::path::{Ambiguities, PathTemplate, Reading, Values};
use crate::request::place::IdPlace;
use crate::request::refusal::Refusal;
use crate::request::route_error::RouteError;
use crate::request::route_id::RouteId;
#[cfg(feature = "layer")]
use crate::request::single_flight::SingleFlight;

/// The maximum number of ids that the guard checks at one place of a request. A body or a head within the default limit of
/// 64 KiB contains at most this number of ids.
const MAX_IDS: usize = 1 << 15;

/// The ids of a request that must exist. A request may contain several ids at one place, such as `?id=1&id=2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Required {
    /// All ids must exist.
    #[default]
    All,
    /// At least one id must exist.
    Any,
}

/// A group of requests that the guard checks, or exempts from the checks of later routes.
///
/// # Examples
///
/// ```
/// use tamis_guard::{IdSet, IdType, Route};
///
/// let products = IdSet::from_ids(IdType::integer(), 1..=1000)?;
/// let route = Route::new("/products/{id}", "path:id", products)?;
/// assert!(route.matches_path("/products/7") && !route.matches_path("/products"));
///
/// let products = IdSet::from_ids(IdType::integer(), 1..=1000)?;
/// let error = Route::new("/products/{id}", "path:oops", products).unwrap_err();
/// assert_eq!(error.to_string(), "the path \"/products/{id}\" has no {oops}; the path has: path:id");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Route {
    /// The name of the route in messages and metrics. By default, the name is the path template.
    pub name: String,
    /// The methods. An empty list matches all methods. GET includes HEAD, because programs handle both methods with the
    /// same code. The case of letters has no effect.
    pub methods: Vec<Method>,
    // `new` and `with_id` check these two fields. A change could make the route check nothing.
    path: PathTemplate,
    /// The ids. Only an exempt route has no ids.
    ids: Vec<RouteId>,
    /// The ids that must exist.
    pub required: Required,
    /// The ASCII character that separates the ids at a place, such as `b','` for `?ids=1,2`. With `None`, a value is one
    /// id, because a text id may contain any character. The field has no effect on a name beside another name, such
    /// as `{id}` in `{id}-{slug}`.
    ///
    /// With and without a separator, the guard checks at most 32 768 ids at one place. The guard treats a longer list
    /// like a body that exceeds [`max_body_bytes`](Self::max_body_bytes).
    pub list_separator: Option<u8>,
    /// True if the guard refuses a request that has no id at one of the places. If the field is false, a request without
    /// an id passes. An empty value is not an id. A query parameter and a form field of the same name are one place.
    pub refuses_missing: bool,
    /// The response to a refused request.
    pub refusal: Refusal,
    /// True if the route refuses no request, but counts the requests that the route would refuse.
    pub is_shadow: bool,
    /// The maximum size of a body in which the guard finds ids, in bytes. A body that exceeds the limit passes
    /// unchanged. If the route [refuses requests without an id](Self::refuses_missing), the guard refuses a body that
    /// exceeds the limit with status 413. With the value 0, the guard finds no id in a body.
    pub max_body_bytes: usize,
    /// Limits concurrent GET and HEAD requests for one id. With `None`, requests do not wait for each other. The
    /// setting has no effect without the negative cache, on a shadow route, and on requests with several ids.
    #[cfg(feature = "layer")]
    pub single_flight: Option<SingleFlight>,
    /// The counters of the decisions.
    pub counters: RouteCounters,
}

impl Route {
    /// Creates a route with one id and the default settings. [`with_id`](Self::with_id) adds further ids.
    ///
    /// `path` is a [`PathTemplate`] or its text, such as `/products/{id}`. `place` is an [`IdPlace`] or its text, such
    /// as `path:id` or `query:id`. `ids` is an [`IdSet`], or an [`Arc`] of it.
    ///
    /// # Errors
    ///
    /// [`RouteError`] if the route would check nothing: if the path or the place is not valid, if the path lacks the
    /// name of the place, or if the set [lacks a source](IdSet::lacks_source) and its policy passes unknown ids. Start
    /// the source of a set before the route is created.
    pub fn new<T, P>(path: T, place: P, ids: impl Into<Arc<IdSet>>) -> Result<Self, RouteError>
    where
        T: TryInto<PathTemplate, Error: Into<RouteError>>,
        P: TryInto<IdPlace, Error: Into<RouteError>>,
    {
        Self::exempt(path)?.with_id(place, ids)
    }

    /// Creates a route whose requests pass without a check. Place the route before a route with a wider path: the route
    /// `/products/search` exempts its requests from the route `/products/{id}`.
    ///
    /// The guard exempts only one spelling of a path, because a program may find an id in another spelling. The letters
    /// must have the same case as in the template. A path with a semicolon, a backslash, an empty segment, `.` or `..`
    /// is not exempt, also if the path contains these characters in encoded form. A path with an encoded letter, digit,
    /// `-`, `.`, `_` or `~` is not exempt either. The next matching route decides about a path that is not exempt. A
    /// slash at the end has no effect.
    ///
    /// # Errors
    ///
    /// [`RouteError::Template`] if the path is not valid.
    ///
    /// # Examples
    ///
    /// ```
    /// use tamis_guard::Route;
    ///
    /// let search = Route::exempt("/products/search")?;
    /// assert!(search.matches_path("/products/search"));
    /// assert!(!search.matches_path("/products/search/../7"));
    /// # Ok::<(), tamis_guard::RouteError>(())
    /// ```
    pub fn exempt<T>(path: T) -> Result<Self, RouteError>
    where
        T: TryInto<PathTemplate, Error: Into<RouteError>>,
    {
        let path = path.try_into().map_err(Into::into)?;
        Ok(Self {
            name: path.to_string(),
            methods: Vec::new(),
            path,
            ids: Vec::new(),
            required: Required::All,
            list_separator: None,
            refuses_missing: false,
            refusal: Refusal::default(),
            is_shadow: false,
            max_body_bytes: 64 << 10,
            #[cfg(feature = "layer")]
            single_flight: None,
            counters: RouteCounters::default(),
        })
    }

    /// Adds an id to the route. A route with an id is not exempt.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`new`](Self::new).
    pub fn with_id<P>(mut self, place: P, ids: impl Into<Arc<IdSet>>) -> Result<Self, RouteError>
    where
        P: TryInto<IdPlace, Error: Into<RouteError>>,
    {
        let (place, ids) = (place.try_into().map_err(Into::into)?, ids.into());
        if let IdPlace::Path(name) = &place
            && !self.path.names().any(|other| other == name)
        {
            return Err(RouteError::NoName { path: self.path, name: name.clone() });
        }
        if ids.lacks_source() && ids.options().policies.of(ids.state()) != Policy::Reject {
            return Err(RouteError::NoSource { place });
        }
        self.ids.push(RouteId::new(place, ids, &self.path));
        Ok(self)
    }

    /// Returns the path template.
    #[must_use]
    pub fn path(&self) -> &PathTemplate {
        &self.path
    }

    /// Returns the places of the ids, with their sets.
    #[must_use]
    pub fn ids(&self) -> &[RouteId] {
        &self.ids
    }

    /// Tests whether the requests of the route pass without a check.
    #[must_use]
    pub fn is_exempt(&self) -> bool {
        self.ids.is_empty()
    }

    /// Tests whether the route decides about requests with a path. `path` is the path that the layer receives: a router
    /// that nests the layer under a prefix removes the prefix first.
    #[must_use]
    pub fn matches_path(&self, path: &str) -> bool {
        self.values_of(path, Reading::default()).is_some()
    }

    /// Tests whether the body of a request may contain ids of the route.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        self.ids.iter().any(|id| id.place.needs_body())
    }

    /// Returns the values of the path template if the route matches the request.
    pub(crate) fn matches<'r>(&self, parts: &'r Parts, reading: Reading) -> Option<Values<'r>> {
        let after_preflight = method_after_preflight(parts);
        let is_method = self.has_method(after_preflight.as_ref().unwrap_or(&parts.method));
        if is_method { self.values_of(parts.uri.path(), reading) } else { None }
    }

    fn has_method(&self, method: &Method) -> bool {
        // Some programs ignore the case of a method. `"get".parse::<Method>()` is not `Method::GET`.
        let has =
            |name: &str| self.methods.iter().any(|other| other.as_str().eq_ignore_ascii_case(name));
        self.methods.is_empty()
            || has(method.as_str())
            || method.as_str().eq_ignore_ascii_case("HEAD") && has("GET")
    }

    fn values_of<'r>(&self, path: &'r str, reading: Reading) -> Option<Values<'r>> {
        match self.is_exempt() {
            true => self.path.matches_exactly(path).then(Values::new),
            false => self.path.values_of(path, reading),
        }
    }

    /// Tests whether this route matches all requests of the route `later`, so that the later route never decides.
    /// Returns false if the answer needs more than a comparison of the paths and the methods.
    #[cfg(feature = "proxy")]
    pub(crate) fn hides(&self, later: &Self) -> bool {
        let has_methods = self.methods.is_empty()
            || !later.methods.is_empty() && later.methods.iter().all(|it| self.has_method(it));
        let comparison = if self.is_exempt() { Comparison::Exact } else { Comparison::IgnoreCase };
        has_methods && self.path.covers(&later.path, comparison)
    }

    /// Tests whether each `..` and each encoded slash in a path is part of an id that must exist. `values` contains the
    /// values of the path template.
    pub(crate) fn are_ambiguities_in_ids(&self, path: &str, values: &Values<'_>) -> bool {
        let is_only_id = self.ids.len() == 1 && self.list_separator.is_none();
        // The value that exists may end at the semicolon.
        if path.contains(';') || self.required == Required::Any && !is_only_id {
            return false;
        }
        let is_id = |name: &str| {
            let mut ids = self.ids.iter().filter(|id| !id.has_candidates());
            ids.any(|id| matches!(&id.place, IdPlace::Path(other) if other == name))
        };
        let mut of_ids = Ambiguities::default();
        for (_, value) in self.path.names().zip(values).filter(|(name, _)| is_id(name)) {
            of_ids.add(value);
        }
        of_ids == Ambiguities::of_path(path)
    }

    /// Decides about a request. `path` contains the values of the path template for the interpretation `reading`.
    /// `body` is the text of the body, or `None` if the body was not read.
    pub(crate) fn decide<'r>(
        &self,
        parts: &'r Parts,
        reading: Reading,
        path: &Values<'r>,
        body: Option<&BodyText>,
    ) -> Decision {
        let mut decision = self.decide_values(parts, path, body);
        // For a servlet, `7;v=1` is the id `7`. For a program that is not a servlet, `7;v=1` is a separate id. A segment
        // with other text, such as `7.json;v=1`, matches only without `;v=1`.
        let is_certain = decision.is_certain();
        if is_certain && !self.path.is_mixed() || !parts.uri.path().contains(';') {
            return decision;
        }
        decision.be_no_evidence();
        if is_certain {
            return decision;
        }
        let path = self.path.values_of(parts.uri.path(), reading.without_parameters());
        let Some(path) = path else { return decision };
        let mut cut = self.decide_values(parts, &path, body);
        cut.be_no_evidence();
        let is_better = match decision.verdict {
            Verdict::Pass(_) => cut.is_certain(),
            Verdict::Refuse(RefuseReason::NotAnId) => true,
            Verdict::Refuse(_) => cut.verdict.passes(),
        };
        if is_better { cut } else { decision }
    }

    /// Decides about a request for one interpretation of its path.
    fn decide_values<'r>(
        &self,
        parts: &'r Parts,
        path: &Values<'r>,
        body: Option<&BodyText>,
    ) -> Decision {
        let mut decision = Decision::default();
        let (mut has_known, mut refusal) = (false, None);
        let mut places_with_ids = SmallVec::<[&IdPlace; 2]>::new();
        let is_preflight = method_after_preflight(parts).is_some();
        for id in &self.ids {
            if is_preflight && !id.place.is_in_target() {
                // The request that follows the preflight may contain any id in its headers or body.
                has_known = true;
                places_with_ids.push(&id.place);
                continue;
            }
            let in_head = id.values_in_head(parts, &self.path, path, self.list_separator);
            let in_body = body.map_or_else(Vec::new, |body| id.place.values_in_body(body));
            let values = in_head.iter().map(|value| &**value).chain(in_body.iter().map(|it| &**it));
            let values = values.flat_map(|value| id.elements(value, self.list_separator));
            let values: SmallVec<[&[u8]; 2]> = values.take(MAX_IDS + 1).collect();
            if values.len() > MAX_IDS {
                decision.be_no_evidence();
                if self.refuses_missing {
                    decision.refuse_too_large();
                    return decision;
                }
                continue;
            }
            if !values.is_empty() {
                places_with_ids.push(&id.place);
            }
            decision.values += values.len();
            for value in values {
                match id.decide(value, self.is_shadow, &mut decision) {
                    Verdict::Pass(reason) => {
                        has_known = true;
                        decision.verdict = Verdict::Pass(reason);
                    }
                    Verdict::Refuse(reason) => refusal = refusal.or(Some(reason)),
                }
            }
        }
        let has_id =
            |id: &RouteId| places_with_ids.iter().any(|it| it.is_same_parameter(&id.place));
        if self.refuses_missing && !self.ids.iter().all(has_id) {
            refusal = refusal.or(Some(RefuseReason::NotAnId));
        }
        let is_refused = self.required == Required::All || !has_known;
        if is_refused && let Some(reason) = refusal {
            decision.verdict = Verdict::Refuse(reason);
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) || decision.values > 1 {
            decision.be_no_evidence();
        }
        if decision.is_of_one_known_id() && !is_preflight {
            decision.request = RequestKey::of(parts);
            decision.cache_control = CacheControl::of(&parts.headers);
            decision.refuse_if_not_found();
        }
        decision
    }

    /// Counts a decision about a request. Returns the refusal if the request does not pass.
    pub(crate) fn refusal_of(
        &self,
        decision: &Decision,
        parts: &Parts,
    ) -> Option<Response<Full<Bytes>>> {
        self.counters.count(decision.verdict);
        match decision.verdict {
            Verdict::Refuse(reason) if !self.is_shadow => {
                let is_preflight = method_after_preflight(parts).is_some();
                Some(match is_preflight {
                    true => self.refusal.preflight_response(reason, &parts.headers),
                    false => self.refuse(reason, decision, parts),
                })
            }
            _ => None,
        }
    }

    /// Returns the response to a request that is refused for a reason.
    pub(crate) fn refuse(
        &self,
        reason: RefuseReason,
        decision: &Decision,
        parts: &Parts,
    ) -> Response<Full<Bytes>> {
        if decision.is_too_large {
            return self.too_large_response(parts);
        }
        let mut answer = self.refusal.response(reason);
        self.refusal.allow_origin(&parts.headers, &mut answer);
        answer
    }

    /// Returns the response to a request with a larger body or with more ids than the guard reads. The response differs
    /// from a refusal, because the ids of the request may exist.
    pub(crate) fn too_large_response(&self, parts: &Parts) -> Response<Full<Bytes>> {
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        self.refusal.allow_origin(&parts.headers, &mut answer);
        answer
    }
}
