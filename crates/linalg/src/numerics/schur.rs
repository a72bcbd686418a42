//! The real Schur form of a square matrix: A = Q T Qᵀ, where Q is orthogonal. T is upper triangular, except for blocks of two rows on the
//! diagonal, whose eigenvalues are a conjugate pair.
//!
//! Reflections set all elements below the subdiagonal to zero (Hessenberg form). Implicit QR steps with two shifts then set elements of the
//! subdiagonal to zero (Francis, "The QR transformation", 1961; Golub and Van Loan, "Matrix Computations", algorithms 7.4.2 and 7.5.2).

use super::failure::Failure;

/// The iteration counts as failed after this number of steps for one block. Usually, two or three steps for each eigenvalue are enough.
const MAX_STEPS: usize = 60;

/// The steps on a block, counted from 0, that use exceptional shifts. With the usual shifts alone, the iteration may repeat forever.
const EXCEPTIONAL_STEPS: [usize; 5] = [10, 20, 30, 40, 50];

/// A matrix of `order` rows under orthogonal similarity transformations, and the product of their orthogonal matrices.
pub(super) struct Schur<'a> {
    pub(super) order: usize,
    /// The matrix, row by row.
    pub(super) t: &'a mut [f64],
    /// The product of the orthogonal matrices, row by row. It is empty if no eigenvectors are wanted.
    pub(super) q: &'a mut [f64],
    /// Memory for a row.
    pub(super) row: &'a mut [f64],
}

impl Schur<'_> {
    /// Replaces the matrix by its Schur form. The elements must be far from overflow and underflow.
    ///
    /// # Errors
    ///
    /// If the iteration does not converge.
    pub(super) fn reduce(&mut self) -> Result<(), Failure> {
        self.make_hessenberg();
        let (mut end, mut steps) = (self.order, 0);
        while end > 0 {
            let start = self.start_of_block(end);
            match end - start {
                1 => {}
                2 => self.triangularize(start),
                _ if steps == MAX_STEPS => return Err(Failure::NoConvergence),
                _ => {
                    self.step(start, end, steps);
                    steps += 1;
                    continue;
                }
            }
            (end, steps) = (start, 0);
        }
        Ok(())
    }

    /// Returns an element of the matrix.
    fn at(&self, row: usize, column: usize) -> f64 {
        self.t[row * self.order + column]
    }

    /// Sets the elements below the subdiagonal to zero by reflections.
    fn make_hessenberg(&mut self) {
        let n = self.order;
        for column in 0..n.saturating_sub(2) {
            let mut v: Vec<f64> = (column + 1..n).map(|row| self.at(row, column)).collect();
            if let Some((factor, first)) = reflector(&mut v) {
                self.reflect(column + 1, &v, factor, column, n);
                self.set_column(column, column + 1, &[first]);
                self.t[(column + 2) * n..].chunks_exact_mut(n).for_each(|row| row[column] = 0.0);
            }
        }
    }

    /// Writes `elements` to a column, beginning with the row `first`.
    fn set_column(&mut self, column: usize, first: usize, elements: &[f64]) {
        for (row, &element) in (first..).zip(elements) {
            self.t[row * self.order + column] = element;
        }
    }

    /// Multiplies the matrix from both sides by the reflection I - `factor` v vᵀ, which changes the rows and the columns from `first` on.
    /// These rows are zero before the column `left`. These columns are zero from the row `bottom` on.
    fn reflect(&mut self, first: usize, v: &[f64], factor: f64, left: usize, bottom: usize) {
        let n = self.order;
        let row = &mut self.row[left..n];
        row.fill(0.0);
        let rows = &mut self.t[first * n..(first + v.len()) * n];
        for (v, t) in v.iter().zip(rows.chunks_exact(n)) {
            row.iter_mut().zip(&t[left..]).for_each(|(sum, t)| *sum += v * t);
        }
        for (v, t) in v.iter().zip(rows.chunks_exact_mut(n)) {
            t[left..].iter_mut().zip(&*row).for_each(|(t, sum)| *t -= factor * v * sum);
        }
        let rows = self.t[..bottom * n].chunks_exact_mut(n).chain(self.q.chunks_exact_mut(n));
        for row in rows {
            let part = &mut row[first..first + v.len()];
            let sum: f64 = part.iter().zip(v).map(|(t, v)| t * v).sum();
            part.iter_mut().zip(v).for_each(|(t, v)| *t -= factor * sum * v);
        }
    }

    /// Returns the first row of the block that ends before the row `end`. Sets the negligible element before the block to 0.
    fn start_of_block(&mut self, end: usize) -> usize {
        for row in (1..end).rev() {
            let neighbours = self.at(row - 1, row - 1).abs() + self.at(row, row).abs();
            let size =
                if neighbours == 0.0 { self.t.iter().fold(0.0, |size: f64, t| size.max(t.abs())) } else { neighbours };
            if self.at(row, row - 1).abs() <= f64::EPSILON * size {
                self.set_column(row - 1, row, &[0.0]);
                return row;
            }
        }
        0
    }

    /// Makes an implicit step with two shifts on the block of at least three rows from `start` to `end`. `number` is the number of earlier
    /// steps on this block.
    fn step(&mut self, start: usize, end: usize, number: usize) {
        let (last, before) = (end - 1, end - 2);
        // The two shifts are the eigenvalues of the last 2 x 2 block on the diagonal. The step needs only their sum and product, which are
        // real.
        let mut sum = self.at(before, before) + self.at(last, last);
        let mut product = self.at(before, before) * self.at(last, last) - self.at(before, last) * self.at(last, before);
        if EXCEPTIONAL_STEPS.contains(&number) {
            let size = self.at(last, before).abs() + self.at(before, before - 1).abs();
            (sum, product) = (1.5 * size, size * size);
        }
        let (a, b) = (self.at(start, start), self.at(start + 1, start + 1));
        let subdiagonal = self.at(start + 1, start);
        let mut v = [
            a * (a - sum) + self.at(start, start + 1) * subdiagonal + product,
            subdiagonal * (a + b - sum),
            subdiagonal * self.at(start + 2, start + 1),
        ];
        for k in start..end - 1 {
            let count = 3.min(end - k);
            let v = &mut v[..count];
            if k > start {
                (0..count).for_each(|i| v[i] = self.at(k + i, k - 1));
            }
            let Some((factor, first)) = reflector(v) else { continue };
            self.reflect(k, v, factor, k.saturating_sub(1).max(start), end.min(k + 4));
            if k > start {
                self.set_column(k - 1, k, &[first, 0.0, 0.0][..count]);
            }
        }
    }

    /// Makes the block of the rows `first` and `first + 1` triangular by a rotation, if its eigenvalues are real.
    fn triangularize(&mut self, first: usize) {
        let (n, [a, b, c, d]) = (self.order, self.block(first));
        let half = (a - d) / 2.0;
        let square = half * half + b * c;
        if square < 0.0 || c == 0.0 {
            return;
        }
        // (x, c) is the eigenvector of the eigenvalue d + x.
        let x = half + square.sqrt().copysign(half);
        let length = x.hypot(c);
        let (cosine, sine) = (x / length, c / length);
        let rotate = |x: &mut f64, y: &mut f64| (*x, *y) = (cosine * *x + sine * *y, cosine * *y - sine * *x);
        let (upper, lower) = self.t[first * n..(first + 2) * n].split_at_mut(n);
        upper[first..].iter_mut().zip(&mut lower[first..]).for_each(|(x, y)| rotate(x, y));
        let rows = self.t[..(first + 2) * n].chunks_exact_mut(n).chain(self.q.chunks_exact_mut(n));
        for row in rows {
            let (x, y) = row[first..first + 2].split_at_mut(1);
            rotate(&mut x[0], &mut y[0]);
        }
        self.set_column(first, first + 1, &[0.0]);
    }

    /// Returns the elements of the block of the rows `first` and `first + 1`, row by row.
    pub(super) fn block(&self, first: usize) -> [f64; 4] {
        let at = |row, column| self.at(first + row, first + column);
        [at(0, 0), at(0, 1), at(1, 0), at(1, 1)]
    }
}

/// Replaces `v` by a vector w such that I - f w wᵀ maps `v` to a multiple of the first unit vector. Returns f and the first element of the
/// mapped vector, or `None` if `v` already is a multiple of the first unit vector.
fn reflector(v: &mut [f64]) -> Option<(f64, f64)> {
    let size = v.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
    if v[1..].iter().all(|&x| x == 0.0) {
        return None;
    }
    // Large and small elements must not overflow or underflow when they are squared.
    v.iter_mut().for_each(|x| *x /= size);
    let length = v.iter().map(|x| x * x).sum::<f64>().sqrt().copysign(v[0]);
    v[0] += length;
    // `v` is now w, and `length * v[0]` is |w|² / 2. So the first result is f = 2 / |w|².
    Some((1.0 / (length * v[0]), -length * size))
}
