//! Compares the gradients of layers with central differences, for the tests of this folder.

use wengert_autograd::prelude::*;

use crate::layers::layer::Layer;
use crate::module::Module;

/// Compares gradients with central differences. The differentiated function is a sum of the outputs of `forward`, each multiplied by a
/// random weight. The gradients are with respect to every element of the parameters of `model`. All passes are training passes with the
/// same random numbers.
///
/// A central difference with the distance h has two errors: the third derivative times h², and a few rounding errors of the sum divided by h.
/// Together they are about 1e-10 for values around 1 and h = ∛ε, where ε is the machine epsilon. A wrong derivative differs by far more than the
/// tolerance of 1e-7.
#[track_caller]
pub(crate) fn gradients<M: Module<f64>>(model: &mut M, forward: impl for<'t> Fn(&M, &'t Tape<f64>) -> Var<'t, f64>) {
    let step = |model: &M| {
        Tape::training(&mut Generator::new(7)).value_and_gradients(|tape| {
            let y = forward(model, tape);
            (y * Tensor::uniform(-1.0, 1.0, y.shape(), &mut Generator::new(8))).sum(..)
        })
    };
    let (_, gradients) = step(model);
    let got: Vec<f64> = model.parameters().into_iter().flat_map(|p| gradients.of_or_zeros(p).to_vec()).collect();
    let point = model.to_vector().to_vec();
    for (number, (&centre, got)) in point.iter().zip(got).enumerate() {
        let h = f64::EPSILON.cbrt() * centre.abs().max(1.0);
        let mut at = |value: f64| {
            let mut moved = point.clone();
            moved[number] = value;
            model.set_from_vector(&Tensor::from(&moved[..]));
            step(model).0
        };
        let expected = (at(centre + h) - at(centre - h)) / (2.0 * h);
        assert!(
            (got - expected).abs() <= 1e-7 * expected.abs().max(1.0),
            "element {number}: {got}, expected {expected}"
        );
    }
    model.set_from_vector(&Tensor::from(&point[..]));
}

/// Compares the gradients of the parameters of `layer` and of its input `x` with central differences.
#[track_caller]
pub(crate) fn layer_gradients(layer: impl Layer<f64>, x: &Tensor<f64>) {
    gradients(&mut (layer, Parameter::new(x.clone())), |(layer, x), tape| layer.forward(tape.parameter(x)));
}

/// Returns a tensor of `shape` with random values around 0.
pub(crate) fn input<const R: usize>(shape: [usize; R]) -> Tensor<f64> {
    Tensor::randn(shape, &mut Generator::new(9))
}

/// Asserts that the elements of `got` and `expected` differ by at most `tolerance`.
#[track_caller]
pub(crate) fn close(got: &Tensor<f64>, expected: &[f64], tolerance: f64) {
    let got = got.to_vec();
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance;
    assert!(got.len() == expected.len() && got.iter().zip(expected).all(near), "{got:?}\n{expected:?}");
}
