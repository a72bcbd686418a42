//! The singular vectors or eigenvectors of the two halves of a matrix, which are combined when the halves are joined.

use wengert_tensor::Float;

use super::arithmetic::zeros;
use super::failure::Failure;
use super::products::product_tensor;
use crate::simd::vectorized;

/// A matrix that begins as block-diagonal with two blocks, and whose rows are then combined with each other. Products skip rows that are
/// still zero in the columns of a block.
pub(super) struct JoinedRows<T> {
    width: usize,
    /// The number of columns of the first block.
    split: usize,
    rows: Vec<T>,
    /// For each row, two flags for the columns of the first and of the second block: true if the row may have nonzero
    /// elements in these columns.
    may_be_nonzero: Vec<[bool; 2]>,
}

impl<T: Float> JoinedRows<T> {
    /// Returns the rows of a block-diagonal matrix. The block `first` has order `split`, and the block `second` has order `width - split`.
    pub(super) fn new(first: &[T], second: &[T], split: usize, width: usize) -> Result<Self, Failure> {
        let mut rows = zeros(width, width)?;
        for (row, first) in rows.chunks_exact_mut(width).zip(first.chunks_exact(split)) {
            row[..split].copy_from_slice(first);
        }
        if split < width {
            let later = rows[split * width..].chunks_exact_mut(width);
            for (row, second) in later.zip(second.chunks_exact(width - split)) {
                row[split..].copy_from_slice(second);
            }
        }
        let may_be_nonzero = (0..width).map(|row| [row < split, row >= split]).collect();
        Ok(JoinedRows { width, split, rows, may_be_nonzero })
    }

    /// Returns the row with index `row`.
    pub(super) fn row(&self, row: usize) -> &[T] {
        &self.rows[row * self.width..][..self.width]
    }

    /// Rotates two rows: replaces row x by c x + s y, and row y by c y - s x.
    pub(super) fn rotate(&mut self, x: usize, y: usize, (c, s): (T, T)) {
        let may_be_nonzero = std::array::from_fn(|half| self.may_be_nonzero[x][half] || self.may_be_nonzero[y][half]);
        (self.may_be_nonzero[x], self.may_be_nonzero[y]) = (may_be_nonzero, may_be_nonzero);
        let (before, after) = self.rows.split_at_mut(x.max(y) * self.width);
        let (low, high) = (&mut before[x.min(y) * self.width..][..self.width], &mut after[..self.width]);
        let (first, second) = if x < y { (low, high) } else { (high, low) };
        vectorized(
            #[inline(always)]
            || {
                for (x, y) in first.iter_mut().zip(second) {
                    (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
                }
            },
        );
    }

    /// Returns a matrix with new rows: first the rows of the product of `weights` and the rows `combined`, then the rows `unchanged`. New
    /// row k becomes row `order.ranks[k]` of the result. If there are fewer new rows than rows, the last rows stay the same.
    pub(super) fn assemble(
        &self,
        weights: &[T],
        [combined, unchanged]: [&[usize]; 2],
        order: &AscendingOrder,
    ) -> Result<Vec<T>, Failure> {
        let mut out = zeros(self.width, self.width)?;
        let (first, later) = order.ranks.split_at(combined.len());
        self.combine(weights, combined, first, &mut out)?;
        let kept = order.ranks.len()..self.width;
        for (row, rank) in unchanged.iter().copied().zip(later.iter().copied()).chain(kept.clone().zip(kept)) {
            out[rank * self.width..][..self.width].copy_from_slice(self.row(row));
        }
        Ok(out)
    }

    /// Computes the product of `weights` and the rows `chosen`. Row j of the product becomes row `ranks[j]` of `out`.
    fn combine(&self, weights: &[T], chosen: &[usize], ranks: &[usize], out: &mut [T]) -> Result<(), Failure> {
        for (half, columns) in [0..self.split, self.split..self.width].into_iter().enumerate() {
            let used: Vec<usize> = (0..chosen.len()).filter(|&k| self.may_be_nonzero[chosen[k]][half]).collect();
            if columns.is_empty() {
                continue;
            }
            let mut factors = Vec::with_capacity(chosen.len() * used.len());
            for weights in weights.chunks_exact(chosen.len().max(1)) {
                factors.extend(used.iter().map(|&k| weights[k]));
            }
            let mut rows = Vec::with_capacity(used.len() * columns.len());
            for &k in &used {
                rows.extend_from_slice(&self.row(chosen[k])[columns.clone()]);
            }
            let product = product_tensor(factors, rows, [chosen.len(), used.len(), columns.len()])?;
            let product = product.as_slice().unwrap_or_default();
            for (product, &rank) in product.chunks_exact(columns.len()).zip(ranks) {
                out[rank * self.width..][columns.clone()].copy_from_slice(product);
            }
        }
        Ok(())
    }
}

/// The permutation that sorts values in ascending order, and its inverse.
pub(super) struct AscendingOrder {
    /// The indices of the values in ascending order.
    indices: Vec<usize>,
    /// For each value, its index in the ascending order.
    ranks: Vec<usize>,
}

impl AscendingOrder {
    /// Returns the order of `values` from the smallest to the largest. Equal values keep their order.
    pub(super) fn new<T: Float>(values: &[T]) -> Self {
        let mut indices: Vec<usize> = (0..values.len()).collect();
        indices.sort_by(|&x, &y| values[x].partial_cmp(&values[y]).unwrap_or(std::cmp::Ordering::Equal));
        let mut ranks = vec![0; values.len()];
        indices.iter().enumerate().for_each(|(rank, &index)| ranks[index] = rank);
        AscendingOrder { indices, ranks }
    }

    /// Returns the values in ascending order. `values` must be the values from which this order was made.
    pub(super) fn sorted<T: Float>(&self, values: &[T]) -> Vec<T> {
        self.indices.iter().map(|&index| values[index]).collect()
    }
}
