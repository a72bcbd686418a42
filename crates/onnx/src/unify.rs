//! Makes one graph from the graphs of several recordings of a model, with different values of the inputs and different sizes of a dynamic
//! dimension.
//!
//! The graphs must have the same nodes. A constant that is the same in all recordings is a constant of the file. A size
//! that is a linear function of the size of the dynamic dimension is computed in the file. A tensor of equal numbers is
//! expanded to such sizes. If only one size of a reshape varies, the file leaves it to the reshape, and it can be any function. An index that
//! equals exactly one integer input, or one slice, is read from it. Every other difference of constants is an error.

use wengert_tensor::ops::Views as _;
use wengert_tensor::{Float, Shape, Tensor};

use crate::error::{Error, Result};
use crate::graph::{Attribute, ElementKind, Graph, Node, Origin, Source, ValueId};

/// A recording of the model.
pub(crate) struct Recording<T: Float> {
    pub(crate) graph: Graph<T>,
    /// The values of the integer inputs.
    pub(crate) indices: Vec<Tensor<i64>>,
    /// The size of the dynamic dimension in this recording, or 0 if there is no such dimension.
    pub(crate) size: usize,
}

/// The dynamic dimension: its size is not known when the model is exported. Several inputs may have it.
#[derive(Clone, Debug)]
pub(crate) struct Dynamic {
    pub(crate) name: String,
    /// For each input, the index of its dynamic dimension, or `None`. The integer inputs come last.
    pub(crate) axes: Vec<Option<usize>>,
}

/// A size of an input or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Fixed(usize),
    /// The size of the dynamic dimension.
    Dynamic,
    /// Another function of the size of the dynamic dimension.
    Computed,
}

/// The graph of the file, which computes the model for all inputs.
pub(crate) struct Unified<T: Float> {
    pub(crate) graph: Graph<T>,
    /// The sizes of all inputs and then of all outputs.
    pub(crate) sizes: Vec<Vec<Size>>,
}

/// Makes one graph from the graphs of `recordings`, at least one. The inputs of this graph are the inputs of a
/// recording, followed by the integer inputs. Returns an error if the recordings differ in a way that the file cannot
/// express.
pub(crate) fn unify<T: Float>(recordings: Vec<Recording<T>>, dynamic: Option<&Dynamic>) -> Result<Unified<T>> {
    let [first, others @ ..] = &recordings[..] else { unreachable!("there is a recording") };
    for other in others {
        check_structure(&first.graph, &other.graph, dynamic)?;
    }
    check_windows(&recordings, dynamic)?;
    let mut readers = vec![Vec::new(); first.graph.values.len()];
    for (number, node) in first.graph.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|&input| readers[input].push(number));
    }
    let graph = first.graph.clone();
    let mut merge =
        Merge { graph, prologue: Vec::new(), recordings: &recordings, dynamic, dynamic_size: None, readers };
    for number in 0..first.indices.len() {
        let origin = Origin { operation: "input", recorded: std::panic::Location::caller() };
        let shape = first.indices[number].shape().clone();
        let value = merge.graph.add_value(Source::Input, ElementKind::Integer, shape, origin);
        merge.graph.inputs.push(value);
    }
    for value in 0..first.graph.values.len() {
        merge.unify_constant(value)?;
    }
    let shapes = |recording: &Recording<T>| -> Vec<Shape> {
        let shape = |&value: &ValueId| recording.graph.values[value].shape.clone();
        let floats = recording.graph.inputs.iter().map(shape);
        let integers = recording.indices.iter().map(|index| index.shape().clone());
        floats.chain(integers).chain(recording.graph.outputs.iter().map(shape)).collect()
    };
    let shapes: Vec<Vec<Shape>> = recordings.iter().map(shapes).collect();
    let size_along = |value: usize, axis: usize| {
        let sizes = shapes.iter().map(|shapes| shapes[value][axis]);
        classify_size(sizes.zip(recordings.iter().map(|recording| recording.size)))
    };
    let sizes_of_value = |value: usize| (0..shapes[0][value].rank()).map(|axis| size_along(value, axis)).collect();
    let sizes = (0..shapes[0].len()).map(sizes_of_value).collect();
    let Merge { mut graph, mut prologue, .. } = merge;
    prologue.append(&mut graph.nodes);
    graph.nodes = prologue;
    Ok(Unified { graph: graph.prune(), sizes })
}

/// Returns the kind of a size: fixed, dynamic or computed. `sizes` has, for each recording, this size and the size of
/// the dynamic dimension.
fn classify_size(mut sizes: impl Iterator<Item = (usize, usize)> + Clone) -> Size {
    let Some((first, _)) = sizes.clone().next() else { return Size::Computed };
    if sizes.clone().all(|(size, _)| size == first) {
        Size::Fixed(first)
    } else if sizes.all(|(size, dynamic)| size == dynamic) {
        Size::Dynamic
    } else {
        Size::Computed
    }
}

/// Returns an error if the graphs differ in more than their constants and sizes.
fn check_structure<T: Float>(graph: &Graph<T>, other: &Graph<T>, dynamic: Option<&Dynamic>) -> Result<()> {
    let structure = |Origin { operation, recorded }: Origin| Error::Structure {
        operation,
        recorded,
        dynamic: dynamic.map(|dynamic| dynamic.name.clone()),
    };
    let is_same = |node: &Node, other: &Node| {
        (node.operator, &node.inputs, node.output, &node.attributes)
            == (other.operator, &other.inputs, other.output, &other.attributes)
    };
    for (node, other) in graph.nodes.iter().zip(&other.nodes) {
        if !is_same(node, other) {
            return Err(structure(node.origin));
        }
    }
    let (count, other_count) = (graph.nodes.len(), other.nodes.len());
    if let Some(node) = graph.nodes.get(other_count).or(other.nodes.get(count)) {
        return Err(structure(node.origin));
    }
    for (value, other) in graph.values.iter().zip(&other.values) {
        let same_source = std::mem::discriminant(&value.source) == std::mem::discriminant(&other.source);
        if !same_source || value.kind != other.kind || value.shape.rank() != other.shape.rank() {
            return Err(structure(value.origin));
        }
    }
    let is_same = graph.values.len() == other.values.len() && graph.outputs == other.outputs;
    match graph.values.first().or(other.values.first()) {
        Some(value) if !is_same => Err(structure(value.origin)),
        _ => Ok(()),
    }
}

/// Returns an error if the size of a result of a convolution or pooling is not a linear function of the dynamic size. The
/// paddings are attributes of the node, so they must be right for all dynamic sizes. If the function is not linear, sizes
/// between the recorded ones may need other paddings.
fn check_windows<T: Float>(recordings: &[Recording<T>], dynamic: Option<&Dynamic>) -> Result<()> {
    let graph = &recordings[0].graph;
    let has_windows = |node: &&Node| node.attributes.iter().any(|&(name, _)| name == "kernel_shape");
    for node in graph.nodes.iter().filter(has_windows) {
        for axis in 0..graph.values[node.output].shape.rank() {
            let size = |recording: &Recording<T>| recording.graph.values[node.output].shape[axis] as i64;
            let points = recordings.iter().map(|recording| (recording.size as i64, size(recording)));
            let is_fixed = points.clone().all(|(_, size)| size == graph.values[node.output].shape[axis] as i64);
            if !is_fixed && slope(points).is_none() {
                return Err(varies_error(node.origin, dynamic));
            }
        }
    }
    Ok(())
}

/// The graph under construction.
struct Merge<'r, T: Float> {
    graph: Graph<T>,
    /// The nodes that compute sizes, expanded constants and indices. They come before the nodes of the recordings.
    prologue: Vec<Node>,
    recordings: &'r [Recording<T>],
    dynamic: Option<&'r Dynamic>,
    /// The value that holds the size of the dynamic dimension, a vector of one element. `None` until a node needs it.
    dynamic_size: Option<ValueId>,
    /// For each value of the recordings, the nodes that read it.
    readers: Vec<Vec<usize>>,
}

impl<T: Float> Merge<'_, T> {
    /// Decides how the file gets the value, if it is a constant: as a constant, from computed sizes, or from an integer
    /// input. Returns an error if the value differs between recordings in another way.
    fn unify_constant(&mut self, value: ValueId) -> Result<()> {
        let recordings = self.recordings;
        let all = || recordings.iter().map(move |recording| &recording.graph.values[value]);
        let origin = recordings[0].graph.values[value].origin;
        match &recordings[0].graph.values[value].source {
            Source::Input | Source::Node => Ok(()),
            Source::Floats(first) => {
                let others = all().filter_map(|value| match &value.source {
                    Source::Floats(data) => Some(data),
                    _ => None,
                });
                if others.clone().all(|other| is_equal(first, other)) {
                    return Ok(());
                }
                let number = others.clone().next().and_then(|first| first.iter().next());
                let Some(number) = number.filter(|&number| others.clone().all(|data| has_only(data, number))) else {
                    return Err(self.varies(origin));
                };
                let shape = self.compute_sizes(&others.map(sizes_of).collect::<Vec<_>>(), false, origin)?;
                let fill = Source::Floats(Tensor::scalar(number));
                let fill = self.graph.add_value(fill, ElementKind::Float, Shape::scalar(), origin);
                self.add_prologue_node(value, "Expand", vec![fill, shape], Vec::new());
                Ok(())
            }
            Source::Sizes(first) => {
                let lists: Vec<Vec<i64>> = all().filter_map(|value| sizes_in(&value.source)).collect();
                if lists.iter().all(|list| list == first) {
                    return Ok(());
                }
                let is_reshape = self.readers[value].iter().all(|&node| self.graph.nodes[node].operator == "Reshape");
                let computed = self.compute_sizes(&lists, is_reshape, origin)?;
                self.replace(value, computed);
                Ok(())
            }
            Source::Indices(first) => {
                let others = all().filter_map(|value| match &value.source {
                    Source::Indices(index) => Some(index),
                    _ => None,
                });
                if others.clone().all(|other| is_equal(first, other)) {
                    return Ok(());
                }
                let lists: Vec<&Tensor<i64>> = others.collect();
                match self.replace_by_integer_input(value, &lists)? {
                    true => Ok(()),
                    false => Err(self.varies(origin)),
                }
            }
        }
    }

    /// Replaces the index `value` by an integer input or a slice of one. `lists` has the values of the index in the recordings. Returns
    /// false if no input has these values.
    ///
    /// # Errors
    ///
    /// If several inputs or slices have these values.
    fn replace_by_integer_input(&mut self, value: ValueId, lists: &[&Tensor<i64>]) -> Result<bool> {
        let recordings = self.recordings;
        let origin = self.graph.values[value].origin;
        let floats = self.graph.inputs.len() - recordings[0].indices.len();
        let mut matches = Vec::new();
        for number in 0..recordings[0].indices.len() {
            let values = recordings.iter().map(|recording| recording.indices[number].clone()).collect();
            matches.extend(find_matching_parts(values, lists).into_iter().map(|part| (number, part)));
        }
        let Some((number, InputPart { slice, values })) = matches.pop() else { return Ok(false) };
        if !matches.is_empty() {
            return Err(Error::Ambiguous { operation: origin.operation, recorded: origin.recorded });
        }
        let mut input = self.graph.inputs[floats + number];
        if let Some((axis, index)) = slice {
            let index = self.graph.add_value(Source::Sizes(vec![index]), ElementKind::Integer, Shape::scalar(), origin);
            let attributes = vec![("axis", Attribute::Integer(axis as i64))];
            input = self.add_integer_node("Gather", vec![input, index], attributes, values[0].shape().clone(), origin);
        }
        if values.iter().zip(lists).all(|(input, index)| input.shape() == index.shape()) {
            self.replace(value, input);
        } else {
            let shape =
                self.compute_sizes(&lists.iter().map(|index| sizes_of(index)).collect::<Vec<_>>(), true, origin)?;
            self.add_prologue_node(value, "Reshape", vec![input, shape], Vec::new());
        }
        Ok(true)
    }

    /// Returns a vector of integers that has the given values in the recordings. If `is_reshape`, a single integer that
    /// varies may be -1, which a reshape infers. Returns an error if the lists differ in length, or an integer is no
    /// linear function of the size of the dynamic dimension.
    fn compute_sizes(&mut self, lists: &[Vec<i64>], is_reshape: bool, origin: Origin) -> Result<ValueId> {
        let (first, count) = (&lists[0], lists[0].len());
        if lists.iter().any(|list| list.len() != count) {
            return Err(self.varies(origin));
        }
        let varying: Vec<usize> = (0..count).filter(|&k| lists.iter().any(|list| list[k] != first[k])).collect();
        if let ([one], true, false) = (&varying[..], is_reshape, first.contains(&0)) {
            let mut inferred = first.clone();
            inferred[*one] = -1;
            return Ok(self.integers(inferred, origin));
        }
        let mut slopes = vec![0; count];
        for &k in &varying {
            let points = lists.iter().zip(self.recordings).map(|(list, recording)| (recording.size as i64, list[k]));
            slopes[k] = slope(points).ok_or_else(|| self.varies(origin))?;
        }
        if varying.is_empty() {
            return Ok(self.integers(first.clone(), origin));
        }
        let size = self.recordings[0].size as i64;
        let offsets: Vec<i64> = first.iter().zip(&slopes).map(|(first, slope)| first - slope * size).collect();
        let (shape, mut computed) = (Shape::from([count]), self.dynamic_size(origin)?);
        if slopes != [1] {
            let slopes = self.integers(slopes, origin);
            computed = self.add_integer_node("Mul", vec![computed, slopes], Vec::new(), shape.clone(), origin);
        }
        if offsets.iter().any(|&rest| rest != 0) {
            let offsets = self.integers(offsets, origin);
            computed = self.add_integer_node("Add", vec![computed, offsets], Vec::new(), shape, origin);
        }
        Ok(computed)
    }

    /// Returns a vector of one element, the size of the dynamic dimension. Returns an error if no input has the dynamic
    /// dimension.
    fn dynamic_size(&mut self, origin: Origin) -> Result<ValueId> {
        if let Some(size) = self.dynamic_size {
            return Ok(size);
        }
        let axes = self.dynamic.map_or(&[][..], |dynamic| &dynamic.axes);
        let found = axes.iter().zip(&self.graph.inputs).find_map(|(&axis, &input)| Some((axis? as i64, input)));
        let Some((axis, input)) = found else { return Err(self.varies(origin)) };
        let attributes = vec![("start", Attribute::Integer(axis)), ("end", Attribute::Integer(axis + 1))];
        let size = self.add_integer_node("Shape", vec![input], attributes, Shape::from([1]), origin);
        self.dynamic_size = Some(size);
        Ok(size)
    }

    /// Appends a constant vector of integers.
    fn integers(&mut self, integers: Vec<i64>, origin: Origin) -> ValueId {
        let shape = Shape::from([integers.len()]);
        self.graph.add_value(Source::Sizes(integers), ElementKind::Integer, shape, origin)
    }

    /// Adds a node whose result is a tensor of integers to the prologue, and returns this result.
    fn add_integer_node(
        &mut self,
        operator: &'static str,
        inputs: Vec<ValueId>,
        attributes: Vec<(&'static str, Attribute)>,
        shape: Shape,
        origin: Origin,
    ) -> ValueId {
        let value = self.graph.add_value(Source::Node, ElementKind::Integer, shape, origin);
        self.add_prologue_node(value, operator, inputs, attributes);
        value
    }

    /// Adds a node whose result is `value` to the prologue, whose nodes run before the nodes of the recordings.
    fn add_prologue_node(
        &mut self,
        value: ValueId,
        operator: &'static str,
        inputs: Vec<ValueId>,
        attributes: Vec<(&'static str, Attribute)>,
    ) {
        let origin = self.graph.values[value].origin;
        self.graph.values[value].source = Source::Node;
        self.prologue.push(Node { operator, inputs, output: value, attributes, origin });
    }

    /// Makes all nodes read `new` in the place of `old`.
    fn replace(&mut self, old: ValueId, new: ValueId) {
        for &node in &self.readers[old] {
            let inputs = self.graph.nodes[node].inputs.iter_mut();
            inputs.filter(|input| **input == old).for_each(|input| *input = new);
        }
    }

    /// Returns the error that data of `origin` differs between the recordings.
    fn varies(&self, origin: Origin) -> Error {
        varies_error(origin, self.dynamic)
    }
}

/// Returns the error that data of an operation differs between the recordings.
fn varies_error(Origin { operation, recorded }: Origin, dynamic: Option<&Dynamic>) -> Error {
    Error::Varies { operation, recorded, dynamic: dynamic.map(|dynamic| dynamic.name.clone()) }
}

/// An integer input or a slice of one.
struct InputPart {
    /// The dimension and the index of the slice, or `None` for the whole input.
    slice: Option<(usize, i64)>,
    /// The values in the recordings.
    values: Vec<Tensor<i64>>,
}

/// Returns true if each tensor has the elements of the tensor at the same position in `lists`, in row-major order.
fn have_elements(values: &[Tensor<i64>], lists: &[&Tensor<i64>]) -> bool {
    values.iter().zip(lists).all(|(value, index)| value.iter().eq(index.iter()))
}

/// Returns the parts of one integer input that have the elements of `lists` in every recording of the model. `inputs` has the value of the
/// input in each recording, and `lists` has the elements to find in each recording. If the whole input matches, it is the only part.
/// Otherwise the parts are all slices that match.
fn find_matching_parts(inputs: Vec<Tensor<i64>>, lists: &[&Tensor<i64>]) -> Vec<InputPart> {
    if have_elements(&inputs, lists) {
        return vec![InputPart { slice: None, values: inputs }];
    }
    let mut parts = Vec::new();
    for (axis, &count) in inputs[0].shape().iter().enumerate() {
        for index in 0..count {
            let slice = |input: &Tensor<i64>| input.try_select(axis as isize, index as isize).ok();
            // The dimension may be smaller in another recording.
            let Some(values) = inputs.iter().map(slice).collect::<Option<Vec<_>>>() else { break };
            if have_elements(&values, lists) {
                parts.push(InputPart { slice: Some((axis, index as i64)), values });
            }
        }
    }
    parts
}

/// Returns the slope of the line through the points, or `None` if they are on no line with an integer slope.
fn slope(points: impl Iterator<Item = (i64, i64)> + Clone) -> Option<i64> {
    let (x, y) = points.clone().next()?;
    let (other_x, other_y) = points.clone().find(|&(other, _)| other != x)?;
    let (rise, run) = (other_y.checked_sub(y)?, other_x - x);
    let slope = (rise % run == 0).then_some(rise / run)?;
    points
        .clone()
        .all(|(px, py)| slope.checked_mul(px - x).and_then(|rise| rise.checked_add(y)) == Some(py))
        .then_some(slope)
}

/// Returns true if the tensors have the same shape and the same bits. So NaNs with the same bits are equal. A signaling NaN of f32 also
/// equals the quiet NaN with otherwise the same bits.
fn is_equal<E: wengert_tensor::Element>(x: &Tensor<E>, y: &Tensor<E>) -> bool {
    // Different floats have different bits as f64, except that a signaling NaN of f32 becomes a quiet NaN. Large integers may be rounded to the same f64, so integers are also compared by `==`.
    let is_same = |(x, y): (E, E)| x.to_f64().to_bits() == y.to_f64().to_bits() && (E::DTYPE.is_float() || x == y);
    x.shape() == y.shape() && (x.shares_storage(y) && x.layout() == y.layout() || x.iter().zip(y.iter()).all(is_same))
}

/// Returns true if all elements are `number`.
fn has_only<T: Float>(data: &Tensor<T>, number: T) -> bool {
    data.iter().all(|element| element.to_f64().to_bits() == number.to_f64().to_bits())
}

/// Returns the sizes of a tensor as integers.
fn sizes_of<E: wengert_tensor::Element>(tensor: &Tensor<E>) -> Vec<i64> {
    tensor.shape().iter().map(|&size| size as i64).collect()
}

/// Returns the integers of a source of sizes, or `None` for another source.
fn sizes_in<T: Float>(source: &Source<T>) -> Option<Vec<i64>> {
    match source {
        Source::Sizes(sizes) => Some(sizes.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::Tensor;

    use super::{Size, classify_size, is_equal, slope};

    #[test]
    fn equal_tensors_have_the_same_bits() {
        let large = 1i64 << 53;
        assert!(is_equal(&Tensor::from([large + 1]), &Tensor::from([large + 1])));
        assert!(!is_equal(&Tensor::from([large]), &Tensor::from([large + 1])));
        assert!(is_equal(&Tensor::from([f32::NAN]), &Tensor::from([f32::NAN])));
        assert!(!is_equal(&Tensor::from([0.0]), &Tensor::from([-0.0])));
    }

    #[test]
    fn sizes_are_linear_functions_of_the_dynamic_size() {
        assert_eq!(slope([(2, 7), (3, 10), (5, 16)].into_iter()), Some(3));
        assert_eq!(slope([(2, 4), (3, 9), (5, 25)].into_iter()), None);
        assert_eq!(slope([(2, 4), (2, 5)].into_iter()), None);
        assert_eq!(slope([(2, i64::MIN), (3, i64::MAX)].into_iter()), None);
        assert_eq!(classify_size([(4, 2), (4, 3)].into_iter()), Size::Fixed(4));
        assert_eq!(classify_size([(2, 2), (3, 3)].into_iter()), Size::Dynamic);
        assert_eq!(classify_size([(4, 2), (6, 3)].into_iter()), Size::Computed);
    }
}
