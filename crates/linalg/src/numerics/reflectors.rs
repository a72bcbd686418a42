//! Products of Householder reflections: H₁ H₂ … Hₖ. Each reflection is I - τ v vᵀ, with a vector v and a number τ.
//!
//! A few reflections are applied separately. Many are applied in blocks I - Vᵀ T V, which are matrix products (Schreiber and Van Loan,
//! "A storage-efficient WY representation for products of Householder transformations", 1989).

use std::ops::Range;

use wengert_tensor::prelude::*;

use super::arithmetic::{abs, add_scaled, dot, norm, smallest_normal, subnormal_bound, with_sign, zeros};
use super::failure::Failure;
use crate::simd::vectorized;

/// The number of reflections in a block.
pub(crate) const BLOCK: usize = 32;
/// The number of reflections in a block that is applied to a whole matrix. Wider blocks read and write the matrix less often.
const WIDE_BLOCK: usize = 64;
/// The smallest number of elements of a vector for which blocks are faster than single reflections.
pub(crate) const MIN_BLOCKED: usize = 128;

/// A product of Householder reflections I - τ v vᵀ of vectors with `order` elements.
pub(crate) struct Reflectors<T> {
    order: usize,
    /// The vectors v, one in each row.
    vectors: Vec<T>,
    /// The factors τ.
    factors: Vec<T>,
    /// The range of the elements of each v that may differ from zero.
    supports: Vec<Range<usize>>,
}

/// Returns the factor τ of the reflection that maps `x` to a multiple of the unit vector at `pivot`, and the multiple. Replaces `x` by the
/// vector v of this reflection. The multiple has the opposite sign of `x[pivot]`, as in LAPACK. If the other elements are zeros, then τ is
/// 0, and the multiple is `x[pivot]`.
#[inline(always)]
pub(crate) fn reflector<T: Float>(x: &mut [T], pivot: usize) -> (T, T) {
    if x.iter().all(|&x| abs(x) < subnormal_bound()) {
        // The norm of elements this small would have few correct digits. So the elements are first divided by the number `smallest_normal()`.
        x.iter_mut().for_each(|x| *x = *x / smallest_normal());
        let (factor, image) = normal_reflector(x, pivot);
        return (factor, image * smallest_normal());
    }
    normal_reflector(x, pivot)
}

/// Does the same as [`reflector`], for a vector `x` whose elements are not too small.
#[inline(always)]
fn normal_reflector<T: Float>(x: &mut [T], pivot: usize) -> (T, T) {
    let first = x[pivot];
    x[pivot] = T::ZERO;
    let norm_of_others = norm(x);
    if norm_of_others == T::ZERO {
        x[pivot] = T::ONE;
        return (T::ZERO, first);
    }
    let image = -with_sign(norm(&[first, norm_of_others]), first);
    let divisor = first - image;
    for x in x.iter_mut() {
        *x = *x / divisor;
    }
    x[pivot] = T::ONE;
    ((image - first) / image, image)
}

impl<T: Float> Reflectors<T> {
    /// Returns an empty product of reflections of vectors with `order` elements, with room for `count` reflections.
    pub(crate) fn new(order: usize, count: usize) -> Result<Self, Failure> {
        let mut vectors = zeros(order, count)?;
        vectors.clear();
        Ok(Reflectors { order, vectors, factors: Vec::with_capacity(count), supports: Vec::with_capacity(count) })
    }

    /// Appends the reflection with the factor τ = `factor`. Its vector has the elements `v` from index `start` on, and zeros elsewhere.
    pub(crate) fn push(&mut self, start: usize, v: &[T], factor: T) {
        let end = self.vectors.len() + self.order;
        self.vectors.resize(self.vectors.len() + start, T::ZERO);
        self.vectors.extend_from_slice(v);
        self.vectors.resize(end, T::ZERO);
        self.factors.push(factor);
        self.supports.push(start..start + v.len());
    }

    /// Returns the first `columns` columns of the product of the reflections, as a matrix `[order, columns]`.
    ///
    /// The range of elements that a reflection changes must shrink from the first to the last reflection.
    pub(crate) fn product(&self, columns: usize) -> Result<Vec<T>, Failure> {
        let mut out = zeros(self.order, columns)?;
        for i in 0..columns.min(self.order) {
            out[i * columns + i] = T::ONE;
        }
        if !self.uses_blocks() {
            vectorized(
                #[inline(always)]
                || apply_each(self, &mut out, columns, true),
            );
            return Ok(out);
        }
        for (block, rows) in self.blocks(BLOCK) {
            let range = rows.start..rows.end.min(columns);
            if range.is_empty() {
                continue;
            }
            let mut part = zeros(rows.len(), range.len())?;
            for (part, i) in part.chunks_exact_mut(range.len()).zip(rows.clone()) {
                part.copy_from_slice(&out[i * columns..][range.clone()]);
            }
            let part = matrix_from_vec(part, rows.len(), range.len())?;
            let change = self.block(block, rows.clone())?.apply(&part, false)?;
            subtract_matrix(&mut out[rows.start * columns + range.start..], columns, &change);
        }
        Ok(out)
    }

    /// Returns the product of the reflections and the matrix `data`, `[order, columns]`.
    pub(crate) fn multiply(&self, mut data: Vec<T>, columns: usize) -> Result<Tensor<T>, Failure> {
        if !self.uses_blocks() {
            vectorized(
                #[inline(always)]
                || apply_each(self, &mut data, columns, false),
            );
            return matrix_from_vec(data, self.order, columns);
        }
        let mut out = matrix_from_vec(data, self.order, columns)?;
        for (block, rows) in self.blocks(WIDE_BLOCK) {
            let part = out.try_narrow(0, rows.start, rows.len()).map_err(|_| Failure::Memory)?;
            let change = self.block(block, rows.clone())?.apply(&part, false)?;
            drop(part);
            subtract_matrix(&mut out.make_mut()[rows.start * columns..], columns, &change);
        }
        Ok(out)
    }

    /// Returns true if the reflections are applied in blocks.
    fn uses_blocks(&self) -> bool {
        self.order >= MIN_BLOCKED && self.factors.len() >= BLOCK
    }

    /// Returns the ranges of blocks of `count` reflections, the last block first, and the range of rows that each block changes.
    fn blocks(&self, count: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        (0..self.factors.len()).step_by(count).rev().map(move |start| {
            let block = start..self.factors.len().min(start + count);
            let supports = &self.supports[block.clone()];
            let start = supports.iter().map(|support| support.start).min().unwrap_or(0);
            let end = supports.iter().map(|support| support.end).max().unwrap_or(0);
            (block, start..end)
        })
    }

    /// Returns the product of the reflections in the range `block`, restricted to the elements `rows`.
    pub(crate) fn block(&self, block: Range<usize>, rows: Range<usize>) -> Result<Block<T>, Failure> {
        let count = block.len();
        let mut vectors = zeros(count, rows.len())?;
        for (v, k) in vectors.chunks_exact_mut(rows.len()).zip(block.clone()) {
            v.copy_from_slice(&self.vectors[k * self.order..][rows.clone()]);
        }
        let mut triangle = vec![T::ZERO; count * count];
        let factors = &self.factors[block];
        vectorized(
            #[inline(always)]
            || fill_triangle(&vectors, rows.len(), factors, &mut triangle),
        );
        Ok(Block {
            vectors: matrix_from_vec(vectors, count, rows.len())?,
            triangle: matrix_from_vec(triangle, count, count)?,
        })
    }
}

/// Applies the reflections to the columns of `out`, the last reflection first. If `is_identity` is true, `out` began as the identity. Then
/// columns outside of a reflection's range are zero in its rows, and are left out.
#[inline(always)]
fn apply_each<T: Float>(reflectors: &Reflectors<T>, out: &mut [T], columns: usize, is_identity: bool) {
    let mut sums = vec![T::ZERO; columns];
    for (k, support) in reflectors.supports.iter().enumerate().rev() {
        let (v, factor) = (&reflectors.vectors[k * reflectors.order..][..reflectors.order], reflectors.factors[k]);
        let range = if is_identity { support.start..support.end.min(columns) } else { 0..columns };
        if factor == T::ZERO || range.is_empty() {
            continue;
        }
        let sums = &mut sums[range.clone()];
        sums.fill(T::ZERO);
        for i in support.clone() {
            add_scaled(sums, factor * v[i], &out[i * columns..][range.clone()]);
        }
        for i in support.clone() {
            add_scaled(&mut out[i * columns..][range.clone()], -v[i], sums);
        }
    }
}

/// Writes the upper triangle T of the product H₁ … Hₖ = I - Vᵀ T V. Row j of V is the vector vⱼ. Column j of T is -τⱼ T V vⱼ above the
/// diagonal, and τⱼ on it.
#[inline(always)]
fn fill_triangle<T: Float>(vectors: &[T], order: usize, factors: &[T], triangle: &mut [T]) {
    let count = factors.len();
    let mut products = vec![T::ZERO; count];
    for (j, &factor) in factors.iter().enumerate() {
        let v = &vectors[j * order..][..order];
        for (i, product) in products[..j].iter_mut().enumerate() {
            *product = dot(&vectors[i * order..][..order], v);
        }
        for i in 0..j {
            triangle[i * count + j] = -factor * dot(&triangle[i * count..][i..j], &products[i..j]);
        }
        triangle[j * count + j] = factor;
    }
}

/// A product of reflections in the form I - Vᵀ T V. The rows of V are the vectors of the reflections, and T is an upper triangle.
pub(crate) struct Block<T: Float> {
    vectors: Tensor<T>,
    triangle: Tensor<T>,
}

impl<T: Float> Block<T> {
    /// Returns Vᵀ T V C. The product of this block and C is C minus this result. If `transposed` is true, returns Vᵀ Tᵀ V C, for the product
    /// of the transposed block and C.
    pub(crate) fn apply(&self, c: &Tensor<T>, transposed: bool) -> Result<Tensor<T>, Failure> {
        let compute = || {
            let triangle = if transposed { self.triangle.try_t()? } else { self.triangle.clone() };
            let inner = triangle.try_matmul(self.vectors.try_matmul(c)?)?;
            self.vectors.try_t()?.try_matmul(&inner)?.try_contiguous()
        };
        compute().map_err(|_: wengert_tensor::Error| Failure::Memory)
    }
}

/// Subtracts a contiguous matrix from a part of a larger matrix, whose rows begin `stride` elements apart.
pub(crate) fn subtract_matrix<T: Float>(from: &mut [T], stride: usize, matrix: &Tensor<T>) {
    let (rows, columns) = (matrix.as_slice().unwrap_or_default(), matrix.shape()[1]);
    vectorized(
        #[inline(always)]
        || {
            for (from, row) in from.chunks_mut(stride).zip(rows.chunks_exact(columns)) {
                for (from, &x) in from.iter_mut().zip(row) {
                    *from = *from - x;
                }
            }
        },
    );
}

/// Returns a tensor `[rows, columns]` of the elements `data`. Their number must be `rows` times `columns`. So the only possible failure is a
/// lack of memory.
pub(crate) fn matrix_from_vec<T: Float>(data: Vec<T>, rows: usize, columns: usize) -> Result<Tensor<T>, Failure> {
    Tensor::try_from_vec(data, [rows, columns]).map_err(|_| Failure::Memory)
}
