//! The cases: exported models with inputs, and with the outputs that the operations of this workspace compute.

mod functions;
mod models;
mod structure;

use wengert_autograd::prelude::*;
use wengert_onnx::Export;

/// A model as the bytes of a file, with the inputs and the expected outputs of its runs.
pub struct Case<T: Float> {
    pub name: String,
    pub bytes: Vec<u8>,
    pub runs: Vec<Run<T>>,
}

/// The inputs of a run, and the outputs that the operations of this workspace compute, each with its name.
pub struct Run<T: Float> {
    pub inputs: Vec<(String, Tensor<T>)>,
    pub indices: Vec<(String, Tensor<i64>)>,
    pub outputs: Vec<(String, Tensor<T>)>,
}

/// Returns all cases: functions, structure and whole models.
pub fn cases<T: Float>() -> Vec<Case<T>> {
    let mut cases = functions::cases();
    cases.extend(structure::cases());
    cases.extend(models::cases());
    cases
}

/// Returns a case that runs with the examples or, if `sizes` is not empty, with each of these sizes of the first dimension.
fn case<T: Float, const N: usize, const K: usize, const M: usize>(
    name: &str,
    export: Export<T>,
    inputs: [(&str, Tensor<T>); N],
    indices: [(&str, Tensor<i64>); K],
    outputs: [&str; M],
    record: impl for<'t> Fn(&'t Tape<T>, [Var<'t, T>; N], [&'t Tensor<i64>; K]) -> [Var<'t, T>; M],
    sizes: &[usize],
) -> Case<T> {
    let examples = inputs.each_ref().map(|(name, x)| (*name, x));
    let export = export.indices(indices.each_ref().map(|(name, x)| (*name, x)));
    let bytes = export.to_bytes(examples, outputs, &record).unwrap_or_else(|error| panic!("{name}: {error}"));
    let run = |size: Option<usize>| {
        let inputs = inputs.each_ref().map(|(name, x)| ((*name).to_owned(), resized(x, size)));
        let indices = indices.each_ref().map(|(name, x)| ((*name).to_owned(), resized(x, size)));
        let tape = Tape::new();
        let vars = inputs.each_ref().map(|(_, x)| tape.var(x));
        let values = record(&tape, vars, indices.each_ref().map(|(_, x)| x)).map(|y| y.value());
        let outputs = outputs.iter().map(|&name| name.to_owned()).zip(values).collect();
        Run { inputs: inputs.into(), indices: indices.into(), outputs }
    };
    let runs = match sizes {
        [] => vec![run(None)],
        sizes => sizes.iter().map(|&size| run(Some(size))).collect(),
    };
    Case { name: name.to_owned(), bytes, runs }
}

/// Returns a case of one input `x` and one output `y`.
fn one<T: Float>(name: &str, x: Tensor<T>, function: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>) -> Case<T> {
    case(name, Export::new(), [("x", x)], [], ["y"], |_, [x], []| [function(x)], &[])
}

/// Returns a case of the inputs `a` and `b` and one output `y`.
fn two<T: Float>(
    name: &str,
    [a, b]: [Tensor<T>; 2],
    function: impl for<'t> Fn(Var<'t, T>, Var<'t, T>) -> Var<'t, T>,
) -> Case<T> {
    case(name, Export::new(), [("a", a), ("b", b)], [], ["y"], |_, [a, b], []| [function(a, b)], &[])
}

fn resized<E: wengert_tensor::Element>(x: &Tensor<E>, size: Option<usize>) -> Tensor<E> {
    let Some(size) = size else { return x.clone() };
    let rows = (0..size).map(|row| (row % x.shape()[0]) as i64).collect::<Vec<_>>();
    x.contiguous().index_select(0, &Tensor::from_vec(rows, [size]))
}

/// Returns numbers between `low` and `high`.
fn between<T: Float>(low: f64, high: f64, shape: &[usize]) -> Tensor<T> {
    let generator = &mut Generator::new(shape.iter().sum::<usize>() as u64);
    (Tensor::<f64>::rand(shape, generator) * (high - low) + low).cast()
}
