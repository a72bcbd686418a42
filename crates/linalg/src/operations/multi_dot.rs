//! Products of several matrices in the order with the fewest multiplications.

use wengert_macros::twins;
use wengert_tensor::ops::{self, IntoArray, Products as _, Result, Views as _};
use wengert_tensor::{Error, Shape, Site};

use crate::array::Array;
use crate::matrices::argument_error;

/// Returns the product of two or more matrices, computed in the order with the fewest multiplications. The first and the last array may be
/// vectors. PyTorch: `torch.linalg.multi_dot`.
///
/// Dynamic programming finds the order, in n³ steps for n matrices (Cormen et al., "Introduction to Algorithms", section 15.2).
///
/// ```
/// # mod wengert { pub use wengert_tensor::prelude; pub use wengert_linalg as linalg; }
/// use wengert::linalg::multi_dot;
/// use wengert::prelude::*;
///
/// let (column, row) = (Tensor::<f64>::ones([100, 1]), Tensor::ones([1, 100]));
/// // Here the row times the last vector comes first.
/// assert_eq!(multi_dot(&[column, row, Tensor::ones([100])]), Tensor::full([100], 100.0));
/// ```
///
/// # Errors
///
/// If there are fewer than two arrays, an array has the wrong number of dimensions, the sizes do not match, or there is
/// not enough memory.
#[twins]
pub fn try_multi_dot<I: IntoArray<Array = A> + Clone, A: Array>(arrays: &[I]) -> Result<A> {
    let (mut matrices, at) = (ops::arrays(arrays), Site::here("multi_dot"));
    let shapes: Vec<Shape> = matrices.iter().map(|array| array.shape()).collect();
    check_shapes(&shapes, at)?;
    let last = matrices.len() - 1;
    let (first_is_vector, last_is_vector) = (shapes[0].rank() == 1, shapes[last].rank() == 1);
    if first_is_vector {
        matrices[0] = matrices[0].try_unsqueeze(0)?;
    }
    if last_is_vector {
        matrices[last] = matrices[last].try_unsqueeze(1)?;
    }
    let mut sizes = vec![matrices[0].shape()[0]];
    sizes.extend(matrices.iter().map(|matrix| matrix.shape()[1]));
    for (position, pair) in sizes[1..last + 1].iter().zip(&matrices[1..]).enumerate() {
        if *pair.0 != pair.1.shape()[0] {
            let (x, y, next) = (&shapes[position], &shapes[position + 1], position + 1);
            let message =
                format!("multi_dot(): tensors {position} and {next} with shapes {x} and {y} cannot be multiplied");
            return Err(argument_error(at, message).into());
        }
    }
    let mut product = multiply_range(&matrices, &best_splits(&sizes), 0, last)?;
    if last_is_vector {
        product = product.try_squeeze(-1)?;
    }
    if first_is_vector { product.try_squeeze(0) } else { Ok(product) }
}

/// Returns an error if the number of arrays, or an array's number of dimensions, is wrong.
fn check_shapes(shapes: &[Shape], at: Site) -> std::result::Result<(), Error> {
    let refuse = |message: String| Err(argument_error(at, format!("multi_dot(): {message}")));
    if shapes.len() < 2 {
        return refuse(format!("expected at least 2 tensors but got {}", shapes.len()));
    }
    for (position, shape) in shapes.iter().enumerate() {
        let rank = shape.rank();
        let end = match position {
            0 => Some("first"),
            _ if position + 1 == shapes.len() => Some("last"),
            _ => None,
        };
        match end {
            Some(end) if !(1..=2).contains(&rank) => {
                return refuse(format!("the {end} tensor must be 1D or 2D but got {rank}D"));
            }
            None if rank != 2 => return refuse(format!("tensor {position} must be 2D but got {rank}D")),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the best splits of the product of the matrices i to j, for all i and j. `best_splits[i][j]` is the last matrix of the product's left
/// factor. Matrix k has `sizes[k]` rows and `sizes[k + 1]` columns.
fn best_splits(sizes: &[usize]) -> Vec<Vec<usize>> {
    let count = sizes.len() - 1;
    let size = |i: usize| sizes[i] as f64;
    let mut costs = vec![vec![0.0; count]; count];
    let mut best_splits = vec![vec![0; count]; count];
    for length in 1..count {
        for i in 0..count - length {
            let j = i + length;
            let cost = |k: usize| costs[i][k] + costs[k + 1][j] + size(i) * size(k + 1) * size(j + 1);
            let best = (i + 1..j).fold(i, |best, k| if cost(k) < cost(best) { k } else { best });
            (costs[i][j], best_splits[i][j]) = (cost(best), best);
        }
    }
    best_splits
}

/// Returns the product of the matrices `i` to `j`, in the order of `best_splits`.
fn multiply_range<A: Array>(matrices: &[A], best_splits: &[Vec<usize>], i: usize, j: usize) -> Result<A> {
    if i == j {
        return Ok(matrices[i].clone());
    }
    let split = best_splits[i][j];
    multiply_range(matrices, best_splits, i, split)?.try_matmul(&multiply_range(matrices, best_splits, split + 1, j)?)
}

#[cfg(test)]
mod tests {
    use super::best_splits;

    #[test]
    fn the_largest_product_is_avoided() {
        // A column times a row takes the most multiplications and has the most elements. So the best order does not compute it.
        assert_eq!(best_splits(&[9, 1, 9, 1])[0][2], 0);
        assert_eq!(best_splits(&[1, 9, 1, 9])[0][2], 1);
    }
}
