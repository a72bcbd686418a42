//! The list of the cases that the design excludes, with reasons. All other cases run, or count as not built. A call can still meet mixed
//! element types; then its case is excluded too.

use std::fmt;

use wengert_tensor::DType;

use super::format::{Case, Literal, ShapeCase};

/// The reason why a case is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The case mixes element types, or needs an element type that an operation does not support.
    MixedTypes,
    /// In the case, a write through one name is visible through another.
    SharedMemory,
    /// In the case, a leaf is written in place.
    Leaf,
    /// In the case, a value that was saved for the backward pass is overwritten.
    Saved,
    /// In the case, the first backward pass frees saved values.
    Freed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::MixedTypes => "mixed element types do not compile without a conversion",
            Reason::SharedMemory => "writes through shared memory: tensors copy on write",
            Reason::Leaf => "a leaf is written in place: the name denotes the result and the leaf does not change",
            Reason::Saved => "a saved value is overwritten: shared values are never written to",
            Reason::Freed => "backward frees saved values: a tape may be differentiated again",
        })
    }
}

/// Returns the reason why the design excludes `case`, or `None` if the case is run.
pub fn ruled_out(case: &Case) -> Option<Reason> {
    let category = case.error.as_ref().map_or("", |error| error.category.as_str());
    if case.group == "promotion" || matches!(category, "dtype" | "dtype_cast") || mixes_floats(case) {
        return Some(Reason::MixedTypes);
    }
    match category {
        "inplace_leaf" => return Some(Reason::Leaf),
        "inplace_view" => return Some(Reason::SharedMemory),
        "version" => return Some(Reason::Saved),
        "graph_freed" => return Some(Reason::Freed),
        _ => {}
    }
    let program = matches!(case.op.as_str(), "program.write_through_view" | "program.write_to_base");
    (program || case.base_after || sees_a_write(case)).then_some(Reason::SharedMemory)
}

/// Returns the reason why the design excludes a shape case, or `None` if the case is run. Only functions of element
/// types are excluded.
pub fn ruled_out_shape(case: &ShapeCase) -> Option<Reason> {
    matches!(case.function.as_str(), "result_type" | "can_cast").then_some(Reason::MixedTypes)
}

/// Returns true if the inputs of the case have both floating-point types.
fn mixes_floats(case: &Case) -> bool {
    let has = |dtype| case.inputs.iter().any(|input| input.window.dtype == dtype);
    has(DType::F32) && has(DType::F64)
}

/// The operations that return views of the buffer of their first argument.
const VIEWS: &[&str] = &[
    "broadcast_to",
    "chunk",
    "detach",
    "diagonal",
    "expand",
    "expand_as",
    "flatten",
    "movedim",
    "narrow",
    "permute",
    "reshape",
    "select",
    "slice",
    "split",
    "squeeze",
    "t",
    "tensor_split",
    "transpose",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "view",
];

/// Returns true if a name is read after a write to another name of the same memory.
fn sees_a_write(case: &Case) -> bool {
    // For each name: the index of its tensor, and the index of that tensor's buffer.
    let mut names: Vec<(&str, usize, usize)> = Vec::new();
    for (position, input) in case.inputs.iter().enumerate() {
        names.push((&input.name, position, position));
    }
    let mut stale: Vec<usize> = Vec::new();
    let mut next = names.len();
    let find = |names: &[(&str, usize, usize)], name: &str| {
        names.iter().rev().find(|(known_name, ..)| *known_name == name).map(|&(_, tensor, buffer)| (tensor, buffer))
    };
    for step in &case.steps {
        let arguments = step.args.iter().chain(step.kwargs.iter().map(|(_, value)| value));
        let mut read = arguments.flat_map(Literal::names).filter_map(|name| find(&names, name));
        if read.any(|(tensor, _)| stale.contains(&tensor)) {
            return true;
        }
        let first = step.args.first().and_then(|first| first.names().first().copied());
        let first = first.and_then(|name| find(&names, name));
        for out in &step.out {
            let new_buffer = (next, next);
            let (tensor, buffer) = match first {
                Some((tensor, buffer)) if step.op.ends_with('_') => {
                    let sharing =
                        names.iter().filter(|&&(_, other, known_buffer)| known_buffer == buffer && other != tensor);
                    stale.extend(sharing.map(|&(_, other, _)| other));
                    (tensor, buffer)
                }
                Some((_, buffer)) if VIEWS.contains(&step.op.as_str()) => (next, buffer),
                _ => new_buffer,
            };
            names.push((out, tensor, buffer));
            next += 1;
        }
    }
    let mut outputs = case.outputs.iter().filter_map(|output| find(&names, &output.name));
    outputs.any(|(tensor, _)| stale.contains(&tensor))
}
