//! Gradients where the usual formulas fail: at infinities, without elements, and to arrays whose values the result does not read. The
//! expected values are PyTorch's (version 2.15), except for a product with an infinite source.

use wengert::nn::LossReduction;
use wengert::prelude::*;
use wengert::tensor::ops::{GridMode, GridPadding, QuantileInterpolation, ScatterReduction};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// A function of recorded variables.
type Recorded = for<'t> fn(&[Var<'t, f64>]) -> Var<'t, f64>;

/// Returns true if the lists have equal elements, where NaN equals NaN.
fn same(x: &[f64], y: &[f64]) -> bool {
    x.len() == y.len() && x.iter().zip(y).all(|(x, y)| x == y || x.is_nan() && y.is_nan())
}

/// Returns the gradients of the sum of `f` with respect to all inputs, or `None` for an input on which `f` does not depend.
fn gradients(f: Recorded, inputs: &[Tensor<f64>]) -> Vec<Option<Vec<f64>>> {
    let tape = Tape::new();
    let inputs: Vec<Var<f64>> = inputs.iter().map(|x| tape.var(x)).collect();
    let result = f(&inputs);
    let seed = tape.constant(Tensor::ones(result.shape()));
    tape.vjp(&[(result, seed)], &inputs).into_iter().map(|g| g.map(|g| g.value().to_vec())).collect()
}

#[test]
fn a_running_sum_of_exponentials_at_infinity() {
    for (x, expected, slopes) in [
        ([1.0, INF, 2.0], [1.0, INF, INF], [1.0, NAN, 0.0]),
        ([INF, 1.0, 2.0], [INF, INF, INF], [NAN, 0.0, 0.0]),
        ([1.0, 1.0, INF], [1.0, 1.0 + 2f64.ln(), INF], [1.5, 0.5, NAN]),
        ([INF, NAN, 1.0], [INF, NAN, NAN], [NAN; 3]),
    ] {
        let tape = Tape::new();
        let x = tape.var(&Tensor::from(x));
        let sums = x.logcumsumexp(0);
        assert!(same(&sums.value().to_vec(), &expected), "{sums:?}");
        let [slope] = sums.sum(..).grad([x]);
        assert!(same(&slope.value().to_vec(), &slopes), "{:?}", slope.value());
    }
}

/// The slopes of `amax`, `amin` and `aminmax` at a single NaN are NaN. `max` and `logcumsumexp` return a single number unchanged, so their
/// slopes are 1.
#[test]
fn a_single_number() {
    let functions: [(&str, Recorded, f64, f64); 8] = [
        ("amax", |x| x[0].amax(..), NAN, NAN),
        ("amin", |x| x[0].amin(0), NAN, NAN),
        ("aminmax", |x| x[0].aminmax(0).0 + x[0].aminmax(0).1, NAN, NAN),
        ("amax", |x| x[0].amax_keepdim(-1), 2.0, 1.0),
        ("max", |x| x[0].max_all(), NAN, 1.0),
        ("max", |x| x[0].max(0).0, NAN, 1.0),
        ("logcumsumexp", |x| x[0].logcumsumexp(0), INF, 1.0),
        ("logcumsumexp", |x| x[0].logcumsumexp(-1), -INF, 1.0),
    ];
    for (name, f, x, expected) in functions {
        let found = gradients(f, &[Tensor::scalar(x)]);
        let found = found[0].as_ref().unwrap();
        assert!(same(found, &[expected]), "{name} at {x}: {found:?}");
    }
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::scalar(1.0));
    assert!(x.try_logcumsumexp(1).is_err() && x.try_amax(1).is_err());
}

#[test]
fn the_second_derivative_of_a_running_sum_of_exponentials_at_infinity() {
    for (x, expected) in
        [([1.0, INF, 2.0], [0.0, NAN, 0.0]), ([INF, 1.0, 2.0], [NAN, 0.0, 0.0]), ([INF, INF, 1.0], [NAN, NAN, 0.0])]
    {
        let tape = Tape::new();
        let x = tape.var(&Tensor::from(x));
        let [slope] = x.logcumsumexp(0).sum(..).grad([x]);
        let [second] = (slope * &Tensor::from([1.0, 2.0, 3.0])).sum(..).grad([x]);
        assert!(same(&second.value().to_vec(), &expected), "{:?}", second.value());
    }
}

/// The slopes of quantiles are the weights of both elements, also where the quantile is an infinity.
#[test]
fn quantiles_and_means_at_infinity_and_nan() {
    let rows: &[(&str, Recorded, &[f64], &[f64])] = &[
        ("above", |x| x[0].quantile(0.75, None, QuantileInterpolation::Linear), &[1.0, INF], &[0.25, 0.75]),
        ("below", |x| x[0].quantile(0.25, None, QuantileInterpolation::Linear), &[-INF, 1.0], &[0.75, 0.25]),
        ("equal", |x| x[0].quantile(0.25, None, QuantileInterpolation::Midpoint), &[INF, INF], &[0.5, 0.5]),
        ("nanquantile", |x| x[0].nanquantile(0.25, None, QuantileInterpolation::Linear), &[NAN, NAN], &[1.0, 0.0]),
        ("nanmean", |x| x[0].nanmean(..), &[NAN, NAN], &[NAN, NAN]),
        ("nanmean", |x| x[0].nanmean(..), &[NAN, 1.0, 2.0], &[0.0, 0.5, 0.5]),
        ("nansum", |x| x[0].nansum(..), &[NAN, NAN], &[0.0, 0.0]),
        ("nanmedian", |x| x[0].nanmedian_all(), &[NAN, NAN], &[0.5, 0.5]),
        ("cumprod", |x| x[0].cumprod(0), &[INF, 2.0, 3.0], &[NAN, INF, INF]),
        ("cumprod", |x| x[0].cumprod(0), &[INF], &[1.0]),
        ("cumprod", |x| x[0].cumprod(0), &[INF, 0.0, 2.0], &[1.0, INF, NAN]),
        ("cumprod", |x| x[0].cumprod(0), &[2.0, 0.0, 3.0], &[1.0, 8.0, 0.0]),
    ];
    for (name, f, x, expected) in rows {
        let gradients = gradients(*f, &[Tensor::from(*x)]);
        assert!(same(gradients[0].as_ref().expect("the result depends on x"), expected), "{name}: {gradients:?}");
    }
}

/// The gradient of `x`, which has no elements, is linear in the gradient w of the result. Its derivative with respect to w is an empty sum.
#[test]
fn second_derivatives_without_elements_are_zero() {
    let functions: &[(&str, Recorded)] = &[
        ("mean", |x| x[0].mean(1)),
        ("mean of all", |x| x[0].mean(..)),
        ("logsumexp", |x| x[0].logsumexp(1)),
        ("var_mean", |x| x[0].var_mean(1, 1).0 + x[0].var_mean(1, 1).1),
        ("corrcoef", |x| x[0].corrcoef()),
        ("mse_loss", |x| x[0].mse_loss(x[0] * 2.0, None, LossReduction::Mean)),
    ];
    for (name, f) in functions {
        let tape = Tape::new();
        let x = tape.var(&Tensor::zeros([3, 0]));
        let result = f(&[x]);
        let w = tape.var(&Tensor::ones(result.shape()));
        let gradient = tape.vjp(&[(result, w)], &[x])[0].expect("the result depends on x");
        let [second] = gradient.sum(..).grad([w]);
        assert_eq!(second.value(), Tensor::zeros(result.shape()), "{name}");
        assert!(result.value().iter().all(|value| value.is_nan() || value == -INF), "{name}");
    }
}

/// The first input of each function has no effect on its values. Its gradient is zeros.
#[test]
fn inputs_without_effect_have_a_gradient_of_zeros() {
    let matrix = || Tensor::from([[1.0, 2.0], [3.0, 4.0]]);
    let (vector, batch) = (|| Tensor::from([1.0, 2.0]), || matrix().unsqueeze(0));
    let image = || batch().unsqueeze(0);
    let grid = Tensor::from([[[[0.1, 0.2], [INF, NAN]]]]);
    let rows: &[(&str, Recorded, &[Tensor<f64>])] = &[
        ("grid_sample", |x| x[1].grid_sample(x[0], GridMode::Nearest, GridPadding::Zeros, false), &[grid, image()]),
        (
            "grid_sample of one pixel",
            |x| x[1].grid_sample(x[0], GridMode::Bilinear, GridPadding::Reflection, true),
            &[Tensor::zeros([1, 1, 1, 2]), Tensor::ones([1, 1, 1, 1])],
        ),
        ("addmm", |x| x[0].addmm(x[1], x[1], 0, 1), &[vector(), matrix()]),
        ("addmv", |x| x[0].addmv(x[1], x[2], 0, 1), &[vector(), matrix(), vector()]),
        ("addr", |x| x[0].addr(x[1], x[1], 0, 1), &[matrix(), vector()]),
        ("addbmm", |x| x[0].addbmm(x[1], x[1], 0, 1), &[matrix(), batch()]),
        ("baddbmm", |x| x[0].baddbmm(x[1], x[1], 0, 1), &[batch(), batch()]),
        ("addmm_", |x| in_place(x[0], |y| y.addmm_(x[1], x[1], 0, 1)), &[matrix(), matrix()]),
        ("copy_", |x| in_place(x[0], |y| y.copy_(x[1])), &[vector(), vector()]),
        ("copy_ of a number", |x| in_place(x[0], |y| y.copy_(2.0)), &[vector()]),
        ("fill_", |x| in_place(x[0], |y| y.fill_(x[1])), &[vector(), Tensor::scalar(3.0)]),
        ("zero_", |x| in_place(x[0], |y| y.zero_()), &[vector()]),
        ("cat", |x| cat(&[x[1], x[0]], 0), &[Tensor::zeros([0]), matrix()]),
    ];
    for (name, f, inputs) in rows {
        let gradients = gradients(*f, inputs);
        let zeros = vec![0.0; inputs[0].numel()];
        assert_eq!(gradients[0].as_deref(), Some(&zeros[..]), "{name}");
        for gradient in &gradients[1..] {
            let gradient = gradient.as_ref().expect("the result depends on the other inputs");
            assert!(gradient.iter().any(|&slope| slope != 0.0), "{name}: {gradient:?}");
        }
        // In forward mode, a tangent of the first input has no effect.
        let tape = Tape::new();
        let inputs: Vec<Var<f64>> = inputs.iter().map(|x| tape.var(x)).collect();
        let tangent = tape.constant(Tensor::ones(inputs[0].shape()));
        let moved = f(&inputs).jvp(&[(inputs[0], tangent)]);
        assert!(moved.value().iter().all(|slope| slope == 0.0), "{name}");
    }
}

/// An infinite or NaN source changes the gradients of its own target only. The targets of the four sources are 0, 1, 1 and 0.
#[test]
fn scattered_reductions_of_infinity_and_nan() {
    let source = |first: f64| Tensor::from([first, 2.0, 3.0, 4.0]);
    type Row = (&'static str, Recorded, f64, [f64; 2], [f64; 4]);
    let rows: &[Row] = &[
        // PyTorch divides the product by the source, and has NaN for the infinite source.
        ("prod", |x| scattered(x, ScatterReduction::Prod), INF, [INF, 6.0], [20.0, 9.0, 6.0, INF]),
        ("prod", |x| scattered(x, ScatterReduction::Prod), 0.0, [0.0, 6.0], [20.0, 9.0, 6.0, 0.0]),
        ("amax", |x| scattered(x, ScatterReduction::Amax), NAN, [NAN, 0.5], [NAN, 0.0, 0.5, NAN]),
        ("amax", |x| scattered(x, ScatterReduction::Amax), 1.0, [1.0, 0.5], [0.0, 0.0, 0.5, 0.0]),
        ("amin", |x| scattered(x, ScatterReduction::Amin), NAN, [NAN, 0.0], [NAN, 1.0, 0.0, NAN]),
    ];
    for (name, f, first, expected, slopes) in rows {
        let gradients = gradients(*f, &[Tensor::from([5.0, 3.0]), source(*first)]);
        let gradient = |number: usize| gradients[number].as_ref().expect("the result depends on both inputs");
        assert!(same(gradient(0), expected) && same(gradient(1), slopes), "{name}: {gradients:?}");
    }
}

fn scattered<'t>(x: &[Var<'t, f64>], reduction: ScatterReduction) -> Var<'t, f64> {
    x[0].scatter_reduce(0, &Tensor::from([0i64, 1, 1, 0]), x[1], reduction, true)
}

/// The slope keeps its digits where the function is almost flat. PyTorch's slopes are equal to 14 digits.
#[test]
fn slopes_of_exponential_units_far_below_zero() {
    let functions: &[(&str, Recorded, [f64; 3])] = &[
        ("elu", |x| x[0].elu(2.0), [9.079_985_952_496_971e-5, 7.440_151_952_041_672e-44, 0.0]),
        ("celu", |x| x[0].celu(2.0), [0.006_737_946_999_085_467, 1.928_749_847_963_917_8e-22, 0.0]),
        ("selu", |x| x[0].selu(), [7.981_758_658_994_182e-5, 6.540_263_121_344_393e-44, 0.0]),
    ];
    for (name, f, expected) in functions {
        let gradients = gradients(*f, &[Tensor::from([-10.0, -100.0, -INF])]);
        let slopes = gradients[0].as_ref().expect("the result depends on x");
        for (got, want) in slopes.iter().zip(expected) {
            assert!((got - want).abs() <= 1e-13 * want, "{name}: {got:e}, not {want:e}");
        }
    }
}

/// The half of the smallest number rounds to 0, so a tie must not be computed from two halves.
#[test]
fn a_clamp_between_arrays_at_ties_of_subnormal_numbers() {
    let tiny = f64::from_bits(1);
    let inputs = [[tiny, tiny, 2.0], [tiny, 0.0, 2.0], [1.0, tiny, 2.0]].map(Tensor::from);
    let tape = Tape::new();
    let [x, min, max] = inputs.each_ref().map(|x| tape.var(x));
    let clamped = x.clamp(min, max);
    assert_eq!(clamped.value().to_vec(), [tiny, tiny, 2.0]);
    let slopes = clamped.sum(..).grad([x, min, max]).map(|slope| slope.value().to_vec());
    assert_eq!(slopes, [[0.5, 0.5, 1.0], [0.5, 0.0, 0.0], [0.0, 0.5, 0.0]]);
}

/// Returns the variable that `change` makes of `x`.
fn in_place<'t>(mut x: Var<'t, f64>, change: impl FnOnce(&mut Var<'t, f64>)) -> Var<'t, f64> {
    change(&mut x);
    x
}
