//! The names of values. Inputs, outputs, parameters and buffers have given names, and all other values have numbered names.

use rustc_hash::FxHashSet;
use wengert_autograd::Buffer;
use wengert_nn::Module;
use wengert_tensor::{Float, Tensor};

use crate::error::{Error, Result};
use crate::graph::{Graph, Source, ValueId};

/// The names of the tensors of a model.
#[derive(Clone, Debug)]
pub(crate) struct ModelNames<T: Float> {
    /// The id and the path of each parameter.
    parameters: Vec<(u64, String)>,
    /// The values and the path of each buffer with elements of type `T`.
    buffers: Vec<(Tensor<T>, String)>,
}

impl<T: Float> Default for ModelNames<T> {
    fn default() -> Self {
        ModelNames { parameters: Vec::new(), buffers: Vec::new() }
    }
}

impl<T: Float> ModelNames<T> {
    /// Returns the names of the tensors of `model`.
    pub(crate) fn from_model(model: &impl Module<T>) -> Self {
        let parameters = model.named_parameters().into_iter().map(|(path, parameter)| (parameter.id(), path));
        let buffer = |(path, buffer): (String, &dyn wengert_nn::AnyBuffer)| {
            buffer.as_any().downcast_ref::<Buffer<T>>().map(|buffer| (buffer.value.clone(), path))
        };
        ModelNames {
            parameters: parameters.collect(),
            buffers: model.named_buffers().into_iter().filter_map(buffer).collect(),
        }
    }

    /// Returns the path of the parameter `parameter`, or of the buffer that has the data of a constant. Returns `None`
    /// if the model has no such tensor.
    fn path(&self, parameter: Option<u64>, data: &Tensor<T>) -> Option<&str> {
        if let Some(id) = parameter {
            return self.parameters.iter().find(|(other, _)| *other == id).map(|(_, path)| path.as_str());
        }
        let is_same = |other: &Tensor<T>| other.shares_storage(data) && other.layout() == data.layout();
        self.buffers.iter().find(|(other, _)| is_same(other)).map(|(_, path)| path.as_str())
    }
}

/// Returns the name of each value of the graph, and for each value true if its name is a path of `model`.
///
/// # Errors
///
/// If a name of an input or output is empty or occurs twice, or if a path of `model` is empty or equals one of these
/// names.
pub(crate) fn assign_names<T: Float>(
    graph: &Graph<T>,
    inputs: &[&str],
    outputs: &[&str],
    model: &ModelNames<T>,
) -> Result<(Vec<String>, Vec<bool>)> {
    let mut is_path = vec![false; graph.values.len()];
    let mut names = vec![String::new(); graph.values.len()];
    let mut taken: FxHashSet<String> = FxHashSet::default();
    let named_values = graph.inputs.iter().zip(inputs).chain(graph.outputs.iter().zip(outputs));
    for (&value, &name) in named_values {
        if name.is_empty() || !taken.insert(name.to_owned()) {
            return Err(Error::Name { name: name.to_owned() });
        }
        names[value] = name.to_owned();
    }
    for ((value, name), is_path) in graph.values.iter().zip(&mut names).zip(&mut is_path) {
        if let Source::Floats(data) = &value.source
            && let Some(path) = model.path(value.parameter, data)
        {
            if path.is_empty() || inputs.contains(&path) || outputs.contains(&path) {
                return Err(Error::Name { name: path.to_owned() });
            }
            // A buffer that is recorded twice is written once, because its values are equal.
            *name = path.to_owned();
            taken.insert(path.to_owned());
            *is_path = true;
        }
    }
    let mut assign_number = |names: &mut Vec<String>, value: ValueId, kind: &str, number: usize| {
        if names[value].is_empty() {
            let mut name = format!("{kind}_{number}");
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            names[value] = name;
        }
    };
    for (number, node) in graph.nodes.iter().enumerate() {
        assign_number(&mut names, node.output, node.operator, number);
    }
    for value in 0..names.len() {
        assign_number(&mut names, value, "constant", value);
    }
    Ok((names, is_path))
}
