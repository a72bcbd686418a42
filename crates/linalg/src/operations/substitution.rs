//! The solution of triangular systems.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::ops::{Diagonals as _, Products as _};
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use crate::array::{Array, apply};
use crate::batches::for_each_range;
use crate::factors::{self, Coefficients, Failure};
use crate::kernel::Kernel;
use crate::matrices::{copy_of, sizes, transposed};

/// X = A⁻¹ B for a triangular A.
#[derive(Clone, Copy, Debug)]
pub(super) struct Substitute(pub(super) Coefficients);

impl Kernel for Substitute {
    const NAME: &'static str = "solve_triangular";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[1].clone()]
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (a, mut x) = (inputs[0].try_contiguous()?, copy_of(&inputs[1])?);
        let (n, width) = sizes(x.shape());
        let Some(matrices) = a.as_slice().filter(|_| x.numel() > 0) else { return Ok(vec![x]) };
        let count = x.numel() / (n * width);
        let solved = for_each_range(count, n * n * width, [x.make_mut()], |first, count, [x]| {
            Ok(factors::solve_triangular_all(self.0, &matrices[first * n * n..][..count * n * n], x, (n, width))?)
        });
        solved.map_err(|failure: Failure| failure.error(&[], at, |_, _| String::new()))?;
        Ok(vec![x])
    }

    /// The gradient with respect to B is A⁻ᵀ G. With respect to A it is the triangle of -(A⁻ᵀ G) Xᵀ.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let at = Site::here(Self::NAME);
        let result = || -> Result<_, wengert_autograd::Error> {
            let right = solve(self.0.transposed(), &transposed(&call.inputs[0])?, &gradients[0], at)?;
            let whole = -right.try_matmul(transposed(&call.outputs[0])?)?;
            let offset = isize::from(self.0.unit);
            let left = if self.0.upper { whole.try_triu(offset)? } else { whole.try_tril(-offset)? };
            Ok(vec![Some(left), Some(right)])
        };
        result().unwrap_or_else(|error| crate::raise(error))
    }
}

impl Coefficients {
    /// Returns the triangle of the transposed matrix.
    pub(super) fn transposed(self) -> Self {
        Coefficients { upper: !self.upper, ..self }
    }
}

/// Solves A X = B with a triangular A. The batch dimensions are equal.
pub(super) fn solve<A: Array>(triangle: Coefficients, a: &A, b: &A, at: Site) -> Result<A, A::Error> {
    apply(Substitute(triangle), &[a, b], at)
}
