//! The operands of block kernels.

/// An operand of a block operation.
///
/// With `repr(u32)`, the number of [`Operand::Splat`] is stored beside the enum's tag. Without it, a number of 4 bytes could share its
/// place in memory with one half of a slice's length. The length would then be written as two halves, and a processor could read it only
/// after all earlier stores.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Operand<'a, T> {
    /// A slice as long as the block.
    Slice(&'a [T]),
    /// One number for all elements.
    Splat(T),
}

impl<'a, T: Copy> Operand<'a, T> {
    /// Returns the operand for the elements `first .. last` of the block.
    #[inline(always)]
    pub(crate) fn part(self, first: usize, last: usize) -> Self {
        match self {
            Operand::Slice(elements) => Operand::Slice(&elements[first..last]),
            splat => splat,
        }
    }

    /// Returns a row of `columns` elements that begins at index `first` of `data`. If `has_columns` is true, the operand has an element for
    /// each column. Otherwise it has one number for the whole row.
    #[inline(always)]
    pub(crate) fn row(data: &'a [T], first: usize, has_columns: bool, columns: usize) -> Self {
        if has_columns { Operand::Slice(&data[first..first + columns]) } else { Operand::Splat(data[first]) }
    }

    #[inline(always)]
    pub(crate) fn element(self, i: usize) -> T {
        match self {
            Operand::Slice(elements) => elements[i],
            Operand::Splat(value) => value,
        }
    }

    /// Returns the 16 elements that begin at `start`.
    #[inline(always)]
    pub(crate) fn load_16(self, start: usize) -> [T; 16] {
        match self {
            Operand::Slice(elements) => {
                let mut copy = [elements[start]; 16];
                copy.copy_from_slice(&elements[start..start + 16]);
                copy
            }
            Operand::Splat(value) => [value; 16],
        }
    }
}

/// The sizes of a block of rows and columns, and the positions of the elements of two operands. An operand may repeat one row. One of the
/// two operands may have one value for each row.
#[derive(Clone, Copy, Debug)]
pub struct RowBroadcast {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// The distance between rows of the first operand, in elements. It is 0 if the operand repeats one row.
    pub(crate) x_row_stride: usize,
    /// The distance between rows of the second operand, in elements. It is 0 if the operand repeats one row.
    pub(crate) y_row_stride: usize,
    /// True if the first operand has an element for each column. Otherwise it has one value for each row.
    pub(crate) x_has_columns: bool,
    /// True if the second operand has an element for each column. Otherwise it has one value for each row.
    pub(crate) y_has_columns: bool,
}
