//! Shows the program that a tape has recorded, as text and as a Graphviz graph, with shapes and lines of code.

use std::fmt::{self, Write};

use wengert_tensor::Float;

use crate::tape::Record;
use crate::{Tape, Var};
use wengert_tensor::plan::{NodeIndex, Op};

/// A description of a tape's program. `Display` writes one line for each node. [`to_dot`](Self::to_dot) writes a graph for Graphviz, and
/// [`to_svg`](Self::to_svg) an image.
///
/// ```
/// # use wengert_autograd::prelude::*;
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
    pub(super) rows: Vec<Row>,
}

#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) index: NodeIndex,
    pub(super) name: &'static str,
    pub(super) inputs: Vec<NodeIndex>,
    pub(super) shape: String,
    pub(super) file: &'static str,
    pub(super) line: u32,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Variable,
    Constant,
    Operation,
}

impl Row {
    fn new<T: Float>(record: &Record<T>, index: NodeIndex) -> Self {
        let location = record.location(index);
        Row {
            index,
            name: record.name(index),
            inputs: record.inputs(index).to_vec(),
            shape: record.shape(index).to_string(),
            file: location.file(),
            line: location.line(),
            kind: match record.node(index).op {
                Op::Variable(_) => Kind::Variable,
                Op::Constant(_) | Op::Number(_) => Kind::Constant,
                _ => Kind::Operation,
            },
        }
    }
}

impl<T: Float> Tape<T> {
    /// Returns the program that this tape has recorded, as a graph.
    pub fn graph(&self) -> Graph {
        let record = self.record.borrow();
        Graph { rows: (0..record.len() as NodeIndex).map(|index| Row::new(&record, index)).collect() }
    }
}

impl<T: Float> Var<'_, T> {
    /// Returns the part of the recorded program that computes this variable, as a graph. Nodes keep their indices.
    pub fn graph(self) -> Graph {
        let record = self.tape.record.borrow();
        let mut needed = vec![false; self.index as usize + 1];
        needed[self.index as usize] = true;
        for index in (0..=self.index).rev() {
            if needed[index as usize] {
                for input in record.inputs(index) {
                    needed[input as usize] = true;
                }
            }
        }
        let rows = (0..=self.index).filter(|&index| needed[index as usize]);
        Graph { rows: rows.map(|index| Row::new(&record, index)).collect() }
    }
}

impl Graph {
    /// Returns the graph in Graphviz's DOT language, for `dot -Tsvg`. Variables are filled boxes, constants empty boxes, operations ellipses.
    /// Each node shows its index, name, shape and line of code. Edges lead from operands to results.
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph tape {\n  rankdir=TB;\n  node [fontname=\"monospace\"];\n");
        for Row { index, name, inputs, shape, file, line, kind } in &self.rows {
            let style = match kind {
                Kind::Variable => "shape=box, style=filled, fillcolor=\"#cfe2ff\"",
                Kind::Constant => "shape=box",
                Kind::Operation => "shape=ellipse",
            };
            let path = file.replace('\\', "/").replace('"', "'");
            let short = path.rsplit('/').next().unwrap_or_default();
            let _ = writeln!(
                dot,
                "  n{index} [{style}, label=\"%{index} {name}\\n{shape}\\n{short}:{line}\", tooltip=\"{path}:{line}\"];"
            );
            for input in inputs {
                let _ = writeln!(dot, "  n{input} -> n{index};");
            }
        }
        dot.push_str("}\n");
        dot
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { index, name, inputs, shape, file, line, .. } in &self.rows {
            let inputs: Vec<String> = inputs.iter().map(|input| format!("%{input}")).collect();
            writeln!(f, "%{index} = {name}({}) {shape}  {file}:{line}", inputs.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use crate::Tape;

    #[test]
    fn a_listing_has_shapes_and_lines() {
        let tape = Tape::<f64>::new();
        let line = line!() + 1;
        let (x, b) = (tape.var(&Tensor::ones([2, 3])), tape.constant(Tensor::ones([3])));
        let unused = x.exp();
        let y = x * b;
        let file = file!();
        let expected = format!(
            "%0 = variable() [2, 3]  {file}:{line}\n%1 = constant() [3]  {file}:{line}\n\
             %3 = expand(%1) [2, 3]  {file}:{}\n%4 = mul(%0, %3) [2, 3]  {file}:{}\n",
            line + 2,
            line + 2
        );
        assert_eq!(y.graph().to_string(), expected);
        assert_eq!(tape.graph().to_string().lines().count(), 5);
        assert_eq!(unused.graph().to_string().lines().count(), 2);
        let dot = y.graph().to_dot();
        assert!(dot.contains(&format!("label=\"%4 mul\\n[2, 3]\\ngraph.rs:{}\"", line + 2)), "{dot}");
        assert!(dot.contains("n3 -> n4;") && !dot.contains("n2"), "{dot}");
    }
}
