//! The folds of all sources of a set.

use crate::ids::fold::Fold;

/// A set of folds. The columns of the sources of a set may have different collations, so their folds may differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folds(u8);

impl Folds {
    pub(crate) fn insert(&mut self, fold: Fold) {
        self.0 |= 1 << fold.number();
    }

    /// Returns each fold once.
    pub(crate) fn iter(self) -> impl Iterator<Item = Fold> {
        Fold::ALL.into_iter().filter(move |fold| self.0 & 1 << fold.number() != 0)
    }

    /// Returns the fold if all sources have the same fold.
    pub(crate) fn single(self) -> Option<Fold> {
        let mut folds = self.iter();
        folds.next().filter(|_| self.0.is_power_of_two())
    }
}

impl FromIterator<Fold> for Folds {
    fn from_iter<I: IntoIterator<Item = Fold>>(all: I) -> Self {
        let mut folds = Self::default();
        all.into_iter().for_each(|fold| folds.insert(fold));
        folds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_folds_are_a_single_fold() {
        for fold in Fold::ALL {
            assert_eq!(Folds::from_iter([fold, fold]).single(), Some(fold));
        }
        let two = Folds::from_iter([Fold::Uca, Fold::Exact, Fold::Uca]);
        assert_eq!(two.single(), None);
        assert!(two.iter().eq([Fold::Exact, Fold::Uca]));
        assert_eq!(Folds::default().single(), None);
    }
}
