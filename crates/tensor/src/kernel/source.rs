//! Strided tensors, the operands of kernels.

use crate::kernel::elementwise::operand::Operand;
use crate::{Layout, Scalar, Shape};

/// A tensor as a kernel reads it: the whole buffer and a layout.
#[derive(Clone, Copy)]
pub struct Source<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) layout: &'a Layout,
}

impl<'a, T: Scalar> Source<'a, T> {
    /// Returns all elements as one operand of a block kernel, if they are contiguous or all strides are 0. Returns `None` for other
    /// layouts. There must be at least one element.
    pub(crate) fn as_operand(&self) -> Option<Operand<'a, T>> {
        let first = self.layout.offset();
        if self.layout.is_contiguous() {
            return Some(Operand::Slice(&self.data[first..first + self.layout.numel()]));
        }
        self.layout.strides().iter().all(|&stride| stride == 0).then(|| Operand::Splat(self.data[first]))
    }

    /// Returns the same buffer with another layout.
    pub(crate) fn with_layout(self, layout: &'a Layout) -> Self {
        Source { data: self.data, layout }
    }

    /// Expands this tensor to `shape`. If the layout changes, `expanded` stores the new one.
    pub(crate) fn expand_to(self, shape: &Shape, expanded: &'a mut Option<Layout>) -> Self {
        if self.layout.shape() == shape {
            return self;
        }
        *expanded = self.layout.expand(shape);
        match expanded {
            Some(layout) => Source { data: self.data, layout },
            None => unreachable!("a caller resolves the shapes first"),
        }
    }

    /// Returns a contiguous row if the tensor consists of repetitions of this row. Otherwise returns `None`. A contiguous tensor is one
    /// row, repeated once. There must be at least one element.
    pub(crate) fn repeated_row(&self) -> Option<&'a [T]> {
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
