//! Determinants, and their logarithms.

use wengert_autograd::{FunctionCall, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, Products as _, Reductions as _, Views as _};
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::inverting::inverse;
use super::lu::Singular;
use crate::array::{Array, apply, apply_pair};
use crate::batches::for_each_range;
use crate::factors::{self, Failure};
use crate::kernel::Kernel;
use crate::matrices::{batch_of, check_square, copy_of, sizes, transposed, zeros};

/// Determinants of square matrices. The last two dimensions are the matrix, and all others are a batch.
#[twins]
pub trait Determinants: Array {
    /// Returns the determinants `[…]` of square matrices `[…, n, n]`. A matrix without elements has the determinant 1. PyTorch:
    /// `linalg.det`.
    ///
    /// The first derivative is the matrix of cofactors, also for singular matrices. Higher derivatives are not finite for singular
    /// matrices. The determinant of a large matrix overflows easily; [`slogdet`](Determinants::slogdet) does not.
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
    /// If the matrices are not square.
    fn try_det(&self) -> Result<Self, Self::Error> {
        let at = Site::here("det");
        check_square("linalg.det", &self.shape(), at)?;
        apply(Determinant, &[self], at)
    }

    /// Returns the signs `[…]` of the determinants of square matrices `[…, n, n]`, and the logarithms `[…]` of their magnitudes. A singular
    /// matrix has sign 0 and logarithm -∞. PyTorch: `linalg.slogdet`.
    ///
    /// The sign has no derivative. The derivative of the logarithm is A⁻ᵀ; it is not finite for singular matrices.
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
    /// If the matrices are not square.
    fn try_slogdet(&self) -> Result<[Self; 2], Self::Error> {
        let at = Site::here("slogdet");
        check_square("linalg.slogdet", &self.shape(), at)?;
        let [sign, logarithm] = apply_pair(SignAndLogarithm, &[self], at)?;
        Ok([sign.try_detach()?, logarithm])
    }
}

impl<A: Array> Determinants for A {}

/// Calls `from_diagonal` with the diagonal of U and the sign of the row exchanges of each matrix, and writes the results.
fn from_factors<T: Float, const N: usize>(
    a: &Tensor<T>,
    at: Site,
    from_diagonal: impl Fn(&[T], T) -> [T; N] + Sync,
) -> Result<[Tensor<T>; N], Error> {
    let batch = batch_of(a.shape(), 2);
    let (n, _) = sizes(a.shape());
    let mut results: Vec<Tensor<T>> = (0..N).map(|_| zeros(&batch)).collect::<Result<_, _>>()?;
    let mut lu = copy_of(a)?;
    let count = results.first().map_or(0, Tensor::numel);
    let mut data: Vec<&mut [T]> = results.iter_mut().map(Tensor::make_mut).collect();
    if n == 0 {
        for (data, value) in data.iter_mut().zip(from_diagonal(&[], T::ONE)) {
            data.fill(value);
        }
    } else if let Ok(data) = <[&mut [T]; N]>::try_from(data) {
        let mut values = vec![T::ZERO; count * N];
        let done = for_each_range(count, n * n * n / 3, [lu.make_mut(), &mut values], |_, _, [lu, values]| {
            let count = lu.len() / (n * n);
            let (mut pivots, mut diagonal) = (vec![T::ZERO; n * count], vec![T::ZERO; n]);
            factors::factor_all(lu, (n, n), &mut pivots, (0, false))?;
            let parts = lu.chunks_exact(n * n).zip(pivots.chunks_exact(n));
            for ((a, pivots), values) in parts.zip(values.chunks_exact_mut(N)) {
                let mut sign = T::ONE;
                for row in 0..n {
                    diagonal[row] = a[row * n + row];
                    sign = if pivots[row].to_f64() as usize == row + 1 { sign } else { -sign };
                }
                values.copy_from_slice(&from_diagonal(&diagonal, sign));
            }
            Ok(())
        });
        done.map_err(|failure: Failure| failure.error(&[], at, |_, _| String::new()))?;
        for (position, data) in data.into_iter().enumerate() {
            for (value, values) in data.iter_mut().zip(values.chunks_exact(N)) {
                *value = values[position];
            }
        }
    }
    <[Tensor<T>; N]>::try_from(results).map_err(|_| unreachable!("there are {N} results"))
}

/// |A|.
#[derive(Clone, Copy, Debug)]
struct Determinant;

impl Kernel for Determinant {
    const NAME: &'static str = "det";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![batch_of(&inputs[0], 2)]
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let product = |diagonal: &[T], sign| [diagonal.iter().fold(sign, |product, &x| product * x)];
        Ok(from_factors(&inputs[0], at, product)?.into())
    }

    /// The gradient is G times the matrix of cofactors.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let result = || -> Result<_, wengert_autograd::Error> {
            let cofactors = apply(Cofactors, &[&call.inputs[0]], Site::here(Self::NAME))?;
            Ok(vec![Some(cofactors.try_mul(as_matrices(&gradients[0])?)?)])
        };
        result().unwrap_or_else(|error| crate::raise(error))
    }
}

/// Appends two dimensions of size 1.
fn as_matrices<A: Array>(x: &A) -> Result<A, A::Error> {
    x.try_unsqueeze(-1)?.try_unsqueeze(-1)
}

/// C = |A| A⁻ᵀ, the matrix of cofactors.
#[derive(Clone, Copy, Debug)]
struct Cofactors;

impl Kernel for Cofactors {
    const NAME: &'static str = "cofactors";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![inputs[0].clone()]
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let (a, mut result) = (inputs[0].try_contiguous()?, zeros::<T>(inputs[0].shape())?);
        let (n, _) = sizes(a.shape());
        if let Some(a) = a.as_slice().filter(|a| !a.is_empty()) {
            let done = for_each_range(a.len() / (n * n), n * n * n, [result.make_mut()], |first, _, [result]| {
                for (matrix, result) in (first..).zip(result.chunks_exact_mut(n * n)) {
                    factors::cofactors(&a[matrix * n * n..][..n * n], result, n)?;
                }
                Ok(())
            });
            done.map_err(|failure: Failure| failure.error(&[], at, |_, _| String::new()))?;
        }
        Ok(vec![result])
    }

    /// dC = tr(A⁻¹ dA) C - A⁻ᵀ dAᵀ C, so the gradient is ⟨G, C⟩ A⁻ᵀ - C Gᵀ A⁻ᵀ.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let result = || -> Result<_, wengert_autograd::Error> {
            let (c, g) = (call.outputs[0], gradients[0]);
            let inverse = transposed(&inverse(&call.inputs[0], Singular::Accepted, Site::here(Self::NAME))?)?;
            let product = as_matrices(&g.try_mul(c)?.try_sum([-2, -1])?)?;
            let second = c.try_matmul(transposed(&g)?)?.try_matmul(inverse)?;
            Ok(vec![Some(inverse.try_mul(product)?.try_sub(second)?)])
        };
        result().unwrap_or_else(|error| crate::raise(error))
    }
}

/// The sign and the logarithm of the magnitude of |A|.
#[derive(Clone, Copy, Debug)]
struct SignAndLogarithm;

impl Kernel for SignAndLogarithm {
    const NAME: &'static str = "slogdet";

    fn shapes(&self, inputs: &[Shape]) -> Vec<Shape> {
        vec![batch_of(&inputs[0], 2); 2]
    }

    fn run<T: Float>(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let results = from_factors(&inputs[0], at, |diagonal: &[T], sign| {
            let (mut sign, mut logarithm) = (sign, 0.0);
            for &x in diagonal {
                let x = x.to_f64();
                logarithm += x.abs().ln();
                let factor = if x.is_nan() {
                    x
                } else if x == 0.0 {
                    0.0
                } else {
                    x.signum()
                };
                sign = sign * T::from_f64(factor);
            }
            [sign, T::from_f64(logarithm)]
        });
        Ok(results?.into())
    }

    /// The gradient is A⁻ᵀ times the gradient with respect to the logarithm.
    fn vjp<'t, T: Float>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let result = || -> Result<_, wengert_autograd::Error> {
            let inverse = inverse(&call.inputs[0], Singular::Accepted, Site::here(Self::NAME))?;
            Ok(vec![Some(transposed(&inverse)?.try_mul(as_matrices(&gradients[1])?)?)])
        };
        result().unwrap_or_else(|error| crate::raise(error))
    }
}
