//! A small runtime for ONNX files: it decodes the bytes, and computes the operators with tensors. It is written from the specification of
//! the operators, <https://onnx.ai/onnx/operators/>, and shares no code with the export.

mod decode;
mod operators;

use std::collections::HashMap;

use wengert_tensor::Tensor;

pub use decode::{Model, Node, Port};

/// A value at run time. Numbers are computed in f64.
#[derive(Clone, Debug)]
pub enum Value {
    Floats(Tensor<f64>),
    Integers(Tensor<i64>),
    Truths(Tensor<bool>),
}

impl Value {
    pub fn floats(&self) -> &Tensor<f64> {
        match self {
            Value::Floats(floats) => floats,
            other => panic!("expected numbers, got {other:?}"),
        }
    }

    pub fn integers(&self) -> &Tensor<i64> {
        match self {
            Value::Integers(integers) => integers,
            other => panic!("expected integers, got {other:?}"),
        }
    }

    pub fn truths(&self) -> &Tensor<bool> {
        match self {
            Value::Truths(truths) => truths,
            other => panic!("expected truth values, got {other:?}"),
        }
    }
}

/// Computes the outputs of the model, by name.
pub fn run(model: &Model, inputs: HashMap<String, Value>) -> HashMap<String, Value> {
    let graph = &model.graph;
    let mut values = inputs;
    for (name, value) in &graph.constants {
        assert!(values.insert(name.clone(), value.clone()).is_none(), "{name} is defined twice");
    }
    for node in &graph.nodes {
        let operands: Vec<&Value> = node.inputs.iter().map(|name| &values[name]).collect();
        let result = operators::compute(node, &operands);
        assert!(values.insert(node.output.clone(), result).is_none(), "{} is defined twice", node.output);
    }
    graph.outputs.iter().map(|output| (output.name.clone(), values[&output.name].clone())).collect()
}
