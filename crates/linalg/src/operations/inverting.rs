//! Inverses and powers.

use wengert_autograd::{FunctionCall, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Products as _, Views as _};
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::lu::Singular;
use crate::array::{Array, apply};
use crate::batches::for_each_range;
use crate::factors;
use crate::kernel::Kernel;
use crate::matrices::{batch_of, check_square, copy_of, sizes, transposed, zeros};

/// Inverses and powers of square matrices. The last two dimensions are the matrix, and all others are a batch.
#[twins]
pub trait Inverting: Array {
    /// Returns the inverses of square matrices `[…, n, n]`. To multiply by an inverse, [`solve`](crate::Solving::solve) is faster and more
    /// accurate. PyTorch: `linalg.inv`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[2.0, 1.0], [0.0, 4.0]]);
    /// assert_eq!(a.inv(), Tensor::from([[0.5, -0.125], [0.0, 0.25]]));
    ///
    /// let error = Tensor::<f64>::ones([2, 2]).try_inv().unwrap_err();
    /// assert_eq!(
    ///     error.sentence(),
    ///     "linalg.inv: The diagonal element 2 is zero, the inversion could not be completed because the input matrix is singular."
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// If the matrices are not square, or one of them is singular. A variable reports the latter when its value is computed.
    #[doc(alias("inverse"))]
    fn try_inv(&self) -> Result<Self, Self::Error> {
        let at = Site::here("inv");
        check_square("linalg.inv", &self.shape(), at)?;
        inverse(self, Singular::Inv, at)
    }

    /// Returns the power of square matrices `[…, n, n]` with the integer `exponent`, by repeated squaring. A negative exponent is a power
    /// of the inverse. The power 0 is the identity. PyTorch: `linalg.matrix_power`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let a = Tensor::from([[1.0, 1.0], [0.0, 1.0]]);
    /// assert_eq!(a.matrix_power(10), Tensor::from([[1.0, 10.0], [0.0, 1.0]]));
    /// assert_eq!(a.matrix_power(-2), Tensor::from([[1.0, -2.0], [0.0, 1.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If the matrices are not square, or the exponent is negative and one of them is singular.
    fn try_matrix_power(&self, exponent: i64) -> Result<Self, Self::Error> {
        let at = Site::here("matrix_power");
        check_square("linalg.matrix_power", &self.shape(), at)?;
        if exponent == 0 {
            let (n, _) = sizes(&self.shape());
            return self.constant(&Tensor::eye(n)).try_broadcast_to(self.shape());
        }
        let mut square = if exponent < 0 { inverse(self, Singular::Inv, at)? } else { self.clone() };
        let mut rest = exponent.unsigned_abs();
        let mut power = None;
        loop {
            if rest % 2 == 1 {
                power = Some(match power {
                    Some(power) => square.try_matmul(&power)?,
                    None => square.clone(),
                });
            }
            rest /= 2;
            if rest == 0 {
                return Ok(power.unwrap_or(square));
            }
            square = square.try_matmul(&square)?;
        }
    }
}

impl<A: Array> Inverting for A {}

/// Returns the inverses.
pub(super) fn inverse<A: Array>(a: &A, singular: Singular, at: Site) -> Result<A, A::Error> {
    apply(Inverse(singular), &[a], at)
}

/// Y = A⁻¹.
#[derive(Clone, Copy, Debug)]
struct Inverse(Singular);

impl Kernel for Inverse {
    const NAME: &'static str = "inv";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[0].clone()]
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let shape = inputs[0].shape();
        let (n, _) = sizes(shape);
        let (mut lu, mut result) = (copy_of(&inputs[0])?, zeros::<T>(shape)?);
        if lu.numel() == 0 {
            return Ok(vec![result]);
        }
        let refuse = self.0 != Singular::Accepted;
        let outputs = [lu.make_mut(), result.make_mut()];
        let done = for_each_range(inputs[0].numel() / (n * n), n * n * n, outputs, |first, _, [lu, result]| {
            factors::invert_all(lu, result, n, (first, refuse))
        });
        done.map_err(|failure| {
            failure.error(&batch_of(shape, 2), at, |element, order| self.0.sentence(&element, order))
        })?;
        Ok(vec![result])
    }

    /// The gradient is -Yᵀ G Yᵀ.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let result = || -> Result<_, wengert_autograd::Error> {
            let y = transposed(&call.outputs[0])?;
            Ok(vec![Some(-y.try_matmul(gradients[0])?.try_matmul(y)?)])
        };
        result().unwrap_or_else(|error| crate::raise(error))
    }
}
