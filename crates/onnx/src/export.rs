//! The public interface: records a model, and writes the program as a file.

use std::path::Path;

use wengert_autograd::{Tape, Var};
use wengert_nn::{Module, write_atomically};
use wengert_tensor::{Float, Tensor};

use crate::encode::{self, Names};
use crate::error::{Error, Result};
use crate::example;
use crate::graph::{ElementKind, Graph, Source};
use crate::lower::lower;
use crate::names::{ModelNames, assign_names};
use crate::unify::{Dynamic, Recording, unify};

/// The sizes of a dynamic dimension in the recordings. Three sizes show whether a size of the program is a linear function of the dynamic
/// size. The large one shows a limit, such as `min(n, 64)`. None is 1, because a dimension of size 1 broadcasts.
const DYNAMIC_SIZES: [usize; 4] = [2, 3, 5, 67];

/// One entry for each recording of a model without a dynamic dimension. The entries are not used. The first two
/// recordings may have the same order of the elements by size, so a third can show a dependence on this order.
const FIXED_SIZES: [usize; 3] = [0; 3];

/// The export of a model as an ONNX file.
///
/// [`write`](Self::write) calls a function that records the model for inference, on a tape that does not train. The function is called
/// several times with different inputs, and the recorded programs are compared. So a choice of operations that depends on the values of an
/// input is usually an error. So is a constant that depends on them. A dependence that these inputs do not show is not noticed.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_onnx as onnx; pub use wengert_nn::prelude::*; pub mod prelude {
/// # pub use wengert_autograd::prelude::*; pub use wengert_nn::prelude::*; } }
/// use wengert::onnx::Export;
/// use wengert::prelude::*;
///
/// #[derive(Module)]
/// struct Mlp {
///     fc1: Linear,
///     fc2: Linear,
/// }
///
/// let generator = &mut Generator::new(0);
/// let model = Mlp { fc1: Linear::new(64, 32, generator), fc2: Linear::new(32, 10, generator) };
/// let folder = tempfile::tempdir()?;
/// let example = Tensor::rand([1, 64], generator);
/// Export::new().model(&model).batch("batch").write(
///     folder.path().join("digits.onnx"),
///     [("pixels", &example)],
///     ["scores"],
///     |_tape, [pixels]| [model.fc2.forward(model.fc1.forward(pixels).relu())],
/// )?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// In Python: `onnxruntime.InferenceSession("digits.onnx").run(None, {"pixels": pixels})`.
///
/// # Dimensions
///
/// All shapes are fixed, unless [`batch`](Self::batch) or [`dynamic`](Self::dynamic) makes one dimension dynamic.
///
/// # Limits
///
/// The file has the operators of version 18 of ONNX, and has at most 2 GiB. Checks of values while a model runs, such as the range of
/// probabilities in a loss, are left out. The page `docs/guide/exporting.md` in the repository lists the operations without a form in ONNX.
#[derive(Clone, Debug)]
#[must_use]
pub struct Export<T: Float = f32> {
    name: String,
    model: ModelNames<T>,
    dynamic: Option<(String, DynamicAxes)>,
}

/// The dimensions of the inputs that are dynamic.
#[derive(Clone, Debug)]
enum DynamicAxes {
    First,
    List(Vec<(String, usize)>),
}

/// The function that records the model. It gets the tape, the variables of the inputs and the integer inputs, and returns the outputs.
type Record<'r, T> = dyn for<'t> Fn(&'t Tape<T>, &[Var<'t, T>], &'t [Tensor<i64>]) -> Vec<Var<'t, T>> + 'r;

/// The names and examples of the inputs, and the names of the outputs.
struct Interface<'i, T: Float> {
    inputs: &'i [(&'i str, &'i Tensor<T>)],
    indices: &'i [(&'i str, &'i Tensor<i64>)],
    outputs: &'i [&'i str],
}

impl<T: Float> Export<T> {
    /// Returns an export with fixed shapes.
    ///
    /// ```
    /// # mod wengert { pub use wengert_onnx as onnx; pub use wengert_autograd::prelude; }
    /// use wengert::onnx::Export;
    /// use wengert::prelude::*;
    ///
    /// let x = Tensor::<f64>::zeros([3]);
    /// let bytes = Export::new().to_bytes([("x", &x)], ["y"], |_, [x]| [x.exp()])?;
    /// assert!(bytes.len() < 200);
    /// # Ok::<(), wengert::onnx::Error>(())
    /// ```
    pub fn new() -> Self {
        Export { name: "model".to_owned(), model: ModelNames::default(), dynamic: None }
    }

    /// Sets the name of the graph in the file.
    ///
    /// ```
    /// # mod wengert { pub use wengert_onnx as onnx; pub use wengert_autograd::prelude; }
    /// use wengert::onnx::Export;
    /// use wengert::prelude::*;
    ///
    /// let x = Tensor::<f32>::zeros([3]);
    /// let bytes = Export::new().name("halves").to_bytes([("x", &x)], ["y"], |_, [x]| [x / 2.0])?;
    /// assert!(bytes.windows(6).any(|part| part == b"halves"));
    /// # Ok::<(), wengert::onnx::Error>(())
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Gives the parameters and buffers in the file their paths in `model`, such as `fc1.weight`. Other constants have numbered names.
    ///
    /// ```
    /// # mod wengert { pub use wengert_onnx as onnx; pub mod prelude {
    /// # pub use wengert_autograd::prelude::*; pub use wengert_nn::prelude::*; } }
    /// use wengert::onnx::Export;
    /// use wengert::prelude::*;
    ///
    /// let model: Linear = Linear::new(3, 2, &mut Generator::new(0));
    /// let x = Tensor::zeros([1, 3]);
    /// let bytes = Export::new().model(&model).to_bytes([("x", &x)], ["y"], |_, [x]| [model.forward(x)])?;
    /// assert!(bytes.windows(6).any(|part| part == b"weight"));
    /// # Ok::<(), wengert::onnx::Error>(())
    /// ```
    pub fn model(mut self, model: &impl Module<T>) -> Self {
        self.model = ModelNames::from_model(model);
        self
    }

    /// Makes the first dimension of every input dynamic, with the name `name`: it has one size for all inputs, which is not known before
    /// the file is used.
    ///
    /// The model is recorded with the sizes 2, 3, 5 and 67 of this dimension. Every size in the program must be a linear function of
    /// the dynamic size. The file serves all sizes from 1, if the model treats them as it treats these sizes. A special case for other sizes
    /// is not noticed.
    ///
    /// ```
    /// # mod wengert { pub use wengert_onnx as onnx; pub use wengert_autograd::prelude; }
    /// use wengert::onnx::{Error, Export};
    /// use wengert::prelude::*;
    ///
    /// let x = Tensor::<f64>::ones([1, 4]);
    /// let export = Export::new().batch("n");
    /// let sums = export.to_bytes([("x", &x)], ["sums"], |_, [x]| [x.sum(1)]); // [n]
    /// assert!(sums.is_ok());
    /// // The mean over the batch divides by its size, which is a number of the recorded program.
    /// let means = export.to_bytes([("x", &x)], ["means"], |_, [x]| [x.mean(0)]);
    /// assert!(matches!(means, Err(Error::Varies { .. })));
    /// ```
    pub fn batch(mut self, name: impl Into<String>) -> Self {
        self.dynamic = Some((name.into(), DynamicAxes::First));
        self
    }

    /// Makes one dimension of some inputs dynamic, like [`batch`](Self::batch). `dimensions` has the names of these inputs, each with the
    /// number of its dimension.
    ///
    /// ```
    /// # mod wengert { pub use wengert_onnx as onnx; pub use wengert_autograd::prelude; }
    /// use wengert::onnx::Export;
    /// use wengert::prelude::*;
    ///
    /// // A state [layers, n, width] has the batch as its second dimension.
    /// let (x, state) = (Tensor::<f64>::ones([2, 4]), Tensor::ones([1, 2, 4]));
    /// let export = Export::new().dynamic("n", [("x", 0), ("state", 1)]);
    /// export.to_bytes([("x", &x), ("state", &state)], ["y"], |_, [x, state]| [x + state.select(0, 0)])?;
    /// # Ok::<(), wengert::onnx::Error>(())
    /// ```
    pub fn dynamic<'a>(
        mut self,
        name: impl Into<String>,
        dimensions: impl IntoIterator<Item = (&'a str, usize)>,
    ) -> Self {
        let list = dimensions.into_iter().map(|(input, axis)| (input.to_owned(), axis)).collect();
        self.dynamic = Some((name.into(), DynamicAxes::List(list)));
        self
    }

    /// Adds inputs of integers (i64), each with its name and an example. The function that records the model gets them as a third argument,
    /// in the same order.
    ///
    /// The whole integer input, or each of its slices (`select`), may be the index of [`Embedding`](wengert_nn::Embedding), `embedding` or
    /// `index_select`. An example has at least two different values, or one value above 0. The slices that the
    /// model reads must differ in the example.
    ///
    /// ```
    /// # mod wengert { pub use wengert_onnx as onnx; pub mod prelude {
    /// # pub use wengert_autograd::prelude::*; pub use wengert_nn::prelude::*; } }
    /// use wengert::onnx::Export;
    /// use wengert::prelude::*;
    ///
    /// let model: Embedding = Embedding::new(10, 4, &mut Generator::new(0));
    /// let tokens = Tensor::from([[1i64, 7, 2]]); // [batch, time]
    /// let bytes = Export::new()
    ///     .model(&model)
    ///     .batch("batch")
    ///     .indices([("tokens", &tokens)])
    ///     .to_bytes([], ["rows"], |tape, [], [tokens]| [model.forward(tape, tokens)])?;
    /// # let _ = bytes;
    /// # Ok::<(), wengert::onnx::Error>(())
    /// ```
    pub fn indices<'i, const K: usize>(self, inputs: [(&'i str, &'i Tensor<i64>); K]) -> IndexExport<'i, T, K> {
        IndexExport { export: self, indices: inputs }
    }

    /// Records the model and writes it to the file `path`, completely or not at all.
    ///
    /// `inputs` has a name and an example for each input, and `outputs` a name for each output. `record` gets a tape and the variables of
    /// the inputs, and returns the variables of the outputs. It must record the same operations in every call. Inputs may have gradients,
    /// so the outputs may contain derivatives.
    ///
    /// # Errors
    ///
    /// If an operation has no form in ONNX ([`Error::Unsupported`]), or the program depends on the values of an input
    /// outside of the recorded operations ([`Error::Varies`], [`Error::Structure`]). If a dynamic dimension does not
    /// exist or has size 0, a name is empty or occurs twice, or an output is on another tape. If the file would exceed
    /// 2 GiB or cannot be written, or there is not enough memory.
    ///
    /// # Panics
    ///
    /// If `record` panics, for example because the shapes of the examples do not fit the model.
    pub fn write<const N: usize, const M: usize>(
        &self,
        path: impl AsRef<Path>,
        inputs: [(&str, &Tensor<T>); N],
        outputs: [&str; M],
        record: impl for<'t> Fn(&'t Tape<T>, [Var<'t, T>; N]) -> [Var<'t, T>; M],
    ) -> Result<()> {
        Ok(write_atomically(path, &self.to_bytes(inputs, outputs, record)?)?)
    }

    /// Does the same as [`write`](Self::write), but returns the bytes of the file.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write), except that no file is written.
    ///
    /// # Panics
    ///
    /// If `record` panics.
    pub fn to_bytes<const N: usize, const M: usize>(
        &self,
        inputs: [(&str, &Tensor<T>); N],
        outputs: [&str; M],
        record: impl for<'t> Fn(&'t Tape<T>, [Var<'t, T>; N]) -> [Var<'t, T>; M],
    ) -> Result<Vec<u8>> {
        const { assert!(M > 0, "a model has an output") };
        let interface = Interface { inputs: &inputs, indices: &[], outputs: &outputs };
        self.encode(&interface, &|tape, vars, _| record(tape, std::array::from_fn(|k| vars[k])).to_vec())
    }

    fn encode(&self, interface: &Interface<'_, T>, record: &Record<'_, T>) -> Result<Vec<u8>> {
        let dynamic = self.dynamic_axes(interface)?;
        if self.name.is_empty() || dynamic.as_ref().is_some_and(|dynamic| dynamic.name.is_empty()) {
            return Err(Error::Name { name: String::new() });
        }
        let recording_sizes: &[usize] = if dynamic.is_some() { &DYNAMIC_SIZES } else { &FIXED_SIZES };
        let recording_sizes = recording_sizes.iter().enumerate();
        let recordings = recording_sizes
            .map(|(recording, &size)| record_graph(interface, record, dynamic.as_ref(), recording, size));
        let unified = unify(recordings.collect::<Result<Vec<_>>>()?, dynamic.as_ref())?;
        let graph = make_outputs_distinct(unified.graph);
        let input_names =
            interface.inputs.iter().map(|input| input.0).chain(interface.indices.iter().map(|input| input.0));
        let (values, is_path) = assign_names(&graph, &input_names.collect::<Vec<_>>(), interface.outputs, &self.model)?;
        let dynamic = dynamic.as_ref().map(|dynamic| dynamic.name.as_str());
        encode::encode_model(&graph, &unified.sizes, Names { graph: &self.name, values, is_path, dynamic })
    }

    /// Returns the dynamic dimension of each input, or `None` if the export has no dynamic dimension. Returns an error
    /// if no input has a name that was given to [`dynamic`](Self::dynamic).
    fn dynamic_axes(&self, interface: &Interface<'_, T>) -> Result<Option<Dynamic>> {
        let Some((name, axes)) = &self.dynamic else { return Ok(None) };
        let inputs: Vec<&str> =
            interface.inputs.iter().map(|input| input.0).chain(interface.indices.iter().map(|input| input.0)).collect();
        let axes = match axes {
            DynamicAxes::First => vec![Some(0); inputs.len()],
            DynamicAxes::List(list) => {
                let mut axes = vec![None; inputs.len()];
                for (input, axis) in list {
                    match inputs.iter().position(|known| known == input) {
                        Some(position) => axes[position] = Some(*axis),
                        None => return Err(Error::NoDimension { input: input.clone(), axis: *axis }),
                    }
                }
                axes
            }
        };
        Ok(Some(Dynamic { name: name.clone(), axes }))
    }
}

impl<T: Float> Default for Export<T> {
    fn default() -> Self {
        Export::new()
    }
}

/// An [`Export`] with inputs of integers, made by [`Export::indices`].
///
/// ```
/// # mod wengert { pub use wengert_onnx as onnx; pub mod prelude {
/// # pub use wengert_autograd::prelude::*; pub use wengert_nn::prelude::*; } }
/// use wengert::onnx::Export;
/// use wengert::prelude::*;
///
/// let table = Tensor::from([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]]);
/// let (rows, scale) = (Tensor::from([2i64, 0]), Tensor::ones([2]));
/// let bytes = Export::new().indices([("rows", &rows)]).to_bytes([("scale", &scale)], ["y"], |tape, [scale], [rows]| {
///     [tape.constant(&table).index_select(0, rows) * scale]
/// })?;
/// # let _ = bytes;
/// # Ok::<(), wengert::onnx::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct IndexExport<'i, T: Float, const K: usize> {
    export: Export<T>,
    indices: [(&'i str, &'i Tensor<i64>); K],
}

impl<T: Float, const K: usize> IndexExport<'_, T, K> {
    /// Does the same as [`Export::write`]. `record` gets the integer inputs as its third argument.
    ///
    /// # Errors
    ///
    /// As for [`Export::write`]. Also if the program reads an integer input in another way than
    /// [`indices`](Export::indices) describes, or two integer inputs or slices have the same values. Also if no second example can be made
    /// from an example of integers.
    ///
    /// # Panics
    ///
    /// If `record` panics.
    pub fn write<const N: usize, const M: usize>(
        &self,
        path: impl AsRef<Path>,
        inputs: [(&str, &Tensor<T>); N],
        outputs: [&str; M],
        record: impl for<'t> Fn(&'t Tape<T>, [Var<'t, T>; N], [&'t Tensor<i64>; K]) -> [Var<'t, T>; M],
    ) -> Result<()> {
        Ok(write_atomically(path, &self.to_bytes(inputs, outputs, record)?)?)
    }

    /// Does the same as [`write`](Self::write), but returns the bytes of the file.
    ///
    /// # Errors
    ///
    /// As for [`write`](Self::write), except that no file is written.
    ///
    /// # Panics
    ///
    /// If `record` panics.
    pub fn to_bytes<const N: usize, const M: usize>(
        &self,
        inputs: [(&str, &Tensor<T>); N],
        outputs: [&str; M],
        record: impl for<'t> Fn(&'t Tape<T>, [Var<'t, T>; N], [&'t Tensor<i64>; K]) -> [Var<'t, T>; M],
    ) -> Result<Vec<u8>> {
        const { assert!(M > 0, "a model has an output") };
        let interface = Interface { inputs: &inputs, indices: &self.indices, outputs: &outputs };
        self.export.encode(&interface, &|tape, vars, indices| {
            record(tape, std::array::from_fn(|k| vars[k]), std::array::from_fn(|k| &indices[k])).to_vec()
        })
    }
}

/// Records the model once, with inputs that are made from the examples. The inputs differ for each `recording`, and their dynamic
/// dimension has the size `size`. Returns an error if an input cannot be made from its example, an output is on another
/// tape, or an operation has no form in ONNX.
fn record_graph<T: Float>(
    interface: &Interface<'_, T>,
    record: &Record<'_, T>,
    dynamic: Option<&Dynamic>,
    recording: usize,
    size: usize,
) -> Result<Recording<T>> {
    let axis = |input: usize| dynamic.and_then(|dynamic| dynamic.axes[input]);
    let mut inputs = Vec::new();
    for (position, &(name, x)) in interface.inputs.iter().enumerate() {
        let x = match axis(position) {
            Some(axis) => example::resize(name, x, axis, size)?,
            None => x.clone(),
        };
        inputs.push(example::vary_numbers(&x, recording)?);
    }
    let mut indices = Vec::new();
    for (position, &(name, x)) in interface.indices.iter().enumerate() {
        let x = match axis(inputs.len() + position) {
            Some(axis) => example::resize(name, x, axis, size)?,
            None => x.clone(),
        };
        indices.push(example::vary_indices(name, &x, recording)?);
    }
    let tape = Tape::new();
    let vars: Vec<Var<'_, T>> = inputs.iter().map(|input| tape.var(input)).collect();
    let outputs = record(&tape, &vars, &indices);
    for (output, name) in outputs.iter().zip(interface.outputs) {
        if !std::ptr::eq(output.tape(), &tape) {
            return Err(Error::OtherTape { output: (*name).to_owned() });
        }
    }
    let [inputs, outputs] = [&vars, &outputs].map(|vars| vars.iter().map(|var| var.node()).collect::<Vec<_>>());
    let graph = lower(&tape.program(), &inputs, &outputs)?;
    Ok(Recording { graph, indices, size })
}

/// Returns the graph with a node of its own for each output. An output that is an input, a constant or an earlier output is copied.
fn make_outputs_distinct<T: Float>(mut graph: Graph<T>) -> Graph<T> {
    for number in 0..graph.outputs.len() {
        let value = graph.outputs[number];
        let is_node = matches!(graph.values[value].source, Source::Node);
        if !is_node || graph.outputs[..number].contains(&value) {
            let (shape, origin) = (graph.values[value].shape.clone(), graph.values[value].origin);
            graph.outputs[number] =
                graph.add_node("Identity", &[value], Vec::new(), (ElementKind::Float, shape), origin);
        }
    }
    graph
}
