//! How errors are shown: the sentence, the line of code, the shapes aligned with the failing dimension marked, a hint.
//!
//! ```text
//! The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 1
//!   --> examples/bias_add.rs:31:18, in add
//!    a: [5, 2, 4, 1]
//!    b:    [3, 1, 1]
//!           ^ 2 against 3
//! ```

use std::fmt::{Display, Write};

use crate::broadcast::Mismatch;
use crate::error::{ExpandMismatch, Site};
use crate::{DType, Shape};

/// The sentence and the line that asked.
pub(crate) fn with_site(sentence: impl Display, at: &Site) -> String {
    format!("{sentence}\n  --> {}, in {}", at.location, at.operation)
}

pub(crate) fn broadcast(mismatch: &Mismatch, at: &Site) -> String {
    let Mismatch { merged, shape, axis, left, right, .. } = mismatch;
    let mut text = with_site(
        format_args!(
            "The size of tensor a ({left}) must match the size of tensor b ({right}) at non-singleton dimension {axis}"
        ),
        at,
    );
    text.push_str(&aligned(merged, shape, *axis, *left, *right));
    if let Some(hint) = hint(mismatch) {
        let _ = write!(text, "\n  hint: {hint}");
    }
    text
}

pub(crate) fn broadcast_shapes(mismatch: &Mismatch, at: &Site) -> String {
    let Mismatch { merged, shape, operand, axis, left, right } = mismatch;
    let rank = merged.rank().max(shape.rank());
    let from_end = rank - axis;
    let mut tuple: String = shape.iter().map(|size| format!("{size}, ")).collect();
    if shape.rank() > 1 {
        tuple.truncate(tuple.len() - 2);
    } else {
        tuple.truncate(tuple.len() - 1);
    }
    let mut text = with_site(
        format_args!(
            "Attempting to broadcast a dimension of length {right} at -{from_end}! Mismatching argument at index {operand} had \
             ({tuple}); but expected shape should be broadcastable to {merged}"
        ),
        at,
    );
    text.push_str(&aligned(merged, shape, *axis, *left, *right));
    text
}

pub(crate) fn in_place(output: &Shape, broadcast: &Shape, at: &Site) -> String {
    with_site(format_args!("output with shape {output} doesn't match the broadcast shape {broadcast}"), at)
}

pub(crate) fn expand(mismatch: &ExpandMismatch, at: &Site) -> String {
    let ExpandMismatch { shape, target, .. } = mismatch;
    let target = sizes_text(target);
    with_site(format_args!("{mismatch}  Target sizes: {target}.  Tensor sizes: {shape}"), at)
}

pub(crate) fn expand_sizes(dtype: &DType, shape: &Shape, sizes: &[isize], at: &Site) -> String {
    let class = dtype.torch_class();
    let target = sizes_text(sizes);
    if sizes.len() < shape.rank() {
        return with_site(
            format_args!(
                "expand({class}{{{shape}}}, size={target}): the number of sizes provided ({}) must be greater or equal to \
                 the number of dimensions in the tensor ({})",
                sizes.len(),
                shape.rank()
            ),
            at,
        );
    }
    let lead = sizes.len() - shape.rank();
    match sizes[..lead].iter().rposition(|&size| size == -1) {
        Some(axis) => with_site(
            format_args!(
                "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {axis}"
            ),
            at,
        ),
        // PyTorch's sentence is about what comes of it.
        None => {
            let mut text = with_site("numel: integer multiplication overflow", at);
            let _ = write!(text, "\n  a size must not be negative, but the sizes are {target}");
            text
        }
    }
}

pub(crate) fn zero_dim(operand: usize, at: &Site) -> String {
    let name = operand_name(operand);
    with_site(
        format_args!(
            "tensor {name} has no dimension, and the strict rule wants each tensor to have at least one; \
             reshape it to [1], or use compat::Rules::default()"
        ),
        at,
    )
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
    let bytes = shape.numel() as f64 * f64::from(dtype_size(dtype));
    with_site(
        format_args!("memory cannot hold a tensor of shape {shape} of {dtype} ({:.1} GiB)", bytes / f64::from(1 << 30)),
        at,
    )
}

fn dtype_size(dtype: DType) -> u32 {
    match dtype {
        DType::F32 => 4,
        DType::F64 | DType::I64 => 8,
        DType::U8 | DType::Bool => 1,
    }
}

fn operand_name(position: usize) -> char {
    char::from(b'a' + (position % 26) as u8)
}

pub(crate) fn sizes_text(sizes: &[isize]) -> String {
    let list: Vec<String> = sizes.iter().map(isize::to_string).collect();
    format!("[{}]", list.join(", "))
}

/// Two shapes under one another, aligned at the right, dimension `axis` of the result marked.
fn aligned(left: &Shape, right: &Shape, axis: usize, left_size: usize, right_size: usize) -> String {
    let rank = left.rank().max(right.rank());
    let width = |axis: usize| {
        let own = |shape: &Shape| match (axis + shape.rank()).checked_sub(rank) {
            Some(own) => shape[own].to_string().len(),
            None => 0,
        };
        own(left).max(own(right))
    };
    let row = |shape: &Shape| {
        let lead = rank - shape.rank();
        let mut text = String::new();
        for axis in 0..rank {
            let size = if axis < lead { String::new() } else { shape[axis - lead].to_string() };
            let opening = if axis == lead { "[" } else { " " };
            let closing = if axis + 1 == rank {
                "]"
            } else if axis < lead {
                " "
            } else {
                ","
            };
            let _ = write!(text, "{opening}{size:>width$}{closing}", width = width(axis));
        }
        if rank == 0 || lead == rank { "[]".to_owned() } else { text }
    };
    let before: usize = (0..axis).map(|axis| width(axis) + 2).sum();
    let column = before + width(axis);
    format!(
        "\n   a: {}\n   b: {}\n      {:>column$} {left_size} against {right_size}",
        row(left),
        row(right),
        "^",
        column = column + 1
    )
}

/// What the person may have meant, where one small change makes the shapes meet.
fn hint(mismatch: &Mismatch) -> Option<String> {
    let Mismatch { merged, shape, .. } = mismatch;
    unsqueezed(merged, shape, 'b').or_else(|| unsqueezed(shape, merged, 'a'))
}

/// Dimensions of size 1 appended to `small` so that it meets `large` with its sizes along a dimension of the same size.
fn unsqueezed(large: &Shape, small: &Shape, name: char) -> Option<String> {
    for trailing in 1..=large.rank().saturating_sub(small.rank()) {
        let mut candidate = small.clone();
        for _ in 0..trailing {
            candidate.push(1);
        }
        let lead = large.rank() - candidate.rank();
        let along = (0..small.rank()).all(|axis| small[axis] == 1 || small[axis] == large[lead + axis]);
        if along {
            return Some(format!(
                "`{name}` lines up with dimension {lead} as {candidate}: {name}.reshape({candidate})"
            ));
        }
    }
    None
}
