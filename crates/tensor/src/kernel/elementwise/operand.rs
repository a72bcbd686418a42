//! The operands of block kernels.

/// An operand of a block operation.
///
/// With `repr(u32)`, the number of a splat lies beside the tag and not over half of the slice's length. The processor would read a
/// length that was written as two halves only after all earlier stores.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Operand<'a, T> {
    /// A slice as long as the block.
    Slice(&'a [T]),
    /// One number for all elements.
    Splat(T),
}

impl<'a, T: Copy> Operand<'a, T> {
    /// The operand of elements `first .. last` of the block.
    #[inline(always)]
    pub(crate) fn part(self, first: usize, last: usize) -> Self {
        match self {
            Operand::Slice(elements) => Operand::Slice(&elements[first..last]),
            splat => splat,
        }
    }
}

/// A block of rows and columns, and how two operands are read in it. An operand may repeat its row, or have one number for each row.
#[derive(Clone, Copy, Debug)]
pub struct RowBroadcast {
    /// Number of rows.
    pub(crate) rows: usize,
    /// Elements of a row.
    pub(crate) columns: usize,
    /// Elements from one row of the first operand to the next; 0 where its row repeats.
    pub(crate) x_row: usize,
    /// Elements from one row of the second operand to the next; 0 where its row repeats.
    pub(crate) y_row: usize,
    /// Whether the first operand has an element for each column; otherwise it has one number for each row.
    pub(crate) x_moves: bool,
    /// Whether the second operand has an element for each column; otherwise it has one number for each row.
    pub(crate) y_moves: bool,
}
