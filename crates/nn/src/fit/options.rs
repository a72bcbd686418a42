//! Options of the training loop that fewer programs need: accumulation of gradients, averages of weights, a plateau schedule, callbacks.

use std::ops::ControlFlow;

use wengert_tensor::Float;

use crate::Result;
use crate::fit::fit::Fit;
use crate::fit::settings::Interval;
use crate::history::History;
use crate::module::Module;
use crate::optim::WeightAverage;
use crate::schedule::ReduceLROnPlateau;

impl<'a, T: Float, X: Send + 'static, Y: Send + 'static, O> Fit<'a, T, X, Y, O> {
    /// Makes a step after each `batches` batches, with the mean of the gradients over all their samples. If the loss is a plain mean over
    /// the samples, one batch of all these samples makes the same step, up to rounding. Several batches need less memory. The last step of
    /// an epoch may have fewer batches. Lightning: `accumulate_grad_batches`.
    ///
    /// A mean with class weights, or over the targets that are not ignored, differs from the same mean over one large batch. The reason is
    /// that the gradients of each batch are weighted by its number of samples. Layers that use statistics of the batch, such as batch
    /// normalization, still see one batch at a time.
    ///
    /// # Panics
    ///
    /// If `batches` is 0.
    #[must_use]
    #[track_caller]
    pub fn accumulate(mut self, batches: usize) -> Self {
        assert!(batches > 0, "accumulate: expected at least 1 batch in a step, but got 0");
        self.settings.batches_per_step = batches;
        self
    }

    /// Adds the weights to `average` after each step, as an exponential average needs. The validation and the best model in the
    /// [folder](Self::folder) use the average. After the training, `average.apply_to(&mut model)` sets the weights to the average. PyTorch:
    /// `AveragedModel.update_parameters`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{DataLoader, Fit, Generator, Layer, Linear, Progress, Samples, Sgd, WeightAverage};
    /// # use wengert_tensor::ops::mse_loss;
    ///
    /// let generator = &mut Generator::new(0);
    /// let x = Tensor::<f32>::randn([64, 2], generator);
    /// let data = DataLoader::new(Samples::new(x.clone(), x.sum_keepdim(1))?, 16);
    /// let (mut model, mut average) = (Linear::new(2, 1, generator), WeightAverage::ema(0.9));
    /// let fit: Fit<f32, Tensor, Tensor> = Fit::new(5).average_steps(&mut average).progress(Progress::Quiet);
    /// fit.run(
    ///     &mut model,
    ///     &mut Sgd::new(0.1),
    ///     &data,
    ///     generator,
    ///     |model, tape, x| model.forward(tape.constant(x)),
    ///     |prediction, y| mse_loss(prediction, y),
    /// )?;
    /// assert_eq!(average.updates(), 5 * 4);
    /// average.apply_to(&mut model);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    #[must_use]
    pub fn average_steps(mut self, average: &'a mut WeightAverage<T>) -> Self {
        self.settings.average = Some((Interval::Steps, average));
        self
    }

    /// Adds the weights to `average` after each epoch, as stochastic weight averaging does. The average is used as in
    /// [`average_steps`](Self::average_steps). The last call of one of these two methods counts. PyTorch: `swa_utils`.
    #[must_use]
    pub fn average_epochs(mut self, average: &'a mut WeightAverage<T>) -> Self {
        self.settings.average = Some((Interval::Epochs, average));
        self
    }

    /// Reduces the learning rate when `measure` stops improving. `measure` is `"loss"` or the name of a metric, and is
    /// taken from the validation samples, or from the training samples if there are none. The first rate is the rate of
    /// `plateau`. Replaces other schedules. PyTorch: `scheduler.step(loss)` after each epoch.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; }
    /// use wengert::nn::Fit;
    /// use wengert::nn::schedule::ReduceLROnPlateau;
    ///
    /// let fit: Fit = Fit::new(100).plateau("loss", ReduceLROnPlateau::new(1e-3).patience(5));
    /// ```
    #[must_use]
    pub fn plateau(mut self, measure: &str, plateau: ReduceLROnPlateau) -> Self {
        (self.settings.schedule, self.settings.plateau) = (None, Some((measure.to_owned(), plateau)));
        self
    }

    /// Calls `callback` after each epoch with the history and the model. The training ends if the callback returns `ControlFlow::Break(())`
    /// or an error. Several callbacks are called in the order in which they were added, until one of them ends the training. Lightning:
    /// `on_train_epoch_end`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; }
    /// use std::ops::ControlFlow;
    /// use wengert::nn::{Fit, save};
    ///
    /// let fit: Fit = Fit::new(100).on_epoch(|history, model| {
    ///     let epoch = history.epochs().len();
    ///     if epoch % 10 == 0 {
    ///         save(model, format!("epoch-{epoch}.safetensors"))?;
    ///     }
    ///     let is_good = history.last().is_some_and(|last| last.train.loss < 0.01);
    ///     Ok(if is_good { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    /// });
    /// ```
    #[must_use]
    pub fn on_epoch(mut self, callback: impl FnMut(&History, &dyn Module<T>) -> Result<ControlFlow<()>> + 'a) -> Self {
        self.settings.callbacks.push(Box::new(callback));
        self
    }
}
