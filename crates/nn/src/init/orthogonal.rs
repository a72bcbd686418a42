//! Random orthogonal matrices.

use wengert_macros::twins;
use wengert_tensor::{Error, Float, Generator, Site, Sizes, Tensor};

/// Returns `gain` times a random orthogonal matrix, uniformly distributed (A. M. Saxe, J. L. McClelland and S. Ganguli,
/// "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2013). PyTorch:
/// `orthogonal_`.
///
/// If `shape` has more than two dimensions, it is treated as a matrix whose rows are the first dimension. If this matrix has more rows than
/// columns, its columns are orthogonal to each other, otherwise its rows.
///
/// The function draws vectors of normal numbers and makes them orthogonal by the Gram-Schmidt process. The process runs twice for each
/// vector. After that, the vectors are orthogonal up to rounding (B. N. Parlett, The Symmetric Eigenvalue Problem, 6.9).
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::init;
/// use wengert::prelude::*;
///
/// let q: Tensor<f64> = init::orthogonal([3, 5], 1.0, &mut Generator::new(0));
/// let off = q.matmul(q.t()) - Tensor::eye(3);
/// assert!(off.abs().amax(..).item() < 1e-15);
/// ```
///
/// # Errors
///
/// If `shape` has fewer than two dimensions or a negative size, or there is not enough memory.
#[twins]
pub fn try_orthogonal<T: Float>(
    shape: impl Into<Sizes>,
    gain: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("orthogonal");
    let shape = shape.into().resolve_plain(at)?;
    let [rows, _, ..] = *shape.sizes() else {
        let message = format!("Only tensors with 2 or more dimensions are supported: the shape is {shape}");
        return Err(Error::Argument { message, at });
    };
    let mut weight = Tensor::try_full(&shape, T::ZERO)?;
    let columns = weight.numel() / rows.max(1);
    let (count, length) = (rows.min(columns), rows.max(columns));
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(count);
    for _ in 0..count {
        let mut vector: Vec<f64> = (0..length).map(|_| generator.normal()).collect();
        for _ in 0..2 {
            for before in &vectors {
                subtract_projection(&mut vector, before);
            }
        }
        let norm = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|x| *x /= norm);
        vectors.push(vector);
    }
    for (position, element) in weight.make_mut().iter_mut().enumerate() {
        let (row, column) = (position / columns, position % columns);
        *element = T::from_f64(gain * if rows <= columns { vectors[row][column] } else { vectors[column][row] });
    }
    Ok(weight)
}

/// Returns the dot product of two vectors.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Subtracts from `vector` its projection onto `unit`, a vector of length 1.
fn subtract_projection(vector: &mut [f64], unit: &[f64]) {
    let component = dot(vector, unit);
    vector.iter_mut().zip(unit).for_each(|(x, unit)| *x -= component * unit);
}
