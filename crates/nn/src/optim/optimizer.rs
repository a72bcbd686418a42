//! What all optimisers have in common: groups of parameters by path, states by parameter, and the step over a model.

use std::collections::HashMap;

use wengert_autograd::{Gradients, Parameter};
use wengert_tensor::{Float, Tensor};

use crate::error::raise;
use crate::module::{Module, is_below, paths, update_buffers};
use crate::{Error, Result};

/// What improves a model's parameters along their gradients. PyTorch: `torch.optim.Optimizer`.
///
/// An optimiser holds no parameters: each step is given the model. Its states (momenta, counts) are kept by parameter, so that one
/// optimiser may serve several models. A parameter is changed in place where nothing else holds its values, so the step's tape
/// should be gone: [`Tape::value_and_gradients`](wengert_autograd::Tape::value_and_gradients) sees to that.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Generator, Layer, Linear, Module, Optimizer, Sgd};
///
/// #[derive(Module)]
/// struct Model {
///     body: Linear,
///     head: Linear,
/// }
///
/// let generator = &mut Generator::new(0);
/// let mut model = Model { body: Linear::new(3, 8, generator), head: Linear::new(8, 1, generator) };
/// // The head learns ten times as fast.
/// let mut sgd = Sgd::new(0.01).momentum(0.9).group("head", |sgd| sgd.lr(0.1));
/// let x = Tensor::ones([4, 3]);
/// let (_, gradients) = Tape::training(generator).value_and_gradients(|tape| {
///     let hidden = model.body.forward(tape.constant(&x)).tanh();
///     model.head.forward(hidden).square().mean(..)
/// });
/// sgd.step(&mut model, &gradients);
/// ```
///
/// # Your own
///
/// An optimiser is a struct with its settings and a [`Memory`]; it says how one parameter is updated.
pub trait Optimizer<T: Float = f32>: Sized {
    /// The names of the states that a parameter has, as in PyTorch's `state_dict`: tensors of its shape.
    const STATES: &'static [&'static str];

    /// The groups and the states.
    fn memory(&self) -> &Memory<Self, T>;

    /// The groups and the states, to be changed.
    fn memory_mut(&mut self) -> &mut Memory<Self, T>;

    /// The learning rate of parameters that are in no group.
    fn learning_rate(&self) -> f64;

    /// The learning rate of parameters that are in no group, to be changed; see [`set_lr`](Self::set_lr).
    fn learning_rate_mut(&mut self) -> &mut f64;

    /// The same settings without groups and states.
    fn settings(&self) -> Self;

    /// Whether the settings are in their ranges.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`], with the first that is not.
    fn check(&self) -> Result<()>;

    /// One step of one parameter: its `states` are updated, then its value.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()>;

    /// Gives the parameters below `path` settings of their own, made from these. Of several groups that a parameter is in, the
    /// last counts. PyTorch: `params`, a list of groups.
    #[must_use]
    fn group(mut self, path: &str, settings: impl FnOnce(Self) -> Self) -> Self {
        let settings = settings(self.settings());
        let ratio = settings.learning_rate() / self.learning_rate();
        self.memory_mut().groups.push(Group { path: path.to_owned(), settings, ratio });
        self
    }

    /// Sets the learning rate, as a schedule does before each step: each group keeps its ratio to it.
    fn set_lr(&mut self, lr: f64) {
        *self.learning_rate_mut() = lr;
        for group in &mut self.memory_mut().groups {
            // A group made beside a rate of 0 has a rate of its own.
            if group.ratio.is_finite() {
                *group.settings.learning_rate_mut() = lr * group.ratio;
            }
        }
    }

    /// One step along `gradients`, and the changes of the model's buffers that the step's tape recorded. Frozen parameters stay.
    ///
    /// # Panics
    ///
    /// Where [`try_step`](Self::try_step) returns an error.
    #[track_caller]
    fn step(&mut self, model: &mut (impl Module<T> + ?Sized), gradients: &Gradients<T>) {
        if let Err(error) = self.try_step(model, gradients) {
            raise(error);
        }
    }

    /// [`step`](Self::step), with the error as a value.
    ///
    /// # Errors
    ///
    /// If a setting is outside its range, a group has no parameter, or the loss does not depend on a parameter that is not frozen.
    /// Then nothing has changed.
    fn try_step(&mut self, model: &mut (impl Module<T> + ?Sized), gradients: &Gradients<T>) -> Result<()> {
        self.check()?;
        let chosen = self.groups_of(model)?;
        let unreached = |parameter: &Parameter<T>| !parameter.is_frozen() && gradients.get(parameter).is_none();
        if model.parameters().into_iter().any(unreached) {
            let parameters = model.named_parameters().into_iter();
            let names = parameters.filter(|(_, parameter)| unreached(parameter)).map(|(path, _)| path).collect();
            return Err(Error::Unreached { names });
        }
        for (position, parameter) in model.parameters_mut().into_iter().enumerate() {
            if parameter.is_frozen() {
                continue;
            }
            let Some(gradient) = gradients.get(&*parameter) else { continue };
            // The states are taken out while they are updated.
            let mut states = self.memory_mut().states.remove(&parameter.id()).unwrap_or_default();
            states.steps += 1;
            let group = chosen.get(position).copied().flatten();
            let settings = group.map_or(&*self, |group| &self.memory().groups[group].settings);
            let updated = settings.update(&mut parameter.value, gradient, &mut states);
            self.memory_mut().states.insert(parameter.id(), states);
            updated?;
        }
        update_buffers(model, gradients);
        Ok(())
    }

    /// The group of each parameter of the model, by position; nothing if there are no groups.
    ///
    /// # Errors
    ///
    /// If a group has no parameter, or a setting of a group is outside its range.
    #[doc(hidden)]
    fn groups_of(&self, model: &(impl Module<T> + ?Sized)) -> Result<Vec<Option<usize>>> {
        let groups = &self.memory().groups;
        if groups.is_empty() {
            return Ok(Vec::new());
        }
        let known = paths(model);
        for group in groups {
            group.settings.check()?;
            if !known.iter().any(|path| is_below(path, &group.path)) {
                return Err(Error::NoSuchPath { path: group.path.clone(), known });
            }
        }
        Ok(known.iter().map(|path| groups.iter().rposition(|group| is_below(path, &group.path))).collect())
    }
}

/// The groups of an optimiser, and the states of each parameter that a step has updated.
#[derive(Clone, Debug)]
pub struct Memory<O, T: Float = f32> {
    groups: Vec<Group<O>>,
    /// By the parameter's number.
    states: HashMap<u64, States<T>>,
}

/// Parameters with settings of their own.
#[derive(Clone, Debug)]
struct Group<O> {
    path: String,
    settings: O,
    /// The group's learning rate divided by that of the rest.
    ratio: f64,
}

/// The states of one parameter.
#[derive(Clone, Debug)]
pub struct States<T: Float = f32> {
    /// The number of its steps, the present one included.
    pub steps: u64,
    /// A tensor of the parameter's shape for each name of [`Optimizer::STATES`].
    pub tensors: Vec<Tensor<T>>,
}

impl<T: Float> Default for States<T> {
    fn default() -> Self {
        States { steps: 0, tensors: Vec::new() }
    }
}

impl<T: Float> States<T> {
    /// The tensors, to be updated together: zeros of the shape of `value` before the first step.
    ///
    /// # Panics
    ///
    /// If there are some, but not `N`.
    pub fn tensors_mut<const N: usize>(&mut self, value: &Tensor<T>) -> [&mut Tensor<T>; N] {
        if self.tensors.is_empty() {
            self.tensors = (0..N).map(|_| Tensor::zeros(value.shape())).collect();
        }
        match <&mut [Tensor<T>; N]>::try_from(&mut self.tensors[..]) {
            Ok(tensors) => tensors.each_mut(),
            Err(_) => panic!("{N} states are wanted of an optimiser that has another number of them"),
        }
    }
}

impl<O, T: Float> Default for Memory<O, T> {
    fn default() -> Self {
        Memory { groups: Vec::new(), states: HashMap::new() }
    }
}

impl<O, T: Float> Memory<O, T> {
    /// The states of a parameter, if a step has updated it.
    pub fn states(&self, parameter: &Parameter<T>) -> Option<&States<T>> {
        self.states.get(&parameter.id())
    }

    /// Sets the states of a parameter, as a checkpoint has them.
    pub fn set_states(&mut self, parameter: &Parameter<T>, states: States<T>) {
        self.states.insert(parameter.id(), states);
    }
}

/// [`Error::Setting`] unless `value` is finite and not negative.
pub(crate) fn not_negative(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    Err(Error::Setting { name, value, expected: "a finite number, not negative" })
}

/// [`Error::Setting`] unless `value` is from 0 to 1, 1 excluded.
pub(crate) fn below_one(name: &'static str, value: f64) -> Result<()> {
    if (0.0..1.0).contains(&value) {
        return Ok(());
    }
    Err(Error::Setting { name, value, expected: "a number from 0 to 1, 1 excluded" })
}

#[cfg(test)]
mod tests {
    use wengert_autograd::Tape;
    use wengert_tensor::ops::{Arithmetic as _, Reductions as _};

    use super::*;
    use crate::{Adam, Sgd};

    fn pair() -> (Parameter<f64>, Parameter<f64>) {
        (Parameter::new(Tensor::from([1.0])), Parameter::new(Tensor::from([1.0])))
    }

    /// Gradients of ½ Σ p²: the values themselves.
    fn gradients(model: &(Parameter<f64>, Parameter<f64>)) -> Gradients<f64> {
        let tape = Tape::new();
        ((tape.parameter(&model.0).square() + tape.parameter(&model.1).square()).sum(..) * 0.5).backward()
    }

    #[test]
    fn a_group_has_its_own_settings_and_follows_the_schedule() {
        let mut model = pair();
        let mut sgd = Sgd::new(0.5).group("1", |sgd| sgd.lr(0.25));
        let along = gradients(&model);
        sgd.step(&mut model, &along);
        assert_eq!((model.0.value.item(), model.1.value.item()), (0.5, 0.75));
        sgd.set_lr(1.0); // the group's becomes 0.5
        let along = gradients(&model);
        sgd.step(&mut model, &along);
        assert_eq!((model.0.value.item(), model.1.value.item()), (0.0, 0.375));
    }

    #[test]
    fn groups_without_parameters_and_bad_settings_of_groups_change_nothing() {
        let mut model = pair();
        let gradients = gradients(&model);
        let error = Sgd::new(0.5).group("2", |sgd| sgd).try_step(&mut model, &gradients).unwrap_err();
        assert!(matches!(error, Error::NoSuchPath { path, .. } if path == "2"));
        let error = Adam::new(0.5).group("1", |adam| adam.eps(-1.0)).try_step(&mut model, &gradients).unwrap_err();
        assert!(matches!(error, Error::Setting { name: "epsilon", .. }));
        assert_eq!(model.0.value.item(), 1.0);
    }

    #[test]
    fn frozen_parameters_stay() {
        let mut model = pair();
        model.freeze("0");
        let gradients = gradients(&model);
        Adam::new(0.5).step(&mut model, &gradients);
        assert_eq!(model.0.value.item(), 1.0);
        assert!(model.1.value.item() < 1.0);
    }
}
