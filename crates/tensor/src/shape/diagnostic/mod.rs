//! The text of errors: the error message (called the sentence), the line of code, the aligned shapes with a mark at the failing dimension,
//! and a hint.
//!
//! ```text
//! The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1
//!   --> examples/bias_add.rs:31:18, in add
//!    a: [5, 2, 4, 1]
//!    b:    [3, 1, 1]
//!           ^ 2 against 3
//! ```
//!
//! This module only formats the data of errors. The module shows the shapes only if an error has the shapes of operands. Its own hints
//! propose only changes that are certain to work.

mod columns;
mod hint;

use std::fmt::Display;

pub(crate) use columns::Columns;

use crate::shape::broadcast::{ExpandMismatch, Mismatch, size_at};
use crate::shape::site::Site;
use crate::{DType, Shape};

/// Returns the error message, followed by the line of code that called the operation.
pub(crate) fn with_site(sentence: impl Display, at: &Site) -> String {
    format!("{sentence}\n  {at}")
}

/// Splits `message` at its first line break. Returns the first line, the line of code, and the rest of `message`, if there is one, as a
/// hint.
pub(crate) fn with_hint(message: &str, at: &Site) -> String {
    match message.split_once('\n') {
        None => with_site(message, at),
        Some((sentence, hint)) => with_site(sentence, at) + &hint_line(Some(hint.to_owned())),
    }
}

pub(crate) fn broadcast(mismatch: &Mismatch, at: &Site) -> String {
    let Mismatch { axis, left, right, .. } = mismatch;
    let sentence = format!(
        "The size of tensor a ({left}) must match the size of tensor b ({right}) at non-singleton dimension {axis}"
    );
    // If the second operand fails, the hint may propose to change the first operand, which the message calls a. The hint does not propose
    // to change an operand that is written in place, because a view of that operand cannot make it larger.
    let a_may_change = mismatch.operand == 1 && !is_in_place(at);
    with_site(sentence, at) + &mismatch_lines(mismatch) + &hint_line(hint::broadcast(mismatch, a_may_change))
}

pub(crate) fn broadcast_shapes(mismatch: &Mismatch, at: &Site) -> String {
    let Mismatch { merged, shape, operand, axis, right, .. } = mismatch;
    let from_end = merged.rank().max(shape.rank()) - axis;
    // PyTorch compares sizes from the last dimension to the first. When it finds the failing dimension, it has already joined the
    // dimensions after it.
    let mut joined = merged.clone();
    for after in axis + 1..merged.rank() {
        let size = size_at(shape, merged.rank(), after);
        if size != 1 {
            joined[after] = size;
        }
    }
    // Writes the shape as Python writes a tuple: `(2, 3)`, `(3,)`.
    let mut tuple: String = shape.iter().map(|size| format!("{size}, ")).collect();
    tuple.truncate(tuple.len() - if shape.rank() > 1 { 2 } else { 1 });
    let sentence = format!(
        "Attempting to broadcast a dimension of length {right} at -{from_end}! Mismatching argument at index {operand} \
         had ({tuple}); but expected shape should be broadcastable to {joined}"
    );
    with_site(sentence, at) + &mismatch_lines(mismatch)
}

/// Returns the two shapes of a mismatch as text. If an operand after the first two fails, a note says which operands the shapes belong to.
fn mismatch_lines(mismatch: &Mismatch) -> String {
    let Mismatch { merged, shape, operand, axis, left, right } = mismatch;
    let mut text = align(&[("a", merged), ("b", shape)], Some((*axis, *left, *right)));
    if *operand > 1 {
        text.push_str(&format!(
            "\n  note: a is the joint shape of operands 0 to {}, b is operand {operand}",
            operand - 1
        ));
    }
    text
}

pub(crate) fn in_place(output: &Shape, result: &Shape, other: &Shape, at: &Site) -> String {
    let sentence = format!("output with shape {output} doesn't match the broadcast shape {result}");
    let failing = result.rank().checked_sub(1).and_then(|last| {
        let sizes = |axis| (size_at(output, last + 1, axis), size_at(other, last + 1, axis));
        let axis = (0..=last).rev().find(|&axis| sizes(axis).0 != result[axis])?;
        Some((axis, sizes(axis).0, sizes(axis).1))
    });
    with_site(sentence, at)
        + &align(&[("a", output), ("b", other)], failing)
        + &hint_line(hint::in_place(output, result, other, at.operation))
}

pub(crate) fn expand(mismatch: &ExpandMismatch, at: &Site) -> String {
    let ExpandMismatch { shape, target, axis, expected, existing } = mismatch;
    let text = with_site(format_args!("{mismatch}  Target sizes: {}.  Tensor sizes: {shape}", sizes_text(target)), at);
    // A requested shape that contains -1 cannot be aligned with the tensor's shape.
    match target.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<Shape>>() {
        None => text,
        Some(target) => {
            text + &align(&[("tensor", shape), ("target", &target)], Some((*axis, *existing, *expected as usize)))
                + &hint_line(hint::expand(shape, &target))
        }
    }
}

pub(crate) fn denied(message: &str, shapes: &(Shape, Shape), at: &Site) -> String {
    let (a, b) = shapes;
    with_site(message, at) + &align(&[("self", a), ("other", b)], None) + &hint_line(Some(pairing_hint(shapes, at)))
}

/// Returns the hint for two operands that have the same number of elements and whose broadcast may be a mistake.
pub(crate) fn pairing_hint(shapes: &(Shape, Shape), at: &Site) -> String {
    hint::pairing(&shapes.0, &shapes.1, is_in_place(at))
}

/// Returns true if the operation writes to its first operand. As in PyTorch, the name of an operation in place ends in an underscore.
fn is_in_place(at: &Site) -> bool {
    at.operation.ends_with('_')
}

pub(crate) fn expand_sizes(dtype: &DType, shape: &Shape, sizes: &[isize], at: &Site) -> String {
    let class = dtype.torch_class();
    let target = sizes_text(sizes);
    if sizes.len() < shape.rank() {
        return with_site(
            format_args!(
                "expand({class}{{{shape}}}, size={target}): the number of sizes provided ({}) must be greater or equal \
                 to the number of dimensions in the tensor ({})",
                sizes.len(),
                shape.rank()
            ),
            at,
        );
    }
    let lead = sizes.len() - shape.rank();
    match sizes[..lead].iter().rposition(|&size| size == -1) {
        // PyTorch does not check the sizes when it expands a tensor without dimensions.
        Some(axis) if shape.rank() > 0 => with_site(
            format_args!(
                "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {axis}"
            ),
            at,
        ),
        // PyTorch interprets a negative size as a large number, so its error message tells of an overflow.
        _ => {
            let negative = sizes.iter().any(|&size| size < 0);
            let reason = if negative { "a size must not be negative, but" } else { "too many elements to be counted:" };
            with_site("numel: integer multiplication overflow", at) + &format!("\n  {reason} the sizes are {target}")
        }
    }
}

pub(crate) fn zero_dim(operand: usize, shapes: &[Shape], at: &Site) -> String {
    let names: Vec<String> = (0..shapes.len()).map(operand_name).collect();
    let rows: Vec<(&str, &Shape)> = names.iter().map(String::as_str).zip(shapes).collect();
    let name = operand_name(operand);
    let sentence = format!("tensor {name} has no dimension, and under the strict rule each tensor has at least one");
    let hint = format!(
        "{name}.reshape([1]) has one; under compat::Rules::default() a tensor without a dimension acts as a number"
    );
    with_site(sentence, at) + &align(&rows, None) + &hint_line(Some(hint))
}

pub(crate) fn dim_range(dim: isize, rank: usize, at: &Site) -> String {
    let rank = rank.max(1) as isize;
    with_site(
        format_args!("Dimension out of range (expected to be in range of [{}, {}], but got {dim})", -rank, rank - 1),
        at,
    )
}

pub(crate) fn overlap(internal: bool, at: &Site) -> String {
    let sentence = if internal {
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location. \
         Please clone() the tensor before performing the operation."
    } else {
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory \
         location. Please clone() the tensor before performing the operation."
    };
    with_site(sentence, at)
}

pub(crate) fn too_large(shape: &Shape, dtype: DType, at: &Site) -> String {
    with_site(format_args!("a tensor of shape {shape} of {dtype} has more elements than can be addressed"), at)
}

pub(crate) fn out_of_memory(shape: &Shape, dtype: DType, at: &Site) -> String {
    let bytes = shape.numel() as f64 * dtype.size() as f64;
    with_site(
        format_args!("memory cannot hold a tensor of shape {shape} of {dtype} ({:.1} GiB)", bytes / f64::from(1 << 30)),
        at,
    )
}

/// Returns the name that messages give to the operand at `position`: `a` to `z`, then `a1` and so on.
pub(crate) fn operand_name(position: usize) -> String {
    let letter = char::from(b'a' + (position % 26) as u8);
    match position / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

pub(crate) fn sizes_text(sizes: &[isize]) -> String {
    let list: Vec<String> = sizes.iter().map(isize::to_string).collect();
    format!("[{}]", list.join(", "))
}

fn hint_line(hint: Option<String>) -> String {
    hint.map_or_else(String::new, |hint| format!("\n  hint: {hint}"))
}

/// Returns the text of the shapes, one per line. `failing` is a dimension of the longest shape, and the two sizes that disagree there. If
/// it is not `None`, the last line of the text marks this dimension and shows the sizes.
fn align(shapes: &[(&str, &Shape)], failing: Option<(usize, usize, usize)>) -> String {
    let columns = Columns::new(&shapes.iter().map(|&(_, shape)| shape).collect::<Vec<_>>());
    let width = shapes.iter().map(|(name, _)| name.len() + 1).max().unwrap_or(0);
    let mut text = String::new();
    for (name, shape) in shapes {
        text.push_str(&format!("\n   {:width$} {}", format!("{name}:"), columns.row(shape)));
    }
    if let Some((failing, left, right)) = failing {
        let marks = columns.marks(|axis| (axis == failing).then_some('^'));
        text.push_str(&format!("\n   {:width$} {marks} {left} against {right}", ""));
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::shape::compat;
    use crate::{Error, ops};

    /// Returns the whole text of `error`, with the line of code replaced by `<here>`.
    fn text(error: &Error) -> String {
        let at = error.site().location;
        assert!(at.file().ends_with("mod.rs"), "{at}");
        error.to_string().replace(&at.to_string(), "<here>")
    }

    fn ones(shape: &[usize]) -> Tensor<f32> {
        Tensor::ones(shape)
    }

    fn add(a: &[usize], b: &[usize]) -> String {
        text(&ones(a).try_add(ones(b)).unwrap_err())
    }

    fn add_in_place(a: &[usize], b: &[usize]) -> String {
        text(&ones(a).try_add_(ones(b)).unwrap_err())
    }

    /// Returns the last line of an error's text if that line is a hint.
    fn hint(text: &str) -> Option<&str> {
        text.lines().last()?.strip_prefix("  hint: ")
    }

    #[test]
    fn shapes_that_do_not_broadcast() {
        assert_eq!(
            add(&[5, 2, 4, 1], &[3, 1, 1]),
            "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1
  --> <here>, in add
   a: [5, 2, 4, 1]
   b:    [3, 1, 1]
          ^ 2 against 3"
        );
        assert_eq!(
            add(&[100, 32, 1, 14], &[5, 14, 14]),
            "The size of tensor a (32) must match the size of tensor b (5) at non-singleton dimension 1
  --> <here>, in add
   a: [100, 32,  1, 14]
   b:       [5, 14, 14]
            ^^ 32 against 5"
        );
        assert_eq!(
            add(&[32], &[4, 32, 14, 14]),
            "The size of tensor a (32) must match the size of tensor b (14) at non-singleton dimension 3
  --> <here>, in add
   a:            [32]
   b: [4, 32, 14, 14]
                  ^^ 32 against 14
  hint: a.reshape([32, 1, 1]), or unsqueeze(-1) twice, lines a up with dimension 1 of b"
        );
    }

    #[test]
    fn hints_where_one_change_makes_the_shapes_broadcast() {
        type Row = (&'static [usize], &'static [usize], Option<&'static str>);
        let table: &[Row] = &[
            (
                &[4, 32, 14, 14],
                &[32],
                Some("b.reshape([32, 1, 1]), or unsqueeze(-1) twice, lines b up with dimension 1 of a"),
            ),
            (&[128, 10], &[128], Some("b.reshape([128, 1]), or unsqueeze(-1), lines b up with dimension 0 of a")),
            (
                &[2, 3, 4],
                &[2, 3],
                Some("b.reshape([2, 3, 1]), or unsqueeze(-1), lines b up with dimensions 0 to 1 of a"),
            ),
            (&[3, 4], &[4, 3], Some("b.t() has the shape of a")),
            (&[3, 4, 5], &[5, 4, 3], Some("b.transpose(0, 2) has the shape of a")),
            (&[2, 3, 4], &[3, 4, 2], Some("b.permute([2, 0, 1]) has the shape of a")),
            // No hint: several orders of the dimensions give the shape of a.
            (&[8, 28, 28, 3], &[8, 3, 28, 28], None),
            (&[4, 2], &[8], Some("both have 8 elements; to pair them in row-major order: b.reshape([4, 2])")),
            (&[4, 32, 14, 14], &[2, 32, 14, 14], None),
            (&[0], &[2, 2], None),
        ];
        for &(a, b, expected) in table {
            assert_eq!(hint(&add(a, b)), expected, "{a:?} {b:?}");
        }
    }

    #[test]
    fn proposed_changes_make_the_shapes_broadcast() {
        let (a, b) = (ones(&[2, 3, 4]), ones(&[3, 4, 2]));
        assert!(a.try_add(b.permute([2, 0, 1])).is_ok());
        assert!(ones(&[4, 32, 14, 14]).try_add(ones(&[32]).unsqueeze(-1).unsqueeze(-1)).is_ok());
        assert!(ones(&[3, 4, 5]).try_add(ones(&[5, 4, 3]).transpose(0, 2)).is_ok());
    }

    #[test]
    fn results_that_do_not_fit_in_place() {
        assert_eq!(
            add_in_place(&[1, 3, 1], &[3, 1, 7]),
            "output with shape [1, 3, 1] doesn't match the broadcast shape [3, 3, 7]
  --> <here>, in add_
   a: [1, 3, 1]
   b: [3, 1, 7]
             ^ 1 against 7
  hint: in place, a keeps its shape; `a = a + b` gives [3, 3, 7]"
        );
        let swapped = "in place, a keeps its shape; `a = a + b` gives [4, 3], and b.add_(&a) has room for it";
        assert_eq!(hint(&add_in_place(&[3], &[4, 3])), Some(swapped));
        assert_eq!(hint(&add_in_place(&[4, 1], &[4])), Some("to pair them element by element: b.unsqueeze(1)"));
        assert_eq!(hint(&add_in_place(&[3], &[1, 3])), Some("to pair them element by element: b.squeeze(0)"));
        // There is no hint: the result has more elements than `a`, so no view of `a` can hold it.
        assert_eq!(hint(&add_in_place(&[32], &[4, 32, 14, 14])), None);
        let error = ones(&[3]).try_atan2_(ones(&[4, 3])).unwrap_err();
        let other_name = "in place, a keeps its shape; `a = a.atan2(&b)` gives [4, 3]";
        assert_eq!(hint(&text(&error)), Some(other_name));
    }

    #[test]
    fn a_right_side_with_more_dimensions_does_not_expand_to_the_left() {
        let error = ones(&[3]).try_add_(ones(&[4, 3])).unwrap_err();
        assert_eq!(
            std::error::Error::source(&error).unwrap().to_string(),
            "the number of sizes provided (1) must be greater or equal to the number of dimensions in the tensor (2)"
        );
    }

    #[test]
    fn tensors_that_do_not_expand() {
        assert_eq!(
            text(&ones(&[32]).try_expand([4, 32, 14, 14]).unwrap_err()),
            "The expanded size of the tensor (14) must match the existing size (32) at non-singleton dimension 3.  \
             Target sizes: [4, 32, 14, 14].  Tensor sizes: [32]
  --> <here>, in expand
   tensor:            [32]
   target: [4, 32, 14, 14]
                       ^^ 32 against 14
  hint: tensor.reshape([32, 1, 1]), or unsqueeze(-1) twice, lines tensor up with dimension 1 of the target"
        );
    }

    #[test]
    fn broadcast_shapes_shows_the_dimensions_that_pytorch_has_joined() {
        type Row = (&'static [&'static [usize]], (usize, usize), usize, &'static str, &'static str);
        let table: &[Row] = &[
            // The columns: shapes, a pair, the index of the failing shape, its sizes, and the joined shape in PyTorch's message. The pair is
            // the size of the failing dimension in the failing shape, and the position of this dimension, counted from the end. PyTorch
            // joins the last dimensions first, so it has joined the failing shape only after the failing dimension.
            (&[&[4, 5, 1, 1, 2], &[2, 1, 6, 1, 2]], (2, 5), 1, "2, 1, 6, 1, 2", "[4, 5, 6, 1, 2]"),
            (&[&[2], &[3], &[1, 1, 1]], (3, 1), 1, "3,", "[1, 1, 2]"),
            (&[&[2, 1], &[3], &[4, 2]], (2, 1), 2, "4, 2", "[2, 3]"),
            (&[&[5, 1, 7], &[2, 7], &[3, 1, 1], &[2, 3]], (3, 3), 2, "3, 1, 1", "[5, 2, 7]"),
            (&[&[3, 1, 1], &[3, 2, 1], &[4, 1, 7]], (4, 3), 2, "4, 1, 7", "[3, 2, 7]"),
            (&[&[0], &[2, 2]], (2, 1), 1, "2, 2", "[1, 0]"),
            (&[&[2, 1], &[3, 0], &[1, 1, 1]], (3, 2), 1, "3, 0", "[1, 2, 0]"),
            (&[&[2, 2], &[5, 2, 3, 3]], (3, 1), 1, "5, 2, 3, 3", "[1, 1, 2, 2]"),
        ];
        for &(shapes, (length, from_end), argument, sizes, joined) in table {
            let error = ops::try_broadcast_shapes(shapes.iter().copied()).unwrap_err();
            let expected = format!(
                "Attempting to broadcast a dimension of length {length} at -{from_end}! Mismatching argument at index \
                 {argument} had ({sizes}); but expected shape should be broadcastable to {joined}"
            );
            assert_eq!(error.sentence(), expected);
        }
    }

    #[test]
    fn sizes_that_overflow_have_pytorchs_sentences() {
        let huge = 1 << 62;
        let overflow = "numel: integer multiplication overflow";
        let leading = "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0";
        let table: &[(&[usize], &[isize], &str)] = &[
            (&[], &[-1], overflow),
            (&[], &[-1, huge, huge], overflow),
            (&[], &[huge, huge, -1], overflow),
            (&[], &[1, -2], overflow),
            (&[3], &[-1, huge, huge, 3], leading),
            (&[3], &[huge, huge, 3], overflow),
            (&[3], &[huge, 3], overflow),
            (&[3], &[-2, 3], overflow),
            (&[3], &[-1, -2, 3], leading),
            (&[1, 3], &[huge, -1, -1], overflow),
            (&[1, 3], &[-1, -2, 3], leading),
            (&[1], &[1 << 32, 1 << 31], overflow),
        ];
        for &(shape, sizes, expected) in table {
            let error = ones(shape).try_expand(sizes).unwrap_err();
            assert_eq!(error.sentence(), expected, "{shape:?} to {sizes:?}");
        }
        let error = ones(&[3]).try_expand([-1, huge, 5]).unwrap_err();
        assert!(error.sentence().starts_with("The expanded size of the tensor (5) must match the existing size (3)"));
    }

    #[test]
    fn the_failing_operand_of_many_is_named() {
        let error = ops::try_broadcast_tensors(&[ones(&[5, 1]), ones(&[1, 3]), ones(&[4, 3])]).unwrap_err();
        assert_eq!(
            text(&error),
            "The size of tensor a (5) must match the size of tensor b (4) at non-singleton dimension 0
  --> <here>, in broadcast_tensors
   a: [5, 3]
   b: [4, 3]
       ^ 5 against 4
  note: a is the joint shape of operands 0 to 1, b is operand 2"
        );
    }

    #[test]
    fn a_tensor_without_a_dimension_under_the_strict_rule() {
        let _rules = compat::Rules::strict().scope();
        assert_eq!(
            add(&[2, 2], &[]),
            "tensor b has no dimension, and under the strict rule each tensor has at least one
  --> <here>, in add
   a: [2, 2]
   b:     []
  hint: b.reshape([1]) has one; under compat::Rules::default() a tensor without a dimension acts as a number"
        );
    }

    #[test]
    fn a_broadcast_that_is_denied() {
        let _rules = compat::Rules::default().deny().scope();
        let error = ones(&[4, 1]).try_sub(ones(&[4])).unwrap_err();
        let sentence = "self and other do not have the same shape, but are broadcastable, and have the same number of \
                        elements.\nChanging behavior in a backwards incompatible manner to broadcasting rather than \
                        viewing as 1-dimensional.";
        assert_eq!(error.sentence(), sentence);
        let below = "
  --> <here>, in sub
   self:  [4, 1]
   other:    [4]
  hint: to pair them element by element: other.unsqueeze(1), or self.squeeze(1); to mean [4, 4]: other.expand([4, 4])";
        assert_eq!(text(&error), format!("{sentence}{below}"));
        assert_eq!(
            hint(&add(&[4], &[4, 1])),
            Some(
                "to pair them element by element: other.squeeze(1), or self.unsqueeze(1); to mean [4, 4]: \
                 other.expand([4, 4])"
            )
        );
    }
}
