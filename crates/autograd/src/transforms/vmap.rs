//! Computes functions of one example for a whole batch.
//!
//! The function is recorded for one example. Every operation that its results need and that depends on the example is
//! then recorded once more, for all examples together. The nodes of the single example are evaluated only if the
//! function reads their values. If it reads values that depend on the example, it is recorded for each example instead.

use wengert_macros::twins;
use wengert_tensor::ops::{TensorLike, Views as _};
use wengert_tensor::plan::{NodeIndex, Op};
use wengert_tensor::{Float, Shape, Site, Sizes, Tensor, View};

use crate::rules::EXAMPLE_BYTES;
use crate::{Error, Tape, Var, rules};

/// A [`vmap`](super::vmap()) with options: the dimension of each input and each result along which the examples lie.
///
/// Almost every operation has a batching rule. Up to rounding, the results equal the results of a loop over the examples. They cost one
/// pass over the batch. Three kinds of operations cost a loop: [custom operations](crate::Operation) without a rule,
/// [`map_gradient`](Var::map_gradient), which is recorded for each example, and operations that read values while they are recorded. These
/// include sorting, positions of maxima and [`value`](Var::value). If the function reads values that depend on the example, it is called
/// for each example. Changes of buffers of a training tape are then recorded from the first example only.
///
/// Random numbers from the tape's generator ([`Tape::draw`], dropout) are the same for all examples, as with PyTorch's
/// `randomness="same"`. For different numbers, draw a batch of them and pass it as an input. Variables are not integers, so pass a
/// batch of class numbers or indices as one-hot rows. With no examples, `f` sees zeros, and the results are empty.
///
/// Transformations nest: `f` may take gradients (per-sample gradients) or use `vmap`, and the results can be differentiated.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{prelude::*, transforms::Vmap};
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
    /// Returns the default options: the examples lie along dimension 0 of every input and every result.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets, for each input, the dimension along which the examples lie. Negative dimensions count from the end. `None` is for an input
    /// that is the same for all examples. PyTorch: `in_dims`.
    pub fn in_dims(self, dims: impl IntoIterator<Item = Option<isize>>) -> Self {
        Vmap { in_dims: Some(dims.into_iter().collect()), ..self }
    }

    /// Sets the dimension of the results along which the examples lie: one value for all results, or one for each. Negative dimensions
    /// count from the end. PyTorch: `out_dims`.
    pub fn out_dims(self, dims: impl Into<Sizes>) -> Self {
        Vmap { out_dims: dims.into().as_slice().to_vec(), ..self }
    }

    /// Returns the results of `f` for all examples of the tensors `inputs`.
    ///
    /// # Errors
    ///
    /// If the inputs have different numbers of examples, do not have the dimensions of [`in_dims`](Self::in_dims), or if all inputs are the
    /// same for all examples. If a result does not have the dimension of [`out_dims`](Self::out_dims). If one of these lists has a wrong
    /// length, or the results of two examples have different shapes. If `f` would change a running statistic of a training tape by the
    /// statistic of a single example. If a batching rule fails or returns a wrong result, or the tape is full. Also returns the errors of
    /// [`value`](Var::value).
    pub fn try_call<T: Float, const N: usize, const M: usize>(
        &self,
        f: impl for<'t> Fn([Var<'t, T>; N]) -> [Var<'t, T>; M],
        inputs: [&Tensor<T>; N],
    ) -> Result<[Tensor<T>; M], Error> {
        let at = vmap_site(Site::here("call"));
        let tape = Tape::new();
        let vars = inputs.map(|input| tape.leaf_at(input, at));
        let results: Vec<NodeIndex> =
            self.variables(&slice_function(f), &vars, at)?.iter().map(|result| result.index).collect();
        Ok(array(tape.into_values(&results, at)?))
    }

    /// Returns the results of `f` for all examples of the variables `inputs`, as variables on the same tape.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd as autograd; }
    /// use wengert::autograd::{prelude::*, transforms::Vmap};
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
    /// As for [`call`](Self::call), and if a variable or a result belongs to another tape.
    pub fn try_record<'t, T: Float, const N: usize, const M: usize>(
        &self,
        f: impl Fn([Var<'t, T>; N]) -> [Var<'t, T>; M],
        inputs: [Var<'t, T>; N],
    ) -> Result<[Var<'t, T>; M], Error> {
        Ok(array(self.variables(&slice_function(f), &inputs, vmap_site(Site::here("record")))?))
    }

    /// Does the same as [`record`](Self::record) for any number of inputs and results.
    ///
    /// # Errors
    ///
    /// As for [`record`](Self::record), and if `f` returns different numbers of results for two examples.
    pub fn try_record_slice<'t, T: Float>(
        &self,
        f: impl Fn(&[Var<'t, T>]) -> Vec<Var<'t, T>>,
        inputs: &[Var<'t, T>],
    ) -> Result<Vec<Var<'t, T>>, Error> {
        self.variables(&f, inputs, vmap_site(Site::here("record_slice")))
    }

    pub(super) fn variables<'t, T: Float>(
        &self,
        f: &ExampleFunction<'t, '_, T>,
        inputs: &[Var<'t, T>],
        at: Site,
    ) -> Result<Vec<Var<'t, T>>, Error> {
        let batch = self.batch(inputs, at)?;
        let results = batch.record_results(f)?;
        let out_dim = |position: usize| match self.out_dims[..] {
            [] => Some(0),
            [one] => Some(one),
            _ => self.out_dims.get(position).copied(),
        };
        if self.out_dims.len() > 1 && self.out_dims.len() != results.len() {
            return refuse(format!("vmap: got {} out_dims for {} results", self.out_dims.len(), results.len()), at);
        }
        let moved = results.into_iter().enumerate().map(|(position, result)| {
            let shape = result.shape();
            let dim = out_dim(position).unwrap_or_default();
            let Some(axis) = axis_of(dim, &shape) else {
                let shape = shape[1..].into();
                return Err(Error::BatchDim { which: "out_dim", position, dim, shape, at });
            };
            let mut order: Vec<usize> = (1..shape.rank()).collect();
            order.insert(axis, 0);
            permute(result, order, at)
        });
        let moved: Vec<Var<'t, T>> = moved.collect::<Result<_, _>>()?;
        if let Some(first) = moved.first() {
            // The results form a group. Their values are computed together, even if the caller reads them separately.
            first.tape.record.borrow_mut().group(moved.iter().map(|result| result.index));
        }
        Ok(moved)
    }

    /// Checks the inputs. Returns them with the dimension of the examples moved to the front.
    fn batch<'t, T: Float>(&self, inputs: &[Var<'t, T>], at: Site) -> Result<Batch<'t, T>, Error> {
        let every = vec![Some(0); inputs.len()];
        let in_dims = self.in_dims.as_ref().unwrap_or(&every);
        if in_dims.len() != inputs.len() {
            let hint = "`Some(dim)` for each input, or `None` for an input that is the same for all examples";
            let (dims, count) = (in_dims.len(), inputs.len());
            return refuse(format!("vmap: got {dims} in_dims for {count} inputs\n  hint: {hint}"), at);
        }
        let (mut sizes, mut moved) = (Vec::new(), Vec::with_capacity(inputs.len()));
        for (position, (&input, &dim)) in inputs.iter().zip(in_dims).enumerate() {
            input.check_tape(inputs[0], at)?;
            let Some(dim) = dim else {
                moved.push((input, false));
                continue;
            };
            let shape = input.shape();
            let Some(axis) = axis_of(dim, &shape) else {
                return Err(Error::BatchDim { which: "in_dim", position, dim, shape, at });
            };
            sizes.push(shape[axis]);
            let mut order: Vec<usize> = (0..shape.rank()).collect();
            order.remove(axis);
            order.insert(0, axis);
            moved.push((permute(input, order, at)?, true));
        }
        let Some(&size) = sizes.first() else {
            let hint = "set `Some(dim)` in the `in_dims` of an input that differs between examples";
            return refuse(format!("vmap: no input has a dimension of examples\n  hint: {hint}"), at);
        };
        if sizes.iter().any(|&other| other != size) {
            return Err(Error::BatchSizes { sizes, at });
        }
        Ok(Batch { inputs: moved, size, at })
    }
}

/// A function whose arguments are the inputs of one example.
pub(super) type ExampleFunction<'t, 'f, T> = dyn Fn(&[Var<'t, T>]) -> Vec<Var<'t, T>> + 'f;

/// The inputs of a function for a batch. The flag of an input is true if the examples lie along its first dimension.
struct Batch<'t, T: Float> {
    inputs: Vec<(Var<'t, T>, bool)>,
    size: usize,
    at: Site,
}

impl<'t, T: Float> Batch<'t, T> {
    /// Returns the results of `f` for all examples, with the examples along the first dimension.
    fn record_results(&self, f: &ExampleFunction<'t, '_, T>) -> Result<Vec<Var<'t, T>>, Error> {
        let tape = self.inputs[0].0.tape;
        let inputs = self.example(0)?;
        let batched = inputs.iter().zip(&self.inputs).filter(|(_, (_, is_batched))| *is_batched);
        let replaced: Vec<(Var<'t, T>, Var<'t, T>)> = batched.map(|(&example, &(batch, _))| (example, batch)).collect();
        let sources: Vec<NodeIndex> = replaced.iter().map(|(example, _)| example.index).collect();
        let (generator, n_changes, observer) = (tape.generator(), tape.changes().len(), Observer::new(tape));
        let results = f(&inputs);
        tape.check_owns(results.iter().copied(), self.at)?;
        self.check_statistics(n_changes, &sources)?;
        let observed = observer.into_nodes();
        if self.size == 0 || !tape.any_depends_on(&observed, &sources) {
            return tape.batch(&results, &replaced, self.size, self.at);
        }
        // `f` requested a value that depends on the example. The operations that it records may depend on this value, so `f` is called for
        // each further example.
        wengert_tensor::check_list::<[u8; EXAMPLE_BYTES]>(self.size, self.at)?;
        let mut rows: Vec<Vec<Var<'t, T>>> = results.into_iter().map(|result| vec![result]).collect();
        let n_changes = tape.changes().len();
        for number in 1..self.size {
            tape.set_generator(generator.clone());
            let inputs = self.example(number)?;
            let results = f(&inputs);
            tape.check_owns(results.iter().copied(), self.at)?;
            let batched = inputs.iter().zip(&self.inputs).filter(|(_, (_, is_batched))| *is_batched);
            self.check_statistics(n_changes, &batched.map(|(input, _)| input.index).collect::<Vec<_>>())?;
            // The batch changes each buffer once, like a function that is called once. Only the changes of the first example are kept.
            tape.truncate_changes(n_changes);
            if results.len() != rows.len() {
                return refuse(
                    format!("vmap: example {number} has {} results, not {}", results.len(), rows.len()),
                    self.at,
                );
            }
            for (row, result) in rows.iter_mut().zip(results) {
                row.push(result);
            }
        }
        rows.iter().map(|row| self.stack(row)).collect()
    }

    /// Checks the recorded changes of buffers from index `first` on. Returns an error if the statistic of one of them depends on `sources`,
    /// the variables of an example.
    fn check_statistics(&self, first: usize, sources: &[NodeIndex]) -> Result<(), Error> {
        let tape = self.inputs[0].0.tape;
        let statistics: Vec<NodeIndex> =
            tape.changes()[first..].iter().filter_map(|(_, change)| change.statistic()).collect();
        if tape.any_depends_on(&statistics, sources) {
            let message = "vmap: a running statistic cannot follow single examples\n  hint: evaluate on a tape that does not \
                           train, use a layer without running statistics (group or layer normalisation), or freeze it";
            return refuse(message.to_owned(), self.at);
        }
        Ok(())
    }

    /// Returns the inputs of the example with index `number`, or zeros if there are no examples.
    fn example(&self, number: usize) -> Result<Vec<Var<'t, T>>, Error> {
        let at = self.at;
        let example = |&(input, is_batched): &(Var<'t, T>, bool)| match (is_batched, self.size) {
            (false, _) => Ok(input),
            (true, 0) => {
                let zeros = Tensor::scalar(T::ZERO).try_expand(&input.shape()[1..])?;
                input.tape.try_leaf(&zeros, Op::Variable, Some(at))
            }
            (true, _) => rules::example_of(input, number, at),
        };
        self.inputs.iter().map(example).collect()
    }

    fn stack(&self, results: &[Var<'t, T>]) -> Result<Var<'t, T>, Error> {
        let shape = results[0].shape();
        let mut rows = Vec::with_capacity(results.len());
        for (number, result) in results.iter().enumerate() {
            let own = result.shape();
            if own != shape {
                let message = format!("vmap: the result has shape {own} for example {number}, {shape} for the first");
                return refuse(message, self.at);
            }
            rows.push(result.apply_view(View::Reshape(own.replaced(0..0, &[1])), self.at)?);
        }
        Var::apply_cat(&rows, 0, self.at)
    }
}

/// An observer of a tape. While it exists, the tape notes the nodes whose values are requested.
struct Observer<'t, T: Float> {
    tape: &'t Tape<T>,
    start: usize,
}

impl<'t, T: Float> Observer<'t, T> {
    fn new(tape: &'t Tape<T>) -> Self {
        let mut record = tape.record.borrow_mut();
        record.n_observers += 1;
        Observer { tape, start: record.observed_nodes.len() }
    }

    /// Returns the nodes whose values were requested while the observer existed.
    fn into_nodes(self) -> Vec<NodeIndex> {
        self.tape.record.borrow().observed_nodes[self.start..].to_vec()
    }
}

impl<T: Float> Drop for Observer<'_, T> {
    fn drop(&mut self) {
        let mut record = self.tape.record.borrow_mut();
        record.n_observers -= 1;
        if record.n_observers == 0 {
            record.observed_nodes.clear();
        }
    }
}

/// Converts a function of arrays to a function of slices.
fn slice_function<'t, T: Float, const N: usize, const M: usize>(
    f: impl Fn([Var<'t, T>; N]) -> [Var<'t, T>; M],
) -> impl Fn(&[Var<'t, T>]) -> Vec<Var<'t, T>> {
    move |inputs| f(std::array::from_fn(|position| inputs[position])).to_vec()
}

/// Returns the index of the dimension `dim`, which counts from the end if it is negative. Returns `None` if the shape does not have this
/// dimension.
fn axis_of(dim: isize, shape: &Shape) -> Option<usize> {
    let rank = shape.rank() as isize;
    (-rank..rank).contains(&dim).then(|| dim.rem_euclid(rank) as usize)
}

fn permute<'t, T: Float>(x: Var<'t, T>, order: Vec<usize>, at: Site) -> Result<Var<'t, T>, Error> {
    if order.is_sorted() { Ok(x) } else { x.apply_view(View::Permute(order.into()), at) }
}

/// Returns `at` with the operation name `vmap`, which errors of all methods of [`Vmap`] show.
fn vmap_site(at: Site) -> Site {
    Site { operation: "vmap", ..at }
}

fn refuse<V>(message: String, at: Site) -> Result<V, Error> {
    Err(Error::Refused { message, at })
}

pub(super) fn array<V, const N: usize>(values: Vec<V>) -> [V; N] {
    values.try_into().unwrap_or_else(|_| unreachable!("one for each result"))
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use super::*;
    use crate::transforms::{grad, hessian, jacobian};
    use crate::transforms::{try_vmap, vmap};
    use crate::{BatchedCall, BlendWeight, Buffer, Call, Generator, Operation};

    fn matrix() -> Tensor<f64> {
        Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    }

    #[test]
    fn vmaps_nest() {
        let (x, y) = (matrix(), Tensor::from([[1.0, 0.0, 2.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]));
        // Computes the dot product of every pair of rows, which gives the matrix product with the transpose.
        let products = vmap(
            |[row, others]| {
                let every = Vmap::new().in_dims([None, Some(0)]);
                let [products] = every.record(|[row, other]| [(row * other).sum(..)], [row, others]);
                products
            },
            [&x, &stack(&[y.clone(), y.clone()], 0)],
        );
        assert_eq!(products, x.matmul(y.t()));
    }

    #[test]
    fn derivatives_go_inside_and_outside() {
        let x = matrix();
        // Tests `vmap` of `grad`, `vmap` of a second derivative, and `grad` of `vmap`.
        let gradients = vmap(|[x]| x.pow(3.0).sum(..).grad([x])[0], [&x]);
        assert_eq!(gradients, x.square() * 3.0);
        let second = vmap(|[x]| x.pow(3.0).sum(..).grad([x])[0].sum(..).grad([x])[0], [&x]);
        assert_eq!(second, &x * 6.0);
        let [outside] = grad(|[x]| Vmap::new().record(|[x]| [x.pow(3.0).sum(..)], [x])[0].prod(..), [&x]);
        let sums = x.pow(3.0).sum(1).to_vec();
        assert_eq!(outside, x.square() * 3.0 * Tensor::from([[sums[1]], [sums[0]]]));
        // Tests forward mode through `vmap`, over reverse mode inside of it.
        let h = hessian(|x| Vmap::new().record(|[x]| x.pow(3.0).sum(..).grad([x]), [x])[0].sum(..), &x);
        assert_eq!(h.reshape([6, 6]), Tensor::eye(6) * 6.0);
        let j = jacobian(|x| Vmap::new().record(|[x]| [x.cumsum(0)], [x])[0], &x);
        assert_eq!(j.select(0, 1).select(1, 0).sum(..).item(), 0.0);
        assert_eq!(j.select(0, 1).select(1, 1), Tensor::ones([3, 3]).tril(0));
    }

    #[test]
    fn gradients_reach_inputs_that_are_results_themselves() {
        let tape = Tape::<f64>::new();
        let (x, w) = (tape.var(&Tensor::arange(6)).reshape([2, 3]), tape.var(&Tensor::from([2.0])).expand([3]));
        let [z] = Vmap::new()
            .in_dims([Some(0), None])
            .record(|[x, w]| [(x.reshape([3, 1]).squeeze(1).pow(2.0) * w).sum(..)], [x, w]);
        let [dx, dw] = z.sum(..).grad([x, w]);
        assert_eq!(dx.value(), Tensor::arange(6).reshape([2, 3]) * 4.0);
        assert_eq!(dw.value().to_vec(), [9.0, 17.0, 29.0]);
    }

    #[test]
    fn one_record_serves_any_number_of_examples() {
        let nodes = |examples: usize| {
            let tape = Tape::<f64>::new();
            let x = tape.var(&Tensor::ones([examples, 3]));
            Vmap::new().record(|[x]| x.exp().sum(..).grad([x]), [x]);
            tape.len()
        };
        assert_eq!(nodes(2), nodes(200));
    }

    #[test]
    fn functions_that_read_values_are_called_for_each_example() {
        let x = Tensor::from([[3.0, 1.0, 2.0], [0.5, 4.0, -1.0]]);
        let sorted = vmap(|[x]| x.sort(-1, false).0, [&x]);
        assert_eq!(sorted, x.sort(-1, false).0);
        let branch = vmap(|[x]| if x.amax(0).item() > 3.5 { x * 2.0 } else { -x }, [&x]);
        assert_eq!(branch, Tensor::from([[-3.0, -1.0, -2.0], [1.0, 8.0, -2.0]]));
        // Tests a `vmap` within another one.
        let nested = vmap(|[x]| Vmap::new().record(|[x]| [x.sort(-1, true).0], [x])[0], [&x.unsqueeze(1)]);
        assert_eq!(nested, x.sort(-1, true).0.unsqueeze(1));
        // Reads a value that is the same for all examples. `vmap` then still calls the function only once.
        let (tape, w) = (Tape::new(), Tensor::from([2.0, 1.0]));
        let (x, w) = (tape.var(&x), tape.var(&w));
        Vmap::new().in_dims([Some(0), None]).record(|[x, w]| [x * w.sort(0, false).0.select(0, 0)], [x, w]);
        let before = tape.len();
        Vmap::new().in_dims([Some(0), None]).record(|[x, w]| [x * w.sort(0, false).0.select(0, 0)], [x, w]);
        assert!(tape.len() - before < 20, "{}", tape.len() - before);
        let ragged = try_vmap(|[x]| x.masked_select(&x.value().map(|x| x > 0.0)), [&matrix()]);
        assert_eq!(ragged.unwrap(), matrix());
        let error = try_vmap(|[x]| x.masked_select(&x.value().map(|x| x > 2.0)), [&matrix()]).unwrap_err();
        assert_eq!(error.sentence(), "vmap: the result has shape [3] for example 1, [1] for the first");
    }

    #[test]
    fn random_numbers_are_the_same_for_all_examples() {
        let draw = |x: Var<'_, f64>, looks: bool| {
            if looks {
                x.value();
            }
            x.tape().draw(|generator| generator.uniform()).unwrap()
        };
        for looks in [false, true] {
            let tape = Tape::training(&mut Generator::new(1));
            let x = tape.var(&Tensor::ones([5]));
            let [drawn] = Vmap::new().record(|[x]| [x * draw(x, looks)], [x]);
            let drawn = drawn.value().to_vec();
            assert!(drawn.iter().all(|&number| number == drawn[0]));
        }
    }

    #[test]
    fn running_statistics_do_not_follow_single_examples() {
        let (tape, buffer) = (Tape::training(&mut Generator::new(1)), Buffer::new(Tensor::zeros([3])));
        let (x, w) = (tape.var(&matrix()), tape.var(&Tensor::ones([3])));
        let shared = Vmap::new().in_dims([Some(0), None]);
        let results = shared.try_record(
            |[x, w]| {
                x.tape().blend(&buffer, w, BlendWeight::Fixed(0.1));
                [x * w]
            },
            [x, w],
        );
        assert!(results.is_ok());
        let error = Vmap::new().try_record(
            |[x]| {
                x.tape().blend(&buffer, x, BlendWeight::Fixed(0.1));
                [x]
            },
            [x],
        );
        assert_eq!(error.unwrap_err().sentence(), "vmap: a running statistic cannot follow single examples");
    }

    #[test]
    fn results_may_not_depend_on_an_example() {
        let x = matrix();
        let [constant, itself] = Vmap::new().call(|[x]| [x.tape().constant(Tensor::from([7.0, 8.0])), x], [&x]);
        assert_eq!((constant, itself), (Tensor::from([[7.0, 8.0], [7.0, 8.0]]), x));
    }

    #[test]
    fn batches_of_one_and_of_none() {
        for examples in [0, 1] {
            let x = Tensor::<f64>::ones([examples, 4]);
            let [z, dx] = Vmap::new().call(|[x]| [x.cumsum(0), x.square().sum(..).grad([x])[0]], [&x]);
            assert_eq!((z, dx), (x.cumsum(1), &x * 2.0));
            let sorted = vmap(|[x]| x.sort(0, false).0, [&x]);
            assert_eq!(sorted, x);
        }
    }

    #[test]
    fn errors_have_the_arguments_and_the_callers_line() {
        let (x, y) = (matrix(), Tensor::<f64>::ones([3, 2]));
        let line = line!() + 1;
        let error = try_vmap(|[x, y]| x.sum(..) * y.sum(..), [&x, &y]).unwrap_err();
        let Error::BatchSizes { sizes, at } = &error else { panic!("{error}") };
        assert_eq!((&sizes[..], at.operation, at.location.line()), (&[2, 3][..], "vmap", line));
        assert_eq!(at.location.file(), file!());
        let sum = |in_dim: isize, out_dim: isize, x: &Tensor<f64>| {
            let options = Vmap::new().in_dims([Some(in_dim)]).out_dims(out_dim);
            options.try_call(|[x]| [x.sum(..)], [x]).map(|[sum]| sum)
        };
        assert_eq!(sum(-1, -1, &x).unwrap().to_vec(), [5.0, 7.0, 9.0]);
        for (in_dim, out_dim, x, which) in
            [(2, 0, &x, "in_dim"), (-3, 0, &x, "in_dim"), (0, 1, &x, "out_dim"), (0, 0, &Tensor::scalar(1.0), "in_dim")]
        {
            let error = sum(in_dim, out_dim, x).unwrap_err();
            assert!(matches!(&error, Error::BatchDim { which: named, .. } if *named == which), "{error}");
        }
        let error = sum(0, 0, &Tensor::scalar(1.0)).unwrap_err();
        assert_eq!(error.sentence(), "vmap: Got in_dim=0 for input 0, which has 0 dimensions: its shape is []");
        let sentence = |options: Vmap| options.try_call(|[x]| [x, x], [&x]).unwrap_err().sentence();
        assert_eq!(sentence(Vmap::new().in_dims([None])), "vmap: no input has a dimension of examples");
        assert_eq!(sentence(Vmap::new().in_dims([None, Some(1)])), "vmap: got 2 in_dims for 1 inputs");
        assert_eq!(sentence(Vmap::new().out_dims([0, 0, 1])), "vmap: got 3 out_dims for 2 results");
        let (one, other) = (Tape::new(), Tape::new());
        let vars = [one.var(&x), other.var(&x)];
        assert!(matches!(Vmap::new().try_record(|[x, _]| [x], vars), Err(Error::OtherTape { .. })));
    }

    /// The operation x², for tests of batching rules. If the field is `None`, the operation has no batching rule. Otherwise the function in
    /// the field may change the shape of the rule's result.
    struct Square(Option<fn(&mut Shape)>);

    impl<T: Float> Operation<T> for Square {
        fn name(&self) -> &'static str {
            "my_square"
        }

        fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
            Ok(inputs[0].clone())
        }

        fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
            Ok(inputs[0].try_square()?)
        }

        fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
            Some(g * call.input(0) * 2.0)
        }

        fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
            let mut shape = call.shape();
            self.0?(&mut shape);
            Some(call.batched(0).square().expand(shape))
        }
    }

    #[test]
    fn an_operation_of_your_own_needs_no_rule() {
        let (x, tape) = (matrix(), Tape::new());
        let var = tape.var(&x);
        let squares = |rule| Vmap::new().try_record(|[x]| [x.tape().apply(Square(rule), &[x])], [var]);
        let [by_loop] = squares(None).unwrap();
        let [by_rule] = squares(Some(|_| ())).unwrap();
        for squares in [by_loop, by_rule] {
            assert_eq!(squares.value(), x.square());
            assert_eq!(squares.sum(..).grad([var])[0].value(), &x * 2.0);
        }
        let error = squares(Some(|shape| shape.insert(0, 2))).unwrap_err();
        assert_eq!(
            error.sentence(),
            "the batching rule of 'my_square' gave shape [2, 2, 3], expected [2, 3]: the batch dimension first"
        );
        let [none] = Vmap::new().record(|[x]| [x.tape().apply(Square(None), &[x])], [tape.var(&Tensor::ones([0, 3]))]);
        assert_eq!(none.value().shape(), &[0, 3]);
    }

    /// Checks that the products of all examples with the same matrix become one product of two matrices, and that the matrix is not repeated.
    #[test]
    fn products_fold() {
        let (x, w) = (Tensor::from_fn([4, 3], |i| (i[0] * 3 + i[1]) as f64), matrix());
        let tape = Tape::new();
        let (vmap, batch) = (Vmap::new(), [tape.var(&x)]);
        for [product] in [
            vmap.record(|[x]| [x.matmul(&w.t())], batch),
            vmap.record(|[x]| [x.tape().constant(&w).matmul(x)], batch),
            vmap.record(|[x]| [x.unsqueeze(0).matmul(&w.t()).squeeze(0)], batch),
            vmap.record(|[x]| [x.tape().constant(&w).matmul(x.unsqueeze(1)).squeeze(1)], batch),
        ] {
            assert_eq!(product.value(), x.matmul(w.t()));
        }
        let record = tape.record.borrow();
        for node in 0..record.len() as u32 {
            let (name, shape) = (record.name(node), tape.var_of(node).shape());
            assert!(name != "expand" && (name != "matmul" || shape.rank() == 2), "{name} {shape}");
        }
    }

    /// Checks that a function that is called for each example changes a buffer once, like a function that is called once.
    #[test]
    fn changes_of_buffers_are_recorded_once() {
        for looks in [false, true] {
            let (mut mean, mut count) = (Buffer::new(Tensor::zeros([3])), Buffer::new(Tensor::from([0i64])));
            let tape = Tape::training(&mut Generator::new(1));
            let (x, w) = (tape.var(&matrix()), tape.var(&Tensor::ones([3])));
            let [product] = Vmap::new().in_dims([Some(0), None]).record(
                |[x, w]| {
                    if looks {
                        x.value();
                    }
                    x.tape().blend(&mean, w, BlendWeight::Fixed(0.5));
                    x.tape().count(&count);
                    [x * w]
                },
                [x, w],
            );
            let gradients = product.sum(..).backward();
            gradients.update_statistic(&mut mean);
            gradients.update_count(&mut count);
            assert_eq!((mean.value.to_vec(), count.value.to_vec()), (vec![0.5; 3], vec![1]), "{looks}");
        }
    }

    /// Checks that the change of a statistic by any example is refused. Here only the second example changes the buffer.
    #[test]
    fn a_later_example_may_not_change_a_statistic() {
        let (tape, buffer) = (Tape::training(&mut Generator::new(1)), Buffer::new(Tensor::zeros([3])));
        let x = tape.var(&matrix());
        let error = Vmap::new().try_record(
            |[x]| {
                if x.amax(0).item() > 3.5 {
                    x.tape().blend(&buffer, x, BlendWeight::Fixed(0.1));
                }
                [x]
            },
            [x],
        );
        assert_eq!(error.unwrap_err().sentence(), "vmap: a running statistic cannot follow single examples");
    }
}
