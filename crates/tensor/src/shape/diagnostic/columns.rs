//! Prints shapes below each other, aligned at the last dimension as in the broadcasting rule, with marks under sizes.

use std::fmt::Write;

use smallvec::SmallVec;

use crate::Shape;
use crate::shape::shape::INLINE_RANK;

/// The columns in which several shapes are printed: one for each dimension of the longest shape, as wide as the widest size.
///
/// ```text
/// [4, 32, 14, 14]
///    [32,  1,  1]
/// ```
pub(crate) struct Columns {
    widths: SmallVec<[usize; INLINE_RANK]>,
}

impl Columns {
    pub(crate) fn new(shapes: &[&Shape]) -> Self {
        let rank = shapes.iter().map(|shape| shape.rank()).max().unwrap_or(0);
        let width = |axis: usize| {
            let sizes = shapes.iter().filter_map(|shape| shape.get((axis + shape.rank()).checked_sub(rank)?));
            sizes.map(|size| size.to_string().len()).max().unwrap_or(0)
        };
        Columns { widths: (0..rank).map(width).collect() }
    }

    /// Returns the number of characters of a row of text. Each size has a bracket or space before it, and a comma or bracket after it.
    pub(crate) fn width(&self) -> usize {
        self.widths.iter().map(|width| width + 2).sum::<usize>().max("[]".len())
    }

    /// Returns the text of `shape` in these columns, with blanks for missing dimensions.
    pub(crate) fn row(&self, shape: &Shape) -> String {
        if shape.rank() == 0 {
            return format!("{:>width$}", "[]", width = self.width());
        }
        let lead = self.widths.len() - shape.rank();
        let mut row = " ".repeat(self.start(lead) - 1);
        for (axis, size) in shape.iter().enumerate() {
            let width = self.widths[lead + axis];
            let closing = if axis + 1 == shape.rank() { ']' } else { ',' };
            let _ = match axis {
                // The opening bracket directly precedes the first size.
                0 => write!(row, "{:>width$}{closing}", format!("[{size}"), width = width + 1),
                _ => write!(row, " {size:>width$}{closing}"),
            };
        }
        row
    }

    /// Returns a line of text that fills the column of each dimension with the character `mark(axis)`, or with blanks for `None`. The line
    /// has no trailing blanks.
    pub(crate) fn marks(&self, mark: impl Fn(usize) -> Option<char>) -> String {
        let mut row = String::new();
        for (axis, &width) in self.widths.iter().enumerate() {
            if let Some(mark) = mark(axis) {
                let blanks = self.start(axis) - row.len();
                row.extend(std::iter::repeat_n(' ', blanks).chain(std::iter::repeat_n(mark, width)));
            }
        }
        row
    }

    /// Returns the position in a line of text at which the size of dimension `axis` starts.
    fn start(&self, axis: usize) -> usize {
        self.widths[..axis].iter().map(|width| width + 2).sum::<usize>() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_marks_line_up() {
        let (a, b, c) = (Shape::from([4, 32, 7, 1000]), Shape::from([2, 1]), Shape::scalar());
        let columns = Columns::new(&[&a, &b, &c]);
        assert_eq!(columns.row(&a), "[4, 32, 7, 1000]");
        assert_eq!(columns.row(&b), "       [2,    1]");
        assert_eq!(columns.row(&c), "              []");
        assert_eq!(columns.marks(|axis| (axis % 2 == 1).then_some('^')), "    ^^     ^^^^");
        assert_eq!(columns.marks(|_| None), "");
        assert_eq!(Columns::new(&[&c]).row(&c), "[]");
        assert_eq!(Columns::new(&[&Shape::from([100, 2]), &Shape::from([5, 2])]).row(&Shape::from([5, 2])), "  [5, 2]");
    }
}
