//! A wrapper for state of a filter that comparisons and dumps ignore.

/// A value that comparisons of filters ignore, and that dumps do not contain.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NotCompared<T>(pub(crate) T);

impl<T> PartialEq for NotCompared<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for NotCompared<T> {}
