//! The singular vectors or eigenvectors of the two halves of a matrix, which are combined when the halves are joined.

use wengert_tensor::Float;

use super::arithmetic::zeros;
use super::failure::Failure;
use super::products::product_of;
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
    halves: Vec<[bool; 2]>,
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
        let halves = (0..width).map(|row| [row < split, row >= split]).collect();
        Ok(JoinedRows { width, split, rows, halves })
    }

    /// Returns the row with index `row`.
    pub(super) fn row(&self, row: usize) -> &[T] {
        &self.rows[row * self.width..][..self.width]
    }

    /// Rotates two rows: replaces row x by c x + s y, and row y by c y - s x.
    pub(super) fn rotate(&mut self, x: usize, y: usize, (c, s): (T, T)) {
        let halves = std::array::from_fn(|half| self.halves[x][half] || self.halves[y][half]);
        (self.halves[x], self.halves[y]) = (halves, halves);
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
    /// row k becomes row `places.places[k]` of the result. If there are fewer new rows than rows, the last rows stay the same.
    pub(super) fn assemble(
        &self,
        weights: &[T],
        [combined, unchanged]: [&[usize]; 2],
        places: &Places,
    ) -> Result<Vec<T>, Failure> {
        let mut out = zeros(self.width, self.width)?;
        let (first, later) = places.places.split_at(combined.len());
        self.combine(weights, combined, first, &mut out)?;
        let stay = places.places.len()..self.width;
        for (row, place) in unchanged.iter().copied().zip(later.iter().copied()).chain(stay.clone().zip(stay)) {
            out[place * self.width..][..self.width].copy_from_slice(self.row(row));
        }
        Ok(out)
    }

    /// Computes the product of `weights` and the rows `chosen`. Row j of the product becomes row `places[j]` of `out`.
    fn combine(&self, weights: &[T], chosen: &[usize], places: &[usize], out: &mut [T]) -> Result<(), Failure> {
        for (half, columns) in [0..self.split, self.split..self.width].into_iter().enumerate() {
            let used: Vec<usize> = (0..chosen.len()).filter(|&k| self.halves[chosen[k]][half]).collect();
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
            let product = product_of(factors, rows, [chosen.len(), used.len(), columns.len()])?;
            let product = product.as_slice().unwrap_or_default();
            for (product, &place) in product.chunks_exact(columns.len()).zip(places) {
                out[place * self.width..][columns.clone()].copy_from_slice(product);
            }
        }
        Ok(())
    }
}

/// The permutation that sorts values in ascending order, and its inverse.
pub(super) struct Places {
    /// The indices of the values in ascending order.
    sources: Vec<usize>,
    /// For each value, its index in the ascending order.
    places: Vec<usize>,
}

impl Places {
    /// Returns the order of `values` from the smallest to the largest. Equal values keep their order.
    pub(super) fn ascending<T: Float>(values: &[T]) -> Self {
        let mut sources: Vec<usize> = (0..values.len()).collect();
        sources.sort_by(|&x, &y| values[x].partial_cmp(&values[y]).unwrap_or(std::cmp::Ordering::Equal));
        let mut places = vec![0; values.len()];
        sources.iter().enumerate().for_each(|(place, &source)| places[source] = place);
        Places { sources, places }
    }

    /// Returns the values in ascending order. `values` must be the values from which this order was made.
    pub(super) fn sorted<T: Float>(&self, values: &[T]) -> Vec<T> {
        self.sources.iter().map(|&source| values[source]).collect()
    }
}
