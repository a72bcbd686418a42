//! The trait of schedules, and the ways to combine them.

/// A learning rate for each step. A number is a schedule with a constant rate. A function of the number of completed steps is a schedule too
/// (PyTorch: `LambdaLR`).
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::Schedule;
/// use wengert::nn::schedule::CosineAnnealingLR;
///
/// let schedule = CosineAnnealingLR::new(0.1, 90).warmup(10);
/// assert_eq!([0, 5, 10, 55, 100].map(|step| (schedule.lr(step) * 1e6).round() / 1e6), [0.0, 0.05, 0.1, 0.05, 0.0]);
/// assert_eq!(0.1.lr(7), 0.1);
/// assert_eq!((|step: u64| 1.0 / (1.0 + step as f64)).lr(1), 0.5);
/// ```
///
/// Before each step, call `optimizer.set_lr(schedule.lr(step))`. This multiplies the rate of each group by the same factor. In PyTorch, a smallest
/// rate such as `eta_min` is the smallest rate of each group, and is not multiplied.
pub trait Schedule {
    /// Returns the learning rate of the next step, after `step` completed steps.
    fn lr(&self, step: u64) -> f64;

    /// Returns a schedule whose rate rises linearly from 0 to the first rate of this schedule in `steps` steps, and then follows this schedule.
    /// Hugging Face's transformers have functions for this, for example `get_cosine_schedule_with_warmup`.
    fn warmup(self, steps: u64) -> Warmup<Self>
    where
        Self: Sized,
    {
        Warmup { steps, schedule: self }
    }

    /// Returns a schedule that follows this one for the first `steps` steps, and then follows `next`, which begins at its own step 0. PyTorch:
    /// `SequentialLR`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; }
    /// use wengert::nn::Schedule;
    /// use wengert::nn::schedule::ExponentialLR;
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

    /// Returns a schedule whose rate is the product of the rates of this schedule and of `factor`, usually a number from 0 to 1. PyTorch:
    /// `ChainedScheduler`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; }
    /// use wengert::nn::Schedule;
    /// use wengert::nn::schedule::{ConstantLR, ExponentialLR};
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

/// A schedule whose rate first rises from 0; see [`Schedule::warmup`].
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

/// A schedule that follows two schedules one after the other; see [`Schedule::then`].
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

/// A schedule whose rate is the product of the rates of two schedules; see [`Schedule::times`].
#[derive(Clone, Debug, PartialEq)]
pub struct ChainedLR<S, N>(S, N);

impl<S: Schedule, N: Schedule> Schedule for ChainedLR<S, N> {
    fn lr(&self, step: u64) -> f64 {
        self.0.lr(step) * self.1.lr(step)
    }
}
