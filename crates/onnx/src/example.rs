//! Inputs for the recordings of a model. They are made from the examples of the user.
//!
//! Each recording gets other values, so that data of the program that depends on the values of an input differs between recordings. All
//! values come from the example (numbers, or half of them), so they are valid if the example is.

use wengert_tensor::ops::Indexing as _;
use wengert_tensor::{Element, Float, Tensor};

use crate::error::{Error, Result};

/// Returns the input of the recording `turn`. The first recording gets the example.
pub(crate) fn numbers<T: Float>(example: &Tensor<T>, turn: usize) -> Result<Tensor<T>> {
    if turn == 0 {
        return Ok(example.clone());
    }
    let half = T::from_f64(0.5);
    let other = |x: T| if x == T::ZERO { half } else { T::from_f64(x.to_f64() * 0.5) };
    let values = rotated(&example.try_to_vec()?, turn).into_iter().map(other).collect();
    Ok(Tensor::try_from_vec(values, example.shape())?)
}

/// Returns the integer input of the recording `turn`. The first recording gets the example.
///
/// # Errors
///
/// If the example has only zeros or no elements.
pub(crate) fn indices(name: &str, example: &Tensor<i64>, turn: usize) -> Result<Tensor<i64>> {
    let values = example.try_to_vec()?;
    let first = values.first().copied().unwrap_or_default();
    let is_uniform = values.iter().all(|&value| value == first);
    if is_uniform && first <= 0 {
        return Err(Error::Example { input: name.to_owned() });
    }
    // If all indices are equal, the index before them is valid too.
    let values = match is_uniform {
        true => values.iter().map(|&value| value - (turn % 2) as i64).collect(),
        false => rotated(&values, turn),
    };
    Ok(Tensor::try_from_vec(values, example.shape())?)
}

/// Returns an example of size `size` along `axis`, with the slices of the example in turn.
///
/// # Errors
///
/// If the example has no such dimension, or no slices.
pub(crate) fn resized<E: Element>(name: &str, example: &Tensor<E>, axis: usize, size: usize) -> Result<Tensor<E>> {
    let Some(&count) = example.shape().get(axis).filter(|&&count| count > 0) else {
        return Err(Error::NoDimension { input: name.to_owned(), axis });
    };
    let slices = (0..size).map(|slice| (slice % count) as i64).collect();
    Ok(example.try_contiguous()?.try_index_select(axis as isize, &Tensor::try_from_vec(slices, [size])?)?)
}

/// Returns the values, each moved forward by `turn` positions.
fn rotated<E: Copy>(values: &[E], turn: usize) -> Vec<E> {
    let mut rotated = values.to_vec();
    rotated.rotate_right(turn % values.len().max(1));
    rotated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recording_gets_other_values() {
        let x = Tensor::from([[1.0, 2.0], [0.0, 4.0]]);
        assert_eq!(numbers(&x, 0).unwrap(), x);
        assert_eq!(numbers(&x, 1).unwrap().to_vec(), [2.0, 0.5, 1.0, 0.5]);
        let tokens = Tensor::from([3i64, 5, 3]);
        assert_eq!(indices("t", &tokens, 1).unwrap().to_vec(), [3, 3, 5]);
        assert_eq!(indices("t", &Tensor::from([2i64, 2]), 1).unwrap().to_vec(), [1, 1]);
        assert!(matches!(indices("t", &Tensor::from([0i64, 0]), 1), Err(Error::Example { .. })));
        assert_eq!(resized("x", &x, 0, 3).unwrap().to_vec(), [1.0, 2.0, 0.0, 4.0, 1.0, 2.0]);
        assert!(matches!(resized("x", &x, 2, 3), Err(Error::NoDimension { axis: 2, .. })));
    }
}
