//! Gradients as owned tensors, looked up by parameter or variable, that outlive the tape.

use wengert_tensor::plan::Index;
use wengert_tensor::{Float, Site, Tensor};

use crate::error::raise;
use crate::{Error, Parameter, Var};

/// The gradients of one loss, by [`Parameter`] or variable.
///
/// Without a dependence of the loss there is no gradient: [`get`](Self::get) then returns `None`, [`of`](Self::of) panics, and
/// [`of_or_zeros`](Self::of_or_zeros) returns zeros.
#[derive(Clone, Debug)]
pub struct Gradients<T: Float> {
    tape: u64,
    /// By node, ascending.
    by_node: Vec<(Index, Tensor<T>)>,
    /// The nodes of parameters, by the parameter's number, ascending.
    nodes: Vec<(u64, Index)>,
}

/// The key of a gradient: a parameter, or a variable that was made by [`Tape::var`](crate::Tape::var).
pub trait Key {
    /// The key's gradient among `gradients`, if the loss depends on it.
    fn find<'g, T: Float>(&self, gradients: &'g Gradients<T>) -> Option<&'g Tensor<T>>;
    /// Its description in error messages.
    fn describe(&self) -> String;
}

impl<T: Float> Gradients<T> {
    /// `by_node` must be in ascending order.
    pub(crate) fn new(tape: u64, by_node: Vec<(Index, Tensor<T>)>, mut parameters: Vec<(u64, Index)>) -> Self {
        debug_assert!(by_node.is_sorted_by_key(|&(node, _)| node));
        parameters.sort_unstable();
        Gradients { tape, by_node, nodes: parameters }
    }

    fn of_node(&self, index: Index) -> Option<&Tensor<T>> {
        let position = self.by_node.binary_search_by_key(&index, |&(node, _)| node).ok()?;
        Some(&self.by_node[position].1)
    }

    /// The gradient with respect to `key`, or `None` if the loss does not depend on it.
    pub fn get(&self, key: impl Key) -> Option<&Tensor<T>> {
        key.find(self)
    }

    /// The gradient with respect to `key`.
    ///
    /// # Panics
    ///
    /// If the loss does not depend on it.
    #[track_caller]
    pub fn of(&self, key: impl Key) -> &Tensor<T> {
        match self.try_of(key) {
            Ok(gradient) => gradient,
            Err(error) => raise(error),
        }
    }

    /// [`of`](Self::of), with the error as a value.
    ///
    /// # Errors
    ///
    /// If the loss does not depend on it.
    #[track_caller]
    pub fn try_of(&self, key: impl Key) -> Result<&Tensor<T>, Error> {
        let at = Site::here("gradients");
        key.find(self).ok_or_else(|| Error::Unreached { what: key.describe(), at })
    }

    /// The gradient with respect to a parameter, zeros if the loss does not depend on it.
    #[track_caller]
    pub fn of_or_zeros(&self, parameter: &Parameter<T>) -> Tensor<T> {
        self.get(parameter).cloned().unwrap_or_else(|| Tensor::zeros(parameter.value.shape()))
    }

    /// Number of gradients.
    pub fn len(&self) -> usize {
        self.by_node.len()
    }

    /// Whether there are no gradients.
    pub fn is_empty(&self) -> bool {
        self.by_node.is_empty()
    }
}

impl<P: Float> Key for &Parameter<P> {
    fn find<'g, T: Float>(&self, gradients: &'g Gradients<T>) -> Option<&'g Tensor<T>> {
        let position = gradients.nodes.binary_search_by_key(&self.id(), |&(id, _)| id).ok()?;
        gradients.of_node(gradients.nodes[position].1)
    }

    fn describe(&self) -> String {
        format!("parameter '{}'", self.name())
    }
}

impl<V: Float> Key for Var<'_, V> {
    fn find<'g, T: Float>(&self, gradients: &'g Gradients<T>) -> Option<&'g Tensor<T>> {
        if self.tape.id != gradients.tape {
            return None;
        }
        gradients.of_node(self.index)
    }

    fn describe(&self) -> String {
        let leaf = self.tape.record.borrow().is_variable(self.index);
        if leaf { format!("{self:?}") } else { format!("{self:?}; of results in between, `grad` gives the gradient") }
    }
}
