//! Subgraphs: the nodes that compute some values from known values, copied to a new expression. The nodes are renumbered, so that equal
//! subgraphs of a growing expression get equal plans.

use crate::engine::plan::expression::{ByNode, Expression, NodeIndex, Op};

/// A subgraph of an expression, copied to an expression of its own.
#[derive(Clone, Debug)]
pub struct Subgraph {
    /// The nodes of the subgraph. The values that the subgraph reads and does not compute, except numbers, are variables, numbered in the
    /// order of the nodes.
    pub expression: Expression,
    /// For each node of the subgraph, its index in the whole expression.
    pub nodes: Vec<NodeIndex>,
    /// For each node of the subgraph, true if the subgraph computes the node's value. False if the value is an input of the subgraph or a
    /// number.
    is_computed: Vec<bool>,
    /// For each node of the whole expression that is in the subgraph, its index in the subgraph.
    indices: ByNode<NodeIndex>,
}

impl Subgraph {
    /// Returns the subgraph that computes `roots` from the values of leaves and of the nodes for which `known` returns true. The time for
    /// this depends on the size of the subgraph, and not on the size of `whole`.
    pub fn new(whole: &Expression, known: &dyn Fn(NodeIndex) -> bool, roots: &[NodeIndex]) -> Self {
        let mut needed: ByNode<bool> = ByNode::default();
        let mut open: Vec<NodeIndex> = roots.to_vec();
        while let Some(index) = open.pop() {
            if needed.contains_key(&index) {
                continue;
            }
            let is_leaf = matches!(whole.op(index), Op::Constant(_) | Op::Variable(_) | Op::Number(_));
            let computed = !is_leaf && !known(index);
            needed.insert(index, computed);
            if computed {
                open.extend(whole.value_inputs(index));
            }
        }
        let mut nodes: Vec<NodeIndex> = needed.keys().copied().collect();
        nodes.sort_unstable();
        let mut subgraph = Subgraph {
            expression: Expression::default(),
            is_computed: nodes.iter().map(|node| needed[node]).collect(),
            indices: nodes.iter().enumerate().map(|(index, &node)| (node, index as NodeIndex)).collect(),
            nodes,
        };
        let (mut read, mut others) = (0, 0);
        for index in 0..subgraph.nodes.len() {
            let node = subgraph.nodes[index];
            let shape = subgraph.expression.intern(whole.shape(node));
            let op = match whole.op(node) {
                Op::Number(number) => subgraph.expression.add_number(whole.number(number)),
                _ if !subgraph.is_computed[index] => {
                    read += 1;
                    Op::Variable(read - 1)
                }
                Op::View(number) => subgraph.expression.add_view(whole.view(number).clone()),
                Op::Embed(number) => subgraph.expression.add_embed(whole.view(number).clone()),
                Op::Other(_) => {
                    others += 1;
                    Op::Other(others - 1)
                }
                op => op,
            };
            let operands = if subgraph.is_computed[index] { whole.value_inputs(node) } else { &[] };
            let inputs: Vec<NodeIndex> = operands.iter().map(|input| subgraph.indices[input]).collect();
            subgraph.expression.push_any(op, &inputs, shape, whole.result_origin(node));
            if !subgraph.is_computed[index] && whole.data_shape(node) != whole.shape(node) {
                subgraph.expression.set_unexpanded(index as NodeIndex, whole.data_shape(node));
            }
        }
        subgraph
    }

    /// Returns the index in the subgraph of the node that has the index `node` in the whole expression.
    ///
    /// # Panics
    ///
    /// If the node is not in the subgraph.
    pub fn index_of(&self, node: NodeIndex) -> NodeIndex {
        self.indices[&node]
    }

    /// Returns the number of nodes whose values the subgraph computes.
    pub fn work(&self) -> usize {
        self.is_computed.iter().filter(|&&computed| computed).count()
    }

    /// Returns the nodes that the subgraph computes, that have an index up to `last`, and that a node after `last` reads. The host may keep
    /// their values, because later evaluations may read them too. All indices belong to the whole expression.
    pub fn frontier(&self, last: NodeIndex) -> Vec<NodeIndex> {
        let later = self.nodes.partition_point(|&node| node <= last);
        let read = (later..self.nodes.len()).flat_map(|index| self.expression.operands(index as NodeIndex));
        let mut read: Vec<NodeIndex> =
            read.copied().filter(|&index| (index as usize) < later && self.is_computed[index as usize]).collect();
        read.sort_unstable();
        read.dedup();
        read.into_iter().map(|index| self.nodes[index as usize]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan::expression::ResultOrigin;
    use crate::{Shape, Unary};

    #[test]
    fn inputs_that_only_a_derivative_uses_are_left_out() {
        let mut whole = Expression::default();
        let shape = whole.intern(&Shape::from([3]));
        let x = whole.push(Op::Variable(0), [], shape).unwrap();
        let negative = whole.push(Op::Unary(Unary::Neg), [x], shape).unwrap();
        let exponential = whole.push(Op::Unary(Unary::Exp), [x], shape).unwrap();
        let alias = whole.push_list(Op::Other(0), &[negative, exponential], shape, ResultOrigin::FirstInput).unwrap();
        let subgraph = Subgraph::new(&whole, &|_| false, &[alias]);
        assert_eq!(subgraph.nodes, [x, negative, alias]);
        assert_eq!(subgraph.frontier(exponential), [negative]);
    }
}
