//! Sequences of plane rotations, recorded first and applied to many rows later.
//!
//! The iterations for eigenvalues and singular values rotate neighbouring rows of a matrix of vectors, many times. They record their
//! rotations. [`Panels`] holds the matrix as narrow panels that fit the cache, and applies all rotations to one panel after the other. The
//! source is Van Zee, van de Geijn and Quintana-Ortí, "Restructuring the tridiagonal and bidiagonal QR algorithms for performance", 2014.

use wengert_tensor::{Float, each_part};

use super::failure::Failure;
use crate::simd::vectorized;

/// The number of columns of a panel, which is a part of a matrix that fits the cache.
const PANEL_COLUMNS: usize = 16;
/// The number of rotations times the number of columns from which several threads share the panels.
const MIN_PARALLEL: usize = 1 << 19;

/// Rotations of neighbouring rows, in the order in which they are applied.
#[derive(Default)]
pub(crate) struct Sweeps<T> {
    sweeps: Vec<Sweep>,
    /// The cosine and sine of each rotation.
    rotations: Vec<(T, T)>,
}

/// Successive rotations of adjacent rows: of the rows r and r ± 1, then of r ± 1 and r ± 2, and so on.
struct Sweep {
    first: usize,
    descending: bool,
    /// The index of the sweep's first rotation, and the index after its last rotation.
    rotations: (usize, usize),
}

impl<T: Float> Sweeps<T> {
    /// Begins a sweep of rotations at the row `first`. If `descending` is true, the row indices descend from one rotation to the next.
    pub(crate) fn begin(&mut self, first: usize, descending: bool) {
        let start = self.rotations.len();
        self.sweeps.push(Sweep { first, descending, rotations: (start, start) });
    }

    /// Appends a rotation of the next two rows x and y to the current sweep: x becomes c x + s y, and y becomes c y - s x.
    #[inline(always)]
    pub(crate) fn push(&mut self, c: T, s: T) {
        self.rotations.push((c, s));
        if let Some(sweep) = self.sweeps.last_mut() {
            sweep.rotations.1 += 1;
        }
    }
}

/// Vectors that are stored as rows, and divided into panels of `PANEL_COLUMNS` columns.
pub(crate) struct Panels<T> {
    count: usize,
    order: usize,
    /// Each panel has one row for each vector.
    panels: Vec<[T; PANEL_COLUMNS]>,
}

impl<T: Float> Panels<T> {
    /// Returns the columns of a matrix `[order, count]` as vectors.
    pub(crate) fn of_columns(matrix: &[T], order: usize, count: usize) -> Result<Self, Failure> {
        let mut panels = Vec::new();
        let len = order.div_ceil(PANEL_COLUMNS).checked_mul(count).ok_or(Failure::Memory)?;
        panels.try_reserve_exact(len).map_err(|_| Failure::Memory)?;
        panels.resize(len, [T::ZERO; PANEL_COLUMNS]);
        if count > 0 {
            for (rows, panel) in matrix.chunks(PANEL_COLUMNS * count).zip(panels.chunks_exact_mut(count)) {
                for (lane, row) in rows.chunks_exact(count).enumerate() {
                    for (vector, &x) in panel.iter_mut().zip(row) {
                        vector[lane] = x;
                    }
                }
            }
        }
        Ok(Panels { count, order, panels })
    }

    /// Applies all recorded rotations to the vectors.
    pub(crate) fn rotate(&mut self, sweeps: &Sweeps<T>) {
        if self.count == 0 {
            return;
        }
        let work = sweeps.rotations.len().saturating_mul(self.order);
        let panels = self.panels.chunks_exact_mut(self.count).collect();
        each_part(panels, work >= MIN_PARALLEL, |_, panel| {
            vectorized(
                #[inline(always)]
                || rotate(panel, sweeps),
            );
        });
    }

    /// Writes the rotated vectors as the columns of a matrix `[order, count]`. Column j is vector `sources[j].0` times the factor
    /// `sources[j].1`. If `sources` is shorter, each further column is the vector with the same index.
    pub(crate) fn write_columns(&self, sources: &[(usize, T)], out: &mut [T]) {
        if self.count == 0 {
            return;
        }
        for (rows, panel) in out.chunks_mut(PANEL_COLUMNS * self.count).zip(self.panels.chunks_exact(self.count)) {
            for (lane, row) in rows.chunks_exact_mut(self.count).enumerate() {
                for (x, &(vector, sign)) in row.iter_mut().zip(sources) {
                    *x = panel[vector][lane] * sign;
                }
                for vector in sources.len()..self.count {
                    row[vector] = panel[vector][lane];
                }
            }
        }
    }

    /// Writes the rotated vectors as the rows of a matrix `[count, order]`. Row j is vector `sources[j].0` times the factor `sources[j].1`.
    /// If `sources` is shorter, each further row is the vector with the same index.
    pub(crate) fn write_rows(&self, sources: &[(usize, T)], out: &mut [T]) {
        if self.count == 0 || self.order == 0 {
            return;
        }
        for (row, out) in out.chunks_exact_mut(self.order).enumerate() {
            let (vector, sign) = sources.get(row).copied().unwrap_or((row, T::ONE));
            for (panel, out) in self.panels.chunks_exact(self.count).zip(out.chunks_mut(PANEL_COLUMNS)) {
                for (out, &x) in out.iter_mut().zip(&panel[vector]) {
                    *out = x * sign;
                }
            }
        }
    }
}

/// Applies all recorded rotations to one panel. The row that two successive rotations share stays in registers.
#[inline(always)]
fn rotate<T: Float>(panel: &mut [[T; PANEL_COLUMNS]], sweeps: &Sweeps<T>) {
    for sweep in &sweeps.sweeps {
        let rotations = &sweeps.rotations[sweep.rotations.0..sweep.rotations.1];
        let count = rotations.len();
        if sweep.descending {
            let rows = &mut panel[sweep.first - count..=sweep.first];
            let mut x = rows[count];
            for (k, &(c, s)) in rotations.iter().enumerate() {
                (rows[count - k], x) = rotated(&x, &rows[count - k - 1], c, s);
            }
            rows[0] = x;
        } else {
            let rows = &mut panel[sweep.first..=sweep.first + count];
            let mut x = rows[0];
            for (k, &(c, s)) in rotations.iter().enumerate() {
                (rows[k], x) = rotated(&x, &rows[k + 1], c, s);
            }
            rows[count] = x;
        }
    }
}

/// Returns the rotated rows c x + s y and c y - s x.
#[inline(always)]
fn rotated<T: Float>(
    x: &[T; PANEL_COLUMNS],
    y: &[T; PANEL_COLUMNS],
    c: T,
    s: T,
) -> ([T; PANEL_COLUMNS], [T; PANEL_COLUMNS]) {
    let (mut first, mut second) = ([T::ZERO; PANEL_COLUMNS], [T::ZERO; PANEL_COLUMNS]);
    for lane in 0..PANEL_COLUMNS {
        first[lane] = c * x[lane] + s * y[lane];
        second[lane] = c * y[lane] - s * x[lane];
    }
    (first, second)
}
