//! Collects the ids that the guard learns from one request and its response.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::HeaderMap;
use http::request::Parts;
use tamis_sources::IdError;

use crate::request::body_text::BodyText;
use crate::request::json::Json;
use crate::request::learn::counters::NotLearnt;
use crate::request::learn::place::LearnPlace;
use crate::request::learn::rule::LearnRule;

/// The learn rules that match one request, and the values that were found for them.
#[derive(Debug)]
pub(crate) struct Lessons {
    rules: Arc<[LearnRule]>,
    lessons: Vec<Lesson>,
    /// The path of the request. A relative address in the response is resolved against the path of the request.
    request_path: String,
}

/// A learn rule that matches the request.
#[derive(Debug)]
struct Lesson {
    /// The index of the rule.
    rule: usize,
    /// The values that were found but not learned yet. A value may be an invalid id.
    values: BTreeSet<Vec<u8>>,
    has_learnt: bool,
    has_wrong: bool,
}

impl Lessons {
    /// Returns the matching learn rules for a request. Returns `None` if no rule matches.
    pub(crate) fn of_request(rules: &Arc<[LearnRule]>, parts: &Parts) -> Option<Self> {
        let matching = (0..rules.len()).filter(|&rule| rules[rule].matches(parts));
        let lessons: Vec<_> = matching.map(Lesson::new).collect();
        if lessons.is_empty() {
            return None;
        }
        let request_path = parts.uri.path().to_owned();
        let mut lessons = Self { rules: Arc::clone(rules), lessons, request_path };
        lessons.add(|place, rule| {
            let values = place.values_in_request(parts, &rule.path).into_iter();
            values.map(std::borrow::Cow::into_owned).collect()
        });
        Some(lessons)
    }

    /// Returns the maximum size of a request body that the rules read, in bytes. Returns `None` if no rule reads the
    /// request body.
    pub(crate) fn max_request_bytes(&self) -> Option<usize> {
        self.matching_rules()
            .filter(|rule| rule.needs_request_body())
            .map(|rule| rule.max_body_bytes)
            .max()
    }

    /// Finds ids in the body of the request.
    pub(crate) fn read_request(&mut self, body: &BodyText) {
        self.add(|place, rule| match place {
            LearnPlace::Request(place) if body.len_bytes() <= rule.max_body_bytes => {
                place.values_in_body(body)
            }
            _ => Vec::new(),
        });
    }

    /// Learns the ids in the request and in the headers of its successful response. Returns the maximum number of body
    /// bytes from which the rules may learn ids. Returns `None` if no rule needs the response body.
    pub(super) fn learn_head(&mut self, headers: &HeaderMap) -> Option<usize> {
        let path = std::mem::take(&mut self.request_path);
        self.add(|place, _| place.values_in_answer(headers, &path));
        self.learn();
        self.finish_without(LearnRule::needs_answer_body, NotLearnt::NoId);
        self.matching_rules().map(|rule| rule.max_body_bytes).max()
    }

    /// Learns the ids in the JSON body of the response.
    pub(super) fn learn_json(mut self, text: &[u8]) {
        self.finish_without(|rule| text.len() <= rule.max_body_bytes, NotLearnt::TooLarge);
        let Some(json) = Json::parse(text) else {
            return self.finish(NotLearnt::NotJson);
        };
        self.add(|place, _| match place {
            LearnPlace::AnswerJson(path) => json.values_at(path),
            _ => Vec::new(),
        });
        self.learn();
        self.finish(NotLearnt::NoId);
    }

    /// Counts the response for all rules that are not finished. `reason` explains why the body contains no id.
    pub(super) fn finish(mut self, reason: NotLearnt) {
        self.finish_without(|_| false, reason);
    }

    /// Finishes and removes the rules for which `stays` returns false.
    fn finish_without(&mut self, stays: impl Fn(&LearnRule) -> bool, reason: NotLearnt) {
        let rules = &self.rules;
        self.lessons.retain(|lesson| {
            let rule = &rules[lesson.rule];
            let stays = stays(rule);
            if !stays {
                lesson.finish(rule, reason);
            }
            stays
        });
    }

    fn learn(&mut self) {
        for lesson in &mut self.lessons {
            lesson.learn(&self.rules[lesson.rule]);
        }
    }

    fn add(&mut self, values_at: impl Fn(&LearnPlace, &LearnRule) -> Vec<Vec<u8>>) {
        for lesson in &mut self.lessons {
            let rule = &self.rules[lesson.rule];
            for place in &rule.places {
                lesson.values.extend(values_at(place, rule));
            }
        }
    }

    fn matching_rules(&self) -> impl Iterator<Item = &LearnRule> {
        self.lessons.iter().map(|lesson| &self.rules[lesson.rule])
    }
}

impl Lesson {
    fn new(rule: usize) -> Self {
        Self { rule, values: BTreeSet::new(), has_learnt: false, has_wrong: false }
    }

    /// Learns the values that were found.
    fn learn(&mut self, rule: &LearnRule) {
        for value in std::mem::take(&mut self.values) {
            if let Err(IdError::NotAnId { .. }) = rule.ids.insert_recent(&value) {
                self.has_wrong = true;
                continue;
            }
            // Another error means that the filter cannot grow. In spite of the error, the set contains the id.
            rule.counters.count_learnt();
            self.has_learnt = true;
        }
    }

    /// Counts the response if the rule has learned no id. `reason` explains why no value was found.
    fn finish(&self, rule: &LearnRule, reason: NotLearnt) {
        if !self.has_learnt {
            let reason = if self.has_wrong { NotLearnt::NotAnId } else { reason };
            rule.counters.count_not_learnt(reason);
        }
    }
}
