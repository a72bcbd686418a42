use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Shape};

use super::*;

const N: f64 = 20_000.0;

/// Asserts that `draws` has the mean 0 and the standard deviation `std`, each within five standard errors. `kurtosis` is the distribution's
/// fourth moment divided by its squared variance.
#[track_caller]
fn check(draws: &Tensor<f64>, std: f64, kurtosis: f64) {
    assert_eq!(draws.numel() as f64, N);
    let mean = draws.mean(..).item();
    assert!(mean.abs() < 5.0 * std / N.sqrt(), "{mean}");
    let variance = draws.square().mean(..).item() / (std * std);
    assert!((variance - 1.0).abs() < 5.0 * ((kurtosis - 1.0) / N).sqrt(), "{variance}");
}

#[test]
fn fans_of_weights() {
    assert_eq!(fans(&Shape::from([3, 5])), (5, 3));
    assert_eq!(fans(&Shape::from([8, 4, 3, 2])), (24, 48));
    assert_eq!(fans(&Shape::from([0, 5])), (5, 0));
    let error = try_fans(&Shape::from([3])).unwrap_err().sentence();
    assert_eq!(
        error,
        "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions: the shape is [3]"
    );
}

#[test]
fn gains_are_pytorchs() {
    for (nonlinearity, gain) in [
        (Nonlinearity::Linear, 1.0),
        (Nonlinearity::Tanh, 1.6666666666666667),
        (Nonlinearity::Relu, std::f64::consts::SQRT_2),
        (Nonlinearity::LeakyRelu(0.01), 1.4141428569978354),
        (Nonlinearity::LeakyRelu(5f64.sqrt()), 0.5773502691896257),
        (Nonlinearity::Selu, 0.75),
    ] {
        assert_eq!(nonlinearity.gain(), gain, "{nonlinearity:?}");
    }
}

/// The weights of this test, `[100, 50, 2, 2]`, have fan in 200 and fan out 400. A uniform distribution from -b to b has the standard
/// deviation b / √3 and the kurtosis 9/5. Each of the 20000 elements has an absolute value above 0.99 b with probability 1/100, so the largest one is
/// practically always above 0.99 b.
#[test]
fn bounds_and_variances_follow_the_formulas() {
    let generator = &mut Generator::new(3);
    let shape = [100, 50, 2, 2];
    let (relu, tanh) = (Nonlinearity::Relu, Nonlinearity::Tanh.gain());
    for (draws, bound) in [
        (uniform(shape, -0.5, 0.5, generator), 0.5),
        (xavier_uniform(shape, tanh, generator), 5.0 / 3.0 * 0.1),
        (kaiming_uniform(shape, Fan::In, relu, generator), 0.03f64.sqrt()),
        (kaiming_uniform(shape, Fan::Out, relu, generator), 0.015f64.sqrt()),
        (kaiming_uniform(shape, Fan::In, Nonlinearity::LeakyRelu(5f64.sqrt()), generator), 0.005f64.sqrt()),
    ] {
        check(&draws, bound / 3f64.sqrt(), 1.8);
        let largest = draws.abs().amax(..).item() / bound;
        assert!((0.99..=1.0).contains(&largest), "{largest}");
    }
    for (draws, std) in [
        (normal(shape, 0.0, 2.0, generator), 2.0),
        (xavier_normal(shape, tanh, generator), 5.0 / 3.0 * (2.0f64 / 600.0).sqrt()),
        (kaiming_normal(shape, Fan::In, relu, generator), 0.1),
        (kaiming_normal(shape, Fan::Out, Nonlinearity::Selu, generator), 0.75 / 20.0),
    ] {
        check(&draws, std, 3.0);
        assert!(draws.abs().amax(..).item() > 3.0 * std);
    }
    check(&(normal(shape, 7.0, 2.0, generator) - 7.0), 2.0, 3.0);
}

#[test]
fn a_truncated_normal_stays_within_its_bounds() {
    let generator = &mut Generator::new(4);
    // The standard normal distribution, truncated at two standard deviations, has the variance 0.773741 and the kurtosis 2.366.
    let draws = truncated_normal::<f64>([100, 200], 1.0, 0.5, 0.0, 2.0, generator);
    assert!(draws.iter().all(|x| (0.0..=2.0).contains(&x)));
    check(&(draws - 1.0), 0.5 * 0.773741f64.sqrt(), 2.366);
    let far = truncated_normal::<f32>([1000], 0.0, 1.0, 20.0, 21.0, generator);
    assert!(far.iter().all(|x| (20.0..=21.0).contains(&x)));
}

#[test]
fn rows_or_columns_are_orthogonal() {
    let generator = &mut Generator::new(5);
    for shape in [&[7usize, 4][..], &[4, 7], &[6, 6], &[2, 2, 2], &[1, 9], &[9, 1]] {
        let q = orthogonal::<f64>(shape, 3.0, generator).flatten(1, -1);
        let gram = if q.shape()[0] > q.shape()[1] { q.t().matmul(&q) } else { q.matmul(q.t()) };
        let off = gram / 9.0 - Tensor::eye(q.shape()[0].min(q.shape()[1]));
        assert!(off.abs().amax(..).item() < 16.0 * f64::EPSILON, "{shape:?}");
    }
    // The distribution is uniform: over 2000 orthogonal [2, 2] matrices, the root mean square of an element is √½.
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..2000 {
        let x = orthogonal::<f64>([2, 2], 1.0, generator).get(&[1, 0]).unwrap();
        (sum, squares) = (sum + x, squares + x * x);
    }
    assert!((sum / 2000.0).abs() < 5.0 * (0.5f64 / 2000.0).sqrt(), "{sum}");
    assert!((squares / 2000.0 - 0.5).abs() < 5.0 * (0.125f64 / 2000.0).sqrt(), "{squares}");
}

#[test]
fn a_seed_gives_the_same_values() {
    let draws = xavier_normal::<f32>([2, 3], 1.0, &mut Generator::new(9));
    assert_eq!(draws, xavier_normal([2, 3], 1.0, &mut Generator::new(9)));
    let mut generator = Generator::new(9);
    let std = 0.4f64.sqrt();
    assert!(draws.iter().all(|x| x == (std * generator.normal()) as f32));
}

#[test]
fn an_empty_tensor_is_not_an_error() {
    let generator = &mut Generator::new(6);
    assert_eq!(kaiming_uniform::<f32>([3, 0], Fan::In, Nonlinearity::Relu, generator).shape(), &[3, 0]);
    assert_eq!(xavier_normal::<f32>([0, 0], 1.0, generator).shape(), &[0, 0]);
    assert_eq!(orthogonal::<f32>([0, 4], 1.0, generator).shape(), &[0, 4]);
    assert_eq!(orthogonal::<f32>([4, 0], 1.0, generator).shape(), &[4, 0]);
}

#[test]
fn wrong_shapes_and_parameters_are_errors() {
    let generator = &mut Generator::new(7);
    let sentence = |result: Result<Tensor<f32>, Error>| result.unwrap_err().sentence();
    for (refused, expected) in [
        (try_uniform([2], 1.0, 0.0, generator), "uniform expects to return a [from, to) range"),
        (try_normal([2], 0.0, -1.0, generator), "normal expects std >= 0.0, but found std -1"),
        (try_truncated_normal([2], 0.0, 1.0, 1.0, 1.0, generator), "truncated_normal expects std > 0 and low < high"),
        (try_truncated_normal([2], 0.0, 0.0, -1.0, 1.0, generator), "truncated_normal expects std > 0"),
        (try_xavier_uniform([2], 1.0, generator), "Fan in and fan out can not be computed"),
        (try_orthogonal([2], 1.0, generator), "Only tensors with 2 or more dimensions are supported"),
    ] {
        let found = sentence(refused);
        assert!(found.starts_with(expected), "{found}");
    }
    let huge = try_kaiming_normal::<f32>([1usize << 40, 1 << 20], Fan::In, Nonlinearity::Relu, generator);
    assert!(matches!(huge, Err(Error::OutOfMemory { .. })));
}
