//! Custom operations with any number of results.

use std::cell::RefCell;
use std::rc::Rc;

use wengert_macros::twins;
use wengert_tensor::ops::{TensorLike as _, Views as _, join, try_cat};
use wengert_tensor::plan::NodeIndex;
use wengert_tensor::{Float, Shape, Site, Tensor, View};

use crate::tape::RuleFailure;
use crate::{BatchedCall, Call, Error, Operation, Tape, Var};

/// A custom operation with any number of results, and one rule that gives the gradients of all inputs. PyTorch:
/// `torch.autograd.Function`. For one result see [`Operation`].
///
/// The rule consists of recorded operations, so it can be differentiated again. Forward mode differentiates the rule with respect to
/// the gradients, in which the rule is linear.
///
/// ```
/// # mod wengert { pub use wengert_autograd as autograd; }
/// use wengert::autograd::{Error, Function, FunctionCall, prelude::*};
///
/// /// Radius and angle of points in the plane.
/// struct Polar;
///
/// impl<T: Float> Function<T> for Polar {
///     fn name(&self) -> &'static str {
///         "polar"
///     }
///
///     fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
///         match inputs {
///             [x, y] if x == y => Ok(vec![x.clone(), x.clone()]),
///             _ => Err("polar takes two inputs of one shape".to_owned()),
///         }
///     }
///
///     fn run(&self, inputs: &[Tensor<T>]) -> Result<Vec<Tensor<T>>, Error> {
///         let (x, y) = (&inputs[0], &inputs[1]);
///         Ok(vec![x.try_hypot(y)?, y.try_atan2(x)?])
///     }
///
///     fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
///         let [x, y] = call.inputs[..] else { unreachable!() };
///         let (radius, [along, around]) = (call.outputs[0], [gradients[0], gradients[1]]);
///         let squared = radius.square();
///         let dx = along * x / radius - around * y / squared;
///         let dy = along * y / radius + around * x / squared;
///         vec![Some(dx), Some(dy)]
///     }
/// }
///
/// let tape = Tape::<f64>::new();
/// let (x, y) = (tape.var(&Tensor::from([3.0])), tape.var(&Tensor::from([4.0])));
/// let [radius, angle] = tape.apply_function(Polar, &[x, y])[..] else { unreachable!() };
/// assert_eq!(radius.value().to_vec(), [5.0]);
/// let gradients = (radius + angle * 25.0).sum(..).backward();
/// assert_eq!(gradients.of(x).to_vec(), [0.6 - 4.0]);
/// // Forward mode, without a rule of its own.
/// let ones = tape.constant(&Tensor::ones([1]));
/// assert!((radius.jvp(&[(x, ones)]).item() - 0.6).abs() < 1e-15);
/// ```
pub trait Function<T: Float = f32>: 'static {
    /// Returns the name of the function, for errors and graphs.
    fn name(&self) -> &'static str;

    /// Returns the shapes of the results, or a sentence that says why the function refuses inputs of these shapes.
    ///
    /// # Errors
    ///
    /// If the function refuses inputs of these shapes.
    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String>;

    /// Returns the results, which have the shapes that [`shapes`](Self::shapes) returns. If they have other shapes, the evaluation returns
    /// an error.
    ///
    /// # Errors
    ///
    /// If the function refuses these values, or there is not enough memory.
    fn run(&self, inputs: &[Tensor<T>]) -> Result<Vec<Tensor<T>>, Error>;

    /// Returns the gradients with respect to each input, computed from the gradients of all results. The gradient of a
    /// result that nothing reads is zeros. `None` stands for a derivative that is zero everywhere. Recording the
    /// derivative is an error if the list does not have one entry for each input. It is also an error if a gradient has
    /// another shape than its input, or belongs to another tape.
    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>>;

    /// Returns the results for all examples, each with the batch dimension first. A batched input has the batch dimension first too.
    /// Recording the batch is an error if the number or the shapes of the results are wrong.
    ///
    /// By default (`None`), the function is recorded once for each example, and the results are stacked. That gives the same values, but
    /// takes as long as a loop. PyTorch: the static method `vmap` of `torch.autograd.Function`.
    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Vec<Var<'t, T>>> {
        let _ = call;
        None
    }
}

/// One call of a [`Function`].
#[derive(Clone, Debug)]
pub struct FunctionCall<'t, T: Float = f32> {
    /// The inputs of the call.
    pub inputs: Vec<Var<'t, T>>,
    /// The results of the call.
    pub outputs: Vec<Var<'t, T>>,
    failure: RuleFailure,
}

impl<T: Float> FunctionCall<'_, T> {
    /// Returns the value of `result`. If `result` is an error, returns `None`, and recording the derivative returns the error. A rule returns
    /// errors in this way, because its own result is a list of `Option`s. [`Call::value_of`] has an example.
    pub fn value_of<V>(&self, result: Result<V, Error>) -> Option<V> {
        self.failure.value_of(result)
    }
}

#[twins]
impl<T: Float> Tape<T> {
    /// Records a custom function and returns its results.
    ///
    /// # Errors
    ///
    /// If the function refuses the shapes of the inputs, an input belongs to another tape, or the tape is full. Also if no memory can hold
    /// results of the shapes that the function returns.
    pub fn try_apply_function<'t>(
        &'t self,
        function: impl Function<T>,
        inputs: &[Var<'t, T>],
    ) -> Result<Vec<Var<'t, T>>, Error> {
        self.record_function(function, inputs, Site::here("apply_function"))
    }
}

impl<T: Float> Tape<T> {
    /// Records a custom function for the line of code in `at` and returns its results.
    ///
    /// # Errors
    ///
    /// If the function refuses the shapes of the inputs, an input belongs to another tape, or the tape is full. Also if no memory can hold
    /// results of the shapes that the function returns.
    #[doc(hidden)]
    pub fn record_function<'t>(
        &'t self,
        function: impl Function<T>,
        inputs: &[Var<'t, T>],
        at: Site,
    ) -> Result<Vec<Var<'t, T>>, Error> {
        let shapes: Vec<Shape> = inputs.iter().map(|input| input.shape()).collect();
        let shapes = function.shapes(&shapes).map_err(|message| Error::Refused { message, at })?;
        let operation = PackedFunction { function, shapes: shapes.clone(), last_gradients: RefCell::default(), at };
        let refused = |message| Error::Refused { message, at: Site { operation: operation.name(), ..at } };
        Operation::<T>::shape(&operation, &[]).map_err(refused)?;
        let packed = self.record_operation(Rc::new(operation), inputs, at)?;
        unpack(packed, &shapes)
    }
}

/// The operation that runs a [`Function`]. An operation has a single result. So if the function does not have exactly
/// one result, the operation flattens the results and concatenates them to one vector.
struct PackedFunction<F> {
    function: F,
    shapes: Vec<Shape>,
    last_gradients: RefCell<Option<LastGradients>>,
    /// The line of code that called the function.
    at: Site,
}

/// The gradients that a function's rule has recorded most recently. The rule records the gradients of all inputs together, so it is called
/// only once for each upstream gradient.
struct LastGradients {
    call: CallKey,
    gradients: Vec<Option<NodeIndex>>,
}

/// The key of a call of a rule. The operation alone does not identify a call. If a batch records the function once for each example, the
/// nodes of all examples share one operation.
#[derive(Clone, Copy, PartialEq)]
struct CallKey {
    /// The id of the tape.
    tape: u64,
    /// The node of the function's result.
    output: NodeIndex,
    /// The node of the upstream gradient.
    gradient: NodeIndex,
}

impl<T: Float, F: Function<T>> Operation<T> for PackedFunction<F> {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn shape(&self, _inputs: &[Shape]) -> Result<Shape, String> {
        let add = |total: usize, shape: &Shape| total.checked_add(shape.checked_numel()?);
        let total = self.shapes.iter().try_fold(0, add).filter(|&total| total <= isize::MAX as usize / size_of::<T>());
        let refusal =
            || format!("'{}' declares results that no memory can hold: {:?}", self.function.name(), self.shapes);
        let total = total.ok_or_else(refusal)?;
        Ok(if let [shape] = &self.shapes[..] { shape.clone() } else { Shape::from([total]) })
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        let mut results = self.function.run(inputs)?;
        let declared = |(result, shape): (&Tensor<T>, &Shape)| result.shape() == shape;
        if results.len() != self.shapes.len() || !results.iter().zip(&self.shapes).all(declared) {
            let shapes: Vec<&Shape> = results.iter().map(Tensor::shape).collect();
            let message = format!(
                "'{}' gave results of shapes {shapes:?}, but declared {:?}\n  hint: `run` returns results of the shapes that `shapes` returns",
                self.function.name(),
                self.shapes
            );
            return Err(Error::Refused { message, at: self.at });
        }
        match results.len() {
            0 => return Ok(Tensor::try_zeros([0])?),
            1 => return Ok(results.swap_remove(0)),
            _ => {}
        }
        let flat = results.iter().map(|result| result.try_flatten(0, -1)).collect::<Result<Vec<_>, _>>()?;
        Ok(try_cat(&flat, 0)?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let key = CallKey { tape: g.tape.id, output: call.output().index, gradient: g.index };
        let is_known = self.last_gradients.borrow().as_ref().is_some_and(|last| last.call == key);
        if !is_known {
            let gradients = call.value_of(self.gradients(call, g))?;
            self.last_gradients.replace(Some(LastGradients { call: key, gradients }));
        }
        let index = self.last_gradients.borrow().as_ref().and_then(|last| last.gradients[input]);
        index.map(|index| g.tape.var_of(index))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let results = self.function.batch(call)?;
        let expected: Vec<Shape> = self.shapes.iter().map(|shape| call.with_batch(shape)).collect();
        let packed = match &results[..] {
            _ if results.len() != expected.len() => {
                let (got, expected) = (results.len(), expected.len());
                let name = self.function.name();
                let message =
                    format!("the batching rule of '{name}' gave {got} results, but the function declared {expected}");
                Err(Error::Refused { message, at: self.at })
            }
            [result] => Ok(*result),
            _ => pack_batch(&results, &expected, self.function.name(), self.at),
        };
        call.value_of(packed)
    }
}

impl<F> PackedFunction<F> {
    /// Records the gradients with respect to all inputs of `call`, for the upstream gradient `g`. Returns their nodes, or `None` for an
    /// input without gradient.
    fn gradients<'t, T: Float>(&self, call: &Call<'t, T>, g: Var<'t, T>) -> Result<Vec<Option<NodeIndex>>, Error>
    where
        F: Function<T>,
    {
        let (inputs, outputs) = (call.inputs().to_vec(), unpack(call.output(), &self.shapes)?);
        let call = FunctionCall { inputs, outputs, failure: RuleFailure::default() };
        let gradients = self.function.vjp(&call, &unpack(g, &self.shapes)?);
        call.failure.take()?;
        if gradients.len() != call.inputs.len() {
            let (name, expected, got) = (self.function.name(), call.inputs.len(), gradients.len());
            let message = format!("the vjp rule of '{name}' gave {got} gradients for {expected} inputs");
            return Err(Error::Refused { message, at: self.at });
        }
        g.tape.check_owns(gradients.iter().flatten().copied(), self.at)?;
        Ok(gradients.iter().map(|gradient| gradient.map(|g| g.index)).collect())
    }
}

/// Concatenates the batched results of a function into one matrix with a row for each example. Each result has the batch dimension first.
/// Its other dimensions are flattened.
fn pack_batch<'t, T: Float>(
    results: &[Var<'t, T>],
    expected: &[Shape],
    operation: &'static str,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    let flat = results.iter().zip(expected).map(|(result, expected)| {
        if result.shape() != *expected {
            let (got, expected) = (Box::new(result.shape()), Box::new(expected.clone()));
            return Err(Error::BatchShape { operation, got, expected, recorded: at.location });
        }
        let (size, example) = (expected[0], Shape::from(&expected[1..]));
        result.apply_view(View::Reshape(Shape::from([size, example.numel()])), at)
    });
    join(&flat.collect::<Result<Vec<_>, _>>()?, 1, at)
}

/// Splits the vector `packed` into the results of a function. If there is a single result, `packed` is this result.
fn unpack<'t, T: Float>(packed: Var<'t, T>, shapes: &[Shape]) -> Result<Vec<Var<'t, T>>, Error> {
    if shapes.len() == 1 {
        return Ok(vec![packed]);
    }
    let mut start = 0;
    let parts = shapes.iter().map(|shape| {
        let part = packed.try_narrow(0, start, shape.numel())?.try_reshape(shape)?;
        start += shape.numel();
        Ok(part)
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use super::*;
    use crate::gradcheck;

    /// The function (x, y) ↦ (x y, x + y). It counts how often its derivative rule is recorded.
    struct ProductAndSum(std::rc::Rc<std::cell::Cell<usize>>);

    impl<T: Float> Function<T> for ProductAndSum {
        fn name(&self) -> &'static str {
            "product_and_sum"
        }

        fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
            Ok(vec![inputs[0].clone(), inputs[0].clone()])
        }

        fn run(&self, inputs: &[Tensor<T>]) -> Result<Vec<Tensor<T>>, Error> {
            Ok(vec![inputs[0].try_mul(&inputs[1])?, inputs[0].try_add(&inputs[1])?])
        }

        fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
            self.0.set(self.0.get() + 1);
            let [x, y] = call.inputs[..] else { unreachable!() };
            vec![Some(gradients[0] * y + gradients[1]), Some(gradients[0] * x + gradients[1])]
        }
    }

    /// A function whose rule has no derivative for negative numbers.
    struct Refusing;

    impl Function<f64> for Refusing {
        fn name(&self) -> &'static str {
            "refusing"
        }

        fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
            Ok(vec![inputs[0].clone()])
        }

        fn run(&self, inputs: &[Tensor<f64>]) -> Result<Vec<Tensor<f64>>, Error> {
            Ok(vec![inputs[0].clone()])
        }

        fn vjp<'t>(&self, call: &FunctionCall<'t, f64>, gradients: &[Var<'t, f64>]) -> Vec<Option<Var<'t, f64>>> {
            let refusal = Error::Refused { message: "no derivative below 0".into(), at: Site::here("refusing") };
            let is_negative = call.inputs[0].value().iter().any(|x| x < 0.0);
            vec![call.value_of(if is_negative { Err(refusal) } else { Ok(gradients[0]) })]
        }
    }

    #[test]
    fn a_rule_can_return_an_error() {
        for (number, expected) in [(2.0, Ok(1.0)), (-2.0, Err("no derivative below 0"))] {
            let tape = Tape::new();
            let x = tape.var(&Tensor::scalar(number));
            let y = tape.apply_function(Refusing, &[x])[0];
            for result in [
                y.try_grad([x]).map(|[slope]| slope.item()),
                y.try_jvp(&[(x, tape.constant(1.0))]).map(|slope| slope.item()),
                y.try_backward().map(|gradients| gradients.of(x).item()),
            ] {
                match expected {
                    Ok(slope) => assert_eq!(result.unwrap(), slope),
                    Err(sentence) => assert!(result.unwrap_err().to_string().contains(sentence)),
                }
            }
        }
    }

    #[test]
    fn derivatives_of_both_modes_and_both_orders() {
        let count: std::rc::Rc<std::cell::Cell<usize>> = Default::default();
        let (x, y) = (Tensor::from([[1.5, -2.0], [0.5, 3.0]]), Tensor::from([[-0.5, 1.0], [2.0, 0.25]]));
        let inner = std::rc::Rc::clone(&count);
        let checked = gradcheck(
            |inputs: [Var<'_, f64>; 2]| {
                let results = inputs[0].tape().apply_function(ProductAndSum(inner.clone()), &inputs);
                results[0].sin() * results[1]
            },
            [&x, &y],
        );
        checked.unwrap();
        assert!(count.get() > 0);
    }

    #[test]
    fn a_batch_is_a_loop() {
        let (x, y) = (Tensor::from([[1.5, -2.0], [0.5, 3.0]]), Tensor::from([-0.5, 1.0]));
        let [gradients] = crate::transforms::Vmap::new().in_dims([Some(0), None]).call(
            |[x, y]| {
                let results = x.tape().apply_function(ProductAndSum(std::rc::Rc::default()), &[x, y]);
                (results[0] * results[1]).sum(..).grad([x])
            },
            [&x, &y],
        );
        // The gradient of the sum of x y (x + y) with respect to x.
        assert_eq!(gradients, &x * &y * 2.0 + y.square());
    }

    /// The function of vectors (x, y) ↦ (x y, Σ x). It has `declared` results (1 or 2), and its batching rule returns `given` results.
    struct ProductAndTotal {
        declared: usize,
        given: usize,
    }

    impl Function<f64> for ProductAndTotal {
        fn name(&self) -> &'static str {
            "product_and_total"
        }

        fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
            let shapes = [inputs[0].clone(), inputs[0][..inputs[0].rank() - 1].into()];
            Ok(shapes[..self.declared].to_vec())
        }

        fn run(&self, inputs: &[Tensor<f64>]) -> Result<Vec<Tensor<f64>>, Error> {
            let results = [inputs[0].try_mul(&inputs[1])?, inputs[0].try_sum(-1)?];
            Ok(results[..self.declared].to_vec())
        }

        fn vjp<'t>(&self, call: &FunctionCall<'t, f64>, gradients: &[Var<'t, f64>]) -> Vec<Option<Var<'t, f64>>> {
            let [x, y] = call.inputs[..] else { unreachable!() };
            let total = gradients.get(1).map(|g| g.unsqueeze(-1));
            vec![Some(total.map_or(gradients[0] * y, |total| gradients[0] * y + total)), Some(gradients[0] * x)]
        }

        fn batch<'t>(&self, call: &BatchedCall<'t, f64>) -> Option<Vec<Var<'t, f64>>> {
            let inputs = [call.batched(0), call.batched(1)];
            let function = ProductAndTotal { declared: self.given, given: self.given };
            Some(inputs[0].tape().apply_function(function, &inputs))
        }
    }

    #[test]
    fn a_batching_rule_is_used() {
        let (x, y) = (Tensor::from([[1.5, -2.0], [0.5, 3.0], [4.0, 0.0]]), Tensor::from([-0.5, 1.0]));
        for count in [1, 2] {
            let tape = Tape::<f64>::new();
            let inputs = [tape.var(&x), tape.var(&y)];
            let [gradients] = crate::transforms::Vmap::new().in_dims([Some(0), None]).record(
                |[x, y]| {
                    let function = ProductAndTotal { declared: count, given: count };
                    let results = x.tape().apply_function(function, &[x, y]);
                    [results.iter().fold(x.tape().constant(0.0), |sum, result| sum + result.square().sum(..)).grad([x])
                        [0]]
                },
                inputs,
            );
            // The gradients of Σ (x y)² and of (Σ x)² with respect to x.
            let total = if count == 2 { x.sum_keepdim(1) * 2.0 } else { Tensor::zeros([3, 1]) };
            assert_eq!(gradients.value(), &x * y.square() * 2.0 + total);
            // The tape has two calls of the function: one for a single example, and one for the whole batch. It has no call for each
            // example.
            assert_eq!(tape.calls("product_and_total").len(), 2);
        }
    }

    #[test]
    #[should_panic(expected = "the batching rule of 'product_and_total' gave 1 results, but the function declared 2")]
    fn a_batching_rule_with_other_results_is_refused() {
        let x = Tensor::ones([3, 2]);
        let _ = crate::transforms::Vmap::new().call(
            |[x]| {
                let results = x.tape().apply_function(ProductAndTotal { declared: 2, given: 1 }, &[x, x]);
                [results[0].sum(..) * results[1]]
            },
            [&x],
        );
    }

    #[test]
    fn a_single_result_is_not_packed() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::ones([3, 2]));
        let nodes = tape.len();
        let results = tape.apply_function(ProductAndTotal { declared: 1, given: 1 }, &[x, x]);
        assert_eq!((results[0].shape(), tape.len()), (Shape::from([3, 2]), nodes + 1));
    }

    /// A function whose results may have other shapes than it declares, and whose rule returns `gradients` gradients.
    struct Undeclared {
        declared: Vec<Shape>,
        given: Vec<Shape>,
        gradients: usize,
    }

    impl Function<f64> for Undeclared {
        fn name(&self) -> &'static str {
            "undeclared"
        }

        fn shapes(&self, _inputs: &[Shape]) -> Result<Vec<Shape>, String> {
            Ok(self.declared.clone())
        }

        fn run(&self, _inputs: &[Tensor<f64>]) -> Result<Vec<Tensor<f64>>, Error> {
            Ok(self.given.iter().map(Tensor::ones).collect())
        }

        fn vjp<'t>(&self, call: &FunctionCall<'t, f64>, _gradients: &[Var<'t, f64>]) -> Vec<Option<Var<'t, f64>>> {
            vec![Some(call.inputs[0]); self.gradients]
        }
    }

    #[test]
    fn results_of_other_shapes_than_declared_are_an_error() {
        let shapes = |sizes: &[&[usize]]| sizes.iter().map(|&sizes| Shape::from(sizes)).collect::<Vec<_>>();
        let declared = shapes(&[&[2, 3], &[2]]);
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::ones([2]));
        // The third list has as many elements in total as the declared shapes, so only a comparison of the shapes can detect the error.
        for given in [&[&[2usize, 3][..]][..], &[&[2, 3], &[3]], &[&[3, 2], &[2]], &[&[2, 3], &[2], &[2]], &[]] {
            let function = Undeclared { declared: declared.clone(), given: shapes(given), gradients: 1 };
            let results = tape.apply_function(function, &[x]);
            let text = results[0].try_value().unwrap_err().to_string();
            assert!(text.starts_with("'undeclared' gave results of shapes [") && text.contains(file!()), "{text}");
        }
        for declared in [shapes(&[&[usize::MAX], &[2]]), shapes(&[&[1 << 40, 1 << 40]]), shapes(&[&[1 << 62]])] {
            let function = Undeclared { declared, given: Vec::new(), gradients: 1 };
            let text = tape.try_apply_function(function, &[x]).unwrap_err().to_string();
            assert!(text.starts_with("'undeclared' declares results that no memory can hold: ["), "{text}");
        }
    }

    #[test]
    fn a_function_may_have_no_results() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::ones([2]));
        let function = Undeclared { declared: Vec::new(), given: Vec::new(), gradients: 1 };
        assert_eq!(tape.apply_function(function, &[x]).len(), 0);
        assert!(tape.first_non_finite().is_none());
    }

    #[test]
    fn the_rule_is_recorded_once_for_all_inputs() {
        let count = std::rc::Rc::default();
        let tape = Tape::<f64>::new();
        let (x, y) = (tape.var(&Tensor::from([3.0])), tape.var(&Tensor::from([5.0])));
        let results = tape.apply_function(ProductAndSum(std::rc::Rc::clone(&count)), &[x, y]);
        let gradients = (results[0] + results[1] * 2.0).sum(..).backward();
        assert_eq!((gradients.of(x).to_vec(), gradients.of(y).to_vec()), (vec![7.0], vec![5.0]));
        assert_eq!(count.get(), 1);
    }

    /// A function of one input with results of the input's shape. Its batching rule returns results of the shapes `given`.
    #[derive(Clone)]
    struct Batched {
        count: usize,
        given: Vec<Shape>,
    }

    impl Function<f64> for Batched {
        fn name(&self) -> &'static str {
            "batched"
        }

        fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
            Ok(vec![inputs[0].clone(); self.count])
        }

        fn run(&self, inputs: &[Tensor<f64>]) -> Result<Vec<Tensor<f64>>, Error> {
            Ok(vec![inputs[0].clone(); self.count])
        }

        fn vjp<'t>(&self, _: &FunctionCall<'t, f64>, gradients: &[Var<'t, f64>]) -> Vec<Option<Var<'t, f64>>> {
            vec![Some(gradients[0])]
        }

        fn batch<'t>(&self, call: &BatchedCall<'t, f64>) -> Option<Vec<Var<'t, f64>>> {
            Some(self.given.iter().map(|shape| call.input(0).sum(..).expand(shape)).collect())
        }
    }

    #[test]
    fn wrong_results_of_a_batching_rule_are_errors() {
        let x = Tensor::<f64>::ones([3, 2]);
        let shapes = |sizes: &[&[usize]]| sizes.iter().map(|&sizes| Shape::from(sizes)).collect::<Vec<_>>();
        let (right, wrong): (&[usize], &[usize]) = (&[3, 2], &[2, 3]);
        for (count, given, sentence) in [
            (1, vec![], "the batching rule of 'batched' gave 0 results, but the function declared 1"),
            (1, vec![right, right], "the batching rule of 'batched' gave 2 results, but the function declared 1"),
            (2, vec![right], "the batching rule of 'batched' gave 1 results, but the function declared 2"),
            (
                1,
                vec![wrong],
                "the batching rule of 'batched' gave shape [2, 3], expected [3, 2]: the batch dimension first",
            ),
            (
                2,
                vec![right, wrong],
                "the batching rule of 'batched' gave shape [2, 3], expected [3, 2]: the batch dimension first",
            ),
        ] {
            let function = Batched { count, given: shapes(&given) };
            let options = crate::transforms::Vmap::new();
            let called = options.try_call(|[x]| [x.tape().apply_function(function.clone(), &[x])[0]], [&x]);
            let error = called.unwrap_err();
            assert_eq!(error.sentence(), sentence);
            assert!(error.to_string().contains(file!()), "{error}");
            let tape = Tape::new();
            let recorded =
                options.try_record(|[x]| [x.tape().apply_function(function.clone(), &[x])[0]], [tape.var(&x)]);
            assert_eq!(recorded.unwrap_err().sentence(), sentence);
        }
    }

    #[test]
    fn wrong_gradients_of_a_rule_are_errors() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::ones([2]));
        let one = vec![Shape::from([2])];
        for gradients in [0, 2] {
            let function = Undeclared { declared: one.clone(), given: one.clone(), gradients };
            let y = tape.apply_function(function, &[x])[0].sum(..);
            for error in [y.try_backward().unwrap_err(), y.try_jvp(&[(x, x)]).unwrap_err()] {
                let expected = format!("the vjp rule of 'undeclared' gave {gradients} gradients for 1 inputs");
                assert_eq!(error.sentence(), expected);
                assert!(error.to_string().contains(file!()), "{error}");
            }
        }
    }
}
