//! The truth of a condition: true, false or NULL, or several of these if the source cannot decide.

/// The possible results of a condition, as a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Truth(u8);

/// The three results of SQL, each as a bit.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const NULL: u8 = 4;

impl Truth {
    pub(super) const TRUE: Self = Self(TRUE);
    pub(super) const FALSE: Self = Self(FALSE);
    pub(super) const NULL: Self = Self(NULL);
    /// True or false. The source cannot decide.
    pub(super) const TRUE_OR_FALSE: Self = Self(TRUE | FALSE);
    /// Any result, because the log does not contain the value.
    pub(super) const UNKNOWN: Self = Self(TRUE | FALSE | NULL);

    pub(super) fn of(is_true: bool) -> Self {
        if is_true { Self::TRUE } else { Self::FALSE }
    }

    pub(super) fn may_be_true(self) -> bool {
        self.0 & TRUE != 0
    }

    pub(super) fn not(self) -> Self {
        let swapped = (self.0 & TRUE) << 1 | (self.0 & FALSE) >> 1;
        Self(swapped | self.0 & NULL)
    }

    /// Returns the results of `AND`: false if one side is false, otherwise NULL if one side is NULL.
    pub(super) fn and(self, other: Self) -> Self {
        let mut results = (self.0 | other.0) & FALSE | self.0 & other.0 & TRUE;
        let is_without_false = |side: u8| side & (TRUE | NULL) != 0;
        if (self.0 | other.0) & NULL != 0 && is_without_false(self.0) && is_without_false(other.0) {
            results |= NULL;
        }
        Self(results)
    }

    /// Returns the results of `OR`, by the law of De Morgan.
    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of `AND` for single results.
    fn and(a: u8, b: u8) -> u8 {
        match (a, b) {
            (FALSE, _) | (_, FALSE) => FALSE,
            (NULL, _) | (_, NULL) => NULL,
            _ => TRUE,
        }
    }

    fn or(a: u8, b: u8) -> u8 {
        match (a, b) {
            (TRUE, _) | (_, TRUE) => TRUE,
            (NULL, _) | (_, NULL) => NULL,
            _ => FALSE,
        }
    }

    #[test]
    fn sets_of_results_contain_the_result_of_each_pair() {
        let singles = |set: u8| [TRUE, FALSE, NULL].into_iter().filter(move |it| set & it != 0);
        for a in 1..8 {
            for b in 1..8 {
                let pairs = |join: fn(u8, u8) -> u8| {
                    singles(a)
                        .flat_map(|a| singles(b).map(move |b| join(a, b)))
                        .fold(0, |all, it| all | it)
                };
                assert_eq!(Truth(a).and(Truth(b)), Truth(pairs(and)), "{a} AND {b}");
                assert_eq!(Truth(a).or(Truth(b)), Truth(pairs(or)), "{a} OR {b}");
            }
        }
        assert_eq!(Truth::NULL.not(), Truth::NULL);
        assert_eq!((Truth::TRUE.not(), Truth::FALSE.not()), (Truth::FALSE, Truth::TRUE));
    }
}
