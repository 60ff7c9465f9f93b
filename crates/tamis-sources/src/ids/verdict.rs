//! What is decided about a request, and why.

/// What is decided about the ids of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The request goes to the program behind the guard.
    Pass(PassReason),
    /// The guard answers the request.
    Refuse(RefuseReason),
}

impl Verdict {
    /// Tests whether the request passes.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, Self::Pass(_))
    }
}

/// Why a request passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassReason {
    /// The filter has the id.
    Known,
    /// The allow list has the id.
    Allowed,
    /// The id was created a short time ago.
    Recent,
    /// The id is just above the highest known one.
    Next,
    /// The guard does not know all ids now, and its policy lets such requests pass.
    Unsure,
    /// The filter of the source does not have the id, and is not proven.
    Unproven,
    /// No route names an id of the request.
    NoId,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefuseReason {
    /// The id does not exist.
    Absent,
    /// The text is no id.
    NotAnId,
    /// The deny list has the id.
    Denied,
    /// The program behind the guard answered 404 for the id a short time ago.
    Negative,
    /// The guard does not know all ids now, and its policy refuses such requests.
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

    /// Returns the name of the reason, as the metrics write it.
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

    /// Returns the name of the reason, as the metrics write it.
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
