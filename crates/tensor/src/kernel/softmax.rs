//! Softmax along a dimension that is not the last one. A block of columns is so small that it stays in the caches for all steps.

use crate::kernel::elementwise::operand::Operand;
use crate::memory::available::AllocationError;
use crate::memory::partition::{self, Grid, Tile};
use crate::memory::scratch::Scratch;
use crate::memory::threads::Schedule;
use crate::thresholds::blocks::MIN_PARALLEL;
use crate::thresholds::softmax::{BLOCK, MAX_WIDTH};
use crate::{Binary, Float, Reduction, Unary};

/// Writes eˣ / Σ eˣ, or its logarithm if `log` is true, to `out`, where the sum is over a column. `x` consists of matrices of equal size,
/// one after the other. `sizes` has their number of rows and of columns.
///
/// # Errors
///
/// If there is not enough memory for the exponentials of a block.
#[wengert_macros::precompiled]
pub(crate) fn of_columns<T: Float>(
    x: &[T],
    sizes: (usize, usize),
    log: bool,
    out: &mut [T],
) -> Result<(), AllocationError> {
    let (rows, columns) = sizes;
    let width = (BLOCK / rows).clamp(1, MAX_WIDTH.min(columns));
    let across = columns.div_ceil(width);
    let (tasks, schedule) = (out.len() / (rows * columns) * across, Schedule::parallel_from(MIN_PARALLEL, out.len()));
    partition::try_run(tasks, schedule, Grid::equal(out, columns, (rows, width)), |number, mut out: Tile<T>| {
        let (first, width) = (number / across * rows * columns + number % across * width, out.width());
        let x = |row: usize| &x[first + row * columns..][..width];
        let mut memory = Scratch::new((rows + 2) * width)?;
        let (powers, totals) = memory.split_at_mut(rows * width);
        let (largest, totals) = totals.split_at_mut(width);
        largest.fill(T::start(Reduction::Amax));
        (0..rows).for_each(|row| T::accumulate(Reduction::Amax, largest, x(row)));
        for (row, power) in powers.chunks_exact_mut(width).enumerate() {
            T::binary(Binary::Sub, Operand::Slice(x(row)), Operand::Slice(largest), out.row(row));
            T::unary(Unary::Exp, Operand::Slice(out.row(row)), power);
        }
        totals.fill(T::start(Reduction::Sum));
        T::accumulate_rows(Reduction::Sum, totals, powers, width, rows);
        if log {
            T::unary(Unary::Log, Operand::Slice(totals), largest);
            (0..rows).for_each(|row| T::update(Binary::Sub, out.row(row), Operand::Slice(largest)));
        } else {
            let powers = powers.chunks_exact(width).enumerate();
            powers.for_each(|(row, power)| {
                T::binary(Binary::Div, Operand::Slice(power), Operand::Slice(totals), out.row(row))
            });
        }
        Ok(())
    })
}
