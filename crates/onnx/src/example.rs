//! Inputs for the recordings of a model. They are made from the examples of the user.
//!
//! The first recording gets the examples. The values of the inputs change between recordings, so that data of the
//! program that depends on them changes too. In later recordings, each number is a number of the example times a factor
//! below 1, and a zero becomes such a factor. Equal integers of the example are replaced by one integer of the example, which usually differs
//! from them. If all integers are equal, every second recording has integers that are smaller by 1.

use wengert_tensor::ops::Indexing as _;
use wengert_tensor::{Element, Float, Tensor};

use crate::error::{Error, Result};

/// Returns the input of the recording with index `recording`. Recording 0 gets the example. In other recordings, the
/// elements are rotated by `recording` positions, and each is multiplied by its own factor between 1/4 and 3/4. A zero
/// becomes its factor. So the order of the elements by size usually changes too, even if all elements of the example
/// are equal. Returns an error if there is not enough memory.
pub(crate) fn vary_numbers<T: Float>(example: &Tensor<T>, recording: usize) -> Result<Tensor<T>> {
    if recording == 0 {
        return Ok(example.clone());
    }
    let mut values = example.try_to_vec()?;
    let count = values.len().max(1);
    values.rotate_right(recording % count);
    // The fractional parts of the multiples of the golden ratio are distinct and evenly distributed.
    let step = recording as f64 * 0.6180339887498949;
    for (k, value) in values.iter_mut().enumerate() {
        let factor = 0.25 + 0.5 * ((k + 1) as f64 * step).fract();
        *value = T::from_f64(if *value == T::ZERO { factor } else { value.to_f64() * factor });
    }
    Ok(Tensor::try_from_vec(values, example.shape())?)
}

/// Returns the integer input of the recording with index `recording`. Recording 0 gets the example. In other recordings,
/// each integer becomes the integer `recording` places later in the ascending list of distinct integers. After the largest,
/// the smallest follows. If all integers are equal, they are smaller by 1 in every second recording.
///
/// # Errors
///
/// If the example has no elements, or only one distinct integer that is not above 0, or if there is not enough memory.
pub(crate) fn vary_indices(name: &str, example: &Tensor<i64>, recording: usize) -> Result<Tensor<i64>> {
    let mut values = example.try_to_vec()?;
    let mut distinct = values.clone();
    distinct.sort_unstable();
    distinct.dedup();
    match distinct[..] {
        [] | [i64::MIN..=0] => return Err(Error::Example { input: name.to_owned() }),
        // If all indices are equal and above 0, the index that is smaller by 1 is valid too.
        [only] => values.fill(only - (recording % 2) as i64),
        _ => {
            for value in &mut values {
                let position = distinct.partition_point(|other| other < value);
                *value = distinct[(position + recording) % distinct.len()];
            }
        }
    }
    Ok(Tensor::try_from_vec(values, example.shape())?)
}

/// Returns an example of size `size` along `axis`. It has the slices of `example` in order, and after the last slice the first one again.
///
/// # Errors
///
/// If the example has no such dimension or no slices, or there is not enough memory.
pub(crate) fn resize<E: Element>(name: &str, example: &Tensor<E>, axis: usize, size: usize) -> Result<Tensor<E>> {
    let Some(&count) = example.shape().get(axis).filter(|&&count| count > 0) else {
        return Err(Error::NoDimension { input: name.to_owned(), axis });
    };
    let slices = (0..size).map(|slice| (slice % count) as i64).collect();
    Ok(example.try_contiguous()?.try_index_select(axis as isize, &Tensor::try_from_vec(slices, [size])?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_recording_gets_other_values() {
        let x = Tensor::from([[1.0, 2.0], [0.0, 4.0]]);
        assert_eq!(vary_numbers(&x, 0).unwrap(), x);
        let factors = [1, 2, 3, 4].map(|k| 0.25 + 0.5 * (f64::from(k) * 0.6180339887498949).fract());
        let expected = [4.0 * factors[0], factors[1], 2.0 * factors[2], factors[3]];
        assert_eq!(vary_numbers(&x.cast::<f64>(), 1).unwrap().to_vec(), expected);
        let tokens = Tensor::from([3i64, 7, 3, 5]);
        assert_eq!(vary_indices("t", &tokens, 1).unwrap().to_vec(), [5, 3, 5, 7]);
        assert_eq!(vary_indices("t", &tokens, 5).unwrap().to_vec(), [7, 5, 7, 3]);
        assert_eq!(vary_indices("t", &Tensor::from([2i64, 2]), 1).unwrap().to_vec(), [1, 1]);
        assert!(matches!(vary_indices("t", &Tensor::from([0i64, 0]), 1), Err(Error::Example { .. })));
        assert!(matches!(vary_indices("t", &Tensor::zeros([0]), 1), Err(Error::Example { .. })));
        assert_eq!(resize("x", &x, 0, 3).unwrap().to_vec(), [1.0, 2.0, 0.0, 4.0, 1.0, 2.0]);
        assert!(matches!(resize("x", &x, 2, 3), Err(Error::NoDimension { axis: 2, .. })));
    }
}
