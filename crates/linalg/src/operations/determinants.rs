//! Determinants, and their logarithms.

use wengert_macros::twins;
use wengert_tensor::Site;
use wengert_tensor::ops::{Comparison as _, Masking as _, Views as _};

use crate::array::{Array, apply, apply_several};
use crate::kernels::determinants::{Determinant, SignAndLogarithm};
use crate::matrices::check_square;

/// Determinants of square matrices. The last two dimensions are the matrix, and all others are a batch.
#[twins(blanket)]
pub trait Determinants: Array {
    /// Returns the determinants `[…]` of square matrices `[…, n, n]`. A matrix without elements has the determinant 1. PyTorch:
    /// `linalg.det`.
    ///
    /// The first derivative is the matrix of cofactors, for singular matrices too. Higher derivatives are not finite for singular matrices,
    /// and have few correct digits for nearly singular ones.
    /// The determinant of a large matrix overflows easily; the logarithm from [`slogdet`](Determinants::slogdet) does not.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// assert_eq!(Tensor::from([[2.0, 1.0], [4.0, 3.0]]).det().item(), 2.0);
    ///
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::from([[1.0, 2.0], [2.0, 4.0]]));
    /// assert_eq!(x.det().grad([x])[0].value(), Tensor::from([[4.0, -2.0], [-2.0, 1.0]]));
    /// ```
    ///
    /// # Errors
    ///
    /// If the matrices are not square, or there is not enough memory.
    fn try_det(&self) -> Result<Self, Self::Error> {
        let at = Site::here("det");
        check_square("linalg.det", &self.shape(), at)?;
        apply(Determinant, &[self], at)
    }

    /// Returns the signs `[…]` of the determinants of square matrices `[…, n, n]`, and the logarithms `[…]` of their magnitudes. A singular
    /// matrix has sign 0 and logarithm -∞, except for rounding errors. PyTorch: `linalg.slogdet`.
    ///
    /// The sign has no derivative. The derivative of the logarithm is A⁻ᵀ, which is not finite for singular matrices.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let [sign, logarithm] = (Tensor::<f64>::eye(400) * 10.0).slogdet();
    /// assert_eq!(sign.item(), 1.0);
    /// assert!((logarithm.item() - 400.0 * 10f64.ln()).abs() < 1e-10);
    /// ```
    ///
    /// # Errors
    ///
    /// If the matrices are not square, or there is not enough memory.
    fn try_slogdet(&self) -> Result<[Self; 2], Self::Error> {
        let at = Site::here("slogdet");
        check_square("linalg.slogdet", &self.shape(), at)?;
        let [sign, logarithm] = apply_several(SignAndLogarithm, &[self], at)?;
        Ok([sign.try_detach()?, logarithm])
    }

    /// Returns the logarithms `[…]` of the determinants of square matrices `[…, n, n]`: NaN for a negative determinant, with derivative 0,
    /// and -∞ for a singular matrix. PyTorch: `logdet`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_autograd::prelude; pub use wengert_linalg as linalg; }
    /// use wengert::linalg::prelude::*;
    /// use wengert::prelude::*;
    ///
    /// let logarithm = Tensor::from([[2.0, 0.0], [0.0, 3.0f64]]).logdet();
    /// assert!((logarithm.item() - 6f64.ln()).abs() < 1e-15);
    /// ```
    ///
    /// # Errors
    ///
    /// If the matrices are not square, or there is not enough memory.
    fn try_logdet(&self) -> Result<Self, Self::Error> {
        let at = Site::here("logdet");
        check_square("logdet", &self.shape(), at)?;
        let [sign, logarithm] = apply_several(SignAndLogarithm, &[self], at)?;
        logarithm.try_masked_fill(sign.try_detach()?.try_lt(0.0)?, f64::NAN)
    }
}
