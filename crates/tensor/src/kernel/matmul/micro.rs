//! The inner loops of matrix products and convolutions, with their sums in vector registers. The loops use the vectors of each instruction
//! set explicitly, because loops that the compiler vectorizes keep the sums in memory.
//!
//! The loops are generic over [`Simd`], whose methods are the instructions.
#![allow(unsafe_code)]

use std::ops::Add;

use crate::kernel::matmul::matrix::Matrix;
#[cfg(target_arch = "aarch64")]
use crate::kernel::matmul::simd::Neon;
#[cfg(target_arch = "x86_64")]
use crate::kernel::matmul::simd::{Avx2, Avx512};
use crate::kernel::matmul::simd::{Portable, Simd};
use crate::scalar::cpu::instruction_set;
use crate::{InstructionSet, Scalar};

/// The operands of a loop that sets `results[r * pitch + i]` to the sum of `factors[input, t][r]` ·
/// `source[input * plane_len + tap_starts[t] + i]` over all `input` and `t`. The loop does this for `rows` rows `r` and `count` elements
/// `i`. `rows` is a value of [`MicroKernels::tile_rows`]. `count` is rounded up to a multiple of the elements that the loop computes at
/// once, at most eight vectors. `source` and `results` are long enough for the rounded count.
pub(crate) struct TileSums<'a, T> {
    pub(crate) rows: usize,
    pub(crate) source: &'a [T],
    pub(crate) input_planes: usize,
    pub(crate) plane_len: usize,
    pub(crate) tap_starts: &'a [usize],
    pub(crate) factors: &'a [T],
    pub(crate) results: &'a mut [T],
    pub(crate) pitch: usize,
    pub(crate) count: usize,
}

/// The operands of a loop that adds a dot product to `sums[r][k]` for each row `r < rows` and each run `k`. The product is the sum of
/// `left[r * pitch + i]` · `right[run_starts[k] + i]` over `i < count`. A run is a contiguous range of `right`. `run_starts` has the
/// positions of the first elements of the runs.
pub(crate) struct DotProducts<'a, T> {
    pub(crate) rows: usize,
    pub(crate) left: &'a [T],
    pub(crate) pitch: usize,
    pub(crate) right: &'a [T],
    pub(crate) run_starts: &'a [usize],
    pub(crate) count: usize,
    pub(crate) sums: &'a mut [T],
}

/// The operands of a loop that sets `out[r * pitch + j]` to the sum of `x[r, l]` · `y[l, j]` over `l < k`, or adds this sum to it.
/// [`MicroKernels::small_tile`] gives the number of rows `r`, and the number of vectors of columns `j`. The last vector may have fewer
/// columns. `y` has contiguous rows. `x` has contiguous rows, contiguous columns or a single row.
pub(crate) struct SmallProduct<'a, T> {
    pub(crate) rows: usize,
    pub(crate) vectors: usize,
    pub(crate) columns: usize,
    pub(crate) k: usize,
    pub(crate) x: Matrix<'a, T>,
    pub(crate) y: Matrix<'a, T>,
    pub(crate) out: &'a mut [T],
    pub(crate) pitch: usize,
    pub(crate) add: bool,
}

/// One of the three loops, with its operands: tiles of weighted sums, dot products, or a small matrix product.
pub(crate) enum MicroKernel<'a, T> {
    TileSums(TileSums<'a, T>),
    DotProducts(DotProducts<'a, T>),
    SmallProduct(SmallProduct<'a, T>),
}

/// The inner loops of matrix products and convolutions, for one element type and one instruction set.
pub(crate) trait MicroKernels<T>: Sync {
    fn lanes(&self) -> usize;

    /// Returns the number of elements in a vector of the loop [`DotProducts`]. This number determines the order of its sums.
    fn dot_lanes(&self) -> usize;

    /// Returns how many rows the loop [`TileSums`] computes at once if `remaining` rows remain. The result may exceed `remaining`.
    fn tile_rows(&self, remaining: usize) -> usize;

    /// Returns how many rows, and how many vectors of columns, the loop [`SmallProduct`] computes at once. `rows` and `vectors` are the
    /// numbers that remain. The number of rows does not depend on `vectors`.
    fn small_tile(&self, rows: usize, vectors: usize) -> (usize, usize);

    /// Runs the loop that `kernel` names, with its operands.
    fn run(&self, kernel: MicroKernel<T>);
}

#[inline(always)]
fn tile_sums<T: Scalar, S: Simd<T, L>, const L: usize, const R: usize, const C: usize>(cpu: S, tile: TileSums<T>) {
    let TileSums { source, input_planes, plane_len, tap_starts, factors, results, pitch, count, .. } = tile;
    for first in (0..count).step_by(C * L) {
        let mut sums = [[cpu.splat(T::ZERO); C]; R];
        let mut factors = factors.as_chunks::<R>().0.iter();
        for input in 0..input_planes {
            let source = &source[input * plane_len + first..];
            for (&tap, factors) in tap_starts.iter().zip(&mut factors) {
                let mut x = [cpu.splat(T::ZERO); C];
                let from = source[tap..][..C * L].as_chunks::<L>().0;
                for (x, from) in x.iter_mut().zip(from) {
                    *x = cpu.load(from);
                }
                for (&factor, sums) in factors.iter().zip(&mut sums) {
                    let factor = cpu.splat(factor);
                    for (sum, x) in sums.iter_mut().zip(x) {
                        *sum = cpu.multiply_add(x, factor, *sum);
                    }
                }
            }
        }
        for (r, sums) in sums.into_iter().enumerate() {
            let to = results[r * pitch + first..][..C * L].as_chunks_mut::<L>().0;
            to.iter_mut().zip(sums).for_each(|(to, sum)| cpu.store(sum, to));
        }
    }
}

/// Computes [`DotProducts`] for `R` rows, beginning with row `first`, with `C` runs at a time. Returns `R`.
#[inline(always)]
fn dot_products<T, S, const L: usize, const R: usize, const C: usize>(
    cpu: S,
    dots: &mut DotProducts<T>,
    first: usize,
) -> usize
where
    T: Scalar + Add<Output = T>,
    S: Simd<T, L>,
{
    let &mut DotProducts { left, pitch, right, run_starts, count, ref mut sums, .. } = dots;
    let vectors = count / L;
    // Loops fill these arrays. The compiler would not inline `from_fn` here.
    let (mut rows, mut row_ends): ([&[[T; L]]; R], [&[T]; R]) = ([&[]; R], [&[]; R]);
    for (r, (row, end)) in rows.iter_mut().zip(&mut row_ends).enumerate() {
        (*row, *end) = left[(first + r) * pitch..][..count].as_chunks();
        *row = &row[..vectors];
    }
    for (number, some) in run_starts.chunks(C).enumerate() {
        // If fewer than `C` runs remain, the last run is computed several times, so that the loops always have `C` runs.
        let (mut columns, mut column_ends): ([&[[T; L]]; C], [&[T]; C]) = ([&[]; C], [&[]; C]);
        for (c, (column, end)) in columns.iter_mut().zip(&mut column_ends).enumerate() {
            (*column, *end) = right[some[c.min(some.len() - 1)]..][..count].as_chunks();
            *column = &column[..vectors];
        }
        let mut totals = [[cpu.splat(T::ZERO); C]; R];
        for i in 0..vectors {
            let mut left = [cpu.splat(T::ZERO); R];
            for (left, row) in left.iter_mut().zip(&rows) {
                *left = cpu.load(&row[i]);
            }
            for c in 0..C {
                let right = cpu.load(&columns[c][i]);
                for r in 0..R {
                    totals[r][c] = cpu.multiply_add(left[r], right, totals[r][c]);
                }
            }
        }
        if vectors * L < count {
            let mut left = [cpu.splat(T::ZERO); R];
            for (left, end) in left.iter_mut().zip(&row_ends) {
                *left = cpu.load_part(end);
            }
            for c in 0..C {
                let right = cpu.load_part(column_ends[c]);
                for r in 0..R {
                    totals[r][c] = cpu.multiply_add(left[r], right, totals[r][c]);
                }
            }
        }
        // Constant indices keep the vectors in registers.
        let mut results = [[T::ZERO; C]; R];
        for four in 0..R * C / 4 {
            let at = |i: usize| ((4 * four + i) / C, (4 * four + i) % C);
            let vector = |i: usize| totals[at(i).0][at(i).1];
            let four_sums = cpu.sum_four([vector(0), vector(1), vector(2), vector(3)]);
            for (i, sum) in four_sums.into_iter().enumerate() {
                results[at(i).0][at(i).1] = sum;
            }
        }
        for last in R * C / 4 * 4..R * C {
            results[last / C][last % C] = cpu.sum(totals[last / C][last % C]);
        }
        for (r, results) in results.into_iter().enumerate() {
            let sums = &mut sums[(first + r) * run_starts.len() + number * C..][..some.len()];
            for (sum, result) in sums.iter_mut().zip(results) {
                *sum = *sum + result;
            }
        }
    }
    R
}

#[inline(always)]
fn small_product<T: Scalar, S: Simd<T, L>, const L: usize, const R: usize, const C: usize>(
    cpu: S,
    product: SmallProduct<T>,
) {
    let SmallProduct { k, x, .. } = product;
    if x.column_stride == 1 {
        // Each row is a slice of length `k`, so that the loop over `k` terms needs no checks of indices.
        let mut rows: [&[T]; R] = [&[]; R];
        for (r, row) in rows.iter_mut().enumerate() {
            *row = &x.row(r)[..k];
        }
        small_product_with_factors::<_, _, L, R, C>(cpu, product, |l, r| rows[r][l]);
    } else {
        assert!(R == 1 || x.row_stride == 1, "rows or columns are contiguous");
        small_product_with_factors::<_, _, L, R, C>(cpu, product, |l, r| x.column(l)[..R][r]);
    }
}

/// Loads `C` vectors from a row. If the row ends within the last vector, the other elements of this vector are 0.
#[inline(always)]
fn load_row<T: Scalar, S: Simd<T, L>, const L: usize, const C: usize>(cpu: S, row: &[T]) -> [S::Vector; C] {
    let (whole, last) = row.split_at((C - 1) * L);
    // A loop fills this array, because the compiler does not inline `from_fn` here.
    let mut vectors = [cpu.load_part(last); C];
    for (vector, from) in vectors.iter_mut().zip(whole.as_chunks().0) {
        *vector = cpu.load(from);
    }
    vectors
}

/// Computes [`small_product`] with `factor`, a function that reads the elements of the left matrix.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // An iterator over the sums would keep them in memory and not in registers.
fn small_product_with_factors<T: Scalar, S: Simd<T, L>, const L: usize, const R: usize, const C: usize>(
    cpu: S,
    product: SmallProduct<T>,
    factor: impl Fn(usize, usize) -> T,
) {
    let SmallProduct { columns, k, y, out, pitch, add, .. } = product;
    let mut sums = [[cpu.splat(T::ZERO); C]; R];
    for l in 0..k {
        let y: [S::Vector; C] = load_row(cpu, &y.row(l)[..columns]);
        for r in 0..R {
            let factor = cpu.splat(factor(l, r));
            for c in 0..C {
                sums[r][c] = cpu.multiply_add(y[c], factor, sums[r][c]);
            }
        }
    }
    if add {
        let one = cpu.splat(T::ONE);
        for r in 0..R {
            let before: [S::Vector; C] = load_row(cpu, &out[r * pitch..][..columns]);
            for c in 0..C {
                sums[r][c] = cpu.multiply_add(sums[r][c], one, before[c]);
            }
        }
    }
    for r in 0..R {
        let (whole, last) = out[r * pitch..][..columns].split_at_mut((C - 1) * L);
        let whole = whole.as_chunks_mut::<L>().0;
        for c in 0..C - 1 {
            cpu.store(sums[r][c], &mut whole[c]);
        }
        cpu.store_part(sums[r][C - 1], last);
    }
}

/// Returns how many rows and how many runs (contiguous ranges of the right operand) the loop [`DotProducts`] computes at once. `rows` is the
/// number of rows that remain, and `runs` is the number of runs. Chooses the first of `tiles` that has at most `rows` rows, and that computes
/// at most `runs` / 3 runs in vain. If several such tiles have this number of rows, chooses the fastest. If there is no such tile, chooses
/// the last tile, which has one row.
#[inline(always)]
fn dot_tile(tiles: &[(usize, usize)], rows: usize, runs: usize) -> (usize, usize) {
    let fits = |&&(r, c): &&(usize, usize)| r <= rows && 3 * runs.next_multiple_of(c) <= 4 * runs;
    // On most processors, a core begins two additions in a cycle, and an addition takes four cycles. So fewer than eight sums take the time
    // of eight.
    let time = |&&(r, c): &&(usize, usize)| (r * c).max(8) * runs.div_ceil(c);
    let Some(first) = tiles.iter().find(fits) else { return tiles[tiles.len() - 1] };
    *tiles.iter().filter(|tile| fits(tile) && tile.0 == first.0).min_by_key(time).unwrap_or(first)
}

macro_rules! kernels {
    ($(
        $token:ty, $type:ident $lanes:literal $($feature:literal)?,
        tiles $([$rows:literal $columns:literal])*, dots $(of $dots:ident)? $dot_lanes:literal $([$dot_rows:literal $runs:literal])*,
        products $([$small_rows:literal $vectors:literal])*;
    )*) => {$(
        impl MicroKernels<$type> for $token {
            fn lanes(&self) -> usize {
                $lanes
            }

            fn dot_lanes(&self) -> usize {
                $dot_lanes
            }

            fn tile_rows(&self, remaining: usize) -> usize {
                // Chooses the first tile that the remaining rows fill to at least three quarters. The tiles are in descending order.
                [$($rows),*].into_iter().find(|&rows| 4 * remaining >= 3 * rows).unwrap_or(1)
            }

            fn small_tile(&self, rows: usize, vectors: usize) -> (usize, usize) {
                let fits = |&(r, v): &(usize, usize)| r <= rows && v <= vectors;
                [$(($small_rows, $vectors)),*].into_iter().find(fits).unwrap_or((1, 1))
            }

            fn run(&self, kernel: MicroKernel<$type>) {
                /// # Safety
                ///
                /// The processor must have the features that the attribute `target_feature` names.
                $(#[target_feature(enable = $feature)])?
                unsafe fn run(cpu: $token, kernel: MicroKernel<$type>) {
                    match kernel {
                        MicroKernel::TileSums(tile) => match tile.rows {
                            $($rows => tile_sums::<$type, _, $lanes, $rows, $columns>(cpu, tile),)*
                            _ => unreachable!("`tile_rows` returns no other number"),
                        },
                        MicroKernel::DotProducts(mut dots) => {
                            let (cpu, mut row, mut tile) = (kernels!(@ cpu $($dots)?), 0, (usize::MAX, 0));
                            while row < dots.rows {
                                let remaining = dots.rows - row;
                                if tile.0 > remaining {
                                    tile = dot_tile(&[$(($dot_rows, $runs)),*], remaining, dots.run_starts.len());
                                }
                                row += match tile {
                                    $(($dot_rows, $runs) => dot_products::<$type, _, $dot_lanes, $dot_rows, $runs>(cpu, &mut dots, row),)*
                                    _ => unreachable!("`dot_tile` returns one of the tiles"),
                                };
                            }
                        }
                        MicroKernel::SmallProduct(product) => match (product.rows, product.vectors) {
                            $(($small_rows, $vectors) => small_product::<$type, _, $lanes, $small_rows, $vectors>(cpu, product),)*
                            _ => unreachable!("`small_tile` returns no other numbers"),
                        },
                    }
                }
                // SAFETY: a value of the token type exists only on processors with the features.
                unsafe { run(*self, kernel) }
            }
        }
    )*};
    // The value of the instruction set's type for dot products: `$dots` if it is given, otherwise `$cpu`.
    (@ $cpu:ident) => { $cpu };
    (@ $cpu:ident $dots:ident) => { $dots };
}

// Each tile size is compiled separately, which takes time. So only the most frequent types and instruction sets have many sizes.
#[cfg(target_arch = "x86_64")]
kernels!(
    Avx512, f32 16 "avx2,fma,avx512f", tiles [8 3] [4 6] [1 8], dots 16 [4 6] [4 4] [8 2] [8 1] [1 9] [1 4], products [8 2] [8 1] [4 4] [4 2] [4 1] [3 4] [3 1] [2 4] [2 2] [2 1] [1 4] [1 2] [1 1];
    Avx512, f64 8 "avx2,fma,avx512f", tiles [8 3] [4 6] [1 8], dots 8 [4 6] [4 4] [8 2] [8 1] [1 9] [1 4], products [8 2] [8 1] [4 4] [4 1] [3 4] [3 1] [2 4] [2 1] [1 4] [1 1];
    Avx2<true>, f32 8 "avx2,fma", tiles [4 3] [1 8], dots 8 [3 4] [6 2] [8 1] [1 9] [1 4], products [4 2] [4 1] [3 2] [3 1] [2 2] [2 1] [1 4] [1 1];
    Avx2<true>, f64 4 "avx2,fma", tiles [4 3] [1 8], dots 4 [3 4] [6 2] [8 1] [1 9] [1 4], products [4 2] [4 1] [3 2] [3 1] [2 2] [2 1] [1 4] [1 1];
    // The number of elements in a vector determines the order of a dot product's sum. So dot products use vectors of 4 elements, as
    // [`Portable`] does.
    Avx2<false>, f32 8 "avx2", tiles [4 2] [1 8], dots of Portable 4 [3 3] [8 1] [1 9], products [4 2] [4 1] [1 4] [1 1];
    Avx2<false>, f64 4 "avx2", tiles [4 2] [1 8], dots 4 [3 3] [8 1] [1 9], products [4 2] [4 1] [1 4] [1 1];
);
#[cfg(target_arch = "aarch64")]
kernels!(
    Neon, f32 4 "neon", tiles [8 3] [4 4] [1 8], dots 4 [4 4] [8 2] [8 1] [1 9] [1 4], products [8 2] [8 1] [4 4] [4 2] [4 1] [3 4] [3 1] [2 4] [2 1] [1 4] [1 1];
    Neon, f64 2 "neon", tiles [8 3] [4 4] [1 8], dots 2 [4 4] [8 2] [8 1] [1 9] [1 4], products [4 4] [4 1] [3 4] [3 1] [2 4] [2 1] [1 4] [1 1];
);
kernels!(
    Portable, f32 4 , tiles [4 2] [1 8], dots 4 [3 3] [8 1] [1 9], products [4 2] [4 1] [1 4] [1 1];
    Portable, f64 4 , tiles [4 2] [1 8], dots 4 [3 3] [8 1] [1 9], products [4 1] [1 1];
);

/// The element types that have the inner loops of matrix products.
pub(crate) trait HasMicroKernels: Scalar {
    /// Returns the loops for the smaller of two instruction sets: `set`, and the set that the crate currently uses. On x86-64,
    /// [`Neon`](InstructionSet::Neon) gives the loops of the mode of equal bits.
    fn kernels_for(set: InstructionSet) -> &'static dyn MicroKernels<Self>;

    /// Returns the loops for processors without AVX2 and NEON.
    #[cfg(test)]
    fn array_kernels() -> &'static dyn MicroKernels<Self>;

    /// Returns the loops for the instruction set that the crate currently uses.
    fn kernels() -> &'static dyn MicroKernels<Self> {
        Self::kernels_for(instruction_set())
    }
}

macro_rules! choices {
    ($($type:ident),*) => {$(
        impl HasMicroKernels for $type {
            fn kernels_for(set: InstructionSet) -> &'static dyn MicroKernels<Self> {
                // The current instruction set was detected on this processor, so the processor supports it and all smaller sets of its
                // architecture.
                match set.min(instruction_set()) {
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx512 => &Avx512(()),
                    #[cfg(target_arch = "x86_64")]
                    InstructionSet::Avx2 => &Avx2::<true>(()),
                    #[cfg(target_arch = "aarch64")]
                    InstructionSet::Neon | InstructionSet::Avx2 | InstructionSet::Avx512 => &Neon,
                    #[cfg(target_arch = "x86_64")]
                    _ if InstructionSet::Avx2.is_supported() => &Avx2::<false>(()),
                    _ => &Portable,
                }
            }

            #[cfg(test)]
            fn array_kernels() -> &'static dyn MicroKernels<Self> {
                &Portable
            }
        }
    )*};
}

choices!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::matmul::matrix::Sizes;
    use crate::kernel::matmul::small::{multiply_by_definition, multiply_compact_in_place};
    use crate::{Float, Generator, Tensor};

    /// Returns the results of the three loops (tiles of weighted sums, dot products and small products), for several sizes around the lengths of
    /// vectors.
    fn results<T: Float + HasMicroKernels>(kernels: &dyn MicroKernels<T>) -> Vec<f64> {
        let numbers = |seed| Tensor::<T>::randn([4000], &mut Generator::new(seed)).to_vec();
        let (x, y, mut all) = (numbers(1), numbers(2), Vec::new());
        for (rows, columns, k, add) in
            [(1, 1, 3, false), (5, 7, 40, true), (9, 8, 17, false), (4, 33, 60, true), (7, 70, 9, false)]
        {
            let mut out = numbers(3)[..rows * columns].to_vec();
            let (left, right) = (Matrix::row_major(&x, 0, k), Matrix::row_major(&y, 0, columns));
            multiply_compact_in_place(kernels, Sizes { m: rows, n: columns, k, add }, left, right, &mut out, columns);
            let mut sums = vec![T::ZERO; rows * 4];
            let dots = DotProducts {
                rows,
                left: &x,
                pitch: k,
                right: &y,
                run_starts: &[0, 1, 5, 11],
                count: k,
                sums: &mut sums,
            };
            kernels.run(MicroKernel::DotProducts(dots));
            let (inputs, taps, pitch) = (3, [0, 1, 9], 1024);
            let mut row = 0;
            while row < rows {
                let height = kernels.tile_rows(rows - row);
                let mut tile = vec![T::ZERO; height * pitch];
                let terms = inputs * taps.len();
                let factors: Vec<T> =
                    (0..terms * height).map(|at| x[(row + at % height) * terms + at / height]).collect();
                kernels.run(MicroKernel::TileSums(TileSums {
                    rows: height,
                    source: &y,
                    input_planes: inputs,
                    plane_len: 200,
                    tap_starts: &taps,
                    factors: &factors,
                    results: &mut tile,
                    pitch,
                    count: columns,
                }));
                let valid = tile.chunks_exact(pitch).take(rows - row);
                all.extend(valid.flat_map(|row| row[..columns].iter().copied()));
                row += height;
            }
            all.extend(out.into_iter().chain(sums));
        }
        all.into_iter().map(T::to_f64).collect()
    }

    /// Calls `check` with the loops of each instruction set up to the set in use. Some loops may be repeated.
    fn for_each_set<T: Float + HasMicroKernels>(check: impl Fn(&dyn MicroKernels<T>)) {
        use InstructionSet::{Avx2, Avx512, Neon, Portable};
        [Portable, Neon, Avx2, Avx512].into_iter().for_each(|set| check(T::kernels_for(set)));
        check(T::array_kernels());
    }

    /// Checks that the number of rows of a tile does not depend on the number of remaining vectors. Products rely on this.
    #[test]
    fn the_rows_of_small_tiles_depend_only_on_the_remaining_rows() {
        fn check<T: Float + HasMicroKernels>(kernels: &dyn MicroKernels<T>) {
            for (rows, vectors) in (1..=9).flat_map(|rows| (1..=9).map(move |vectors| (rows, vectors))) {
                assert_eq!(kernels.small_tile(rows, vectors).0, kernels.small_tile(rows, 1).0, "{rows} {vectors}");
            }
        }
        for_each_set::<f32>(check);
        for_each_set::<f64>(check);
    }

    /// Compares products of small integers with the definition. All sums are exact, so the order of additions makes no difference.
    #[test]
    fn small_products_equal_the_definition() {
        fn check<T: Float + HasMicroKernels>(kernels: &dyn MicroKernels<T>) {
            let k = 6;
            let integers = |factor: usize| -> Vec<T> {
                (0..7 * 70).map(|i| T::from_f64((i * factor % 17) as f64 - 8.0)).collect()
            };
            let (x, y) = (integers(7), integers(5));
            for (m, n) in [2, 3, 7].into_iter().flat_map(|m| (5..=70).map(move |n| (m, n))) {
                let (left, right) = (Matrix::row_major(&x, 0, k), Matrix::row_major(&y, 0, n));
                for add in [false, true] {
                    let (sizes, mut out) = (Sizes { m, n, k, add }, y[..m * n].to_vec());
                    let mut expected = out.clone();
                    multiply_compact_in_place(kernels, sizes, left, right, &mut out, n);
                    multiply_by_definition(sizes, left, right, &mut expected);
                    assert_eq!(out, expected, "{sizes:?}");
                }
            }
        }
        for_each_set::<f32>(check);
        for_each_set::<f64>(check);
    }

    /// Checks that the loops of the mode of equal bits give the same bits with vectors of AVX2 and with arrays.
    #[test]
    fn the_vectors_of_the_portable_loops_change_no_bit() {
        fn check<T: Float + HasMicroKernels>() {
            let bits = |kernels| results::<T>(kernels).into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(T::kernels_for(InstructionSet::Portable)), bits(T::array_kernels()));
        }
        check::<f32>();
        check::<f64>();
    }
}
