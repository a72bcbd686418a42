//! The traits of the `approx` crate, for assertions such as `assert_relative_eq!`.
//!
//! Tensors are close if they have the same shape (nothing broadcasts here) and each pair of elements is close by `approx`'s definition for
//! numbers. A NaN is close to nothing, not even to itself. Equal infinities are close relatively and by units in the last place, but not
//! absolutely, because their difference is NaN.

use approx::{AbsDiffEq, RelativeEq, UlpsEq};

use crate::{Float, Tensor};

/// Returns true if the shapes are equal and `close` is true for each pair of elements.
fn all_pairs<T: Float>(x: &Tensor<T>, y: &Tensor<T>, close: impl Fn(T, T) -> bool) -> bool {
    x.shape() == y.shape() && x.iter().zip(y.iter()).all(|(x, y)| close(x, y))
}

/// Compares tensors by absolute difference. Tensors of different shapes are unequal for every `epsilon`.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// use approx::assert_abs_diff_eq;
///
/// assert_abs_diff_eq!(Tensor::from([1.0, 2.0]), Tensor::from([1.0, 2.0 + 1e-9]), epsilon = 1e-8);
/// ```
impl<T: Float + AbsDiffEq<Epsilon = T>> AbsDiffEq for Tensor<T> {
    type Epsilon = T;

    fn default_epsilon() -> T {
        T::default_epsilon()
    }

    fn abs_diff_eq(&self, other: &Self, epsilon: T) -> bool {
        all_pairs(self, other, |x, y| x.abs_diff_eq(&y, epsilon))
    }
}

/// Compares tensors by relative difference. Tensors of different shapes are unequal for every tolerance.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// use approx::{assert_relative_eq, assert_relative_ne};
///
/// let third = Tensor::from([1.0, 2.0]) / 3.0;
/// assert_relative_eq!(third * 3.0, Tensor::from([1.0, 2.0]), max_relative = 1e-15);
/// assert_relative_ne!(Tensor::from([1.0]), Tensor::from([[1.0]]));
/// ```
impl<T: Float + RelativeEq<Epsilon = T>> RelativeEq for Tensor<T> {
    fn default_max_relative() -> T {
        T::default_max_relative()
    }

    fn relative_eq(&self, other: &Self, epsilon: T, max_relative: T) -> bool {
        all_pairs(self, other, |x, y| x.relative_eq(&y, epsilon, max_relative))
    }
}

/// Compares tensors by units in the last place (ulps). Tensors of different shapes are unequal for every tolerance.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// use approx::assert_ulps_eq;
///
/// let x = Tensor::from([0.1f32, 0.2]);
/// assert_ulps_eq!(&x + 0.3, Tensor::from([0.4f32, 0.5]), epsilon = 0.0, max_ulps = 1);
/// ```
impl<T: Float + UlpsEq<Epsilon = T>> UlpsEq for Tensor<T> {
    fn default_max_ulps() -> u32 {
        T::default_max_ulps()
    }

    fn ulps_eq(&self, other: &Self, epsilon: T, max_ulps: u32) -> bool {
        all_pairs(self, other, |x, y| x.ulps_eq(&y, epsilon, max_ulps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Views;

    #[test]
    fn closeness_as_a_table() {
        let row = |values: [f64; 2]| Tensor::from(values);
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        // The columns: x, y, and whether they are close absolutely (1e-3), relatively (1e-3), and within 4 ulps.
        let table = [
            (row([1.0, 2.0]), row([1.0, 2.0]), [true; 3]),
            (row([1.0, 2.0]), row([1.0, 2.0 + 1e-15]), [true; 3]),
            (row([1.0, 1000.0]), row([1.0, 1000.5]), [false, true, false]),
            (row([1.0, 1e-9]), row([1.0, 2e-9]), [true, false, false]),
            (row([1.0, nan]), row([1.0, nan]), [false; 3]),
            (row([1.0, inf]), row([1.0, inf]), [false, true, true]),
            (row([1.0, inf]), row([1.0, -inf]), [false; 3]),
            (row([1.0, 1.0]), Tensor::from([1.0]), [false; 3]),
            (row([1.0, 1.0]), row([1.0, 1.0]).unsqueeze(0), [false; 3]),
            (row([1.0, 1.0]), Tensor::scalar(1.0).expand([2]), [true; 3]),
            (Tensor::zeros([0, 3]), Tensor::zeros([0, 3]), [true; 3]),
            (Tensor::zeros([0, 3]), Tensor::zeros([3, 0]), [false; 3]),
        ];
        for (x, y, expected) in table {
            let close = [x.abs_diff_eq(&y, 1e-3), x.relative_eq(&y, 0.0, 1e-3), x.ulps_eq(&y, 0.0, 4)];
            assert_eq!(close, expected, "{x:?} {y:?}");
        }
    }
}
