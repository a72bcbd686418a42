//! Functions of one example, computed for a whole batch.
//!
//! The function is recorded for one example, and every operation on the way to its results is then recorded once more, on all
//! examples at a time. What was recorded for the example is not computed.

use wengert_macros::twins;
use wengert_tensor::ops::TensorLike;
use wengert_tensor::plan::Index;
use wengert_tensor::{Float, Shape, Site, Sizes, Tensor, View};

use crate::parameter::Change;
use crate::{Error, Tape, Var, rules};

/// A function of one example, computed for all examples of a batch: `f` sees each input without its first dimension, along which the
/// examples lie, and the results have it first again. For other dimensions, inputs that are the same for all examples, several
/// results and variables, see [`Vmap`]. JAX: `jax.vmap`; PyTorch: `torch.vmap`.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::vmap};
///
/// let (x, y) = (Tensor::from([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), Tensor::from([[1.0, 1.0], [0.0, 1.0], [2.0, 0.0]]));
/// // One product for each of the three pairs of vectors.
/// assert_eq!(vmap(|[x, y]| x.dot(y), [&x, &y]).to_vec(), [3.0, 4.0, 10.0]);
/// ```
///
/// # Errors
///
/// As for [`Vmap::call`].
#[twins]
pub fn try_vmap<T: Float, const N: usize>(
    f: impl for<'t> Fn([Var<'t, T>; N]) -> Var<'t, T>,
    inputs: [&Tensor<T>; N],
) -> Result<Tensor<T>, Error> {
    let [result] = Vmap::new().tensors(|inputs| [f(inputs)], inputs, Site::here("vmap"))?;
    Ok(result)
}

/// [`vmap`] with options: along which dimension of each input the examples lie, and of each result.
///
/// Every operation has a batching rule, so that the results are those of a loop over the examples, at the cost of one pass over the
/// batch. Two kinds of operations cost a loop: a [custom operation](crate::Operation) without a rule, and whatever looks at values
/// while it is recorded (sorting, positions of maxima, [`value`](Var::value)). If the function does that with what depends on an
/// example, it is called for each.
///
/// What the function draws from the tape's generator ([`Tape::draw`], dropout) is drawn once and is the same for all examples; JAX
/// and PyTorch (`randomness="same"`) do so where they are given one key. For different numbers, draw a batch of them and pass it as
/// an input. Integers are no variables, so a batch of class numbers or indices enters as one-hot rows.
///
/// It nests: `f` may take gradients (per-sample gradients), derivatives may be taken of its results, and `f` may itself be batched.
///
/// ```
/// use wengert_autograd::{prelude::*, transforms::Vmap};
///
/// let matrix = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
/// let w = Tensor::from([10.0, 1.0]);
/// // The examples are the columns of the matrix, the same weights for all; two results.
/// let [scaled, sum] = Vmap::new().in_dims([Some(1), None]).out_dims([1, 0]).call(|[x, w]| [x * w, x.sum(..)], [&matrix, &w]);
/// assert_eq!(scaled, Tensor::from([[10.0, 20.0, 30.0], [4.0, 5.0, 6.0]]));
/// assert_eq!(sum.to_vec(), [5.0, 7.0, 9.0]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Vmap {
    in_dims: Option<Vec<Option<isize>>>,
    out_dims: Vec<isize>,
}

#[twins]
impl Vmap {
    /// The examples lie along dimension 0 of every input and every result.
    pub fn new() -> Self {
        Self::default()
    }

    /// With the dimension of each input along which the examples lie, counted from the end if negative; `None` for an input that is the
    /// same for all examples. PyTorch: `in_dims`.
    pub fn in_dims(self, dims: impl IntoIterator<Item = Option<isize>>) -> Self {
        Vmap { in_dims: Some(dims.into_iter().collect()), ..self }
    }

    /// With the dimension of the results along which the examples lie, counted from the end if negative: one number for all results, or
    /// one for each. PyTorch: `out_dims`.
    pub fn out_dims(self, dims: impl Into<Sizes>) -> Self {
        Vmap { out_dims: dims.into().as_slice().to_vec(), ..self }
    }

    /// The results of `f` for all examples of tensors.
    ///
    /// # Errors
    ///
    /// If the inputs have different numbers of examples, do not have the dimensions of [`in_dims`](Self::in_dims), or all of them are
    /// the same for all examples; if a result does not have the dimension of [`out_dims`](Self::out_dims); if a training tape's running
    /// statistic would change with single examples; or as [`value`](Var::value).
    pub fn try_call<T: Float, const N: usize, const M: usize>(
        &self,
        f: impl for<'t> Fn([Var<'t, T>; N]) -> [Var<'t, T>; M],
        inputs: [&Tensor<T>; N],
    ) -> Result<[Tensor<T>; M], Error> {
        self.tensors(f, inputs, Site::here("call"))
    }

    /// The results of `f` for all examples of variables, as variables on the same tape.
    ///
    /// ```
    /// use wengert_autograd::{prelude::*, transforms::Vmap};
    ///
    /// let tape = Tape::<f64>::new();
    /// let (x, w) = (tape.var(&Tensor::from([[1.0, 2.0], [3.0, 4.0]])), tape.var(&Tensor::from([1.0, -1.0])));
    /// // The gradient for each example by itself.
    /// let [dw] = Vmap::new().in_dims([Some(0), None]).record(|[x, w]| x.dot(w).square().grad([w]), [x, w]);
    /// assert_eq!(dw.value(), Tensor::from([[-2.0, -4.0], [-6.0, -8.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call), and if a variable belongs to another tape.
    pub fn try_record<'t, T: Float, const N: usize, const M: usize>(
        &self,
        f: impl Fn([Var<'t, T>; N]) -> [Var<'t, T>; M],
        inputs: [Var<'t, T>; N],
    ) -> Result<[Var<'t, T>; M], Error> {
        Ok(array(self.variables(&of_slices(f), &inputs, Site::here("record"))?))
    }

    /// [`record`](Self::record) for any number of inputs and results.
    ///
    /// # Errors
    ///
    /// As for [`record`](Self::record).
    pub fn try_record_slice<'t, T: Float>(
        &self,
        f: impl Fn(&[Var<'t, T>]) -> Vec<Var<'t, T>>,
        inputs: &[Var<'t, T>],
    ) -> Result<Vec<Var<'t, T>>, Error> {
        self.variables(&f, inputs, Site::here("record_slice"))
    }

    fn tensors<T: Float, const N: usize, const M: usize>(
        &self,
        f: impl for<'t> Fn([Var<'t, T>; N]) -> [Var<'t, T>; M],
        inputs: [&Tensor<T>; N],
        at: Site,
    ) -> Result<[Tensor<T>; M], Error> {
        let tape = Tape::new();
        let vars = inputs.map(|input| tape.leaf_at(input, at));
        let results: Vec<Index> = self.variables(&of_slices(f), &vars, at)?.iter().map(|result| result.index).collect();
        Ok(array(tape.evaluate(&results, at)?))
    }

    fn variables<'t, T: Float>(
        &self,
        f: &dyn Fn(&[Var<'t, T>]) -> Vec<Var<'t, T>>,
        inputs: &[Var<'t, T>],
        at: Site,
    ) -> Result<Vec<Var<'t, T>>, Error> {
        let batch = self.batch(inputs, at)?;
        let results = batch.results(f)?;
        let out_dim = |position: usize| match self.out_dims[..] {
            [] => Some(0),
            [one] => Some(one),
            _ => self.out_dims.get(position).copied(),
        };
        if self.out_dims.len() > 1 && self.out_dims.len() != results.len() {
            return refused(format!("vmap: got {} out_dims for {} results", self.out_dims.len(), results.len()), at);
        }
        let moved = results.into_iter().enumerate().map(|(position, result)| {
            let shape = result.shape();
            let dim = out_dim(position).unwrap_or_default();
            let Some(axis) = resolved(dim, &shape) else {
                let shape = shape[1..].into();
                return Err(Error::BatchDim { which: "out_dim", position, dim, shape, at });
            };
            let mut order: Vec<usize> = (1..shape.rank()).collect();
            order.insert(axis, 0);
            permuted(result, order, at)
        });
        moved.collect()
    }

    /// The inputs, checked, with the examples along the first dimension.
    fn batch<'t, T: Float>(&self, inputs: &[Var<'t, T>], at: Site) -> Result<Batch<'t, T>, Error> {
        let every = vec![Some(0); inputs.len()];
        let in_dims = self.in_dims.as_ref().unwrap_or(&every);
        if in_dims.len() != inputs.len() {
            return refused(format!("vmap: got {} in_dims for {} inputs", in_dims.len(), inputs.len()), at);
        }
        let (mut sizes, mut moved) = (Vec::new(), Vec::with_capacity(inputs.len()));
        for (position, (&input, &dim)) in inputs.iter().zip(in_dims).enumerate() {
            input.check_tape(inputs[0], at)?;
            let Some(dim) = dim else {
                moved.push((input, false));
                continue;
            };
            let shape = input.shape();
            let Some(axis) = resolved(dim, &shape) else {
                return Err(Error::BatchDim { which: "in_dim", position, dim, shape, at });
            };
            sizes.push(shape[axis]);
            let mut order: Vec<usize> = (0..shape.rank()).collect();
            order.remove(axis);
            order.insert(0, axis);
            moved.push((permuted(input, order, at)?, true));
        }
        let Some(&size) = sizes.first() else {
            return refused("vmap: no input has a dimension of examples".to_owned(), at);
        };
        if sizes.iter().any(|&other| other != size) {
            return Err(Error::BatchSizes { sizes, at });
        }
        Ok(Batch { inputs: moved, size, at })
    }
}

/// The inputs of a function of one example: each with whether examples lie along its first dimension.
struct Batch<'t, T: Float> {
    inputs: Vec<(Var<'t, T>, bool)>,
    size: usize,
    at: Site,
}

impl<'t, T: Float> Batch<'t, T> {
    /// The results of `f` for all examples, the examples along the first dimension.
    fn results(&self, f: &dyn Fn(&[Var<'t, T>]) -> Vec<Var<'t, T>>) -> Result<Vec<Var<'t, T>>, Error> {
        let tape = self.inputs[0].0.tape;
        let inputs = self.example(0)?;
        let batched = inputs.iter().zip(&self.inputs).filter(|(_, (_, is_batched))| *is_batched);
        let replaced: Vec<(Var<'t, T>, Var<'t, T>)> = batched.map(|(&example, &(batch, _))| (example, batch)).collect();
        let sources: Vec<Index> = replaced.iter().map(|(example, _)| example.index).collect();
        let (generator, changes, watch) = (tape.generator(), tape.changes().len(), Watch::new(tape));
        let results = f(&inputs);
        if results.iter().any(|result| !std::ptr::eq(result.tape, tape)) {
            return Err(Error::OtherTape { at: self.at });
        }
        let statistics: Vec<Index> =
            tape.changes()[changes..].iter().filter_map(|(_, change)| statistic(change)).collect();
        if tape.depend(&statistics, &sources) {
            let message = "vmap: a running statistic cannot follow single examples\n  hint: evaluate on a tape that does not \
                           train, use a layer without running statistics (group or layer normalisation), or freeze it";
            return refused(message.to_owned(), self.at);
        }
        let looked_at = watch.end();
        if self.size == 0 || !tape.depend(&looked_at, &sources) {
            return tape.batch(&results, &replaced, self.size, self.at);
        }
        // What was recorded depends on the example's values.
        let mut rows: Vec<Vec<Var<'t, T>>> = results.into_iter().map(|result| vec![result]).collect();
        for number in 1..self.size {
            tape.set_generator(generator.clone());
            let results = f(&self.example(number)?);
            if results.len() != rows.len() {
                return refused(
                    format!("vmap: example {number} has {} results, not {}", results.len(), rows.len()),
                    self.at,
                );
            }
            for (row, result) in rows.iter_mut().zip(results) {
                row.push(result);
            }
        }
        rows.iter().map(|row| self.stacked(row)).collect()
    }

    /// The inputs of one example; zeros if there is none.
    fn example(&self, number: usize) -> Result<Vec<Var<'t, T>>, Error> {
        let at = self.at;
        let example = |&(input, is_batched): &(Var<'t, T>, bool)| match (is_batched, self.size) {
            (false, _) => Ok(input),
            (true, 0) => Ok(input.filled_at(&input.shape()[1..].into(), T::ZERO, at)),
            (true, _) => rules::example_of(input, number, at),
        };
        self.inputs.iter().map(example).collect()
    }

    fn stacked(&self, results: &[Var<'t, T>]) -> Result<Var<'t, T>, Error> {
        let shape = results[0].shape();
        let mut rows = Vec::with_capacity(results.len());
        for (number, result) in results.iter().enumerate() {
            let own = result.shape();
            if own != shape {
                let message = format!("vmap: the result has shape {own} for example {number}, {shape} for the first");
                return refused(message, self.at);
            }
            rows.push(result.apply_view(View::Reshape(own.replaced(0..0, &[1])), self.at)?);
        }
        Var::apply_cat(&rows, 0, self.at)
    }
}

/// While this exists, the tape notes of which nodes values are requested.
struct Watch<'t, T: Float> {
    tape: &'t Tape<T>,
    before: usize,
}

impl<'t, T: Float> Watch<'t, T> {
    fn new(tape: &'t Tape<T>) -> Self {
        let mut record = tape.record.borrow_mut();
        record.watchers += 1;
        Watch { tape, before: record.read.len() }
    }

    /// The nodes of which values were requested since.
    fn end(self) -> Vec<Index> {
        self.tape.record.borrow().read[self.before..].to_vec()
    }
}

impl<T: Float> Drop for Watch<'_, T> {
    fn drop(&mut self) {
        let mut record = self.tape.record.borrow_mut();
        record.watchers -= 1;
        if record.watchers == 0 {
            record.read.clear();
        }
    }
}

/// A function of arrays as one of slices.
fn of_slices<'t, T: Float, const N: usize, const M: usize>(
    f: impl Fn([Var<'t, T>; N]) -> [Var<'t, T>; M],
) -> impl Fn(&[Var<'t, T>]) -> Vec<Var<'t, T>> {
    move |inputs| f(std::array::from_fn(|position| inputs[position])).to_vec()
}

fn statistic(change: &Change<Index>) -> Option<Index> {
    match change {
        Change::Blend { new, .. } => Some(*new),
        Change::Count => None,
    }
}

/// The axis that is dimension `dim`, counted from the end if negative.
fn resolved(dim: isize, shape: &Shape) -> Option<usize> {
    let rank = shape.rank() as isize;
    (-rank..rank).contains(&dim).then(|| dim.rem_euclid(rank) as usize)
}

/// `x` with its dimensions in this order.
fn permuted<'t, T: Float>(x: Var<'t, T>, order: Vec<usize>, at: Site) -> Result<Var<'t, T>, Error> {
    if order.is_sorted() { Ok(x) } else { x.apply_view(View::Permute(order.into()), at) }
}

fn refused<V>(message: String, at: Site) -> Result<V, Error> {
    Err(Error::Refused { message, at })
}

/// A list of `N` as an array.
fn array<V, const N: usize>(values: Vec<V>) -> [V; N] {
    values.try_into().unwrap_or_else(|_| unreachable!("one for each result"))
}
