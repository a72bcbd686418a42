use wengert_autograd::prelude::*;

use super::*;
use crate::Sequential;
use crate::layers::layer::Layer;
use crate::layers::testing::{close, input, layer_gradients};
use crate::module::Module as _;

/// The expected values come from PyTorch 2.15, for the inputs -2, -0.25, 0.5 and 2.
#[test]
fn values_are_pytorchs() {
    let x = Tensor::from([[-2.0, -0.25, 0.5, 2.0]]);
    let cases: &[(&dyn Layer<f64>, [f64; 4])] = &[
        (&ReLU, [0.0, 0.0, 0.5, 2.0]),
        (&ReLU6, [0.0, 0.0, 0.5, 2.0]),
        (&Sigmoid, [0.119202922022, 0.437823499114, 0.622459331202, 0.880797077978]),
        (&LogSigmoid, [-2.126928011043, -0.825939419879, -0.47407698418, -0.126928011043]),
        (&Tanh, [-0.964027580076, -0.244918662404, 0.46211715726, 0.964027580076]),
        (&Tanhshrink, [-1.035972419924, -0.005081337596, 0.03788284274, 1.035972419924]),
        (&SELU, [-1.520166468596, -0.388890197478, 0.525350493678, 2.101401974711]),
        (&GELU, [-0.045500263896, -0.100323418579, 0.345731230637, 1.954499736104]),
        (&GELUTanh, [-0.045402305912, -0.100324649298, 0.345714009825, 1.954597694088]),
        (&SiLU, [-0.238405844044, -0.109455874779, 0.311229665601, 1.761594155956]),
        (&Mish, [-0.252501482696, -0.129926963679, 0.375245211305, 1.943958959534]),
        (&Softsign, [-0.666666666667, -0.2, 0.333333333333, 0.666666666667]),
        (&Hardswish, [-0.333333333333, -0.114583333333, 0.291666666667, 1.666666666667]),
        (&Hardsigmoid, [0.166666666667, 0.458333333333, 0.583333333333, 0.833333333333]),
        (&LeakyReLU::new(0.2), [-0.4, -0.05, 0.5, 2.0]),
        (&ELU::new(0.5), [-0.432332358382, -0.110599608464, 0.5, 2.0]),
        (&CELU::new(0.5), [-0.490842180556, -0.196734670144, 0.5, 2.0]),
        (&Softplus::new(2.0, 3.0), [0.009074963959, 0.23703849209, 0.656630843759, 2.0]),
        (&Hardtanh::new(-1.0, 0.25), [-1.0, -0.25, 0.25, 0.25]),
        (&Hardshrink::new(0.5), [-2.0, 0.0, 0.0, 2.0]),
        (&Softshrink::new(0.25), [-1.75, 0.0, 0.25, 1.75]),
        (&Threshold::new(0.0, 7.0), [7.0, 7.0, 0.5, 2.0]),
        (&Softmax::new(1), [0.013598920862, 0.078256386381, 0.165668771268, 0.742475921489]),
        (&Softmin::new(1), [0.784821809304, 0.136381580709, 0.064422097137, 0.014374512851]),
        (&LogSoftmax::new(-1), [-4.297764837802, -2.547764837802, -1.797764837802, -0.297764837802]),
        (&RReLU::new(0.25, 0.75), [-1.0, -0.125, 0.5, 2.0]),
    ];
    for (position, (layer, expected)) in cases.iter().enumerate() {
        let got = layer.try_forward(Tape::new().constant(&x)).unwrap().value().to_vec();
        // PyTorch's Hardsigmoid uses the factor 1/6 rounded to f32, so the bound is 1e-8 and not a few rounding errors of f64.
        let near = got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-8);
        assert!(near, "case {position}: {got:?}, expected {expected:?}");
    }
    close(&GLU::new(-1).forward(Tape::new().constant(&x)).value(), &[-1.2449186624037092, -0.22019926949447058], 1e-15);
}

#[test]
fn slopes_have_gradients() {
    layer_gradients(PReLU::new(1), &input([2, 3]));
    layer_gradients(PReLU::new(3), &input([2, 3, 2]));
    assert_eq!(PReLU::<f32>::new(3).to_vector().to_vec(), [0.25; 3]);
}

#[test]
fn slopes_are_random_in_training_and_the_mean_of_the_bounds_in_evaluation() {
    let layer = RReLU::new(0.25, 0.75);
    let x = Tensor::<f64>::full([1000], -1.0);
    assert_eq!(layer.forward(Tape::new().constant(&x)).value(), Tensor::full([1000], -0.5));
    let tape = Tape::training(&mut Generator::new(0));
    let y = layer.forward(tape.constant(&x)).value().to_vec();
    assert!(y.iter().all(|y| (-0.75..=-0.25).contains(y)));
    assert!(y.iter().any(|&y| y < -0.7) && y.iter().any(|&y| y > -0.3));
    layer_gradients(layer, &input([5]));
}

#[test]
fn errors_name_the_layer_and_its_settings() {
    let tape = Tape::new();
    let x = tape.constant(Tensor::<f64>::ones([2, 3]));
    let text = Softmax::new(2).try_forward(x).unwrap_err().to_string();
    assert!(text.contains("in the layer Softmax(dim=2) on an input of shape [2, 3], made at"), "{text}");
    assert!(text.contains("activation/tests.rs"), "{text}");
    assert!(GLU::default().try_forward(x).unwrap_err().to_string().contains("GLU(dim=-1)"));
    assert!(PReLU::new(2).try_forward(x).unwrap_err().to_string().contains("PReLU(2) on an input"));
    let model: Sequential<f64> = Sequential::new().add(Tanh).add(Softshrink::new(-1.0));
    assert!(model.try_forward(x).unwrap_err().to_string().contains("Softshrink(lambd=-1)"));
}
