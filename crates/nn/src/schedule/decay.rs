//! Schedules that decay the learning rate, or raise it, by a formula of the step.

use crate::schedule::schedule::Schedule;

/// `lr` · `factor` for `steps` steps, then `lr`. PyTorch: `ConstantLR`, with `total_iters`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantLR {
    lr: f64,
    factor: f64,
    steps: u64,
}

impl ConstantLR {
    /// See the type. PyTorch's defaults are a third for 5 steps.
    pub fn new(lr: f64, factor: f64, steps: u64) -> Self {
        ConstantLR { lr, factor, steps }
    }
}

impl Schedule for ConstantLR {
    fn lr(&self, step: u64) -> f64 {
        if step < self.steps { self.lr * self.factor } else { self.lr }
    }
}

/// `lr` times a factor that goes from `start` to `end` in `steps` steps and stays there. PyTorch: `LinearLR`, with
/// `start_factor`, `end_factor`, `total_iters`.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearLR {
    lr: f64,
    start: f64,
    end: f64,
    steps: u64,
}

impl LinearLR {
    /// See the type. PyTorch's defaults are from a third to 1 in 5 steps.
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

/// `lr` · `gamma` to the power of how often `step_size` steps are done. PyTorch: `StepLR`.
#[derive(Clone, Debug, PartialEq)]
pub struct StepLR {
    lr: f64,
    step_size: u64,
    gamma: f64,
}

impl StepLR {
    /// See the type. PyTorch's default for `gamma` is 0.1.
    ///
    /// # Panics
    ///
    /// Where `step_size` is 0.
    #[track_caller]
    pub fn new(lr: f64, step_size: u64, gamma: f64) -> Self {
        assert!(step_size > 0, "StepLR: expected a step_size of at least 1, but got 0");
        StepLR { lr, step_size, gamma }
    }
}

impl Schedule for StepLR {
    fn lr(&self, step: u64) -> f64 {
        self.lr * self.gamma.powf((step / self.step_size) as f64)
    }
}

/// `lr` · `gamma` to the power of how many `milestones` are reached; one that stands there twice counts twice. PyTorch:
/// `MultiStepLR`.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiStepLR {
    lr: f64,
    milestones: Vec<u64>,
    gamma: f64,
}

impl MultiStepLR {
    /// See the type. PyTorch's default for `gamma` is 0.1.
    pub fn new(lr: f64, milestones: impl Into<Vec<u64>>, gamma: f64) -> Self {
        MultiStepLR { lr, milestones: milestones.into(), gamma }
    }
}

impl Schedule for MultiStepLR {
    fn lr(&self, step: u64) -> f64 {
        let reached = self.milestones.iter().filter(|&&milestone| milestone <= step).count();
        self.lr * self.gamma.powf(reached as f64)
    }
}

/// `lr` · `gamma`ˢᵗᵉᵖ. PyTorch: `ExponentialLR`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExponentialLR {
    lr: f64,
    gamma: f64,
}

impl ExponentialLR {
    /// See the type.
    pub fn new(lr: f64, gamma: f64) -> Self {
        ExponentialLR { lr, gamma }
    }
}

impl Schedule for ExponentialLR {
    fn lr(&self, step: u64) -> f64 {
        self.lr * self.gamma.powf(step as f64)
    }
}

/// `lr` · (1 - step / `steps`) to the power of `power`; 0 after `steps` steps. PyTorch: `PolynomialLR`, with
/// `total_iters`.
#[derive(Clone, Debug, PartialEq)]
pub struct PolynomialLR {
    lr: f64,
    steps: u64,
    power: f64,
}

impl PolynomialLR {
    /// See the type. PyTorch's defaults are 5 steps and the power 1.
    pub fn new(lr: f64, steps: u64, power: f64) -> Self {
        PolynomialLR { lr, steps, power }
    }
}

impl Schedule for PolynomialLR {
    fn lr(&self, step: u64) -> f64 {
        if step >= self.steps {
            return 0.0;
        }
        self.lr * (1.0 - step as f64 / self.steps as f64).powf(self.power)
    }
}
