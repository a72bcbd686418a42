//! Memory requests that return errors instead of aborting.

use crate::memory::available::{AllocationError, available_bytes, bytes_of};
use crate::memory::pool::{self, PooledBuffer};
use crate::thresholds::memory::MIN_CHECKED_BYTES;
use crate::{DType, Error, Scalar, Shape, Site};

pub(crate) fn zeroed<T: Scalar>(len: usize) -> Result<Vec<T>, AllocationError> {
    let mut data = with_capacity(len)?;
    data.resize(len, T::ZERO);
    Ok(data)
}

/// Returns a buffer of `len` elements with unspecified values. The caller must write all of them. `len` must not be 0. When the buffer is
/// dropped, it goes to the pool of buffers, or to the system if the pool does not keep it.
pub(crate) fn scratch<T: Scalar>(len: usize) -> Result<PooledBuffer<T>, AllocationError> {
    let bytes = bytes_of::<T>(len)?;
    if let Some(block) = pool::reuse(len, bytes) {
        return Ok(block);
    }
    check_available(bytes)?;
    pool::allocate(len, bytes)
}

/// Returns an error if a request of `bytes` bytes exceeds the available memory. Empties the pool of buffers first if this may help.
/// Requests of fewer than [`MIN_CHECKED_BYTES`] bytes are not checked.
#[inline]
fn check_available(bytes: usize) -> Result<(), AllocationError> {
    if bytes < MIN_CHECKED_BYTES { Ok(()) } else { check_available_large(bytes) }
}

// This is a separate function, so that the many callers of `check_available` do not contain it.
#[cold]
fn check_available_large(bytes: usize) -> Result<(), AllocationError> {
    let too_much = || available_bytes().is_some_and(|available| bytes as u64 > available);
    if too_much() {
        pool::clear_pool();
        if too_much() {
            return Err(AllocationError);
        }
    }
    Ok(())
}

/// Returns an empty vector with room for `len` elements.
pub(crate) fn with_capacity<T: Scalar>(len: usize) -> Result<Vec<T>, AllocationError> {
    check_available(bytes_of::<T>(len)?)?;
    let mut data = Vec::new();
    data.try_reserve_exact(len).map_err(|_| AllocationError)?;
    Ok(data)
}

/// Returns an error if memory cannot hold a list of `len` elements of type `A`. Code that makes an array, or records operations, for each
/// position along a dimension calls this function first. The reason is that an expanded dimension may be longer than any list.
#[doc(hidden)]
pub fn check_list<A>(len: usize, at: Site) -> Result<(), Error> {
    let bytes = len.saturating_mul(size_of::<A>());
    with_capacity::<u8>(bytes).map(drop).map_err(|_| Error::out_of_memory([bytes], DType::U8, at))
}

/// Returns the number of elements of `shape`. No tensor may be larger than `isize::MAX` bytes, even if it is expanded from fewer elements.
///
/// # Errors
///
/// [`Error::TooLarge`] if a tensor of this shape would be larger. If the tensor has no elements, the error is returned if one of the sizes
/// exceeds `isize::MAX`.
pub fn addressable<T: Scalar>(shape: &Shape, at: Site) -> Result<usize, Error> {
    addressable_as(T::DTYPE, shape, at)
}

/// Does the same as [`addressable`], for elements of the type `dtype`.
pub(crate) fn addressable_as(dtype: DType, shape: &Shape, at: Site) -> Result<usize, Error> {
    match shape.checked_numel() {
        Some(count @ 1..) if count <= isize::MAX as usize / dtype.size() => Ok(count),
        Some(0) if shape.iter().all(|&size| size <= isize::MAX as usize) => Ok(0),
        _ => Err(Error::TooLarge { shape: shape.clone(), dtype, at }),
    }
}

/// Returns an error if memory cannot hold a tensor of `shape`. Operations that compute for a long time before they allocate the result call
/// this function first. A request of at least [`MIN_CHECKED_BYTES`] bytes is made once and released, because the process may have a limit
/// of its own. Smaller requests are not tested.
pub(crate) fn check_fits<T: Scalar>(shape: &Shape, at: Site) -> Result<(), Error> {
    let count = addressable::<T>(shape, at)?;
    let refused = |_| Error::OutOfMemory { shape: shape.clone(), dtype: T::DTYPE, at };
    let bytes = bytes_of::<T>(count).map_err(refused)?;
    if bytes >= MIN_CHECKED_BYTES {
        drop(with_capacity::<T>(count).map_err(refused)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_requests_are_errors_not_aborts() {
        assert_eq!(with_capacity::<f64>(usize::MAX / 4).err(), Some(AllocationError));
        assert_eq!(with_capacity::<f64>(1 << 55).err(), Some(AllocationError));
        assert_eq!(with_capacity::<u8>(1 << 46).err(), Some(AllocationError));
        assert_eq!(scratch::<f64>(usize::MAX / 4).err(), Some(AllocationError));
        assert_eq!(scratch::<f64>(usize::MAX).err(), Some(AllocationError));
        assert!(zeroed::<f32>(1000).is_ok());
        let at = Site::here("test");
        for len in [1 << 50, usize::MAX] {
            assert!(matches!(check_list::<[u64; 4]>(len, at), Err(Error::OutOfMemory { .. })), "{len}");
        }
        assert!(check_list::<u8>(1000, at).is_ok());
    }
}
