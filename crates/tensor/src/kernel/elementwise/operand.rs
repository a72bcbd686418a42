//! The operands of block kernels.

/// An operand of a block operation.
///
/// So represented, the number of a splat has a place beside the tag, not over half of the slice's length: a length written as two
/// halves is read back only when all stores before it are done.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Operand<'a, T> {
    /// A slice as long as the block.
    Slice(&'a [T]),
    /// One number for all elements.
    Splat(T),
}

/// A block of rows and columns, and how two operands are laid out in it.
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Distance between rows of an operand.
    pub(crate) x_row: usize,
    pub(crate) y_row: usize,
    /// Whether an operand advances along a row; otherwise it is one number per row.
    pub(crate) x_moves: bool,
    pub(crate) y_moves: bool,
}

impl Plane {
    pub(crate) const NONE: Plane = Plane { rows: 0, columns: 0, x_row: 0, y_row: 0, x_moves: true, y_moves: true };
}
