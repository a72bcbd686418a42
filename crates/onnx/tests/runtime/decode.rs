//! Decodes ONNX files. The numbers of the fields come from `onnx.proto`.

use std::collections::HashMap;

use wengert_tensor::{Shape, Tensor};

use super::Value;

#[derive(Debug)]
pub struct Model {
    pub format: u64,
    pub operators: u64,
    pub graph: Graph,
}

#[derive(Debug, Default)]
pub struct Graph {
    pub name: String,
    pub nodes: Vec<Node>,
    pub constants: Vec<(String, Value)>,
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

/// An input or output. A size is a number, the name of a dynamic dimension, or empty.
#[derive(Debug, Default, PartialEq)]
pub struct Port {
    pub name: String,
    pub element: u64,
    pub sizes: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Node {
    pub operator: String,
    pub inputs: Vec<String>,
    pub output: String,
    pub attributes: HashMap<String, Attribute>,
}

#[derive(Debug, PartialEq)]
pub enum Attribute {
    Integer(i64),
    Integers(Vec<i64>),
    Text(String),
}

/// A field of a message: a number, or bytes.
enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

impl<'b> Field<'b> {
    fn number(&self) -> u64 {
        match self {
            Field::Number(number) => *number,
            Field::Bytes(_) => panic!("expected a number"),
        }
    }

    fn bytes(&self) -> &'b [u8] {
        match self {
            Field::Bytes(bytes) => bytes,
            Field::Number(_) => panic!("expected bytes"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

/// Returns the fields of a message, each with its number.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(value),
            2 => {
                let (field, rest) = bytes.split_at(value as usize);
                bytes = rest;
                Field::Bytes(field)
            }
            other => panic!("the wire type {other} is not written"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint has at most ten bytes")
}

impl Model {
    pub fn decode(bytes: &[u8]) -> Self {
        let mut model = Model { format: 0, operators: 0, graph: Graph::default() };
        for (number, field) in fields(bytes) {
            match number {
                1 => model.format = field.number(),
                2 | 3 => assert!(!field.text().is_empty()),
                7 => model.graph = Graph::decode(field.bytes()),
                8 => {
                    model.operators = fields(field.bytes()).iter().find(|(number, _)| *number == 2).unwrap().1.number()
                }
                other => panic!("field {other} of a model"),
            }
        }
        model
    }
}

impl Graph {
    fn decode(bytes: &[u8]) -> Self {
        let mut graph = Graph::default();
        for (number, field) in fields(bytes) {
            match number {
                1 => graph.nodes.push(Node::decode(field.bytes())),
                2 => graph.name = field.text(),
                5 => graph.constants.push(constant(field.bytes())),
                11 => graph.inputs.push(Port::decode(field.bytes())),
                12 => graph.outputs.push(Port::decode(field.bytes())),
                other => panic!("field {other} of a graph"),
            }
        }
        graph
    }
}

impl Node {
    fn decode(bytes: &[u8]) -> Self {
        let mut node = Node::default();
        for (number, field) in fields(bytes) {
            match number {
                1 => node.inputs.push(field.text()),
                2 => node.output = field.text(),
                3 => assert!(!field.text().is_empty()),
                4 => node.operator = field.text(),
                5 => {
                    let (name, attribute) = attribute(field.bytes());
                    node.attributes.insert(name, attribute);
                }
                other => panic!("field {other} of a node"),
            }
        }
        node
    }

    pub fn integer(&self, name: &str, default: i64) -> i64 {
        match self.attributes.get(name) {
            Some(Attribute::Integer(integer)) => *integer,
            None => default,
            other => panic!("{name}: {other:?}"),
        }
    }

    pub fn integers(&self, name: &str) -> Option<Vec<i64>> {
        match self.attributes.get(name) {
            Some(Attribute::Integers(integers)) => Some(integers.clone()),
            None => None,
            other => panic!("{name}: {other:?}"),
        }
    }
}

fn attribute(bytes: &[u8]) -> (String, Attribute) {
    let (mut name, mut integer, mut integers, mut text, mut kind) = (String::new(), 0, Vec::new(), String::new(), 0);
    for (number, field) in fields(bytes) {
        match number {
            1 => name = field.text(),
            3 => integer = field.number() as i64,
            4 => text = field.text(),
            8 => integers.push(field.number() as i64),
            20 => kind = field.number(),
            other => panic!("field {other} of an attribute"),
        }
    }
    let attribute = match kind {
        2 => Attribute::Integer(integer),
        3 => Attribute::Text(text),
        7 => Attribute::Integers(integers),
        other => panic!("an attribute of type {other}"),
    };
    (name, attribute)
}

fn constant(bytes: &[u8]) -> (String, Value) {
    let (mut name, mut shape, mut kind, mut data) = (String::new(), Shape::scalar(), 0, &[][..]);
    for (number, field) in fields(bytes) {
        match number {
            1 => shape.push(field.number() as usize),
            2 => kind = field.number(),
            8 => name = field.text(),
            9 => data = field.bytes(),
            other => panic!("field {other} of a tensor"),
        }
    }
    let wide = || data.chunks_exact(8).map(|bytes| <[u8; 8]>::try_from(bytes).unwrap());
    let value = match kind {
        1 => {
            let numbers = data.chunks_exact(4).map(|bytes| f64::from(f32::from_le_bytes(bytes.try_into().unwrap())));
            Value::Floats(Tensor::from_vec(numbers.collect(), &shape))
        }
        11 => Value::Floats(Tensor::from_vec(wide().map(f64::from_le_bytes).collect(), &shape)),
        7 => Value::Integers(Tensor::from_vec(wide().map(i64::from_le_bytes).collect(), &shape)),
        other => panic!("a constant of type {other}"),
    };
    (name, value)
}

impl Port {
    fn decode(bytes: &[u8]) -> Self {
        let mut port = Port::default();
        for (number, field) in fields(bytes) {
            match number {
                1 => port.name = field.text(),
                2 => {
                    let (_, tensor) = &fields(field.bytes())[0];
                    for (number, field) in fields(tensor.bytes()) {
                        match number {
                            1 => port.element = field.number(),
                            2 => {
                                port.sizes =
                                    fields(field.bytes()).iter().map(|(_, size)| dimension(size.bytes())).collect()
                            }
                            other => panic!("field {other} of a type"),
                        }
                    }
                }
                other => panic!("field {other} of an input or output"),
            }
        }
        port
    }
}

fn dimension(bytes: &[u8]) -> String {
    match fields(bytes).first() {
        Some((1, size)) => size.number().to_string(),
        Some((2, name)) => name.text(),
        Some((other, _)) => panic!("field {other} of a dimension"),
        None => String::new(),
    }
}
