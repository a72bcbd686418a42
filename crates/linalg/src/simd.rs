//! Calls closures that are compiled for the instruction set in use.

#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};
#[cfg(target_arch = "x86_64")]
use wengert_tensor::{InstructionSet, instruction_set};

/// Calls `work`, compiled for AVX2 or AVX-512 if one of them is in use. Only `work` and the functions that it calls with `#[inline(always)]`
/// are compiled in this way. All other code is compiled for the oldest processor that the program supports.
#[inline]
pub(crate) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    match instruction_set() {
        InstructionSet::Avx512 => {
            if let Some(set) = V4::try_new() {
                return set.vectorize(Work(work));
            }
        }
        InstructionSet::Avx2 => {
            if let Some(set) = V3::try_new() {
                return set.vectorize(Work(work));
            }
        }
        _ => {}
    }
    work()
}

/// A closure that `pulp` inlines into a function with vector instructions.
#[cfg(target_arch = "x86_64")]
struct Work<F>(F);

#[cfg(target_arch = "x86_64")]
impl<R, F: FnOnce() -> R> pulp::NullaryFnOnce for Work<F> {
    type Output = R;

    #[inline(always)]
    fn call(self) -> R {
        (self.0)()
    }
}
