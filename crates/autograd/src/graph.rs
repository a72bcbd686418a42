//! The recorded program as text and as a Graphviz graph, with shapes and lines of code.

use std::fmt::{self, Write};

use wengert_tensor::Float;

use crate::Tape;
use crate::record::{Index, Op};

/// A picture of what a tape holds. `Display` gives one line per operation; [`to_dot`](Self::to_dot) a graph for Graphviz.
///
/// ```
/// use wengert_autograd::prelude::*;
///
/// let tape = Tape::<f32>::new();
/// let x = tape.var(&Tensor::ones([2, 3]));
/// let y = (x + &Tensor::ones([3])).exp();
/// let listing = tape.graph().to_string();
/// assert!(listing.contains("%2 = expand(%1) [2, 3]"));
/// assert!(tape.graph().to_dot().starts_with("digraph"));
/// # let _ = y;
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    name: &'static str,
    inputs: Vec<Index>,
    shape: String,
    location: String,
    is_leaf: bool,
}

impl<T: Float> Tape<T> {
    /// The recorded program, to be shown.
    pub fn graph(&self) -> Graph {
        let record = self.record.borrow();
        let rows = (0..record.len() as Index)
            .map(|index| Row {
                name: record.name(index),
                inputs: record.inputs(index).to_vec(),
                shape: record.shape(index).to_string(),
                location: {
                    let location = record.location(index);
                    format!("{}:{}", location.file(), location.line())
                },
                is_leaf: matches!(record.node(index).op, Op::Constant(_) | Op::Variable(_)),
            })
            .collect();
        Graph { rows }
    }
}

impl Graph {
    /// The graph in Graphviz's DOT language: leaves as boxes, operations as ellipses, edges from inputs to results.
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph tape {\n  rankdir=TB;\n  node [fontname=\"monospace\"];\n");
        for (index, row) in self.rows.iter().enumerate() {
            let shape = if row.is_leaf { "box" } else { "ellipse" };
            let location = row.location.replace('\\', "/").replace('"', "'");
            let _ = writeln!(
                dot,
                "  n{index} [shape={shape}, label=\"{} {}\", tooltip=\"{location}\"];",
                row.name, row.shape
            );
            for input in &row.inputs {
                let _ = writeln!(dot, "  n{input} -> n{index};");
            }
        }
        dot.push_str("}\n");
        dot
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, row) in self.rows.iter().enumerate() {
            let inputs: Vec<String> = row.inputs.iter().map(|input| format!("%{input}")).collect();
            writeln!(f, "%{index} = {}({}) {}  {}", row.name, inputs.join(", "), row.shape, row.location)?;
        }
        Ok(())
    }
}
