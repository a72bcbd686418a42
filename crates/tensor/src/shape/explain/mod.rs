//! An explanation of how given shapes broadcast, as data, as text and as a picture. The explanation shows which operand is stretched in
//! which dimension.
//!
//! [`broadcast::join`] decides the joint shape. This module calls it for the whole shapes and for each dimension, and shows the
//! results.

mod svg;

use std::fmt;

use crate::Shape;
use crate::shape::broadcast;
use crate::shape::broadcast::{Expansion, Mismatch, size_at};
use crate::shape::diagnostic::{Columns, operand_name};

/// The way in which one dimension of an operand is broadcast. The variants `Kept` and `Failing` contain the operand's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// The dimension has the size of the result.
    Kept(usize),
    /// The dimension has size 1. It is stretched to the size of the result, if the other operands agree.
    Stretched,
    /// The operand does not have this dimension.
    New,
    /// The size of the dimension is not 1 and disagrees with another operand.
    Failing(usize),
}

/// Explains the joint shape of `shapes` and the expansion of each operand. The operands are named `a`, `b`, `c`, …
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; }
/// use wengert::tensor::{Shape, explain};
///
/// let explanation = explain(&[&Shape::from([5, 2, 4, 1]), &Shape::from([3, 1, 1])]);
/// let text = [
///     "a       [5, 2, 4, 1]",
///     "            ^",
///     "b          [3, 1, 1]",
///     "            ^",
///     "result  none: 2 against 3 at dimension 1",
/// ];
/// assert_eq!(explanation.to_string(), text.join("\n"));
/// ```
pub fn explain(shapes: &[&Shape]) -> Explanation {
    let named = shapes.iter().enumerate().map(|(position, &shape)| (operand_name(position), shape.clone()));
    Explanation::new(named.collect())
}

/// Explains the joint shape of operands with given names.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; }
/// use wengert::tensor::{Shape, explain_named};
///
/// let (maps, bias) = (Shape::from([4, 32, 14, 14]), Shape::from([32, 1, 1]));
/// let explanation = explain_named(&[("maps", &maps), ("bias", &bias)]);
/// assert_eq!(explanation.joined().unwrap(), &[4, 32, 14, 14]);
/// assert_eq!(explanation.expansion(1).unwrap().reduced().as_slice(), [0, 2, 3]);
/// println!("{explanation}");
/// std::fs::write(std::env::temp_dir().join("bias.svg"), explanation.to_svg()).unwrap();
/// ```
///
/// The text is
///
/// ```text
/// maps    [4, 32, 14, 14]
/// bias       [32,  1,  1]
///          +      **  **
/// result  [4, 32, 14, 14]
///         + new, * stretched from 1
/// ```
pub fn explain_named(operands: &[(&str, &Shape)]) -> Explanation {
    Explanation::new(operands.iter().map(|&(name, shape)| (name.to_owned(), shape.clone())).collect())
}

/// An explanation of how shapes broadcast, made by [`explain`] or [`explain_named`]. `Display` writes it as text. [`to_svg`](Self::to_svg)
/// returns a coloured picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    operands: Vec<(String, Shape)>,
    joined: Result<Shape, Box<Mismatch>>,
    /// The size of the result in each dimension, or `None` if the operands disagree in this dimension.
    sizes: Vec<Option<usize>>,
}

impl Explanation {
    fn new(operands: Vec<(String, Shape)>) -> Self {
        let shapes: Vec<&Shape> = operands.iter().map(|(_, shape)| shape).collect();
        let joined = broadcast::join(&shapes);
        let rank = shapes.iter().map(|shape| shape.rank()).max().unwrap_or(0);
        // The sizes of each dimension are joined separately, because a dimension broadcasts independently of the other dimensions.
        let size = |axis| {
            let column: Vec<Shape> = shapes.iter().map(|&shape| Shape::from(size_at(shape, rank, axis))).collect();
            broadcast::join(&column.iter().collect::<Vec<_>>()).ok().map(|shape| shape[0])
        };
        let sizes = (0..rank).map(size).collect();
        Explanation { operands, joined, sizes }
    }

    /// Returns the joint shape of the operands, or the mismatch if they do not broadcast.
    pub fn joined(&self) -> Result<&Shape, &Mismatch> {
        self.joined.as_ref().map_err(Box::as_ref)
    }

    /// Returns the rank of the joint shape, which is the highest rank of the operands.
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// Returns the size of the result in each dimension, or `None` if the operands disagree in this dimension. The error of
    /// [`joined`](Self::joined) has only one of these dimensions: the last one in which the first failing operand disagrees with the
    /// operands before it.
    pub fn sizes(&self) -> &[Option<usize>] {
        &self.sizes
    }

    /// Returns the names and shapes of the operands, in order.
    pub fn operands(&self) -> impl ExactSizeIterator<Item = (&str, &Shape)> {
        self.operands.iter().map(|(name, shape)| (name.as_str(), shape))
    }

    /// Returns the expansion of the operand with index `operand` to the result. Returns `None` if there is no result or no such operand.
    pub fn expansion(&self, operand: usize) -> Option<Expansion> {
        Expansion::new(&self.operands.get(operand)?.1, self.joined.as_ref().ok()?)
    }

    /// Returns how the operand with index `operand` is broadcast in each dimension of the result. The list is empty if there is no such
    /// operand.
    pub fn cells(&self, operand: usize) -> Vec<Cell> {
        let Some((_, shape)) = self.operands.get(operand) else {
            return Vec::new();
        };
        let lead = self.rank() - shape.rank();
        let cell = |axis: usize| match (axis.checked_sub(lead).map(|own| shape[own]), self.sizes[axis]) {
            (None, _) => Cell::New,
            (Some(size), Some(result)) if size == result => Cell::Kept(size),
            (Some(1), _) => Cell::Stretched,
            (Some(size), _) => Cell::Failing(size),
        };
        (0..self.rank()).map(cell).collect()
    }

    /// Returns the text that describes the mismatch, or `None` if the shapes broadcast.
    fn failure(&self) -> Option<String> {
        let mismatch = self.joined.as_ref().err()?;
        Some(format!("{} against {} at dimension {}", mismatch.left, mismatch.right, mismatch.axis))
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shapes = self.operands.iter().map(|(_, shape)| shape);
        let columns = Columns::new(&shapes.chain(self.joined.as_ref().ok()).collect::<Vec<_>>());
        let names = self.operands.iter().map(|(name, _)| name.chars().count());
        let width = names.chain(["result".len()]).max().unwrap_or(0) + 2;
        let (mut added, mut stretched) = (false, false);
        for (operand, (name, shape)) in self.operands.iter().enumerate() {
            writeln!(f, "{name:width$}{}", columns.row(shape))?;
            let cells = self.cells(operand);
            let marks = columns.marks(|axis| match (&self.joined, cells[axis]) {
                (Ok(_), Cell::New) => Some('+'),
                (Ok(_), Cell::Stretched) => Some('*'),
                (Err(_), Cell::Failing(_)) => Some('^'),
                _ => None,
            });
            added |= marks.contains('+');
            stretched |= marks.contains('*');
            if !marks.is_empty() {
                writeln!(f, "{:width$}{marks}", "")?;
            }
        }
        match (&self.joined, self.failure()) {
            (Ok(joined), _) => write!(f, "{:width$}{}", "result", columns.row(joined))?,
            (_, failure) => write!(f, "{:width$}none: {}", "result", failure.unwrap_or_default())?,
        }
        let legend = match (added, stretched) {
            (true, true) => "+ new, * stretched from 1",
            (true, false) => "+ new",
            (false, true) => "* stretched from 1",
            (false, false) => return Ok(()),
        };
        write!(f, "\n{:width$}{legend}", "")
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn explained(shapes: &[&[usize]]) -> Explanation {
        let shapes: Vec<Shape> = shapes.iter().map(|&sizes| Shape::from(sizes)).collect();
        explain(&shapes.iter().collect::<Vec<_>>())
    }

    #[track_caller]
    fn shown(shapes: &[&[usize]], lines: &[&str]) {
        let text = explained(shapes).to_string();
        assert_eq!(text.lines().collect::<Vec<_>>(), lines, "\n{text}");
    }

    #[test]
    fn text_of_two_operands() {
        shown(
            &[&[5, 1, 4, 1], &[3, 1, 1]],
            &[
                "a       [5, 1, 4, 1]",
                "            *",
                "b          [3, 1, 1]",
                "         +     *",
                "result  [5, 3, 4, 1]",
                "        + new, * stretched from 1",
            ],
        );
        shown(&[&[5, 7, 3], &[5, 7, 3]], &["a       [5, 7, 3]", "b       [5, 7, 3]", "result  [5, 7, 3]"]);
    }

    #[test]
    fn text_of_few_and_many_operands() {
        shown(&[], &["result  []"]);
        shown(&[&[]], &["a       []", "result  []"]);
        shown(
            &[&[1, 3], &[2, 1], &[], &[4, 1, 1]],
            &[
                "a          [1, 3]",
                "         +  *",
                "b          [2, 1]",
                "         +     *",
                "c              []",
                "         +  +  +",
                "d       [4, 1, 1]",
                "            *  *",
                "result  [4, 2, 3]",
                "        + new, * stretched from 1",
            ],
        );
    }

    #[test]
    fn zero_is_a_size_to_stretch_to() {
        shown(
            &[&[3, 1], &[0]],
            &[
                "a       [3, 1]",
                "            *",
                "b          [0]",
                "         +",
                "result  [3, 0]",
                "        + new, * stretched from 1",
            ],
        );
        shown(
            &[&[0], &[2, 2]],
            &[
                "a          [0]",
                "            ^",
                "b       [2, 2]",
                "            ^",
                "result  none: 0 against 2 at dimension 1",
            ],
        );
    }

    #[test]
    fn every_failing_dimension_is_marked() {
        let explanation = explained(&[&[4, 100, 1], &[1, 100, 2], &[3, 7, 2]]);
        assert_eq!(explanation.sizes(), [None, None, Some(2)]);
        assert_eq!(explanation.cells(1), [Cell::Stretched, Cell::Failing(100), Cell::Kept(2)]);
        assert_eq!(
            explanation.to_string().lines().collect::<Vec<_>>(),
            [
                "a       [4, 100, 1]",
                "         ^  ^^^",
                "b       [1, 100, 2]",
                "            ^^^",
                "c       [3,   7, 2]",
                "         ^  ^^^",
                "result  none: 100 against 7 at dimension 1",
            ]
        );
    }

    proptest! {
        #[test]
        fn an_explanation_agrees_with_the_rule(
            sizes in vec(vec(prop::sample::select(vec![0usize, 1, 1, 1, 2, 2, 3]), 0..5), 0..5),
        ) {
            let shapes: Vec<Shape> = sizes.into_iter().map(Shape::from).collect();
            let shapes: Vec<&Shape> = shapes.iter().collect();
            let explanation = explain(&shapes);
            let joined = broadcast::join(&shapes);
            prop_assert_eq!(explanation.joined(), joined.as_ref().map_err(Box::as_ref));
            let cells: Vec<Vec<Cell>> = (0..shapes.len()).map(|operand| explanation.cells(operand)).collect();
            match joined {
                Ok(joined) => {
                    prop_assert_eq!(explanation.sizes(), joined.iter().map(|&size| Some(size)).collect::<Vec<_>>());
                    for (operand, cells) in cells.iter().enumerate() {
                        let expansion = explanation.expansion(operand).unwrap();
                        let of = |kind| (0..cells.len()).filter(|&axis| cells[axis] == kind).collect::<Vec<_>>();
                        prop_assert_eq!(of(Cell::New), expansion.added().collect::<Vec<_>>());
                        prop_assert_eq!(of(Cell::Stretched), expansion.stretched().collect::<Vec<_>>());
                    }
                }
                Err(mismatch) => {
                    prop_assert_eq!(explanation.expansion(0), None);
                    // The mismatch counts its dimension in the joint rank of all operands up to the failing one. Later operands may have a
                    // higher rank.
                    let lead = explanation.rank() - mismatch.merged.rank().max(mismatch.shape.rank());
                    let failing = lead + mismatch.axis;
                    prop_assert_eq!(explanation.sizes()[failing], None);
                    prop_assert_eq!(cells[mismatch.operand][failing], Cell::Failing(mismatch.right));
                    let against = Cell::Failing(mismatch.left);
                    prop_assert!(cells[..mismatch.operand].iter().any(|cells| cells[failing] == against));
                }
            }
        }

        #[test]
        fn every_row_of_text_is_as_wide_as_the_result(sizes in vec(vec(1usize..2000, 0..6), 1..4)) {
            let shapes: Vec<Shape> = sizes.into_iter().map(Shape::from).collect();
            let shapes: Vec<&Shape> = shapes.iter().collect();
            let text = explain(&shapes).to_string();
            let ends: Vec<usize> = text.lines().filter(|line| line.ends_with(']')).map(str::len).collect();
            prop_assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{}", text);
        }
    }
}
