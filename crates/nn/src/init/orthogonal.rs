//! Random orthogonal matrices.

use wengert_macros::twins;
use wengert_tensor::{Error, Float, Generator, Site, Sizes, Tensor};

/// `gain` times a random orthogonal matrix, every one as likely as any other (A. M. Saxe, J. L. McClelland and S. Ganguli,
/// "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2013). As a matrix, a weight has
/// a row for each of its first size; where there are more rows than columns, its columns are orthogonal, otherwise its
/// rows. PyTorch: `orthogonal_`.
///
/// The rows of a normal matrix, each made orthogonal to those before it: Gram and Schmidt, twice, which is enough for
/// rounding (B. N. Parlett, The Symmetric Eigenvalue Problem, 6.9).
///
/// ```
/// use wengert_nn::init;
/// use wengert_tensor::prelude::*;
///
/// let q: Tensor<f64> = init::orthogonal([3, 5], 1.0, &mut Generator::new(0));
/// let off = q.matmul(q.t()) - Tensor::eye(3);
/// assert!(off.abs().amax(..).item() < 1e-15);
/// ```
///
/// # Errors
///
/// Where `shape` has fewer than two dimensions, or memory cannot hold the tensor.
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

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `onto` has length 1.
fn subtract_projection(vector: &mut [f64], onto: &[f64]) {
    let along = dot(vector, onto);
    vector.iter_mut().zip(onto).for_each(|(x, onto)| *x -= along * onto);
}
