//! The one list of what the design rules out, each with its reason. Everything else runs, or is counted as not built.

use std::fmt;

use wengert_tensor::DType;

use super::format::{Case, Literal, ShapeCase};

/// Why a case is not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Element types that mix, or that an operation does not have.
    MixedTypes,
    /// A write that another name sees.
    SharedMemory,
    /// A leaf written in place.
    Leaf,
    /// A value saved for the backward pass overwritten.
    Saved,
    /// Saved values freed by the first backward pass.
    Freed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::MixedTypes => "mixed element types do not compile: a conversion is written out",
            Reason::SharedMemory => "writes through shared memory: tensors copy on write",
            Reason::Leaf => "a leaf written in place: the name stands for the result, the leaf stays as it is",
            Reason::Saved => "a saved value overwritten: no value that something else holds is ever written to",
            Reason::Freed => "saved values freed by backward: a tape may be differentiated again",
        })
    }
}

/// Why `case` is ruled out, if it is.
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

/// Why a shape case is ruled out, if it is: the questions about element types.
pub fn ruled_out_shape(case: &ShapeCase) -> Option<Reason> {
    matches!(case.function.as_str(), "result_type" | "can_cast").then_some(Reason::MixedTypes)
}

/// Whether both floating-point types occur.
fn mixes_floats(case: &Case) -> bool {
    let has = |dtype| case.inputs.iter().any(|input| input.window.dtype == dtype);
    has(DType::F32) && has(DType::F64)
}

/// Operations that give views of their first argument's buffer.
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

/// Whether a name is read after another name of the same memory was written to.
fn sees_a_write(case: &Case) -> bool {
    // For each name: which tensor it stands for, and in which buffer that lies.
    let mut names: Vec<(&str, usize, usize)> = Vec::new();
    for (position, input) in case.inputs.iter().enumerate() {
        names.push((&input.name, position, position));
    }
    let mut stale: Vec<usize> = Vec::new();
    let mut next = names.len();
    let find = |names: &[(&str, usize, usize)], name: &str| {
        names.iter().rev().find(|(own, ..)| *own == name).map(|&(_, tensor, buffer)| (tensor, buffer))
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
            let fresh = (next, next);
            let (tensor, buffer) = match first {
                Some((tensor, buffer)) if step.op.ends_with('_') => {
                    let sharing = names.iter().filter(|&&(_, other, own)| own == buffer && other != tensor);
                    stale.extend(sharing.map(|&(_, other, _)| other));
                    (tensor, buffer)
                }
                Some((_, buffer)) if VIEWS.contains(&step.op.as_str()) => (next, buffer),
                _ => fresh,
            };
            names.push((out, tensor, buffer));
            next += 1;
        }
    }
    let mut outputs = case.outputs.iter().filter_map(|output| find(&names, &output.name));
    outputs.any(|(tensor, _)| stale.contains(&tensor))
}
