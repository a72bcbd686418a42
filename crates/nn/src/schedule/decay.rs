//! Schedules whose learning rate is a simple formula of the step. Most lower the rate.

use crate::schedule::schedule::Schedule;

/// A schedule with the rate `lr` · `factor` for the first `steps` steps, and then the rate `lr`. PyTorch: `ConstantLR`, with `total_iters`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantLR {
    lr: f64,
    factor: f64,
    steps: u64,
}

impl ConstantLR {
    /// Returns the schedule with these settings. PyTorch's defaults are a factor of 1/3 for 5 steps.
    pub fn new(lr: f64, factor: f64, steps: u64) -> Self {
        ConstantLR { lr, factor, steps }
    }
}

impl Schedule for ConstantLR {
    fn lr(&self, step: u64) -> f64 {
        if step < self.steps { self.lr * self.factor } else { self.lr }
    }
}

/// A schedule with the rate `lr` times a factor. The factor changes linearly from `start` to `end` in `steps` steps, and then stays constant.
/// PyTorch: `LinearLR`, with `start_factor`, `end_factor` and `total_iters`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearLR {
    lr: f64,
    start: f64,
    end: f64,
    steps: u64,
}

impl LinearLR {
    /// Returns the schedule. PyTorch's defaults are a factor from 1/3 to 1 in 5 steps.
    pub fn new(lr: f64, start: f64, end: f64, steps: u64) -> Self {
        LinearLR { lr, start, end, steps }
    }
}

impl Schedule for LinearLR {
    fn lr(&self, step: u64) -> f64 {
        if step >= self.steps {
            return self.lr * self.end;
        }
        self.lr * (self.start + (self.end - self.start) * step as f64 / self.steps as f64)
    }
}

/// A schedule whose rate begins at `lr` and is multiplied by `gamma` after every `step_size` steps. PyTorch: `StepLR`.
#[derive(Clone, Debug, PartialEq)]
pub struct StepLR {
    lr: f64,
    step_size: u64,
    gamma: f64,
}

impl StepLR {
    /// Returns the schedule. PyTorch's default for `gamma` is 0.1.
    ///
    /// # Panics
    ///
    /// If `step_size` is 0.
    #[track_caller]
    pub fn new(lr: f64, step_size: u64, gamma: f64) -> Self {
        assert!(step_size > 0, "StepLR: expected a step_size of at least 1, but got 0");
        StepLR { lr, step_size, gamma }
    }
}

impl Schedule for StepLR {
    fn lr(&self, step: u64) -> f64 {
        self.lr * libm::pow(self.gamma, (step / self.step_size) as f64)
    }
}

/// A schedule whose rate begins at `lr` and is multiplied by `gamma` at each step number in `milestones`. A step number that is listed twice
/// counts twice. PyTorch: `MultiStepLR`.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiStepLR {
    lr: f64,
    milestones: Vec<u64>,
    gamma: f64,
}

impl MultiStepLR {
    /// Returns the schedule. PyTorch's default for `gamma` is 0.1.
    pub fn new(lr: f64, milestones: impl Into<Vec<u64>>, gamma: f64) -> Self {
        MultiStepLR { lr, milestones: milestones.into(), gamma }
    }
}

impl Schedule for MultiStepLR {
    fn lr(&self, step: u64) -> f64 {
        let reached = self.milestones.iter().filter(|&&milestone| milestone <= step).count();
        self.lr * libm::pow(self.gamma, reached as f64)
    }
}

/// A schedule with the rate `lr` · `gamma`ˢᵗᵉᵖ. PyTorch: `ExponentialLR`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExponentialLR {
    lr: f64,
    gamma: f64,
}

impl ExponentialLR {
    /// Returns the schedule.
    pub fn new(lr: f64, gamma: f64) -> Self {
        ExponentialLR { lr, gamma }
    }
}

impl Schedule for ExponentialLR {
    fn lr(&self, step: u64) -> f64 {
        self.lr * libm::pow(self.gamma, step as f64)
    }
}

/// A schedule whose rate begins at `lr`, and is multiplied before each later step by a factor, which is a function of the step's number. The
/// rate of a step is `lr` · `factor(1)` · … · `factor(step)`. This product is computed anew for each step. PyTorch: `MultiplicativeLR`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::Schedule;
/// use wengert::nn::schedule::MultiplicativeLR;
///
/// let schedule = MultiplicativeLR::new(8.0, |step| if step == 2 { 1.0 } else { 0.5 });
/// assert_eq!([0, 1, 2, 3].map(|step| schedule.lr(step)), [8.0, 4.0, 4.0, 2.0]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MultiplicativeLR<F> {
    lr: f64,
    factor: F,
}

impl<F: Fn(u64) -> f64> MultiplicativeLR<F> {
    /// Returns the schedule.
    pub fn new(lr: f64, factor: F) -> Self {
        MultiplicativeLR { lr, factor }
    }
}

impl<F: Fn(u64) -> f64> Schedule for MultiplicativeLR<F> {
    fn lr(&self, step: u64) -> f64 {
        (1..=step).fold(self.lr, |lr, step| lr * (self.factor)(step))
    }
}

/// A schedule with the rate `lr` · (1 - step / `steps`)ᵖᵒʷᵉʳ, and the rate 0 after `steps` steps. With the power 0, the rate is always `lr`.
/// PyTorch: `PolynomialLR`, with `total_iters`.
#[derive(Clone, Debug, PartialEq)]
pub struct PolynomialLR {
    lr: f64,
    steps: u64,
    power: f64,
}

impl PolynomialLR {
    /// Returns the schedule. PyTorch's defaults are 5 steps and the power 1.
    pub fn new(lr: f64, steps: u64, power: f64) -> Self {
        PolynomialLR { lr, steps, power }
    }
}

impl Schedule for PolynomialLR {
    fn lr(&self, step: u64) -> f64 {
        if step >= self.steps && self.power != 0.0 {
            return 0.0;
        }
        self.lr * libm::pow((1.0 - step as f64 / self.steps as f64).max(0.0), self.power)
    }
}
