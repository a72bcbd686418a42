//! Tensors as kernels see them, and the sizes in which all of them work.

use crate::kernel::elementwise::operand::Operand;
use crate::{Layout, Scalar};

/// Elements in a block: a few operands of it stay in the first-level cache.
pub(crate) const BLOCK: usize = 1024;

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

impl<'a, T: Scalar> Source<'a, T> {
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
