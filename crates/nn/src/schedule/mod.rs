//! Learning rates by step.
//!
//! A schedule is a function of the number of steps done, without a state: where training resumes, the step is all that it
//! needs. Names and formulas are those of `torch.optim.lr_scheduler`, in closed form; a step is what calls `scheduler.step()`
//! there, a batch or an epoch. What looks at the progress of training has a state: [`ReduceLROnPlateau`].

mod plateau;

use std::f64::consts::PI;

pub use plateau::{Plateau, ReduceLROnPlateau};

/// A learning rate for each step. A number is a schedule that stays the same, a function of the step is one too (PyTorch:
/// `LambdaLR`).
///
/// ```
/// use wengert_nn::Schedule;
/// use wengert_nn::schedule::CosineAnnealingLR;
///
/// let schedule = CosineAnnealingLR::new(0.1, 90).warmup(10);
/// assert_eq!([0, 5, 10, 55, 100].map(|step| (schedule.lr(step) * 1e6).round() / 1e6), [0.0, 0.05, 0.1, 0.05, 0.0]);
/// assert_eq!(0.1.lr(7), 0.1);
/// assert_eq!((|step: u64| 1.0 / (1.0 + step as f64)).lr(1), 0.5);
/// ```
///
/// Before each step: `optimizer.set_lr(schedule.lr(step))`.
pub trait Schedule {
    /// The learning rate of the step after `step` steps.
    fn lr(&self, step: u64) -> f64;

    /// This schedule after `steps` steps in which the rate rises in proportion to the step, from 0. As in
    /// `get_cosine_schedule_with_warmup` of Hugging Face's transformers.
    fn warmup(self, steps: u64) -> Warmup<Self>
    where
        Self: Sized,
    {
        Warmup { steps, schedule: self }
    }

    /// This schedule for the first `steps` steps, then `next`, from its beginning. PyTorch: `SequentialLR`.
    ///
    /// ```
    /// use wengert_nn::Schedule;
    /// use wengert_nn::schedule::ExponentialLR;
    ///
    /// let schedule = 1.0.then(2, ExponentialLR::new(1.0, 0.5));
    /// assert_eq!([0, 1, 2, 3, 4].map(|step| schedule.lr(step)), [1.0, 1.0, 1.0, 0.5, 0.25]);
    /// ```
    fn then<N: Schedule>(self, steps: u64, next: N) -> SequentialLR<Self, N>
    where
        Self: Sized,
    {
        SequentialLR { steps, first: self, next }
    }

    /// The product of both. With rates that begin at 1, factors of this one. PyTorch: `ChainedScheduler`.
    ///
    /// ```
    /// use wengert_nn::Schedule;
    /// use wengert_nn::schedule::{ConstantLR, ExponentialLR};
    ///
    /// let schedule = ExponentialLR::new(0.8, 0.5).times(ConstantLR::new(1.0, 0.1, 2));
    /// assert_eq!([0, 1, 2].map(|step| (schedule.lr(step) * 1e6).round() / 1e6), [0.08, 0.04, 0.2]);
    /// ```
    fn times<N: Schedule>(self, factor: N) -> ChainedLR<Self, N>
    where
        Self: Sized,
    {
        ChainedLR(self, factor)
    }
}

impl Schedule for f64 {
    fn lr(&self, _: u64) -> f64 {
        *self
    }
}

impl<F: Fn(u64) -> f64> Schedule for F {
    fn lr(&self, step: u64) -> f64 {
        self(step)
    }
}

impl Schedule for Box<dyn Schedule> {
    fn lr(&self, step: u64) -> f64 {
        (**self).lr(step)
    }
}

/// What [`Schedule::warmup`] returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Warmup<S> {
    steps: u64,
    schedule: S,
}

impl<S: Schedule> Schedule for Warmup<S> {
    fn lr(&self, step: u64) -> f64 {
        match step.checked_sub(self.steps) {
            Some(step) => self.schedule.lr(step),
            None => self.schedule.lr(0) * step as f64 / self.steps as f64,
        }
    }
}

/// What [`Schedule::then`] returns.
#[derive(Clone, Debug, PartialEq)]
pub struct SequentialLR<S, N> {
    steps: u64,
    first: S,
    next: N,
}

impl<S: Schedule, N: Schedule> Schedule for SequentialLR<S, N> {
    fn lr(&self, step: u64) -> f64 {
        match step.checked_sub(self.steps) {
            Some(step) => self.next.lr(step),
            None => self.first.lr(step),
        }
    }
}

/// What [`Schedule::times`] returns.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainedLR<S, N>(S, N);

impl<S: Schedule, N: Schedule> Schedule for ChainedLR<S, N> {
    fn lr(&self, step: u64) -> f64 {
        self.0.lr(step) * self.1.lr(step)
    }
}

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

/// Half a wave of the cosine from `lr` down to [`eta_min`](Self::eta_min) in `t_max` steps, and up again in as many. PyTorch:
/// `CosineAnnealingLR` (I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", 2016, without
/// the restarts).
#[derive(Clone, Debug, PartialEq)]
pub struct CosineAnnealingLR {
    lr: f64,
    eta_min: f64,
    t_max: u64,
}

impl CosineAnnealingLR {
    /// From `lr` to 0 in `t_max` steps.
    ///
    /// # Panics
    ///
    /// Where `t_max` is 0.
    #[track_caller]
    pub fn new(lr: f64, t_max: u64) -> Self {
        assert!(t_max > 0, "CosineAnnealingLR: expected a t_max of at least 1, but got 0");
        CosineAnnealingLR { lr, eta_min: 0.0, t_max }
    }

    /// The least rate.
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

/// Half a wave of the cosine from `lr` down to [`eta_min`](Self::eta_min) in `t_0` steps, again and again, each time
/// [`t_mult`](Self::t_mult) times as long as the last. PyTorch: `CosineAnnealingWarmRestarts` (I. Loshchilov and F. Hutter,
/// 2016).
#[derive(Clone, Debug, PartialEq)]
pub struct CosineAnnealingWarmRestarts {
    lr: f64,
    eta_min: f64,
    t_0: u64,
    t_mult: u64,
}

impl CosineAnnealingWarmRestarts {
    /// From `lr` to 0, every `t_0` steps.
    ///
    /// # Panics
    ///
    /// Where `t_0` is 0.
    #[track_caller]
    pub fn new(lr: f64, t_0: u64) -> Self {
        assert!(t_0 > 0, "CosineAnnealingWarmRestarts: expected a t_0 of at least 1, but got 0");
        CosineAnnealingWarmRestarts { lr, eta_min: 0.0, t_0, t_mult: 1 }
    }

    /// The least rate.
    #[must_use]
    pub fn eta_min(self, eta_min: f64) -> Self {
        CosineAnnealingWarmRestarts { eta_min, ..self }
    }

    /// How many times as long each period is as the one before.
    ///
    /// # Panics
    ///
    /// Where it is 0.
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

/// From `from` (at 0) to `to` (at 1) along half a wave of the cosine.
fn cosine(from: f64, to: f64, share: f64) -> f64 {
    to + (from - to) * (1.0 + (PI * share).cos()) / 2.0
}

/// How a rate goes from one number to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anneal {
    /// Along half a wave of the cosine.
    #[default]
    Cos,
    /// In a straight line.
    Linear,
}

/// Up from `max_lr` / 25 to `max_lr` in the first 30% of the steps, then down to a 10000th of where it began. PyTorch:
/// `OneCycleLR` (L. N. Smith and N. Topin, "Super-convergence", 2017), without its momentum. After the last step the rate
/// stays.
#[derive(Clone, Debug, PartialEq)]
pub struct OneCycleLR {
    max_lr: f64,
    steps: u64,
    pct_start: f64,
    anneal: Anneal,
    div_factor: f64,
    final_div_factor: f64,
    three_phase: bool,
}

impl OneCycleLR {
    /// A cycle of `steps` steps. PyTorch: `total_steps`.
    ///
    /// # Panics
    ///
    /// Where `steps` is 0.
    #[track_caller]
    pub fn new(max_lr: f64, steps: u64) -> Self {
        assert!(steps > 0, "OneCycleLR: expected at least 1 step, but got 0");
        let (pct_start, div_factor, final_div_factor) = (0.3, 25.0, 1e4);
        OneCycleLR { max_lr, steps, pct_start, anneal: Anneal::Cos, div_factor, final_div_factor, three_phase: false }
    }

    /// The share of the steps in which the rate rises.
    ///
    /// # Panics
    ///
    /// Where it is not from 0 to 1.
    #[must_use]
    #[track_caller]
    pub fn pct_start(self, pct_start: f64) -> Self {
        assert!((0.0..=1.0).contains(&pct_start), "OneCycleLR: expected a pct_start from 0 to 1, but got {pct_start}");
        OneCycleLR { pct_start, ..self }
    }

    /// How the rate goes from one number to the next. PyTorch: `anneal_strategy`.
    #[must_use]
    pub fn anneal(self, anneal: Anneal) -> Self {
        OneCycleLR { anneal, ..self }
    }

    /// The first rate is `max_lr` / `div_factor`.
    #[must_use]
    pub fn div_factor(self, div_factor: f64) -> Self {
        OneCycleLR { div_factor, ..self }
    }

    /// The last rate is the first / `final_div_factor`.
    #[must_use]
    pub fn final_div_factor(self, final_div_factor: f64) -> Self {
        OneCycleLR { final_div_factor, ..self }
    }

    /// Down to the first rate in as many steps as it rose, then to the last.
    #[must_use]
    pub fn three_phase(self) -> Self {
        OneCycleLR { three_phase: true, ..self }
    }
}

impl Schedule for OneCycleLR {
    fn lr(&self, step: u64) -> f64 {
        let last = (self.steps - 1) as f64;
        let rise = self.pct_start * self.steps as f64 - 1.0;
        let first = self.max_lr / self.div_factor;
        let least = first / self.final_div_factor;
        let phases: &[(f64, f64, f64)] = if self.three_phase {
            &[(rise, first, self.max_lr), (2.0 * rise, self.max_lr, first), (last, first, least)]
        } else {
            &[(rise, first, self.max_lr), (last, self.max_lr, least)]
        };
        let (step, mut start) = ((step as f64).min(last), 0.0);
        for &(end, from, to) in phases {
            if step <= end {
                let share = if end > start { (step - start) / (end - start) } else { 1.0 };
                return match self.anneal {
                    Anneal::Cos => cosine(from, to, share),
                    Anneal::Linear => from + (to - from) * share,
                };
            }
            start = end;
        }
        least
    }
}

/// What happens to the height of the cycles of [`CyclicLR`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Cycle {
    /// It stays.
    #[default]
    Triangular,
    /// It is halved with each cycle.
    Triangular2,
    /// It is multiplied by this number with each step.
    ExpRange(f64),
}

/// Up from `base_lr` to `max_lr` and down again, over and over ([`step_sizes`](Self::step_sizes)). PyTorch:
/// `CyclicLR` (L. N. Smith, "Cyclical learning rates for training neural networks", 2015), without its momentum.
#[derive(Clone, Debug, PartialEq)]
pub struct CyclicLR {
    base_lr: f64,
    max_lr: f64,
    up: u64,
    down: u64,
    cycle: Cycle,
}

impl CyclicLR {
    /// With 2000 steps up and 2000 down.
    pub fn new(base_lr: f64, max_lr: f64) -> Self {
        CyclicLR { base_lr, max_lr, up: 2000, down: 2000, cycle: Cycle::Triangular }
    }

    /// `up` steps up, `down` steps down. PyTorch: `step_size_up` and `step_size_down`.
    ///
    /// # Panics
    ///
    /// Where either is 0.
    #[must_use]
    #[track_caller]
    pub fn step_sizes(self, up: u64, down: u64) -> Self {
        assert!(up > 0 && down > 0, "CyclicLR: expected at least 1 step up and 1 down, but got {up} and {down}");
        CyclicLR { up, down, ..self }
    }

    /// What happens to the height. PyTorch: `mode`.
    #[must_use]
    pub fn cycle(self, cycle: Cycle) -> Self {
        CyclicLR { cycle, ..self }
    }
}

impl Schedule for CyclicLR {
    fn lr(&self, step: u64) -> f64 {
        let period = self.up + self.down;
        let (cycles, done) = (step / period, step % period);
        let share =
            if done <= self.up { done as f64 / self.up as f64 } else { (period - done) as f64 / self.down as f64 };
        let height = match self.cycle {
            Cycle::Triangular => 1.0,
            Cycle::Triangular2 => 0.5f64.powf(cycles as f64),
            Cycle::ExpRange(gamma) => gamma.powf(step as f64),
        };
        self.base_lr + (self.max_lr - self.base_lr) * share * height
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of every schedule beside PyTorch's are compared in the tests across crates; here is what has no
    /// counterpart there.
    #[test]
    fn before_between_and_after() {
        let warm = ExponentialLR::new(8.0, 0.5).warmup(4);
        assert_eq!([0, 1, 3, 4, 5].map(|step| warm.lr(step)), [0.0, 2.0, 6.0, 8.0, 4.0]);
        assert_eq!(3.0.warmup(0).lr(0), 3.0);
        let three = 1.0.then(2, 2.0).then(4, 3.0);
        assert_eq!([0, 1, 2, 3, 4, 5].map(|step| three.lr(step)), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
        let boxed: Vec<Box<dyn Schedule>> = vec![Box::new(three), Box::new(StepLR::new(1.0, 1, 0.5).times(4.0))];
        assert_eq!([boxed[0].lr(9), boxed[1].lr(3)], [3.0, 0.5]);
        assert_eq!((|step: u64| step as f64).then(3, 0.0).lr(2), 2.0);
    }

    #[test]
    fn after_its_last_step_a_schedule_stays() {
        let far = u64::MAX;
        assert_eq!(LinearLR::new(1.0, 0.5, 2.0, 0).lr(0), 2.0);
        assert_eq!(LinearLR::new(1.0, 0.5, 2.0, 4).lr(far), 2.0);
        assert_eq!(PolynomialLR::new(1.0, 4, 2.0).lr(far), 0.0);
        assert_eq!(ExponentialLR::new(1.0, 0.5).lr(far), 0.0);
        let cycle = OneCycleLR::new(1.0, 10);
        assert_eq!((cycle.lr(9), cycle.lr(far)), (cycle.lr(10), 1.0 / 25.0 / 1e4));
        // All of it a rise; none; a cycle of one step.
        assert_eq!(cycle.clone().pct_start(1.0).lr(far), 1.0);
        assert_eq!(cycle.clone().pct_start(0.0).three_phase().lr(far), 1.0 / 25.0 / 1e4);
        assert!(OneCycleLR::new(1.0, 1).lr(0).is_finite());
        let restarts = CosineAnnealingWarmRestarts::new(1.0, 3);
        assert_eq!([restarts.lr(3 << 60), restarts.clone().t_mult(2).lr(9)], [1.0, 1.0]);
        assert!(restarts.t_mult(7).lr(far).is_finite());
    }

    #[test]
    #[should_panic(expected = "StepLR: expected a step_size of at least 1, but got 0")]
    fn a_step_of_nothing_is_refused() {
        StepLR::new(1.0, 0, 0.1);
    }
}
