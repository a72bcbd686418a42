//! What an operation must say of itself: its name, its result's shape, how it runs, and its derivative in both modes.
//!
//! Our own operations with parameters implement this trait, and so do a user's. The elementwise primitives have their rules
//! in [`rules`](crate::rules), a line each.

use smallvec::SmallVec;
use wengert_tensor::{Float, Shape, Tensor};

use crate::{Error, Var};

/// An operation on variables.
///
/// The derivative is given as formulas over recorded variables, so that it can be differentiated again: second and higher
/// derivatives, and forward over reverse, need nothing more.
///
/// ```
/// use wengert_autograd::{Call, Error, Operation, prelude::*};
///
/// /// x³, with a derivative of its own.
/// struct Cube;
///
/// impl<T: Float> Operation<T> for Cube {
///     fn name(&self) -> &'static str {
///         "cube"
///     }
///
///     fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
///         Ok(inputs[0].clone())
///     }
///
///     fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
///         let x = &inputs[0];
///         Ok(x.try_mul(x)?.try_mul(x)?)
///     }
///
///     fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
///         let x = call.input(0);
///         Some(g * x * x * 3.0)
///     }
///
///     fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
///         self.vjp(call, input, v) // elementwise: the same formula
///     }
/// }
///
/// let tape = Tape::<f64>::new();
/// let x = tape.var(&Tensor::from([2.0]));
/// let y = tape.apply(Cube, &[x]);
/// assert_eq!(y.value().to_vec(), [8.0]);
/// assert_eq!(y.grad([x])[0].value().to_vec(), [12.0]);
/// ```
pub trait Operation<T: Float>: 'static {
    /// The name, as errors and graphs show it.
    fn name(&self) -> &'static str;

    /// The result's shape, or a sentence that says why these inputs are refused.
    ///
    /// # Errors
    ///
    /// Where the operation refuses inputs of these shapes.
    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String>;

    /// The result.
    ///
    /// # Errors
    ///
    /// Where the operation refuses these values, or memory cannot hold the result.
    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error>;

    /// Reverse mode: the upstream gradient `g`, of the result's shape, times the derivative with respect to input number
    /// `input`, of that input's shape. `None` where the derivative is zero everywhere.
    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>>;

    /// Forward mode: the derivative with respect to input number `input` times the tangent `v`, of that input's shape; of
    /// the result's shape. `None` where the derivative is zero everywhere.
    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>>;

    /// Whether a derivative exists. Where it does not, asking for one is an error that names this operation and the line
    /// that recorded it.
    fn is_differentiable(&self) -> bool {
        true
    }
}

/// One use of an operation: its inputs and its result, as variables.
#[derive(Clone, Debug)]
pub struct Call<'t, T: Float> {
    pub(crate) inputs: SmallVec<[Var<'t, T>; 3]>,
    pub(crate) output: Var<'t, T>,
}

impl<'t, T: Float> Call<'t, T> {
    /// Input number `position`.
    ///
    /// # Panics
    ///
    /// Where the operation was given fewer inputs.
    #[track_caller]
    pub fn input(&self, position: usize) -> Var<'t, T> {
        self.inputs[position]
    }

    /// All inputs.
    pub fn inputs(&self) -> &[Var<'t, T>] {
        &self.inputs
    }

    /// The result.
    pub fn output(&self) -> Var<'t, T> {
        self.output
    }
}
