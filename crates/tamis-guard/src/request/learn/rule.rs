//! A rule for learning ids from responses.

use std::sync::Arc;

use http::Method;
use http::request::Parts;
use tamis_sources::IdSet;

use crate::request::learn::counters::LearnCounters;
use crate::request::learn::place::LearnPlace;
use crate::request::path::{PathTemplate, Reading};

/// A rule for learning ids from the successful responses to matching requests.
///
/// The matching requests must reach the upstream service. A [`Route`](crate::Route) with the path of the rule should
/// exclude the methods of the rule.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tamis_guard::{GuardLayer, IdSet, IdType, LearnRule};
///
/// let products = Arc::new(IdSet::new(IdType::Uuid)?);
/// let places = vec!["answer json:/data/id".parse()?];
/// let rule = LearnRule::new("/products".parse()?, places, products);
/// assert_eq!(rule.methods, ["POST", "PUT"]);
/// assert_eq!(rule.max_body_bytes, 65_536);
/// let layer = GuardLayer::new(Vec::new()).with_learn(vec![rule]);
/// # let _ = layer;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LearnRule {
    /// The name of the rule in messages and metrics.
    pub name: String,
    /// The methods of matching requests. An empty list matches all methods. The case of letters has no effect.
    pub methods: Vec<Method>,
    /// The path template of matching requests.
    pub path: PathTemplate,
    /// The places of the ids. The rule learns the ids at all places.
    pub places: Vec<LearnPlace>,
    /// The set that learns the ids.
    pub ids: Arc<IdSet>,
    /// The maximum size of a JSON body from which the rule learns, in bytes. The limit applies to requests and
    /// responses. A body that exceeds the limit passes unchanged. For each response, the guard keeps a copy of up to
    /// `max_body_bytes` bytes.
    pub max_body_bytes: usize,
    /// The counters of the rule.
    pub counters: LearnCounters,
}

impl LearnRule {
    /// Creates a rule for the methods POST and PUT, with a limit of 64 KiB.
    #[must_use]
    pub fn new(path: PathTemplate, places: Vec<LearnPlace>, ids: Arc<IdSet>) -> Self {
        Self {
            name: String::new(),
            methods: vec![Method::POST, Method::PUT],
            path,
            places,
            ids,
            max_body_bytes: 64 << 10,
            counters: LearnCounters::default(),
        }
    }

    /// Tests whether the rule applies to a request.
    pub(super) fn matches(&self, parts: &Parts) -> bool {
        let is_same = |method: &Method| method.as_str().eq_ignore_ascii_case(parts.method.as_str());
        (self.methods.is_empty() || self.methods.iter().any(is_same))
            && self.path.values_of(parts.uri.path(), Reading::default()).is_some()
    }

    pub(super) fn needs_request_body(&self) -> bool {
        self.places.iter().any(LearnPlace::needs_request_body)
    }

    pub(super) fn needs_answer_body(&self) -> bool {
        self.places.iter().any(|place| matches!(place, LearnPlace::AnswerJson(_)))
    }
}
