//! Asking for memory without the risk of an abort.
//!
//! An operating system may promise memory that it does not have and end the process on first use. So large requests are
//! first held against what the machine and its control group have available.

use crate::Shape;
use crate::memory::pool;
use crate::memory::pool::Block;
use crate::scalar::element::Scalar;
use crate::shape::error::{Error, Site};

/// A request that memory cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// Requests below this are not held against the available memory: asking costs more than it tells.
const SMALL: usize = 256 << 20;

/// A vector of `len` zeros.
pub(crate) fn zeroed<T: Scalar>(len: usize) -> Result<Vec<T>, Refused> {
    let mut data = with_capacity(len)?;
    data.resize(len, T::ZERO);
    Ok(data)
}

/// A buffer of `len` elements that are anything, for those who write all of them. The pool [`serves`](pool::serves) it.
pub(crate) fn scratch<T: Scalar>(len: usize) -> Result<Block<T>, Refused> {
    if let Some(block) = pool::take(len) {
        return Ok(block);
    }
    check::<T>(len)?;
    pool::fresh(len)
}

/// Refuses what memory cannot hold.
fn check<T: Scalar>(len: usize) -> Result<(), Refused> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize / 2).ok_or(Refused)?;
    let too_much = || available().is_some_and(|available| bytes as u64 > available);
    if bytes >= SMALL && too_much() {
        pool::clear_pool();
        if too_much() {
            return Err(Refused);
        }
    }
    Ok(())
}

/// A vector with room for `len` elements.
pub(crate) fn with_capacity<T: Scalar>(len: usize) -> Result<Vec<T>, Refused> {
    check::<T>(len)?;
    let mut data = Vec::new();
    data.try_reserve_exact(len).map_err(|_| Refused)?;
    Ok(data)
}

/// Bytes that can be used now, where the system tells (Linux): the least of `MemAvailable` and what the control group leaves.
fn available() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let group = || -> Option<u64> {
        let read = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
        let limit = read("/sys/fs/cgroup/memory.max")?;
        Some(limit.saturating_sub(read("/sys/fs/cgroup/memory.current")?))
    };
    let machine = kibibytes * 1024;
    Some(group().map_or(machine, |group| group.min(machine)))
}

/// The number of elements of `shape`, checked: no tensor is larger than `isize::MAX` bytes, expanded or not.
///
/// # Errors
///
/// Where it is.
pub fn addressable<T: Scalar>(shape: &Shape, at: Site) -> Result<usize, Error> {
    match shape.checked_numel() {
        Some(count @ 1..) if count <= isize::MAX as usize / size_of::<T>() => Ok(count),
        Some(0) if shape.iter().all(|&size| size <= isize::MAX as usize) => Ok(0),
        _ => Err(Error::TooLarge { shape: shape.clone(), dtype: T::DTYPE, at }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_requests_are_refused_not_fatal() {
        assert_eq!(with_capacity::<f64>(usize::MAX / 4).err(), Some(Refused));
        assert_eq!(with_capacity::<f64>(1 << 55).err(), Some(Refused));
        assert_eq!(with_capacity::<u8>(1 << 46).err(), Some(Refused));
        assert!(zeroed::<f32>(1000).is_ok());
    }
}
