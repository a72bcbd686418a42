//! Writes a graph with names as an ONNX model. The numbers of the fields come from `onnx.proto`,
//! <https://github.com/onnx/onnx/blob/main/onnx/onnx.proto>.

use rustc_hash::FxHashMap;
use wengert_tensor::{Float, Shape};

use crate::error::{Error, Result};
use crate::graph::{Attribute, ElementKind, Graph, Node, Source, Value};
use crate::protobuf::Message;
use crate::unify::Size;

/// The version of ONNX's file format (`ir_version`). It is the oldest one that allows the operators of version [`OPSET_VERSION`], so that older
/// runtimes can read the file.
const IR_VERSION: u64 = 8;

/// The version of ONNX's operators: the oldest one that has all operators and attributes that this crate writes.
const OPSET_VERSION: u64 = 18;

/// The largest number of bytes of a message of Protocol Buffers.
const MAX_BYTES: usize = i32::MAX as usize;

/// The names that the file contains.
pub(crate) struct Names<'n> {
    /// The name of the graph.
    pub(crate) graph: &'n str,
    /// The name of each value.
    pub(crate) values: Vec<String>,
    /// For each value, true if its name is the path of a tensor of the model.
    pub(crate) is_path: Vec<bool>,
    /// The name of the dynamic dimension.
    pub(crate) dynamic: Option<&'n str>,
}

/// Returns the model as the bytes of a file. `sizes` has the sizes of all inputs and then of all outputs.
///
/// # Errors
///
/// If the file would be too large, or memory cannot hold it.
pub(crate) fn encode_model<T: Float>(graph: &Graph<T>, sizes: &[Vec<Size>], mut names: Names<'_>) -> Result<Vec<u8>> {
    let (mut model, mut operators) = (Message::default(), Message::default());
    model.put_number(1, IR_VERSION);
    model.put_text(2, "wengert");
    model.put_text(3, env!("CARGO_PKG_VERSION"));
    operators.put_text(1, "");
    operators.put_number(2, OPSET_VERSION);
    let graph = encode_graph(graph, sizes, &mut names)?;
    check_size(graph.len())?;
    reserve(&mut model, graph.len())?;
    model.put_message(7, &graph);
    model.put_message(8, &operators);
    check_size(model.len())?;
    Ok(model.into_bytes())
}

fn encode_graph<T: Float>(graph: &Graph<T>, sizes: &[Vec<Size>], names: &mut Names<'_>) -> Result<Message> {
    let constants = encode_constants(graph, names)?;
    let mut message = Message::default();
    reserve(&mut message, constants.iter().map(Message::len).sum())?;
    for (number, node) in graph.nodes.iter().enumerate() {
        message.put_message(1, &encode_node(node, number, &names.values));
    }
    message.put_text(2, names.graph);
    constants.iter().for_each(|constant| message.put_message(5, constant));
    for (number, &value) in graph.inputs.iter().chain(&graph.outputs).enumerate() {
        let field = if number < graph.inputs.len() { 11 } else { 12 };
        let kind = graph.values[value].kind.onnx_type::<T>();
        message.put_message(field, &encode_value_info(&names.values[value], kind, &sizes[number], names.dynamic));
    }
    Ok(message)
}

/// Returns an error if a message of Protocol Buffers cannot have `bytes` bytes.
fn check_size(bytes: usize) -> Result<()> {
    if bytes > MAX_BYTES { Err(Error::TooLarge { bytes }) } else { Ok(()) }
}

/// Returns an empty buffer for `count` numbers of `size` bytes.
///
/// # Errors
///
/// If the file would be too large, or memory cannot hold the numbers.
fn reserve_bytes(count: usize, size: usize) -> Result<Vec<u8>> {
    let (bytes, mut buffer) = (count.saturating_mul(size), Vec::new());
    check_size(bytes)?;
    buffer.try_reserve_exact(bytes).map_err(|_| Error::OutOfMemory { bytes })?;
    Ok(buffer)
}

/// Reserves `bytes` bytes of memory for a message into which other messages are copied. Returns an error if there is
/// not enough memory.
fn reserve(message: &mut Message, bytes: usize) -> Result<()> {
    if message.try_reserve(bytes) { Ok(()) } else { Err(Error::OutOfMemory { bytes }) }
}

/// Returns the constants of the graph. A constant that equals an earlier one gets the name of the earlier one and is
/// not written again, unless it has another path in the model. Returns an error if the constants are too large for a
/// file, or memory cannot hold them.
fn encode_constants<T: Float>(graph: &Graph<T>, names: &mut Names<'_>) -> Result<Vec<Message>> {
    let mut written: FxHashMap<(ElementKind, Shape, Vec<u8>), usize> = FxHashMap::default();
    let (mut tensors, mut total) = (Vec::new(), 0usize);
    for (number, value) in graph.values.iter().enumerate() {
        let Some(bytes) = constant_bytes(value)? else { continue };
        let key = (value.kind, value.shape.clone(), bytes);
        match written.get(&key) {
            Some(&earlier) if !names.is_path[number] || names.values[earlier] == names.values[number] => {
                names.values[number] = names.values[earlier].clone();
            }
            _ => {
                total = total.saturating_add(key.2.len());
                check_size(total)?;
                tensors.push(encode_tensor(&names.values[number], value.kind.onnx_type::<T>(), &value.shape, &key.2));
                written.insert(key, number);
            }
        }
    }
    Ok(tensors)
}

/// Returns the bytes of a constant, in row-major order with the lowest byte of each element first. Returns `None` for
/// other values, and an error if the constant is too large for a file or for the memory.
fn constant_bytes<T: Float>(value: &Value<T>) -> Result<Option<Vec<u8>>> {
    let mut bytes;
    match &value.source {
        Source::Input | Source::Node => return Ok(None),
        Source::Sizes(sizes) => {
            bytes = reserve_bytes(sizes.len(), 8)?;
            sizes.iter().for_each(|size| bytes.extend(size.to_le_bytes()));
        }
        Source::Indices(index) => {
            bytes = reserve_bytes(index.numel(), 8)?;
            index.iter().for_each(|index| bytes.extend(index.to_le_bytes()));
        }
        Source::Floats(data) => {
            let is_wide = ElementKind::Float.onnx_type::<T>() == ElementKind::Float.onnx_type::<f64>();
            bytes = reserve_bytes(data.numel(), if is_wide { 8 } else { 4 })?;
            for element in data.iter().map(T::to_f64) {
                if is_wide {
                    bytes.extend(element.to_le_bytes());
                } else {
                    bytes.extend((element as f32).to_le_bytes());
                }
            }
        }
    }
    Ok(Some(bytes))
}

fn encode_tensor(name: &str, kind: i64, shape: &Shape, bytes: &[u8]) -> Message {
    let mut message = Message::default();
    shape.iter().for_each(|&size| message.put_number(1, size as u64));
    message.put_integer(2, kind);
    message.put_text(8, name);
    message.put_bytes(9, bytes);
    message
}

fn encode_node(node: &Node, number: usize, names: &[String]) -> Message {
    let mut message = Message::default();
    node.inputs.iter().for_each(|&input| message.put_text(1, &names[input]));
    message.put_text(2, &names[node.output]);
    message.put_text(3, &format!("{}_{number}", node.operator));
    message.put_text(4, node.operator);
    for (name, attribute) in &node.attributes {
        message.put_message(5, &encode_attribute(name, attribute));
    }
    message
}

fn encode_attribute(name: &str, attribute: &Attribute) -> Message {
    let mut message = Message::default();
    message.put_text(1, name);
    let kind = match attribute {
        Attribute::Integer(integer) => {
            message.put_integer(3, *integer);
            2
        }
        Attribute::Text(text) => {
            message.put_text(4, text);
            3
        }
        Attribute::Integers(integers) => {
            integers.iter().for_each(|&integer| message.put_integer(8, integer));
            7
        }
    };
    message.put_number(20, kind);
    message
}

/// Encodes the name, the element type and the sizes of an input or output.
fn encode_value_info(name: &str, kind: i64, sizes: &[Size], dynamic: Option<&str>) -> Message {
    let [mut value, mut type_proto, mut tensor, mut shape] = [(); 4].map(|()| Message::default());
    for size in sizes {
        let mut dimension = Message::default();
        match (size, dynamic) {
            (Size::Fixed(size), _) => dimension.put_number(1, *size as u64),
            (Size::Dynamic, Some(name)) => dimension.put_text(2, name),
            _ => {}
        }
        shape.put_message(1, &dimension);
    }
    tensor.put_integer(1, kind);
    tensor.put_message(2, &shape);
    type_proto.put_message(1, &tensor);
    value.put_text(1, name);
    value.put_message(2, &type_proto);
    value
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use wengert_tensor::Tensor;
    use wengert_tensor::ops::Views as _;

    use super::*;
    use crate::graph::Origin;

    #[test]
    fn a_message_has_at_most_two_gibibytes() {
        assert!(check_size(MAX_BYTES).is_ok());
        assert!(matches!(check_size(MAX_BYTES + 1), Err(Error::TooLarge { bytes: 2_147_483_648 })));
        // The element is repeated, so this index needs little memory.
        let index = Tensor::from([1i64]).expand([1 << 29]);
        let (shape, origin) = (index.shape().clone(), Origin { operation: "take", recorded: Location::caller() });
        let mut graph = Graph::<f32>::new();
        let value = graph.add_value(Source::Indices(index), ElementKind::Integer, shape, origin);
        assert!(matches!(constant_bytes(&graph.values[value]), Err(Error::TooLarge { bytes: 4_294_967_296 })));
    }
}
