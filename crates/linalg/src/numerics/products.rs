//! Products of matrices in slices.

use wengert_tensor::Float;
use wengert_tensor::prelude::*;

use super::arithmetic::{add_scaled, zeros};
use super::failure::Failure;
use super::reflectors::matrix;

/// The number of multiplications from which the kernels of tensors are faster than plain loops.
const MIN_KERNEL: usize = 16 * 16 * 16;

/// Returns the product of the matrices `[m, k]` and `[k, n]`.
pub(crate) fn product<T: Float>(x: &[T], y: &[T], [m, k, n]: [usize; 3]) -> Result<Vec<T>, Failure> {
    if m.saturating_mul(k).saturating_mul(n) >= MIN_KERNEL {
        let (x, y) = (matrix(x.to_vec(), m, k)?, matrix(y.to_vec(), k, n)?);
        return x.try_matmul(&y).and_then(|product| product.try_to_vec()).map_err(|_| Failure::Memory);
    }
    let mut out = zeros(m, n)?;
    if k > 0 && n > 0 {
        for (out, x) in out.chunks_exact_mut(n).zip(x.chunks_exact(k)) {
            for (&x, y) in x.iter().zip(y.chunks_exact(n)) {
                add_scaled(out, x, y);
            }
        }
    }
    Ok(out)
}
