//! The vector instructions of the inner loops of matrix products and convolutions.
//!
//! The types that implement [`Simd`] have no data and are called tokens. A value of a token type exists only if the processor has the
//! instructions, so its methods are safe to call. Only [`micro`](crate::kernel::matmul::micro) makes values, for the instruction set in use.
#![allow(unsafe_code)]

use std::array::from_fn;

/// The instructions of one instruction set on vectors of `L` elements of type `T`.
pub(super) trait Simd<T, const L: usize>: Copy {
    type Vector: Copy;

    fn splat(self, value: T) -> Self::Vector;
    fn load(self, from: &[T; L]) -> Self::Vector;
    /// Loads at most `L` elements. The other elements of the vector are 0.
    fn load_part(self, from: &[T]) -> Self::Vector;
    fn store(self, x: Self::Vector, to: &mut [T; L]);
    /// Stores the first elements of a vector, as many as `to` has, and at most `L`.
    fn store_part(self, x: Self::Vector, to: &mut [T]);
    fn multiply_add(self, x: Self::Vector, y: Self::Vector, z: Self::Vector) -> Self::Vector;
    fn sum(self, x: Self::Vector) -> T;

    /// Returns the sums of four vectors. Each has the same bits as the result of [`sum`](Self::sum).
    #[inline(always)]
    fn sum_four(self, [a, b, c, d]: [Self::Vector; 4]) -> [T; 4] {
        [self.sum(a), self.sum(b), self.sum(c), self.sum(d)]
    }
}

/// The type whose value shows that the processor has AVX-512 F, AVX2 and FMA. A value exists only on these processors.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx512(pub(super) ());

/// The type whose value shows that the processor has AVX2. A value exists only on these processors. If `FUSED` is true, these processors
/// also have FMA, and the loops use it. Otherwise the loops give the same bits as with [`Portable`], in vectors of 256 bits (128 bits for
/// dot products of f32).
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2<const FUSED: bool>(pub(super) ());

/// The type whose value shows that the processor has NEON. Every AArch64 processor has NEON.
#[cfg(target_arch = "aarch64")]
#[derive(Clone, Copy)]
pub(super) struct Neon;

/// The type that implements [`Simd`] on every processor. Its vectors are arrays of four elements. The number of elements determines the order
/// of the sums of dot products. Multiplications and additions are rounded separately, so the results have the same bits on every processor.
#[derive(Clone, Copy)]
pub(super) struct Portable;

macro_rules! vectors {
    ($($token:ident $(<$fused:ident>)? $type:ident $vector:ident $lanes:literal $splat:ident $load:ident $store:ident
        |$x:ident, $y:ident, $z:ident| $multiply_add:expr, |$part:ident, $count:ident| $load_part:expr,
        |$numbers:ident, $to:ident, $room:ident| $store_part:expr, |$whole:ident| $sum:expr
        $(, |$vectors:ident| $sum_four:expr)?;)*) => {$(
        #[cfg(target_arch = "x86_64")]
        impl $(<const $fused: bool>)? Simd<$type, $lanes> for $token $(<$fused>)? {
            type Vector = std::arch::x86_64::$vector;

            #[inline(always)]
            fn splat(self, value: $type) -> Self::Vector {
                // SAFETY: a value of this type exists only on processors with the instruction.
                unsafe { std::arch::x86_64::$splat(value) }
            }

            #[inline(always)]
            fn load(self, from: &[$type; $lanes]) -> Self::Vector {
                // SAFETY: a value of this type exists only on processors with the instruction. The array is as long as the vector.
                unsafe { std::arch::x86_64::$load(from.as_ptr()) }
            }

            #[inline(always)]
            fn load_part(self, from: &[$type]) -> Self::Vector {
                #[allow(clippy::wildcard_imports)]
                use std::arch::x86_64::*;
                let $count = from.len().min($lanes) as i32;
                let $part = from.as_ptr();
                // SAFETY: a value of this type exists only on processors with the instructions. The mask selects at most as many elements
                // as the slice has.
                unsafe { $load_part }
            }

            #[inline(always)]
            fn store(self, x: Self::Vector, to: &mut [$type; $lanes]) {
                // SAFETY: a value of this type exists only on processors with the instruction. The array is as long as the vector.
                unsafe { std::arch::x86_64::$store(to.as_mut_ptr(), x) }
            }

            #[inline(always)]
            fn store_part(self, $numbers: Self::Vector, to: &mut [$type]) {
                #[allow(clippy::wildcard_imports)]
                use std::arch::x86_64::*;
                let $room = to.len().min($lanes) as i32;
                let $to = to.as_mut_ptr();
                // SAFETY: a value of this type exists only on processors with the instructions. The mask selects at most as many elements
                // as the slice has.
                unsafe { $store_part }
            }

            #[inline(always)]
            fn multiply_add(self, $x: Self::Vector, $y: Self::Vector, $z: Self::Vector) -> Self::Vector {
                #[allow(clippy::wildcard_imports)]
                use std::arch::x86_64::*;
                // SAFETY: a value of this type exists only on processors with the instructions.
                unsafe { $multiply_add }
            }

            #[inline(always)]
            fn sum(self, $whole: Self::Vector) -> $type {
                #[allow(clippy::wildcard_imports)]
                use std::arch::x86_64::*;
                // SAFETY: a value of this type exists only on processors with the instructions.
                unsafe { $sum }
            }
            $(
                #[inline(always)]
                fn sum_four(self, $vectors: [Self::Vector; 4]) -> [$type; 4] {
                    #[allow(clippy::wildcard_imports)]
                    use std::arch::x86_64::*;
                    let mut sums = [0.0; 4];
                    // SAFETY: a value of this type exists only on processors with the instructions. The array has room for four numbers.
                    unsafe { _mm_storeu_ps(sums.as_mut_ptr(), $sum_four) };
                    sums
                }
            )?
        }
    )*};
}

vectors!(
    Avx512 f32 __m512 16 _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps
        |x, y, z| _mm512_fmadd_ps(x, y, z),
        |from, count| _mm512_maskz_loadu_ps(((1_u32 << count) - 1) as __mmask16, from),
        |x, to, room| _mm512_mask_storeu_ps(to, ((1_u32 << room) - 1) as __mmask16, x), |x| _mm512_reduce_add_ps(x),
        |x| {
            // Adds the halves of each vector, then the quarters. The result has a quarter of 128 bits for each of the four vectors.
            let (first, second) = (_mm512_shuffle_f32x4::<0x44>(x[0], x[1]), _mm512_shuffle_f32x4::<0xee>(x[0], x[1]));
            let low = _mm512_add_ps(first, second);
            let (first, second) = (_mm512_shuffle_f32x4::<0x44>(x[2], x[3]), _mm512_shuffle_f32x4::<0xee>(x[2], x[3]));
            let high = _mm512_add_ps(first, second);
            let (first, second) = (_mm512_shuffle_f32x4::<0x88>(low, high), _mm512_shuffle_f32x4::<0xdd>(low, high));
            let quarters = _mm512_add_ps(first, second);
            let pairs = _mm512_add_ps(quarters, _mm512_permute_ps::<0x4e>(quarters));
            let sums = _mm512_add_ps(pairs, _mm512_permute_ps::<0xb1>(pairs));
            let first_of_each_quarter = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
            _mm512_castps512_ps128(_mm512_permutexvar_ps(first_of_each_quarter, sums))
        };
    Avx512 f64 __m512d 8 _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd
        |x, y, z| _mm512_fmadd_pd(x, y, z),
        |from, count| _mm512_maskz_loadu_pd(((1_u32 << count) - 1) as __mmask8, from),
        |x, to, room| _mm512_mask_storeu_pd(to, ((1_u32 << room) - 1) as __mmask8, x), |x| _mm512_reduce_add_pd(x);
    Avx2<FUSED> f32 __m256 8 _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps
        |x, y, z| if FUSED { _mm256_fmadd_ps(x, y, z) } else { _mm256_add_ps(_mm256_mul_ps(x, y), z) },
        |from, count| {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_maskload_ps(from, _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lanes))
        },
        |x, to, room| {
            let lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            _mm256_maskstore_ps(to, _mm256_cmpgt_epi32(_mm256_set1_epi32(room), lanes), x)
        },
        |x| {
            let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
        },
        |x| {
            // Adds the halves of each vector, then the pairs. Each half of the result has the sums of two vectors.
            let (first, second) = (_mm256_permute2f128_ps::<0x20>(x[0], x[1]), _mm256_permute2f128_ps::<0x31>(x[0], x[1]));
            let low = _mm256_add_ps(first, second);
            let (first, second) = (_mm256_permute2f128_ps::<0x20>(x[2], x[3]), _mm256_permute2f128_ps::<0x31>(x[2], x[3]));
            let high = _mm256_add_ps(first, second);
            let pairs = _mm256_add_ps(_mm256_shuffle_ps::<0x44>(low, high), _mm256_shuffle_ps::<0xee>(low, high));
            let sums = _mm256_add_ps(_mm256_shuffle_ps::<0x88>(pairs, pairs), _mm256_shuffle_ps::<0xdd>(pairs, pairs));
            _mm_unpacklo_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums))
        };
    Avx2<FUSED> f64 __m256d 4 _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd
        |x, y, z| if FUSED { _mm256_fmadd_pd(x, y, z) } else { _mm256_add_pd(_mm256_mul_pd(x, y), z) },
        |from, count| {
            let lanes = _mm256_setr_epi64x(0, 1, 2, 3);
            _mm256_maskload_pd(from, _mm256_cmpgt_epi64(_mm256_set1_epi64x(i64::from(count)), lanes))
        },
        |x, to, room| {
            let lanes = _mm256_setr_epi64x(0, 1, 2, 3);
            _mm256_maskstore_pd(to, _mm256_cmpgt_epi64(_mm256_set1_epi64x(i64::from(room)), lanes), x)
        },
        |x| {
            let x = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
            _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)))
        };
);

macro_rules! portable {
    ($($type:ident),*) => {$(
        impl Simd<$type, 4> for Portable {
            type Vector = [$type; 4];

            #[inline(always)]
            fn splat(self, value: $type) -> [$type; 4] {
                [value; 4]
            }

            #[inline(always)]
            fn load(self, from: &[$type; 4]) -> [$type; 4] {
                *from
            }

            #[inline(always)]
            fn load_part(self, from: &[$type]) -> [$type; 4] {
                from.first_chunk().copied().unwrap_or_else(|| from_fn(|k| from.get(k).copied().unwrap_or(0.0)))
            }

            #[inline(always)]
            fn store(self, x: [$type; 4], to: &mut [$type; 4]) {
                *to = x;
            }

            #[inline(always)]
            fn store_part(self, x: [$type; 4], to: &mut [$type]) {
                to.iter_mut().zip(x).for_each(|(to, x)| *to = x);
            }

            #[inline(always)]
            fn multiply_add(self, x: [$type; 4], y: [$type; 4], z: [$type; 4]) -> [$type; 4] {
                from_fn(|k| x[k] * y[k] + z[k])
            }

            #[inline(always)]
            fn sum(self, x: [$type; 4]) -> $type {
                (x[0] + x[2]) + (x[1] + x[3])
            }
        }
    )*};
}

portable!(f32, f64);

#[cfg(target_arch = "aarch64")]
macro_rules! neon {
    ($($type:ident $vector:ident $lanes:literal $splat:ident $load:ident $store:ident $multiply_add:ident $sum:ident),*) => {$(
        impl Simd<$type, $lanes> for Neon {
            type Vector = std::arch::aarch64::$vector;

            #[inline(always)]
            fn splat(self, value: $type) -> Self::Vector {
                // SAFETY: every processor of AArch64 has the instruction.
                unsafe { std::arch::aarch64::$splat(value) }
            }

            #[inline(always)]
            fn load(self, from: &[$type; $lanes]) -> Self::Vector {
                // SAFETY: every processor of AArch64 has the instruction. The array is as long as the vector.
                unsafe { std::arch::aarch64::$load(from.as_ptr()) }
            }

            #[inline(always)]
            fn load_part(self, from: &[$type]) -> Self::Vector {
                match from.first_chunk() {
                    Some(from) => self.load(from),
                    None => {
                        let mut part = [0.0; $lanes];
                        part.iter_mut().zip(from).for_each(|(to, &from)| *to = from);
                        self.load(&part)
                    }
                }
            }

            #[inline(always)]
            fn store(self, x: Self::Vector, to: &mut [$type; $lanes]) {
                // SAFETY: every processor of AArch64 has the instruction. The array is as long as the vector.
                unsafe { std::arch::aarch64::$store(to.as_mut_ptr(), x) }
            }

            #[inline(always)]
            fn store_part(self, x: Self::Vector, to: &mut [$type]) {
                match to.first_chunk_mut() {
                    Some(to) => self.store(x, to),
                    None => {
                        let mut part = [0.0; $lanes];
                        self.store(x, &mut part);
                        to.iter_mut().zip(part).for_each(|(to, from)| *to = from);
                    }
                }
            }

            #[inline(always)]
            fn multiply_add(self, x: Self::Vector, y: Self::Vector, z: Self::Vector) -> Self::Vector {
                // SAFETY: every processor of AArch64 has the instruction.
                unsafe { std::arch::aarch64::$multiply_add(z, x, y) }
            }

            #[inline(always)]
            fn sum(self, x: Self::Vector) -> $type {
                // SAFETY: every processor of AArch64 has the instruction.
                unsafe { std::arch::aarch64::$sum(x) }
            }
        }
    )*};
}

#[cfg(target_arch = "aarch64")]
neon!(
    f32 float32x4_t 4 vdupq_n_f32 vld1q_f32 vst1q_f32 vfmaq_f32 vaddvq_f32,
    f64 float64x2_t 2 vdupq_n_f64 vld1q_f64 vst1q_f64 vfmaq_f64 vaddvq_f64
);

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use crate::{Generator, InstructionSet, Tensor};

    #[test]
    fn the_sums_of_four_vectors_have_the_bits_of_single_sums() {
        fn check<S: Simd<f32, L>, const L: usize>(cpu: S) {
            let numbers = Tensor::<f32>::randn([400, 4, L], &mut Generator::new(7)).to_vec();
            for four in numbers.as_chunks::<L>().0.as_chunks::<4>().0 {
                let single = four.map(|vector| cpu.sum(cpu.load(&vector)).to_bits());
                assert_eq!(cpu.sum_four(four.map(|vector| cpu.load(&vector))).map(f32::to_bits), single);
            }
        }
        if InstructionSet::Avx2.is_supported() {
            check(Avx2::<true>(()));
            check(Avx2::<false>(()));
        }
        if InstructionSet::Avx512.is_supported() {
            check(Avx512(()));
        }
    }
}
