//! Optimisers: what a step along the gradients does to each parameter.

mod adadelta;
mod adagrad;
mod adam;
mod adamax;
mod archive;
mod asgd;
mod average;
mod lbfgs;
mod lion;
mod nadam;
mod optimizer;
mod radam;
mod rmsprop;
mod rprop;
mod sgd;
mod wolfe;

pub use adadelta::Adadelta;
pub use adagrad::Adagrad;
pub use adam::{Adam, AdamW};
pub use adamax::Adamax;
pub use archive::{Archive, Resume};
pub(crate) use archive::{Entry, Key, archive_optimizer};
pub use asgd::Asgd;
pub use average::WeightAverage;
pub use lbfgs::Lbfgs;
pub use lion::Lion;
pub use nadam::NAdam;
pub use optimizer::{Along, Common, Decayed, Optimizer, Range, Setting, States};
pub use radam::RAdam;
pub use rmsprop::RMSprop;
pub use rprop::Rprop;
pub use sgd::Sgd;
