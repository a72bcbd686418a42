//! The trait of optimisers, and a step of an optimiser over a model.

use std::collections::HashMap;
use std::mem;

use wengert_autograd::Gradients;
use wengert_macros::{precompiled, twins};
use wengert_tensor::{Float, Shape, Site, Tensor, compat};

use crate::module::{LeafMut, Module, is_below, parameter_paths, update_buffer, walk_mut};
use crate::optim::common::{Common, Group, States};
use crate::optim::setting::{Range, Setting};
use crate::{Error, Result};

/// An optimiser, which updates a model's parameters by their gradients. PyTorch: `torch.optim.Optimizer`.
///
/// An optimiser holds no parameters; each step takes the model as an argument. It keeps states (momenta, step counts) for each parameter of any
/// model, so one optimiser can serve several models.
///
/// A step changes a parameter's values in place if nothing else shares them, and otherwise copies them. A tape shares the values, so drop it
/// before the step, as [`Tape::value_and_gradients`](wengert_autograd::Tape::value_and_gradients) does.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, Layer, Linear, Module, Optimizer, Sgd};
///
/// #[derive(Module)]
/// struct Model {
///     body: Linear,
///     head: Linear,
/// }
///
/// let generator = &mut Generator::new(0);
/// let mut model = Model { body: Linear::new(3, 8, generator), head: Linear::new(8, 1, generator) };
/// // The head gets ten times the learning rate.
/// let mut sgd = Sgd::new(0.01).momentum(0.9).group("head", |sgd| sgd.lr(0.1));
/// let x = Tensor::ones([4, 3]);
/// let (_, gradients) = Tape::training(generator).value_and_gradients(|tape| {
///     let hidden = model.body.forward(tape.constant(&x)).tanh();
///     model.head.forward(hidden).square().mean(..)
/// });
/// sgd.step(&mut model, &gradients);
/// ```
///
/// # Your own optimiser
///
/// An optimiser is a struct of its settings and a [`Common`]. Its trait implementation lists the settings and updates one parameter.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Common, Optimizer, Result, Setting, States};
///
/// /// Steps of equal length, against the sign of the gradient.
/// #[derive(Clone)]
/// struct SignDescent<T: Float = f32> {
///     common: Common<Self, T>,
/// }
///
/// impl<T: Float> Optimizer<T> for SignDescent<T> {
///     fn common(&self) -> &Common<Self, T> {
///         &self.common
///     }
///
///     fn common_mut(&mut self) -> &mut Common<Self, T> {
///         &mut self.common
///     }
///
///     fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, _: &mut States<T>) -> Result<()> {
///         let (lr, gradient_of) = (T::from_f64(self.common.lr), self.common.penalized_gradient());
///         let sign = |g: T| if g > T::ZERO { T::ONE } else { -T::ONE };
///         Ok(value.try_update_with(gradient, [], |p, g, []| (p - lr * sign(gradient_of.compute(p, g)), []))?)
///     }
/// }
///
/// let mut w = Tensor::from([4.0f32, -4.0]);
/// SignDescent { common: Common::new(0.5) }.step_tensors([&mut w], &[Tensor::from([8.0, -8.0])]);
/// assert_eq!(w.to_vec(), [3.5, -3.5]);
/// ```
#[twins]
pub trait Optimizer<T: Float = f32>: Clone {
    /// Returns the part that all optimisers have in common: settings, groups and states.
    fn common(&self) -> &Common<Self, T>;

    /// Returns a mutable reference to the part that all optimisers have in common.
    fn common_mut(&mut self) -> &mut Common<Self, T>;

    /// Returns the names of the states that a parameter has under the current settings. The names are from PyTorch's `state_dict`, if
    /// PyTorch has the optimiser.
    fn states(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the shape that the state `name` has for a parameter of shape `shape`, or `None` if a parameter of this shape lacks the
    /// state. By default each state has the parameter's shape. A state may also have rank 0 instead of the returned shape.
    fn state_shape(&self, _name: &str, shape: &Shape) -> Option<Shape> {
        Some(shape.clone())
    }

    /// Returns true if the step of an element needs only this element's value, gradient and states, as for most
    /// optimisers. Then a part of a parameter can be updated without the rest, as `sharded` of `wengert-distributed`
    /// does. [`Adafactor`](crate::Adafactor) and [`Muon`](crate::Muon) return false, because their steps depend on the
    /// whole parameter.
    fn is_elementwise(&self) -> bool {
        true
    }

    /// Calls `each` with the name of each setting outside of [`common`](Self::common) and a reference to the setting, always in the same order.
    fn settings(&mut self, _each: &mut dyn FnMut(&'static str, Setting<'_>)) {}

    /// Checks that the settings do not contradict each other, and the limits that no [`Range`] expresses. The caller has already checked
    /// the range of each setting.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] with the first setting that contradicts another setting or exceeds a limit.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Checks that the optimiser can update a parameter of this shape. A step checks all parameters before it updates the first one.
    ///
    /// # Errors
    ///
    /// If the optimiser cannot update a parameter of this shape. By default, all shapes are accepted.
    /// [`Muon`](crate::Muon) accepts only matrices.
    fn check_shape(&self, _shape: &Shape) -> Result<()> {
        Ok(())
    }

    /// Makes one step of one parameter: updates its `value` and its `states`. The caller has already checked the shape by
    /// [`check_shape`](Self::check_shape) and counted the step in `states`.
    ///
    /// # Errors
    ///
    /// If there is not enough memory, or the settings need states that earlier steps did not make.
    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()>;

    /// Sets the learning rate. It must not be negative. [Groups](Self::group) that exist already keep their own rates.
    #[must_use]
    fn lr(mut self, lr: f64) -> Self {
        let common = self.common_mut();
        common.lr = lr;
        for group in &mut common.groups {
            group.lr_ratio = group.settings.learning_rate() / lr;
        }
        self
    }

    /// Sets the weight decay. It must not be negative; 0 by default, except in [`AdamW`](crate::AdamW) (0.01) and [`Muon`](crate::Muon)
    /// (0.1).
    ///
    /// The decay is an L2 penalty: each step adds `weight_decay` times the parameter to the parameter's gradient. If the decay is decoupled,
    /// each step subtracts `lr · weight_decay` times the parameter from the parameter, and the gradient stays as it is.
    #[must_use]
    fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.common_mut().weight_decay = weight_decay;
        self
    }

    /// Makes steps that follow the gradient and so maximize the loss. By default, steps go against the gradient. PyTorch: `maximize=True`.
    #[must_use]
    fn maximize(mut self) -> Self {
        self.common_mut().maximize = true;
        self
    }

    /// Makes a group of the parameters at or below `path`. `settings` takes a copy of this optimiser and returns it with the settings of the
    /// group. If a parameter is in several groups, the last one counts. PyTorch: `params`, a list of groups.
    ///
    /// A group starts from the settings that the optimiser has when this method is called. Settings that are made after `group`, for example
    /// `.momentum(0.9)`, do not apply to the group. So call `group` last. (In PyTorch the arguments of the optimiser apply to all groups.)
    #[must_use]
    fn group(mut self, path: &str, settings: impl FnOnce(Self) -> Self) -> Self {
        let mut copy = self.clone();
        *copy.common_mut() =
            Common { groups: Vec::new(), states: HashMap::new(), tensor_states: Vec::new(), ..self.common().clone() };
        let settings = settings(copy);
        let lr_ratio = settings.learning_rate() / self.learning_rate();
        self.common_mut().groups.push(Group { path: path.to_owned(), settings, lr_ratio });
        self
    }

    /// Returns the learning rate of parameters that are in no group.
    fn learning_rate(&self) -> f64 {
        self.common().lr
    }

    /// Sets the learning rate. To follow a schedule, call this method with the schedule's rate before each step. The rate of each group
    /// keeps its ratio to this rate, so a smallest rate of the schedule is multiplied by this ratio too. If the ratio is not finite, because
    /// the optimiser's rate was 0, the group keeps its own rate. (In PyTorch, `eta_min` and `min_lr` are the smallest rate of each group.)
    fn set_lr(&mut self, lr: f64) {
        self.common_mut().lr = lr;
        for group in &mut self.common_mut().groups {
            // If the optimiser's rate was 0 when the ratio was computed, the ratio is infinite or NaN, and the group keeps its own rate.
            if group.lr_ratio.is_finite() {
                group.settings.common_mut().lr = lr * group.lr_ratio;
            }
        }
    }

    /// Makes one step: updates the parameters that are not frozen with `gradients`. Updates the model's buffers (running statistics) with the
    /// changes that the tape of the gradients recorded. Warns if this tape was not a training tape, although it ran a layer that is not frozen
    /// and behaves differently in training. A dropout layer before the first trained layer causes no warning.
    ///
    /// # Errors
    ///
    /// If a setting is outside its range or contradicts another setting, or a group has no parameter. Also if a
    /// parameter that is not frozen has no gradient, because the loss does not depend on it, or has a shape that the
    /// optimiser [cannot update](Self::check_shape). In these cases nothing changes. If the update of a parameter or a
    /// buffer fails, the parameters and buffers before it have been updated. An update fails without enough memory, or
    /// if a setting needs states that earlier steps did not make.
    fn try_step(&mut self, model: &mut (impl Module<T> + ?Sized), gradients: &Gradients<T>) -> Result<()> {
        if let Some(layer) = gradients.evaluated_layer() {
            compat::emit(compat::Warning::Evaluating { layer, at: Site::here("step") });
        }
        step(self, model.as_module_mut(), gradients)
    }

    /// Makes one step of plain tensors with the gradients that [`grad`](wengert_autograd::transforms::grad) returns. The states of a tensor
    /// belong to its position in `values`. Groups do not apply.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd as autograd; pub use wengert_nn as nn; }
    /// use wengert::autograd::{prelude::*, transforms::grad};
    /// use wengert::nn::{Optimizer, Sgd};
    ///
    /// let (x, y) = (Tensor::from([-1.0f64, 1.0]), Tensor::from([1.0, 5.0])); // y = 2x + 3
    /// let (mut w, mut b) = (Tensor::scalar(0.0), Tensor::scalar(0.0));
    /// let mut sgd = Sgd::new(0.2).momentum(0.5);
    /// for _ in 0..200 {
    ///     let gradients = grad(|[w, b]| (w * &x + b - &y).square().mean(..), [&w, &b]);
    ///     sgd.step_tensors([&mut w, &mut b], &gradients);
    /// }
    /// assert!((w.item() - 2.0).abs() < 1e-6 && (b.item() - 3.0).abs() < 1e-6);
    /// ```
    ///
    /// # Errors
    ///
    /// If a setting is outside its range or contradicts another setting. Also if the shape of a tensor differs from the
    /// shape of its gradient, does not fit the tensor's states, or is a shape that the optimiser [cannot
    /// update](Self::check_shape). In these cases nothing changes. If the update of a tensor fails (see
    /// [`try_step`](Self::try_step)), the tensors before it have been updated.
    fn try_step_tensors<const N: usize>(
        &mut self,
        values: [&mut Tensor<T>; N],
        gradients: &[Tensor<T>; N],
    ) -> Result<()> {
        check_settings(self)?;
        let mut states = mem::take(&mut self.common_mut().tensor_states);
        states.resize_with(N.max(states.len()), States::default);
        let shape_error = |(position, value): (usize, &&mut Tensor<T>)| {
            if let Err(error) = self.check_shape(value.shape()) {
                return Some(error);
            }
            let (shape, gradient) = (value.shape().clone(), gradients[position].shape());
            if *gradient != shape {
                return Some(Error::StepShape { position, shape, other: gradient.clone() });
            }
            let state = states[position].tensors.first().filter(|state| state.rank() > 0)?.shape();
            let expected = self.states().iter().find_map(|name| self.state_shape(name, &shape));
            let fits = expected.as_ref().unwrap_or(&shape) == state;
            (!fits).then(|| Error::StepShape { position, shape, other: state.clone() })
        };
        let outcome = match values.iter().enumerate().find_map(shape_error) {
            Some(error) => Err(error),
            None => values.into_iter().zip(gradients).zip(&mut states).try_for_each(|((value, gradient), states)| {
                count_step(states, |states| self.update(value, gradient, states))
            }),
        };
        self.common_mut().tensor_states = states;
        outcome
    }
}

/// The object-safe interface of an optimiser, so that one compiled step serves all optimisers through `dyn`. Every [`Optimizer`] implements this
/// trait.
///
/// Several methods take a `group`. If it is the index of a group, the method uses the settings of this group. If it is `None`, the method uses
/// the optimiser's own settings.
pub(crate) trait AnyOptimizer<T: Float> {
    /// Returns the path of each group.
    fn group_paths(&self) -> Vec<String>;
    /// Calls `each` with the name of every setting and a reference to the setting.
    fn group_settings(&mut self, group: Option<usize>, each: &mut dyn FnMut(&'static str, Setting<'_>));
    /// Returns a reference to the ratio of a group's learning rate to the learning rate of parameters that are in no group.
    fn group_lr_ratio(&mut self, group: usize) -> &mut f64;
    /// Checks the settings by [`Optimizer::check`].
    fn check_group(&self, group: Option<usize>) -> Result<()>;
    /// Returns the name and the shape of each state of a parameter of shape `shape`.
    fn state_shapes(&self, group: Option<usize>, shape: &Shape) -> Vec<(&'static str, Shape)>;
    /// Returns the states of all parameters, with the parameter's id as the key.
    fn all_states(&mut self) -> &mut HashMap<u64, States<T>>;
    /// Returns an error if the optimiser cannot update a parameter of this shape; see [`Optimizer::check_shape`].
    fn check_parameter_shape(&self, group: Option<usize>, shape: &Shape) -> Result<()>;
    /// Makes one step of one parameter: updates its `value` and its `states`.
    fn update_parameter(
        &self,
        group: Option<usize>,
        value: &mut Tensor<T>,
        gradient: &Tensor<T>,
        states: &mut States<T>,
    ) -> Result<()>;
}

impl<T: Float, O: Optimizer<T>> AnyOptimizer<T> for O {
    fn group_paths(&self) -> Vec<String> {
        self.common().groups.iter().map(|group| group.path.clone()).collect()
    }

    fn group_settings(&mut self, group: Option<usize>, each: &mut dyn FnMut(&'static str, Setting<'_>)) {
        let optimizer = match group {
            Some(group) => &mut self.common_mut().groups[group].settings,
            None => self,
        };
        let common = optimizer.common_mut();
        each("lr", Setting::Number(&mut common.lr, Range::NotNegative));
        each("weight_decay", Setting::Number(&mut common.weight_decay, Range::NotNegative));
        each("decoupled_weight_decay", Setting::Flag(&mut common.decoupled));
        each("maximize", Setting::Flag(&mut common.maximize));
        optimizer.settings(each);
    }

    fn group_lr_ratio(&mut self, group: usize) -> &mut f64 {
        &mut self.common_mut().groups[group].lr_ratio
    }

    fn check_group(&self, group: Option<usize>) -> Result<()> {
        group_optimizer(self, group).check()
    }

    fn state_shapes(&self, group: Option<usize>, shape: &Shape) -> Vec<(&'static str, Shape)> {
        let optimizer = group_optimizer(self, group);
        optimizer.states().iter().filter_map(|name| Some((*name, optimizer.state_shape(name, shape)?))).collect()
    }

    fn all_states(&mut self) -> &mut HashMap<u64, States<T>> {
        &mut self.common_mut().states
    }

    fn check_parameter_shape(&self, group: Option<usize>, shape: &Shape) -> Result<()> {
        group_optimizer(self, group).check_shape(shape)
    }

    fn update_parameter(
        &self,
        group: Option<usize>,
        value: &mut Tensor<T>,
        gradient: &Tensor<T>,
        states: &mut States<T>,
    ) -> Result<()> {
        group_optimizer(self, group).update(value, gradient, states)
    }
}

/// Returns the optimiser that has the settings of a group: the copy that the group holds, or `optimizer` itself if `group` is `None`.
fn group_optimizer<T: Float, O: Optimizer<T>>(optimizer: &O, group: Option<usize>) -> &O {
    group.map_or(optimizer, |group| &optimizer.common().groups[group].settings)
}

/// Makes a step of `optimizer` over `model`. Changes nothing if a setting is wrong, a group is empty, a gradient is missing, or the optimiser
/// refuses a parameter's shape. If an update fails, earlier parameters have changed.
#[precompiled]
fn step<T: Float>(
    optimizer: &mut dyn AnyOptimizer<T>,
    model: &mut dyn Module<T>,
    gradients: &Gradients<T>,
) -> Result<()> {
    check_settings(optimizer)?;
    // The update borrows the optimiser's settings, so the states are moved out of the optimiser while the update runs.
    let mut states = mem::take(optimizer.all_states());
    let outcome = update_parameters(optimizer, &mut states, model, gradients);
    *optimizer.all_states() = states;
    outcome
}

/// Makes a step of `optimizer` over `model`. `states` are the optimiser's states, which the caller has moved out of it.
/// Returns the errors that [`step`] describes, except for a wrong setting.
fn update_parameters<T: Float>(
    optimizer: &dyn AnyOptimizer<T>,
    states: &mut HashMap<u64, States<T>>,
    model: &mut dyn Module<T>,
    gradients: &Gradients<T>,
) -> Result<()> {
    let groups = optimizer.group_paths();
    let mut updates = Vec::with_capacity(states.len());
    let (mut buffers, mut unreached, mut is_empty_group) = (Vec::new(), Vec::new(), vec![true; groups.len()]);
    walk_mut(model, &mut String::new(), &mut |path, leaf| {
        let parameter = match leaf {
            LeafMut::Parameter(parameter) => parameter,
            LeafMut::Buffer(buffer) => return buffers.push(buffer),
        };
        let mut last_group = None;
        for (number, _) in groups.iter().enumerate().filter(|(_, group)| is_below(path, group)) {
            (last_group, is_empty_group[number]) = (Some(number), false);
        }
        if parameter.is_frozen() {
            return;
        }
        match gradients.get(&*parameter) {
            Some(gradient) => updates.push((parameter, gradient, last_group)),
            None => unreached.push(path.to_owned()),
        }
    });
    if let Some(number) = is_empty_group.into_iter().position(|is_empty| is_empty) {
        drop((updates, buffers));
        return Err(Error::NoSuchPath { path: groups[number].clone(), known: parameter_paths(model) });
    }
    if !unreached.is_empty() {
        return Err(Error::Unreached { names: unreached });
    }
    updates
        .iter()
        .try_for_each(|(parameter, _, group)| optimizer.check_parameter_shape(*group, parameter.value.shape()))?;
    for (parameter, gradient, group) in updates {
        let id = parameter.id();
        let parameter_states = states.entry(id).or_default();
        let update = |parameter_states: &mut _| {
            optimizer.update_parameter(group, &mut parameter.value, gradient, parameter_states)
        };
        if let Err(error) = count_step(parameter_states, update) {
            // Removes a state that this step has made, because a checkpoint has no entries for a parameter that no step has updated.
            if parameter_states.steps == 0 {
                states.remove(&id);
            }
            return Err(error);
        }
    }
    buffers.into_iter().try_for_each(|buffer| update_buffer(buffer, gradients))
}

/// Increases the number of steps in `states` by 1 and calls `update`. If the update fails, restores the number.
fn count_step<T: Float>(states: &mut States<T>, update: impl FnOnce(&mut States<T>) -> Result<()>) -> Result<()> {
    states.steps += 1;
    update(states).inspect_err(|_| states.steps -= 1)
}

/// Checks that all settings, including the settings of groups, are in their ranges and compatible with each other.
#[precompiled]
fn check_settings<T: Float>(optimizer: &mut dyn AnyOptimizer<T>) -> Result<()> {
    let groups = optimizer.group_paths().len();
    for group in std::iter::once(None).chain((0..groups).map(Some)) {
        let mut error = None;
        optimizer.group_settings(group, &mut |name, setting| {
            if let Setting::Number(value, range) = setting
                && let (Err(expected), None) = (range.check(*value), &error)
            {
                error = Some(Error::Setting { name: display_name(name), value: *value, expected });
            }
        });
        error.map_or_else(|| optimizer.check_group(group), Err)?;
    }
    Ok(())
}

/// Returns the name that PyTorch's errors use for the setting `name`.
fn display_name(name: &'static str) -> &'static str {
    match name {
        "lr" => "learning rate",
        "eps" => "epsilon",
        "beta1" => "beta parameter at index 0",
        "beta2" => "beta parameter at index 1",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::{Parameter, Tape};
    use wengert_tensor::ops::{Arithmetic as _, Reductions as _};

    use super::*;
    use crate::{Adam, Sgd};

    fn pair() -> (Parameter<f64>, Parameter<f64>) {
        (Parameter::new(Tensor::from([1.0])), Parameter::new(Tensor::from([1.0])))
    }

    /// Returns the gradients of ½ Σ p² with respect to the two parameters of `model`. The sum is over the elements p of both. The gradient
    /// of p is p itself.
    fn gradients(model: &(Parameter<f64>, Parameter<f64>)) -> Gradients<f64> {
        let tape = Tape::new();
        ((tape.parameter(&model.0).square() + tape.parameter(&model.1).square()).sum(..) * 0.5).backward()
    }

    #[test]
    fn a_group_has_its_own_settings_and_keeps_its_ratio_to_the_learning_rate() {
        let mut model = pair();
        let mut sgd = Sgd::new(0.5).group("1", |sgd| sgd.lr(0.25));
        let step = gradients(&model);
        sgd.step(&mut model, &step);
        assert_eq!((model.0.value.item(), model.1.value.item()), (0.5, 0.75));
        sgd.set_lr(1.0); // The learning rate of the group becomes 0.5.
        let step = gradients(&model);
        sgd.step(&mut model, &step);
        assert_eq!((model.0.value.item(), model.1.value.item()), (0.0, 0.375));
    }

    #[test]
    fn settings_after_a_group_do_not_change_it_and_a_later_rate_keeps_its_rate() {
        let mut sgd: Sgd<f64> = Sgd::new(0.5).group("1", |sgd| sgd.lr(0.25)).momentum(0.9).weight_decay(0.1).lr(1.0);
        let group = |sgd: &Sgd<f64>| {
            let group = &sgd.common().groups[0];
            (group.settings.common().lr, group.settings.common().weight_decay)
        };
        assert_eq!(group(&sgd), (0.25, 0.0));
        assert_eq!(sgd.common().groups[0].settings.states(), Sgd::<f64>::new(0.5).states());
        sgd.set_lr(1.0);
        assert_eq!(group(&sgd), (0.25, 0.0));
        sgd.set_lr(2.0);
        assert_eq!(group(&sgd), (0.5, 0.0));
    }

    #[test]
    fn an_empty_group_and_a_wrong_setting_of_a_group_are_errors_that_change_nothing() {
        let mut model = pair();
        let gradients = gradients(&model);
        let error = Sgd::new(0.5).group("2", |sgd| sgd).try_step(&mut model, &gradients).unwrap_err();
        assert!(matches!(error, Error::NoSuchPath { path, .. } if path == "2"));
        let error = Adam::new(0.5).group("1", |adam| adam.eps(-1.0)).try_step(&mut model, &gradients).unwrap_err();
        assert!(matches!(error, Error::Setting { name: "epsilon", .. }));
        assert_eq!(model.0.value.item(), 1.0);
    }

    /// An optimiser whose update fails for a parameter with the value 2.
    #[derive(Clone)]
    struct Failing {
        common: Common<Self, f64>,
    }

    impl Optimizer<f64> for Failing {
        fn common(&self) -> &Common<Self, f64> {
            &self.common
        }

        fn common_mut(&mut self) -> &mut Common<Self, f64> {
            &mut self.common
        }

        fn update(&self, value: &mut Tensor<f64>, _: &Tensor<f64>, _: &mut States<f64>) -> Result<()> {
            if value.item() == 2.0 { Err(Error::Dataset("no memory".to_owned())) } else { Ok(()) }
        }
    }

    #[test]
    fn a_failed_update_is_not_counted() {
        let mut model = pair();
        let gradients = gradients(&model);
        let mut failing = Failing { common: Common::new(0.5) };
        let steps = |failing: &Failing, model: &(Parameter<f64>, Parameter<f64>)| {
            [&model.0, &model.1].map(|parameter| failing.common.states(parameter).map(|states| states.steps))
        };
        model.1.value = Tensor::from([2.0]);
        assert!(failing.try_step(&mut model, &gradients).is_err());
        assert_eq!(steps(&failing, &model), [Some(1), None]);
        model.1.value = Tensor::from([1.0]);
        failing.step(&mut model, &gradients);
        model.1.value = Tensor::from([2.0]);
        assert!(failing.try_step(&mut model, &gradients).is_err());
        assert_eq!(steps(&failing, &model), [Some(3), Some(1)]);
    }

    #[test]
    fn frozen_parameters_do_not_change() {
        let mut model = pair();
        model.freeze("0");
        let gradients = gradients(&model);
        Adam::new(0.5).step(&mut model, &gradients);
        assert_eq!(model.0.value.item(), 1.0);
        assert!(model.1.value.item() < 1.0);
    }
}
