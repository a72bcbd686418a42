//! Inverses and powers.

use wengert_macros::twins;
use wengert_tensor::ops::{Products as _, Views as _};
use wengert_tensor::{Site, Tensor};

use crate::array::Array;
use crate::kernels::inverse::inverse;
use crate::kernels::lu::SingularPolicy;
use crate::matrices::{check_square, matrix_size};

/// Inverses and powers of square matrices. The last two dimensions are the matrix, and all others are a batch.
#[twins(blanket)]
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
    /// If the matrices are not square, a matrix is singular, or there is not enough memory. For a variable, the error
    /// of a singular matrix occurs when the variable's value is computed.
    #[doc(alias("inverse"))]
    fn try_inv(&self) -> Result<Self, Self::Error> {
        let at = Site::here("inv");
        check_square("linalg.inv", &self.shape(), at)?;
        inverse(self, SingularPolicy::Inv, at)
    }

    /// Returns the powers of square matrices `[…, n, n]` with the exponent `exponent`, by repeated squaring. A negative exponent gives a
    /// power of the inverse. The power 0 is the identity. PyTorch: `linalg.matrix_power`.
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
    /// If the matrices are not square, the exponent is negative and a matrix is singular, or there is not enough
    /// memory. For a variable, the error of a singular matrix occurs when the variable's value is computed.
    fn try_matrix_power(&self, exponent: i64) -> Result<Self, Self::Error> {
        let at = Site::here("matrix_power");
        check_square("linalg.matrix_power", &self.shape(), at)?;
        if exponent == 0 {
            let (n, _) = matrix_size(&self.shape());
            // The result does not depend on the matrices, but as in PyTorch their gradient is zeros.
            return self
                .try_constant(&Tensor::try_eye(n)?)?
                .try_broadcast_to(self.shape())?
                .with_zero_gradients(&[self], at);
        }
        let mut square = if exponent < 0 { inverse(self, SingularPolicy::Inv, at)? } else { self.clone() };
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
