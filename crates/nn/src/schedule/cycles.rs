//! Schedules that raise the learning rate and lower it again.

use crate::schedule::cosine::cosine;
use crate::schedule::schedule::Schedule;

/// The curve on which a rate moves from one value to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anneal {
    /// The curve is half a cosine wave.
    #[default]
    Cos,
    /// The curve is a straight line.
    Linear,
}

/// A schedule of one cycle: by default the rate rises from `max_lr` / 25 to `max_lr` in the first 30% of the steps. It then falls to the first
/// rate divided by 10,000. After the last step, the rate stays constant. PyTorch: `OneCycleLR` (L. N. Smith and N. Topin, "Super-convergence",
/// 2017), without PyTorch's change of the momentum.
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
    /// Returns a schedule of one cycle that takes `steps` steps and reaches the rate `max_lr`. PyTorch: `total_steps`.
    ///
    /// # Panics
    ///
    /// If `steps` is 0.
    #[track_caller]
    pub fn new(max_lr: f64, steps: u64) -> Self {
        assert!(steps > 0, "OneCycleLR: expected at least 1 step, but got 0");
        let (pct_start, div_factor, final_div_factor) = (0.3, 25.0, 1e4);
        OneCycleLR { max_lr, steps, pct_start, anneal: Anneal::Cos, div_factor, final_div_factor, three_phase: false }
    }

    /// Sets the fraction of the steps in which the rate rises; 0.3 by default.
    ///
    /// # Panics
    ///
    /// If `pct_start` is not from 0 to 1.
    #[must_use]
    #[track_caller]
    pub fn pct_start(self, pct_start: f64) -> Self {
        assert!((0.0..=1.0).contains(&pct_start), "OneCycleLR: expected a pct_start from 0 to 1, but got {pct_start}");
        OneCycleLR { pct_start, ..self }
    }

    /// Sets the curve on which the rate rises and falls; half a cosine wave by default. PyTorch: `anneal_strategy`.
    #[must_use]
    pub fn anneal(self, anneal: Anneal) -> Self {
        OneCycleLR { anneal, ..self }
    }

    /// Sets the first rate to `max_lr` / `div_factor`; `div_factor` is 25 by default.
    #[must_use]
    pub fn div_factor(self, div_factor: f64) -> Self {
        OneCycleLR { div_factor, ..self }
    }

    /// Sets the last rate to the first rate / `final_div_factor`; `final_div_factor` is 10,000 by default.
    #[must_use]
    pub fn final_div_factor(self, final_div_factor: f64) -> Self {
        OneCycleLR { final_div_factor, ..self }
    }

    /// Lets the rate fall in two phases: first to the first rate, in as many steps as it rose, and then to the last rate. If
    /// [`pct_start`](Self::pct_start) is above 0.5 + 0.5 / `steps`, the cycle ends in the first of these phases.
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
                let progress = if end > start { (step - start) / (end - start) } else { 1.0 };
                return match self.anneal {
                    Anneal::Cos => cosine(from, to, progress),
                    Anneal::Linear => from + (to - from) * progress,
                };
            }
            start = end;
        }
        least
    }
}

/// The way in which the height of the cycles of a [`CyclicLR`] changes. The height of a cycle is the largest rise of the rate above
/// `base_lr`, as a fraction of `max_lr` - `base_lr`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Cycle {
    /// The height is constant.
    #[default]
    Triangular,
    /// Each cycle halves the height.
    Triangular2,
    /// Each step multiplies the height by this factor.
    ExpRange(f64),
}

/// A schedule of cycles: in each cycle, the rate rises from `base_lr` to `max_lr` and falls again, by default in 2000 steps each
/// ([`step_sizes`](Self::step_sizes)). PyTorch: `CyclicLR` (L. N. Smith, "Cyclical learning rates for training neural networks", 2015), without
/// PyTorch's change of the momentum.
#[derive(Clone, Debug, PartialEq)]
pub struct CyclicLR {
    base_lr: f64,
    max_lr: f64,
    up: u64,
    down: u64,
    cycle: Cycle,
}

impl CyclicLR {
    /// Returns a schedule whose cycles have 2000 steps with a rising rate and 2000 steps with a falling rate.
    pub fn new(base_lr: f64, max_lr: f64) -> Self {
        CyclicLR { base_lr, max_lr, up: 2000, down: 2000, cycle: Cycle::Triangular }
    }

    /// Sets the number of steps of each cycle with a rising rate (`up`) and with a falling rate (`down`). PyTorch: `step_size_up` and
    /// `step_size_down`.
    ///
    /// # Panics
    ///
    /// If `up` or `down` is 0.
    #[must_use]
    #[track_caller]
    pub fn step_sizes(self, up: u64, down: u64) -> Self {
        assert!(up > 0 && down > 0, "CyclicLR: expected at least 1 step up and 1 down, but got {up} and {down}");
        CyclicLR { up, down, ..self }
    }

    /// Sets how the height of the cycles (their rise above `base_lr`) changes; by default it is constant. PyTorch: `mode`.
    #[must_use]
    pub fn cycle(self, cycle: Cycle) -> Self {
        CyclicLR { cycle, ..self }
    }
}

impl Schedule for CyclicLR {
    fn lr(&self, step: u64) -> f64 {
        // If the sum overflows, no training run completes the first cycle, so `u64::MAX` serves as the length.
        let period = self.up.saturating_add(self.down);
        let (cycles, done) = (step / period, step % period);
        let progress =
            if done <= self.up { done as f64 / self.up as f64 } else { (period - done) as f64 / self.down as f64 };
        let height = match self.cycle {
            Cycle::Triangular => 1.0,
            Cycle::Triangular2 => libm::pow(0.5, cycles as f64),
            Cycle::ExpRange(gamma) => libm::pow(gamma, step as f64),
        };
        self.base_lr + (self.max_lr - self.base_lr) * progress * height
    }
}
