//! Metrics: measures of the quality of a model over all batches of an epoch.
//!
//! [`update`](Metric::update) adds a batch to a metric. The value is computed from all samples, and is not the mean
//! over the batches. `merge` adds the samples of another metric of the same kind. Names and definitions come from
//! scikit-learn, or from torchmetrics where scikit-learn has no such metric.
//!
//! ```
//! # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
//! use wengert::nn::metrics::{Accuracy, Average, ConfusionMatrix};
//! use wengert::prelude::*;
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

mod accuracy;
mod classes;
mod mistakes;
mod probability;
mod ranking;
mod regression;

use wengert_tensor::ops::Views as _;
use wengert_tensor::{Float, Number, Tensor};

pub use accuracy::{accuracy, try_accuracy};
pub use classes::{Accuracy, Average, ClassScores, ConfusionMatrix};
pub use mistakes::{Mistake, worst_mistakes};
pub use probability::{CalibrationBin, CalibrationError, Perplexity};
pub use ranking::{BinaryScores, Curve};
pub use regression::RegressionErrors;

use crate::metrics::accuracy::{IGNORE_INDEX, class_dim};
use crate::{Error, Result};

/// The interface of metrics for a training loop, with outputs `O` and targets `Y`. The outputs are a tensor, or an array of tensors for a
/// model with several outputs ([`Fit::run_heads`](crate::Fit::run_heads)). The metrics of this module, except [`By`] and [`Head`], have
/// inherent methods with the same names too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no metric of these outputs and targets",
    label = "the outputs are `{O}` and the targets `{Y}`",
    note = "`Accuracy::new().head::<0>()` is a metric of the first of several outputs and of the first part of the targets",
    note = "classes are a `Tensor<i64>`, and numbers are a `Tensor` of the element type of the outputs"
)]
pub trait Metric<T: Float = f32, Y = Tensor<i64>, O = Tensor<T>> {
    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// If the outputs do not fit the targets, or there is not enough memory. After an error the metric is unchanged.
    fn update(&mut self, outputs: &O, targets: &Y) -> Result<()>;

    /// Returns the value over all batches since the beginning or the last [`reset`](Self::reset); NaN without batches.
    fn value(&self) -> f64;

    /// Removes all batches.
    fn reset(&mut self);
}

/// A metric `M` whose [`value`](Metric::value) is a score that the caller chooses, for example the F1 score of a confusion matrix instead of its
/// accuracy. The method `by` of a metric creates it.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::Fit;
/// use wengert::nn::metrics::{Average, ConfusionMatrix};
///
/// let fit: Fit = Fit::new(20).metric("F1", ConfusionMatrix::new(10).by(|confusion| confusion.f1(Average::Macro)));
/// ```
pub struct By<M> {
    metric: M,
    score: Box<dyn Fn(&M) -> f64>,
}

impl<T: Float, Y, O, M: Metric<T, Y, O>> Metric<T, Y, O> for By<M> {
    fn update(&mut self, outputs: &O, targets: &Y) -> Result<()> {
        self.metric.update(outputs, targets)
    }

    fn value(&self) -> f64 {
        (self.score)(&self.metric)
    }

    fn reset(&mut self) {
        self.metric.reset();
    }
}

impl<M> By<M> {
    /// Returns this metric for the output with index `HEAD` of a model with several outputs; see [`Head`].
    pub fn head<const HEAD: usize>(self) -> Head<Self, HEAD> {
        Head(self)
    }
}

/// A metric of one output, or head, of a model. It compares the output with index `HEAD` with the part of the targets that has the same index.
/// The targets are a tuple of two to four values. The method `head` of a metric returns this type.
///
/// If the model has a single output, the metric compares this output with the part of the targets with index `HEAD`. The other parts may be
/// weights of the samples.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::metrics::{Accuracy, Metric};
/// use wengert::prelude::*;
///
/// let outputs = [Tensor::from([[0.1, 0.9]]), Tensor::from([[0.7, 0.2, 0.1]])];
/// let targets = (Tensor::from([1]), Tensor::from([2]));
/// let (mut first, mut second) = (Accuracy::new().head::<0>(), Accuracy::new().head::<1>());
/// first.update(&outputs, &targets)?;
/// second.update(&outputs, &targets)?;
/// let value = |metric: &dyn Metric<f64, (Tensor<i64>, Tensor<i64>), [Tensor<f64>; 2]>| metric.value();
/// assert_eq!([value(&first), value(&second)], [1.0, 0.0]);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Head<M, const HEAD: usize>(M);

impl<T: Float, Y: Part<HEAD>, M: Metric<T, Y::Part>, const HEAD: usize, const N: usize> Metric<T, Y, [Tensor<T>; N]>
    for Head<M, HEAD>
{
    fn update(&mut self, outputs: &[Tensor<T>; N], targets: &Y) -> Result<()> {
        let Some(output) = outputs.get(HEAD) else {
            return Err(Error::Argument(format!("there is no head {HEAD}: the number of outputs is {N}")));
        };
        self.0.update(output, targets.part())
    }

    fn value(&self) -> f64 {
        self.0.value()
    }

    fn reset(&mut self) {
        self.0.reset();
    }
}

/// Implements the metric for a model with one output. The output is compared with the part of the targets with index `HEAD`.
impl<T: Float, Y: Part<HEAD>, M: Metric<T, Y::Part>, const HEAD: usize> Metric<T, Y> for Head<M, HEAD> {
    fn update(&mut self, output: &Tensor<T>, targets: &Y) -> Result<()> {
        self.0.update(output, targets.part())
    }

    fn value(&self) -> f64 {
        self.0.value()
    }

    fn reset(&mut self) {
        self.0.reset();
    }
}

/// A tuple of targets that has a part (an element) with index `INDEX`, which a [`Head`] compares with an output.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no part with the index {INDEX}",
    label = "the metric of a head needs targets that are a tuple with a part for this head",
    note = "the second argument of `Samples::new` may be a tuple of tensors; it is the tuple of targets"
)]
pub trait Part<const INDEX: usize> {
    /// The type of the part with index `INDEX`.
    type Part;

    /// Returns the part with index `INDEX`.
    #[doc(hidden)]
    fn part(&self) -> &Self::Part;
}

/// Implements [`Part`] for tuples. Each row of the macro's input is for one part of tuples of one length: its index, its type, and the types of all
/// parts.
macro_rules! part {
    ($($index:tt: $part:ident of ($($all:ident),*);)*) => {$(
        impl<$($all),*> Part<$index> for ($($all),*) {
            type Part = $part;

            fn part(&self) -> &$part {
                &self.$index
            }
        }
    )*};
}

part! {
    0: A of (A, B);
    1: B of (A, B);
    0: A of (A, B, C);
    1: B of (A, B, C);
    2: C of (A, B, C);
    0: A of (A, B, C, D);
    1: B of (A, B, C, D);
    2: C of (A, B, C, D);
    3: D of (A, B, C, D);
}

/// Implements [`Metric`] for metrics by their own methods of the same names. Adds the method `by`, which returns the metric with another score as its
/// value, and the method `head`, for a model with several outputs. Each row of the macro's input has a metric and the type of its targets. If the
/// elements of the targets may have any number type, a type parameter for this type follows.
macro_rules! metrics {
    ($($metric:ty, $targets:ty $(, $label:ident)?);* $(;)?) => {$(
        impl<T: Float $(, $label: Number)?> Metric<T, $targets> for $metric {
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
            /// Returns this metric, but with the result of `score` as its value.
            pub fn by(self, score: impl Fn(&Self) -> f64 + 'static) -> By<Self> {
                By { metric: self, score: Box::new(score) }
            }

            /// Returns this metric for the output with index `HEAD` of a model with several outputs; see [`Head`].
            pub fn head<const HEAD: usize>(self) -> Head<Self, HEAD> {
                Head(self)
            }
        }
    )*};
}

metrics! {
    Accuracy, Tensor<i64>;
    ConfusionMatrix, Tensor<i64>;
    BinaryScores, Tensor<L>, L;
    Perplexity, Tensor<i64>;
    CalibrationError, Tensor<i64>;
    RegressionErrors, Tensor<T>;
}

/// Returns the number of classes, the logits of each sample as rows, and the class of each sample. Ignored samples are left out. Logits are
/// `[n, c]` with targets `[n]`, or `[n, c, d1, …]` with targets `[n, d1, …]`. Logits `[c]` with a target `[]` are one sample.
///
/// # Errors
///
/// If the shapes do not fit, a target is not a class, or there is not enough memory.
fn samples_as_rows<T: Float>(logits: &Tensor<T>, targets: &Tensor<i64>) -> Result<(usize, Vec<T>, Vec<usize>)> {
    let axis = class_dim(logits.shape(), targets).map_err(Error::Dataset)?;
    let classes = logits.shape()[axis];
    let mut rows = logits.try_movedim(axis as isize, -1)?.try_to_vec()?;
    let mut kept = Vec::with_capacity(targets.numel());
    for (position, target) in targets.iter().enumerate().filter(|&(_, target)| target != IGNORE_INDEX) {
        let to = kept.len() * classes;
        rows.copy_within(position * classes..(position + 1) * classes, to);
        kept.push(target as usize);
    }
    rows.truncate(kept.len() * classes);
    Ok((classes, rows, kept))
}

/// Returns the index of the largest element. If several elements are equal, the first one counts. NaN is larger than every number, as in
/// PyTorch's `argmax`.
fn argmax<T: Float>(row: &[T]) -> usize {
    let mut best = 0;
    for (position, &value) in row.iter().enumerate() {
        if !row[best].is_nan() && (value.is_nan() || value > row[best]) {
            best = position;
        }
    }
    best
}

/// Returns `sum` / `count`; NaN if `count` is 0.
fn mean(sum: f64, count: u64) -> f64 {
    sum / count as f64
}
