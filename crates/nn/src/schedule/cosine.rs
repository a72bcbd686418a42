//! Schedules that follow half a cosine wave.

use std::f64::consts::PI;

use crate::schedule::schedule::Schedule;

/// A learning rate that follows half a cosine wave from `lr` down to [`eta_min`](Self::eta_min) in `t_max` steps, then up again in `t_max`
/// steps, and so on. PyTorch: `CosineAnnealingLR` (I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", 2016,
/// but without the restarts).
#[derive(Clone, Debug, PartialEq)]
pub struct CosineAnnealingLR {
    lr: f64,
    eta_min: f64,
    t_max: u64,
}

impl CosineAnnealingLR {
    /// Returns a schedule whose rate falls from `lr` to 0 in `t_max` steps.
    ///
    /// # Panics
    ///
    /// If `t_max` is 0.
    #[track_caller]
    pub fn new(lr: f64, t_max: u64) -> Self {
        assert!(t_max > 0, "CosineAnnealingLR: expected a t_max of at least 1, but got 0");
        CosineAnnealingLR { lr, eta_min: 0.0, t_max }
    }

    /// Sets the rate at the lowest point of the wave; 0 by default.
    ///
    /// For a group with its own rate, this rate is multiplied by the group's ratio; see [`set_lr`](crate::Optimizer::set_lr).
    #[must_use]
    pub fn eta_min(self, eta_min: f64) -> Self {
        CosineAnnealingLR { eta_min, ..self }
    }
}

impl Schedule for CosineAnnealingLR {
    fn lr(&self, step: u64) -> f64 {
        cosine(self.lr, self.eta_min, step as f64 / self.t_max as f64)
    }
}

/// A learning rate that follows half a cosine wave from `lr` down to [`eta_min`](Self::eta_min) in `t_0` steps, and then starts again at `lr`.
/// Each further period is [`t_mult`](Self::t_mult) times as long as the period before. PyTorch: `CosineAnnealingWarmRestarts` (I. Loshchilov and
/// F. Hutter, 2016).
#[derive(Clone, Debug, PartialEq)]
pub struct CosineAnnealingWarmRestarts {
    lr: f64,
    eta_min: f64,
    t_0: u64,
    t_mult: u64,
}

impl CosineAnnealingWarmRestarts {
    /// Returns a schedule whose rate falls from `lr` to 0 in `t_0` steps, and starts again every `t_0` steps.
    ///
    /// # Panics
    ///
    /// If `t_0` is 0.
    #[track_caller]
    pub fn new(lr: f64, t_0: u64) -> Self {
        assert!(t_0 > 0, "CosineAnnealingWarmRestarts: expected a t_0 of at least 1, but got 0");
        CosineAnnealingWarmRestarts { lr, eta_min: 0.0, t_0, t_mult: 1 }
    }

    /// Sets the rate at the lowest point of the wave; 0 by default.
    ///
    /// For a group with its own rate, this rate is multiplied by the group's ratio; see [`set_lr`](crate::Optimizer::set_lr).
    #[must_use]
    pub fn eta_min(self, eta_min: f64) -> Self {
        CosineAnnealingWarmRestarts { eta_min, ..self }
    }

    /// Sets the ratio of the length of each period to the length of the period before; 1 by default.
    ///
    /// # Panics
    ///
    /// If `t_mult` is 0.
    #[must_use]
    #[track_caller]
    pub fn t_mult(self, t_mult: u64) -> Self {
        assert!(t_mult > 0, "CosineAnnealingWarmRestarts: expected a t_mult of at least 1, but got 0");
        CosineAnnealingWarmRestarts { t_mult, ..self }
    }
}

impl Schedule for CosineAnnealingWarmRestarts {
    fn lr(&self, step: u64) -> f64 {
        let (mut done, mut period) = (step, self.t_0);
        if self.t_mult == 1 {
            done %= period;
        }
        while done >= period {
            done -= period;
            period = period.saturating_mul(self.t_mult);
        }
        cosine(self.lr, self.eta_min, done as f64 / period as f64)
    }
}

/// Returns the value of a cosine wave at the position `progress`. The wave goes from `from` at 0 to `to` at 1, which is half a wave.
pub(super) fn cosine(from: f64, to: f64, progress: f64) -> f64 {
    to + (from - to) * (1.0 + libm::cos(PI * progress)) / 2.0
}
