//! The trait of modules.
//!
//! A module is a tree whose leaves are parameters and buffers. A module lists its children with their names. Paths of parameters, counts,
//! checkpoints and optimisers all use this list. The forward pass is not part of the trait; see [`Layer`](crate::Layer).

use std::collections::HashMap;

use wengert_autograd::{Gradients, Parameter, Tape};
pub use wengert_macros::Module;
use wengert_macros::{precompiled, twins};
use wengert_tensor::{Float, Shape, Tensor};

use crate::module::leaf::{AnyBuffer, Leaf, LeafMut, update_buffer};
use crate::module::table::write_table;
use crate::trace::ModuleKey;
use crate::{Error, Result, trace};

/// The conversion of any module to `dyn Module`, which lets one compiled function serve all modules. Every module implements this trait.
#[doc(hidden)]
pub trait AsModule<T: Float> {
    /// Returns the module as `dyn Module`.
    fn as_module(&self) -> &(dyn Module<T> + '_);
    /// Returns the module as `dyn Module` that can be changed.
    fn as_module_mut(&mut self) -> &mut (dyn Module<T> + '_);
}

impl<T: Float, M: Module<T>> AsModule<T> for M {
    fn as_module(&self) -> &(dyn Module<T> + '_) {
        self
    }

    fn as_module_mut(&mut self) -> &mut (dyn Module<T> + '_) {
        self
    }
}

/// A module: a layer or a model with parameters. PyTorch: `torch.nn.Module`.
///
/// `#[derive(Module)]` implements the trait for a struct whose fields are modules: layers, parameters, buffers, and `Vec`, `BTreeMap`,
/// `Option`, `Box`, arrays and tuples of them. Paths come from the names of the fields, as in PyTorch's `state_dict`. If a tuple struct has
/// a single module, this module adds no name to the path. Fields of plain data are not part of the module: numbers, `bool`, text,
/// `PathBuf`, `Duration`, `PhantomData`, and `Option`, `Vec`, `Box`, arrays and tuples of them. Mark other fields that are not modules with
/// `#[module(skip)]`. The derive takes the element type from the types of the fields: a struct with a `Parameter<f64>` is a `Module<f64>`.
/// For a struct whose fields are other structs with parameters of f64, write `#[module(f64)]`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::{Generator, Linear, Module};
///
/// #[derive(Module)]
/// struct Mlp {
///     layers: Vec<Linear>,
///     head: Option<Linear>,
///     width: usize,
/// }
///
/// let generator = &mut Generator::new(0);
/// let layers = vec![Linear::new(64, 32, generator), Linear::new(32, 32, generator)];
/// let mut model = Mlp { layers, head: Some(Linear::new(32, 10, generator)), width: 32 };
/// let paths: Vec<String> = model.named_parameters().into_iter().map(|(path, _)| path).collect();
/// assert_eq!(paths[..3], ["layers.0.weight", "layers.0.bias", "layers.1.weight"]);
/// assert_eq!(model.num_parameters(), 64 * 32 + 32 + 32 * 32 + 32 + 32 * 10 + 10);
///
/// model.freeze("layers"); // only the head is trained from now on
/// assert!(model.layers[0].weight.is_frozen());
/// ```
///
/// Each method reads the fields of the struct anew, and nothing is cached or registered. The order of the parameters is always the order of the
/// fields.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no module with elements of `{T}`",
    label = "neither a layer, a parameter nor a buffer of `{T}`, nor a struct of them with `#[derive(Module)]`",
    note = "write `#[derive(Module)]` above the struct that has the layers as its fields",
    note = "write `#[module(skip)]` above a field that is not part of the model; put a tensor into a `Parameter` or a `Buffer`",
    note = "write `#[module(f64)]` above a struct whose fields are structs of f64"
)]
#[doc(alias("ModuleList", "ModuleDict", "ParameterList", "ParameterDict"))]
#[twins]
pub trait Module<T: Float = f32>: AsModule<T> {
    /// Returns the name of the module's type without its path and generic parameters, for tables and errors.
    fn kind(&self) -> &'static str {
        short_name(std::any::type_name::<Self>())
    }

    /// Returns the name of the module's type with its path and generic parameters. Hooks and [`summary_with`](Self::summary_with) find a module by
    /// its address and this name. A pointer to a module and `Some` return the name of the module that they contain.
    #[doc(hidden)]
    fn type_name(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Calls `each` with the name of each child and the child, always in the same order.
    fn children<'m>(&'m self, _each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {}

    /// Calls `each` with the name of each child and a mutable reference to the child, in the order of [`children`](Self::children).
    fn children_mut<'m>(&'m mut self, _each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {}

    /// Returns the module as a leaf if the module is a parameter or a buffer, otherwise `None`.
    fn leaf(&self) -> Option<Leaf<'_, T>> {
        None
    }

    /// Returns the module as a mutable leaf if the module is a parameter or a buffer, otherwise `None`.
    fn leaf_mut(&mut self) -> Option<LeafMut<'_, T>> {
        None
    }

    /// Returns all parameters and buffers with their paths, for example `encoder.layers.0.weight`.
    fn leaves(&self) -> Vec<(String, Leaf<'_, T>)> {
        leaves(self.as_module())
    }

    /// Returns all parameters and buffers with their paths, in the order of [`leaves`](Self::leaves), as mutable references.
    fn leaves_mut(&mut self) -> Vec<(String, LeafMut<'_, T>)> {
        leaves_mut(self.as_module_mut())
    }

    /// Returns all parameters, also the frozen ones, always in the same order.
    fn parameters(&self) -> Vec<&Parameter<T>> {
        parameters(self.as_module())
    }

    /// Returns all parameters in the order of [`parameters`](Self::parameters), as mutable references.
    fn parameters_mut(&mut self) -> Vec<&mut Parameter<T>> {
        parameters_mut(self.as_module_mut())
    }

    /// Returns all parameters with their paths. PyTorch: `named_parameters`.
    fn named_parameters(&self) -> Vec<(String, &Parameter<T>)> {
        named_parameters(self.as_module())
    }

    /// Returns all buffers with their paths. PyTorch: `named_buffers`.
    fn named_buffers(&self) -> Vec<(String, &dyn AnyBuffer)> {
        named_buffers(self.as_module())
    }

    /// Returns the total number of elements of all parameters, also of the frozen ones.
    fn num_parameters(&self) -> usize {
        num_parameters(self.as_module())
    }

    /// Returns the elements of all parameters as one vector, in the order of [`parameters`](Self::parameters). PyTorch: `parameters_to_vector`.
    fn to_vector(&self) -> Tensor<T> {
        to_vector(self.as_module())
    }

    /// Returns a table of all parameters and buffers: the path, the kind of the module that contains the leaf, the shape, and the number of
    /// elements. The last line has the total numbers of elements of all parameters and of the frozen ones, without buffers.
    fn summary(&self) -> String {
        summary(self.as_module())
    }

    /// Returns a table of the layers: the path, the kind, the shape of the last output while `forward` runs, and a count. The count is the
    /// number of elements of the layer's own parameters, without layers inside the layer. A layer is left out if it has no output, and no
    /// parameters or buffers of its own. The last line has the total numbers of elements of all parameters and of the frozen ones. `forward`
    /// gets a new evaluating tape. Recording operations on it determines the shapes, so no values are computed. PyTorch: the package
    /// `torchinfo`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Generator, Layer, Linear, Module, ReLU, Sequential};
    ///
    /// let generator = &mut Generator::new(0);
    /// let model: Sequential =
    ///     Sequential::new().add(Linear::new(64, 32, generator)).add(ReLU).add(Linear::new(32, 10, generator));
    /// let table = model.summary_with(|tape| {
    ///     model.forward(tape.constant(&Tensor::zeros([5, 64])));
    /// });
    /// assert!(table.contains("Linear      [5, 32]  2080"), "{table}");
    /// ```
    fn summary_with(&self, forward: impl FnOnce(&Tape<T>)) -> String
    where
        Self: Sized,
    {
        summary_of_outputs(self.as_module(), &trace::record_output_shapes(|| forward(&Tape::new())))
    }

    /// Returns the path of the first parameter whose gradient has an infinite or NaN element, or `None` if all gradients are finite.
    fn first_non_finite(&self, gradients: &Gradients<T>) -> Option<String> {
        first_non_finite(self.as_module(), gradients)
    }

    /// Freezes the parameters at or below `path`, or all parameters if `path` is empty. A tape records a frozen parameter as a constant, so it
    /// gets no gradient. PyTorch: `requires_grad_(False)`.
    ///
    /// # Panics
    ///
    /// If no parameter is at or below `path`.
    #[track_caller]
    fn freeze(&mut self, path: &str) {
        self.set_frozen(path, true);
    }

    /// Unfreezes the parameters at or below `path`, or all parameters if `path` is empty, so that they are trained again.
    ///
    /// # Panics
    ///
    /// If no parameter is at or below `path`.
    #[track_caller]
    fn unfreeze(&mut self, path: &str) {
        self.set_frozen(path, false);
    }

    /// Freezes the parameters at or below `path`, or unfreezes them if `frozen` is false.
    ///
    /// # Errors
    ///
    /// If no parameter is at or below `path`.
    fn try_set_frozen(&mut self, path: &str, frozen: bool) -> Result<()> {
        set_frozen(self.as_module_mut(), path, frozen)
    }

    /// Sets the elements of all parameters from one vector, in the order of [`parameters`](Self::parameters). PyTorch: `vector_to_parameters`.
    ///
    /// # Errors
    ///
    /// If `vector` does not have [`num_parameters`](Self::num_parameters) elements, or there is not enough memory.
    fn try_set_from_vector(&mut self, vector: &Tensor<T>) -> Result<()> {
        set_from_vector(self.as_module_mut(), vector)
    }
}

/// Returns the name of a type without its path and generic parameters: `Linear` for `wengert_nn::Linear<f32>`. The path may have generic parameters
/// too, as in `<model::Maker as Make>::make::Linear<f32>`, the name of a type that is defined in a method.
fn short_name(name: &'static str) -> &'static str {
    let (mut depth, mut start, mut end, mut previous) = (0, 0, None, ' ');
    for (position, character) in name.char_indices() {
        match character {
            '<' | '[' | '(' => {
                // Generic parameters begin here. So the type's name ends here, unless another part of the path follows.
                end = end.or((depth == 0).then_some(position));
                depth += 1;
            }
            ']' | ')' => depth -= 1,
            // The arrow of a function's type is not a bracket.
            '>' if previous != '-' => depth -= 1,
            ':' if depth == 0 => (start, end) = (position + 1, None),
            _ => {}
        }
        previous = character;
    }
    &name[start..end.unwrap_or(name.len())]
}

#[precompiled]
fn leaves<'m, T: Float>(module: &'m dyn Module<T>) -> Vec<(String, Leaf<'m, T>)> {
    let mut leaves = Vec::new();
    walk_with_owners(module, "", &mut String::new(), &mut |path, _, leaf| leaves.push((path.to_owned(), leaf)));
    leaves
}

#[precompiled]
fn leaves_mut<'m, T: Float>(module: &'m mut dyn Module<T>) -> Vec<(String, LeafMut<'m, T>)> {
    let mut leaves = Vec::new();
    walk_mut(module, &mut String::new(), &mut |path, leaf| leaves.push((path.to_owned(), leaf)));
    leaves
}

#[precompiled]
fn named_parameters<'m, T: Float>(module: &'m dyn Module<T>) -> Vec<(String, &'m Parameter<T>)> {
    leaves(module).into_iter().filter_map(|(path, leaf)| Some((path, leaf.parameter()?))).collect()
}

#[precompiled]
fn parameters<'m, T: Float>(module: &'m dyn Module<T>) -> Vec<&'m Parameter<T>> {
    leaves(module).into_iter().filter_map(|(_, leaf)| leaf.parameter()).collect()
}

#[precompiled]
fn parameters_mut<'m, T: Float>(module: &'m mut dyn Module<T>) -> Vec<&'m mut Parameter<T>> {
    leaves_mut(module).into_iter().filter_map(|(_, leaf)| leaf.parameter()).collect()
}

#[precompiled]
fn named_buffers<'m, T: Float>(module: &'m dyn Module<T>) -> Vec<(String, &'m dyn AnyBuffer)> {
    let buffers = leaves(module).into_iter().filter_map(|(path, leaf)| match leaf {
        Leaf::Buffer(buffer) => Some((path, buffer)),
        Leaf::Parameter(_) => None,
    });
    buffers.collect()
}

#[precompiled]
fn num_parameters<T: Float>(module: &dyn Module<T>) -> usize {
    parameters(module).iter().map(|parameter| parameter.value.numel()).sum()
}

#[precompiled]
fn to_vector<T: Float>(module: &dyn Module<T>) -> Tensor<T> {
    let values: Vec<T> = parameters(module).iter().flat_map(|parameter| parameter.value.to_vec()).collect();
    let length = values.len();
    Tensor::from_vec(values, [length])
}

#[precompiled]
fn summary<T: Float>(module: &dyn Module<T>) -> String {
    let mut rows = vec![["path", "of", "shape", "count"].map(str::to_owned)];
    walk_with_owners(module, module.kind(), &mut String::new(), &mut |path, owner, leaf| {
        let (shape, note) = match &leaf {
            Leaf::Parameter(parameter) if parameter.is_frozen() => (parameter.value.shape().clone(), ", frozen"),
            Leaf::Parameter(parameter) => (parameter.value.shape().clone(), ""),
            Leaf::Buffer(buffer) => (buffer.shape().clone(), ", buffer"),
        };
        rows.push([path.to_owned(), owner.to_owned(), shape.to_string(), format!("{}{note}", shape.numel())]);
    });
    write_table(&rows, num_parameters(module), num_frozen(module))
}

/// Returns the table of [`Module::summary_with`]. `outputs` has the shape of each layer's output, by the layer's key (its address and the name of its
/// type).
#[precompiled]
fn summary_of_outputs<T: Float>(module: &dyn Module<T>, outputs: &HashMap<ModuleKey, Shape>) -> String {
    let mut rows = vec![["path", "kind", "output", "count"].map(str::to_owned)];
    walk_modules(module, &mut String::new(), &mut |path, module| {
        let output = outputs.get(&trace::module_key(module, module.type_name()));
        let mut own = 0;
        let mut has_leaves = false;
        module.children(&mut |_, child| {
            has_leaves |= child.leaf().is_some();
            own += child.leaf().and_then(Leaf::parameter).map_or(0, |parameter| parameter.value.numel());
        });
        if has_leaves || output.is_some() {
            let output = output.map(Shape::to_string).unwrap_or_default();
            rows.push([path.to_owned(), module.kind().to_owned(), output, own.to_string()]);
        }
    });
    write_table(&rows, num_parameters(module), num_frozen(module))
}

#[precompiled]
fn first_non_finite<T: Float>(module: &dyn Module<T>, gradients: &Gradients<T>) -> Option<String> {
    let has_non_finite =
        |parameter: &Parameter<T>| gradients.get(parameter).is_some_and(|gradient| !gradient.iter().all(T::is_finite));
    named_parameters(module).into_iter().find(|(_, parameter)| has_non_finite(parameter)).map(|(path, _)| path)
}

#[precompiled]
fn set_frozen<T: Float>(module: &mut dyn Module<T>, path: &str, frozen: bool) -> Result<()> {
    let mut found = false;
    for (_, leaf) in leaves_mut(module).into_iter().filter(|(leaf, _)| is_below(leaf, path)) {
        if let Some(parameter) = leaf.parameter() {
            parameter.set_frozen(frozen);
            found = true;
        }
    }
    if found { Ok(()) } else { Err(Error::NoSuchPath { path: path.to_owned(), known: parameter_paths(module) }) }
}

#[precompiled]
fn set_from_vector<T: Float>(module: &mut dyn Module<T>, vector: &Tensor<T>) -> Result<()> {
    let expected = num_parameters(module);
    if vector.numel() != expected {
        return Err(Error::VectorLength { found: vector.shape().clone(), expected });
    }
    let mut values = vector.iter();
    for parameter in parameters_mut(module) {
        let shape = parameter.value.shape().clone();
        parameter.value = Tensor::try_from_vec(values.by_ref().take(shape.numel()).collect(), &shape)?;
    }
    Ok(())
}

/// Updates the buffers (running statistics) of `model` by the changes that the tape of `gradients` recorded. A step of any
/// [`Optimizer`](crate::Optimizer) does the same; a step of [`Lbfgs`](crate::Lbfgs) does not.
///
/// # Errors
///
/// If the shape of a buffer has changed since the tape recorded its statistic, or memory cannot hold the result. The buffers before this
/// buffer are then updated already.
#[twins]
pub fn try_update_buffers<T: Float>(model: &mut (impl Module<T> + ?Sized), gradients: &Gradients<T>) -> Result<()> {
    let mut outcome = Ok(());
    walk_mut(model.as_module_mut(), &mut String::new(), &mut |_, leaf| {
        if let (LeafMut::Buffer(buffer), Ok(())) = (leaf, &outcome) {
            outcome = update_buffer(buffer, gradients);
        }
    });
    outcome
}

/// Returns true if `path`, the path of a leaf, is equal to the path `prefix` or below it in the tree.
pub(crate) fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('.');
    prefix.is_empty() || path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Returns the paths of all parameters of `module`.
pub(crate) fn parameter_paths<T: Float>(module: &dyn Module<T>) -> Vec<String> {
    named_parameters(module).into_iter().map(|(path, _)| path).collect()
}

/// Appends the name of a child to a path. Returns the previous length of the path, to which the caller truncates it later. An empty name adds
/// nothing.
fn push_name(path: &mut String, name: &str) -> usize {
    let length = path.len();
    if !name.is_empty() {
        if length > 0 {
            path.push('.');
        }
        path.push_str(name);
    }
    length
}

/// Returns the total number of elements of the frozen parameters of `module`.
fn num_frozen<T: Float>(module: &dyn Module<T>) -> usize {
    parameters(module).into_iter().filter(|parameter| parameter.is_frozen()).map(|p| p.value.numel()).sum()
}

/// Calls `visit` with `module` and every module below it that is not a leaf, each with its path. `path` is the path of `module`.
pub(super) fn walk_modules<'m, T: Float>(
    module: &'m dyn Module<T>,
    path: &mut String,
    visit: &mut dyn FnMut(&str, &'m dyn Module<T>),
) {
    if module.leaf().is_some() {
        return;
    }
    visit(path, module);
    module.children(&mut |name, child| {
        let length = push_name(path, name);
        walk_modules(child, path, visit);
        path.truncate(length);
    });
}

/// Calls `visit` with the path of every leaf of `module`, the kind of the module that contains the leaf, and the leaf. If `module` itself is a
/// leaf, this kind is `owner`.
fn walk_with_owners<'m, T: Float>(
    module: &'m dyn Module<T>,
    owner: &'static str,
    path: &mut String,
    visit: &mut dyn FnMut(&str, &'static str, Leaf<'m, T>),
) {
    match module.leaf() {
        Some(leaf) => visit(path, owner, leaf),
        None => module.children(&mut |name, child| {
            let length = push_name(path, name);
            walk_with_owners(child, module.kind(), path, visit);
            path.truncate(length);
        }),
    }
}

/// Calls `visit` with the path of every leaf of `module`, and a mutable reference to the leaf.
#[precompiled]
pub(crate) fn walk_mut<'m, T: Float>(
    module: &'m mut dyn Module<T>,
    path: &mut String,
    visit: &mut dyn FnMut(&str, LeafMut<'m, T>),
) {
    if module.leaf().is_none() {
        return module.children_mut(&mut |name, child| {
            let length = push_name(path, name);
            walk_mut(child, path, visit);
            path.truncate(length);
        });
    }
    if let Some(leaf) = module.leaf_mut() {
        visit(path, leaf);
    }
}

#[cfg(test)]
mod tests {
    use wengert_autograd::{BlendWeight, Buffer};
    use wengert_tensor::DType;

    use super::*;
    use crate::{Generator, Layer as _, Linear, Optimizer as _, Sgd};

    #[derive(Module)]
    struct Pair<T: Float>(Linear<T>, Parameter<T>);

    #[derive(Module)]
    #[module(f64)]
    struct Model<M> {
        blocks: Vec<Pair<f64>>,
        none: Option<Linear<f64>>,
        r#loop: M,
        mean: Buffer<f64>,
        seen: Buffer<i64>,
        _width: usize,
        _names: Option<Vec<String>>,
    }

    #[derive(Module)]
    struct Line {
        slope: Parameter<f64>,
        _steps: (usize, [f32; 2]),
        #[module(skip)]
        _other: Option<Tensor>,
    }

    #[test]
    fn the_fields_name_the_element_type() {
        let line = Line { slope: Parameter::new(Tensor::scalar(2.0)), _steps: (1, [0.5; 2]), _other: None };
        assert_eq!(line.to_vector().to_vec(), [2.0f64]);
        assert_eq!(line.leaves().len(), 1);
    }

    fn model() -> Model<Box<Linear<f64>>> {
        let generator = &mut Generator::new(3);
        let blocks = vec![Pair(Linear::new(2, 3, generator), Parameter::new(Tensor::ones([2])))];
        let (mean, seen) = (Buffer::new(Tensor::zeros([3])), Buffer::new(Tensor::scalar(0)));
        Model {
            blocks,
            none: None,
            r#loop: Box::new(Linear::without_bias(3, 1, generator)),
            mean,
            seen,
            _width: 3,
            _names: None,
        }
    }

    #[test]
    fn paths_follow_the_names_and_the_order_of_the_fields() {
        let mut model = model();
        let expected = ["blocks.0.0.weight", "blocks.0.0.bias", "blocks.0.1", "loop.weight", "mean", "seen"];
        assert_eq!(model.leaves().into_iter().map(|(path, _)| path).collect::<Vec<_>>(), expected);
        assert_eq!(model.leaves_mut().into_iter().map(|(path, _)| path).collect::<Vec<_>>(), expected);
        assert_eq!(model.named_buffers()[1].1.dtype(), DType::I64);
        assert_eq!(model.num_parameters(), 6 + 3 + 2 + 3);
        let ids: Vec<u64> = model.parameters().iter().map(|parameter| parameter.id()).collect();
        assert_eq!(model.parameters_mut().iter().map(|parameter| parameter.id()).collect::<Vec<_>>(), ids);
    }

    #[test]
    fn parameters_become_a_vector_and_back() {
        let mut model = model();
        let vector = model.to_vector();
        model.set_from_vector(&(&vector * 2.0));
        assert_eq!(model.to_vector(), &vector * 2.0);
        assert_eq!(model.blocks[0].1.value.to_vec(), [2.0, 2.0]);
        let error = model.try_set_from_vector(&Tensor::zeros([3])).unwrap_err();
        assert!(matches!(error, Error::VectorLength { expected: 14, .. }));
    }

    #[test]
    fn frozen_parameters_are_constants_and_unknown_paths_are_errors() {
        let mut model = model();
        model.freeze("blocks.0");
        let frozen = |model: &Model<_>| model.parameters().iter().map(|p| p.is_frozen()).collect::<Vec<_>>();
        assert_eq!(frozen(&model), [true, true, true, false]);
        model.unfreeze("blocks.0.0.bias");
        assert_eq!(frozen(&model), [true, false, true, false]);
        // A path must consist of whole names; a part of a name does not count.
        let error = model.try_set_frozen("blocks.0.0.b", true).unwrap_err();
        assert!(error.to_string().contains("'blocks.0.0.weight'"), "{error}");
        let tape = Tape::new();
        let y = model.blocks[0].0.forward(tape.constant(Tensor::ones([1, 2])));
        let gradients = wengert_tensor::ops::Reductions::sum(&y, ..).backward();
        assert!(gradients.get(&model.blocks[0].0.weight).is_none());
        assert_eq!(gradients.of(model.blocks[0].0.bias.as_ref().unwrap()).to_vec(), [1.0; 3]);
    }

    #[test]
    fn the_summary_has_path_kind_shape_and_count() {
        let mut model = model();
        model.freeze("loop");
        let summary = model.summary();
        let lines: Vec<Vec<&str>> = summary.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["blocks.0.0.weight", "Linear", "[3,", "2]", "6"]);
        assert_eq!(lines[3], ["blocks.0.1", "Pair", "[2]", "2"]);
        assert_eq!(lines[4], ["loop.weight", "Linear", "[1,", "3]", "3,", "frozen"]);
        assert_eq!(lines[6], ["seen", "Model", "[]", "1,", "buffer"]);
        assert_eq!(lines[7].join(" "), "14 parameters, 3 of them frozen");
    }

    #[test]
    fn the_summary_of_a_forward_pass_has_the_shapes_of_outputs() {
        let (model, x) = (model(), Tensor::ones([1, 2]));
        let table = model.summary_with(|tape| {
            let hidden = model.blocks[0].0.forward(tape.constant(&x));
            model.r#loop.try_forward(hidden).unwrap();
        });
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[2], ["blocks.0", "Pair", "2"], "a layer without a call has no output: {table}");
        assert_eq!(lines[3], ["blocks.0.0", "Linear", "[1,", "3]", "9"], "{table}");
        assert_eq!(lines[4], ["loop", "Linear", "[1,", "1]", "3"], "{table}");
        assert!(crate::trace::record_output_shapes(|| ()).is_empty(), "the trace is empty after the call");
    }

    #[test]
    fn a_step_updates_buffers_as_the_tape_recorded() {
        let mut model = model();
        model.freeze("");
        model.unfreeze("loop");
        let generator = &mut Generator::new(0);
        let mut sgd = Sgd::new(0.0);
        let step = |model: &Model<Box<Linear<f64>>>, tape: Tape<f64>| {
            let (_, gradients) = tape.value_and_gradients(|tape| {
                let x = tape.constant(Tensor::from([2.0, 4.0, 8.0]));
                tape.blend(&model.mean, x, BlendWeight::Fixed(0.5));
                tape.count(&model.seen);
                wengert_tensor::ops::Reductions::sum(&model.r#loop.forward(x), ..)
            });
            gradients
        };
        let gradients = step(&model, Tape::training(generator));
        sgd.step(&mut model, &gradients);
        assert_eq!(model.mean.value.to_vec(), [1.0, 2.0, 4.0]);
        // The changes of buffers that two batches recorded before one step are both applied.
        let mut gradients = step(&model, Tape::training(generator));
        gradients += step(&model, Tape::training(generator));
        sgd.step(&mut model, &gradients);
        assert_eq!(model.mean.value.to_vec(), [1.75, 3.5, 7.0]);
        assert_eq!(model.seen.value.item(), 3);
        // A tape that is not a training tape records no changes of buffers.
        let gradients = step(&model, Tape::new());
        sgd.step(&mut model, &gradients);
        assert_eq!(model.seen.value.item(), 3);
    }

    #[test]
    fn the_first_gradient_that_is_not_finite_is_found() {
        let mut model = model();
        model.r#loop.weight.value = Tensor::from([[f64::NAN, 1.0, 1.0]]);
        let (_, gradients) = Tape::new().value_and_gradients(|tape| {
            let hidden = model.blocks[0].0.forward(tape.constant(Tensor::ones([1, 2])));
            let y = model.r#loop.forward(hidden);
            wengert_tensor::ops::Reductions::sum(&y, ..)
        });
        assert_eq!(model.first_non_finite(&gradients).as_deref(), Some("blocks.0.0.weight"));
        assert!(!gradients.is_finite());
    }

    #[test]
    fn a_summary_inside_of_another_one_does_not_end_it() {
        let (model, x) = (model(), Tensor::ones([1, 2]));
        let mut inner = String::new();
        let outer = model.summary_with(|tape| {
            let hidden = model.blocks[0].0.forward(tape.constant(&x));
            inner = model.blocks[0].summary_with(|tape| {
                model.blocks[0].0.forward(tape.constant(Tensor::ones([7, 2])));
            });
            model.r#loop.try_forward(hidden).unwrap();
        });
        let line = |table: &str, path: &str| {
            let line = table.lines().find(|line| line.starts_with(path)).unwrap_or_default();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(line(&inner, "0 "), "0 Linear [7, 3] 9");
        // The inner `summary_with` runs during the outer one, so the outer table also shows the inner output, which is the layer's last one.
        assert_eq!(line(&outer, "blocks.0.0 "), "blocks.0.0 Linear [7, 3] 9");
        assert_eq!(line(&outer, "loop "), "loop Linear [1, 1] 3");
        let panic = std::panic::AssertUnwindSafe(|| model.summary_with(|_| panic!("inside")));
        assert!(std::panic::catch_unwind(panic).is_err());
        assert!(!crate::trace::is_active());
    }

    #[test]
    fn the_kind_of_a_module_is_the_name_of_its_type() {
        struct Local<M>(M);
        impl<M> Module<f32> for Local<M> {}
        struct Maker;
        impl Maker {
            /// Returns the kind of a type that is defined in a method.
            fn kind(&self) -> &'static str {
                struct Inner<F>(#[allow(dead_code)] F);
                impl<F> Module<f32> for Inner<F> {}
                Inner(|x: f32| x).kind()
            }
        }
        let generator = &mut Generator::new(0);
        let linear = || Linear::<f32>::new(1, 1, &mut Generator::new(0));
        fn kind(module: &dyn Module<f32>) -> &'static str {
            module.kind()
        }
        let arrow: fn(f32) -> f32 = |x| x;
        assert_eq!(kind(&Linear::<f32>::new(2, 2, generator)), "Linear");
        assert_eq!(kind(&Some(Box::new(linear()))), "Linear");
        assert_eq!(kind(&vec![linear()]), "Vec");
        assert_eq!(kind(&[linear(), linear()]), "Array");
        assert_eq!(kind(&[crate::ReLU, crate::ReLU]), "Array");
        assert_eq!(kind(&(linear(), crate::ReLU)), "Tuple");
        assert_eq!(kind(&Local([linear()])), "Local");
        assert_eq!(kind(&Local(arrow)), "Local");
        assert_eq!(Maker.kind(), "Inner");
    }

    #[test]
    fn a_vector_of_another_rank_or_length_is_an_error_with_its_shape() {
        let (model, tape) = (model(), wengert_autograd::Tape::new());
        let text = crate::try_bind_vector(&model, tape.constant(Tensor::zeros([1, 14]))).unwrap_err().to_string();
        assert!(text.contains("expected a vector of shape [14]") && text.ends_with("but got shape [1, 14]"), "{text}");
    }
}
