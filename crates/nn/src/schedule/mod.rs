//! Learning rates by step.
//!
//! A schedule is a function of the number of completed steps and has no state. A resumed training needs only the step.
//! The names and formulas come from `torch.optim.lr_scheduler`, in closed form. A step is one call of
//! `scheduler.step()` in PyTorch: a batch or an epoch. One schedule depends on the progress of the training and has a
//! state: [`ReduceLROnPlateau`].

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
