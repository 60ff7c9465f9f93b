//! The verdict about a request, and the reason for the verdict.

/// The verdict about the ids of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The guard forwards the request to the upstream service.
    Pass(PassReason),
    /// The guard refuses the request and sends the response itself.
    Refuse(RefuseReason),
}

impl Verdict {
    /// Tests whether the request passes.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, Self::Pass(_))
    }
}

/// The reason why a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassReason {
    /// The filter contains the id.
    Known,
    /// The allow list contains the id.
    Allowed,
    /// The id was created recently.
    Recent,
    /// The id is slightly above the highest id in the set.
    Next,
    /// The set is not complete at present, and its policy lets unknown ids pass.
    Unsure,
    /// The filter of the source does not contain the id, but the filter is not proven.
    Unproven,
    /// The request contains no id of any route.
    NoId,
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseReason {
    /// The id does not exist.
    Absent,
    /// The text is not an id of the type.
    NotAnId,
    /// The deny list contains the id.
    Denied,
    /// The upstream service recently responded with 404 to the same request.
    Negative,
    /// The set is not complete at present, and its policy refuses unknown ids.
    Unsure,
}

impl PassReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Known,
        Self::Allowed,
        Self::Recent,
        Self::Next,
        Self::Unsure,
        Self::Unproven,
        Self::NoId,
    ];

    /// Returns the name of the reason in the metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Allowed => "allowed",
            Self::Recent => "recent",
            Self::Next => "next",
            Self::Unsure => "unsure",
            Self::Unproven => "unproven",
            Self::NoId => "no_id",
        }
    }
}

impl RefuseReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Absent, Self::NotAnId, Self::Denied, Self::Negative, Self::Unsure];

    /// Returns the name of the reason in the metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::NotAnId => "not_an_id",
            Self::Denied => "denied",
            Self::Negative => "negative",
            Self::Unsure => "unsure",
        }
    }
}
