//! Averages of a model's weights over the steps of a training run. A model with averaged weights often predicts better than with its last weights.

use wengert_macros::{precompiled, twins};
use wengert_tensor::{Float, Tensor};

use crate::error::raise;
use crate::module::{LeafMut, Module};
use crate::optim::archive::{Archive, Key, Resume};
use crate::{Error, Result};

/// A running average of a model's parameters. Buffers (running statistics) are not averaged but copied at each update. PyTorch:
/// `torch.optim.swa_utils.AveragedModel`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::WeightAverage;
///
/// let mut w = Parameter::new(Tensor::from([1.0f32]));
/// let mut average = WeightAverage::swa();
/// for value in [1.0, 2.0, 6.0] {
///     w.value = Tensor::from([value]); // in place of an optimiser's step
///     average.update(&w);
/// }
/// average.swap(&mut w); // evaluate with the average
/// assert_eq!(w.value.to_vec(), [3.0]);
/// average.swap(&mut w); // then continue the training
/// assert_eq!(w.value.to_vec(), [6.0]);
/// ```
///
/// The running statistics of batch normalization are computed with the trained weights, not with their average. After
/// [`apply_to`](Self::apply_to), compute them again from the training data (PyTorch: `update_bn`). A forward pass alone changes no statistics.
/// It records the changes on a training tape, and [`update_buffers`](crate::update_buffers) applies them:
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{BatchNorm1d, Layer, update_buffers};
///
/// let generator = &mut Generator::new(0);
/// let mut model = BatchNorm1d::<f64>::new(1).momentum(None); // the statistics are averages over all batches
/// model.num_batches_tracked.as_mut().unwrap().value = Tensor::scalar(0); // begin a new average
/// for x in [Tensor::from([[1.0], [3.0]]), Tensor::from([[2.0], [8.0]])] {
///     let (_, gradients) =
///         Tape::training(generator).value_and_gradients(|tape| model.forward(tape.constant(&x)).sum(..));
///     update_buffers(&mut model, &gradients);
/// }
/// assert_eq!(model.running_mean.as_ref().unwrap().value.to_vec(), [3.5]); // of 2 and 5
/// ```
///
/// With a number as the layer's `momentum`, the statistics move from their old values towards each batch, as in training.
#[derive(Clone, Debug)]
pub struct WeightAverage<T: Float = f32> {
    /// The decay of an exponential average, or `None` for a plain average.
    decay: Option<f64>,
    updates: u64,
    /// The averages of the parameters, in the order of the model's parameters.
    parameters: Vec<Tensor<T>>,
    /// The bytes of each buffer, in the order of the model's buffers.
    buffers: Vec<Vec<u8>>,
    /// True between the first and the second of two swaps. Then the model has the averages, and `parameters` and `buffers` have the model's own
    /// values.
    is_swapped: bool,
}

#[twins]
impl<T: Float> WeightAverage<T> {
    /// Returns an exponential average. Each update sets the average to `decay` (0 to 1, often 0.999) times the old average plus `1 - decay`
    /// times the current weights. The first update copies the weights. PyTorch: `get_ema_multi_avg_fn`.
    pub fn ema(decay: f64) -> Self {
        WeightAverage { decay: Some(decay), ..WeightAverage::swa() }
    }

    /// Returns a plain average: the mean of the weights at all updates (Izmailov et al., "Averaging weights leads to wider optima and better
    /// generalization", 2018). PyTorch: `get_swa_multi_avg_fn`.
    pub fn swa() -> Self {
        WeightAverage { decay: None, updates: 0, parameters: Vec::new(), buffers: Vec::new(), is_swapped: false }
    }

    /// Returns the number of updates of the average so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Adds the current weights of `model` to the average. Call this method after each step or each epoch.
    ///
    /// # Errors
    ///
    /// If the decay is not from 0 to 1, or the shapes of the model differ from the shapes at the first update. Also
    /// between two [swaps](Self::swap), because the model then has the average, and if there is not enough memory. In
    /// these cases nothing changes.
    pub fn try_update(&mut self, model: &(impl Module<T> + ?Sized)) -> Result<()> {
        self.add_weights(model.as_module())
    }

    /// Sets the parameters to the average, and the buffers to their values at the last update. Between two [swaps](Self::swap), sets them
    /// to the values that the first swap took from the model.
    ///
    /// # Panics
    ///
    /// If there was no update, the model's parameters or buffers have other sizes than at the update, or there is not
    /// enough memory.
    #[track_caller]
    pub fn apply_to(&self, model: &mut (impl Module<T> + ?Sized)) {
        let mut copy = self.clone();
        if let Err(error) = copy.try_swap(model) {
            raise(error);
        }
    }

    /// Exchanges the parameters of `model` with the average, and the buffers with their values at the last update. Call this method once
    /// before an evaluation and once after it.
    ///
    /// # Errors
    ///
    /// If there was no update, the model's parameters or buffers have other sizes than at the update, or there is not enough memory. In these
    /// cases nothing changes.
    pub fn try_swap(&mut self, model: &mut (impl Module<T> + ?Sized)) -> Result<()> {
        self.exchange(model.as_module_mut())
    }
}

#[precompiled]
impl<T: Float> WeightAverage<T> {
    /// Adds the weights of `model` to the average, and replaces the buffers of the average by the model's buffers. The
    /// errors are the ones of [`try_update`](WeightAverage::try_update).
    fn add_weights(&mut self, model: &dyn Module<T>) -> Result<()> {
        if let Some(value) = self.decay.filter(|decay| !(0.0..=1.0).contains(decay)) {
            return Err(Error::Setting { name: "decay", value, expected: "a number from 0 to 1" });
        }
        if self.is_swapped {
            let problem = "the model has the averaged weights: call `swap` a second time before `update`";
            return Err(Error::Argument(problem.to_owned()));
        }
        if self.updates == 0 {
            self.parameters = model.parameters().into_iter().map(|parameter| parameter.value.clone()).collect();
        }
        self.check_shapes(model)?;
        let fraction = T::from_f64(self.decay.map_or(1.0 / (self.updates + 1) as f64, |decay| 1.0 - decay));
        if self.updates > 0 {
            // Everything that needs memory comes before the first change: copies of parameters that are not contiguous, and copies of
            // averages that share their memory.
            let parameters = model.parameters().into_iter();
            let values = parameters.map(|parameter| parameter.value.try_contiguous()).collect::<Result<Vec<_>, _>>()?;
            for average in &mut self.parameters {
                average.try_make_mut()?;
            }
            for (average, value) in self.parameters.iter_mut().zip(&values) {
                average
                    .try_update_with(value, [], |average, value, []| (average + fraction * (value - average), []))?;
            }
        }
        self.buffers = model.named_buffers().into_iter().map(|(_, buffer)| buffer.to_bytes()).collect();
        self.updates += 1;
        Ok(())
    }

    /// Exchanges the parameters and buffers of `model` with the average, and records whether the model has the average now. The errors are the ones
    /// of [`try_swap`](WeightAverage::try_swap).
    fn exchange(&mut self, model: &mut dyn Module<T>) -> Result<()> {
        if self.updates == 0 {
            let problem = "there is no average yet: call `update` before `swap` or `apply_to`";
            return Err(Error::Argument(problem.to_owned()));
        }
        self.check_shapes(model)?;
        self.check_buffers(model)?;
        let model_buffers: Vec<Vec<u8>> =
            model.named_buffers().into_iter().map(|(_, buffer)| buffer.to_bytes()).collect();
        // All buffers are decoded before anything changes, because decoding fails if memory runs out.
        let (mut parameters, mut buffers) = (Vec::new(), Vec::new());
        for (_, leaf) in model.leaves_mut() {
            match leaf {
                LeafMut::Parameter(parameter) => parameters.push(parameter),
                LeafMut::Buffer(buffer) => buffers.push(buffer),
            }
        }
        let buffers = buffers.into_iter().zip(&self.buffers);
        let setters: Vec<_> = buffers.map(|(buffer, bytes)| buffer.decode(bytes)).collect::<Result<_>>()?;
        setters.into_iter().for_each(|set| set());
        for (parameter, average) in parameters.into_iter().zip(&mut self.parameters) {
            std::mem::swap(&mut parameter.value, average);
        }
        self.buffers = model_buffers;
        self.is_swapped = !self.is_swapped;
        Ok(())
    }

    /// Returns an error unless the buffers of the model have the sizes of the saved buffers.
    fn check_buffers(&self, model: &dyn Module<T>) -> Result<()> {
        let expected: Vec<usize> = self.buffers.iter().map(Vec::len).collect();
        let found: Vec<usize> = model.named_buffers().iter().map(|(_, buffer)| buffer.to_bytes().len()).collect();
        if expected == found {
            return Ok(());
        }
        Err(Error::Argument(format!(
            "the buffers of the model have {found:?} bytes, but they had {expected:?} bytes at the update of the average"
        )))
    }

    /// Returns an error unless the parameters of the model have the shapes of the averages.
    fn check_shapes(&self, model: &dyn Module<T>) -> Result<()> {
        let (expected, parameters) = (self.parameters.len(), model.parameters());
        let found = parameters.len();
        if found != expected {
            return Err(Error::Argument(format!(
                "the model has {found} parameters, but it had {expected} at the first update of the average"
            )));
        }
        let mut pairs =
            self.parameters.iter().map(Tensor::shape).zip(parameters.iter().map(|parameter| parameter.value.shape()));
        match pairs.position(|(average, shape)| average != shape) {
            Some(position) => Err(Error::Argument(format!(
                "parameter '{}' has the shape {}, but it had the shape {} at the first update of the average",
                model.named_parameters()[position].0.escape_debug(),
                parameters[position].value.shape(),
                self.parameters[position].shape()
            ))),
            None => Ok(()),
        }
    }
}

/// Saves the averages under the paths of their parameters. Between two swaps, when the model has the averages, `Checkpoint::save` returns an
/// error. Buffers are not saved: restoring copies them from the model, so load the model first.
impl<T: Float> Resume<T> for WeightAverage<T> {
    fn archive(&mut self, model: &(impl Module<T> + ?Sized), archive: &mut Archive) {
        archive_average(self, model.as_module(), archive);
    }
}

/// Saves or restores the averages; see [`WeightAverage::archive`].
#[precompiled]
fn archive_average<T: Float>(average: &mut WeightAverage<T>, model: &dyn Module<T>, archive: &mut Archive) {
    if !archive.is_restoring() && average.is_swapped {
        let problem = "the model has the averaged weights: call `swap` a second time before a checkpoint is saved";
        archive.fail(Error::Argument(problem.to_owned()));
    }
    let mut decay = average.decay.unwrap_or(f64::NAN);
    archive.number(Key::Setting("decay".to_owned()), &mut decay);
    average.decay = Some(decay).filter(|decay| !decay.is_nan());
    archive.integer(Key::State("n_averaged".to_owned()), &mut average.updates);
    if archive.is_restoring() {
        average.is_swapped = false;
        (average.parameters, average.buffers) = (Vec::new(), Vec::new());
        // Before the first update, an average has no tensors.
        if average.updates > 0 {
            average.parameters = model.parameters().into_iter().map(|parameter| parameter.value.clone()).collect();
            average.buffers = model.named_buffers().into_iter().map(|(_, buffer)| buffer.to_bytes()).collect();
        }
    }
    for ((path, _), tensor) in model.named_parameters().iter().zip(&mut average.parameters) {
        archive.tensor(Key::State(format!("{path}.average")), tensor);
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::Views as _;

    use super::*;
    use crate::{BatchNorm1d, Buffer, Parameter};

    #[derive(Module)]
    struct Counted {
        weight: Parameter<f64>,
        first: Buffer<i64>,
        second: Buffer<i64>,
    }

    fn model(weight: f64) -> Counted {
        Counted {
            weight: Parameter::new(Tensor::from([weight])),
            first: Buffer::new(Tensor::from([weight as i64])),
            second: Buffer::new(Tensor::from([weight as i64; 2])),
        }
    }

    #[test]
    fn a_swap_with_other_buffers_changes_nothing() {
        let mut average = WeightAverage::swa();
        average.update(&model(1.0));
        let mut other = model(2.0);
        other.second = Buffer::new(Tensor::from([2; 3]));
        let text = average.try_swap(&mut other).unwrap_err().to_string();
        assert!(text.contains("24") && text.contains("16"), "{text}");
        assert_eq!((other.weight.value.to_vec(), other.first.value.to_vec()), (vec![2.0], vec![2]));
        let mut same = model(3.0);
        average.swap(&mut same);
        assert_eq!((same.weight.value.to_vec(), same.first.value.to_vec()), (vec![1.0], vec![1]));
        // A model with more buffers than at the update is refused too.
        let mut average = WeightAverage::swa();
        average.update(&Parameter::new(Tensor::from([1.0, 1.0])));
        assert!(average.try_swap(&mut BatchNorm1d::<f64>::new(1)).is_err());
    }

    #[test]
    fn the_first_update_copies_infinite_weights() {
        let (mut average, mut weight) = (WeightAverage::swa(), model(f64::INFINITY));
        average.update(&weight);
        average.apply_to(&mut weight);
        assert_eq!(weight.weight.value.to_vec(), [f64::INFINITY]);
    }

    #[test]
    fn a_decay_outside_of_its_range_is_refused() {
        for decay in [-0.1, 1.1, f64::NAN] {
            let mut average = WeightAverage::ema(decay);
            let error = average.try_update(&model(1.0)).unwrap_err();
            assert!(matches!(error, Error::Setting { name: "decay", .. }), "{error}");
            assert_eq!(average.updates(), 0);
        }
    }

    #[test]
    fn an_update_between_two_swaps_is_refused() {
        let (mut average, mut weight) = (WeightAverage::swa(), model(1.0));
        average.update(&weight);
        weight.weight.value = Tensor::from([5.0]);
        average.swap(&mut weight);
        let text = average.try_update(&weight).unwrap_err().to_string();
        assert!(text.contains("swap"), "{text}");
        average.swap(&mut weight);
        average.update(&weight);
        average.apply_to(&mut weight);
        assert_eq!(weight.weight.value.to_vec(), [3.0]);
        average.update(&weight); // `apply_to` is not a swap, so an update is allowed
    }

    #[test]
    fn a_model_of_other_sizes_is_an_error_about_the_model() {
        let parameters = |shapes: &[&[usize]]| -> Vec<Parameter<f64>> {
            shapes.iter().map(|&shape| Parameter::new(Tensor::zeros(shape))).collect()
        };
        let mut average = WeightAverage::swa();
        average.update(&parameters(&[&[2, 3], &[2]]));
        for (shapes, problem) in [
            (&[&[2, 3][..]][..], "the model has 1 parameters, but it had 2 at the first update of the average"),
            (
                &[&[2, 3], &[3]],
                "parameter '1' has the shape [3], but it had the shape [2] at the first update of the average",
            ),
            (
                &[&[3, 2], &[2]],
                "parameter '0' has the shape [3, 2], but it had the shape [2, 3] at the first update of the average",
            ),
        ] {
            let mut model = parameters(shapes);
            assert_eq!(average.try_update(&model).unwrap_err().to_string(), problem);
            assert_eq!(average.try_swap(&mut model).unwrap_err().to_string(), problem);
        }
    }

    #[test]
    fn an_update_without_enough_memory_changes_nothing() {
        let huge = Tensor::scalar(0.0).expand([1usize << 50]);
        let mut model = vec![Parameter::new(Tensor::from([1.0])), Parameter::new(huge)];
        let mut average = WeightAverage::swa();
        average.update(&model);
        model[0].value = Tensor::from([3.0]);
        assert!(average.try_update(&model).is_err());
        assert_eq!(average.updates(), 1);
        average.swap(&mut model);
        assert_eq!(model[0].value.to_vec(), [1.0]);
    }
}
