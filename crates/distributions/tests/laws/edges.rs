//! Values and derivatives at the ends of supports and of parameter ranges, and in tails where simple formulas lose all digits.

use wengert_autograd::prelude::*;
use wengert_distributions::kl_divergence;
use wengert_distributions::prelude::*;

/// Returns the value of `f` and its gradient at `x`.
fn with_gradient<T: Float>(x: &[T], f: impl for<'t> Fn(Var<'t, T>) -> Var<'t, T>) -> (Vec<T>, Vec<T>) {
    let tape = Tape::new();
    let x = tape.var(&Tensor::from_vec(x.to_vec(), [x.len()]));
    let y = f(x);
    (y.value().to_vec(), y.sum(..).grad_or_zeros([x])[0].value().to_vec())
}

/// Returns the gradient of `f` at the number `x`.
fn slope(x: f64, f: impl for<'t> Fn(Var<'t, f64>) -> Var<'t, f64>) -> f64 {
    with_gradient(&[x], f).1[0]
}

#[track_caller]
fn assert_close(got: f64, want: f64, tolerance: f64) {
    assert!(got == want || (got - want).abs() <= tolerance * want.abs(), "{got:e}, not {want:e}");
}

#[test]
fn probabilities_of_zero_do_not_spoil_gradients() {
    let probs = [0.0, 0.5, 0.5];
    let (_, categorical) = with_gradient(&probs, |p| Categorical::new(p).log_prob(1.0));
    assert_eq!(categorical, [-1.0, 1.0, -1.0]);
    let (value, multinomial) =
        with_gradient(&probs, |p| Multinomial::new(2, p).log_prob(&Tensor::from([0.0, 1.0, 1.0])));
    assert_close(value[0], 0.5f64.ln(), 1e-14);
    assert_eq!(multinomial, [-2.0, 0.0, 0.0]);
    let (_, mixture) = with_gradient(&probs, |p| {
        let components = Normal::new(p.tape().constant(Tensor::from([0.0, 1.0, 2.0])), 1.0);
        MixtureSameFamily::new(Categorical::new(p), components).log_prob(0.3)
    });
    let (_, divergence) = with_gradient(&probs, |p| {
        kl_divergence(&Categorical::new(p), &Categorical::new(p.tape().constant(Tensor::ones([3]))))
    });
    let (_, entropy) = with_gradient(&probs, |p| Categorical::new(p).entropy());
    let (_, counts) = with_gradient(&probs, |p| Multinomial::new(2, p).entropy());
    assert!([mixture, divergence, entropy, counts].concat().iter().all(|x| x.is_finite()));

    assert_eq!(slope(0.0, |p| Bernoulli::new(p).log_prob(0.0)), -1.0);
    assert_eq!(slope(1.0, |p| Bernoulli::new(p).log_prob(1.0)), 1.0);
    assert_eq!(slope(0.0, |p| Binomial::new(5.0, p).log_prob(0.0)), -5.0);
    assert_eq!(slope(1.0, |p| Geometric::new(p).log_prob(0.0)), 1.0);
    assert_eq!(slope(0.0, |p| NegativeBinomial::new(3.0, p).log_prob(0.0)), -3.0);
    assert_eq!(slope(0.0, |rate| Poisson::new(rate).log_prob(0.0)), -1.0);
    assert!(slope(0.0, |p| Bernoulli::new(p).entropy()).is_finite());
    // Equal distributions that are certain have no divergence.
    let certain = &Tensor::from([0.0, 1.0]);
    assert_eq!(kl_divergence(&Bernoulli::new(certain), &Bernoulli::new(certain)).to_vec(), [0.0, 0.0]);
    assert_eq!(kl_divergence(&Categorical::new(certain), &Categorical::new(certain)).item(), 0.0);
    assert!(slope(0.0, |p| kl_divergence(&Bernoulli::new(p), &Bernoulli::new(p.tape().constant(0.5)))).is_finite());
}

#[test]
fn cdf_of_counts_is_zero_or_one_at_the_ends() {
    let binomial = |p: f64| Binomial::new(5.0, &Tensor::scalar(p)).cdf(Tensor::from([0.0, 4.0, 5.0])).to_vec();
    assert_eq!(binomial(1.0), [0.0, 0.0, 1.0]);
    assert_eq!(binomial(0.0), [1.0, 1.0, 1.0]);
    assert_eq!(slope(0.3, |p| Binomial::new(5.0, p).cdf(5.0)), 0.0);
    assert_eq!(slope(0.3, |p| NegativeBinomial::new(0.0, p).cdf(2.0)), 0.0);
}

#[test]
fn densities_at_infinity_are_zero() {
    let two = Tensor::scalar(2.0);
    let infinity = f64::INFINITY;
    let logarithms = [
        Gamma::new(&two, 1.0).log_prob(infinity),
        Weibull::new(&two, 1.0).log_prob(infinity),
        Weibull::new(&two, 3.0).log_prob(infinity),
        InverseGamma::new(&two, 1.0).log_prob(infinity),
        LogNormal::new(&two, 1.0).log_prob(infinity),
        Gumbel::new(&two, 1.0).log_prob(infinity),
        Gumbel::new(&two, 1.0).log_prob(-infinity),
        Normal::new(&two, 1.0).log_prob(-infinity),
        StudentT::new(&two, 0.0, 1.0).log_prob(-infinity),
    ];
    assert!(logarithms.iter().all(|x| x.item() == f64::NEG_INFINITY), "{logarithms:?}");
}

/// The density of trials is continued to real numbers of successes. Its derivative is ln p - ln (1 - p), also at the ends of the support.
#[test]
fn discrete_densities_have_derivatives_at_counts_of_zero() {
    for p in [0.3, 0.5, 0.9f64] {
        for k in [0.0, 1.0] {
            let got = slope(k, |x| Bernoulli::new(x.tape().constant(p)).log_prob(x));
            assert!((got - (p.ln() - (-p).ln_1p())).abs() < 1e-14, "p = {p}, k = {k}: {got}");
        }
    }
}

#[test]
fn densities_at_the_ends_of_their_support_have_derivatives() {
    assert_eq!(slope(0.0, |x| Gamma::new(x.tape().constant(1.0), 3.0).log_prob(x)), -3.0);
    assert_eq!(slope(0.0, |x| Beta::new(x.tape().constant(1.0), 3.0).log_prob(x)), -2.0);
    assert_eq!(slope(1.0, |x| Beta::new(x.tape().constant(3.0), 1.0).log_prob(x)), 2.0);
}

#[test]
fn lower_tails_keep_their_digits() {
    let zero = || Tensor::scalar(0.0);
    assert_close(Laplace::new(&zero(), 1.0).cdf(-40.0).item(), 0.5 * (-40f64).exp(), 1e-15);
    assert_close(Laplace::new(&zero(), 1.0).icdf(1e-20).item(), 2e-20f64.ln(), 1e-15);
    assert_close(Cauchy::new(&zero(), 1.0).cdf(-1e17).item(), 1e-17 / std::f64::consts::PI, 1e-15);
    assert_close(Cauchy::new(&zero(), 1.0).icdf(1e-20).item(), -1e20 / std::f64::consts::PI, 1e-15);
    // π/2 rounded to f32 is larger than π/2, and the tangent of a number above π/2 is negative.
    let cauchy = Cauchy::new(&Tensor::scalar(0f32), 1.0).icdf(1e-10).item();
    assert_close(f64::from(cauchy), -1e10 / std::f64::consts::PI, 1e-6);
    assert_eq!(HalfCauchy::new(&Tensor::scalar(1f32)).icdf(1.0).item(), f32::INFINITY);
    assert_eq!(
        Cauchy::new(&zero(), 1.0).icdf(Tensor::from([0.0, 0.5, 1.0])).to_vec(),
        [f64::NEG_INFINITY, 0.0, f64::INFINITY]
    );
    // The expected values were computed with mpmath.
    let student = |df: f64, x: f64| StudentT::new(&Tensor::scalar(df), 0.0, 1.0).cdf(x).item();
    assert_close(student(1e4, -38.0), 1.448_300_534_89e-295, 1e-10);
    assert_close(student(1e8, -27.0), 7.399_332_118_96e-161, 1e-10);
    let student = StudentT::new(&Tensor::scalar(1e4f32), 0.0, 1.0).cdf(-10.0).item();
    assert_close(f64::from(student), 9.816_403_714_33e-24, 1e-5);
    let quantile = |df: f32, p: f32| f64::from(StudentT::new(&Tensor::scalar(df), 0.0, 1.0).icdf(p).item());
    assert_close(quantile(1e8, 0.9), 1.281_551_480, 1e-6);
    assert_close(quantile(1.0, 1e-30), -3.183_099_0e29, 1e-6);
}

#[test]
fn derivatives_at_medians_agree_with_formulas() {
    assert_eq!(slope(0.0, |x| Laplace::new(x.tape().constant(0.0), 2.0).cdf(x)), 0.25);
    assert_eq!(slope(0.5, |p| Laplace::new(p.tape().constant(0.0), 2.0).icdf(p)), 4.0);
    assert_eq!(slope(-1e3, |x| Gumbel::new(x.tape().constant(0.0), 1.0).cdf(x)), 0.0);
    // The derivative with respect to df is 0 at the median, and nearly 0 near the median.
    for z in [0f32, 1e-25, 1e-3] {
        let (value, slope) = with_gradient(&[2f32], |df| StudentT::new(df, 0.0, 1.0).cdf(z));
        assert!((value[0] - 0.5).abs() < 1e-3 && slope[0].abs() < 1e-3, "{z}: {value:?}, {slope:?}");
    }
    let (_, slope) = with_gradient(&[2f32], |df| StudentT::new(df, 0.0, 1.0).icdf(0.5));
    assert_eq!(slope, [0.0]);
    // The formula for small z and the formula for other z give nearly the same derivative on both sides of the bound 1e-3.
    let df = |z: f64| slope_of_student(2.0, z);
    assert_close(df(0.999e-3) / 0.999e-3, df(1.001e-3) / 1.001e-3, 1e-5);
}

fn slope_of_student(df: f64, z: f64) -> f64 {
    slope(df, |df| StudentT::new(df, 0.0, 1.0).cdf(z))
}

#[test]
fn samples_with_small_concentrations_have_the_right_means() {
    // With a probability near 1/9, all three gamma draws of a vector would underflow to 0. The largest share must still be nearly 1 almost
    // always.
    let shares = Dirichlet::new(&Tensor::<f64>::full([3], 1e-3)).sample([2000], &mut Generator::new(0));
    let largest = shares.amax(-1);
    assert!(largest.gt(0.99).cast::<f64>().mean(..).item() > 0.97);
    let means = shares.mean(0).to_vec();
    assert!(means.iter().all(|mean| (mean - 1.0 / 3.0).abs() < 0.05), "{means:?}");
    // The mean of the first share is a₁ / Σ aₖ. If all three concentrations are a, the derivatives are 2 / (9 a) for a₁, and -1 / (9 a) for
    // the others.
    let tape = Tape::<f64>::new();
    let a = tape.var(&Tensor::full([3], 0.2));
    let x = Dirichlet::new(a).rsample([20_000], &mut Generator::new(1));
    let [slope] = x.select(1, 0).mean(..).grad([a]);
    for (got, want) in slope.value().to_vec().iter().zip([2.0 / 9.0, -1.0 / 9.0, -1.0 / 9.0]) {
        assert!((got - want / 0.2).abs() < 0.05, "{got}, not {}", want / 0.2);
    }
}

#[test]
fn copies_of_composed_distributions_are_independent() {
    let generator = &mut Generator::new(0);
    let halves = Tensor::from([0.5, 0.5]);
    let rows = Tensor::from([[-10.0, 10.0], [-20.0, 20.0], [-30.0, 30.0]]);
    let check = |samples: &Tensor<f64>, sizes: [f64; 3]| {
        assert_eq!(samples.shape(), &[1000, 3]);
        for (copy, size) in sizes.iter().enumerate() {
            let copy = samples.select(1, copy as isize);
            assert!((copy.abs() - *size).abs().amax(..).item() < 2.0);
            assert!(copy.sign().mean(..).item().abs() < 0.15);
        }
        let (first, second) = (samples.select(1, 0).sign(), samples.select(1, 1).sign());
        assert!((first * second).mean(..).item().abs() < 0.15);
    };
    // First, three mixtures share one vector of weights. Then three vectors of weights share the same two components.
    let mixture = MixtureSameFamily::new(Categorical::new(&halves), Normal::new(&rows, 0.1));
    check(&mixture.sample([1000], generator), [10.0, 20.0, 30.0]);
    let weights = halves.expand([3, 2]);
    let mixture = MixtureSameFamily::new(Categorical::new(&weights), Normal::new(&Tensor::from([-10.0, 10.0]), 0.1));
    check(&mixture.sample([1000], generator), [10.0, 10.0, 10.0]);
    let different = Normal::new(&Tensor::<f64>::zeros([4, 2]), 1.0);
    assert!(MixtureSameFamily::try_new(Categorical::new(&weights), different).is_err());

    // Tests affine transforms whose parameters have a larger shape than the base. The batch shape grows from [] to [3], and from [1, 2] to
    // [3, 2].
    let affine = |shape: &[usize]| Transform::Affine { loc: Tensor::zeros(shape), scale: Tensor::full(shape, 2.0) };
    let base = Normal::new(&Tensor::<f64>::scalar(0.0), 1.0);
    let transformed = TransformedDistribution::new(base, vec![affine(&[3])]);
    let x = transformed.sample([2000], generator);
    assert_eq!((x.shape(), transformed.batch_shape()), (&Shape::from([2000, 3]), Shape::from([3])));
    assert!((x.select(1, 0) * x.select(1, 1)).mean(..).item().abs() < 0.5);
    let base = Normal::new(&Tensor::from([[0.0, 100.0]]), 1.0);
    let transformed = TransformedDistribution::new(base, vec![affine(&[3, 1]), Transform::Tanh]);
    assert_eq!(transformed.sample([5], generator).shape(), &[5, 3, 2]);
    let base = Normal::new(&Tensor::from([[0.0, 100.0]]), 1.0);
    let x = TransformedDistribution::new(base, vec![affine(&[3, 1])]).sample([2000], generator);
    assert!((x.mean(0) - Tensor::from([0.0, 200.0])).abs().amax(..).item() < 0.2);
    let (first, second) = (x.select(1, 0).select(1, 0), x.select(1, 1).select(1, 0));
    assert!((first * second).mean(..).item().abs() < 0.5);
    let (first, second) = (x.select(1, 0).select(1, 0), x.select(1, 0).select(1, 1));
    assert!((first * (second - 200.0)).mean(..).item().abs() < 0.5);
}

#[test]
fn counts_of_rare_events_have_their_probabilities() {
    // With n trials of the probability 1/n, the number of successes is nearly a Poisson number with mean 1. A formula with 1 - 1/n would
    // lose digits, because f32 rounds 1 - 1e-6.
    let n = Tensor::scalar(1e6f32);
    let share = Binomial::new(&n, &Tensor::scalar(1e-6)).cdf(Tensor::from([0.0, 1.0]));
    let expected = (-1f64).exp();
    assert_close(f64::from(share.get(&[0]).unwrap()), expected, 1e-6);
    assert_close(f64::from(share.get(&[1]).unwrap()), 2.0 * expected, 1e-6);
    let share = NegativeBinomial::new(&n, &Tensor::scalar(1e-6)).cdf(0.0);
    assert_close(f64::from(share.item()), expected, 1e-6);
    // The probability of 0 successes is 0.3678795, and the quantile jumps there.
    let quantiles = Binomial::new(&n, &Tensor::scalar(1e-6)).icdf(Tensor::from([0.3675, 0.3682])).to_vec();
    assert_eq!(quantiles, [0.0, 1.0]);
}

#[test]
fn samples_have_a_density() {
    let generator = &mut Generator::new(0);
    // About one of 30,000 numbers of f32 would round to the upper end 1001, where the density is 0.
    let uniform = Uniform::new(&Tensor::scalar(1000f32), 1001.0);
    let x = uniform.sample([1_000_000], generator);
    assert!(x.lt(1001.0).all(..).item() && uniform.log_prob(&x).isfinite().all(..).item());
    for transform in [Transform::Sigmoid, Transform::Tanh, Transform::Exp, Transform::Softplus] {
        let base = Normal::new(&Tensor::from([-200f32, 0.0, 50.0]), 1.0);
        let transformed = TransformedDistribution::new(base, vec![transform.clone()]);
        let x = transformed.sample([100], generator);
        assert!(transformed.log_prob(&x).isfinite().all(..).item(), "{transform:?}");
    }
    let base = Normal::new(&Tensor::from([-200f32, 50.0]), 1.0);
    let shares = TransformedDistribution::new(base, vec![Transform::StickBreaking]);
    assert!(shares.log_prob(shares.sample([100], generator)).isfinite().all(..).item());
}

#[test]
fn the_variance_of_narrow_weibull_distributions_keeps_its_digits() {
    // The columns are the concentration and the variance, which was computed with mpmath.
    let table = [
        (19.0, 0.004009550091885557),
        (21.0, 0.003319733860019494),
        (1e3, 1.640642681484991e-6),
        (1e8, 1.644934023817455e-16),
    ];
    for (k, want) in table {
        assert_close(Weibull::new(&Tensor::scalar(1.0), k).variance().item(), want, 1e-11);
        assert_close(Weibull::new(&Tensor::scalar(1f32), k as f32).variance().item().into(), want, 5e-4);
    }
    assert_eq!(Weibull::new(&Tensor::scalar(2.0), 1e-3).variance().item(), f64::INFINITY);
    let expected = slope(30.0 - 1e-4, |k| Weibull::new(k * 0.0 + 1.0, k).stddev());
    assert_close(slope(30.0, |k| Weibull::new(k * 0.0 + 1.0, k).stddev()), expected, 1e-4);
}

#[test]
fn truncation_to_tails_keeps_digits() {
    // The columns are the two bounds and three values from SciPy: the logarithm of the density and the distribution function in the middle of
    // the interval, and the median.
    let table = [
        (5.0, 6.0, -0.975_492_436_675_2, 0.936_978_713_476_6, 5.131_371_763_283_9),
        (9.0, 10.0, -2.415_721_900_924, 0.990_768_095_837_5, 9.075_779_713_738_5),
        (-10.0, -9.0, -2.415_721_900_924, 0.009_231_904_162_5, -9.075_779_713_738_5),
        (-1.0, 0.5, -0.320_592_900_651_8, 0.455_396_280_384_1, -0.188_968_232_205_8),
    ];
    for (low, high, logarithm, share, median) in table {
        let truncated = Truncated::new(Normal::new(&Tensor::scalar(0.0), 1.0), low, high);
        assert_close(truncated.log_prob(0.5 * (low + high)).item(), logarithm, 1e-6);
        assert_close(truncated.cdf(0.5 * (low + high)).item(), share, 1e-6);
        assert_close(truncated.icdf(0.5).item(), median, 1e-6);
        // Compares the derivative with respect to the lower bound with a central difference.
        let at = |low: f64| Truncated::new(Normal::new(&Tensor::scalar(0.0), 1.0), low, high).icdf(0.3).item();
        let by_low = slope(low, |low| Truncated::new(Normal::new(low * 0.0, 1.0), low, high).icdf(0.3));
        assert_close(by_low, (at(low + 1e-4) - at(low - 1e-4)) / 2e-4, 1e-5);
    }
    // A truncation without an upper bound, to a tail whose probability is nearly 0.
    let tail = Truncated::new(Normal::new(&Tensor::scalar(0.0), 1.0), 30.0, f64::INFINITY);
    assert_close(tail.log_prob(30.01).item(), 3.102_255_423_138_6, 1e-12);
    assert_close(tail.icdf(0.5).item(), 30.023_070_467_827_3, 1e-13);
    let samples = tail.sample([100], &mut Generator::new(0));
    assert!(samples.ge(30.0).all(..).item() && samples.amax(..).item() < 31.0 && samples.var(.., 1).item() > 1e-4);
    let none = Truncated::new(Normal::new(&Tensor::scalar(0.0), 1.0), 49.0, 50.0);
    assert!(none.log_prob(49.5).item().is_nan() && none.icdf(0.5).item().is_nan());
    // A lower bound of ∞ or an upper bound of -∞ leaves no values.
    for (low, high) in [(f64::INFINITY, f64::INFINITY), (f64::NEG_INFINITY, f64::NEG_INFINITY), (f64::INFINITY, 0.0)] {
        let none = Truncated::new(Normal::new(&Tensor::scalar(0.0), 1.0), low, high);
        assert!(none.icdf(0.5).item().is_nan() && !none.log_prob(0.5).item().is_finite(), "{low} {high}");
    }
}

#[test]
fn stick_breaking_of_no_numbers_is_one() {
    let transform = Transform::StickBreaking;
    let none = Tensor::<f64>::zeros([2, 0]);
    assert_eq!(transform.forward(&none), Tensor::ones([2, 1]));
    assert_eq!(transform.inverse(Tensor::ones([2, 1])), none);
    assert_eq!(transform.log_abs_det(&none), Tensor::zeros([2]));
    let tape = Tape::new();
    assert_eq!(Transform::StickBreaking.forward(tape.var(&none)).value(), Tensor::ones([2, 1]));
    let shares = TransformedDistribution::new(Normal::new(&none, 1.0), vec![Transform::StickBreaking]);
    assert_eq!((shares.batch_shape(), shares.event_shape()), (Shape::from([2]), Shape::from([1])));
    assert_eq!(shares.sample([3], &mut Generator::new(0)), Tensor::ones([3, 2, 1]));
    // Stick-breaking needs a dimension, and its inverse needs at least one share.
    assert!(transform.try_forward(&Tensor::<f64>::scalar(1.0)).is_err());
    assert!(transform.try_inverse(&none).is_err());
}

#[test]
fn parameters_that_lose_more_dimensions_than_they_have_do_not_fit() {
    let base = Normal::new(&Tensor::<f64>::zeros([5]), 1.0);
    let affine = Transform::Affine { loc: Tensor::zeros([2]), scale: Tensor::ones([2]) };
    let mut transforms = vec![Transform::StickBreaking; 3];
    transforms.push(affine);
    let transformed = TransformedDistribution::new(base, transforms);
    assert_eq!(transformed.batch_shape(), Shape::scalar());
    assert!(transformed.try_sample([], &mut Generator::new(0)).is_err());
}

#[test]
fn there_is_at_least_one_class() {
    for shape in [&[0][..], &[3, 0], &[0, 0]] {
        let none = &Tensor::<f64>::zeros(shape);
        let errors = [
            ("probs", Categorical::try_new(none).map(drop)),
            ("logits", Categorical::try_from_logits(none).map(drop)),
            ("probs", Multinomial::try_new(2, none).map(drop)),
            ("logits", Multinomial::try_from_logits(2, none).map(drop)),
        ];
        for (name, error) in errors {
            let sentence = error.unwrap_err().sentence();
            let expected = format!("`{name}` has the shape {}, but there must be at least one class", none.shape());
            assert_eq!(sentence, expected);
        }
    }
    // Samples of an empty batch of distributions have no elements.
    let generator = &mut Generator::new(0);
    let empty = Tensor::<f64>::ones([0, 3]);
    assert_eq!(Categorical::new(&empty).sample([2], generator).shape(), &[2, 0]);
    assert_eq!(Multinomial::new(2, &empty).sample([2], generator).shape(), &[2, 0, 3]);
    // As in PyTorch, the samples of a Dirichlet distribution may be empty vectors. Their sum is 0 and not 1, so their density is 0.
    let dirichlet = Dirichlet::new(&Tensor::<f64>::ones([2, 0]));
    assert_eq!(dirichlet.sample([3], generator).shape(), &[3, 2, 0]);
    assert_eq!(dirichlet.log_prob(Tensor::zeros([2, 0])).to_vec(), [f64::NEG_INFINITY; 2]);
}

/// Checks that all three constructors of [`MultivariateNormal`] refuse the same shapes.
#[test]
fn a_matrix_that_does_not_fit_the_mean_is_an_error() {
    let refused: [(&[usize], &[usize]); 5] =
        [(&[], &[2, 2]), (&[2], &[2]), (&[2], &[3, 3]), (&[2], &[2, 3]), (&[3, 2], &[4, 2, 2])];
    for (mean, matrix) in refused {
        let (mean, matrix) = (Tensor::<f64>::ones(mean), Tensor::ones(matrix));
        assert!(MultivariateNormal::try_new(&mean, &matrix).is_err());
        assert!(MultivariateNormal::try_from_scale_tril(&mean, &matrix).is_err());
        assert!(MultivariateNormal::try_from_precision(&mean, &matrix).is_err());
    }
    let factor = Tensor::from([[2.0, 0.0], [1.0, 3.0]]);
    let normal = MultivariateNormal::try_from_scale_tril(&Tensor::from([0.0, 0.0]), &factor).unwrap();
    let x = Tensor::from([2.0, 4.0]);
    let expected = -1.0 - (std::f64::consts::TAU * 6.0).ln(); // L⁻¹ x is (1, 1), and the determinant of L is 6
    assert!((normal.log_prob(&x).item() - expected).abs() < 1e-12);
}

#[test]
fn sizes_that_memory_cannot_hold_are_errors() {
    const HUGE: usize = 1 << 50;
    let generator = &mut Generator::new(0);
    // The identity matrix with a million rows needs 8 TiB.
    let (mean, precision) = (Tensor::<f64>::zeros([0, 1 << 20]), Tensor::zeros([0, 1 << 20, 1 << 20]));
    assert!(MultivariateNormal::try_from_precision(&mean, &precision).is_err());
    assert!(Transform::StickBreaking.try_forward(&Tensor::scalar(1.0).expand([HUGE])).is_err());
    assert!(Categorical::new(&Tensor::<f64>::ones([0, HUGE])).try_log_prob(Tensor::zeros([0])).is_err());
    assert!(LkjCholesky::new(HUGE, &Tensor::<f64>::ones([0])).try_sample([], generator).is_err());
}

/// The entropies were computed with mpmath. For many degrees of freedom, the distribution is normal.
#[test]
fn student_with_many_degrees_of_freedom() {
    let student = |df: f64| StudentT::new(&Tensor::scalar(df), 0.0, 1.0);
    for (df, want) in [
        (1e3, 1.4199387830378814),
        (2e3, 1.4194385956838316),
        (1e5, 1.4189485332296726),
        (1e15, 1.4189385332046737),
        (1e300, 1.4189385332046727),
    ] {
        assert_close(student(df).entropy().item(), want, 1e-12);
    }
    for df in [1e23, 1e300, f64::MAX] {
        assert_close(student(df).cdf(-1.0).item(), 0.15865525393145705, 1e-14);
        let normal = Normal::new(&Tensor::scalar(0.0), 1.0);
        assert_close(student(df).icdf(1e-300).item(), normal.icdf(1e-300).item(), 1e-14);
    }
    for df in [1e16, 5e16, 1e18, 9e21] {
        for (z, want) in [
            (-1e-3, 0.49960105778608894),
            (0.0, 0.5),
            (1e-2, 0.5039893563146316),
            (-1.0, 0.15865525393145705),
            (-5.0, 2.866_515_718_791_939e-7),
        ] {
            assert_close(student(df).cdf(z).item(), want, 1e-12);
        }
    }
    // The slope of the entropy is continuous where the formula changes.
    let of_entropy = |df: f64| slope(df, |df| StudentT::new(df, 0.0, 1.0).entropy());
    assert_close(of_entropy(999.99), of_entropy(1000.01), 1e-4);
}

#[test]
fn the_squares_of_cauchy_numbers_may_overflow() {
    let want = -922.1787670834677; // -ln π - 400 ln 10
    assert_close(Cauchy::new(&Tensor::scalar(0.0), 1.0).log_prob(-1e200).item(), want, 1e-15);
    assert_close(HalfCauchy::new(&Tensor::scalar(1.0)).log_prob(1e200).item(), want + 2f64.ln(), 1e-15);
    assert_close(slope(1e200, |x| Cauchy::new(x * 0.0, 1.0).log_prob(x)), -2e-200, 1e-15);
}

#[test]
fn large_and_small_scales_do_not_overflow_on_the_way() {
    let scalar = |x: f32| Tensor::scalar(x);
    // The square of the standardised number overflows in f32. The expected value was computed with mpmath.
    let student = StudentT::new(&scalar(3.0), 0.0, 1.0).log_prob(1e25).item();
    assert_close(f64::from(student), -229.062_173_571_691_86, 1e-6);
    // The squares of the scales are 0 in f32.
    let (narrow, wide) = (Normal::new(&scalar(0.0), 1e-25), Normal::new(&scalar(0.0), 1.0));
    assert_close(f64::from(kl_divergence(&narrow, &wide).item()), 25.0 * 10f64.ln() - 0.5, 1e-6);
    let (half, one) = (HalfNormal::new(&scalar(1e-25)), HalfNormal::new(&scalar(1.0)));
    assert_close(f64::from(kl_divergence(&half, &one).item()), 25.0 * 10f64.ln() - 0.5, 1e-6);
    // The square of the parameters' sum overflows in f32.
    assert_close(f64::from(Beta::new(&scalar(1e20), 1e20).variance().item()), 1.25e-21, 1e-6);
    // The power overflows in f32, where the distribution function is 1.
    let (value, gradient) = with_gradient(&[3f32, 1.0], |x| Weibull::new(x.tape().constant(1f32), 100.0).cdf(x));
    assert_eq!((value[0], gradient[0]), (1.0, 0.0));
    assert_close(f64::from(gradient[1]), 100.0 * (-1f64).exp(), 1e-6);
    let (value, gradient) = with_gradient(&[1f32], |scale| Weibull::new(scale, 2.0).cdf(f32::INFINITY));
    assert_eq!((value[0], gradient[0]), (1.0, 0.0));
}

#[test]
fn divergences_of_extreme_scales_are_finite() {
    // The quotient of the scales is 0 in f32.
    let logarithm = 50.0 * 10f64.ln();
    let (value, gradient) =
        with_gradient(&[1e-30f32], |p| kl_divergence(&Normal::new(p * 0.0, p), &Normal::new(p * 0.0, 1e20)));
    assert_close(f64::from(value[0]), logarithm - 0.5, 1e-6);
    assert_close(f64::from(gradient[0]), -1e30, 1e-6);
    let (value, gradient) =
        with_gradient(&[1e-30f32], |p| kl_divergence(&HalfNormal::new(p), &HalfNormal::new(p * 0.0 + 1e20)));
    assert_close(f64::from(value[0]), logarithm - 0.5, 1e-6);
    assert_close(f64::from(gradient[0]), -1e30, 1e-6);
    // A row has the location and scale of p, the location and scale of q, and the divergence from mpmath.
    for (p, q, want) in [
        ([0.0, 3e-25], [2e-25, 1e-25], 0.510_825_623_765_990_7),
        ([0.0, 1e-21], [0.0, 1e18], 88.414_524_265_647_89),
        ([0.0, 1e-15], [1e10, 1e-15], 113.742_960_288_582_4),
        ([0.0, 1e-19], [10.0, 1e-19], 90.717_109_358_641_94),
        ([1.0, 1e38], [0.0, 2e38], 0.117_783_035_656_383_45),
        ([0.0, 3e38], [0.0, 3e38], 0.0),
        ([0.0, 1e-30], [0.0, 1e-27], 5.523_459_918_528_413),
        ([0.0, 2.0], [7.0, 0.1], 4.201_141_545_665_889),
    ] {
        let (value, gradient) = with_gradient(&[p[0], p[1], q[0], q[1]].map(|x| x as f32), |x| {
            kl_divergence(&Cauchy::new(x.select(0, 0), x.select(0, 1)), &Cauchy::new(x.select(0, 2), x.select(0, 3)))
        });
        assert_close(f64::from(value[0]), want, 1e-6);
        // With half the distance d, the divergence is ln(((s + t) / 2)² + d²) - ln s - ln t.
        let (s, mean, d) = (p[1], (p[1] + q[1]) * 0.5, (p[0] - q[0]) * 0.5);
        assert_close(s * f64::from(gradient[1]), s * mean / (mean * mean + d * d) - 1.0, 1e-5);
        // The derivatives with respect to the logarithms of the scales and the locations' distance have the sum 0.
        let terms: Vec<f64> =
            [p[0] - q[0], p[1], q[1]].iter().zip([0, 1, 3]).map(|(x, k)| x * f64::from(gradient[k])).collect();
        assert!(terms.iter().sum::<f64>().abs() < 1e-5, "{terms:?}");
    }
}

#[test]
fn nearly_equal_parameters_keep_their_digits() {
    let near = 1.0 + 2f64.powi(-30);
    let divergence = kl_divergence(&Cauchy::new(&Tensor::scalar(0.0), near), &Cauchy::new(&Tensor::scalar(0.0), 1.0));
    assert_close(divergence.item(), 2f64.powi(-62), 1e-8);
    // The probability of a failure is exact, but 1 / p - 1 is not.
    let geometric = Geometric::new(&Tensor::scalar(1.0 - 2f64.powi(-50)));
    assert_close(geometric.mean().item(), 2f64.powi(-50), 1e-14);
    assert_close(geometric.variance().item(), 2f64.powi(-50), 1e-14);
}
