//! The part that all optimisers share: common settings, groups of parameters, and the states (for example the momentum) of each parameter.

use std::collections::HashMap;

use wengert_autograd::Parameter;
use wengert_macros::twins;
use wengert_tensor::{Float, Tensor};

use crate::{Error, Result};

/// The common part of every optimiser `O`: common settings, groups, and the states (for example the momentum) of each parameter that a step has
/// updated.
#[derive(Clone, Debug)]
pub struct Common<O, T: Float = f32> {
    /// The learning rate of parameters that are in no group.
    pub lr: f64,
    /// The weight decay; see [`Optimizer::weight_decay`](crate::Optimizer::weight_decay).
    pub weight_decay: f64,
    /// True if each step subtracts `lr · weight_decay` times the parameter from the parameter. If false, `weight_decay` times the parameter is
    /// added to the gradient. [`Optimizer::update`](crate::Optimizer::update) applies a decoupled decay by
    /// [`decayed_parameter`](Self::decayed_parameter). Optimisers that do not call it, for example [`Sgd`](crate::Sgd), then apply no
    /// decay.
    pub decoupled: bool,
    /// True if steps follow the gradient, which maximizes the loss. If false, they go against the gradient.
    pub maximize: bool,
    pub(crate) groups: Vec<Group<O>>,
    /// The states of the parameters of models, with [`Parameter::id`] as the key.
    pub(super) states: HashMap<u64, States<T>>,
    /// The states of plain tensors, in the order in which [`step_tensors`](crate::Optimizer::step_tensors) takes the tensors.
    pub(super) tensor_states: Vec<States<T>>,
}

/// A group of parameters that has its own settings.
#[derive(Clone, Debug)]
pub(crate) struct Group<O> {
    /// The path of the group. Every parameter at or below this path belongs to the group.
    pub(crate) path: String,
    pub(crate) settings: O,
    /// The group's learning rate divided by the rate of parameters that are in no group.
    pub(crate) lr_ratio: f64,
}

impl<O, T: Float> Common<O, T> {
    /// Returns the common part of an optimiser with learning rate `lr`, without weight decay and without groups.
    pub fn new(lr: f64) -> Self {
        let (groups, states, tensor_states) = (Vec::new(), HashMap::new(), Vec::new());
        Common { lr, weight_decay: 0.0, decoupled: false, maximize: false, groups, states, tensor_states }
    }

    /// Returns the function that prepares the gradient for an update. It negates the gradient if [`maximize`](Self::maximize) is set. It then
    /// adds the L2 penalty, `weight_decay` times the parameter, unless the decay is decoupled.
    pub fn penalized_gradient(&self) -> PenalizedGradient<T> {
        let sign = if self.maximize { -T::ONE } else { T::ONE };
        let has_penalty = self.weight_decay != 0.0 && !self.decoupled;
        PenalizedGradient { sign, has_penalty, penalty: T::from_f64(self.weight_decay) }
    }

    /// Returns the function that applies decoupled weight decay to the parameter before an update. If the decay is not decoupled, the
    /// parameter stays as it is.
    pub fn decayed_parameter(&self) -> DecayedParameter<T> {
        DecayedParameter { factor: T::from_f64(if self.decoupled { 1.0 - self.lr * self.weight_decay } else { 1.0 }) }
    }

    /// Returns the states of `parameter`, or `None` if no step has updated the parameter.
    pub fn states(&self, parameter: &Parameter<T>) -> Option<&States<T>> {
        self.states.get(&parameter.id())
    }

    /// Sets the states of `parameter`, for example from a checkpoint.
    pub fn set_states(&mut self, parameter: &Parameter<T>, states: States<T>) {
        self.states.insert(parameter.id(), states);
    }

    /// Removes and returns the states of `parameter`, or returns `None` if no step has updated the parameter. The
    /// parameter's next step counts as its first step.
    pub fn take_states(&mut self, parameter: &Parameter<T>) -> Option<States<T>> {
        self.states.remove(&parameter.id())
    }
}

/// A function that prepares the gradient of each element for an update; see [`Common::penalized_gradient`].
///
/// The function is a type with an inlined method and not a closure, so that the method is compiled into the loop over the elements.
#[derive(Clone, Copy, Debug)]
pub struct PenalizedGradient<T> {
    sign: T,
    has_penalty: bool,
    penalty: T,
}

impl<T: Float> PenalizedGradient<T> {
    /// Returns the prepared gradient of one element, from the element `p` of the parameter and its gradient `g`.
    ///
    /// Without weight decay no penalty is added at all, because 0 · p is NaN where p is infinite.
    #[inline(always)]
    pub fn compute(self, p: T, g: T) -> T {
        let g = g * self.sign;
        if self.has_penalty { g + self.penalty * p } else { g }
    }
}

/// A function that applies decoupled weight decay to each element of a parameter before an update; see [`Common::decayed_parameter`].
#[derive(Clone, Copy, Debug)]
pub struct DecayedParameter<T> {
    factor: T,
}

impl<T: Float> DecayedParameter<T> {
    /// Returns the element `p` of the parameter after decoupled weight decay.
    #[inline(always)]
    pub fn compute(self, p: T) -> T {
        p * self.factor
    }
}

/// Returns the number between `start` and `end` at the share `weight` of the way. It is `end` for the weight 1, also if `start` is much larger
/// than `end`, but NaN if `end - start` is infinite. PyTorch: `lerp`.
#[inline(always)]
pub(super) fn lerp<T: Float>(start: T, end: T, weight: T) -> T {
    if weight < T::from_f64(0.5) { start + weight * (end - start) } else { end - (end - start) * (T::ONE - weight) }
}

/// The states of one parameter, for example its momentum.
#[derive(Clone, Debug)]
pub struct States<T: Float = f32> {
    /// The number of steps that have updated the parameter, including the current step.
    pub steps: u64,
    /// One tensor for each state of the parameter, in the order of the names in [`Optimizer::states`](crate::Optimizer::states). Most tensors have
    /// the parameter's shape or rank 0.
    pub tensors: Vec<Tensor<T>>,
}

impl<T: Float> Default for States<T> {
    fn default() -> Self {
        States { steps: 0, tensors: Vec::new() }
    }
}

#[twins]
impl<T: Float> States<T> {
    /// Returns the `N` state tensors of a parameter, to be updated. If the parameter has no state tensors yet, creates
    /// them as zeros of the shape of `value`.
    ///
    /// # Errors
    ///
    /// If the parameter already has state tensors, but their number is not `N`, or there is not enough memory.
    pub fn try_tensors_mut<const N: usize>(&mut self, value: &Tensor<T>) -> Result<[&mut Tensor<T>; N]> {
        if self.tensors.is_empty() {
            self.tensors = (0..N).map(|_| Tensor::try_zeros(value.shape())).collect::<Result<_, _>>()?;
        }
        let found = self.tensors.len();
        match <&mut [Tensor<T>; N]>::try_from(&mut self.tensors[..]) {
            Ok(tensors) => Ok(tensors.each_mut()),
            Err(_) => Err(Error::Argument(format!(
                "the update needs {N} states of the parameter, but it has {found} from earlier steps: choose settings that \
                 add states, such as `amsgrad`, before the first step"
            ))),
        }
    }
}

/// Implements [`Optimizer::common`](crate::Optimizer::common) and `common_mut` for an optimiser. They return its field `common`.
macro_rules! common_accessors {
    () => {
        fn common(&self) -> &Common<Self, T> {
            &self.common
        }

        fn common_mut(&mut self) -> &mut Common<Self, T> {
            &mut self.common
        }
    };
}

pub(super) use common_accessors;
