//! A learning rate that follows the progress of training: unlike a schedule it has a state.

/// Reduces the learning rate when a measure, usually the loss on samples held out, has stopped to improve. PyTorch:
/// `ReduceLROnPlateau`.
///
/// ```
/// use wengert_nn::schedule::ReduceLROnPlateau;
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

/// What [`ReduceLROnPlateau`] remembers, to be saved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// The present learning rate.
    pub lr: f64,
    /// The best measure so far; infinite before the first.
    pub best: f64,
    /// Measures without an improvement since the best one, or since the last reduction. PyTorch: `num_bad_epochs`.
    pub waited: u64,
    /// Measures that will not be counted. PyTorch: `cooldown_counter`.
    pub cooling: u64,
}

impl ReduceLROnPlateau {
    /// From `lr`, a tenth after more than 10 measures that are not below the best by a 10000th of it.
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

    /// What the rate is multiplied by.
    ///
    /// # Panics
    ///
    /// Where it is not below 1.
    #[must_use]
    #[track_caller]
    pub fn factor(self, factor: f64) -> Self {
        assert!(factor < 1.0, "ReduceLROnPlateau: expected a factor below 1, but got {factor}");
        ReduceLROnPlateau { factor, ..self }
    }

    /// How many measures without an improvement are waited for.
    #[must_use]
    pub fn patience(self, patience: u64) -> Self {
        ReduceLROnPlateau { patience, ..self }
    }

    /// The share of the best measure that is an improvement.
    #[must_use]
    pub fn threshold(self, threshold: f64) -> Self {
        ReduceLROnPlateau { threshold, absolute: false, ..self }
    }

    /// The difference from the best measure that is an improvement. PyTorch: `threshold_mode="abs"`.
    #[must_use]
    pub fn absolute_threshold(self, threshold: f64) -> Self {
        ReduceLROnPlateau { threshold, absolute: true, ..self }
    }

    /// Larger measures are better: an accuracy. PyTorch: `mode="max"`.
    #[must_use]
    pub fn maximize(self) -> Self {
        let state = Plateau { best: f64::NEG_INFINITY, ..self.state };
        ReduceLROnPlateau { maximize: true, state, ..self }
    }

    /// How many measures after a reduction are not counted.
    #[must_use]
    pub fn cooldown(self, cooldown: u64) -> Self {
        ReduceLROnPlateau { cooldown, ..self }
    }

    /// The least rate.
    #[must_use]
    pub fn min_lr(self, min_lr: f64) -> Self {
        ReduceLROnPlateau { min_lr, ..self }
    }

    /// A reduction by no more than this is left out.
    #[must_use]
    pub fn eps(self, eps: f64) -> Self {
        ReduceLROnPlateau { eps, ..self }
    }

    /// Takes a measure and returns the learning rate from here on. NaN is no improvement.
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

    /// The present learning rate.
    pub fn lr(&self) -> f64 {
        self.state.lr
    }

    /// What is to be saved.
    pub fn state(&self) -> Plateau {
        self.state
    }

    /// Goes on from a state that was saved.
    pub fn set_state(&mut self, state: Plateau) {
        self.state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plateau_goes_on_from_what_was_saved() {
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
