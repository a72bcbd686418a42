//! Hints of error messages. A hint proposes a small change of the code, mostly of one operand. A hint is given only if the shapes fit after
//! the change.

use crate::Shape;
use crate::shape::broadcast;
use crate::shape::broadcast::Mismatch;

/// Returns the hint, if there is one, for two operands `a` and `b` that do not broadcast. The hint proposes to change `b`. If
/// `a_may_change` is true, the hint may propose to change `a` instead.
pub(crate) fn broadcast(mismatch: &Mismatch, a_may_change: bool) -> Option<String> {
    let (a, b) = (&mismatch.merged, &mismatch.shape);
    append_ones(a, "a", b, "b")
        .or_else(|| if a_may_change { append_ones(b, "b", a, "a") } else { None })
        .or_else(|| permute(a, b))
        .or_else(|| reshape(a, b))
}

/// Returns the hint for an in-place operation on `output` whose result has another shape than `output`. Returns `None` for `copy_`, and for
/// names that do not end in an underscore.
pub(crate) fn in_place(output: &Shape, result: &Shape, other: &Shape, operation: &str) -> Option<String> {
    let operation = operation.strip_suffix('_')?;
    if operation == "copy" {
        return None;
    }
    if output.checked_numel() == other.checked_numel() {
        let view = view_as(other, "b", output);
        return Some(format!("to pair them element by element: {view}"));
    }
    let expression = match operation {
        "add" => "a + b".to_owned(),
        "sub" => "a - b".to_owned(),
        "mul" => "a * b".to_owned(),
        "div" => "a / b".to_owned(),
        "remainder" => "a % b".to_owned(),
        method => format!("a.{method}(&b)"),
    };
    let mut hint = format!("in place, a keeps its shape; `a = {expression}` gives {result}");
    let commutes = matches!(operation, "add" | "mul" | "hypot" | "bitwise_and" | "bitwise_or" | "bitwise_xor");
    if commutes && other == result {
        hint.push_str(&format!(", and b.{operation}_(&a) has room for it"));
    }
    Some(hint)
}

/// Returns the hint, if there is one, for a tensor that does not expand to `target`.
pub(crate) fn expand(shape: &Shape, target: &Shape) -> Option<String> {
    append_ones(target, "the target", shape, "tensor")
}

/// Returns the hint for two operands with the same number of elements. Either their broadcast may be a mistake, or they do not broadcast.
/// If `in_place` is true, the hint does not propose a view of the first operand.
pub(crate) fn pairing(a: &Shape, b: &Shape, in_place: bool) -> String {
    let mut hint = format!("to pair them element by element: {}", view_as(b, "other", a));
    if !in_place && (extra_one(a, b).is_some() || extra_one(b, a).is_some()) {
        hint.push_str(&format!(", or {}", view_as(a, "self", b)));
    }
    match broadcast::join(&[a, b]) {
        Ok(joined) if !in_place || &joined == a => {
            // Only one operand needs the expansion: an operand whose shape is not the joint shape.
            let name = if b == &joined { "self" } else { "other" };
            hint.push_str(&format!("; to mean {joined}: {name}.expand({joined})"));
        }
        _ => {}
    }
    hint
}

/// Returns Rust code that views the tensor `name` of shape `from` in shape `to`, which has the same number of elements.
fn view_as(from: &Shape, name: &str, to: &Shape) -> String {
    if let Some(axis) = extra_one(to, from) {
        return format!("{name}.unsqueeze({axis})");
    }
    match extra_one(from, to) {
        Some(axis) => format!("{name}.squeeze({axis})"),
        None => format!("{name}.reshape({to})"),
    }
}

/// Returns the dimension of size 1 whose removal from `large` gives `small`, or `None` if there is none. If there are several, returns the
/// last of these dimensions.
fn extra_one(large: &Shape, small: &Shape) -> Option<usize> {
    if large.rank() != small.rank() + 1 {
        return None;
    }
    (0..large.rank())
        .rev()
        .find(|&axis| large[axis] == 1 && large[..axis] == small[..axis] && large[axis + 1..] == small[axis..])
}

/// Proposes to append dimensions of size 1 to `small`, so that its sizes align with equal sizes of `large`. Example: a bias for each
/// channel of an image. Returns `None` if `small` does not expand to `large` in this way.
fn append_ones(large: &Shape, large_name: &str, small: &Shape, name: &str) -> Option<String> {
    for added in 1..=large.rank().saturating_sub(small.rank()) {
        let candidate: Shape = small.iter().copied().chain(std::iter::repeat_n(1, added)).collect();
        if broadcast::expands(&candidate, large) {
            let first = large.rank() - candidate.rank();
            let times = match added {
                1 => String::new(),
                2 => " twice".to_owned(),
                _ => format!(" {added} times"),
            };
            let dimensions = match small.rank() {
                1 => format!("dimension {first}"),
                rank => format!("dimensions {first} to {}", first + rank - 1),
            };
            return Some(format!(
                "{name}.reshape({candidate}), or unsqueeze(-1){times}, lines {name} up with {dimensions} of {large_name}"
            ));
        }
    }
    None
}

/// Proposes the order of `b`'s dimensions that gives the shape of `a`, if there is exactly one such order.
fn permute(a: &Shape, b: &Shape) -> Option<String> {
    let mut sizes = a.to_vec();
    sizes.sort_unstable();
    // If two sizes are equal, several orders of the dimensions may give the shape of `a`, so there is no hint.
    if a.rank() != b.rank() || sizes.windows(2).any(|pair| pair[0] == pair[1]) {
        return None;
    }
    let order: Vec<usize> = a.iter().map(|size| b.iter().position(|other| other == size)).collect::<Option<_>>()?;
    let moved: Vec<usize> = (0..order.len()).filter(|&axis| order[axis] != axis).collect();
    Some(match (order.len(), moved.as_slice()) {
        (2, _) => "b.t() has the shape of a".to_owned(),
        (_, [first, second]) => format!("b.transpose({first}, {second}) has the shape of a"),
        _ => format!("b.permute({order:?}) has the shape of a"),
    })
}

/// Proposes a reshape of `b` to the shape of `a`, which gives the result of PyTorch before it had broadcasting. Proposes nothing if both
/// have the same sizes, apart from 1, in different orders, since a reshape would mix dimensions. Proposes nothing for empty tensors either.
fn reshape(a: &Shape, b: &Shape) -> Option<String> {
    let sorted = |shape: &Shape| {
        let mut sizes: Vec<usize> = shape.iter().copied().filter(|&size| size != 1).collect();
        sizes.sort_unstable();
        sizes
    };
    let count = a.checked_numel().filter(|&count| count > 0)?;
    (b.checked_numel() == Some(count) && sorted(a) != sorted(b))
        .then(|| format!("both have {count} elements; to pair them in row-major order: b.reshape({a})"))
}
