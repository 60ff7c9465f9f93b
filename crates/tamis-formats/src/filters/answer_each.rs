//! Tests and hashes batches of items, for filters without batch operations.

use std::convert::Infallible;

use tamis::{Answers, Hasher};

/// Calls `answer` for each item and writes the results to `answers`.
pub(crate) fn answer_each(
    keys: &[&[u8]],
    answers: &mut Answers,
    mut answer: impl FnMut(&[u8]) -> bool,
) {
    let answered = try_answer_each(keys, answers, |key| Ok::<_, Infallible>(answer(key)));
    answered.unwrap_or_else(|never| match never {});
}

/// Calls `answer` for each item and writes the results to `answers`. Stops at the first error.
pub(crate) fn try_answer_each<E>(
    keys: &[&[u8]],
    answers: &mut Answers,
    mut answer: impl FnMut(&[u8]) -> Result<bool, E>,
) -> Result<(), E> {
    answers.reset(keys.len());
    for (i, key) in keys.iter().enumerate() {
        answers.set(i, answer(key)?);
    }
    Ok(())
}

/// Hashes a batch of items.
pub(crate) fn hash_each(hasher: Hasher, keys: &[&[u8]]) -> Vec<u64> {
    keys.iter().map(|key| hasher.hash(key)).collect()
}
