//! Computes the operators, with the attributes and defaults of ONNX's specification.

use wengert_tensor::prelude::*;
use wengert_tensor::{Shape, Tensor};

use super::{Node, Value};

pub fn compute(node: &Node, inputs: &[&Value]) -> Value {
    let x = inputs[0];
    match node.operator.as_str() {
        "Identity" => x.clone(),
        "Cast" => cast(node.integer("to", 0), x),
        "Shape" => {
            let (shape, rank) = (shape(x), shape(x).rank() as i64);
            let (start, end) = (node.integer("start", 0), node.integer("end", rank));
            Value::Integers(Tensor::from_vec(
                shape[start as usize..end as usize].iter().map(|&n| n as i64).collect::<Vec<_>>(),
                [(end - start) as usize],
            ))
        }
        "Reshape" => reshape(node, x, inputs[1].integers()),
        "Expand" => expand(x, inputs[1].integers()),
        "Gather" => gather(node, x, inputs[1].integers()),
        "Add" | "Mul" if matches!(x, Value::Integers(_)) => {
            let (x, y) = (x.integers(), inputs[1].integers());
            Value::Integers(if node.operator == "Add" { x + y } else { x * y })
        }
        "Where" => Value::Floats(where_(inputs[0].truths(), inputs[1].floats(), inputs[2].floats())),
        "And" => Value::Truths(x.truths().logical_and(inputs[1].truths())),
        "Not" => Value::Truths(x.truths().logical_not()),
        "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" | "IsNaN" => test(&node.operator, inputs),
        _ => Value::Floats(numbers(node, x.floats(), inputs)),
    }
}

fn shape(value: &Value) -> Shape {
    match value {
        Value::Floats(x) => x.shape().clone(),
        Value::Integers(x) => x.shape().clone(),
        Value::Truths(x) => x.shape().clone(),
    }
}

fn cast(to: i64, x: &Value) -> Value {
    match (to, x) {
        (9, Value::Floats(x)) => Value::Truths(x.ne(0.0)),
        (1 | 11, Value::Truths(x)) => Value::Floats(x.cast()),
        other => panic!("{other:?}"),
    }
}

fn test(operator: &str, inputs: &[&Value]) -> Value {
    let x = inputs[0].floats();
    let y = || inputs[1].floats();
    Value::Truths(match operator {
        "Equal" => x.eq(y()),
        "Less" => x.lt(y()),
        "LessOrEqual" => x.le(y()),
        "Greater" => x.gt(y()),
        "GreaterOrEqual" => x.ge(y()),
        _ => x.isnan(),
    })
}

fn reshape(node: &Node, x: &Value, sizes: &Tensor<i64>) -> Value {
    let x_shape = shape(x);
    let keeps_zeros = node.integer("allowzero", 0) == 1;
    let sizes = sizes.iter().enumerate().map(|(axis, size)| match size {
        0 if !keeps_zeros => x_shape[axis] as isize,
        size => size as isize,
    });
    let sizes: Vec<isize> = sizes.collect();
    match x {
        Value::Floats(x) => Value::Floats(x.reshape(&sizes[..])),
        Value::Integers(x) => Value::Integers(x.reshape(&sizes[..])),
        Value::Truths(x) => Value::Truths(x.reshape(&sizes[..])),
    }
}

fn expand(x: &Value, sizes: &Tensor<i64>) -> Value {
    let target: Shape = sizes.iter().map(|size| size as usize).collect();
    let joint = wengert_tensor::broadcast::join(&[&shape(x), &target]).unwrap();
    Value::Floats(x.floats().expand(&joint))
}

fn gather(node: &Node, x: &Value, index: &Tensor<i64>) -> Value {
    fn read<E: Element>(x: &Tensor<E>, axis: isize, index: &Tensor<i64>) -> Tensor<E> {
        let rows = x.index_select(axis, &index.contiguous().flatten(0, -1));
        let axis = axis as usize;
        rows.reshape(x.shape().replaced(axis..axis + 1, index.shape()))
    }
    let axis = node.integer("axis", 0) as isize;
    let flat = if index.rank() == 0 { index.reshape([1]).squeeze(0) } else { index.clone() };
    match x {
        Value::Floats(x) => Value::Floats(read(x, axis, &flat)),
        Value::Integers(x) => Value::Integers(read(x, axis, &flat)),
        Value::Truths(x) => Value::Truths(read(x, axis, &flat)),
    }
}

/// Computes an operator whose first input and result are tensors of floating-point numbers. `x` is the first input.
fn numbers(node: &Node, x: &Tensor<f64>, inputs: &[&Value]) -> Tensor<f64> {
    let y = || inputs[1].floats();
    let integers = |position: usize| inputs[position].integers().to_vec();
    match node.operator.as_str() {
        "Neg" => -x,
        "Abs" => x.abs(),
        "Sign" => x.sign(),
        "Reciprocal" => x.reciprocal(),
        "Sqrt" => x.sqrt(),
        "Floor" => x.floor(),
        "Ceil" => x.ceil(),
        "Round" => x.round(),
        "Exp" => x.exp(),
        "Log" => x.log(),
        "Sin" => x.sin(),
        "Cos" => x.cos(),
        "Tan" => x.tan(),
        "Asin" => x.asin(),
        "Acos" => x.acos(),
        "Atan" => x.atan(),
        "Sinh" => x.sinh(),
        "Cosh" => x.cosh(),
        "Tanh" => x.tanh(),
        "Asinh" => x.asinh(),
        "Acosh" => x.acosh(),
        "Atanh" => x.atanh(),
        "Sigmoid" => x.sigmoid(),
        "Relu" => x.relu(),
        "Erf" => x.erf(),
        "Add" => x + y(),
        "Sub" => x - y(),
        "Mul" => x * y(),
        "Div" => x / y(),
        "Pow" => x.pow(y()),
        "Max" => x.maximum(y()),
        "Min" => x.minimum(y()),
        "Mod" => {
            assert_eq!(node.integer("fmod", 0), 1);
            x.fmod(y())
        }
        "Clip" => x.maximum(y()).minimum(inputs[2].floats()),
        "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceL1" | "ReduceL2" => {
            assert_eq!(node.integer("keepdims", 1), 1);
            reduce(&node.operator, x, &integers(1))
        }
        "CumSum" => x.cumsum(inputs[1].integers().item() as isize),
        "Softmax" => x.softmax(node.integer("axis", -1) as isize),
        "LogSoftmax" => x.log_softmax(node.integer("axis", -1) as isize),
        "Transpose" => {
            let order: Vec<isize> = node.integers("perm").unwrap().into_iter().map(|axis| axis as isize).collect();
            x.permute(&order[..])
        }
        "Slice" => slice(x, [1, 2, 3, 4].map(integers)),
        "Pad" => {
            let (pads, rank) = (integers(1), x.rank());
            let sides: Vec<isize> =
                (0..rank).rev().flat_map(|axis| [pads[axis] as isize, pads[rank + axis] as isize]).collect();
            x.pad(&sides, PadMode::Constant(inputs.get(2).map_or(0.0, |value| value.floats().item())))
        }
        "Concat" => {
            let parts: Vec<Tensor<f64>> = inputs.iter().map(|part| part.floats().clone()).collect();
            cat(&parts, node.integer("axis", 0) as isize)
        }
        "MatMul" => x.matmul(y()),
        "ScatterElements" => {
            assert_eq!(x.rank(), 1);
            x.scatter_add(0, inputs[1].integers(), inputs[2].floats())
        }
        "ScatterND" => x.index_add(0, &inputs[1].integers().squeeze(1), inputs[2].floats(), 1.0),
        "Conv" | "ConvTranspose" => convolution(node, x, y()),
        "MaxPool" | "AveragePool" => pooling(node, x),
        other => panic!("the operator {other}"),
    }
}

fn reduce(operator: &str, x: &Tensor<f64>, axes: &[i64]) -> Tensor<f64> {
    let axes: Vec<isize> = axes.iter().map(|&axis| axis as isize).collect();
    let axes = &axes[..];
    match operator {
        "ReduceSum" => x.sum_keepdim(axes),
        "ReduceMean" => x.mean_keepdim(axes),
        "ReduceMax" => x.amax_keepdim(axes),
        "ReduceMin" => x.amin_keepdim(axes),
        "ReduceL1" => x.abs().sum_keepdim(axes),
        _ => x.square().sum_keepdim(axes).sqrt(),
    }
}

fn slice(x: &Tensor<f64>, [starts, ends, axes, steps]: [Vec<i64>; 4]) -> Tensor<f64> {
    let mut x = x.clone();
    for (((start, end), axis), step) in starts.into_iter().zip(ends).zip(axes).zip(steps) {
        let size = x.shape()[axis as usize] as i64;
        let from_end = |place: i64| if place < 0 { place.saturating_add(size) } else { place };
        let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
        let (mut place, end) = (from_end(start).clamp(low.max(0), high.max(0)), from_end(end).clamp(low, high));
        let mut places = Vec::new();
        while (step > 0 && place < end) || (step < 0 && place > end) {
            places.push(place);
            place += step;
        }
        let count = places.len();
        x = x.contiguous().index_select(axis as isize, &Tensor::from_vec(places, [count]));
    }
    x
}

/// Pads the spatial dimensions of `x` with `value`. `pads` has the number of elements to add at the start of each dimension, and then the
/// numbers for the ends.
fn padded(x: &Tensor<f64>, pads: &[i64], value: f64) -> Tensor<f64> {
    let rank = pads.len() / 2;
    let sides: Vec<isize> = (0..rank).rev().flat_map(|k| [pads[k] as isize, pads[rank + k] as isize]).collect();
    x.pad(&sides, PadMode::Constant(value))
}

fn convolution(node: &Node, x: &Tensor<f64>, weight: &Tensor<f64>) -> Tensor<f64> {
    let rank = x.rank() - 2;
    let sizes = |name: &str, default: i64| -> Vec<isize> {
        node.integers(name).unwrap_or(vec![default; rank]).into_iter().map(|size| size as isize).collect()
    };
    let options = ConvOptions::default()
        .stride(&sizes("strides", 1)[..])
        .dilation(&sizes("dilations", 1)[..])
        .groups(node.integer("group", 1) as usize);
    let pads = node.integers("pads").unwrap_or(vec![0; 2 * rank]);
    if node.operator == "Conv" {
        let x = padded(x, &pads, 0.0);
        return match rank {
            1 => x.conv1d(weight, None, &options),
            2 => x.conv2d(weight, None, &options),
            _ => x.conv3d(weight, None, &options),
        };
    }
    let whole = match rank {
        1 => x.conv_transpose1d(weight, None, &options),
        2 => x.conv_transpose2d(weight, None, &options),
        _ => x.conv_transpose3d(weight, None, &options),
    };
    // The padding removes elements at both ends, and the output padding adds elements at the end.
    let more = node.integers("output_padding").unwrap_or(vec![0; rank]);
    let sides: Vec<i64> =
        pads[..rank].iter().map(|pad| -pad).chain((0..rank).map(|k| more[k] - pads[rank + k])).collect();
    padded(&whole, &sides, 0.0)
}

fn pooling(node: &Node, x: &Tensor<f64>) -> Tensor<f64> {
    let rank = x.rank() - 2;
    let kernel = node.integers("kernel_shape").unwrap();
    let strides = node.integers("strides").unwrap_or(vec![1; rank]);
    let dilations = node.integers("dilations").unwrap_or(vec![1; rank]);
    let is_maximum = node.operator == "MaxPool";
    let pads = node.integers("pads").unwrap_or(vec![0; 2 * rank]);
    assert!(is_maximum || pads.iter().all(|&pad| pad == 0));
    // ONNX Runtime refuses a padding that is not below the size of the kernel.
    assert!(pads.iter().zip(kernel.iter().cycle()).all(|(pad, size)| pad < size), "{pads:?} {kernel:?}");
    let mut x = padded(x, &pads, f64::NEG_INFINITY);
    // Replaces each pooled dimension by its windows. The elements of each window are in a new last dimension, which is then reduced.
    for k in 0..rank {
        let span = (kernel[k] - 1) * dilations[k] + 1;
        let windows = x.unfold(2 + k as isize, span as usize, strides[k] as usize);
        let places: Vec<i64> = (0..kernel[k]).map(|place| place * dilations[k]).collect();
        let count = places.len();
        let elements = windows.contiguous().index_select(-1, &Tensor::from_vec(places, [count]));
        x = if is_maximum { elements.amax(-1) } else { elements.mean(-1) };
    }
    x
}
