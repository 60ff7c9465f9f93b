//! State of a process that is no part of a filter.

/// A value that dumps do not contain. Filters that differ only in such a value are equal.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NotCompared<T>(pub(crate) T);

impl<T> PartialEq for NotCompared<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for NotCompared<T> {}
