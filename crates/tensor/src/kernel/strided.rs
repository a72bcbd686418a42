//! Tensors as kernels see them, cut into blocks: operands borrowed, repeated or gathered.
//!
//! The partition depends on the shape alone, and no block reads what another writes: any number of threads gives the
//! same bits.
use smallvec::SmallVec;

use crate::kernel::elementwise::operand::Operand;
use crate::memory::partition::{self, Partition};
use crate::memory::threads::Schedule;
use crate::scalar::cpu;
use crate::shape::iteration_space::{Nest, Run};
use crate::{Element, Layout};

/// Elements in a block: a few operands of it stay in the first-level cache.
pub(crate) const BLOCK: usize = 1024;

/// Rows at least this long are cut into blocks; shorter ones are gathered several to a block.
pub(crate) const LONG_ROW: usize = 128;

/// Blocks below this many elements in all are not worth a second thread.
pub(crate) const PARALLEL: usize = 1 << 16;

/// Elements in a task of many blocks, so that handing it out costs little.
pub(crate) const TASK: usize = PARALLEL / 4;

/// Tasks of an operation, at most: what a thread does next lies after what it did before, which memory gives faster.
pub(crate) const TASKS: usize = 64;

/// Results of this many bytes are larger than what is left of a last-level cache beside their operands: they are written past
/// it.
pub(crate) const STREAM: usize = 16 << 20;

/// A tensor as kernels see it: the whole buffer, and where the elements lie in it.
#[derive(Clone, Copy)]
pub struct Source<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) layout: &'a Layout,
}

impl<'a, T: Element> Source<'a, T> {
    /// The elements as an operand of one block, where they lie in order or are all the same. There is one at least.
    pub(crate) fn whole(&self) -> Option<Operand<'a, T>> {
        let first = self.layout.offset();
        if self.layout.is_contiguous() {
            return Some(Operand::Slice(&self.data[first..first + self.layout.numel()]));
        }
        self.layout.strides().iter().all(|&stride| stride == 0).then(|| Operand::Splat(self.data[first]))
    }

    /// The elements that repeat, where they lie in order and do so again and again. There is one at least.
    pub(crate) fn row(&self) -> Option<&'a [T]> {
        let (mut len, mut repeats) = (1, false);
        for (&size, &stride) in self.layout.shape().iter().zip(self.layout.strides()).rev() {
            if size == 1 {
                continue;
            }
            if !repeats && stride == len as isize {
                len *= size;
            } else if stride == 0 {
                repeats = true;
            } else {
                return None;
            }
        }
        let first = self.layout.offset();
        Some(&self.data[first..first + len])
    }
}

/// Fills `out`, in row-major order, block by block: `f(block number's first element, block)`. No block crosses the end
/// of a long row, so that operands are slices of it; none is longer than [`BLOCK`]. What is `fresh` is not read by `f`, which
/// costs as much as `cost` additions for an element.
pub(crate) fn for_blocks<U: Element>(
    row: usize,
    cost: usize,
    fresh: bool,
    out: &mut [U],
    f: impl Fn(usize, &mut [U]) + Sync,
) {
    let len = out.len();
    if len <= BLOCK && (row < LONG_ROW || row >= len) {
        if len > 0 {
            f(0, out);
        }
        return;
    }
    let row = if row >= LONG_ROW { row } else { BLOCK };
    // Blocks of nearly equal length.
    let parts = row.div_ceil(BLOCK);
    let block = row.div_ceil(parts);
    let blocks = len / row * parts + (len % row).div_ceil(block);
    let few = len.saturating_mul(cost) < PARALLEL;
    let each = if few { blocks } else { (TASK / cost / block).max(blocks.div_ceil(TASKS)).max(1) };
    let streams = fresh && size_of_val(out) >= STREAM;
    let start = |number: usize| len.min(number / parts * row + number % parts * block);
    let tasks = blocks.div_ceil(each);
    let ends: SmallVec<[usize; TASKS]> = (1..=tasks).map(|task| start(blocks.min(task * each))).collect();
    let schedule = Schedule::Sweep { bytes: size_of_val(out) };
    partition::run(tasks, schedule, Partition::ends(out, &ends), |task, out| {
        let mut aside = if streams { Some([U::ZERO; BLOCK]) } else { None };
        let mut rest = out;
        for number in task * each..blocks.min((task + 1) * each) {
            let first = start(number);
            let size = block.min(row - number % parts * block).min(len - first);
            let (out, later) = rest.split_at_mut(size);
            rest = later;
            match &mut aside {
                Some(buffer) => {
                    f(first, &mut buffer[..size]);
                    cpu::stream(&buffer[..size], out);
                }
                None => f(first, out),
            }
        }
        if streams {
            cpu::streamed();
        }
    });
}

/// Operand `k` of `nest` for elements `start .. start + len`; `scratch` holds it where it must be gathered.
pub(crate) fn operand<'a, T: Element, const N: usize>(
    nest: &Nest<N>,
    k: usize,
    data: &'a [T],
    start: usize,
    len: usize,
    scratch: &'a mut Vec<T>,
) -> Operand<'a, T> {
    match nest.run(k, start, len) {
        Run::Slice(position) => Operand::Slice(&data[position..position + len]),
        Run::Splat(position) => Operand::Splat(data[position]),
        Run::Strided(position, stride) => {
            scratch.clear();
            gather(data, position, stride, len, scratch);
            Operand::Slice(scratch)
        }
        Run::Walk => {
            scratch.clear();
            nest.walk(k, start, len, |position, stride, count| gather(data, position, stride, count, scratch));
            Operand::Slice(scratch)
        }
    }
}

pub(crate) fn gather<T: Copy>(data: &[T], position: usize, stride: isize, len: usize, out: &mut Vec<T>) {
    match stride {
        1 => out.extend_from_slice(&data[position..position + len]),
        0 => out.resize(out.len() + len, data[position]),
        2.. => out.extend(data[position..].iter().step_by(stride as usize).take(len)),
        _ => out.extend((0..len as isize).map(|i| data[(position as isize + i * stride) as usize])),
    }
}
