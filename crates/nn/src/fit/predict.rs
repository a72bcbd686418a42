//! Computes the outputs of a model for all batches of a loader.

use wengert_autograd::{Tape, Var};
use wengert_macros::precompiled;
use wengert_tensor::ops::try_cat;
use wengert_tensor::{Float, Tensor};

use crate::data::DataLoader;
use crate::fit::evaluate::to_array;
use crate::{Error, Result};

/// Returns the outputs of a model for all inputs of a loader. Layers are in evaluation mode: dropout drops nothing. The outputs of the batches are
/// joined along dimension 0. For one input tensor, [`infer_in_batches`](wengert_autograd::transforms::infer_in_batches) does the same without a
/// loader. Keras: `predict`.
///
/// The outputs are in the order of the loader, so the loader should not shuffle. `forward` computes the output from the inputs on a tape, as for
/// [`Fit::run`](crate::Fit::run). It gets the whole batch, so the batches are inputs without targets: tensors or tuples of tensors.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Bilinear, DataLoader, Generator, Samples, predict};
///
/// let generator = &mut Generator::new(0);
/// let model = Bilinear::<f32>::new(3, 2, 1, generator);
/// let inputs = (Tensor::randn([10, 3], generator), Tensor::randn([10, 2], generator));
/// let data = Samples::new(inputs, Tensor::<i64>::zeros([10]))?;
/// // A clone of tensors copies no elements.
/// let loader = DataLoader::new(data.inputs().clone(), 4);
/// let y = predict(&model, &loader, |model, tape, (a, b)| model.forward(tape.constant(a), tape.constant(b)))?;
/// assert_eq!(y.shape(), &[10, 1]);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// - The loader has no batches, so that the shape of the outputs is unknown: [`Error::Dataset`].
/// - The outputs have no dimensions, or the outputs of two batches differ in another dimension than dimension 0.
/// - Errors of the data and the operations.
pub fn predict<T: Float, X: Send + 'static, M>(
    model: &M,
    loader: &DataLoader<X>,
    forward: impl for<'t> Fn(&M, &'t Tape<T>, &X) -> Var<'t, T>,
) -> Result<Tensor<T>> {
    let [output] = predict_heads(model, loader, |model, tape, x| [forward(model, tape, x)])?;
    Ok(output)
}

/// Does the same as [`predict`] for a model with several outputs. `forward` returns an array of variables. The result is an array of tensors, one
/// for each output.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{DataLoader, Generator, Layer, Linear, predict_heads};
///
/// let generator = &mut Generator::new(0);
/// let model = [Linear::<f32>::new(3, 2, generator), Linear::new(3, 5, generator)];
/// let loader = DataLoader::new(Tensor::randn([10, 3], generator), 4);
/// let [a, b] = predict_heads(&model, &loader, |model, tape, x| {
///     let x = tape.constant(x);
///     [model[0].forward(x), model[1].forward(x)]
/// })?;
/// assert_eq!((a.shape().sizes(), b.shape().sizes()), (&[10, 2][..], &[10, 5][..]));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// The errors of [`predict`].
pub fn predict_heads<T: Float, X: Send + 'static, M, const N: usize>(
    model: &M,
    loader: &DataLoader<X>,
    forward: impl for<'t> Fn(&M, &'t Tape<T>, &X) -> [Var<'t, T>; N],
) -> Result<[Tensor<T>; N]> {
    let mut batches = Vec::new();
    for inputs in loader.epoch(0) {
        let tape = Tape::new();
        batches.push(tape.try_values_slice(&forward(model, &tape, &inputs?))?);
    }
    to_array(join_batches(&batches)?)
}

/// Joins the outputs of all batches along dimension 0, for each output of the model.
#[precompiled]
fn join_batches<T: Float>(batches: &[Vec<Tensor<T>>]) -> Result<Vec<Tensor<T>>> {
    let Some(first) = batches.first() else {
        return Err(Error::Dataset("predict: the loader has no batches, so the outputs have no shape".to_owned()));
    };
    let join = |head| {
        let outputs: Vec<&Tensor<T>> = batches.iter().map(|outputs| &outputs[head]).collect();
        Ok(try_cat(&outputs, 0)?)
    };
    (0..first.len()).map(join).collect()
}
