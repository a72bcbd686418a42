//! The settings of a training loop that do not depend on the types of a batch, and the methods that need only these settings. The methods
//! check the settings, compute the learning rate (also of a plateau schedule), clip gradients, average the weights, and run the callbacks.

use std::ops::ControlFlow;
use std::path::PathBuf;

use wengert_autograd::Gradients;
use wengert_macros::precompiled;
use wengert_tensor::Float;

use crate::fit::early_stopping::EarlyStopping;
use crate::history::History;
use crate::module::Module;
use crate::optim::WeightAverage;
use crate::schedule::{ReduceLROnPlateau, Schedule};
use crate::{Error, Result};

/// The settings of [`Fit`](crate::Fit) except for the data, the metrics and the display of the progress.
pub(super) struct Settings<'a, T: Float> {
    pub(super) epochs: u64,
    pub(super) schedule: Option<(Interval, Box<dyn Schedule + 'a>)>,
    /// The name of the measure that the plateau schedule watches, and the schedule itself.
    pub(super) plateau: Option<(String, ReduceLROnPlateau)>,
    pub(super) clip_norm: Option<f64>,
    /// The number of batches in a step.
    pub(super) batches_per_step: usize,
    pub(super) average: Option<(Interval, &'a mut WeightAverage<T>)>,
    pub(super) callbacks: Vec<Callback<'a, T>>,
    /// The name of the measure that determines the best epoch and early stopping.
    pub(super) monitor: String,
    pub(super) stopping: EarlyStopping,
    pub(super) folder: Option<PathBuf>,
    pub(super) resume: bool,
}

/// A function that is called after each epoch.
pub(super) type Callback<'a, T> = Box<dyn FnMut(&History, &dyn Module<T>) -> Result<ControlFlow<()>> + 'a>;

/// The unit in which a schedule or an average counts: epochs or steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interval {
    Epochs,
    Steps,
}

impl<T: Float> Settings<'_, T> {
    /// Returns the default settings for a training run of `epochs` epochs.
    pub(super) fn new(epochs: u64) -> Self {
        Settings {
            epochs,
            schedule: None,
            plateau: None,
            clip_norm: None,
            batches_per_step: 1,
            average: None,
            callbacks: Vec::new(),
            monitor: "loss".to_owned(),
            stopping: EarlyStopping::new(u64::MAX),
            folder: None,
            resume: false,
        }
    }
}

#[precompiled]
impl<T: Float> Settings<'_, T> {
    /// Returns the learning rate of the step to which the batch with index `batch` belongs, or `None` without a schedule. An epoch has
    /// `batches` batches.
    pub(super) fn learning_rate(&self, epoch: u64, batch: usize, batches: usize) -> Option<f64> {
        let (interval, schedule) = self.schedule.as_ref()?;
        let steps = batches.div_ceil(self.batches_per_step) as u64;
        let step = epoch * steps + (batch / self.batches_per_step) as u64;
        Some((**schedule).lr(if *interval == Interval::Epochs { epoch } else { step }))
    }

    /// Returns an error if the largest norm of the gradients is negative or NaN, or if the training is to resume and
    /// has no folder.
    pub(super) fn check(&self) -> Result<()> {
        if let Some(value) = self.clip_norm.filter(|norm| norm.is_nan() || *norm < 0.0) {
            return Err(Error::Setting { name: "max_norm", value, expected: "a number, not negative" });
        }
        if self.resume && self.folder.is_none() {
            let problem = "resume: there is no folder to resume from; set it by `folder`";
            return Err(Error::Argument(problem.to_owned()));
        }
        Ok(())
    }

    /// Clips the gradients of a step, if the settings have a largest norm.
    pub(super) fn clip(&self, gradients: &mut Gradients<T>) -> Result<()> {
        if let Some(max_norm) = self.clip_norm {
            gradients.try_clip_norm(max_norm)?;
        }
        Ok(())
    }

    /// Adds the weights of the model to the average, if there is an average over steps.
    pub(super) fn update_step_average(&mut self, model: &dyn Module<T>) -> Result<()> {
        match &mut self.average {
            Some((Interval::Steps, average)) => average.try_update(model),
            _ => Ok(()),
        }
    }

    /// Calls the callbacks until one of them ends the training or returns an error. Returns `Break` if a callback ends
    /// the training.
    pub(super) fn run_callbacks(&mut self, history: &History, model: &dyn Module<T>) -> Result<ControlFlow<()>> {
        for callback in &mut self.callbacks {
            if callback(history, model)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// If the settings have an average, exchanges the weights of `model` with the average. If the average is over epochs, the weights of this epoch
    /// are first added to it. Returns false if there is no average, or no weights were added to the average yet.
    pub(super) fn swap_in_average(&mut self, model: &mut dyn Module<T>) -> Result<bool> {
        let Some((interval, average)) = &mut self.average else { return Ok(false) };
        if *interval == Interval::Epochs {
            average.try_update(&*model)?;
        }
        // If no step was made, there is no average yet.
        if average.updates() == 0 {
            return Ok(false);
        }
        average.try_swap(model)?;
        Ok(true)
    }

    /// Exchanges the weights of `model` with the average. Does nothing if there is no average.
    pub(super) fn swap_average(&mut self, model: &mut dyn Module<T>) -> Result<()> {
        match &mut self.average {
            Some((_, average)) => average.try_swap(model),
            None => Ok(()),
        }
    }

    /// Updates the plateau schedule, and returns its learning rate for the next epoch, or `None` without a plateau
    /// schedule. If the history does not have the measure of the schedule, returns an error.
    pub(super) fn update_plateau(&mut self, history: &History) -> Result<Option<f64>> {
        let Some((name, plateau)) = &mut self.plateau else { return Ok(None) };
        Ok(Some(plateau.step(last_measure(history, "plateau", name)?)))
    }
}

/// Returns the measure `name` of the last epoch, from the validation samples if there are any. Errors show `setting`, the option that uses
/// the measure.
pub(super) fn last_measure(history: &History, setting: &str, name: &str) -> Result<f64> {
    let scores = history.last().map(|last| last.validation.as_ref().unwrap_or(&last.train));
    scores
        .and_then(|scores| scores.get(name))
        .ok_or_else(|| Error::Argument(format!("{setting}: there is no measure '{name}'; add it by `metric`")))
}
