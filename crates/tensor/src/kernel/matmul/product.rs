//! The product of two matrices with any strides, for each element type. The crate `gemm` computes floating-point products on a single
//! thread. The functions of [`small`](crate::kernel::matmul::small) replace it at sizes where it is slow. [`multiply_blocked`] replaces it
//! in the mode of equal bits. Products of integers and truth values are computed by their definition.
#![allow(unsafe_code)]

use gemm_common::Parallelism;

use crate::kernel::matmul::blocked::multiply_blocked;
use crate::kernel::matmul::matrix::{Matrix, Sizes};
use crate::kernel::matmul::small::{
    THIN_COLUMNS, contiguous_rows, has_few_columns, has_few_rows, is_written_by_squares, multiply_by_definition,
    multiply_compact, multiply_few_columns, multiply_few_rows, multiply_thin, row_times_matrix, strips,
};
use crate::memory::available::AllocationError;
use crate::memory::partition::Tile;
use crate::memory::scratch::Scratch;
use crate::scalar::cpu;
use crate::scalar::element::Semiring;
use crate::thresholds::blocks::VECTOR_BYTES;
use crate::thresholds::matmul::{
    MAX_BY_DEFINITION, MAX_COMPACT, MAX_COMPACT_COLUMNS, MAX_COMPACT_IN_PLACE, MAX_COMPACT_ROWS, MAX_COMPACT_WHOLE,
    MAX_COPIED_ROW_BYTES, MAX_GEMM_IN_PLACE, MAX_SHORT_ROW_BYTES, MAX_TRANSPOSED_ROWS, MIN_THIN_ROWS, MIN_THIN_TERMS,
    SLOW_DISTANCE_BYTES, SLOW_TERMS,
};

/// Products of two matrices. `out` is row-major, with `m` rows and `n` columns. Sealed like
/// [`BlockKernels`](crate::kernel::elementwise::block::BlockKernels).
#[doc(hidden)]
pub trait Products: Semiring {
    fn product(sizes: Sizes, x: Matrix<Self>, y: Matrix<Self>, out: &mut [Self]) -> Result<(), AllocationError>;

    /// Does the same as [`product`](Self::product), for a product that is not a part of a larger product. So its bits need not equal the
    /// bits of a part, and more kernels can be chosen.
    fn standalone_product(
        sizes: Sizes,
        x: Matrix<Self>,
        y: Matrix<Self>,
        out: &mut [Self],
    ) -> Result<(), AllocationError> {
        Self::product(sizes, x, y, out)
    }

    /// Does the same as [`product`](Self::product), with the result in a rectangle of a larger matrix. The product must have more than
    /// [`MAX_BY_DEFINITION`] multiplications.
    fn product_into(
        sizes: Sizes,
        x: Matrix<Self>,
        y: Matrix<Self>,
        mut out: Tile<Self>,
    ) -> Result<(), AllocationError> {
        (0..sizes.m).try_for_each(|row| Self::product(Sizes { m: 1, ..sizes }, x.submatrix(row, 0), y, out.row(row)))
    }
}

/// Returns true if it saves time to copy the right matrix to contiguous rows before `gemm` reads it. The copy does not change the bits of
/// the product.
fn copies_transpose_first<T>(Sizes { m, n, k, .. }: Sizes, y: Matrix<T>) -> bool {
    if k == SLOW_TERMS {
        return y.column_stride != 1;
    }
    let distance = y.column_stride.unsigned_abs().saturating_mul(size_of::<T>());
    let is_slow = distance.is_multiple_of(SLOW_DISTANCE_BYTES) || m <= MAX_TRANSPOSED_ROWS && size_of::<T>() == 4;
    is_slow && is_written_by_squares(y, k, n)
}

/// Returns whether `gemm` reads both operands in place and is faster than all other kernels. This is the case if the product has few
/// results, but more work than the compact kernel is used for. The sums must not be long, and must run along contiguous rows and columns.
fn gemm_reads_in_place<T>(Sizes { m, n, k, .. }: Sizes, x: Matrix<T>, y: Matrix<T>) -> bool {
    let contiguous = x.column_stride == 1 && y.row_stride == 1;
    contiguous && m.saturating_mul(n) <= MAX_GEMM_IN_PLACE && k <= MAX_GEMM_IN_PLACE && m * n * k > MAX_COMPACT
}

/// Returns true if the compact kernel takes less time than `gemm`, although the compact kernel copies the right matrix. The product must
/// have many rows and one of three properties: rows shorter than a vector, sums of [`SLOW_TERMS`] terms, or little work in elements of 4
/// bytes. It must not satisfy [`gemm_reads_in_place`].
fn copies_right<T>(sizes: Sizes, x: Matrix<T>, y: Matrix<T>) -> bool {
    let Sizes { m, n, k, .. } = sizes;
    let little = size_of::<T>() == 4 && m.saturating_mul(n).saturating_mul(k) <= MAX_COMPACT_IN_PLACE;
    let short = n * size_of::<T>() < VECTOR_BYTES || k == SLOW_TERMS;
    m >= MIN_THIN_ROWS && (short || little) && !gemm_reads_in_place(sizes, x, y)
}

macro_rules! floats {
    ($($type:ident $gemm:path;)*) => {$(
        impl Products for $type {
            fn product(sizes: Sizes, x: Matrix<Self>, y: Matrix<Self>, out: &mut [Self]) -> Result<(), AllocationError> {
                let Sizes { m, n, k, add } = sizes;
                assert!(out.len() == m * n && x.fits(m, k) && y.fits(k, n), "a product's operands are checked before");
                let work = m.saturating_mul(n).saturating_mul(k);
                if work <= MAX_BY_DEFINITION {
                    multiply_by_definition(sizes, x, y, out);
                    return Ok(());
                }
                if n == 1 && m > 1 && x.row_stride == 1 {
                    // This product is the transpose of a product with a single row.
                    return Self::product(Sizes { m: 1, n: m, k, add }, y.transposed(), x.transposed(), out);
                }
                if m == 1 && y.column_stride == 1 {
                    if n <= MAX_COMPACT_COLUMNS {
                        return multiply_compact(sizes, x, y, out);
                    }
                    if add {
                        let mut row = Scratch::new(n)?;
                        row_times_matrix(k, x, y, &mut row);
                        out.iter_mut().zip(&*row).for_each(|(out, &product)| *out = out.plus(product));
                    } else {
                        row_times_matrix(k, x, y, out);
                    }
                    return Ok(());
                }
                if m == 1 && n > 1 && y.row_stride == 1 {
                    // This product is the transpose of a product with a single column.
                    return Self::product(Sizes { m: n, n: 1, k, add }, y.transposed(), x.transposed(), out);
                }
                if n > THIN_COLUMNS && has_few_rows(sizes, y) && !gemm_reads_in_place(sizes, x, y) {
                    return multiply_few_rows(sizes, x, y, Tile::whole(out, n));
                }
                if has_few_columns(sizes, x, y) {
                    return multiply_few_columns(sizes, x, y, out);
                }
                // True if `multiply_thin` may be faster than `gemm`. For a single column, `gemm` is faster if the sums are long and there
                // is enough work.
                let narrow = match n {
                    1 => k.saturating_mul(size_of::<$type>()) <= MAX_SHORT_ROW_BYTES || work <= MAX_COMPACT_IN_PLACE,
                    _ if k < MIN_THIN_TERMS => false,
                    _ if y.row_stride == 1 => n <= THIN_COLUMNS,
                    // The columns are not contiguous. `multiply_thin` must copy them first, so it is faster only for fewer columns.
                    _ => n <= if m < MIN_THIN_ROWS { 3 } else { MAX_COPIED_ROW_BYTES / size_of::<$type>() },
                };
                if narrow && x.column_stride == 1 && (x.row_stride >= 0 || m == 1) {
                    return multiply_thin(sizes, x, y, out);
                }
                let right = y.column_stride == 1 || copies_right(sizes, x, y);
                let in_place = right && (x.column_stride == 1 || x.row_stride == 1);
                let few = m <= MAX_COMPACT_ROWS || (2..=THIN_COLUMNS).contains(&n) || k == SLOW_TERMS;
                let small = work <= MAX_COMPACT || in_place && (work <= MAX_COMPACT_IN_PLACE || few);
                if small && (n >= 8 || k < MIN_THIN_TERMS || in_place) {
                    return multiply_compact(sizes, x, y, out);
                }
                Self::product_into(sizes, x, y, Tile::whole(out, n))
            }

            fn standalone_product(
                sizes: Sizes,
                x: Matrix<Self>,
                y: Matrix<Self>,
                out: &mut [Self],
            ) -> Result<(), AllocationError> {
                let Sizes { m, n, k, .. } = sizes;
                let small = (MAX_COMPACT_IN_PLACE + 1..=MAX_COMPACT_WHOLE).contains(&m.saturating_mul(n).saturating_mul(k));
                let left = x.column_stride == 1 || x.row_stride == 1;
                let right = y.column_stride == 1 || is_written_by_squares(y, k, n);
                let free = !cpu::instruction_set().is_reproducible();
                let compacts = small && m > 1 && n > THIN_COLUMNS && left && right && free && cpu::is_amd();
                if compacts && !has_few_rows(sizes, y) {
                    return multiply_compact(sizes, x, y, out);
                }
                Self::product(sizes, x, y, out)
            }

            fn product_into(sizes: Sizes, x: Matrix<Self>, y: Matrix<Self>, mut out: Tile<Self>) -> Result<(), AllocationError> {
                let Sizes { m, n, k, add } = sizes;
                assert!(
                    (out.height(), out.width()) == (m, n) && x.fits(m, k) && y.fits(k, n),
                    "a product's operands are checked before"
                );
                let in_place = gemm_reads_in_place(sizes, x, y);
                if !in_place && has_few_rows(sizes, y) {
                    return multiply_few_rows(sizes, x, y, out);
                }
                if cpu::instruction_set().is_reproducible() {
                    return multiply_blocked(sizes, x, y, out);
                }
                if !in_place && copies_transpose_first(sizes, y) {
                    for strip in strips(n) {
                        let (rows, step) = contiguous_rows(y.submatrix(0, strip.start), k, strip.len())?;
                        let (sizes, rows) = (Sizes { n: strip.len(), ..sizes }, Matrix::row_major(&rows, 0, step));
                        Self::product_into(sizes, x, rows, out.columns(strip))?;
                    }
                    return Ok(());
                }
                let (start, pitch) = out.start_and_stride();
                // SAFETY: `x` and `y` are read within their slices: this is asserted above, m, n and k are positive, and the
                // pointers are to the whole slices. `out` is written as m rows of n elements, which are the rows of the tile
                // (asserted above). The tile is borrowed mutably, so no other slice overlaps `out`.
                unsafe {
                    // Computes the transpose of the product from the transposes in reverse order. `gemm` is fast for results with
                    // contiguous columns, and up to seven times slower for contiguous rows.
                    $gemm()(
                        n, m, k,
                        start, pitch as isize, 1,
                        add,
                        y.data.as_ptr().add(y.offset), y.row_stride, y.column_stride,
                        x.data.as_ptr().add(x.offset), x.row_stride, x.column_stride,
                        1.0, 1.0,
                        false, false, false,
                        Parallelism::None,
                    );
                }
                Ok(())
            }
        }
    )*};
}

floats!(
    f32 gemm_f32::gemm::f32::get_gemm_fn;
    f64 gemm_f64::gemm::f64::get_gemm_fn;
);

macro_rules! exact {
    ($($type:ident),*) => {$(
        impl Products for $type {
            fn product(sizes: Sizes, x: Matrix<Self>, y: Matrix<Self>, out: &mut [Self]) -> Result<(), AllocationError> {
                multiply_by_definition(sizes, x, y, out);
                Ok(())
            }
        }
    )*};
}

exact!(i64, u8, bool);
