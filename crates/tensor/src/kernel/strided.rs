//! Strided tensors as kernels see them, and block sizes common to all kernels.

use crate::kernel::elementwise::operand::Operand;
use crate::{Layout, Scalar, Shape};

/// Elements of a block. A block of several operands fits into the first-level cache.
pub(crate) const BLOCK: usize = 1024;

/// The fewest elements of an operation that runs on a second thread.
pub(crate) const PARALLEL: usize = 1 << 16;

/// Elements of a task of several blocks. With more, the cost of starting a task matters less; with fewer, threads share work better.
pub(crate) const TASK: usize = PARALLEL / 4;

/// The most tasks of an operation. With fewer tasks, more successive reads of a thread are adjacent, which prefetching needs.
pub(crate) const TASKS: usize = 64;

/// Results of at least this many bytes are written with non-temporal stores, unless a last-level cache holds them together with their
/// operands.
pub(crate) const STREAM: usize = 16 << 20;

/// Results and operands of more bytes gain nothing from a last-level cache of 32 MiB. Bytes.
pub(crate) const LAST_LEVEL: usize = 36 << 20;

/// A tensor as kernels see it: the whole buffer and a layout.
#[derive(Clone, Copy)]
pub struct Source<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) layout: &'a Layout,
}

impl<'a, T: Scalar> Source<'a, T> {
    /// The elements as the operand of one block, if they are contiguous or all the same. There is at least one.
    pub(crate) fn whole(&self) -> Option<Operand<'a, T>> {
        let first = self.layout.offset();
        if self.layout.is_contiguous() {
            return Some(Operand::Slice(&self.data[first..first + self.layout.numel()]));
        }
        self.layout.strides().iter().all(|&stride| stride == 0).then(|| Operand::Splat(self.data[first]))
    }

    /// The same elements expanded to `shape`, to which the layout broadcasts. `expanded` keeps the new layout, if there is one.
    pub(crate) fn over(self, shape: &Shape, expanded: &'a mut Option<Layout>) -> Self {
        if self.layout.shape() == shape {
            return self;
        }
        *expanded = self.layout.expand(shape);
        match expanded {
            Some(layout) => Source { data: self.data, layout },
            None => unreachable!("a caller resolves the shapes first"),
        }
    }

    /// The elements that repeat, if they are contiguous and repeat in order. There is at least one.
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
