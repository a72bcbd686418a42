//! Gradients as tensors that outlive the tape. They are looked up by parameter or variable.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use wengert_macros::{precompiled, twins};
use wengert_tensor::ops::{Arithmetic as _, Clamp as _, Norms as _};
use wengert_tensor::plan::{NodeIndex, Op};
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::error::or_raise;
use crate::parameter::{Buffer, BufferChange};
use crate::{Error, MissingGradient, Parameter, Tape, Var};

/// The gradients of one loss with respect to parameters and variables, and the changes of buffers that the loss's tape recorded.
///
/// A parameter that the loss does not depend on has no gradient: [`get`](Self::get) returns `None`, [`of`](Self::of) panics, and
/// [`of_or_zeros`](Self::of_or_zeros) returns zeros.
///
/// ```
/// # use wengert_autograd::prelude::*;
/// let w = Parameter::new(Tensor::from([3.0f32, 4.0]));
/// let loss = |scale: f64| {
///     let tape = Tape::new();
///     (tape.parameter(&w).square().sum(..) * scale).backward()
/// };
/// // Accumulated over two batches, then clipped to a norm of 1.
/// let mut gradients = loss(0.5);
/// gradients += loss(0.5);
/// assert_eq!(gradients.of(&w).to_vec(), [6.0, 8.0]);
/// assert_eq!(gradients.clip_norm(1.0), 10.0);
/// assert!((gradients.norm() - 1.0).abs() < 1e-6);
/// ```
#[doc(alias("zero_grad"))]
#[derive(Clone, Debug)]
pub struct Gradients<T: Float = f32> {
    tape: u64,
    /// The gradients of variables that are not parameters, sorted by the variable's node.
    variables: Vec<(NodeIndex, Tensor<T>)>,
    /// The gradients of parameters, sorted by the parameter's id.
    parameters: Vec<(u64, Tensor<T>)>,
    /// The changes of buffers, each with the buffer's id, in the order of recording.
    changes: Vec<(u64, BufferChange<Tensor<T>>)>,
    /// True if these gradients are from several tapes or processes. They then have no gradients of variables.
    is_of_several_tapes: bool,
    pub(super) evaluated_layer: Option<&'static str>,
}

/// The key that finds a gradient in [`Gradients`]: a parameter, or a variable that was made by [`Tape::var`](crate::Tape::var) or
/// [`Tape::parameter`](crate::Tape::parameter). The element type must be the gradients' element type:
///
/// ```compile_fail,E0277
/// # use wengert_autograd::prelude::*;
/// let (w, other) = (Parameter::new(Tensor::<f32>::ones([2])), Parameter::new(Tensor::<f64>::ones([2])));
/// let gradients = Tape::new().parameter(&w).sum(..).backward();
/// gradients.get(&other); // of another type
/// ```
pub trait Key<T: Float> {
    /// Returns the key's gradient, or `None` if there is none; see [`Gradients::get`].
    fn find<'g>(&self, gradients: &'g Gradients<T>) -> Option<&'g Tensor<T>>;
    /// Returns an error that explains why the key has no gradient.
    fn missing(&self, gradients: &Gradients<T>, at: Site) -> Error;
    /// Returns the shape of the key's gradient.
    fn shape(&self) -> Shape;
}

#[twins]
#[precompiled]
impl<T: Float> Gradients<T> {
    /// Divides the gradients `by_node`, each with the node of its variable on `tape`, into gradients of parameters and of other variables.
    /// The list must be in the order of the nodes.
    pub(crate) fn new(
        tape: &Tape<T>,
        by_node: Vec<(NodeIndex, Tensor<T>)>,
        changes: Vec<(u64, BufferChange<Tensor<T>>)>,
    ) -> Self {
        let nodes = &tape.record.borrow().parameters;
        debug_assert!(by_node.is_sorted_by_key(|&(node, _)| node));
        debug_assert!(nodes.is_sorted_by_key(|&(_, node)| node));
        let (mut variables, mut parameters) = (Vec::new(), Vec::with_capacity(nodes.len()));
        for (node, gradient) in by_node {
            match nodes.binary_search_by_key(&node, |&(_, node)| node) {
                Ok(position) => parameters.push((nodes[position].0, gradient)),
                Err(_) => variables.push((node, gradient)),
            }
        }
        parameters.sort_unstable_by_key(|&(id, _)| id);
        let (tape, evaluated_layer) = (tape.id, tape.evaluated_layer.get());
        Gradients { tape, variables, parameters, changes, is_of_several_tapes: false, evaluated_layer }
    }

    /// Collects gradients that were computed in another process or by hand. Each gradient comes with its [`Parameter::id`]. If a parameter
    /// occurs twice, its last gradient is used. Each change of a buffer comes with its [`Buffer::id`]. The changes are applied in the order
    /// of `changes`.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let w = Parameter::new(Tensor::from([3.0f32, 4.0]));
    /// let gradients = Gradients::from_parts([(w.id(), Tensor::from([0.6, 0.8]))], []);
    /// assert_eq!(gradients.of(&w).to_vec(), [0.6, 0.8]);
    /// ```
    pub fn from_parts(
        parameters: impl IntoIterator<Item = (u64, Tensor<T>)>,
        changes: impl IntoIterator<Item = (u64, BufferChange<Tensor<T>>)>,
    ) -> Self {
        let by_id: BTreeMap<u64, Tensor<T>> = parameters.into_iter().collect();
        // These gradients were not computed on a tape, so their tape gets an id that no tape has.
        let (tape, variables, parameters) = (u64::MAX, Vec::new(), by_id.into_iter().collect());
        let changes = changes.into_iter().collect();
        Gradients { tape, variables, parameters, changes, is_of_several_tapes: false, evaluated_layer: None }
    }

    /// Returns these gradients with other values for the parameters and other changes of buffers, such as the means over several processes.
    /// The arguments are as in [`from_parts`](Self::from_parts). Like a sum of gradients of several tapes, the result has no gradients of
    /// variables. It keeps the [`evaluated_layer`](Self::evaluated_layer).
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let w = Parameter::new(Tensor::from([3.0f32, 4.0]));
    /// let gradients = Tape::new().value_and_gradients(|tape| tape.parameter(&w).square().sum(..)).1;
    /// let halved = gradients.with_parts([(w.id(), gradients.of(&w) / 2.0)], []);
    /// assert_eq!(halved.of(&w).to_vec(), [3.0, 4.0]);
    /// ```
    #[must_use]
    pub fn with_parts(
        &self,
        parameters: impl IntoIterator<Item = (u64, Tensor<T>)>,
        changes: impl IntoIterator<Item = (u64, BufferChange<Tensor<T>>)>,
    ) -> Self {
        let (tape, evaluated_layer) = (self.tape, self.evaluated_layer);
        Gradients { tape, is_of_several_tapes: true, evaluated_layer, ..Gradients::from_parts(parameters, changes) }
    }

    /// Returns the changes of buffers that the loss's tape recorded, each with its [`Buffer::id`], in the order of recording.
    #[inline]
    pub fn changes(&self) -> &[(u64, BufferChange<Tensor<T>>)] {
        &self.changes
    }

    /// Returns the kind of a layer (such as dropout) that behaves differently in training and was called on the tape of the loss. Returns
    /// `None` if no such layer was called, or if the tape is a training tape. Layers of a frozen part of the model, and layers before the
    /// first trained one, do not count. Gradients from [`from_parts`](Self::from_parts) were computed elsewhere and have no layer. See
    /// [`Tape::note_evaluation`](crate::Tape::note_evaluation).
    #[inline]
    pub fn evaluated_layer(&self) -> Option<&'static str> {
        self.evaluated_layer
    }

    /// Returns the gradient with respect to `key`, or `None` if the loss does not depend on it. Constants, frozen parameters, intermediate
    /// results and variables of other tapes have no gradient either. Sums over several tapes have no gradients of variables, only of
    /// parameters.
    pub fn get(&self, key: impl Key<T>) -> Option<&Tensor<T>> {
        key.find(self)
    }

    /// Returns the gradient with respect to `key`.
    ///
    /// # Errors
    ///
    /// If there is no gradient with respect to `key`; see [`get`](Self::get).
    pub fn try_of(&self, key: impl Key<T>) -> Result<&Tensor<T>, Error> {
        let at = Site::here("of");
        key.find(self).ok_or_else(|| key.missing(self, at))
    }

    /// Returns the gradient with respect to `key`, or zeros if the loss does not depend on it. A frozen parameter has zeros too.
    ///
    /// # Errors
    ///
    /// If these gradients do not contain the gradient, although the loss may depend on `key`. This is the case for a constant, an
    /// intermediate result and a variable of another tape. It is also the case for a variable whose gradient an addition or
    /// [`with_parts`](Self::with_parts) left out. Also if memory cannot hold the zeros.
    pub fn try_of_or_zeros(&self, key: impl Key<T>) -> Result<Tensor<T>, Error> {
        if let Some(gradient) = key.find(self) {
            return Ok(gradient.clone());
        }
        match key.missing(self, Site::here("of_or_zeros")) {
            Error::Unreached { .. } | Error::NoGradient { reason: MissingGradient::Frozen, .. } => {
                Ok(Tensor::try_zeros(key.shape())?)
            }
            error => Err(error),
        }
    }

    /// Returns the gradients of parameters, each with its [`Parameter::id`], in ascending order of the ids. Gradients of variables are not
    /// among them.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (u64, &Tensor<T>)> {
        self.parameters.iter().map(|(id, gradient)| (*id, gradient))
    }

    /// Returns the number of gradients of variables and parameters. [`parameters`](Self::parameters) has only
    /// gradients of parameters.
    #[inline]
    pub fn len(&self) -> usize {
        self.variables.len() + self.parameters.len()
    }

    /// Returns true if there are no gradients.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the Euclidean norm of the vector that contains all elements of all gradients. It is NaN if an element is NaN. PyTorch:
    /// `get_total_norm`.
    ///
    /// All gradients count: of every parameter of every model on the tape, and of every variable made by `tape.var`.
    #[doc(alias("get_total_norm"))]
    #[track_caller]
    pub fn norm(&self) -> f64 {
        or_raise(self.total_norm())
    }

    #[track_caller]
    fn total_norm(&self) -> Result<f64, Error> {
        let mut sum = 0.0;
        for gradient in self.tensors() {
            sum += gradient.try_vector_norm(2.0, ..)?.item().to_f64().powi(2);
        }
        Ok(sum.sqrt())
    }

    /// Returns true if all elements of all gradients are finite.
    pub fn is_finite(&self) -> bool {
        self.tensors().all(|gradient| gradient.iter().all(T::is_finite))
    }

    /// Scales all gradients so that their norm is at most `max_norm`, and returns the norm before the scaling. As in PyTorch, the factor is
    /// `max_norm / (norm + 1e-6)`, but at most 1. If the norm is not finite, the gradients become NaN or zero: check the returned norm.
    /// PyTorch: `clip_grad_norm_`.
    ///
    /// The [norm](Self::norm) contains the gradients of variables too, for example of an input `tape.var(&x)`, and the gradients of all
    /// models on the tape. (`clip_grad_norm_(model.parameters())` sees one model.) To leave out an input, record it by `tape.constant(&x)`.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the scaled gradients.
    #[doc(alias("clip_grad_norm_"))]
    pub fn try_clip_norm(&mut self, max_norm: f64) -> Result<f64, Error> {
        let norm = self.total_norm()?;
        let factor = max_norm / (norm + 1e-6);
        if factor < 1.0 || factor.is_nan() {
            self.try_scale(factor)?;
        }
        Ok(norm)
    }

    /// Limits every element to the range from `-max` to `max`. NaN stays NaN. PyTorch: `clip_grad_value_`.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the limited gradients. Some gradients may then be limited already.
    #[doc(alias("clip_grad_value_"))]
    pub fn try_clip_value(&mut self, max: f64) -> Result<(), Error> {
        for gradient in self.tensors_mut() {
            *gradient = gradient.try_clamp(-max, max)?;
        }
        Ok(())
    }

    /// Multiplies all gradients by `factor`. Use it to take the mean over accumulated batches, or to undo the scaling of a loss.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the scaled gradients. Some gradients may then be scaled already.
    pub fn try_scale(&mut self, factor: f64) -> Result<(), Error> {
        for gradient in self.tensors_mut() {
            *gradient = gradient.try_mul(factor)?;
        }
        Ok(())
    }

    /// Applies each recorded [`BufferChange::Blend`] of `buffer`, in the order of recording. An optimiser's step does this for all buffers
    /// of the model.
    ///
    /// # Errors
    ///
    /// If the buffer's shape has changed since the tape recorded the statistic, or memory cannot hold the result.
    pub fn try_update_statistic(&self, buffer: &mut Buffer<T>) -> Result<(), Error> {
        let (id, at) = (buffer.id(), Site::here("update_statistic"));
        for (_, change) in self.changes.iter().filter(|(changed, _)| *changed == id) {
            let BufferChange::Blend { new, weight } = change else { continue };
            let (shape, got) = (new.shape(), buffer.value.shape());
            if got != shape {
                let message = format!("expected a buffer of the statistic's shape {shape}, got one of shape {got}");
                return Err(Error::Refused { message, at });
            }
            let moved = new.try_sub(&buffer.value)?.try_mul(weight.value())?;
            buffer.value = buffer.value.try_add(&moved)?;
        }
        Ok(())
    }

    /// Adds the number of recorded counts to `buffer`. An optimiser's step does this for all buffers of the model.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the result.
    pub fn try_update_count(&self, buffer: &mut Buffer<i64>) -> Result<(), Error> {
        let counted =
            self.changes.iter().filter(|(id, change)| *id == buffer.id() && matches!(change, BufferChange::Count));
        let counted = counted.count() as i64;
        if counted > 0 {
            buffer.value = buffer.value.try_add(counted)?;
        }
        Ok(())
    }

    /// Adds the gradients of another batch, like `+=`. If only one side has a gradient for a parameter or variable, that gradient is kept.
    /// The other batch's changes of buffers are appended. In a plain average
    /// ([`BlendWeight::CumulativeAverage`](crate::BlendWeight::CumulativeAverage)), their batches come after the batches of `self`.
    /// Gradients of variables are kept only if both sides belong to the same tape.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let w = Parameter::new(Tensor::from([3.0f32, 4.0]));
    /// let loss = || Tape::new().value_and_gradients(|tape| tape.parameter(&w).square().sum(..)).1;
    /// let mut gradients = loss();
    /// gradients.accumulate(loss());
    /// assert_eq!(gradients.of(&w).to_vec(), [12.0, 16.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// If the two gradients of a parameter or variable have shapes that do not broadcast, or memory cannot hold a sum. Some gradients may
    /// then be added already.
    pub fn try_accumulate(&mut self, other: Self) -> Result<(), Error> {
        add_all(&mut self.parameters, other.parameters)?;
        self.is_of_several_tapes |= other.is_of_several_tapes || self.tape != other.tape;
        if self.is_of_several_tapes {
            self.variables.clear();
        } else {
            add_all(&mut self.variables, other.variables)?;
        }
        self.evaluated_layer = self.evaluated_layer.or(other.evaluated_layer);
        let own = self.changes.len();
        for (id, change) in other.changes {
            let earlier = self.changes[..own].iter().filter(|(earlier, _)| *earlier == id).count() as u64;
            self.changes.push((id, change.count_earlier_batches(earlier)));
        }
        Ok(())
    }

    fn tensors(&self) -> impl Iterator<Item = &Tensor<T>> {
        let variables = self.variables.iter().map(|(_, gradient)| gradient);
        variables.chain(self.parameters.iter().map(|(_, gradient)| gradient))
    }

    fn tensors_mut(&mut self) -> impl Iterator<Item = &mut Tensor<T>> {
        let variables = self.variables.iter_mut().map(|(_, gradient)| gradient);
        variables.chain(self.parameters.iter_mut().map(|(_, gradient)| gradient))
    }
}

/// Adds the gradients of another batch; see [`accumulate`](Gradients::accumulate).
impl<T: Float> AddAssign for Gradients<T> {
    #[track_caller]
    fn add_assign(&mut self, other: Self) {
        self.accumulate(other);
    }
}

#[track_caller]
fn add_all<K: Ord, T: Float>(gradients: &mut Vec<(K, Tensor<T>)>, others: Vec<(K, Tensor<T>)>) -> Result<(), Error> {
    for (key, other) in others {
        match gradients.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(position) => gradients[position].1 = gradients[position].1.try_add(&other)?,
            Err(position) => gradients.insert(position, (key, other)),
        }
    }
    Ok(())
}

impl<T: Float> Key<T> for &Parameter<T> {
    fn find<'g>(&self, gradients: &'g Gradients<T>) -> Option<&'g Tensor<T>> {
        let position = gradients.parameters.binary_search_by_key(&self.id(), |&(id, _)| id).ok()?;
        Some(&gradients.parameters[position].1)
    }

    fn missing(&self, _gradients: &Gradients<T>, at: Site) -> Error {
        let what = format!("the parameter of shape {} made at {}", self.value.shape(), self.created_at());
        if self.is_frozen() {
            return Error::NoGradient { what, reason: MissingGradient::Frozen, at };
        }
        Error::Unreached { what, at }
    }

    fn shape(&self) -> Shape {
        self.value.shape().clone()
    }
}

impl<T: Float> Key<T> for Var<'_, T> {
    fn find<'g>(&self, gradients: &'g Gradients<T>) -> Option<&'g Tensor<T>> {
        if self.tape.id != gradients.tape {
            return None;
        }
        let record = self.tape.record.borrow();
        if let Ok(position) = record.parameters.binary_search_by_key(&self.index, |&(_, node)| node) {
            let (id, _) = record.parameters[position];
            let position = gradients.parameters.binary_search_by_key(&id, |&(id, _)| id).ok()?;
            return Some(&gradients.parameters[position].1);
        }
        let position = gradients.variables.binary_search_by_key(&self.index, |&(node, _)| node).ok()?;
        Some(&gradients.variables[position].1)
    }

    fn missing(&self, gradients: &Gradients<T>, at: Site) -> Error {
        let (what, record) = (format!("{self:?}"), self.tape.record.borrow());
        let is_parameter = record.parameters.iter().any(|&(_, node)| node == self.index);
        let reason = match record.op(self.index) {
            _ if self.tape.id != gradients.tape && !gradients.is_of_several_tapes => None,
            Op::Constant(_) | Op::Number(_) => Some(MissingGradient::Constant),
            Op::Variable(_) => {
                (gradients.is_of_several_tapes && !is_parameter).then_some(MissingGradient::SeveralTapes)
            }
            _ => Some(MissingGradient::Intermediate),
        };
        match reason {
            Some(reason) => Error::NoGradient { what, reason, at },
            None if self.tape.id != gradients.tape => Error::OtherTapesGradients { what, at },
            None => Error::Unreached { what, at },
        }
    }

    fn shape(&self) -> Shape {
        Var::shape(*self)
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use crate::parameter::{BlendWeight, Buffer, BufferChange};
    use crate::{Error, Gradients, Parameter, Tape};

    #[test]
    fn a_missing_gradient_has_its_reason() {
        let mut frozen = Parameter::new(Tensor::from([2.0]));
        frozen.set_frozen(true);
        let tape = Tape::<f64>::new();
        let (x, other) = (tape.var(&Tensor::from([2.0, 3.0])), tape.var(&Tensor::from([1.0])));
        let (constant, square) = (tape.constant(Tensor::from([4.0, 5.0])), x * x);
        let gradients = (square * constant * tape.parameter(&frozen)).sum(..).backward();
        let text = |error: Error| error.to_string();
        let unreached = text(gradients.try_of(other).unwrap_err());
        assert!(unreached.starts_with("the output does not depend on Var<f64>"), "{unreached}");
        for (error, reason) in [
            (gradients.try_of(constant).unwrap_err(), "is a constant"),
            (gradients.try_of(square).unwrap_err(), "is an intermediate result"),
            (gradients.try_of(&frozen).unwrap_err(), "frozen"),
            (gradients.try_of(tape.parameter(&frozen)).unwrap_err(), "is a constant"),
        ] {
            let text = text(error);
            assert!(!text.contains("does not depend on") && text.contains(reason) && text.contains(file!()), "{text}");
        }
        // The sum of gradients of several tapes has no gradients of variables.
        let second = Tape::<f64>::new();
        let y = second.var(&Tensor::from([1.0]));
        let mut sum = gradients;
        assert!(sum.try_of(x).is_ok());
        sum += y.sum(..).backward();
        for error in [sum.try_of(x).unwrap_err(), sum.try_of(y).unwrap_err()] {
            let text = text(error);
            assert!(text.contains("several tapes") && !text.contains("does not depend on"), "{text}");
        }
        sum += second.var(&Tensor::from([1.0])).sum(..).backward();
        assert!(text(sum.try_of(x).unwrap_err()).contains("several tapes"));
        // Further gradients of the first tape are only a part of the variable's gradient.
        sum += x.sum(..).backward();
        assert!(text(sum.try_of(x).unwrap_err()).contains("several tapes"));
    }

    #[test]
    fn other_parts_keep_the_tape_and_the_layer_and_remove_variables() {
        let w = Parameter::new(Tensor::from([2.0, 3.0]));
        let tape = Tape::<f64>::new();
        let (x, weight) = (tape.var(&Tensor::from([1.0, 5.0])), tape.parameter(&w));
        tape.note_evaluation("Dropout");
        let gradients = (x * weight).sum(..).backward();
        let parts = gradients.with_parts([(w.id(), Tensor::from([7.0, 8.0]))], []);
        assert_eq!((parts.of(weight).to_vec(), parts.of(&w).to_vec()), (vec![7.0, 8.0], vec![7.0, 8.0]));
        assert_eq!((gradients.evaluated_layer(), parts.evaluated_layer()), (Some("Dropout"), Some("Dropout")));
        let error = parts.try_of(x).unwrap_err().to_string();
        assert!(error.contains("several tapes"), "{error}");
    }

    #[test]
    fn gradients_that_do_not_fit_are_not_added() {
        let w = Parameter::new(Tensor::from([2.0, 3.0]));
        let gradients = |values: Tensor<f64>| Gradients::from_parts([(w.id(), values)], []);
        let mut sum = gradients(Tensor::from([1.0, 2.0]));
        let line = line!() + 1;
        let error = sum.try_accumulate(gradients(Tensor::from([1.0, 2.0, 3.0]))).unwrap_err();
        assert!(error.to_string().contains(&format!("{}:{line}", file!())), "{error}");
        assert_eq!(sum.of(&w).to_vec(), [1.0, 2.0]);
        sum.try_accumulate(gradients(Tensor::from([10.0, 20.0]))).unwrap();
        sum += gradients(Tensor::from([0.5, 0.5]));
        assert_eq!(sum.of(&w).to_vec(), [11.5, 22.5]);
    }

    #[test]
    fn a_buffer_of_another_shape_is_not_updated() {
        let mut buffer = Buffer::new(Tensor::from([1.0, 2.0]));
        let tape = Tape::<f64>::training(&mut Generator::new(0));
        tape.blend(&buffer, tape.constant(Tensor::from([3.0, 4.0])), BlendWeight::Fixed(0.5));
        let gradients = tape.var(&Tensor::scalar(1.0)).backward();
        buffer.value = Tensor::scalar(5.0);
        let error = gradients.try_update_statistic(&mut buffer).unwrap_err();
        assert_eq!(error.sentence(), "expected a buffer of the statistic's shape [2], got one of shape []");
        assert_eq!(buffer.value, Tensor::scalar(5.0));
        buffer.value = Tensor::from([1.0, 2.0]);
        gradients.update_statistic(&mut buffer);
        assert_eq!(buffer.value, Tensor::from([2.0, 3.0]));
    }

    #[test]
    fn a_variable_without_a_gradient_has_zeros() {
        let tape = Tape::<f64>::new();
        let (x, unused) = (tape.var(&Tensor::from([1.0, 2.0])), tape.var(&Tensor::from([[3.0], [4.0]])));
        let (square, constant) = (x.square(), tape.constant(Tensor::scalar(1.0)));
        let gradients = (square * constant).sum(..).backward();
        assert_eq!(gradients.of_or_zeros(x), Tensor::from([2.0, 4.0]));
        assert_eq!(gradients.of_or_zeros(unused), Tensor::zeros([2, 1]));
        let mut frozen = Parameter::new(Tensor::scalar(1.0));
        frozen.set_frozen(true);
        assert_eq!(gradients.of_or_zeros(&frozen), Tensor::scalar(0.0));
        // For these keys, `of_or_zeros` is an error: the loss depends on `square`, may depend on `constant`, and is not on the tape `other`.
        let other = Tape::<f64>::new();
        for key in [square, constant, other.var(&Tensor::scalar(1.0))] {
            assert!(gradients.try_of_or_zeros(key).is_err(), "{key:?}");
        }
        let mut several = gradients;
        several += other.var(&Tensor::scalar(1.0)).backward();
        assert!(several.try_of_or_zeros(x).is_err());
    }

    #[test]
    fn a_note_of_an_evaluation_belongs_to_the_gradients_of_its_tape() {
        let w = Parameter::new(Tensor::from([2.0]));
        let gradients = |layer: Option<&'static str>| {
            let tape = Tape::<f64>::new();
            let loss = tape.parameter(&w).sum(..);
            if let Some(layer) = layer {
                tape.note_evaluation(layer);
            }
            loss.backward()
        };
        let (noted, mut sum) = (gradients(Some("Dropout")), gradients(None));
        assert_eq!((noted.evaluated_layer(), sum.evaluated_layer()), (Some("Dropout"), None));
        sum += noted;
        sum += gradients(None);
        assert_eq!(sum.evaluated_layer(), Some("Dropout"));
        let other = std::thread::spawn(move || sum.evaluated_layer());
        assert_eq!(other.join().unwrap(), Some("Dropout"));
    }

    #[test]
    fn batches_of_one_tape_are_averaged_in_order() {
        let means = [1.0, 4.0, 10.0, 25.0];
        let step = |buffer: &Buffer<f64>, means: &[f64]| {
            let tape = Tape::training(&mut Generator::new(0));
            for &mean in means {
                tape.blend(buffer, tape.constant(mean), BlendWeight::CumulativeAverage(1));
            }
            tape.var(&Tensor::scalar(1.0)).backward()
        };
        let buffer = Buffer::new(Tensor::scalar(0.0));
        let shares = |gradients: &Gradients<f64>| {
            let number = |(_, change): &(u64, BufferChange<Tensor<f64>>)| match change {
                BufferChange::Blend { weight: BlendWeight::CumulativeAverage(number), .. } => *number,
                other => panic!("{other:?}"),
            };
            gradients.changes().iter().map(number).collect::<Vec<_>>()
        };
        let all = step(&buffer, &means);
        assert_eq!(shares(&all), [1, 2, 3, 4]);
        // Adds up the gradients of two tapes. Each tape has recorded two batches.
        let mut sum = step(&buffer, &means[..2]);
        sum += step(&buffer, &means[2..]);
        assert_eq!(shares(&sum), [1, 2, 3, 4]);
        sum += step(&buffer, &means[..2]);
        assert_eq!(shares(&sum), [1, 2, 3, 4, 5, 6]);
        assert_eq!([0, 1, 4].map(|number| BlendWeight::CumulativeAverage(number).value()), [1.0, 1.0, 0.25]);
    }
}
