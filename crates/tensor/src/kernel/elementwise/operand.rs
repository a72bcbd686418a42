//! What a block operation reads.

/// An operand of a block operation.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a, T> {
    /// As many elements as the block has.
    Slice(&'a [T]),
    /// One for all.
    Splat(T),
}

/// Rows of columns: how two operands lie under them.
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// From a row of an operand to the next.
    pub(crate) x_row: usize,
    pub(crate) y_row: usize,
    /// Whether an operand goes on along a row; else it is one number there.
    pub(crate) x_moves: bool,
    pub(crate) y_moves: bool,
}

impl Plane {
    pub(crate) const NONE: Plane = Plane { rows: 0, columns: 0, x_row: 0, y_row: 0, x_moves: true, y_moves: true };
}
