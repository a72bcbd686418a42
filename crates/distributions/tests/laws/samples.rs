//! Checks samples with fixed seeds: their moments, and the largest distance of their empirical distribution function from the exact one.

use wengert_autograd::prelude::*;
use wengert_distributions::prelude::*;

type Data = Tensor<f64>;

const N: usize = 20_000;

/// The distance from a continuous distribution function is measured at each 16th sample. Between two of these samples, the distance grows by
/// at most 16 / N, which is 6 % of the bound 2 / √N.
const STRIDE: usize = 16;

/// Compares the empirical distribution function of samples with `cdf` (A. N. Kolmogorov, 1933). By chance, the distance is larger than the
/// bound with a probability of 2 exp(-2 · 2²) = 0.0007. For a discrete distribution the probability is smaller.
fn check<D: Distribution<Data>>(distribution: &D, discrete: bool) {
    let name = distribution.name();
    let samples = distribution.sample([N], &mut Generator::new(7));
    assert_eq!(samples.shape(), &[N]);
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The last position of each distinct value among the sorted samples.
    let mut places: Vec<usize> = (0..N).filter(|&k| k + 1 == N || sorted[k + 1] > sorted[k]).collect();
    if !discrete {
        places = places.into_iter().step_by(STRIDE).collect();
    }
    let values: Vec<f64> = places.iter().map(|&k| sorted[k]).collect();
    let shares = distribution.cdf(Tensor::from_vec(values, [places.len()])).to_vec();
    let distances = shares.iter().zip(places).flat_map(|(share, k)| {
        let after = (share - (k + 1) as f64 / N as f64).abs();
        let before = (share - k as f64 / N as f64).abs();
        [after, if discrete { after } else { before }]
    });
    let distance = distances.max_by(f64::total_cmp).unwrap();
    assert!(distance < 2.0 / (N as f64).sqrt(), "{name}: {distance}");
    let (mean, variance) = (distribution.try_mean(), distribution.try_variance());
    if let (Ok(mean), Ok(variance)) = (mean, variance)
        && variance.item().is_finite()
        && mean.item().is_finite()
    {
        let error = (variance.item() / N as f64).sqrt();
        assert!((samples.mean(..).item() - mean.item()).abs() < 5.0 * error, "{name}: the mean");
        // The standard error of a variance, from the fourth moment of the samples.
        let squares = (&samples - mean.item()).square();
        let error = squares.std(.., 1.0).item() / (N as f64).sqrt();
        assert!((squares.mean(..).item() - variance.item()).abs() < 5.0 * error, "{name}: the variance");
    }
}

fn number(x: f64) -> Data {
    Tensor::scalar(x)
}

#[test]
fn samples_of_continuous_distributions_have_their_moments() {
    check(&Normal::new(&number(1.0), 2.0), false);
    check(&HalfNormal::new(&number(2.0)), false);
    check(&LogNormal::new(&number(0.3), 0.5), false);
    check(&StudentT::new(&number(6.0), 1.0, 2.0), false);
    check(&Cauchy::new(&number(1.0), 2.0), false);
    check(&HalfCauchy::new(&number(2.0)), false);
    check(&Laplace::new(&number(1.0), 2.0), false);
    check(&Gumbel::new(&number(1.0), 2.0), false);
    check(&Exponential::new(&number(2.0)), false);
    check(&Weibull::new(&number(2.0), 1.5), false);
    check(&Uniform::new(&number(-1.0), 2.0), false);
    for shape in [0.05, 0.8, 1.0, 7.5, 400.0] {
        check(&Gamma::new(&number(shape), 2.0), false);
    }
    check(&InverseGamma::new(&number(6.0), 2.0), false);
    check(&Beta::new(&number(0.3), 0.6), false);
    check(&Beta::new(&number(8.0), 2.5), false);
}

#[test]
fn samples_of_discrete_distributions_have_their_moments() {
    for rate in [0.4, 9.0, 15.0, 40.0, 5000.0] {
        check(&Poisson::new(&number(rate)), true);
    }
    check(&Bernoulli::new(&number(0.3)), true);
    check(&Geometric::new(&number(0.2)), true);
    for (trials, p) in [(5.0, 0.3), (24.0, 0.9), (200.0, 0.05), (1e6, 0.4)] {
        check(&Binomial::new(trials, &number(p)), true);
    }
    check(&NegativeBinomial::new(3.5, &number(0.6)), true);
}

/// Checks that every draw from a negative binomial distribution that ends at 0 failures is 0, also if the batch has distributions with other
/// parameters.
#[test]
fn no_failures_give_no_successes() {
    for probs in [0.0, 0.3, 0.999] {
        let none = NegativeBinomial::new(0.0, &number(probs));
        assert_eq!(none.sample([50], &mut Generator::new(7)), Tensor::zeros([50]));
        assert_eq!((none.mean().item(), none.cdf(0.0).item(), none.icdf(0.5).item()), (0.0, 1.0, 0.0), "{probs}");
    }
    let mixed = NegativeBinomial::new(&Tensor::from([0.0, 50.0]), &number(0.5)).sample([20], &mut Generator::new(7));
    assert_eq!(mixed.select(1, 0), Tensor::zeros([20]));
    assert!(mixed.select(1, 1).gt(0.0).all(..).item());
    let wrong = NegativeBinomial::new(-1.0, &number(0.5)).sample([], &mut Generator::new(7));
    assert!(wrong.item().is_nan());
    let tape = Tape::<f64>::new();
    let recorded = NegativeBinomial::new(tape.var(&number(0.0)), tape.var(&number(0.5)));
    assert_eq!(recorded.sample([], &mut Generator::new(7)).value().item(), 0.0);
}

#[test]
fn samples_of_combined_distributions_have_their_moments() {
    check(&Truncated::new(Normal::new(&number(1.0), 2.0), 0.0, f64::INFINITY), false);
    let transforms = vec![Transform::Softplus, Transform::Affine { loc: number(1.0), scale: number(-2.0) }];
    check(&TransformedDistribution::new(Normal::new(&number(0.3), 1.0), transforms), false);
    let components = Normal::new(&Tensor::from([-1.0, 0.5, 3.0]), &Tensor::from([0.5, 1.0, 2.0]));
    check(&MixtureSameFamily::new(Categorical::new(&Tensor::from([0.2, 0.3, 0.5])), components), false);
}

#[test]
fn samples_of_classes_and_counts_have_their_probabilities() {
    let probs = Tensor::from([[0.1, 0.0, 0.9], [0.5, 0.25, 0.25]]);
    let classes = Categorical::new(&probs).sample([N], &mut Generator::new(3));
    let counts = Multinomial::new(50, &probs).sample([N], &mut Generator::new(4));
    let shares = Dirichlet::new(&(&probs * 10.0 + 0.2)).sample([N], &mut Generator::new(5));
    assert_eq!(
        (classes.shape(), counts.shape(), shares.shape()),
        (&Shape::from([N, 2]), &Shape::from([N, 2, 3]), &Shape::from([N, 2, 3]))
    );
    assert!(counts.sum(-1).eq(50.0).all(..).item());
    assert!((shares.sum(-1) - 1.0).abs().amax(..).item() < 1e-14);
    // The standard error of the share of a class is at most √(1/4 / N), because the count of the class has a binomial distribution.
    let error = 5.0 * (0.25 / N as f64).sqrt();
    for class in 0..3 {
        let want = probs.select(1, class);
        let got = classes.eq(class as f64).cast::<f64>().mean(0);
        assert!((&got - &want).abs().amax(..).item() < error, "{class}: {got:?}");
        let got = counts.select(2, class).mean(0) / 50.0;
        assert!((&got - &want).abs().amax(..).item() < error, "{class}: {got:?}");
        assert!((shares.select(2, class).mean(0) - (&want * 10.0 + 0.2) / 10.6).abs().amax(..).item() < error);
    }
    assert!(!classes.select(1, 0).eq(1.0).any(..).item(), "a class without probability was drawn");
    let variance = Multinomial::new(50, &probs).variance();
    assert!((counts.var(0, 1.0) / (&variance + 1e-9) - 1.0).abs().select(1, 2).amax(..).item() < 0.06);
}

#[test]
fn samples_depend_only_on_the_seed_and_the_parameters() {
    let draw = |seed| Gamma::new(&number(0.7), 1.0).sample([5], &mut Generator::new(seed));
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    let tape = Tape::<f64>::new();
    let recorded = Gamma::new(tape.var(&number(0.7)), 1.0).rsample([5], &mut Generator::new(1));
    assert_eq!(recorded.value(), draw(1));
    // Tests that gamma and beta draws with small shape parameters do not underflow to 0 in f32.
    let tiny = Gamma::new(&Tensor::<f32>::scalar(1e-3), 1.0).sample([1000], &mut Generator::new(1));
    assert!(tiny.gt(0.0).all(..).item() && tiny.isfinite().all(..).item());
    let beta = Beta::new(&Tensor::<f32>::scalar(1e-2), 1e-2).sample([1000], &mut Generator::new(1));
    assert!(beta.gt(0.0).all(..).item() && beta.lt(1.0).all(..).item());
    assert_eq!(Normal::new(&Tensor::<f32>::zeros([0, 3]), 1.0).sample([2], &mut Generator::new(1)).shape(), &[2, 0, 3]);
    assert!(Gamma::new(&number(-1.0), 1.0).sample([], &mut Generator::new(0)).item().is_nan());
}

#[test]
fn samples_of_vectors_and_correlations_have_their_moments() {
    let covariance = Tensor::from([[2.0, 0.5], [0.5, 1.0]]);
    let x = MultivariateNormal::new(&Tensor::from([1.0, -1.0]), &covariance).sample([N], &mut Generator::new(1));
    let centred = &x - &Tensor::from([1.0, -1.0]);
    let found = centred.t().matmul(&centred) / N as f64;
    // The variance of a product of two normal numbers is at most twice the product of their variances.
    let error = 5.0 * (2.0 * 4.0 / N as f64).sqrt();
    assert!((found - covariance).abs().amax(..).item() < error);
    assert!(centred.mean(0).abs().amax(..).item() < 5.0 * (2.0 / N as f64).sqrt());

    // For each correlation r in a random correlation matrix with d rows, (r + 1) / 2 has a beta distribution. Both of its parameters are
    // η - 1 + d / 2.
    for (dim, eta) in [(2, 1.0), (3, 0.6), (4, 2.5)] {
        let l = LkjCholesky::new(dim, &number(eta)).sample([N], &mut Generator::new(2));
        assert_eq!(l.shape(), &[N, dim, dim]);
        let correlations = l.matmul(l.transpose(-2, -1));
        assert!((correlations.diagonal(0, -2, -1) - 1.0).abs().amax(..).item() < 1e-14);
        let parameter = eta - 1.0 + dim as f64 / 2.0;
        let beta = Beta::new(&number(parameter), parameter);
        for row in 1..dim {
            let r = correlations.select(1, row).select(1, 0);
            let mut sorted = ((r + 1.0) * 0.5).to_vec();
            sorted.sort_by(f64::total_cmp);
            let some: Vec<f64> = sorted.into_iter().step_by(STRIDE).collect();
            let count = some.len();
            let shares = beta.cdf(Tensor::from_vec(some, [count])).to_vec();
            let distance =
                (0..N).step_by(STRIDE).zip(shares).map(|(k, share)| (share - (k as f64 + 0.5) / N as f64).abs());
            let distance = distance.max_by(f64::total_cmp).unwrap();
            assert!(distance < 2.0 / (N as f64).sqrt(), "{dim} {eta} {row}: {distance}");
        }
    }
}
