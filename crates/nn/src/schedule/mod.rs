//! Schedules: learning rates as functions of the step.
//!
//! A schedule is a function of the number of completed steps and has no state. So a resumed training run needs only this number. The names and
//! formulas come from `torch.optim.lr_scheduler`. Here each rate is computed from the step alone and not from the rate before. A step corresponds to
//! one call of `scheduler.step()` in PyTorch, after a batch or an epoch. One exception depends on the progress of the training and has a state:
//! [`ReduceLROnPlateau`].

mod cosine;
mod cycles;
mod decay;
mod plateau;
#[allow(clippy::module_inception)]
mod schedule;
#[cfg(test)]
mod tests;

pub use cosine::{CosineAnnealingLR, CosineAnnealingWarmRestarts};
pub use cycles::{Anneal, Cycle, CyclicLR, OneCycleLR};
pub use decay::{ConstantLR, ExponentialLR, LinearLR, MultiStepLR, MultiplicativeLR, PolynomialLR, StepLR};
pub use plateau::{Plateau, ReduceLROnPlateau};
pub use schedule::{ChainedLR, Schedule, SequentialLR, Warmup};
