//! Pooling: the maximum, mean or norm of each window of an input.

mod adaptive;
mod avg_pool;
mod lp_pool;
mod max_pool;
mod max_unpool;
#[cfg(test)]
mod tests;
mod window;

pub use adaptive::{AdaptiveAvgPool, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d};
pub use adaptive::{AdaptiveMaxPool, AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d};
pub use avg_pool::{AvgPool, AvgPool1d, AvgPool2d, AvgPool3d};
pub use lp_pool::{LPPool, LPPool1d, LPPool2d, LPPool3d};
pub use max_pool::{MaxPool, MaxPool1d, MaxPool2d, MaxPool3d};
pub use max_unpool::{MaxUnpool, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d};
