//! A training loop, made of parts that also work alone: [`DataLoader`](crate::DataLoader),
//! [`Optimizer`](crate::Optimizer), [`Metric`](crate::metrics::Metric), [`Schedule`](crate::Schedule),
//! [`EarlyStopping`], [`evaluate`], [`History`](crate::History), [`Checkpoint`](crate::Checkpoint).

mod early_stopping;
mod evaluate;
mod files;
#[allow(clippy::module_inception)]
mod fit;
mod gradient_accumulator;
mod options;
mod predict;
mod progress;
mod settings;
#[cfg(test)]
mod tests;

pub use early_stopping::EarlyStopping;
pub use evaluate::{evaluate, evaluate_heads};
pub use fit::Fit;
pub use predict::{predict, predict_heads};
pub use progress::Progress;
