//! Early stopping.

/// A detector that tells when a measure no longer improves. Keras, PyTorch Lightning: `EarlyStopping`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::EarlyStopping;
///
/// let mut stopping = EarlyStopping::new(2);
/// let improved = [3.0, 2.0, 2.5, 2.0].map(|loss| stopping.update(loss));
/// assert_eq!(improved, [true, true, false, false]);
/// assert!(stopping.should_stop() && stopping.best() == 2.0);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct EarlyStopping {
    patience: u64,
    min_delta: f64,
    maximize: bool,
    best: f64,
    waited: u64,
}

impl EarlyStopping {
    /// Returns a detector that stops after `patience` measures in a row without an improvement. Smaller measures are
    /// better. A `patience` of 0 counts as 1.
    pub fn new(patience: u64) -> Self {
        EarlyStopping { patience, min_delta: 0.0, maximize: false, best: f64::INFINITY, waited: 0 }
    }

    /// Sets the difference from the best measure that an improvement must exceed; 0 by default.
    #[must_use]
    pub fn min_delta(self, min_delta: f64) -> Self {
        EarlyStopping { min_delta, ..self }
    }

    /// Treats larger measures as better, for example if the measure is an accuracy.
    #[must_use]
    pub fn maximize(self) -> Self {
        EarlyStopping { maximize: true, best: f64::NEG_INFINITY, ..self }
    }

    /// Takes a measure. Returns true if the measure improves the best one by more than [`min_delta`](Self::min_delta).
    /// Otherwise counts one more measure without an improvement. NaN is not an improvement.
    pub fn update(&mut self, measure: f64) -> bool {
        let gain = if self.maximize { measure - self.best } else { self.best - measure };
        let improved = gain > self.min_delta;
        (self.best, self.waited) = if improved { (measure, 0) } else { (self.best, self.waited + 1) };
        improved
    }

    /// Returns true after `patience` measures in a row without an improvement.
    pub fn should_stop(&self) -> bool {
        self.waited >= self.patience.max(1)
    }

    /// Returns the measure of the last improvement; infinite before the first improvement.
    pub fn best(&self) -> f64 {
        self.best
    }

    /// Returns the state, which can be saved: the measure of the last improvement, and the number of measures after it.
    pub fn state(&self) -> (f64, u64) {
        (self.best, self.waited)
    }

    /// Restores a saved state.
    pub fn set_state(&mut self, (best, waited): (f64, u64)) {
        (self.best, self.waited) = (best, waited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn improvements_are_counted_in_either_direction() {
        let mut stopping = EarlyStopping::new(2).maximize().min_delta(0.1);
        let improved = [0.5, 0.55, f64::NAN, 0.9].map(|accuracy| (stopping.update(accuracy), stopping.should_stop()));
        assert_eq!(improved, [(true, false), (false, false), (false, true), (true, false)]);
        let mut resumed = EarlyStopping::new(2).maximize();
        resumed.set_state(stopping.state());
        assert!(!resumed.update(0.9) && resumed.best() == 0.9);
    }

    #[test]
    fn a_patience_of_0_counts_as_1() {
        let mut stopping = EarlyStopping::new(0);
        assert!(!stopping.should_stop() && stopping.update(1.0) && !stopping.should_stop());
        assert!(!stopping.update(1.0) && stopping.should_stop());
    }
}
