//! Metrics: numbers that say how good a model is, of all batches of an epoch together.
//!
//! A metric adds up what it needs of each batch ([`update`](Metric::update)); its value is that of all samples at once, not the mean of
//! the batches' values. Two of the same kind are put together by `merge`. Names and definitions are those of scikit-learn, and of
//! torchmetrics where that has none.
//!
//! ```
//! use wengert_nn::metrics::{Accuracy, Average, ConfusionMatrix};
//! use wengert_tensor::prelude::*;
//!
//! let (mut accuracy, mut confusion) = (Accuracy::new(), ConfusionMatrix::new(2));
//! let logits = Tensor::from([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]);
//! for (logits, classes) in [(&logits, Tensor::from([1, 0, 0])), (&logits, Tensor::from([1, 1, 1]))] {
//!     accuracy.update(logits, &classes)?;
//!     confusion.update(logits, &classes)?;
//! }
//! assert_eq!(accuracy.value(), 4.0 / 6.0);
//! assert_eq!(confusion.counts(), Tensor::from([[1, 1], [1, 3]]));
//! assert_eq!(confusion.f1(Average::Micro), 4.0 / 6.0);
//! # Ok::<(), wengert_nn::Error>(())
//! ```

mod classes;
mod mistakes;
mod probability;
mod ranking;
mod regression;

use wengert_tensor::ops::Views as _;
use wengert_tensor::{Float, Tensor};

pub use classes::{Accuracy, Average, ClassScores, ConfusionMatrix};
pub use mistakes::{Mistake, worst_mistakes};
pub use probability::{CalibrationBin, CalibrationError, Perplexity};
pub use ranking::{BinaryScores, Curve};
pub use regression::RegressionErrors;

use crate::{Error, Result};

/// What a training loop needs of a metric of outputs `Tensor<T>` and targets `Y`. The metrics here have these methods themselves.
pub trait Metric<T: Float = f32, Y = Tensor<i64>> {
    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// If the outputs do not fit the targets. The metric is then as it was.
    fn update(&mut self, outputs: &Tensor<T>, targets: &Y) -> Result<()>;

    /// The value of all batches since the beginning or the last [`reset`](Self::reset); NaN of none.
    fn value(&self) -> f64;

    /// Forgets all batches.
    fn reset(&mut self);
}

/// A metric with another number for its value, made by its method `by`.
///
/// ```
/// use wengert_nn::Fit;
/// use wengert_nn::metrics::{Average, ConfusionMatrix};
///
/// let fit: Fit = Fit::new(20).metric("F1", ConfusionMatrix::new(10).by(|confusion| confusion.f1(Average::Macro)));
/// ```
pub struct By<M> {
    metric: M,
    number: Box<dyn Fn(&M) -> f64>,
}

impl<T: Float, Y, M: Metric<T, Y>> Metric<T, Y> for By<M> {
    fn update(&mut self, outputs: &Tensor<T>, targets: &Y) -> Result<()> {
        self.metric.update(outputs, targets)
    }

    fn value(&self) -> f64 {
        (self.number)(&self.metric)
    }

    fn reset(&mut self) {
        self.metric.reset();
    }
}

/// The trait for metrics that have its methods.
macro_rules! metrics {
    ($($metric:ty, $targets:ty);* $(;)?) => {$(
        impl<T: Float> Metric<T, $targets> for $metric {
            fn update(&mut self, outputs: &Tensor<T>, targets: &$targets) -> Result<()> {
                <$metric>::update(self, outputs, targets)
            }

            fn value(&self) -> f64 {
                <$metric>::value(self)
            }

            fn reset(&mut self) {
                <$metric>::reset(self);
            }
        }

        impl $metric {
            /// The same metric with another number for its value.
            pub fn by(self, number: impl Fn(&Self) -> f64 + 'static) -> By<Self> {
                By { metric: self, number: Box::new(number) }
            }
        }
    )*};
}

metrics! {
    Accuracy, Tensor<i64>;
    ConfusionMatrix, Tensor<i64>;
    BinaryScores, Tensor<i64>;
    Perplexity, Tensor<i64>;
    CalibrationError, Tensor<i64>;
    RegressionErrors, Tensor<T>;
}

/// Targets that count for nothing, as in cross-entropy.
const IGNORED: i64 = -100;

/// The logits of each sample with its class, of `[n, c]` and `[n]`, or `[n, c, d1, …]` and `[n, d1, …]`; ignored ones are left out.
///
/// # Errors
///
/// If the shapes do not fit, or a target is no class.
fn samples<T: Float>(logits: &Tensor<T>, targets: &Tensor<i64>) -> Result<(usize, Vec<T>, Vec<usize>)> {
    let (shape, of) = (logits.shape(), targets.shape());
    let mut expected = shape.clone();
    let classes = if shape.rank() >= 2 { expected.remove(1) } else { 0 };
    if shape.rank() < 2 || expected != *of {
        let problem = format!("a metric of classes needs logits [n, c, …] and targets [n, …], got {shape} and {of}");
        return Err(Error::Dataset(problem));
    }
    if let Some(target) = targets.iter().find(|&target| target != IGNORED && !(0..classes as i64).contains(&target)) {
        return Err(Error::Dataset(format!(
            "target {target} is no class of logits {shape} ({IGNORED} would be ignored)"
        )));
    }
    let mut rows = logits.try_movedim(1, -1)?.try_to_vec()?;
    let mut kept = Vec::with_capacity(targets.numel());
    for (position, target) in targets.iter().enumerate().filter(|&(_, target)| target != IGNORED) {
        let to = kept.len() * classes;
        rows.copy_within(position * classes..(position + 1) * classes, to);
        kept.push(target as usize);
    }
    rows.truncate(kept.len() * classes);
    Ok((classes, rows, kept))
}

/// The position of the largest number, of several equal ones the first. NaN is the largest of all, as in PyTorch's `argmax`.
fn argmax<T: Float>(row: &[T]) -> usize {
    let mut best = 0;
    for (position, &value) in row.iter().enumerate() {
        if !row[best].is_nan() && (value.is_nan() || value > row[best]) {
            best = position;
        }
    }
    best
}

/// The quotient, NaN of nothing.
fn mean(sum: f64, count: u64) -> f64 {
    sum / count as f64
}
