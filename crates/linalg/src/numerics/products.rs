//! Products of matrices in slices.

use wengert_tensor::Float;
use wengert_tensor::prelude::*;

use super::arithmetic::{add_scaled, zeros};
use super::failure::Failure;
use super::reflectors::matrix_from_vec;

/// The minimum number of multiplications for which `Tensor::matmul` is faster than plain loops.
const MIN_MATMUL_WORK: usize = 16 * 16 * 16;

/// Returns the product of the matrices `[m, k]` and `[k, n]`.
pub(crate) fn product<T: Float>(x: &[T], y: &[T], sizes: [usize; 3]) -> Result<Vec<T>, Failure> {
    if is_small(sizes) {
        return small_product(x, y, sizes);
    }
    product_tensor(x.to_vec(), y.to_vec(), sizes)?.try_to_vec().map_err(|_| Failure::Memory)
}

/// Returns the product of the matrices `[m, k]` and `[k, n]`. Takes over their memory, so that no element is copied.
pub(crate) fn product_tensor<T: Float>(x: Vec<T>, y: Vec<T>, sizes: [usize; 3]) -> Result<Tensor<T>, Failure> {
    let [m, k, n] = sizes;
    if is_small(sizes) {
        return matrix_from_vec(small_product(&x, &y, sizes)?, m, n);
    }
    let product = matrix_from_vec(x, m, k)?.try_matmul(&matrix_from_vec(y, k, n)?);
    product.and_then(|product| product.try_contiguous()).map_err(|_| Failure::Memory)
}

fn is_small([m, k, n]: [usize; 3]) -> bool {
    m.saturating_mul(k).saturating_mul(n) < MIN_MATMUL_WORK
}

/// Computes a product of matrices by plain loops.
fn small_product<T: Float>(x: &[T], y: &[T], [m, k, n]: [usize; 3]) -> Result<Vec<T>, Failure> {
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
