//! The inner loops of [`direct`](crate::kernel::conv::direct), whose sums are to stay in registers: by vectors of the processor, for each
//! instruction set, since what the compiler makes of plain loops of that kind does not.
#![allow(unsafe_code)]

use crate::scalar::cpu::{InstructionSet, instruction_set};

/// A vector of numbers.
trait Vector<T>: Copy {
    const LANES: usize;

    /// # Safety
    ///
    /// The processor has the instructions, here and below.
    unsafe fn splat(value: T) -> Self;

    /// # Safety
    ///
    /// `LANES` numbers lie there.
    unsafe fn load(from: *const T) -> Self;

    /// # Safety
    ///
    /// `LANES` numbers have room there.
    unsafe fn store(self, to: *mut T);

    /// `self * by + to`.
    ///
    /// # Safety
    ///
    /// As for [`splat`](Self::splat).
    unsafe fn multiply_add(self, by: Self, to: Self) -> Self;

    /// The sum of its numbers.
    ///
    /// # Safety
    ///
    /// As for [`splat`](Self::splat).
    unsafe fn sum(self) -> T;
}

macro_rules! vectors {
    ($($type:ident $vector:ident $lanes:literal $splat:ident $load:ident $store:ident $multiply_add:ident |$whole:ident| $sum:expr),*) => {$(
        #[cfg(target_arch = "x86_64")]
        impl Vector<$type> for std::arch::x86_64::$vector {
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn splat(value: $type) -> Self {
                // SAFETY: the caller's promise, here and below.
                unsafe { std::arch::x86_64::$splat(value) }
            }

            #[inline(always)]
            unsafe fn load(from: *const $type) -> Self {
                // SAFETY: the caller's promise.
                unsafe { std::arch::x86_64::$load(from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $type) {
                // SAFETY: the caller's promise.
                unsafe { std::arch::x86_64::$store(to, self) }
            }

            #[inline(always)]
            unsafe fn multiply_add(self, by: Self, to: Self) -> Self {
                // SAFETY: the caller's promise.
                unsafe { std::arch::x86_64::$multiply_add(self, by, to) }
            }

            #[inline(always)]
            unsafe fn sum(self) -> $type {
                #[allow(clippy::wildcard_imports)]
                use std::arch::x86_64::*;
                let $whole = self;
                // SAFETY: the caller's promise.
                unsafe { $sum }
            }
        }
    )*};
}

vectors!(
    f32 __m512 16 _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_fmadd_ps |x| _mm512_reduce_add_ps(x),
    f64 __m512d 8 _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_fmadd_pd |x| _mm512_reduce_add_pd(x),
    f32 __m256 8 _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_fmadd_ps |x| {
        let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
        _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)))
    },
    f64 __m256d 4 _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_fmadd_pd |x| {
        let x = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
        _mm_cvtsd_f64(_mm_add_sd(x, _mm_unpackhi_pd(x, x)))
    }
);

/// What every processor has: two vectors of 128 bits, or one of them.
#[derive(Clone, Copy)]
struct Plain<T>([T; 4]);

macro_rules! plain {
    ($($type:ident),*) => {$(
        impl Vector<$type> for Plain<$type> {
            const LANES: usize = 4;

            #[inline(always)]
            unsafe fn splat(value: $type) -> Self {
                Plain([value; 4])
            }

            #[inline(always)]
            unsafe fn load(from: *const $type) -> Self {
                // SAFETY: the caller's promise; an array of numbers may lie wherever they may.
                Plain(unsafe { from.cast::<[$type; 4]>().read() })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $type) {
                // SAFETY: the caller's promise.
                unsafe { to.cast::<[$type; 4]>().write(self.0) }
            }

            #[inline(always)]
            unsafe fn sum(self) -> $type {
                (self.0[0] + self.0[2]) + (self.0[1] + self.0[3])
            }

            #[inline(always)]
            unsafe fn multiply_add(self, by: Self, to: Self) -> Self {
                Plain(std::array::from_fn(|k| if cfg!(target_arch = "aarch64") { self.0[k].mul_add(by.0[k], to.0[k]) } else { self.0[k] * by.0[k] + to.0[k] }))
            }
        }
    )*};
}

plain!(f32, f64);

/// `results[r][i]` = Σ over inputs and taps of `factors[input, tap][r]` · `source[input * plane + tap + i]`, for `R` rows and
/// `count` elements, rounded up to whole vectors, `C` of them at once.
///
/// # Safety
///
/// All of that lies inside of what the pointers point to, up to whole `C * LANES` elements, and the processor has the
/// instructions.
#[inline(always)]
unsafe fn tile<T: Copy, V: Vector<T>, const R: usize, const C: usize>(
    zero: T,
    source: *const T,
    (inputs, plane): (usize, usize),
    taps: &[usize],
    factors: *const T,
    (results, row): (*mut T, usize),
    count: usize,
) {
    for first in (0..count).step_by(C * V::LANES) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut sums = [[V::splat(zero); C]; R];
            let mut factors = factors;
            for input in 0..inputs {
                let source = source.add(input * plane + first);
                for &tap in taps {
                    let source = source.add(tap);
                    let x: [V; C] = std::array::from_fn(|c| V::load(source.add(c * V::LANES)));
                    for (r, sums) in sums.iter_mut().enumerate() {
                        let factor = V::splat(*factors.add(r));
                        for (sum, x) in sums.iter_mut().zip(x) {
                            *sum = x.multiply_add(factor, *sum);
                        }
                    }
                    factors = factors.add(R);
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                for (c, sum) in sums.iter().enumerate() {
                    sum.store(results.add(r * row + first + c * V::LANES));
                }
            }
        }
    }
}

/// `sums[r][k]` += Σ `z[r * row + i]` · `x[runs[k] + i]` for `R` rows, all runs, `C` of them at once, and `count` elements,
/// a multiple of `LANES`.
///
/// # Safety
///
/// All of that lies inside of what the pointers point to, and the processor has the instructions.
#[inline(always)]
unsafe fn dots<T: Copy + std::ops::Add<Output = T>, V: Vector<T>, const R: usize, const C: usize>(
    zero: T,
    (z, row): (*const T, usize),
    x: *const T,
    runs: &[usize],
    count: usize,
    sums: &mut [T],
) {
    for (number, some) in runs.chunks(C).enumerate() {
        // Of a chunk that is not whole, the last run is computed several times.
        let some: [usize; C] = std::array::from_fn(|c| some[c.min(some.len() - 1)]);
        // SAFETY: the caller's promise.
        unsafe {
            let mut totals = [[V::splat(zero); C]; R];
            for i in (0..count).step_by(V::LANES) {
                let left: [V; R] = std::array::from_fn(|r| V::load(z.add(r * row + i)));
                for c in 0..C {
                    let right = V::load(x.add(some[c] + i));
                    for r in 0..R {
                        totals[r][c] = left[r].multiply_add(right, totals[r][c]);
                    }
                }
            }
            for (r, totals) in totals.iter().enumerate() {
                for (sum, total) in sums[r * runs.len()..][..runs.len()].iter_mut().skip(number * C).zip(totals) {
                    *sum = *sum + total.sum();
                }
            }
        }
    }
}

/// `out[r][c]` (+)= Σ over `l < k` of `x[r, l]` · `y[l][c]`, for `R` rows and `C` vectors of columns; `x` by its strides, `y` and
/// `out` by their rows.
///
/// # Safety
///
/// All of that lies inside of what the pointers point to, and the processor has the instructions.
#[inline(always)]
unsafe fn product<T: Copy, V: Vector<T>, const R: usize, const C: usize>(
    zero: T,
    k: usize,
    (x, down, along): (*const T, isize, isize),
    (y, y_row): (*const T, isize),
    (out, row): (*mut T, usize),
    add: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [[V::splat(zero); C]; R];
        if add {
            sums = std::array::from_fn(|r| std::array::from_fn(|c| V::load(out.add(r * row + c * V::LANES))));
        }
        for l in 0..k as isize {
            let y = y.offset(l * y_row);
            let y: [V; C] = std::array::from_fn(|c| V::load(y.add(c * V::LANES)));
            for (r, sums) in sums.iter_mut().enumerate() {
                let factor = V::splat(*x.offset(r as isize * down + l * along));
                for (sum, y) in sums.iter_mut().zip(y) {
                    *sum = y.multiply_add(factor, *sum);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (c, sum) in sums.iter().enumerate() {
                sum.store(out.add(r * row + c * V::LANES));
            }
        }
    }
}

/// Rows, strides of `x`; `y`; `out`: see [`product`].
type Operands<T> = ((*const T, isize, isize), (*const T, isize), (*mut T, usize));

/// The loops for one type and one instruction set.
pub(crate) struct Kernels<T> {
    /// Numbers in a vector.
    pub(crate) lanes: usize,
    /// How many rows to compute at once where so many are left; maybe more than that.
    pub(crate) rows: fn(usize) -> usize,
    /// [`tile`], for as many rows.
    #[allow(clippy::type_complexity)]
    pub(crate) tile: unsafe fn(usize, *const T, (usize, usize), &[usize], *const T, (*mut T, usize), usize),
    /// How many rows to multiply at once where so many are left; of one run, also 8.
    pub(crate) dot_rows: fn(usize) -> usize,
    /// [`dots`], for as many rows.
    #[allow(clippy::type_complexity)]
    pub(crate) dots: unsafe fn(usize, (*const T, usize), *const T, &[usize], usize, &mut [T]),
    /// [`product`], for 4 rows or 1, and 4, 2 or 1 vectors of columns.
    pub(crate) product: unsafe fn((usize, usize), usize, Operands<T>, bool),
}

macro_rules! kernels {
    ($name:ident $type:ident $vector:ty, $($feature:literal)?, tiles $([$rows:literal $columns:literal])*, dots $([$dot_rows:literal $dot_columns:literal])*) => {
        mod $name {
            use super::*;

            $(#[target_feature(enable = $feature)])?
            unsafe fn tile(
                rows: usize,
                source: *const $type,
                planes: (usize, usize),
                taps: &[usize],
                factors: *const $type,
                results: (*mut $type, usize),
                count: usize,
            ) {
                match rows {
                    // SAFETY: the caller's promise.
                    $($rows => unsafe {
                        super::tile::<$type, $vector, $rows, $columns>(0.0, source, planes, taps, factors, results, count)
                    },)*
                    _ => unreachable!("rows are what is offered"),
                }
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn dots(
                rows: usize,
                z: (*const $type, usize),
                x: *const $type,
                runs: &[usize],
                count: usize,
                sums: &mut [$type],
            ) {
                match rows {
                    // SAFETY: the caller's promise.
                    $($dot_rows => unsafe {
                        super::dots::<$type, $vector, $dot_rows, $dot_columns>(0.0, z, x, runs, count, sums)
                    },)*
                    _ => unreachable!("rows are what is offered"),
                }
            }

            $(#[target_feature(enable = $feature)])?
            unsafe fn product(shape: (usize, usize), k: usize, (x, y, out): Operands<$type>, add: bool) {
                // SAFETY: the caller's promise.
                unsafe {
                    match shape {
                        (4, 4) => super::product::<$type, $vector, 4, 4>(0.0, k, x, y, out, add),
                        (4, 2) => super::product::<$type, $vector, 4, 2>(0.0, k, x, y, out, add),
                        (4, 1) => super::product::<$type, $vector, 4, 1>(0.0, k, x, y, out, add),
                        (1, 4) => super::product::<$type, $vector, 1, 4>(0.0, k, x, y, out, add),
                        (1, 2) => super::product::<$type, $vector, 1, 2>(0.0, k, x, y, out, add),
                        (1, 1) => super::product::<$type, $vector, 1, 1>(0.0, k, x, y, out, add),
                        _ => unreachable!("rows and columns are what is offered"),
                    }
                }
            }

            pub(crate) static KERNELS: Kernels<$type> = Kernels {
                lanes: <$vector as Vector<$type>>::LANES,
                rows: |left| super::fitting(&[$($rows),*], left),
                tile,
                dot_rows: |left| [$($dot_rows),*].into_iter().find(|&rows| rows <= left).unwrap_or(1),
                dots,
                product,
            };
        }
    };
}

/// The first of `rows`, from large to small, that `left` rows fill well enough.
fn fitting(rows: &[usize], left: usize) -> usize {
    rows.iter().copied().find(|&rows| 4 * left >= 3 * rows).unwrap_or(1)
}

#[cfg(target_arch = "x86_64")]
kernels!(f32_avx512 f32 std::arch::x86_64::__m512, "avx2,fma,avx512f", tiles [8 3] [4 6] [1 8], dots [4 6] [1 9] [8 1]);
#[cfg(target_arch = "x86_64")]
kernels!(f64_avx512 f64 std::arch::x86_64::__m512d, "avx2,fma,avx512f", tiles [8 3] [4 6] [1 8], dots [4 6] [1 9] [8 1]);
#[cfg(target_arch = "x86_64")]
kernels!(f32_avx2 f32 std::arch::x86_64::__m256, "avx2,fma", tiles [4 3] [1 8], dots [3 4] [1 9] [8 1]);
#[cfg(target_arch = "x86_64")]
kernels!(f64_avx2 f64 std::arch::x86_64::__m256d, "avx2,fma", tiles [4 3] [1 8], dots [3 4] [1 9] [8 1]);
kernels!(f32_plain f32 Plain<f32>, , tiles [4 2] [1 8], dots [3 3] [1 9] [8 1]);
kernels!(f64_plain f64 Plain<f64>, , tiles [4 2] [1 8], dots [3 3] [1 9] [8 1]);

/// The loops of the instruction set in use.
pub(crate) fn f32_kernels() -> &'static Kernels<f32> {
    match instruction_set() {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => &f32_avx512::KERNELS,
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => &f32_avx2::KERNELS,
        _ => &f32_plain::KERNELS,
    }
}

/// As [`f32_kernels`].
pub(crate) fn f64_kernels() -> &'static Kernels<f64> {
    match instruction_set() {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => &f64_avx512::KERNELS,
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => &f64_avx2::KERNELS,
        _ => &f64_plain::KERNELS,
    }
}

/// The loops of every instruction set that this machine runs.
#[cfg(test)]
pub(crate) fn every_f32() -> Vec<&'static Kernels<f32>> {
    let mut every = vec![&f32_plain::KERNELS];
    #[cfg(target_arch = "x86_64")]
    {
        every.extend((instruction_set() >= InstructionSet::Avx2).then_some(&f32_avx2::KERNELS));
        every.extend((instruction_set() >= InstructionSet::Avx512).then_some(&f32_avx512::KERNELS));
    }
    every
}

/// As [`every_f32`].
#[cfg(test)]
pub(crate) fn every_f64() -> Vec<&'static Kernels<f64>> {
    let mut every = vec![&f64_plain::KERNELS];
    #[cfg(target_arch = "x86_64")]
    {
        every.extend((instruction_set() >= InstructionSet::Avx2).then_some(&f64_avx2::KERNELS));
        every.extend((instruction_set() >= InstructionSet::Avx512).then_some(&f64_avx512::KERNELS));
    }
    every
}
