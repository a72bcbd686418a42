//! Checks the derivatives of logarithms of densities, entropies, distribution functions, quantiles and samples. The derivatives of the
//! densities and the entropies are checked to second order.

use wengert_autograd::prelude::*;
use wengert_autograd::{GradCheck, assert_gradcheck, transforms};
use wengert_distributions::prelude::*;

/// Returns a check of derivatives with an accuracy of 1e-8, because the trigamma function of tensors has only nine correct digits.
fn check() -> GradCheck {
    GradCheck::new().accuracy(1e-8)
}

macro_rules! log_probs {
    ($($test:ident: |$x:ident $(, $p:ident)+| $make:expr, $values:expr $(, $parameter:expr)+;)*) => {$(
        #[test]
        fn $test() {
            let values = Tensor::from($values);
            assert_gradcheck!(check(), |$x $(, $p)+| $make.log_prob($x), &values $(, &Tensor::from($parameter))+);
        }
    )*};
}

log_probs! {
    normal: |x, a, b| Normal::new(a, b), [[-1.0], [0.5]], [0.2, 1.0], [0.7, 1.5];
    half_normal: |x, a| HalfNormal::new(a), [[0.3], [1.5]], [0.7, 1.5];
    log_normal: |x, a, b| LogNormal::new(a, b), [[0.3], [1.5]], [0.2, 1.0], [0.7, 1.5];
    student: |x, d, a, b| StudentT::new(d, a, b), [[-1.0], [0.5]], [0.8, 5.0], [0.2, 1.0], [0.7, 1.5];
    cauchy: |x, a, b| Cauchy::new(a, b), [[-1.0], [0.5]], [0.2, 1.0], [0.7, 1.5];
    half_cauchy: |x, a| HalfCauchy::new(a), [[0.3], [1.5]], [0.7, 1.5];
    laplace: |x, a, b| Laplace::new(a, b), [[-1.0], [0.5]], [0.2, 1.0], [0.7, 1.5];
    gumbel: |x, a, b| Gumbel::new(a, b), [[-1.0], [0.5]], [0.2, 1.0], [0.7, 1.5];
    exponential: |x, a| Exponential::new(a), [[0.3], [1.5]], [0.7, 1.5];
    weibull: |x, a, b| Weibull::new(a, b), [[0.3], [1.5]], [0.7, 1.5], [0.8, 2.5];
    gamma: |x, a, b| Gamma::new(a, b), [[0.3], [1.5]], [0.7, 2.5], [0.8, 2.5];
    inverse_gamma: |x, a, b| InverseGamma::new(a, b), [[0.3], [1.5]], [0.7, 2.5], [0.8, 2.5];
    beta: |x, a, b| Beta::new(a, b), [[0.3], [0.85]], [0.7, 2.5], [0.8, 2.5];
    dirichlet: |x, a| Dirichlet::new(a).base_check(), [0.2, 0.3, 0.5], [0.7, 2.5, 1.0];
}

/// A method that wraps a distribution, so that `log_prob` first divides its point by the sum of the elements. The check of derivatives
/// changes single elements, so the point leaves the simplex. The density is not defined outside of it.
trait BaseCheck<A> {
    fn base_check(self) -> Normalised<Self>
    where
        Self: Sized,
    {
        Normalised(self)
    }
}

impl<A> BaseCheck<A> for Dirichlet<A> {}

struct Normalised<D>(D);

impl<'t> Normalised<Dirichlet<Var<'t, f64>>> {
    fn log_prob(&self, x: Var<'t, f64>) -> Var<'t, f64> {
        self.0.log_prob(x / x.sum(..))
    }
}

#[test]
fn entropies_that_are_sums_over_counts_have_derivatives() {
    let (two, shares) = (Tensor::from([0.7, 2.5]), Tensor::from([0.2, 0.3, 0.5]));
    assert_gradcheck!(check(), |rate| Poisson::new(rate).entropy(), &two);
    assert_gradcheck!(check(), |p| Binomial::new(&Tensor::from([3.0, 4.0, 2.0]), p).entropy(), &shares);
    assert_gradcheck!(check(), |p| Multinomial::new(4, p).entropy(), &shares);
}

#[test]
fn the_derivative_of_a_discrete_quantile_is_zero() {
    let tape = Tape::<f64>::new();
    let (rate, p) = (tape.var(&Tensor::scalar(3.0)), tape.var(&Tensor::scalar(0.4)));
    let [by_rate, by_p] = (Poisson::new(rate).icdf(p) + rate * 0.0 + p * 0.0).grad([rate, p]);
    assert_eq!((by_rate.item(), by_p.item()), (0.0, 0.0));
}

#[test]
fn discrete_densities_have_derivatives() {
    let (k, p, r) = (Tensor::from([[0.0], [1.0], [3.0]]), Tensor::from([0.2, 0.7]), Tensor::from([1.5, 4.0]));
    assert_gradcheck!(check(), |r| Poisson::new(r).log_prob(&k), &r);
    assert_gradcheck!(check(), |p| Geometric::new(p).log_prob(&k), &p);
    assert_gradcheck!(check(), |p| Binomial::new(5.0, p).log_prob(&k), &p);
    assert_gradcheck!(check(), |r, p| NegativeBinomial::new(r, p).log_prob(&k), &r, &p);
    assert_gradcheck!(check(), |p| Bernoulli::new(p).log_prob(k.narrow(0, 0, 2)), &p);
    assert_gradcheck!(check(), |l| Bernoulli::from_logits(l).log_prob(k.narrow(0, 0, 2)), &r);
    assert_gradcheck!(check(), |l| Categorical::from_logits(l).log_prob(&Tensor::from([0.0, 1.0])), &r);
    let counts = Tensor::from([1.0, 2.0]);
    assert_gradcheck!(check(), |l| Multinomial::from_logits(3, l).log_prob(&counts), &r);
}

#[test]
fn distribution_functions_and_combinations_have_derivatives() {
    let (x, a, b) = (Tensor::from([[0.0], [0.5], [2.5]]), Tensor::from([0.0, 1.2]), Tensor::from([0.7, 1.5]));
    let once = || check().order(1);
    let df = Tensor::from([0.8, 5.0]);
    // The formula of the distribution function has no derivative at x = a, where a is the location. Near this point, a Taylor polynomial
    // replaces the formula.
    assert_gradcheck!(once(), |d, x, a, b| StudentT::new(d, a, b).cdf(x), &df, &x, &a, &b);
    let p = Tensor::from([[0.1], [0.45], [0.97]]);
    assert_gradcheck!(once(), |d, p, a, b| StudentT::new(d, a, b).icdf(p), &df, &p, &a, &b);
    assert_gradcheck!(check(), |a, b| Truncated::new(Normal::new(a, b), -0.5, 3.0).log_prob(&x), &a, &b);
    assert_gradcheck!(check(), |a, b| Truncated::new(Normal::new(a, b), -0.5, f64::INFINITY).log_prob(&x), &a, &b);
    assert_gradcheck!(check(), |p, a, b| Truncated::new(Normal::new(a, b), -0.5, 3.0).icdf(p), &p, &a, &b);
    assert_gradcheck!(
        check(),
        |a, b| MixtureSameFamily::new(Categorical::from_logits(a), Normal::new(a, b))
            .log_prob(&Tensor::from([0.1, 2.0])),
        &a,
        &b
    );
    let z = Tensor::from([0.3, -0.4]);
    assert_gradcheck!(check(), |z| Transform::StickBreaking.forward(z), &z);
    assert_gradcheck!(check(), |z| Transform::StickBreaking.log_abs_det(z), &z);
    assert_gradcheck!(
        check(),
        |a, b| TransformedDistribution::new(Normal::new(a, b), vec![Transform::Softplus, Transform::Tanh])
            .log_prob(&Tensor::from([[0.3], [0.6]])),
        &a,
        &b
    );
}

/// Tests derivatives of samples of distributions of one variable. With the distribution function F and the density p, the derivative of a
/// sample x with respect to a parameter θ is -∂F(x; θ)/∂θ / p(x; θ). The test computes the derivative of F as a central difference.
#[test]
fn derivatives_of_samples_are_implicit() {
    macro_rules! compare {
        ($($name:ident ($($value:literal)*);)*) => {$(
            let values = [$($value),*];
            let tape = Tape::<f64>::new();
            let parameters = values.map(|value| tape.var(&Tensor::scalar(value)));
            let make = |p: [Tensor<f64>; [$($value),*].len()]| compare!(@make $name p);
            let x = compare!(@make $name parameters).rsample([6], &mut Generator::new(3));
            for (k, parameter) in parameters.into_iter().enumerate() {
                for element in 0..6 {
                    let [slope] = x.select(0, element).grad([parameter]);
                    let sample = Tensor::scalar(x.value().get(&[element]).unwrap());
                    let at = |step: f64| {
                        let mut values = values;
                        values[k] += step;
                        make(values.map(Tensor::scalar)).cdf(&sample).item()
                    };
                    let step = 1e-5;
                    let density = make(values.map(Tensor::scalar)).log_prob(&sample).exp().item();
                    let want = -(at(step) - at(-step)) / (2.0 * step) / density;
                    let got = slope.item();
                    assert!((got - want).abs() <= 1e-6 * want.abs().max(1e-2), "{}: {got} {want}", stringify!($name));
                }
            }
        )*};
        (@make HalfNormal $p:ident) => { HalfNormal::new(&$p[0]) };
        (@make HalfCauchy $p:ident) => { HalfCauchy::new(&$p[0]) };
        (@make Exponential $p:ident) => { Exponential::new(&$p[0]) };
        (@make $name:ident $p:ident) => { $name::new(&$p[0], &$p[1]) };
    }
    compare! {
        Normal (0.3 1.5); LogNormal (0.3 0.8); Laplace (0.3 1.5); Cauchy (0.3 1.5); Gumbel (0.3 1.5); Uniform (0.3 1.5);
        Weibull (0.7 1.5); Gamma (0.4 1.5); InverseGamma (2.5 1.5); Beta (0.4 1.5); HalfNormal (1.5); HalfCauchy (1.5);
        Exponential (1.5);
    }
}

/// Tests the means of the derivatives of samples. Samples of Student's t and of the Dirichlet distribution combine several draws, so the
/// derivative of a single sample is random. Its mean is known.
#[test]
fn derivatives_of_samples_have_the_right_means() {
    const N: usize = 20_000;
    let near = |slopes: &Tensor<f64>, want: f64| {
        let error = slopes.std(.., 1.0).item() / (N as f64).sqrt();
        assert!(
            (slopes.mean(..).item() - want).abs() < 5.0 * error,
            "{} ± {error}, not {want}",
            slopes.mean(..).item()
        );
    };
    let tape = Tape::<f64>::new();
    // Each sample has a parameter of its own, so that the gradient has one derivative for each sample.
    let df = tape.var(&Tensor::full([N], 12.0));
    let x = StudentT::new(df, 0.0, 1.0).rsample([], &mut Generator::new(1));
    let [slopes] = x.square().sum(..).grad([df]);
    near(&slopes.value(), -2.0 / (10.0 * 10.0)); // the derivative of df / (df - 2)
    let a = tape.var(&Tensor::full([N, 1], 0.7));
    let rest = tape.constant(Tensor::from([1.5, 2.0]).expand([N, 2]));
    let x = Dirichlet::new(&cat(&[a, rest], 1)).rsample([], &mut Generator::new(2));
    let [slopes] = x.select(1, 0).sum(..).grad([a]);
    near(&slopes.value(), 3.5 / (4.2 * 4.2)); // the derivative of a / (a + 3.5)
}

#[test]
fn vectors_and_correlations_have_derivatives() {
    let (x, loc) = (Tensor::from([[0.3, -0.4], [1.0, 2.0]]), Tensor::from([0.1, 0.2]));
    let l = Tensor::from([[1.2, 0.0], [0.4, 0.8]]);
    assert_gradcheck!(check(), |x, m, l| MultivariateNormal::from_scale_tril(m, l.tril(0)).log_prob(x), &x, &loc, &l);
    let covariance = |l: &Tensor<f64>| l.matmul(l.t());
    assert_gradcheck!(
        check(),
        |x, m, c| MultivariateNormal::new(m, (c + c.t()) * 0.5).log_prob(x),
        &x,
        &loc,
        &covariance(&l)
    );
    assert_gradcheck!(
        check(),
        |m, l| MultivariateNormal::from_scale_tril(m, l.tril(0)).rsample([3], &mut Generator::new(1)),
        &loc,
        &l
    );
    assert_gradcheck!(check(), |eta, l| LkjCholesky::new(2, eta).log_prob(l.tril(0)), &Tensor::from([0.7, 2.0]), &l);
}

#[test]
fn discrete_samples_have_no_derivative() {
    let tape = Tape::<f64>::new();
    let rate = tape.var(&Tensor::scalar(3.0));
    let [slope] = (Poisson::new(rate).sample([4], &mut Generator::new(0)).sum(..) * rate).grad([rate]);
    let drawn = Poisson::new(&Tensor::scalar(3.0)).sample([4], &mut Generator::new(0));
    assert_eq!(slope.item(), drawn.sum(..).item());
}

#[test]
fn vmap_equals_a_loop() {
    let (rates, x) = (Tensor::from([0.5, 2.0, 3.0]), Tensor::from([1.0, 4.0]));
    let [batched] = transforms::Vmap::new()
        .in_dims([Some(0), None])
        .call(|[rate, x]| Gamma::new(rate, 1.0).log_prob(x).sum(..).grad([rate]), [&rates, &x]);
    let tape = Tape::new();
    let rate = tape.var(&rates);
    let [expected] = Gamma::new(rate, 1.0).log_prob(x.unsqueeze(1)).sum(..).grad([rate]);
    assert!((batched - expected.value()).abs().amax(..).item() < 1e-14);
}
