//! The training loop.

use std::fmt;
use std::path::PathBuf;

use wengert_autograd::{Gradients, NonFinite, Tape, Var};
use wengert_macros::precompiled;
use wengert_tensor::{Float, Generator, Tensor};

use crate::data::DataLoader;
use crate::fit::early_stopping::EarlyStopping;
use crate::fit::evaluate::{Mean, check_names, evaluate_outputs};
use crate::fit::files::LAST;
use crate::fit::gradient_accumulator::GradientAccumulator;
use crate::fit::progress::{Progress, Reporter};
use crate::fit::settings::{Interval, Settings};
use crate::history::{Epoch, History, Scores};
use crate::metrics::Metric;
use crate::module::Module;
use crate::optim::Optimizer;
use crate::schedule::Schedule;
use crate::{Error, Result};

/// The metrics, each with its name.
type Metrics<'a, T, Y, O> = Vec<(String, Box<dyn Metric<T, Y, O> + 'a>)>;

/// References to the metrics, each with its name.
type BorrowedMetrics<'n, 'a, T, Y, O> = [(&'n str, &'n mut (dyn Metric<T, Y, O> + 'a))];

/// The settings of a training loop. Everything except the number of epochs is optional.
///
/// A batch has inputs `X` and targets `Y`. The metrics get the outputs `O` of the model: a tensor for [`run`](Fit::run), or an array of tensors
/// for [`run_heads`](Fit::run_heads).
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::metrics::Accuracy;
/// use wengert::nn::{Adam, DataLoader, Dataset, Fit, Generator, Layer, Linear, Progress, Samples, cross_entropy};
///
/// // Two classes: points above and below a line.
/// let generator = &mut Generator::new(0);
/// let x = Tensor::<f32>::randn([200, 2], generator);
/// let classes = x.sum(1).gt(0.0).cast::<i64>();
/// let (train, test) = Samples::new(x, classes)?.random_split(0.25, generator)?;
/// let (train, test) = (DataLoader::new(train, 16).shuffle(), DataLoader::new(test, 50));
///
/// let (mut model, mut adam) = (Linear::new(2, 2, generator), Adam::new(0.05));
/// let history = Fit::new(10)
///     .validation(&test)
///     .metric("accuracy", Accuracy::new())
///     .clip_norm(1.0)
///     .progress(Progress::Quiet)
///     .run(
///         &mut model,
///         &mut adam,
///         &train,
///         generator,
///         |model, tape, x| model.forward(tape.constant(x)),
///         |logits, classes| cross_entropy(&logits, classes),
///     )?;
/// assert!(history.last().unwrap().validation.as_ref().unwrap().get("accuracy").unwrap() > 0.9);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// A model with several inputs gets the tuple that a batch of the loader has:
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Adam, DataLoader, Embedding, Fit, Generator, Module, Progress, Samples};
/// # use wengert_tensor::ops::mse_loss;
///
/// /// A recommender: the rating of a film by a user.
/// #[derive(Module)]
/// struct Ratings {
///     users: Embedding,
///     films: Embedding,
/// }
///
/// impl Ratings {
///     fn forward<'t>(&self, tape: &'t Tape, users: &Tensor<i64>, films: &Tensor<i64>) -> Var<'t> {
///         (self.users.forward(tape, users) * self.films.forward(tape, films)).sum(1)
///     }
/// }
///
/// let generator = &mut Generator::new(0);
/// let (users, films) = (Tensor::from([0, 0, 1, 1]), Tensor::from([0, 1, 0, 1]));
/// let data = Samples::new((users, films), Tensor::from([1.0, -1.0, -1.0, 1.0]))?;
/// let loader = DataLoader::new(data, 2).shuffle();
/// let mut model = Ratings { users: Embedding::new(2, 4, generator), films: Embedding::new(2, 4, generator) };
/// let history = Fit::new(100).progress(Progress::Quiet).run(
///     &mut model,
///     &mut Adam::new(0.05),
///     &loader,
///     generator,
///     |model, tape, (users, films)| model.forward(tape, users, films),
///     |stars, expected| mse_loss(stars, expected),
/// )?;
/// assert!(history.last().unwrap().train.loss < 0.01);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// Several targets are a tuple too: the loss gets them as `|y, (first, second)|`. For a model with several outputs see
/// [`run_heads`](Fit::run_heads).
///
/// Without this type, an epoch is the following loop:
///
/// ```
/// # use wengert_autograd::prelude::*;
/// # use wengert_nn::{DataLoader, Generator, Layer, Linear, Optimizer, Samples, Sgd, cross_entropy};
/// # let generator = &mut Generator::new(0);
/// # let data = Samples::new(Tensor::<f32>::zeros([8, 2]), Tensor::<i64>::zeros([8]))?;
/// # let (mut model, mut sgd, train, epoch) = (Linear::new(2, 2, generator), Sgd::new(0.1), DataLoader::new(data, 4), 0);
/// for batch in train.epoch(epoch) {
///     let (x, classes) = batch?;
///     let (_, gradients) = Tape::training(generator)
///         .value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&x)), &classes));
///     sgd.step(&mut model, &gradients);
/// }
/// # Ok::<(), wengert_nn::Error>(())
/// ```
pub struct Fit<'a, T: Float = f32, X = Tensor<T>, Y = Tensor<i64>, O = Tensor<T>> {
    validation: Option<&'a DataLoader<(X, Y)>>,
    metrics: Metrics<'a, T, Y, O>,
    progress: Progress,
    pub(super) settings: Settings<'a, T>,
}

impl<'a, T: Float, X: Send + 'static, Y: Send + 'static, O> Fit<'a, T, X, Y, O> {
    /// Returns the settings of a training run of `epochs` epochs.
    pub fn new(epochs: u64) -> Self {
        Fit { validation: None, metrics: Vec::new(), progress: Progress::default(), settings: Settings::new(epochs) }
    }

    /// Evaluates the model on `loader`, with samples that are not trained on, after each epoch.
    #[must_use]
    pub fn validation(self, loader: &'a DataLoader<(X, Y)>) -> Self {
        Fit { validation: Some(loader), ..self }
    }

    /// Adds a metric. It is computed on the training samples during the epoch, and on the validation samples after it. The names of all metrics must
    /// differ from each other and from `loss`.
    #[must_use]
    pub fn metric(mut self, name: &str, metric: impl Metric<T, Y, O> + 'a) -> Self {
        self.metrics.push((name.to_owned(), Box::new(metric)));
        self
    }

    /// Sets the learning rate of each epoch by a schedule. Epochs are counted from 0. Replaces other schedules.
    #[must_use]
    pub fn schedule(self, schedule: impl Schedule + 'a) -> Self {
        self.set_schedule(Interval::Epochs, Box::new(schedule))
    }

    /// Sets the learning rate of each step by a schedule. A batch is a step, unless gradients are
    /// [accumulated](Self::accumulate), and steps are counted from 0. Replaces other schedules.
    #[must_use]
    pub fn schedule_steps(self, schedule: impl Schedule + 'a) -> Self {
        self.set_schedule(Interval::Steps, Box::new(schedule))
    }

    fn set_schedule(mut self, interval: Interval, schedule: Box<dyn Schedule + 'a>) -> Self {
        (self.settings.schedule, self.settings.plateau) = (Some((interval, schedule)), None);
        self
    }

    /// Scales the gradients of each step down to a norm of at most `max_norm`; see [`Gradients::clip_norm`]. PyTorch: `clip_grad_norm_`.
    #[must_use]
    pub fn clip_norm(mut self, max_norm: f64) -> Self {
        self.settings.clip_norm = Some(max_norm);
        self
    }

    /// Sets the measure that determines the best epoch and when to stop: `"loss"` or the name of a metric. The measure is taken from the
    /// validation samples, or from the training samples if there are none. By default the measure is the loss, and the training does not
    /// stop early.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; }
    /// use wengert::nn::{EarlyStopping, Fit};
    ///
    /// let fit: Fit = Fit::new(100).early_stopping("accuracy", EarlyStopping::new(5).maximize());
    /// ```
    #[must_use]
    pub fn early_stopping(mut self, measure: &str, stopping: EarlyStopping) -> Self {
        (self.settings.monitor, self.settings.stopping) = (measure.to_owned(), stopping);
        self
    }

    /// Writes these files into a folder, which is created if needed: `log.jsonl` ([`History::save`]); `best.safetensors`, the model of the
    /// best epoch, for [`load`](crate::load); and `last.safetensors`, to resume the training.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.folder = Some(folder.into());
        self
    }

    /// Resumes the training after the last epoch whose checkpoint is in the [folder](Self::folder), or starts from the beginning if there is no
    /// checkpoint. With the same settings, the result is the same as without the interruption. `run` returns an error if `last.safetensors`
    /// or the log cannot be read. It also returns an error if the checkpoint does not fit the model and the optimiser, or the log has fewer
    /// epochs than the checkpoint.
    #[must_use]
    pub fn resume(mut self) -> Self {
        self.settings.resume = true;
        self
    }

    /// Sets the display of the progress.
    #[must_use]
    pub fn progress(self, progress: Progress) -> Self {
        Fit { progress, ..self }
    }

    /// Trains a model with `N` outputs: `forward` computes the outputs, and `loss` computes the loss from the outputs and the targets.
    /// `collect` converts the values of the outputs to the form that the metrics expect.
    #[allow(clippy::too_many_arguments)]
    fn train<M: Module<T>, P: Optimizer<T>, const N: usize>(
        mut self,
        model: &mut M,
        optimizer: &mut P,
        train: &DataLoader<(X, Y)>,
        generator: &mut Generator,
        forward: impl for<'t> Fn(&M, &'t Tape<T>, &X) -> [Var<'t, T>; N],
        loss: impl for<'t> Fn([Var<'t, T>; N], &Y) -> Var<'t, T>,
        collect: fn([Tensor<T>; N]) -> O,
    ) -> Result<History> {
        check_names(self.metrics.iter().map(|(name, _)| &name[..]))?;
        self.settings.check()?;
        let mut history = self.restore(model, optimizer, generator)?;
        if let Some((_, plateau)) = &self.settings.plateau {
            optimizer.set_lr(plateau.lr());
        }
        let mut reporter = Reporter::new(self.progress, self.settings.epochs);
        for epoch in history.epochs().len() as u64..self.settings.epochs {
            if self.settings.stopping.should_stop() {
                break;
            }
            reporter.start_epoch(epoch + 1, train.len());
            self.metrics.iter_mut().for_each(|(_, metric)| metric.reset());
            let (mut mean, mut accumulator) =
                (Mean::default(), GradientAccumulator::new(self.settings.batches_per_step));
            for (batch, samples) in train.epoch(epoch).enumerate() {
                let (inputs, targets) = samples?;
                self.settings.learning_rate(epoch, batch, train.len()).into_iter().for_each(|lr| optimizer.set_lr(lr));
                let position = [epoch + 1, batch as u64 + 1];
                let (value, gradients, outputs) = finite_gradients(model.as_module(), generator, position, |tape| {
                    let outputs = forward(model, tape, &inputs);
                    (loss(outputs, &targets), outputs)
                })?;
                if let Some(sum) = accumulator.add(gradients, train.batch_len(batch), batch + 1 == train.len())? {
                    self.step(sum, model, optimizer)?;
                }
                mean.add(value, train.batch_len(batch));
                let outputs = collect(outputs);
                for (_, metric) in &mut self.metrics {
                    metric.update(&outputs, &targets)?;
                }
                reporter.finish_batch(mean.value());
            }
            let metrics = self.metrics.iter().map(|(name, metric)| (name.clone(), metric.value())).collect();
            let results = Epoch {
                lr: optimizer.learning_rate(),
                train: Scores { loss: mean.value(), metrics },
                validation: None,
            };
            self.validate_and_record(&mut history, model, results, |model, loader, metrics| {
                evaluate_outputs(loader, metrics, |tape, x| forward(model, tape, x), &loss, collect)
            })?;
            self.finish_epoch(&history, model, optimizer, generator)?;
            let is_last = epoch + 1 == self.settings.epochs || self.settings.stopping.should_stop();
            history.last().into_iter().for_each(|last| reporter.finish_epoch(epoch + 1, last, is_last));
            if self.settings.run_callbacks(&history, model.as_module())?.is_break() {
                if !is_last {
                    reporter.print_stop(epoch + 1);
                }
                break;
            }
        }
        Ok(history)
    }

    /// Clips the gradients if the settings have a largest norm, and makes a step of the optimiser. Adds the weights to the average, if there is an
    /// average over steps.
    fn step<M: Module<T>, P: Optimizer<T>>(
        &mut self,
        mut gradients: Gradients<T>,
        model: &mut M,
        optimizer: &mut P,
    ) -> Result<()> {
        self.settings.clip(&mut gradients)?;
        optimizer.try_step(model, &gradients)?;
        self.settings.update_step_average(model.as_module())
    }

    /// Restores the state of an interrupted training, and returns the history of the completed epochs. Without a
    /// checkpoint to resume from, returns an empty history and leaves the model as it is. Creates the folder of the
    /// training, if the training has one.
    fn restore<M: Module<T>, P: Optimizer<T>>(
        &mut self,
        model: &mut M,
        optimizer: &mut P,
        generator: &mut Generator,
    ) -> Result<History> {
        let Some(saved) = self.settings.last_checkpoint()? else { return Ok(History::default()) };
        let names: Vec<&str> = self.metrics.iter().map(|(name, _)| &name[..]).collect();
        let history = self.settings.restore(&saved, &names, model.as_module_mut(), generator)?;
        saved.load_optimizer("optimizer", optimizer, model)?;
        Ok(history)
    }

    /// If the settings have a plateau schedule, updates the schedule and sets its learning rate after an epoch. If the training has a folder, writes
    /// the checkpoint of the epoch.
    fn finish_epoch<M: Module<T>, P: Optimizer<T>>(
        &mut self,
        history: &History,
        model: &M,
        optimizer: &mut P,
        generator: &Generator,
    ) -> Result<()> {
        if let Some(lr) = self.settings.update_plateau(history)? {
            optimizer.set_lr(lr);
        }
        let Some(folder) = &self.settings.folder else { return Ok(()) };
        let checkpoint = self.settings.checkpoint(history, model.as_module(), generator);
        checkpoint.optimizer("optimizer", &*optimizer, model).save(folder.join(LAST))
    }

    /// Validates the model by `evaluate` if there are validation samples. Adds the epoch to the history, and calls
    /// [`record_epoch`](Settings::record_epoch). The validation and the saved best model use the average of the weights if there is
    /// one, because it usually predicts better than the last weights.
    fn validate_and_record<M: Module<T>>(
        &mut self,
        history: &mut History,
        model: &mut M,
        results: Epoch,
        evaluate: impl Fn(&M, &DataLoader<(X, Y)>, &mut BorrowedMetrics<'_, 'a, T, Y, O>) -> Result<Scores>,
    ) -> Result<()> {
        let swapped = self.settings.swap_in_average(model.as_module_mut())?;
        let mut metrics: Vec<_> = self.metrics.iter_mut().map(|(name, metric)| (&name[..], &mut **metric)).collect();
        let validation = self.validation.map(|loader| evaluate(model, loader, &mut metrics)).transpose();
        let scored = validation.and_then(|validation| {
            history.push(Epoch { validation, ..results });
            self.settings.record_epoch(history, model.as_module())
        });
        if swapped {
            self.settings.swap_average(model.as_module_mut())?;
        }
        scored
    }
}

impl<T: Float, X: Send + 'static, Y: Send + 'static> Fit<'_, T, X, Y> {
    /// Trains `model`, and returns the history of all epochs. `forward` computes the outputs from the inputs, on a
    /// tape. `loss` computes the loss from outputs and targets; it must be a mean over the samples. Random numbers on
    /// the tape come from `generator`.
    ///
    /// The loss of an epoch is the mean of the losses of its batches, each weighted by its number of samples. If `loss` is a mean with class
    /// weights, or over the targets that are not ignored, this differs from the loss of one large batch.
    ///
    /// # Errors
    ///
    /// - The loss or a gradient is not finite: [`Error::NonFinite`], with the first operation or leaf whose value is not finite,
    ///   and its line, if there is one.
    /// - The measure of [`early_stopping`](Self::early_stopping) or [`plateau`](Self::plateau) does not exist:
    ///   [`Error::Argument`].
    /// - A [`metric`](Self::metric) has the name `loss` or the name of another metric: [`Error::Argument`].
    /// - The norm of [`clip_norm`](Self::clip_norm) is negative or NaN: [`Error::Setting`].
    /// - The training is to [`resume`](Self::resume), but has no [`folder`](Self::folder): [`Error::Argument`].
    /// - Errors of the data, the metrics, the operations, the optimiser, the callbacks and the files.
    pub fn run<M: Module<T>, P: Optimizer<T>>(
        self,
        model: &mut M,
        optimizer: &mut P,
        train: &DataLoader<(X, Y)>,
        generator: &mut Generator,
        forward: impl for<'t> Fn(&M, &'t Tape<T>, &X) -> Var<'t, T>,
        loss: impl for<'t> Fn(Var<'t, T>, &Y) -> Var<'t, T>,
    ) -> Result<History> {
        self.train(
            model,
            optimizer,
            train,
            generator,
            |model, tape, x| [forward(model, tape, x)],
            |[output], y| loss(output, y),
            |[output]| output,
        )
    }
}

impl<T: Float, X: Send + 'static, Y: Send + 'static, const N: usize> Fit<'_, T, X, Y, [Tensor<T>; N]> {
    /// Trains a model with several outputs, and returns the history of all epochs. `forward` returns an array of variables, and `loss` gets
    /// this array. The rest is as for [`run`](Self::run). The method `head::<0>()` of a metric makes it a metric of the first output: it compares
    /// this output with the first part of the targets.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::metrics::Accuracy;
    /// use wengert::nn::{Adam, DataLoader, Fit, Generator, Layer, Linear, Module, Progress, Samples, cross_entropy};
    /// # use wengert_tensor::ops::mse_loss;
    ///
    /// /// The sign of the sum of three numbers, and the sum.
    /// #[derive(Module)]
    /// struct SignAndSum {
    ///     body: Linear,
    ///     sign: Linear,
    ///     sum: Linear,
    /// }
    ///
    /// impl SignAndSum {
    ///     fn forward<'t>(&self, x: Var<'t>) -> [Var<'t>; 2] {
    ///         let features = self.body.forward(x).relu();
    ///         [self.sign.forward(features), self.sum.forward(features).squeeze(1)]
    ///     }
    /// }
    ///
    /// let generator = &mut Generator::new(0);
    /// let x = Tensor::<f32>::randn([200, 3], generator);
    /// let sums = x.sum(1);
    /// let data = Samples::new(x, (sums.gt(0.0).cast::<i64>(), sums))?;
    /// let loader = DataLoader::new(data, 20).shuffle();
    /// let mut model = SignAndSum {
    ///     body: Linear::new(3, 16, generator),
    ///     sign: Linear::new(16, 2, generator),
    ///     sum: Linear::new(16, 1, generator),
    /// };
    /// let history = Fit::new(20)
    ///     .metric("accuracy", Accuracy::new().head::<0>())
    ///     .progress(Progress::Quiet)
    ///     .run_heads(
    ///         &mut model,
    ///         &mut Adam::new(0.01),
    ///         &loader,
    ///         generator,
    ///         |model, tape, x| model.forward(tape.constant(x)),
    ///         |[sign, sum], (classes, sums)| cross_entropy(&sign, classes) + mse_loss(sum, sums),
    ///     )?;
    /// assert!(history.last().unwrap().train.get("accuracy").unwrap() > 0.9);
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run).
    pub fn run_heads<M: Module<T>, P: Optimizer<T>>(
        self,
        model: &mut M,
        optimizer: &mut P,
        train: &DataLoader<(X, Y)>,
        generator: &mut Generator,
        forward: impl for<'t> Fn(&M, &'t Tape<T>, &X) -> [Var<'t, T>; N],
        loss: impl for<'t> Fn([Var<'t, T>; N], &Y) -> Var<'t, T>,
    ) -> Result<History> {
        self.train(model, optimizer, train, generator, forward, loss, |outputs| outputs)
    }
}

impl<T: Float, X, Y, O> fmt::Debug for Fit<'_, T, X, Y, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { epochs, monitor, stopping, folder, .. } = &self.settings;
        let mut text = f.debug_struct("Fit");
        text.field("epochs", epochs).field("monitor", monitor).field("stopping", stopping).field("folder", folder);
        text.finish_non_exhaustive()
    }
}

/// Returns the loss that `compute` records on a training tape, its gradients, and the values of the outputs. Returns an error if the loss or
/// a gradient is not finite. `epoch` and `batch`, both counted from 1, are only used in the error.
fn finite_gradients<T: Float, const N: usize>(
    model: &dyn Module<T>,
    generator: &mut Generator,
    [epoch, batch]: [u64; 2],
    compute: impl for<'t> Fn(&'t Tape<T>) -> (Var<'t, T>, [Var<'t, T>; N]),
) -> Result<(f64, Gradients<T>, [Tensor<T>; N])> {
    let before = generator.clone();
    let (value, gradients, outputs) = Tape::training(generator).try_value_and_gradients_with(&compute)?;
    if let Some(what) = describe_non_finite(model, value, &gradients) {
        let tape = Tape::training(&mut before.clone());
        let origin = find_non_finite_origin(model, &tape, compute(&tape).0)?;
        return Err(Error::NonFinite { epoch, batch, what, origin });
    }
    Ok((value.to_f64(), gradients, outputs))
}

/// Returns the text of an error if the loss or a gradient is NaN or infinite, otherwise `None`.
#[precompiled]
fn describe_non_finite<T: Float>(model: &dyn Module<T>, loss: T, gradients: &Gradients<T>) -> Option<String> {
    if !loss.is_finite() {
        return Some(format!("the loss is {loss}"));
    }
    let path = model.first_non_finite(gradients)?;
    Some(format!("the loss is {loss}, the gradient of '{path}' is not finite"))
}

/// Returns the operation or leaf that [`Tape::first_non_finite`] finds in the computation of the loss or of its derivative, or `None` if it
/// finds nothing. The caller has recorded the loss again on `tape`. This function records the derivative.
#[precompiled]
fn find_non_finite_origin<'t, T: Float>(
    model: &dyn Module<T>,
    tape: &'t Tape<T>,
    loss: Var<'t, T>,
) -> Result<Option<Box<NonFinite>>> {
    let trained = model.parameters().into_iter().filter(|parameter| !parameter.is_frozen());
    let trained: Vec<Var<'_, T>> =
        trained.map(|parameter| tape.try_parameter(parameter)).collect::<std::result::Result<_, _>>()?;
    tape.try_vjp(&[(loss, tape.constant(Tensor::try_ones(loss.shape())?))], &trained)?;
    Ok(tape.try_first_non_finite()?.map(Box::new))
}
