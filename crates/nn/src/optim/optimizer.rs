//! What all optimisers have in common: settings, groups of parameters by path, states by parameter, and the step over a model.

use std::collections::HashMap;
use std::mem;

use wengert_autograd::{Gradients, Parameter};
use wengert_macros::twins;
use wengert_tensor::{Float, Tensor};

use crate::module::{LeafMut, Module, is_below, paths, update_buffer, walk_mut};
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
/// An optimiser is a struct with its settings and a [`Common`]; it lists the settings and says how one parameter is updated.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Common, Optimizer, Result, Setting, States};
///
/// /// Steps of one length along the gradient's sign.
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
///         let (lr, along) = (T::from_f64(self.common.lr), self.common.along());
///         let sign = |g: T| if g > T::ZERO { T::ONE } else { -T::ONE };
///         Ok(value.try_update_with(gradient, [], |p, g, []| (p - lr * sign(along.of(p, g)), []))?)
///     }
/// }
///
/// let mut w = Tensor::from([4.0f32, -4.0]);
/// SignDescent { common: Common::new(0.5) }.step_tensors([&mut w], &[Tensor::from([8.0, -8.0])]);
/// assert_eq!(w.to_vec(), [3.5, -3.5]);
/// ```
#[twins]
pub trait Optimizer<T: Float = f32>: Clone {
    /// What all optimisers have.
    fn common(&self) -> &Common<Self, T>;

    /// What all optimisers have, to be changed.
    fn common_mut(&mut self) -> &mut Common<Self, T>;

    /// The names of the states that a parameter has under the present settings, as in PyTorch's `state_dict`.
    fn states(&self) -> &'static [&'static str] {
        &[]
    }

    /// Calls `each` with the name and the place of each setting that is not in [`common`](Self::common), always in the same order.
    fn settings(&mut self, _each: &mut dyn FnMut(&'static str, Setting<'_>)) {}

    /// Whether the settings go together. Each alone is in its range.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`], with the first that does not.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// One step of one parameter: its `states` are updated, then its value.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    fn update(&self, value: &mut Tensor<T>, gradient: &Tensor<T>, states: &mut States<T>) -> Result<()>;

    /// With another learning rate, not negative.
    #[must_use]
    fn lr(mut self, lr: f64) -> Self {
        self.common_mut().lr = lr;
        self
    }

    /// With weight decay, not negative: an L2 penalty (`weight_decay` times the parameter is added to its gradient), or, where
    /// decay is decoupled, `lr · weight_decay` times the parameter is taken from it.
    #[must_use]
    fn weight_decay(mut self, weight_decay: f64) -> Self {
        self.common_mut().weight_decay = weight_decay;
        self
    }

    /// Along the gradient instead of against it.
    #[must_use]
    fn maximize(mut self) -> Self {
        self.common_mut().maximize = true;
        self
    }

    /// Gives the parameters below `path` settings of their own, made from these. Of several groups that a parameter is in, the
    /// last counts. PyTorch: `params`, a list of groups.
    #[must_use]
    fn group(mut self, path: &str, settings: impl FnOnce(Self) -> Self) -> Self {
        let mut own = self.clone();
        *own.common_mut() =
            Common { groups: Vec::new(), states: HashMap::new(), positions: Vec::new(), ..self.common().clone() };
        let own = settings(own);
        let ratio = own.learning_rate() / self.learning_rate();
        self.common_mut().groups.push(Group { path: path.to_owned(), settings: own, ratio });
        self
    }

    /// The learning rate of parameters that are in no group.
    fn learning_rate(&self) -> f64 {
        self.common().lr
    }

    /// Sets the learning rate, as a schedule does before each step: each group keeps its ratio to it.
    fn set_lr(&mut self, lr: f64) {
        self.common_mut().lr = lr;
        for group in &mut self.common_mut().groups {
            // A group made beside a rate of 0 has a rate of its own.
            if group.ratio.is_finite() {
                group.settings.common_mut().lr = lr * group.ratio;
            }
        }
    }

    /// One step along `gradients`, and the changes of the model's buffers that the step's tape recorded. Frozen parameters stay.
    ///
    /// # Errors
    ///
    /// If a setting is outside its range, a group has no parameter, or the loss does not depend on a parameter that is not frozen.
    /// Then nothing has changed.
    fn try_step(&mut self, model: &mut (impl Module<T> + ?Sized), gradients: &Gradients<T>) -> Result<()> {
        check_all(self)?;
        // The states are taken out of the optimiser while it updates with its settings.
        let mut states = mem::take(&mut self.common_mut().states);
        let outcome = advance(self, &mut states, model, gradients);
        self.common_mut().states = states;
        outcome
    }

    /// One step of plain tensors along what [`grad`](wengert_autograd::transforms::grad) gives. The states are kept by position;
    /// there are no groups.
    ///
    /// ```
    /// use wengert_autograd::{prelude::*, transforms::grad};
    /// use wengert_nn::{Optimizer, Sgd};
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
    /// If a setting is outside its range, or a tensor's shape is not that of its gradient, or not what it was at the last step.
    /// Then nothing has changed.
    fn try_step_tensors<const N: usize>(
        &mut self,
        values: [&mut Tensor<T>; N],
        gradients: &[Tensor<T>; N],
    ) -> Result<()> {
        check_all(self)?;
        let mut states = mem::take(&mut self.common_mut().positions);
        states.resize_with(N.max(states.len()), States::default);
        let misfit = |(position, value): (usize, &&mut Tensor<T>)| {
            let before = states[position].tensors.first().filter(|state| state.rank() > 0);
            let mut others = [Some(&gradients[position]), before].into_iter().flatten();
            let other = others.find(|other| other.shape() != value.shape())?.shape().clone();
            Some(Error::StepShape { position, shape: value.shape().clone(), other })
        };
        let outcome = match values.iter().enumerate().find_map(misfit) {
            Some(error) => Err(error),
            None => values.into_iter().zip(gradients).zip(&mut states).try_for_each(|((value, gradient), states)| {
                states.steps += 1;
                self.update(value, gradient, states)
            }),
        };
        self.common_mut().positions = states;
        outcome
    }
}

/// The step of `optimizer` over `model`, with its states beside it. Nothing has changed where the model does not fit.
fn advance<T: Float, O: Optimizer<T>>(
    optimizer: &O,
    states: &mut HashMap<u64, States<T>>,
    model: &mut (impl Module<T> + ?Sized),
    gradients: &Gradients<T>,
) -> Result<()> {
    let groups = &optimizer.common().groups;
    let mut updates = Vec::with_capacity(states.len());
    let (mut buffers, mut unreached, mut empty) = (Vec::new(), Vec::new(), vec![true; groups.len()]);
    walk_mut(model, &mut String::new(), &mut |path, leaf| {
        let parameter = match leaf {
            LeafMut::Parameter(parameter) => parameter,
            LeafMut::Buffer(buffer) => return buffers.push(buffer),
        };
        let mut settings = optimizer;
        for (group, empty) in groups.iter().zip(&mut empty).filter(|(group, _)| is_below(path, &group.path)) {
            (settings, *empty) = (&group.settings, false);
        }
        if parameter.is_frozen() {
            return;
        }
        match gradients.get(&*parameter) {
            Some(gradient) => updates.push((parameter, gradient, settings)),
            None => unreached.push(path.to_owned()),
        }
    });
    if let Some(number) = empty.into_iter().position(|empty| empty) {
        drop((updates, buffers));
        return Err(Error::NoSuchPath { path: groups[number].path.clone(), known: paths(model) });
    }
    if !unreached.is_empty() {
        return Err(Error::Unreached { names: unreached });
    }
    for (parameter, gradient, settings) in updates {
        let states = states.entry(parameter.id()).or_default();
        states.steps += 1;
        settings.update(&mut parameter.value, gradient, states)?;
    }
    buffers.into_iter().for_each(|buffer| update_buffer(buffer, gradients));
    Ok(())
}

/// What all optimisers have: common settings, groups, and the states of each parameter that a step has updated.
#[derive(Clone, Debug)]
pub struct Common<O, T: Float = f32> {
    /// The learning rate of parameters that are in no group.
    pub lr: f64,
    /// The weight decay; see [`Optimizer::weight_decay`].
    pub weight_decay: f64,
    /// Whether decay is decoupled from the gradient.
    pub decoupled: bool,
    /// Whether steps go along the gradient instead of against it.
    pub maximize: bool,
    pub(crate) groups: Vec<Group<O>>,
    /// By the parameter's number.
    states: HashMap<u64, States<T>>,
    /// Of plain tensors.
    positions: Vec<States<T>>,
}

/// The gradient that a formula starts from: turned round to maximize, and with the L2 penalty. (A method and no closure, so that it is
/// compiled into the loop over the elements.)
#[derive(Clone, Copy, Debug)]
pub struct Along<T> {
    sign: T,
    penal: bool,
    penalty: T,
}

impl<T: Float> Along<T> {
    /// Of a parameter `p` and its gradient `g`. Nothing is added where there is no decay: 0 · p is NaN where p is infinite.
    #[inline(always)]
    pub fn of(self, p: T, g: T) -> T {
        let g = g * self.sign;
        if self.penal { g + self.penalty * p } else { g }
    }
}

/// The parameter that a formula starts from: with decoupled decay taken from it.
#[derive(Clone, Copy, Debug)]
pub struct Decayed<T> {
    kept: T,
}

impl<T: Float> Decayed<T> {
    /// Of a parameter `p`.
    #[inline(always)]
    pub fn of(self, p: T) -> T {
        p * self.kept
    }
}

/// Parameters with settings of their own.
#[derive(Clone, Debug)]
pub(crate) struct Group<O> {
    pub(crate) path: String,
    pub(crate) settings: O,
    /// The group's learning rate divided by that of the rest.
    pub(crate) ratio: f64,
}

impl<O, T: Float> Common<O, T> {
    /// With learning rate `lr`, without weight decay.
    pub fn new(lr: f64) -> Self {
        let (groups, states, positions) = (Vec::new(), HashMap::new(), Vec::new());
        Common { lr, weight_decay: 0.0, decoupled: false, maximize: false, groups, states, positions }
    }

    /// The gradient that a formula starts from.
    pub fn along(&self) -> Along<T> {
        let sign = if self.maximize { -T::ONE } else { T::ONE };
        let penal = self.weight_decay != 0.0 && !self.decoupled;
        Along { sign, penal, penalty: T::from_f64(self.weight_decay) }
    }

    /// The parameter that a formula starts from.
    pub fn decayed(&self) -> Decayed<T> {
        Decayed { kept: T::from_f64(if self.decoupled { 1.0 - self.lr * self.weight_decay } else { 1.0 }) }
    }

    /// The states of a parameter, if a step has updated it.
    pub fn states(&self, parameter: &Parameter<T>) -> Option<&States<T>> {
        self.states.get(&parameter.id())
    }

    /// Sets the states of a parameter, as a checkpoint has them.
    pub fn set_states(&mut self, parameter: &Parameter<T>, states: States<T>) {
        self.states.insert(parameter.id(), states);
    }

    /// Takes the states of a parameter out: its next step is its first.
    pub fn take_states(&mut self, parameter: &Parameter<T>) -> Option<States<T>> {
        self.states.remove(&parameter.id())
    }
}

/// The states of one parameter.
#[derive(Clone, Debug)]
pub struct States<T: Float = f32> {
    /// The number of its steps, the present one included.
    pub steps: u64,
    /// A tensor for each name of [`Optimizer::states`]: of the parameter's shape, or a single number of rank 0.
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
    #[track_caller]
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

/// The place of a setting, for checks and checkpoints.
#[derive(Debug)]
pub enum Setting<'o> {
    /// A number in a range.
    Number(&'o mut f64, Range),
    /// Yes or no.
    Flag(&'o mut bool),
}

/// The numbers that a setting may be. NaN and the infinities are in none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// 0 or more.
    NotNegative,
    /// From 0 to 1, 1 excluded.
    BelowOne,
    /// From 0 to 1.
    UpToOne,
    /// Any.
    Finite,
}

impl Range {
    /// Whether `value` is in the range; or what is.
    fn expects(self, value: f64) -> std::result::Result<(), &'static str> {
        let (inside, expected) = match self {
            Range::NotNegative => (value >= 0.0, "a finite number, not negative"),
            Range::BelowOne => ((0.0..1.0).contains(&value), "a number from 0 to 1, 1 excluded"),
            Range::UpToOne => ((0.0..=1.0).contains(&value), "a number from 0 to 1"),
            Range::Finite => (true, "a finite number"),
        };
        if inside && value.is_finite() { Ok(()) } else { Err(expected) }
    }
}

/// Calls `each` with the name and the place of every setting of `optimizer`, those of groups excluded.
pub(crate) fn all_settings<T: Float, O: Optimizer<T>>(
    optimizer: &mut O,
    each: &mut dyn FnMut(&'static str, Setting<'_>),
) {
    let common = optimizer.common_mut();
    each("lr", Setting::Number(&mut common.lr, Range::NotNegative));
    each("weight_decay", Setting::Number(&mut common.weight_decay, Range::NotNegative));
    each("decoupled_weight_decay", Setting::Flag(&mut common.decoupled));
    each("maximize", Setting::Flag(&mut common.maximize));
    optimizer.settings(each);
}

/// Whether all settings, those of groups included, are in their ranges and go together.
fn check_all<T: Float, O: Optimizer<T>>(optimizer: &mut O) -> Result<()> {
    let mut refused = None;
    all_settings(optimizer, &mut |name, setting| {
        if let Setting::Number(value, range) = setting
            && let (Err(expected), None) = (range.expects(*value), &refused)
        {
            refused = Some(Error::Setting { name: described(name), value: *value, expected });
        }
    });
    refused.map_or_else(|| optimizer.check(), Err)?;
    optimizer.common_mut().groups.iter_mut().try_for_each(|group| check_all(&mut group.settings))
}

/// What PyTorch's errors call a setting.
fn described(name: &'static str) -> &'static str {
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
