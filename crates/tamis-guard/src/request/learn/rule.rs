//! Which answers teach ids.

use std::sync::Arc;

use http::Method;
use http::request::Parts;
use tamis_sources::IdSet;

use crate::request::learn::counters::LearnCounters;
use crate::request::learn::place::LearnPlace;
use crate::request::path::{PathTemplate, Reading};

/// Requests whose successful answers teach ids.
///
/// A request of the rule must reach the service: a [`Route`](crate::Route) for the same path should
/// be limited to other methods.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tamis_guard::{GuardLayer, IdSet, IdSetOptions, IdType, LearnRule};
///
/// let products = Arc::new(IdSet::new(IdSetOptions::new(IdType::Uuid))?);
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
    /// The name in messages and metrics.
    pub name: String,
    /// The methods. Empty for all.
    pub methods: Vec<Method>,
    /// The path.
    pub path: PathTemplate,
    /// Where the ids are. The ids at all places are learnt.
    pub places: Vec<LearnPlace>,
    /// The set that learns them.
    pub ids: Arc<IdSet>,
    /// The largest JSON of a request or an answer in which ids are looked for, in bytes. A larger
    /// body passes unchanged. The guard keeps a copy of this size for each answer.
    pub max_body_bytes: usize,
    /// What was learnt so far.
    pub counters: LearnCounters,
}

impl LearnRule {
    /// Returns a rule for the methods POST and PUT, with a limit of 64 KiB.
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

    /// Tests whether the answer to a request may teach ids.
    pub(super) fn matches(&self, parts: &Parts) -> bool {
        (self.methods.is_empty() || self.methods.contains(&parts.method))
            && self.path.values_of(parts.uri.path(), Reading::default()).is_some()
    }

    pub(super) fn needs_request_body(&self) -> bool {
        self.places.iter().any(LearnPlace::needs_request_body)
    }

    pub(super) fn needs_answer_body(&self) -> bool {
        self.places.iter().any(|place| matches!(place, LearnPlace::AnswerJson(_)))
    }
}
