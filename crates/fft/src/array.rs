//! The arrays that have Fourier transforms. A tensor computes a transform immediately; a variable records it.

use wengert_autograd::Var;
use wengert_tensor::ops::{Result, TensorLike};
use wengert_tensor::{Float, Site, Tensor};

use crate::kernel;
use crate::map::LineMap;
use crate::operation::record_map;

/// The arrays that have Fourier transforms: tensors and recorded variables of floating-point numbers. The trait is sealed, so no other
/// crate can implement it.
pub trait Array: TensorLike<Elem: Float> + Sealed {
    /// Applies a linear map to each line of the array. A line is a signal or a spectrum: the last dimension for real numbers, or the last
    /// two for complex numbers.
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn apply_map(&self, map: LineMap, at: Site) -> Result<Self>;
}

/// Seals [`Array`]: only this crate can implement it.
pub trait Sealed {}

impl<T: Float> Sealed for Tensor<T> {}
impl<T: Float> Sealed for Var<'_, T> {}

impl<T: Float> Array for Tensor<T> {
    #[allow(private_interfaces)]
    fn apply_map(&self, map: LineMap, at: Site) -> Result<Self> {
        kernel::transform(map, self, at)
    }
}

impl<T: Float> Array for Var<'_, T> {
    #[allow(private_interfaces)]
    fn apply_map(&self, map: LineMap, at: Site) -> Result<Self> {
        record_map(map, *self, at)
    }
}
