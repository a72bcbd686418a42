//! Construction of tensors: from numbers, vectors and arrays.

use wengert_macros::twins;

use crate::kernel::elementwise::loops;
use crate::kernel::fill;
use crate::memory::reserve::addressable;
use crate::memory::storage::Storage;
use crate::shape::ranges::Series;
use crate::{Element, Error, Float, Layout, Number, Progression, Shape, Site, Sizes, Tensor, ensure};

#[twins]
impl<T: Element> Tensor<T> {
    /// Returns a tensor with the elements `data` in row-major order. Reuses the vector's memory.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let table = Tensor::from_vec(vec![1, 2, 3, 4, 5, 6i64], [2, 3]);
    /// assert_eq!(table.get(&[1, 0]), Some(4));
    /// ```
    ///
    /// # Errors
    ///
    /// If `data` does not have as many elements as `shape`, or a size is negative or above `isize::MAX`.
    #[doc(alias("asarray"))]
    pub fn try_from_vec(data: Vec<T>, shape: impl Into<Sizes>) -> Result<Self, Error> {
        let at = Site::here("from_vec");
        let shape = shape.into().resolve_plain(at)?;
        ensure!(
            addressable::<T>(&shape, at)? == data.len(),
            at,
            Reshape,
            "shape '{shape}' is invalid for input of size {}",
            data.len()
        );
        Ok(Tensor::from_parts(Storage::from_vec(data), Layout::contiguous(shape)))
    }

    /// Returns a tensor with any strides over `data`: element `(i, j, …)` is `data[offset + i * strides[0] + j * strides[1] + …]`.
    /// PyTorch: `as_strided`.
    ///
    /// # Errors
    ///
    /// If an element would be outside `data`, the offset is above the length of `data`, the number of strides differs from the number of
    /// dimensions, or a size is negative. Also if the shape has more elements than can be addressed.
    pub fn try_from_strided(
        data: Vec<T>,
        shape: impl Into<Sizes>,
        strides: &[isize],
        offset: usize,
    ) -> Result<Self, Error> {
        let at = Site::here("from_strided");
        let shape = shape.into().resolve_plain(at)?;
        addressable::<T>(&shape, at)?;
        let layout = Layout::strided(shape.clone(), strides, offset, data.len()).ok_or_else(|| {
            let message = format!(
                "strides {strides:?} and offset {offset} reach outside a buffer of {} elements for shape {shape}",
                data.len()
            );
            Error::argument(at, message)
        })?;
        Ok(Tensor::from_parts(Storage::from_vec(data), layout))
    }

    /// Returns `value` expanded to `shape`. The buffer has only one element.
    pub(crate) fn splat(value: T, shape: &Shape, at: Site) -> Result<Self, Error> {
        addressable::<T>(shape, at)?;
        let layout = Layout::contiguous(Shape::scalar());
        match layout.expand(shape) {
            Some(layout) => Ok(Tensor::from_parts(Storage::from_value(value), layout)),
            None => unreachable!("a scalar expands to every shape"),
        }
    }

    /// Returns a tensor filled with one value. Refuses negative sizes. PyTorch: `full`.
    #[doc(alias("full_like"))]
    pub fn try_full(shape: impl Into<Sizes>, value: T) -> Result<Self, Error> {
        full(shape.into(), value, Site::here("full"))
    }

    /// Returns a tensor of zeros (`false` for masks). Refuses negative sizes. PyTorch: `zeros`.
    #[doc(alias("empty", "empty_like", "zeros_like"))]
    pub fn try_zeros(shape: impl Into<Sizes>) -> Result<Self, Error> {
        full(shape.into(), T::ZERO, Site::here("zeros"))
    }

    /// Returns a tensor of ones (`true` for masks). Refuses negative sizes. PyTorch: `ones`.
    #[doc(alias("ones_like"))]
    pub fn try_ones(shape: impl Into<Sizes>) -> Result<Self, Error> {
        full(shape.into(), T::ONE, Site::here("ones"))
    }

    /// Returns a tensor of rank 0 that holds `value`.
    pub fn scalar(value: T) -> Self {
        Tensor::from_parts(Storage::from_value(value), Layout::contiguous(Shape::scalar()))
    }

    /// Returns a tensor whose element at each index is `f(index)`. Calls `f` in row-major order.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let table = Tensor::from_fn([2, 3], |index| 10 * index[0] as i64 + index[1] as i64);
    /// assert_eq!(table.to_vec(), [0, 1, 2, 10, 11, 12]);
    /// ```
    pub fn try_from_fn(shape: impl Into<Sizes>, f: impl FnMut(&[usize]) -> T) -> Result<Self, Error> {
        from_fn(&shape.into(), f, Site::here("from_fn"))
    }

    /// Returns the identity matrix `[n, n]`. PyTorch: `eye`.
    #[doc(alias("identity"))]
    pub fn try_eye(n: usize) -> Result<Self, Error> {
        let at = Site::here("eye");
        Tensor::build_on_zeros(&Sizes::from([n, n]).resolve_plain(at)?, at, |out| {
            out.iter_mut().step_by(n.saturating_add(1)).for_each(|out| *out = T::ONE);
        })
    }
}

fn full<T: Element>(shape: Sizes, value: T, at: Site) -> Result<Tensor<T>, Error> {
    Tensor::build(&shape.resolve_plain(at)?, at, |out| loops::fill(value, out))
}

/// Returns a tensor whose element at each index is `f(index)`. Calls `f` in row-major order.
fn from_fn<T: Element>(shape: &Sizes, mut f: impl FnMut(&[usize]) -> T, at: Site) -> Result<Tensor<T>, Error> {
    from_rows(
        shape,
        &mut |index, row| {
            for (i, out) in row.iter_mut().enumerate() {
                if let [.., last] = index {
                    *last = i;
                }
                *out = f(index);
            }
        },
        at,
    )
}

/// Returns a tensor of rows, the lines along the last dimension. `fill` gets each row and its index. The last number of the index is not
/// specified, and `fill` may change it.
fn from_rows<T: Element>(
    shape: &Sizes,
    fill: &mut dyn FnMut(&mut [usize], &mut [T]),
    at: Site,
) -> Result<Tensor<T>, Error> {
    let shape = shape.resolve_plain(at)?;
    let row_len = shape.last().copied().unwrap_or(1);
    Tensor::build(&shape, at, |out| {
        let mut index = vec![0; shape.rank()];
        for row in out.chunks_mut(row_len.max(1)) {
            fill(&mut index, row);
            for axis in (0..shape.rank().saturating_sub(1)).rev() {
                index[axis] += 1;
                if index[axis] < shape[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
    })
}

#[twins]
impl<T: Number> Tensor<T> {
    /// Returns evenly spaced numbers, without the end: `arange(n)` from 0 to `n - 1`, `arange(2..5)`, or with a step,
    /// `arange((0.0..1.0, 0.1))`. The step may be negative. Floating-point numbers are computed in f64 as `start + k · step`, and rounding
    /// decides whether the last number is below the end, so [`linspace`](Self::linspace) is safer for them. Refuses a step that is 0, NaN,
    /// infinite or leads away from the end, infinite and NaN ends, and numbers of type `usize` above the largest i64. PyTorch: `arange`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::<i64>::arange(3).to_vec(), [0, 1, 2]);
    /// assert_eq!(Tensor::<i64>::arange((5..0, -2)).to_vec(), [5, 3, 1]);
    /// assert_eq!(Tensor::<f32>::arange((0.0..1.0, 0.25)).to_vec(), [0.0, 0.25, 0.5, 0.75]);
    /// ```
    #[doc(alias("range"))]
    pub fn try_arange(range: impl Into<Progression>) -> Result<Self, Error> {
        let at = Site::here("arange");
        match range.into().resolve(at)? {
            Series::Integers { start, step, count } => {
                Tensor::build(&Shape::from([count]), at, |out| fill::integers(start, step, out))
            }
            Series::Floats { start, step, count } => {
                Tensor::build(&Shape::from([count]), at, |out| fill::numbers(start, step, out))
            }
        }
    }
}

#[twins]
impl<T: Float> Tensor<T> {
    /// Returns `n` evenly spaced numbers from `start` to `end`, both included. If `n` is 1, the number is `start`. PyTorch: `linspace`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::<f64>::linspace(0.0, 1.0, 5).to_vec(), [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// ```
    pub fn try_linspace(start: f64, end: f64, n: usize) -> Result<Self, Error> {
        let (element, at) = (linspace_function(start, end, n), Site::here("linspace"));
        Tensor::build(&Sizes::from(n).resolve_plain(at)?, at, |out| {
            out.iter_mut().enumerate().for_each(|(i, out)| *out = T::from_f64(element(i)));
        })
    }

    /// Returns `n` powers of `base`, whose exponents are the evenly spaced numbers of [`linspace`](Self::linspace) from `start` to `end`. A
    /// power is NaN for a negative base and an exponent that is not a whole number. PyTorch: `logspace`, whose base is 10 by default.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// assert_eq!(Tensor::<f64>::logspace(0.0, 3.0, 4, 2.0).to_vec(), [1.0, 2.0, 4.0, 8.0]);
    /// ```
    #[doc(alias("geomspace"))]
    pub fn try_logspace(start: f64, end: f64, n: usize, base: f64) -> Result<Self, Error> {
        let element = linspace_function(start, end, n);
        let power = |index: &[usize]| T::from_f64(libm::pow(base, element(index[0])));
        from_fn(&Sizes::from(n), power, Site::here("logspace"))
    }
}

/// Returns a function that computes the element of [`linspace`](Tensor::linspace) at an index.
fn linspace_function(start: f64, end: f64, n: usize) -> impl Fn(usize) -> f64 {
    let parts = n.saturating_sub(1).max(1) as f64;
    // The difference of two finite numbers may be infinite.
    let step = if (end - start).is_finite() { (end - start) / parts } else { end / parts - start / parts };
    // Each element is computed from the nearer end, so that both ends are exact.
    move |i| if 2 * i < n { start + step * i as f64 } else { end - step * (n - 1 - i) as f64 }
}

impl<T: Element> Default for Tensor<T> {
    /// Returns a tensor of rank 0 that holds zero.
    fn default() -> Self {
        Tensor::scalar(T::ZERO)
    }
}

impl<T: Element> From<T> for Tensor<T> {
    fn from(value: T) -> Self {
        Tensor::scalar(value)
    }
}

impl<T: Element> From<&[T]> for Tensor<T> {
    fn from(data: &[T]) -> Self {
        Tensor::from(data.to_vec())
    }
}

impl<T: Element> From<Vec<T>> for Tensor<T> {
    /// Returns a tensor of one dimension.
    fn from(data: Vec<T>) -> Self {
        let shape = Shape::from([data.len()]);
        Tensor::from_parts(Storage::from_vec(data), Layout::contiguous(shape))
    }
}

// This converts integer literals without a suffix. These literals are i32, which is not an element type. So `Tensor::from(vec![1, 2])` has
// the element type i64, as in PyTorch.
impl From<Vec<i32>> for Tensor<i64> {
    fn from(data: Vec<i32>) -> Self {
        Tensor::from(data.into_iter().map(i64::from).collect::<Vec<_>>())
    }
}

/// Implements the conversions from nested arrays of elements, and from nested arrays of `i32`, the type of literals without a suffix.
/// `$flat` are the calls that flatten an array to a slice of elements.
macro_rules! from_arrays {
    ($([$($size:ident)*] $elements:ty, $integers:ty: $($flat:ident)*;)*) => {$(
        impl<T: Element, $(const $size: usize),*> From<$elements> for Tensor<T> {
            fn from(data: $elements) -> Self {
                from_nested(data$(.$flat())*.to_vec(), [$($size),*])
            }
        }

        impl<$(const $size: usize),*> From<$integers> for Tensor<i64> {
            fn from(data: $integers) -> Self {
                from_nested(data$(.$flat())*.iter().copied().map(i64::from).collect(), [$($size),*])
            }
        }
    )*};
}

from_arrays! {
    [A] [T; A], [i32; A]: as_slice;
    [A B] [[T; B]; A], [[i32; B]; A]: as_flattened;
    [A B C] [[[T; C]; B]; A], [[[i32; C]; B]; A]: as_flattened as_flattened;
    [A B C D] [[[[T; D]; C]; B]; A], [[[[i32; D]; C]; B]; A]: as_flattened as_flattened as_flattened;
}

fn from_nested<T: Element, const R: usize>(data: Vec<T>, shape: [usize; R]) -> Tensor<T> {
    Tensor::from_parts(Storage::from_vec(data), Layout::contiguous(Shape::from(shape)))
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn errors_name_the_function_and_the_callers_line() {
        const HUGE: usize = 1 << 50;
        let errors = [
            ("full", Tensor::<f64>::try_full(HUGE, 1.0)),
            ("zeros", Tensor::try_zeros([HUGE, HUGE])),
            ("ones", Tensor::try_ones(HUGE)),
            ("eye", Tensor::try_eye(HUGE)),
            ("from_fn", Tensor::try_from_fn(HUGE, |_| 0.0)),
            ("linspace", Tensor::try_linspace(0.0, 1.0, HUGE)),
            ("logspace", Tensor::try_logspace(0.0, 1.0, HUGE, 10.0)),
            ("tile", Tensor::from([0.0, 1.0]).try_tile(HUGE)),
            ("tile", Tensor::from([0.0]).try_tile(-1)),
            ("round_to", Tensor::from([0.0]).expand(HUGE).try_round_to(1)),
        ];
        for (name, error) in errors {
            let site = error.unwrap_err().site();
            assert_eq!((site.operation, site.location.file()), (name, file!()));
        }
    }

    #[test]
    fn nested_arrays_of_literals_have_up_to_four_dimensions() {
        let x = Tensor::from([[[[1, 2], [3, 4]]]]);
        assert_eq!((x.shape(), x.to_vec()), (&[1usize, 1, 2, 2][..].into(), vec![1i64, 2, 3, 4]));
    }

    #[test]
    fn both_ends_of_a_line_are_exact() {
        assert_eq!(Tensor::<f64>::linspace(-f64::MAX, f64::MAX, 3).to_vec(), [-f64::MAX, 0.0, f64::MAX]);
        assert_eq!(Tensor::<f64>::linspace(2.0, 3.0, 1).to_vec(), [2.0]);
        assert_eq!(Tensor::<f64>::linspace(2.0, 3.0, 0).shape(), &[0]);
    }

    /// The values are PyTorch's.
    #[test]
    fn powers_of_any_base() {
        let inf = f64::INFINITY;
        assert_eq!(Tensor::<f64>::logspace(-2.0, 2.0, 5, 10.0).to_vec(), [0.01, 0.1, 1.0, 10.0, 100.0]);
        assert_eq!(Tensor::<f64>::logspace(1.0, 3.0, 3, -2.0).to_vec(), [-2.0, 4.0, -8.0]);
        assert!(Tensor::<f64>::logspace(0.0, 1.0, 3, -2.0).get(&[1]).unwrap().is_nan());
        assert_eq!(Tensor::<f64>::logspace(-1.0, 1.0, 3, 0.0).to_vec(), [inf, 1.0, 0.0]);
        assert_eq!(Tensor::<f32>::logspace(1.0, 3.0, 1, 10.0).to_vec(), [10.0]);
        assert_eq!(Tensor::<f64>::logspace(1.0, 3.0, 0, 10.0).shape(), &[0]);
    }
}
