//! Initial values of parameters: each function gives a tensor of a shape, drawn from a generator.
//!
//! | here | PyTorch, `torch.nn.init` |
//! |---|---|
//! | [`uniform`], [`normal`], [`truncated_normal`] | `uniform_`, `normal_`, `trunc_normal_` |
//! | [`xavier_uniform`], [`xavier_normal`] | `xavier_uniform_`, `xavier_normal_` |
//! | [`kaiming_uniform`], [`kaiming_normal`] | `kaiming_uniform_`, `kaiming_normal_` |
//! | [`orthogonal`] | `orthogonal_` |
//! | [`Nonlinearity::gain`], [`fans`] | `calculate_gain`, `_calculate_fan_in_and_fan_out` |
//! | `Tensor::zeros`, `Tensor::ones`, `Tensor::full` | `zeros_`, `ones_`, `constant_` |
//!
//! A weight has the shape `[out, in, …]`: of a dense layer `[out, in]`, of a convolution `[out, in / groups, …kernel]`. Its
//! *fan in* is how many numbers an output is summed of, its *fan out* how many outputs an input goes to. Each element takes
//! one word of the generator, in row-major order, in f64 arithmetic rounded once.

use wengert_macros::twins;
use wengert_tensor::{Error, Float, Generator, Shape, Site, Sizes, Tensor};

/// What follows a layer, for the factor that keeps the size of its values: the `gain`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Nonlinearity {
    /// Nothing, a sigmoid, or a convolution: 1.
    #[default]
    Linear,
    /// tanh: 5/3.
    Tanh,
    /// ReLU: √2.
    Relu,
    /// Leaky ReLU with this slope: √(2 / (1 + slope²)). √5 is what PyTorch's dense and convolutional layers begin with:
    /// with it, [`kaiming_uniform`] is U(-1/√fan, 1/√fan).
    LeakyRelu(f64),
    /// SELU: 3/4.
    Selu,
}

impl Nonlinearity {
    /// The factor. PyTorch: `torch.nn.init.calculate_gain`.
    pub fn gain(self) -> f64 {
        match self {
            Nonlinearity::Linear => 1.0,
            Nonlinearity::Tanh => 5.0 / 3.0,
            Nonlinearity::Relu => 2f64.sqrt(),
            Nonlinearity::LeakyRelu(slope) => (2.0 / (1.0 + slope * slope)).sqrt(),
            Nonlinearity::Selu => 0.75,
        }
    }
}

/// Whether values keep their size in the forward pass or gradients in the backward pass. PyTorch: `mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fan {
    /// Values: the fan in. PyTorch: `fan_in`.
    #[default]
    In,
    /// Gradients: the fan out. PyTorch: `fan_out`.
    Out,
}

/// Fan in and fan out of a weight `[out, in, …kernel]`: `in` and `out` times the size of the kernel. PyTorch:
/// `_calculate_fan_in_and_fan_out`.
///
/// ```
/// use wengert_nn::init::fans;
/// use wengert_tensor::Shape;
///
/// assert_eq!(fans(&Shape::from([32, 16, 3, 3])), (144, 288));
/// ```
///
/// # Errors
///
/// Where there are fewer than two dimensions.
#[twins]
pub fn try_fans(shape: &Shape) -> Result<(usize, usize), Error> {
    fans_at(shape, Site::here("fans"))
}

fn fans_at(shape: &Shape, at: Site) -> Result<(usize, usize), Error> {
    match *shape.sizes() {
        [outputs, inputs, ref kernel @ ..] => {
            let size: usize = kernel.iter().fold(1, |product, &size| product.saturating_mul(size));
            Ok((inputs.saturating_mul(size), outputs.saturating_mul(size)))
        }
        _ => {
            let message = format!(
                "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions: the shape is {shape}"
            );
            Err(Error::Argument { message, at })
        }
    }
}

/// U(`low`, `high`), without `high`. PyTorch: `uniform_`.
///
/// ```
/// use wengert_nn::init;
/// use wengert_tensor::prelude::*;
///
/// let bias: Tensor<f32> = init::uniform([10], -0.1, 0.1, &mut Generator::new(0));
/// assert!(bias.iter().all(|b| (-0.1..0.1).contains(&b)));
/// ```
///
/// # Errors
///
/// As [`Tensor::try_uniform`].
#[twins]
pub fn try_uniform<T: Float>(
    shape: impl Into<Sizes>,
    low: f64,
    high: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    Tensor::try_uniform(low, high, shape, generator)
}

/// The normal distribution. PyTorch: `normal_`.
///
/// # Errors
///
/// Where `std` is negative or NaN, or memory cannot hold the tensor.
#[twins]
pub fn try_normal<T: Float>(
    shape: impl Into<Sizes>,
    mean: f64,
    std: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("normal");
    let shape = shape.into().resolve_plain(at)?;
    if std.is_nan() || std < 0.0 {
        return Err(Error::Argument { message: format!("normal expects std >= 0.0, but found std {std}"), at });
    }
    drawn(&shape, || mean + std * generator.normal())
}

/// The normal distribution within [`low`, `high`], which are values as drawn, no multiples of `std`. PyTorch:
/// `trunc_normal_`.
///
/// ```
/// use wengert_nn::init;
/// use wengert_tensor::prelude::*;
///
/// // What vision transformers begin with.
/// let embedding: Tensor<f32> = init::truncated_normal([196, 64], 0.0, 0.02, -2.0, 2.0, &mut Generator::new(0));
/// assert!((embedding.std(.., 1.0).item() - 0.02).abs() < 0.001);
/// ```
///
/// # Errors
///
/// Where `low` is not below `high`, `std` is not positive, or memory cannot hold the tensor.
#[twins]
pub fn try_truncated_normal<T: Float>(
    shape: impl Into<Sizes>,
    mean: f64,
    std: f64,
    low: f64,
    high: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("truncated_normal");
    let shape = shape.into().resolve_plain(at)?;
    let [least, most] = [low, high].map(|bound| (bound - mean) / std);
    if std.is_nan() || std <= 0.0 || least.is_nan() || most.is_nan() || least >= most {
        let message = format!(
            "truncated_normal expects std > 0 and low < high, but found mean {mean}, std {std}, low {low}, high {high}"
        );
        return Err(Error::Argument { message, at });
    }
    drawn(&shape, || (mean + std * generator.truncated_normal(least, most)).clamp(low, high))
}

/// U(-b, b) with b = `gain` √(6 / (fan in + fan out)): values and gradients keep their size as well as one distribution
/// allows (X. Glorot and Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010).
/// PyTorch: `xavier_uniform_`.
///
/// ```
/// use wengert_nn::init::{self, Nonlinearity};
/// use wengert_tensor::prelude::*;
///
/// let weight: Tensor<f32> = init::xavier_uniform([10, 20], Nonlinearity::Tanh.gain(), &mut Generator::new(0));
/// assert!(weight.abs().amax(..).item() <= 5.0 / 3.0 * 0.2f32.sqrt());
/// ```
///
/// # Errors
///
/// Where `shape` has fewer than two dimensions, or memory cannot hold the tensor.
#[twins]
pub fn try_xavier_uniform<T: Float>(
    shape: impl Into<Sizes>,
    gain: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("xavier_uniform");
    let shape = shape.into().resolve_plain(at)?;
    let (inputs, outputs) = fans_at(&shape, at)?;
    symmetric(&shape, gain * (6.0 / inputs.saturating_add(outputs) as f64).sqrt(), generator)
}

/// The normal distribution of mean 0 and standard deviation `gain` √(2 / (fan in + fan out)); see [`xavier_uniform`].
/// PyTorch: `xavier_normal_`.
///
/// # Errors
///
/// Where `shape` has fewer than two dimensions, or memory cannot hold the tensor.
#[twins]
pub fn try_xavier_normal<T: Float>(
    shape: impl Into<Sizes>,
    gain: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("xavier_normal");
    let shape = shape.into().resolve_plain(at)?;
    let (inputs, outputs) = fans_at(&shape, at)?;
    let std = gain * (2.0 / inputs.saturating_add(outputs) as f64).sqrt();
    drawn(&shape, || std * generator.normal())
}

/// U(-b, b) with b = gain √(3 / fan): values, or gradients, keep their size through a layer and its nonlinearity (K. He,
/// X. Zhang, S. Ren and J. Sun, "Delving deep into rectifiers", 2015). PyTorch: `kaiming_uniform_`.
///
/// ```
/// use wengert_nn::init::{self, Fan, Nonlinearity};
/// use wengert_tensor::prelude::*;
///
/// let weight: Tensor<f32> =
///     init::kaiming_uniform([32, 16, 3, 3], Fan::In, Nonlinearity::Relu, &mut Generator::new(0));
/// assert!(weight.abs().amax(..).item() <= (6.0f32 / 144.0).sqrt());
/// ```
///
/// # Errors
///
/// Where `shape` has fewer than two dimensions, or memory cannot hold the tensor.
#[twins]
pub fn try_kaiming_uniform<T: Float>(
    shape: impl Into<Sizes>,
    fan: Fan,
    nonlinearity: Nonlinearity,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("kaiming_uniform");
    let shape = shape.into().resolve_plain(at)?;
    let std = kaiming(&shape, fan, nonlinearity, at)?;
    symmetric(&shape, 3f64.sqrt() * std, generator)
}

/// The normal distribution of mean 0 and standard deviation gain / √fan; see [`kaiming_uniform`]. PyTorch:
/// `kaiming_normal_`.
///
/// # Errors
///
/// Where `shape` has fewer than two dimensions, or memory cannot hold the tensor.
#[twins]
pub fn try_kaiming_normal<T: Float>(
    shape: impl Into<Sizes>,
    fan: Fan,
    nonlinearity: Nonlinearity,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("kaiming_normal");
    let shape = shape.into().resolve_plain(at)?;
    let std = kaiming(&shape, fan, nonlinearity, at)?;
    drawn(&shape, || std * generator.normal())
}

/// `gain` times a random orthogonal matrix, every one as likely as any other (A. M. Saxe, J. L. McClelland and S. Ganguli,
/// "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2013). As a matrix, a weight has
/// a row for each of its first size; where there are more rows than columns, its columns are orthogonal, otherwise its
/// rows. PyTorch: `orthogonal_`.
///
/// The rows of a normal matrix, each made orthogonal to those before it: Gram and Schmidt, twice, which is enough for
/// rounding (B. N. Parlett, The Symmetric Eigenvalue Problem, 6.9).
///
/// ```
/// use wengert_nn::init;
/// use wengert_tensor::prelude::*;
///
/// let q: Tensor<f64> = init::orthogonal([3, 5], 1.0, &mut Generator::new(0));
/// let off = q.matmul(q.t()) - Tensor::eye(3);
/// assert!(off.abs().amax(..).item() < 1e-15);
/// ```
///
/// # Errors
///
/// Where `shape` has fewer than two dimensions, or memory cannot hold the tensor.
#[twins]
pub fn try_orthogonal<T: Float>(
    shape: impl Into<Sizes>,
    gain: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>, Error> {
    let at = Site::here("orthogonal");
    let shape = shape.into().resolve_plain(at)?;
    let [rows, _, ..] = *shape.sizes() else {
        let message = format!("Only tensors with 2 or more dimensions are supported: the shape is {shape}");
        return Err(Error::Argument { message, at });
    };
    let mut weight = Tensor::try_full(&shape, T::ZERO)?;
    let columns = weight.numel() / rows.max(1);
    let (count, length) = (rows.min(columns), rows.max(columns));
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(count);
    for _ in 0..count {
        let mut vector: Vec<f64> = (0..length).map(|_| generator.normal()).collect();
        for _ in 0..2 {
            for before in &vectors {
                subtract_projection(&mut vector, before);
            }
        }
        let norm = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|x| *x /= norm);
        vectors.push(vector);
    }
    for (position, element) in weight.make_mut().iter_mut().enumerate() {
        let (row, column) = (position / columns, position % columns);
        *element = T::from_f64(gain * if rows <= columns { vectors[row][column] } else { vectors[column][row] });
    }
    Ok(weight)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `onto` has length 1.
fn subtract_projection(vector: &mut [f64], onto: &[f64]) {
    let along = dot(vector, onto);
    vector.iter_mut().zip(onto).for_each(|(x, onto)| *x -= along * onto);
}

fn kaiming(shape: &Shape, fan: Fan, nonlinearity: Nonlinearity, at: Site) -> Result<f64, Error> {
    let (inputs, outputs) = fans_at(shape, at)?;
    let fan = if fan == Fan::In { inputs } else { outputs };
    Ok(nonlinearity.gain() / (fan as f64).sqrt())
}

fn symmetric<T: Float>(shape: &Shape, bound: f64, generator: &mut Generator) -> Result<Tensor<T>, Error> {
    drawn(shape, || bound * (2.0 * generator.uniform() - 1.0))
}

#[track_caller]
fn drawn<T: Float>(shape: &Shape, mut draw: impl FnMut() -> f64) -> Result<Tensor<T>, Error> {
    let mut drawn = Tensor::try_full(shape, T::ZERO)?;
    drawn.make_mut().iter_mut().for_each(|element| *element = T::from_f64(draw()));
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use super::*;

    const N: f64 = 20_000.0;

    /// Mean 0 and the standard deviation `std`, each within five of its own standard deviations; `kurtosis` is the fourth
    /// moment over the squared variance.
    #[track_caller]
    fn check(drawn: &Tensor<f64>, std: f64, kurtosis: f64) {
        assert_eq!(drawn.numel() as f64, N);
        let mean = drawn.mean(..).item();
        assert!(mean.abs() < 5.0 * std / N.sqrt(), "{mean}");
        let variance = drawn.square().mean(..).item() / (std * std);
        assert!((variance - 1.0).abs() < 5.0 * ((kurtosis - 1.0) / N).sqrt(), "{variance}");
    }

    #[test]
    fn fans_are_those_of_a_weight() {
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

    /// A weight `[100, 50, 2, 2]`: fan in 200, fan out 400. Uniform distributions have the standard deviation b / √3, the
    /// kurtosis 9/5, and come within 1% of their bound in 20000 draws, each with probability 1/100.
    #[test]
    fn bounds_and_variances_are_those_of_the_formulas() {
        let generator = &mut Generator::new(3);
        let shape = [100, 50, 2, 2];
        let (relu, tanh) = (Nonlinearity::Relu, Nonlinearity::Tanh.gain());
        for (drawn, bound) in [
            (uniform(shape, -0.5, 0.5, generator), 0.5),
            (xavier_uniform(shape, tanh, generator), 5.0 / 3.0 * 0.1),
            (kaiming_uniform(shape, Fan::In, relu, generator), 0.03f64.sqrt()),
            (kaiming_uniform(shape, Fan::Out, relu, generator), 0.015f64.sqrt()),
            (kaiming_uniform(shape, Fan::In, Nonlinearity::LeakyRelu(5f64.sqrt()), generator), 0.005f64.sqrt()),
        ] {
            check(&drawn, bound / 3f64.sqrt(), 1.8);
            let largest = drawn.abs().amax(..).item() / bound;
            assert!((0.99..=1.0).contains(&largest), "{largest}");
        }
        for (drawn, std) in [
            (normal(shape, 0.0, 2.0, generator), 2.0),
            (xavier_normal(shape, tanh, generator), 5.0 / 3.0 * (2.0f64 / 600.0).sqrt()),
            (kaiming_normal(shape, Fan::In, relu, generator), 0.1),
            (kaiming_normal(shape, Fan::Out, Nonlinearity::Selu, generator), 0.75 / 20.0),
        ] {
            check(&drawn, std, 3.0);
            assert!(drawn.abs().amax(..).item() > 3.0 * std);
        }
        check(&(normal(shape, 7.0, 2.0, generator) - 7.0), 2.0, 3.0);
    }

    #[test]
    fn a_truncated_normal_stays_within_its_bounds() {
        let generator = &mut Generator::new(4);
        // Within two standard deviations: variance 0.773741, kurtosis 2.366.
        let drawn = truncated_normal::<f64>([100, 200], 1.0, 0.5, 0.0, 2.0, generator);
        assert!(drawn.iter().all(|x| (0.0..=2.0).contains(&x)));
        check(&(drawn - 1.0), 0.5 * 0.773741f64.sqrt(), 2.366);
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
        // No direction is preferred: of 2000 orthogonal [2, 2], an element is √½ in the root of its mean square.
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
        let drawn = xavier_normal::<f32>([2, 3], 1.0, &mut Generator::new(9));
        assert_eq!(drawn, xavier_normal([2, 3], 1.0, &mut Generator::new(9)));
        let mut generator = Generator::new(9);
        let std = 0.4f64.sqrt();
        assert!(drawn.iter().all(|x| x == (std * generator.normal()) as f32));
    }

    #[test]
    fn nothing_to_fill_is_no_error() {
        let generator = &mut Generator::new(6);
        assert_eq!(kaiming_uniform::<f32>([3, 0], Fan::In, Nonlinearity::Relu, generator).shape(), &[3, 0]);
        assert_eq!(xavier_normal::<f32>([0, 0], 1.0, generator).shape(), &[0, 0]);
        assert_eq!(orthogonal::<f32>([0, 4], 1.0, generator).shape(), &[0, 4]);
        assert_eq!(orthogonal::<f32>([4, 0], 1.0, generator).shape(), &[4, 0]);
    }

    #[test]
    fn what_is_refused() {
        let generator = &mut Generator::new(7);
        let sentence = |result: Result<Tensor<f32>, Error>| result.unwrap_err().sentence();
        for (refused, expected) in [
            (try_uniform([2], 1.0, 0.0, generator), "uniform expects to return a [from, to) range"),
            (try_normal([2], 0.0, -1.0, generator), "normal expects std >= 0.0, but found std -1"),
            (
                try_truncated_normal([2], 0.0, 1.0, 1.0, 1.0, generator),
                "truncated_normal expects std > 0 and low < high",
            ),
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
}
