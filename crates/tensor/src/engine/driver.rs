//! The block driver: runs the tasks of a [`Tiling`]. Each task gets its blocks and its part of every output. Most eager elementwise
//! operations and fused programs over many elements run here.
//!
//! Tasks and blocks do not depend on the number of threads, so any number of threads gives the same bits.

use smallvec::{SmallVec, smallvec};

use crate::engine::tiling::Tiling;
use crate::kernel::reduce::accumulator::combine_parts;
use crate::memory::available::AllocationError;
use crate::memory::partition::{self, Partition};
use crate::memory::scratch::Scratch;
use crate::scalar::cpu;
use crate::thresholds::blocks::{BLOCK, MAX_CACHED_BYTES, MIN_STREAMED_BYTES};
use crate::{Element, Float, Reduction};

/// Returns true if results of `written` bytes, computed from operands of `read` bytes, are large enough for stores that bypass the caches.
pub(crate) fn is_streamed(written: usize, read: usize) -> bool {
    written >= MIN_STREAMED_BYTES && written + read > MAX_CACHED_BYTES
}

/// The way in which an output is divided among tasks.
pub(crate) enum OutputSplit {
    /// A task gets this number of elements of the output for each element in the task's blocks.
    PerElement(usize),
    /// A task gets one element of the output for each row in the task's blocks.
    PerRow,
    /// Each task gets an array of this number of totals (results of a reduction) for itself. The driver then combines the totals of all
    /// tasks.
    Totals(Reduction, usize),
}

/// A function that runs one task. Its arguments are the task's index and, for each output, the part that belongs to the task.
pub(crate) type TaskFn<'a, T> = dyn Fn(usize, SmallVec<[&mut [T]; 4]>) -> Result<(), AllocationError> + Sync + 'a;

/// Calls `task` with the index of each task of `tiling`, and with the parts of all outputs that belong to the task. Does not write the
/// outputs that are [totals](OutputSplit::Totals). Instead, returns one buffer for each of these outputs. The buffer begins with the totals
/// of all tasks, combined in a balanced tree. Returns an error if a task fails, or if there is not enough memory for the totals of every
/// task.
pub(crate) fn run<T: Float>(
    tiling: &Tiling,
    mut outputs: SmallVec<[(OutputSplit, &mut [T]); 4]>,
    task: &TaskFn<'_, T>,
) -> Result<SmallVec<[Scratch<T>; 2]>, AllocationError> {
    let tasks = tiling.task_count();
    let ends =
        |of: &dyn Fn(usize) -> usize| (1..=tasks).map(|task| of(tiling.task_start(task))).collect::<Vec<usize>>();
    let (mut totals, mut ops): (SmallVec<[Scratch<T>; 2]>, SmallVec<[_; 2]>) = (smallvec![], smallvec![]);
    let mut boundaries: SmallVec<[Vec<usize>; 4]> = smallvec![];
    for (split, _) in &outputs {
        boundaries.push(match *split {
            OutputSplit::PerElement(count) => ends(&|end| end * count),
            OutputSplit::PerRow => ends(&|end| end / tiling.row_len),
            OutputSplit::Totals(op, count) => {
                totals.push(Scratch::new(count.saturating_mul(tasks))?);
                ops.push((op, count));
                Vec::new()
            }
        });
    }
    let mut own_totals = totals.iter_mut();
    let schedule = tiling.schedule::<T>();
    let mut parts: SmallVec<[Partition<'_, T>; 4]> = smallvec![];
    for ((split, result), ends) in outputs.iter_mut().zip(&boundaries) {
        parts.push(match split {
            OutputSplit::PerElement(_) | OutputSplit::PerRow => Partition::ends(result, ends),
            OutputSplit::Totals(_, count) => match own_totals.next() {
                Some(totals) => Partition::chunks(totals, *count),
                None => unreachable!("every such output has totals"),
            },
        });
    }
    partition::try_run(tasks, schedule, parts, task)?;
    for ((op, count), totals) in ops.into_iter().zip(&mut totals) {
        combine_parts(op, totals, count);
    }
    Ok(totals)
}

/// A function that runs one task of [`fill`]. It creates the task's state, and then calls its argument once with a *block function*. The
/// block function gets the index of a block's first element and the block's part of the output, and writes this part.
pub(crate) type FillTask<'a, U> = dyn Fn(&mut dyn FnMut(&mut dyn FnMut(usize, &mut [U]))) + Sync + 'a;

/// Fills `out` block by block. Calls `task` once per task, on the task's thread. The block function of the task is called for each of the
/// task's blocks. If `is_streamed` is true, the output is written by [`cpu::stream`], which bypasses the caches, except in tiles on AMD's
/// processors. The block function must then not read the output's old elements.
pub(crate) fn fill<U: Element>(tiling: &Tiling, out: &mut [U], is_streamed: bool, task: &FillTask<'_, U>) {
    // If the output is cut into tiles, successive blocks are short parts of different rows. On AMD's processors, non-temporal stores of
    // short parts are slower than ordinary stores.
    let is_streamed = is_streamed && (tiling.tiles().is_none() || !cpu::is_amd());
    let run_task = |number: usize, out: &mut [U]| {
        let first = tiling.task_start(number);
        task(&mut |block| {
            if !is_streamed {
                return tiling.for_each_block(number, |start, len| block(start, &mut out[start - first..][..len]));
            }
            let mut aside = [U::ZERO; BLOCK];
            tiling.for_each_block(number, |start, len| {
                block(start, &mut aside[..len]);
                cpu::stream(&aside[..len], &mut out[start - first..][..len]);
            });
            cpu::fence_streams();
        });
    };
    let tasks = tiling.task_count();
    if tasks == 1 {
        return run_task(0, out);
    }
    let ends: Vec<usize> = (1..=tasks).map(|task| tiling.task_start(task)).collect();
    partition::run(tasks, tiling.schedule::<U>(), Partition::ends(out, &ends), run_task);
}
