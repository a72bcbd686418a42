//! How training went: loss and accuracy of each epoch.

use std::fmt;

use wengert_autograd::Var;
use wengert_autograd::transforms::try_infer;
use wengert_tensor::{Float, Tensor};

use crate::data::Samples;
use crate::loss::{try_accuracy, try_cross_entropy};
use crate::{Error, Result};

/// The results of one epoch, on the training samples and on those held out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Epoch {
    /// Loss on the training samples.
    pub train_loss: f64,
    /// Loss on the held-out samples.
    pub test_loss: f64,
    /// Share of right answers on the training samples, 0 to 1.
    pub train_accuracy: f64,
    /// Share of right answers on the held-out samples, 0 to 1.
    pub test_accuracy: f64,
}

impl Epoch {
    /// The mean cross-entropy and the accuracy of a classifier, given as its forward pass from inputs to logits `[n, classes]`, on both
    /// parts. Nothing is trained.
    ///
    /// # Errors
    ///
    /// If the logits do not fit the classes.
    pub fn measure<T: Float>(
        forward: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>,
        train: &Samples<Tensor<T>>,
        test: &Samples<Tensor<T>>,
    ) -> Result<Self> {
        let on = |data: &Samples<Tensor<T>>| {
            let logits = try_infer(&forward, data.inputs())?;
            let loss = try_cross_entropy(&logits, data.targets())?.item().to_f64();
            Ok::<_, Error>((loss, try_accuracy(&logits, data.targets())?))
        };
        let ((train_loss, train_accuracy), (test_loss, test_accuracy)) = (on(train)?, on(test)?);
        Ok(Epoch { train_loss, test_loss, train_accuracy, test_accuracy })
    }
}

/// `loss: train 0.1234, test 0.2345   accuracy: train 98.76%, test 97.65%`
impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (train, test) = (100.0 * self.train_accuracy, 100.0 * self.test_accuracy);
        write!(f, "loss: train {:.4}, test {:.4}   ", self.train_loss, self.test_loss)?;
        write!(f, "accuracy: train {train:.2}%, test {test:.2}%")
    }
}

/// The epochs of a training, in order.
///
/// ```
/// use wengert_nn::{Epoch, History};
///
/// let mut history = History::default();
/// for k in 1..=20 {
///     let loss = 1.0 / f64::from(k);
///     history.push(Epoch { train_loss: loss, test_loss: 1.2 * loss, train_accuracy: 0.9, test_accuracy: 0.8 });
/// }
/// assert_eq!(history.last().unwrap().train_loss, 0.05);
/// ```
///
/// With the feature `plots` it has `loss_curve` and `save_loss_curve`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    pub(crate) epochs: Vec<Epoch>,
}

impl History {
    /// Adds an epoch.
    pub fn push(&mut self, epoch: Epoch) {
        self.epochs.push(epoch);
    }

    /// The epochs.
    pub fn epochs(&self) -> &[Epoch] {
        &self.epochs
    }

    /// The last epoch.
    pub fn last(&self) -> Option<&Epoch> {
        self.epochs.last()
    }
}
