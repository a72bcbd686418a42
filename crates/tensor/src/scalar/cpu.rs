//! The instruction set that the kernels use, chosen at run time.
//!
//! Most kernels are written once, as plain loops over slices. [`dispatched!`](dispatched) compiles a loop for several instruction sets and
//! calls the version for the set in use. Elementwise arithmetic gives the same bits on every set, because it never fuses a multiplication and
//! an addition into one instruction. Functions like `exp` may differ in the last bits. Their polynomials use fused instructions if the set
//! has them, and some functions use tables on one set only. Euclidean distances between rows (`cdist`) use fused instructions too. Matrix
//! products also differ in the order of their sums.
//!
//! The set [`InstructionSet::Portable`] is the mode of equal bits: its results have the same bits on every platform. In this mode, no fused
//! instructions are used, and sums have fixed orders. Functions of the C library are called only if they are exact, for example `fmod` and
//! `floor`. No other library is called that chooses its code by the processor.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

#[cfg(any(target_arch = "x86_64", test))]
use crate::thresholds::rows::MIN_VECTOR_COPY;

/// A set of vector instructions for which kernels are compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum InstructionSet {
    /// The baseline of the architecture, without fused multiply-add instructions. Matrix products use vectors of AVX2 if the processor has
    /// it, with the same order of additions. Results have the same bits on every platform and processor, except for the sign and payload of
    /// NaN.
    Portable = 1,
    /// NEON of AArch64 with fused multiply-add instructions: vectors of 128 bits. Every AArch64 processor has it.
    Neon = 2,
    /// AVX2 and FMA of x86-64: vectors of 256 bits.
    Avx2 = 3,
    /// AVX-512 F, BW, DQ and VL of x86-64: vectors of 512 bits.
    Avx512 = 4,
}

impl InstructionSet {
    /// All sets. The sets of each architecture are in ascending order.
    pub const ALL: [InstructionSet; 4] =
        [InstructionSet::Portable, InstructionSet::Neon, InstructionSet::Avx2, InstructionSet::Avx512];

    /// Returns the name by which the environment variable `WENGERT_SIMD` selects this set. The variable also accepts `reproducible` for
    /// `portable`.
    pub fn name(self) -> &'static str {
        match self {
            InstructionSet::Portable => "portable",
            InstructionSet::Neon => "neon",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Avx512 => "avx512",
        }
    }

    /// Returns the set that the value `name` of `WENGERT_SIMD` selects, or `None` if no set has this name.
    fn from_name(name: &str) -> Option<Self> {
        let name = if name == "reproducible" { "portable" } else { name };
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Returns true if this processor has the instructions of this set.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; }
    /// use wengert::tensor::{InstructionSet, instruction_set};
    ///
    /// assert!(InstructionSet::Portable.is_supported() && instruction_set().is_supported());
    /// ```
    pub fn is_supported(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = || has!("avx2") && has!("fma");
            match self {
                InstructionSet::Portable => true,
                InstructionSet::Neon => false,
                InstructionSet::Avx2 => avx2(),
                InstructionSet::Avx512 => {
                    avx2() && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl")
                }
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            self == InstructionSet::Portable || self == InstructionSet::Neon && cfg!(target_arch = "aarch64")
        }
    }

    /// Returns true if results have the same bits on every platform with this set. Only [`Portable`](Self::Portable) has this property.
    #[inline(always)]
    pub fn is_reproducible(self) -> bool {
        self == InstructionSet::Portable
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn best_supported() -> InstructionSet {
    let supported = InstructionSet::ALL.into_iter().rev().find(|set| set.is_supported());
    supported.unwrap_or(InstructionSet::Portable)
}

/// The instruction set in use, as a number; 0 until it is chosen.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Returns the instruction set in use. By default, this is the largest set that the processor supports. The environment variable
/// `WENGERT_SIMD` selects another set: `portable` or `reproducible`, `neon`, `avx2`, `avx512`. It is read when the set is first needed, and
/// not at all after a call of [`set_instruction_set`]. An unknown name, or a set that the processor lacks, is ignored with a warning in the
/// log.
#[inline(always)]
pub fn instruction_set() -> InstructionSet {
    match CHOSEN.load(Ordering::Relaxed) {
        4 => InstructionSet::Avx512,
        3 => InstructionSet::Avx2,
        2 => InstructionSet::Neon,
        1 => InstructionSet::Portable,
        _ => choose_set(),
    }
}

#[cold]
fn choose_set() -> InstructionSet {
    let best = best_supported();
    let chosen = match std::env::var_os("WENGERT_SIMD") {
        None => best,
        Some(name) => match name.to_str().and_then(InstructionSet::from_name) {
            Some(requested) if requested.is_supported() => requested,
            _ => {
                log::warn!(
                    "WENGERT_SIMD={} names no instruction set of this processor; {best} is used",
                    name.display()
                );
                best
            }
        },
    };
    CHOSEN.store(chosen as u8, Ordering::Relaxed);
    chosen
}

/// Selects the instruction set for all later operations. If the processor lacks `set`, selects the processor's largest set. Elementwise
/// arithmetic gives the same bits on every set. Functions like `exp` and matrix products may differ in the last bits.
/// [`InstructionSet::Portable`] gives the same bits on every platform.
pub fn set_instruction_set(set: InstructionSet) {
    let set = if set.is_supported() { set } else { best_supported() };
    CHOSEN.store(set as u8, Ordering::Relaxed);
}

/// Returns true on an AMD processor. AMD's processors are fastest if memory is read in one stream and written through the caches. Intel's
/// processors are fastest with several streams. This was measured on Zen 5 and on Sapphire Rapids.
#[inline]
pub(crate) fn is_amd() -> bool {
    #[cfg(target_arch = "x86_64")]
    // Only processors of AMD, and of companies that use its designs, have SSE4a.
    return std::arch::is_x86_feature_detected!("sse4a");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Compiles functions for every [`InstructionSet`] of the target architecture. A call runs the version for the set in use. After
/// `with FMA;`, the bodies have the constant `FMA`, which is true if the set has fused multiply-add instructions. The compiler then
/// instantiates each body, and the generic functions that it calls, twice instead of once. A semicolon separates type parameters from a
/// constant parameter.
macro_rules! dispatched {
    (with FMA; $($functions:tt)*) => { $crate::scalar::cpu::dispatched!(@[FMA] true, false; $($functions)*); };
    (@[$fused:ident] $with:literal, $without:literal; $(
        $(#[$meta:meta])*
        $visible:vis fn $name:ident $(<$($generic:ident : $bound:path),* $(; const $n:ident : $kind:ty)?>)? (
            $($arg:ident: $ty:ty),* $(,)?
        ) $(-> $out:ty)? $body:block
    )*) => {$(
        $(#[$meta])*
        #[inline]
        #[allow(unsafe_code, clippy::too_many_arguments)]
        $visible fn $name $(<$($generic: $bound,)* $(const $n: $kind)?>)? ($($arg: $ty),*) $(-> $out)? {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, clippy::extra_unused_type_parameters)]
            fn plain<$($($generic: $bound,)* $(const $n: $kind,)?)? const $fused: bool>($($arg: $ty),*) $(-> $out)? $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            fn avx2 $(<$($generic: $bound,)* $(const $n: $kind)?>)? ($($arg: $ty),*) $(-> $out)? {
                plain::<$($($generic,)* $($n,)?)? $with>($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
            #[allow(clippy::too_many_arguments)]
            fn avx512 $(<$($generic: $bound,)* $(const $n: $kind)?>)? ($($arg: $ty),*) $(-> $out)? {
                plain::<$($($generic,)* $($n,)?)? $with>($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a set is in use only if the processor was found to support it.
            unsafe {
                match $crate::scalar::cpu::instruction_set() {
                    $crate::scalar::cpu::InstructionSet::Avx512 => return avx512 $(::<$($generic,)* $($n)?>)? ($($arg),*),
                    $crate::scalar::cpu::InstructionSet::Avx2 => return avx2 $(::<$($generic,)* $($n)?>)? ($($arg),*),
                    _ => {}
                }
            }
            // Every aarch64 processor has NEON and FMA, so the plain version is compiled with them already.
            #[cfg(target_arch = "aarch64")]
            if $crate::scalar::cpu::instruction_set() == $crate::scalar::cpu::InstructionSet::Neon {
                return plain::<$($($generic,)* $($n,)?)? $with>($($arg),*);
            }
            plain::<$($($generic,)* $($n,)?)? $without>($($arg),*)
        }
    )*};
    ($($functions:tt)*) => { $crate::scalar::cpu::dispatched!(@[_FMA] false, false; $($functions)*); };
}

pub(crate) use dispatched;

/// Copies `from` to `to`. With AVX2 and AVX-512, uses non-temporal stores, which bypass the caches. For results larger than the caches this
/// is faster: the target is not read first, and other data stays in the caches. With the other sets, this is a plain copy.
pub(crate) fn stream<T: Copy>(from: &[T], to: &mut [T]) {
    assert_eq!(from.len(), to.len());
    #[cfg(target_arch = "x86_64")]
    if instruction_set() >= InstructionSet::Avx2 {
        // SAFETY: the processor has AVX2, checked above.
        unsafe { stream_avx2(from, to) };
        return;
    }
    to.copy_from_slice(from);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn stream_avx2<T: Copy>(from: &[T], to: &mut [T]) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_stream_si256};
    // Plain stores copy the elements before the target's first cache line boundary and after its last whole line. The whole lines between
    // are streamed.
    let head = to.as_ptr().align_offset(64).min(to.len());
    let lines = (to.len() - head) * size_of::<T>() / 64;
    let body = lines * 64 / size_of::<T>();
    to[..head].copy_from_slice(&from[..head]);
    to[head + body..].copy_from_slice(&from[head + body..]);
    let (from, to) = (from[head..].as_ptr().cast::<__m256i>(), to[head..].as_mut_ptr().cast::<__m256i>());
    for half in 0..2 * lines {
        // SAFETY: `lines` lines of 64 bytes lie within both slices after `head` elements; `to` is aligned to 64 bytes there. The slices do
        // not overlap, because one is borrowed mutably.
        unsafe { _mm256_stream_si256(to.add(half), _mm256_loadu_si256(from.add(half))) };
    }
}

/// Copies `from` to `to`. For copies that [`is_memcpy_slow`] describes, uses vectors of AVX2 instead of `memcpy`, if the instruction set in
/// use has them.
#[inline]
pub(crate) fn copy<T: Copy>(from: &[T], to: &mut [T]) {
    #[cfg(target_arch = "x86_64")]
    if is_memcpy_slow(from, to) && instruction_set() >= InstructionSet::Avx2 {
        assert_eq!(from.len(), to.len());
        // SAFETY: the processor has AVX2, checked above.
        unsafe { copy_avx2(from, to) };
        return;
    }
    to.copy_from_slice(from);
}

/// Returns true for a copy of at least [`MIN_VECTOR_COPY`] bytes whose target begins 1 to 63 bytes after its source, modulo the page size of
/// 4096 bytes. For such a long copy, glibc's `memcpy` uses the instruction `rep movsb`, which is then slow on AMD's processors.
#[cfg(target_arch = "x86_64")]
#[inline]
fn is_memcpy_slow<T>(from: &[T], to: &[T]) -> bool {
    let distance = to.as_ptr().addr().wrapping_sub(from.as_ptr().addr()) % 4096;
    size_of_val(from) >= MIN_VECTOR_COPY && (1..64).contains(&distance)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn copy_avx2<T: Copy>(from: &[T], to: &mut [T]) {
    use std::arch::x86_64::{__m256i, _mm256_loadu_si256, _mm256_storeu_si256};
    let bytes = size_of_val(from).min(size_of_val(to));
    const VECTOR: usize = size_of::<__m256i>();
    let Some(last) = bytes.checked_sub(VECTOR) else { return to.copy_from_slice(from) };
    let (from, to) = (from.as_ptr().cast::<u8>(), to.as_mut_ptr().cast::<u8>());
    // Stores that cross cache lines take longer. So the vectors of long copies, except for the first and the last, are aligned.
    let mut done = if bytes < 16 * VECTOR { 0 } else { to.align_offset(VECTOR).min(VECTOR) };
    // SAFETY: `done + part * VECTOR` is at most `last` below, so each vector lies within both slices. The slices do not overlap, because
    // one is borrowed mutably.
    unsafe {
        if done > 0 {
            _mm256_storeu_si256(to.cast(), _mm256_loadu_si256(from.cast()));
        }
        while done + 4 * VECTOR <= bytes {
            let vectors: [__m256i; 4] = std::array::from_fn(
                #[inline(always)]
                |part| _mm256_loadu_si256(from.add(done + part * VECTOR).cast()),
            );
            for (part, vector) in vectors.into_iter().enumerate() {
                _mm256_storeu_si256(to.add(done + part * VECTOR).cast(), vector);
            }
            done += 4 * VECTOR;
        }
        while done < last {
            _mm256_storeu_si256(to.add(done).cast(), _mm256_loadu_si256(from.add(done).cast()));
            done += VECTOR;
        }
        // The last vector may overlap the vector before it.
        _mm256_storeu_si256(to.add(last).cast(), _mm256_loadu_si256(from.add(last).cast()));
    }
}

/// Copies 16 elements, on x86-64 with stores that bypass the caches. There, `to` must be aligned to 16 bytes. If `from` was just computed,
/// this is faster than [`stream`] of a whole block. The processor then reads operands and writes results at the same time.
#[inline(always)]
pub(crate) fn stream_line<T: Copy>(from: &[T; 16], to: &mut [T; 16]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        let (from, to) = (from.as_ptr().cast::<__m128i>(), to.as_mut_ptr().cast::<__m128i>());
        assert!(to.is_aligned(), "streamed lines begin at a multiple of 16 bytes");
        for part in 0..size_of::<[T; 16]>() / size_of::<__m128i>() {
            // SAFETY: `part` lies within both arrays, which do not overlap; `to` is aligned; every x86-64 processor has SSE2.
            unsafe { _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part))) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

/// Makes streamed results visible to other threads. It must be called after the last [`stream`] or [`stream_line`] of a task.
pub(crate) fn fence_streams() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has SSE.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streaming_is_copying_at_every_alignment() {
        let from: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        for offset in 0..20 {
            for len in [0, 1, 15, 16, 17, 63, 64, 500] {
                let mut to = vec![-1.0f32; 1000];
                stream(&from[3..3 + len], &mut to[offset..offset + len]);
                fence_streams();
                assert_eq!(&to[offset..offset + len], &from[3..3 + len]);
                assert!(to[..offset].iter().chain(&to[offset + len..]).all(|&x| x == -1.0));
            }
        }
    }

    #[test]
    fn a_copy_by_vectors_is_a_copy() {
        let from: Vec<u8> = (0..9000).map(|i| (i * 7 % 251) as u8).collect();
        let mut to = vec![255u8; 20_000];
        // The offset in `to` whose address is as far from the start of a memory page as the address of `from`.
        let same = from.as_ptr().addr().wrapping_sub(to.as_ptr().addr()) % 4096;
        for offset in (0..70).map(|offset| same + offset) {
            for len in [0, 1, 33, MIN_VECTOR_COPY - 1, MIN_VECTOR_COPY, MIN_VECTOR_COPY + 37, 4096, 5001] {
                to.fill(255);
                copy(&from[..len], &mut to[offset..offset + len]);
                assert_eq!(&to[offset..offset + len], &from[..len]);
                assert!(to[..offset].iter().chain(&to[offset + len..]).all(|&x| x == 255));
            }
        }
    }

    #[test]
    fn the_set_in_use_is_one_that_the_machine_has() {
        assert!(instruction_set().is_supported());
        assert!(InstructionSet::Portable.is_supported());
        assert!(best_supported() == InstructionSet::Portable || !best_supported().is_reproducible());
    }

    #[test]
    fn names_are_read() {
        for set in InstructionSet::ALL {
            assert_eq!(InstructionSet::from_name(set.name()), Some(set));
        }
        assert_eq!(InstructionSet::from_name("reproducible"), Some(InstructionSet::Portable));
        assert_eq!(InstructionSet::from_name("sse9"), None);
    }
}
