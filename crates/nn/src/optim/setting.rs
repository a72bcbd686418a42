//! References to the settings of an optimiser, which checks and checkpoints access by name.

/// A mutable reference to one setting of an optimiser.
#[derive(Debug)]
pub enum Setting<'o> {
    /// A number, and the range that it must be in.
    Number(&'o mut f64, Range),
    /// A setting that is true or false.
    Flag(&'o mut bool),
}

/// The range that a number among the settings must be in. No range contains NaN or an infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// The setting is 0 or more.
    NotNegative,
    /// The setting is from 0 to 1, 1 excluded.
    BelowOne,
    /// The setting is from 0 to 1, 1 included.
    UpToOne,
    /// The setting is any finite number.
    Finite,
}

impl Range {
    /// Returns an error with a description of the range if `value` is outside of it.
    pub(super) fn check(self, value: f64) -> Result<(), &'static str> {
        let (inside, expected) = match self {
            Range::NotNegative => (value >= 0.0, "a finite number, not negative"),
            Range::BelowOne => ((0.0..1.0).contains(&value), "a number from 0 to 1, 1 excluded"),
            Range::UpToOne => ((0.0..=1.0).contains(&value), "a number from 0 to 1"),
            Range::Finite => (true, "a finite number"),
        };
        if inside && value.is_finite() { Ok(()) } else { Err(expected) }
    }
}
