//! A learning rate that depends on the progress of the training. Unlike a schedule, it has a state.

/// A learning rate that is reduced when a measure, usually the validation loss, stops improving. PyTorch: `ReduceLROnPlateau`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::schedule::ReduceLROnPlateau;
///
/// let mut plateau = ReduceLROnPlateau::new(0.1).patience(1);
/// let rates: Vec<f64> = [3.0, 2.0, 2.0, 2.0, 2.0].map(|loss| plateau.step(loss)).to_vec();
/// assert_eq!(rates, [0.1, 0.1, 0.1, 0.1 * 0.1, 0.1 * 0.1]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReduceLROnPlateau {
    factor: f64,
    patience: u64,
    threshold: f64,
    absolute: bool,
    maximize: bool,
    cooldown: u64,
    min_lr: f64,
    eps: f64,
    state: Plateau,
}

/// The state of a [`ReduceLROnPlateau`], which a training run saves to continue later.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// The current learning rate.
    pub lr: f64,
    /// The measure that counted as the last improvement. Later measures are compared with it. Before the first improvement, it is infinite.
    pub best: f64,
    /// The number of measures in a row without an improvement. An improvement, a reduction of the rate and each measure of a cooldown set it
    /// to 0. So does a reduction that is too small to be made. PyTorch: `num_bad_epochs`.
    pub waited: u64,
    /// The number of further measures that will not count towards a reduction, because the rate has just been reduced. PyTorch:
    /// `cooldown_counter`.
    pub cooling: u64,
}

impl ReduceLROnPlateau {
    /// Returns a schedule that begins at `lr`, with PyTorch's defaults. It divides the rate by 10 after more than 10 measures in a row without
    /// progress. A measure is progress if it is below (1 - 1e-4) times the best measure so far.
    pub fn new(lr: f64) -> Self {
        let state = Plateau { lr, best: f64::INFINITY, waited: 0, cooling: 0 };
        let (factor, patience, threshold, cooldown, min_lr, eps) = (0.1, 10, 1e-4, 0, 0.0, 1e-8);
        ReduceLROnPlateau {
            factor,
            patience,
            threshold,
            absolute: false,
            maximize: false,
            cooldown,
            min_lr,
            eps,
            state,
        }
    }

    /// Sets the factor by which a reduction multiplies the rate; 0.1 by default.
    ///
    /// # Panics
    ///
    /// If `factor` is not from 0 to 1, 1 excluded.
    #[must_use]
    #[track_caller]
    pub fn factor(self, factor: f64) -> Self {
        assert!(
            (0.0..1.0).contains(&factor),
            "ReduceLROnPlateau: expected a factor from 0 to 1, 1 excluded, but got {factor}"
        );
        ReduceLROnPlateau { factor, ..self }
    }

    /// Sets the number of measures in a row without an improvement that do not yet reduce the rate; 10 by default. One more measure without
    /// an improvement reduces it.
    #[must_use]
    pub fn patience(self, patience: u64) -> Self {
        ReduceLROnPlateau { patience, ..self }
    }

    /// Sets how much better than the best measure a measure must be to count as an improvement. `threshold` is a fraction of the best measure;
    /// 1e-4 by default.
    #[must_use]
    pub fn threshold(self, threshold: f64) -> Self {
        ReduceLROnPlateau { threshold, absolute: false, ..self }
    }

    /// Sets how much better than the best measure a measure must be to count as an improvement. `threshold` is the difference of both
    /// measures. PyTorch: `threshold_mode="abs"`.
    #[must_use]
    pub fn absolute_threshold(self, threshold: f64) -> Self {
        ReduceLROnPlateau { threshold, absolute: true, ..self }
    }

    /// Treats larger measures as better, for example an accuracy. PyTorch: `mode="max"`.
    #[must_use]
    pub fn maximize(self) -> Self {
        let state = Plateau { best: f64::NEG_INFINITY, ..self.state };
        ReduceLROnPlateau { maximize: true, state, ..self }
    }

    /// Sets the number of measures after a reduction that do not count towards the next reduction; 0 by default.
    #[must_use]
    pub fn cooldown(self, cooldown: u64) -> Self {
        ReduceLROnPlateau { cooldown, ..self }
    }

    /// Sets the lower limit of the learning rate; 0 by default.
    ///
    /// For a group with its own rate, this rate is multiplied by the group's ratio; see [`set_lr`](crate::Optimizer::set_lr).
    #[must_use]
    pub fn min_lr(self, min_lr: f64) -> Self {
        ReduceLROnPlateau { min_lr, ..self }
    }

    /// Sets the largest change of the rate that is too small to be made: a reduction that lowers the rate by at most `eps` is skipped; 1e-8
    /// by default.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        ReduceLROnPlateau { eps, ..self }
    }

    /// Takes the next measure and returns the learning rate from now on. A measure of NaN is no improvement.
    pub fn step(&mut self, measure: f64) -> f64 {
        let state = &mut self.state;
        let better = match (self.maximize, self.absolute) {
            (false, false) => measure < state.best * (1.0 - self.threshold),
            (false, true) => measure < state.best - self.threshold,
            (true, false) => measure > state.best * (1.0 + self.threshold),
            (true, true) => measure > state.best + self.threshold,
        };
        if better {
            (state.best, state.waited) = (measure, 0);
        } else {
            state.waited += 1;
        }
        if state.cooling > 0 {
            (state.cooling, state.waited) = (state.cooling - 1, 0);
        }
        if state.waited > self.patience {
            let reduced = (state.lr * self.factor).max(self.min_lr);
            if state.lr - reduced > self.eps {
                state.lr = reduced;
            }
            (state.cooling, state.waited) = (self.cooldown, 0);
        }
        state.lr
    }

    /// Returns the current learning rate.
    pub fn lr(&self) -> f64 {
        self.state.lr
    }

    /// Returns the state, which [`set_state`](Self::set_state) restores later.
    pub fn state(&self) -> Plateau {
        self.state
    }

    /// Restores a state that [`state`](Self::state) returned.
    pub fn set_state(&mut self, state: Plateau) {
        self.state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_state_continues_the_same_way() {
        let new = || ReduceLROnPlateau::new(1.0).factor(0.5).patience(1).cooldown(1).min_lr(0.2).threshold(0.0);
        let losses = [5.0, 4.0, 4.0, f64::NAN, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0];
        let mut whole = new();
        let rates: Vec<f64> = losses.iter().map(|&loss| whole.step(loss)).collect();
        assert_eq!(rates[3..8], [0.5, 0.5, 0.5, 0.25, 0.25]);
        assert_eq!((rates[12], whole.lr()), (0.2, 0.2));
        for stop in 0..losses.len() {
            let mut first = new();
            for &loss in &losses[..stop] {
                first.step(loss);
            }
            let mut second = new();
            second.set_state(first.state());
            assert_eq!(losses[stop..].iter().map(|&loss| second.step(loss)).collect::<Vec<_>>(), rates[stop..]);
        }
    }
}
