//! State of the process that is not part of a filter's value.

/// A value that comparisons of filters ignore. Dumps do not contain this value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NotCompared<T>(pub(crate) T);

impl<T> PartialEq for NotCompared<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for NotCompared<T> {}
