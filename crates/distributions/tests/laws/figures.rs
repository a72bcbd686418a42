//! Compares every distribution with results of PyTorch and SciPy, which `tools/distribution_cases.py` computed.

use std::ops::RangeInclusive;

use serde_json::Value;
use wengert_autograd::prelude::*;
use wengert_distributions::prelude::*;
use wengert_distributions::{kl_divergence, try_kl_divergence};

type Data = Tensor<f64>;

fn cases() -> Value {
    serde_json::from_str(include_str!("../cases.json")).unwrap()
}

/// Returns the numbers of a JSON list, in which infinities and NaN are strings.
fn numbers(list: &Value) -> Vec<f64> {
    let number = |x: &Value| x.as_f64().unwrap_or_else(|| x.as_str().unwrap().parse().unwrap());
    list.as_array().unwrap().iter().map(number).collect()
}

/// Returns a list of lists as a matrix.
fn matrix(rows: &Value) -> Data {
    let rows: Vec<Vec<f64>> = rows.as_array().unwrap().iter().map(numbers).collect();
    let shape = [rows.len(), rows[0].len()];
    Tensor::from_vec(rows.concat(), shape)
}

fn vector(list: &Value) -> Data {
    let list = numbers(list);
    let n = list.len();
    Tensor::from_vec(list, [n])
}

/// Asserts that the elements of `got` equal `want`. The tolerance is relative for numbers above 1 in magnitude, and absolute for the
/// others.
#[track_caller]
fn assert_near(what: &str, got: &Data, want: &Value, tolerance: f64) {
    let want = numbers(want);
    assert_eq!(got.numel(), want.len(), "{what}: the shape {}", got.shape());
    for (k, (got, want)) in got.iter().zip(want).enumerate() {
        let near =
            got == want || got.is_nan() && want.is_nan() || (got - want).abs() <= tolerance * want.abs().max(1.0);
        assert!(near, "{what} [{k}]: {got:e}, not {want:e}");
    }
}

/// Compares the densities, probabilities and moments of a distribution with the results in the case `name`. The parameters are columns and
/// the values are a row, so that they broadcast.
fn check<D: Distribution<Data>>(name: &str, make: impl Fn(&[Data]) -> D) {
    let case = &cases()["families"][name];
    let parameters: Vec<Data> =
        case["parameters"].as_array().unwrap().iter().map(|p| vector(p).unsqueeze(-1)).collect();
    let distribution = make(&parameters);
    assert_eq!(distribution.batch_shape(), *parameters[0].shape());
    let near = |what: &str, got: &Data, tolerance| assert_near(&format!("{name}.{what}"), got, &case[what], tolerance);
    let values = vector(&case["values"]);
    // PyTorch's formulas lose some digits for large parameters, and its geometric and Bernoulli distributions compute from the logit instead
    // of the probability. So the tolerances are larger than a few ε.
    near("log_prob", &distribution.log_prob(&values), 1e-12);
    near("cdf", &distribution.cdf(&values), 1e-12);
    near("mean", &distribution.mean(), 1e-13);
    near("variance", &distribution.variance(), 1e-12);
    if case["icdf"].is_array() {
        near("icdf", &distribution.icdf(vector(&case["shares"])), 1e-11);
    }
    if case["entropy"].is_array() {
        near("entropy", &distribution.entropy(), 1e-12);
    }
}

#[test]
fn families_have_the_values_of_the_table() {
    check("Normal", |p| Normal::new(&p[0], &p[1]));
    check("HalfNormal", |p| HalfNormal::new(&p[0]));
    check("LogNormal", |p| LogNormal::new(&p[0], &p[1]));
    check("StudentT", |p| StudentT::new(&p[0], &p[1], &p[2]));
    check("Cauchy", |p| Cauchy::new(&p[0], &p[1]));
    check("HalfCauchy", |p| HalfCauchy::new(&p[0]));
    check("Laplace", |p| Laplace::new(&p[0], &p[1]));
    check("Gumbel", |p| Gumbel::new(&p[0], &p[1]));
    check("Exponential", |p| Exponential::new(&p[0]));
    check("Weibull", |p| Weibull::new(&p[0], &p[1]));
    check("Uniform", |p| Uniform::new(&p[0], &p[1]));
    check("Gamma", |p| Gamma::new(&p[0], &p[1]));
    check("InverseGamma", |p| InverseGamma::new(&p[0], &p[1]));
    check("Beta", |p| Beta::new(&p[0], &p[1]));
    check("Poisson", |p| Poisson::new(&p[0]));
    check("Bernoulli", |p| Bernoulli::new(&p[0]));
    check("Geometric", |p| Geometric::new(&p[0]));
    check("Binomial", |p| Binomial::new(&p[0], &p[1]));
    check("NegativeBinomial", |p| NegativeBinomial::new(&p[0], &p[1]));
}

#[test]
fn logits_give_the_same_distribution_as_probabilities() {
    let (probs, counts) = (Tensor::from([0.1, 0.5, 0.9]), Tensor::from([0.0, 1.0, 1.0]));
    let logits = probs.logit(None);
    let pairs = [
        (Bernoulli::new(&probs).log_prob(&counts), Bernoulli::from_logits(&logits).log_prob(&counts)),
        (Geometric::new(&probs).log_prob(&counts), Geometric::from_logits(&logits).log_prob(&counts)),
        (Binomial::new(3.0, &probs).log_prob(&counts), Binomial::from_logits(3.0, &logits).log_prob(&counts)),
        (Categorical::new(&probs).log_prob(2.0), Categorical::from_logits(&probs.log()).log_prob(2.0)),
    ];
    for (p, q) in pairs {
        assert!((p - q).abs().amax(..).item() < 1e-14);
    }
}

#[test]
fn divergences_have_the_values_of_the_table() {
    let cases = cases();
    for row in cases["divergences"].as_array().unwrap() {
        let (p, q) = (row[0].as_str().unwrap(), row[2].as_str().unwrap());
        let [a, b] = [1, 3].map(|k| numbers(&row[k]).into_iter().map(Tensor::scalar).collect::<Vec<_>>());
        let (va, vb) = (vector(&row[1]), vector(&row[3]));
        let normal = |p: &[Data]| Normal::new(&p[0], &p[1]);
        let gamma = |p: &[Data]| Gamma::new(&p[0], &p[1]);
        let uniform = |p: &[Data]| Uniform::new(&p[0], &p[1]);
        let laplace = |p: &[Data]| Laplace::new(&p[0], &p[1]);
        macro_rules! of_one_family {
            ($($name:ident $($index:literal)*;)*) => {
                match (p, q) {
                    $((stringify!($name), stringify!($name)) => {
                        kl_divergence(&$name::new($(&a[$index]),*), &$name::new($(&b[$index]),*))
                    })*
                    ("Exponential", "Gamma") => kl_divergence(&Exponential::new(&a[0]), &gamma(&b)),
                    ("Gamma", "Exponential") => kl_divergence(&gamma(&a), &Exponential::new(&b[0])),
                    ("Uniform", "Normal") => kl_divergence(&uniform(&a), &normal(&b)),
                    ("Laplace", "Normal") => kl_divergence(&laplace(&a), &normal(&b)),
                    ("Categorical", _) => kl_divergence(&Categorical::new(&va), &Categorical::new(&vb)),
                    ("Dirichlet", _) => kl_divergence(&Dirichlet::new(&va), &Dirichlet::new(&vb)),
                    _ => panic!("no divergence of {p} from {q}"),
                }
            };
        }
        let got = of_one_family! {
            Normal 0 1; HalfNormal 0; LogNormal 0 1; Laplace 0 1; Cauchy 0 1; Gumbel 0 1; Exponential 0; Gamma 0 1;
            Beta 0 1; Uniform 0 1; Poisson 0; Bernoulli 0; Geometric 0; Binomial 0 1;
        };
        let want = numbers(&row.as_array().unwrap()[4..].to_vec().into())[0];
        assert!(got.item() == want || (got.item() - want).abs() < 1e-13, "{p} {q}: {got:?}, not {want}");
    }
}

#[test]
fn divergences_of_independent_distributions_need_equal_dims() {
    let point = |dims| Independent::new(Normal::new(&Tensor::<f64>::ones([2, 3]), 1.0), dims);
    let zero = |dims| Independent::new(Normal::new(&Tensor::<f64>::zeros([3]), 1.0), dims);
    assert_eq!(kl_divergence(&point(1), &zero(1)).to_vec(), [1.5, 1.5]);
    assert_eq!(kl_divergence(&point(1), &point(1)).to_vec(), [0.0, 0.0]);
    for (p, q) in [(1, 2), (2, 1), (0, 1)] {
        let error = try_kl_divergence(&point(p), &point(q)).unwrap_err();
        let sentence =
            format!("kl_divergence of an Independent with {p} dims from one with {q}: the numbers must be equal");
        assert_eq!(error.sentence(), sentence);
        assert!(error.to_string().contains(file!()), "{error}");
    }
}

#[test]
fn classes_and_shares_have_the_values_of_the_table() {
    let cases = &cases()["vectors"];
    let dirichlet = &cases["dirichlet"];
    let ours = Dirichlet::new(&matrix(&dirichlet[0]));
    assert_near("Dirichlet.log_prob", &ours.log_prob(matrix(&dirichlet[1])), &dirichlet[2], 1e-13);
    assert_near("Dirichlet.entropy", &ours.entropy(), &dirichlet[3], 1e-13);
    assert_near("Dirichlet.variance", &ours.variance(), &dirichlet[4], 1e-15);
    let multinomial = &cases["multinomial"];
    let ours = Multinomial::new(10, &matrix(&multinomial[0]));
    assert_near("Multinomial.log_prob", &ours.log_prob(matrix(&multinomial[1])), &multinomial[2], 1e-13);
    assert_near("Multinomial.variance", &ours.variance(), &multinomial[3], 1e-14);
    assert_near("Multinomial.entropy", &ours.entropy(), &multinomial[4], 1e-13);
    let stick = &cases["stick"];
    let z = matrix(&stick[0]);
    assert_near("stick", &Transform::StickBreaking.forward(&z), &stick[1], 1e-14);
    assert_near("stick ladj", &Transform::StickBreaking.log_abs_det(&z), &stick[2], 1e-13);
}

#[test]
fn composed_distributions_have_the_values_of_the_table() {
    let cases = &cases();
    let mixture = &cases["vectors"]["mixture"];
    let components = Normal::new(&Tensor::from([-1.0, 0.5, 3.0]), &Tensor::from([0.5, 1.0, 2.0]));
    let ours = MixtureSameFamily::new(Categorical::new(&Tensor::from([0.2, 0.3, 0.5])), components);
    let x = vector(&mixture[0]);
    assert_near("mixture.log_prob", &ours.log_prob(&x), &mixture[1], 1e-13);
    assert_near("mixture.cdf", &ours.cdf(&x), &mixture[2], 1e-14);
    assert_near("mixture.mean", &stack(&[ours.mean(), ours.variance()], 0), &mixture[3], 1e-14);

    let transformed = &cases["vectors"]["transformed"];
    let (loc, scale) = (Tensor::scalar(0.5), Tensor::scalar(-2.0));
    let transforms = vec![Transform::Affine { loc, scale }, Transform::Sigmoid, Transform::Exp, Transform::Tanh];
    let ours = TransformedDistribution::new(Normal::new(&Tensor::scalar(0.2), 0.7), transforms);
    let y = vector(&transformed[0]);
    assert_near("transformed.log_prob", &ours.log_prob(&y), &transformed[1], 1e-12);
    assert_near("transformed.cdf", &ours.cdf(&y), &transformed[2], 1e-12);
    assert!((ours.icdf(ours.cdf(&y)) - &y).abs().amax(..).item() < 1e-13);
    assert_eq!(ours.log_prob(Tensor::from([-0.5, 1.0, 0.2])).to_vec(), [f64::NEG_INFINITY; 3]);

    let truncated = &cases["vectors"]["truncated"];
    let ours = Truncated::new(Normal::new(&Tensor::scalar(1.0), 2.0), 0.0, 5.0);
    let x = vector(&truncated[0]);
    assert_near("truncated.log_prob", &ours.log_prob(&x), &truncated[1], 1e-13);
    assert_near("truncated.cdf", &ours.cdf(&x), &truncated[2], 1e-13);
    assert_near("truncated.icdf", &ours.icdf(vector(&cases["shares"])), &truncated[3], 1e-12);
}

/// Checks truncated and transformed distributions, which have no formula for the mean. Their values are tensors, numbers and variables.
#[test]
fn composed_distributions_equal_equivalent_ones() {
    let inf = f64::INFINITY;
    let normal = || Normal::new(&Tensor::scalar(1.0), 2.0);
    let near = |x: Data, y: Data| assert!((&x - &y).abs().amax(..).item() < 1e-13, "{x}, not {y}");
    let x = Tensor::from([0.5, 1.0, 3.0]);
    // Truncating in two steps equals truncating once.
    let (once, twice) =
        (Truncated::new(normal(), 0.0, 5.0), Truncated::new(Truncated::new(normal(), 0.0, inf), -3.0, 5.0));
    near(twice.log_prob(&x), once.log_prob(&x));
    near(twice.cdf(&x), once.cdf(&x));
    near(twice.icdf(0.25), once.icdf(0.25));
    let transformed = TransformedDistribution::new(once.clone(), vec![Transform::Exp]);
    near(transformed.log_prob(x.exp()), once.log_prob(&x) - &x);
    near(transformed.cdf(x.exp()), once.cdf(&x));
    near(transformed.icdf(0.25), once.icdf(0.25).exp());
    // Two nested transformed distributions equal a single one with both transforms.
    let affine = || Transform::Affine { loc: Tensor::scalar(0.5), scale: Tensor::scalar(-2.0) };
    let both = TransformedDistribution::new(normal(), vec![affine(), Transform::Exp]);
    let nested =
        TransformedDistribution::new(TransformedDistribution::new(normal(), vec![affine()]), vec![Transform::Exp]);
    near(nested.log_prob(&x), both.log_prob(&x));
    near(nested.cdf(2.0), both.cdf(2.0));
    near(nested.icdf(0.25), both.icdf(0.25));
    let truncated = Truncated::new(nested, 0.5, 2.0);
    assert_eq!(truncated.cdf(Tensor::from([0.25, 0.5, 2.0, 3.0])).to_vec(), [0.0, 0.0, 1.0, 1.0]);
    // Multiplying the 9 numbers of a value by 2 divides the density by 2⁹.
    let lkj = LkjCholesky::new(3, &Tensor::scalar(0.6));
    let factor = lkj.sample([], &mut Generator::new(0));
    let twice = Transform::Affine { loc: Tensor::scalar(0.0), scale: Tensor::scalar(2.0) };
    let scaled = TransformedDistribution::new(lkj.clone(), vec![twice]);
    near(scaled.log_prob(&factor * 2.0), lkj.log_prob(&factor) - 9.0 * 2f64.ln());
    // Tensors and numbers become arrays on the distribution's tape.
    let tape = Tape::<f64>::new();
    let loc = tape.var(&Tensor::scalar(1.0));
    let recorded = TransformedDistribution::new(Truncated::new(Normal::new(loc, 2.0), 0.0, 5.0), vec![Transform::Exp]);
    near(recorded.log_prob(x.exp()).value(), transformed.log_prob(x.exp()));
    near(recorded.icdf(0.25).value(), transformed.icdf(0.25));
}

#[test]
fn densities_outside_of_the_support_are_zero() {
    let inf = f64::INFINITY;
    let one = &Tensor::scalar(1.0);
    let x = Tensor::from([-inf, -1.0, -1e-300]);
    for values in [
        HalfNormal::new(one).log_prob(&x),
        Gamma::new(one, 1.0).log_prob(&x),
        InverseGamma::new(one, 1.0).log_prob(&x),
        Beta::new(one, 1.0).log_prob(&x),
        Poisson::new(one).log_prob(&x),
        Binomial::new(4.0, &Tensor::scalar(0.5)).log_prob(&x),
        Categorical::new(&Tensor::ones([3])).log_prob(&x),
        Truncated::new(Normal::new(one, 1.0), 0.0, inf).log_prob(&x),
    ] {
        assert_eq!(values.to_vec(), [-inf; 3]);
    }
    assert_eq!(Exponential::new(one).cdf(&x).to_vec(), [0.0; 3]);
    assert_eq!(Beta::new(one, 2.0).cdf(Tensor::from([1.5, inf])).to_vec(), [1.0, 1.0]);
    assert!(Normal::new(one, 1.0).icdf(Tensor::from([-0.1, 1.1])).iter().all(f64::is_nan));
    assert_eq!(Uniform::new(&Tensor::scalar(0.0), 1.0).log_prob(Tensor::from([0.0, 1.0])).to_vec(), [0.0, -inf]);
    assert!(Normal::new(one, 1.0).log_prob(f64::NAN).item().is_nan());
    assert!(Gamma::new(one, 1.0).log_prob(f64::NAN).item().is_nan());
    assert_eq!(
        Dirichlet::new(&Tensor::from([1.0, 1.0])).log_prob(Tensor::from([[0.5, 0.6], [1.5, -0.5]])).to_vec(),
        [-inf; 2]
    );
    assert_eq!(
        Multinomial::new(2, &Tensor::from([0.5, 0.5])).log_prob(Tensor::from([[1.0, 2.0], [3.0, -1.0]])).to_vec(),
        [-inf; 2]
    );
    let [none, p] = [Tensor::from([f64::NAN, inf]), Tensor::scalar(0.25)];
    for values in [
        Poisson::new(one).log_prob(&none),
        Bernoulli::new(&p).log_prob(&none),
        Binomial::new(4.0, &p).log_prob(&none),
        Geometric::new(&p).log_prob(&none),
        NegativeBinomial::new(4.0, &p).log_prob(&none),
        Categorical::new(&Tensor::ones([3])).log_prob(&none),
        Multinomial::new(1, &Tensor::ones([1])).log_prob(none.unsqueeze(-1)),
        Multinomial::new(1, &Tensor::ones([2])).log_prob(Tensor::from([[f64::NAN, 1.0], [inf, -inf]])),
    ] {
        assert!(values.get(&[0]).unwrap().is_nan() && values.get(&[1]).unwrap() == -inf, "{values}");
    }
    assert_eq!(Poisson::new(one).cdf(inf).item(), 1.0);
    // The gradient at a value outside of the support is 0, not NaN.
    let tape = Tape::<f64>::new();
    let rate = tape.var(one);
    let [slope] = Gamma::new(rate, rate).log_prob(&Tensor::from([-2.0, 1.0])).narrow(0, 0, 1).sum(..).grad([rate]);
    assert_eq!(slope.item(), 0.0);
}

/// Checks that the density at NaN is NaN for every distribution.
#[test]
fn the_density_at_nan_is_nan() {
    let (one, half, nan) = (&Tensor::scalar(1.0), &Tensor::scalar(0.5), f64::NAN);
    fn check<D: Distribution<Data>>(distribution: D) {
        let shape: Shape =
            distribution.batch_shape().iter().chain(distribution.event_shape().iter()).copied().collect();
        let values = distribution.log_prob(Tensor::full(shape, f64::NAN));
        assert!(values.iter().all(f64::is_nan), "{}: {values}", distribution.name());
    }
    check(Normal::new(one, 1.0));
    check(HalfNormal::new(one));
    check(LogNormal::new(one, 1.0));
    check(StudentT::new(one, 1.0, 1.0));
    check(Cauchy::new(one, 1.0));
    check(HalfCauchy::new(one));
    check(Laplace::new(one, 1.0));
    check(Gumbel::new(one, 1.0));
    check(Exponential::new(one));
    check(Weibull::new(one, 1.0));
    check(Uniform::new(half, 1.0));
    check(Gamma::new(one, 1.0));
    check(InverseGamma::new(one, 1.0));
    check(Beta::new(one, 1.0));
    check(Poisson::new(one));
    check(Bernoulli::new(half));
    check(Geometric::new(half));
    check(Binomial::new(4.0, half));
    check(NegativeBinomial::new(4.0, half));
    check(Categorical::new(&Tensor::ones([3])));
    check(Multinomial::new(2, &Tensor::ones([3])));
    check(Dirichlet::new(&Tensor::ones([3])));
    check(MultivariateNormal::new(&Tensor::ones([2]), Tensor::eye(2)));
    check(LkjCholesky::new(3, one));
    check(Independent::new(Normal::new(&Tensor::ones([2]), 1.0), 1));
    check(MixtureSameFamily::new(Categorical::new(&Tensor::ones([2])), Poisson::new(&Tensor::ones([2]))));
    check(Truncated::new(Normal::new(one, 1.0), 0.0, 1.0));
    for transform in [Transform::Exp, Transform::Sigmoid, Transform::Softplus, Transform::Tanh] {
        check(TransformedDistribution::new(Normal::new(one, 1.0), vec![transform]));
    }
    assert!(Uniform::new(half, 1.0).cdf(nan).item().is_nan() && Poisson::new(one).cdf(nan).item().is_nan());
}

#[test]
fn degenerate_trials_have_exact_probabilities() {
    let certain = &Tensor::from([0.0, 1.0]);
    assert_eq!(Bernoulli::new(certain).log_prob(Tensor::from([0.0, 1.0])).to_vec(), [0.0, 0.0]);
    assert_eq!(Bernoulli::new(certain).entropy().to_vec(), [0.0, 0.0]);
    assert!(Binomial::new(3.0, certain).log_prob(Tensor::from([0.0, 3.0])).abs().amax(..).item() < 1e-15);
    assert_eq!(Categorical::new(certain).entropy().item(), 0.0);
    assert_eq!(Categorical::new(certain).log_prob(0.0).item(), f64::NEG_INFINITY);
}

#[test]
fn errors_are_pytorchs_sentences() {
    // The refused values stand on the last line of the error's text, below the line of code.
    let sentence = |error: wengert_tensor::Error| {
        assert!(error.to_string().ends_with("[-1.0]"), "{error}");
        error.sentence()
    };
    let (two, bad) = (Tensor::from([0.0, 1.0]), Tensor::from([1.0, -1.0]));
    assert_eq!(
        sentence(Normal::new(&two, &bad).try_validate().unwrap_err()),
        "Expected parameter scale (Tensor of shape (2,)) of distribution Normal(loc: torch.Size([2]), scale: torch.Size([2])) \
         to satisfy the constraint GreaterThan(lower_bound=0.0), but found invalid values:"
    );
    let error = Exponential::new(&Tensor::scalar(1.0)).validate().try_log_prob(&bad).unwrap_err();
    assert_eq!(
        sentence(error),
        "Expected value argument (Tensor of shape (2,)) to be within the support (GreaterThanEq(lower_bound=0.0)) of the \
         distribution Exponential(rate: 1.0), but found invalid values:"
    );
    let error = Normal::try_new(&two, &Tensor::ones([3])).unwrap_err();
    assert!(error.to_string().contains(file!()) && error.sentence().starts_with("The size of tensor a (2)"), "{error}");
    let error = Normal::new(&two, 1.0).try_log_prob(Tensor::ones([3])).unwrap_err();
    assert!(error.to_string().contains(file!()), "{error}");
    let error = Poisson::new(&two).try_rsample([], &mut Generator::new(0)).unwrap_err();
    assert_eq!(error.sentence(), "Poisson has no rsample: a discrete value has no derivative; use sample");
    let negative_binomial = NegativeBinomial::new(2.0, &two);
    assert_eq!(negative_binomial.try_entropy().unwrap_err().sentence(), "NegativeBinomial has no entropy");
    let error = Poisson::new(&Tensor::scalar(1e9)).try_entropy().unwrap_err();
    assert!(error.sentence().starts_with("the entropy of Poisson is a sum over 1000379514 counts"), "{error}");
    let error = Multinomial::new(usize::MAX / 4, &Tensor::from([0.5, 0.5])).try_entropy().unwrap_err();
    assert!(error.sentence().starts_with("the entropy of Multinomial is a sum over"), "{error}");
    let error = Truncated::try_new(Poisson::new(&two), 1.0, 5.0).unwrap_err();
    assert_eq!(error.sentence(), "Truncated needs a distribution with a density, but Poisson is discrete");
}

/// Checks which infinities are values of a validated distribution, as in PyTorch 2.15. NaN is never one.
#[test]
fn infinities_are_validated() {
    let (one, half, inf) = (&Tensor::scalar(1.0), &Tensor::scalar(0.5), f64::INFINITY);
    fn check<D: Distribution<Data> + Validate<Arguments = Data>>(distribution: D, infinities: &[f64]) {
        let distribution = distribution.validate();
        for x in [f64::INFINITY, f64::NEG_INFINITY] {
            let is_value = distribution.try_log_prob(x).is_ok();
            assert_eq!(is_value, infinities.contains(&x), "{} {x}", distribution.name());
        }
        assert!(distribution.try_log_prob(f64::NAN).is_err(), "{}", distribution.name());
    }
    check(Normal::new(one, 1.0), &[inf, -inf]);
    check(StudentT::new(one, 1.0, 1.0), &[inf, -inf]);
    check(HalfNormal::new(one), &[inf]);
    check(Exponential::new(one), &[inf]);
    check(Gamma::new(one, 1.0), &[inf]);
    check(LogNormal::new(one, 1.0), &[inf]);
    check(Weibull::new(one, 1.0), &[inf]);
    check(Uniform::new(&Tensor::scalar(0.0), 1.0), &[]);
    check(Beta::new(one, 1.0), &[]);
    check(Poisson::new(one), &[]);
    check(Geometric::new(half), &[]);
    check(Bernoulli::new(half), &[]);
    check(Binomial::new(3.0, half), &[]);
    check(NegativeBinomial::new(3.0, half), &[]);
    check(Categorical::new(&Tensor::ones([3])), &[]);
    let normal = Normal::new(one, 1.0).validate();
    assert_eq!(normal.log_prob(Tensor::from([-inf, inf])).to_vec(), [-inf; 2]);
    assert_eq!(normal.cdf(Tensor::from([-inf, inf])).to_vec(), [0.0, 1.0]);
}

/// Tests the errors for values outside of a bounded support, and for parameters outside of their bounds. The first line of each error is
/// compared with PyTorch 2.15.
#[test]
fn bounds_are_validated() {
    let first = |error: wengert_tensor::Error| error.sentence().split('\n').next().unwrap_or_default().to_owned();
    let one = |x: f64| Tensor::scalar(x);
    let outside = |support: &str, distribution: &str| {
        format!(
            "Expected value argument (Tensor of shape ()) to be within the support ({support}) of the distribution {distribution}, \
             but found invalid values:"
        )
    };
    let refused = |parameter: &str, distribution: &str, constraint: &str| {
        format!(
            "Expected parameter {parameter} of distribution {distribution} to {constraint} but found invalid values:"
        )
    };
    let uniform = Uniform::new(&one(1.0), 3.0).validate();
    assert_eq!(
        first(uniform.try_log_prob(5.0).unwrap_err()),
        outside("Interval(lower_bound=1.0, upper_bound=3.0)", "Uniform(low: 1.0, high: 3.0)")
    );
    let binomial = Binomial::new(5.0, &one(0.5)).validate();
    assert_eq!(
        first(binomial.try_log_prob(6.0).unwrap_err()),
        outside("IntegerInterval(lower_bound=0, upper_bound=5.0)", "Binomial(probs: 0.5, total_count: 5.0)")
    );
    for x in [6.0, 0.5, -1.0] {
        let bernoulli = Bernoulli::new(&one(0.5)).validate();
        assert_eq!(first(bernoulli.try_log_prob(x).unwrap_err()), outside("Boolean()", "Bernoulli(probs: 0.5)"));
    }
    assert_eq!(
        first(Uniform::new(&one(3.0), 1.0).try_validate().unwrap_err()),
        refused(
            "low (Tensor of shape ())",
            "Uniform(low: 3.0, high: 1.0)",
            "satisfy the constraint LessThan(upper_bound=1.0),"
        )
    );
    let both = Uniform::new(&Tensor::from([0.0, 3.0]), 1.0).try_validate().unwrap_err();
    assert!(both.to_string().ends_with("[3.0]"), "{both}");
    assert_eq!(
        first(Geometric::new(&one(0.0)).try_validate().unwrap_err()),
        refused("probs (Tensor of shape ())", "Geometric(probs: 0.0)", "be positive")
    );
    assert!(Geometric::new(&one(1.0)).try_validate().is_ok());
    assert_eq!(
        first(NegativeBinomial::new(3.0, &one(1.0)).try_validate().unwrap_err()),
        refused(
            "probs (Tensor of shape ())",
            "NegativeBinomial(probs: 1.0, total_count: 3.0)",
            "satisfy the constraint HalfOpenInterval(lower_bound=0.0, upper_bound=1.0),"
        )
    );
    let none = NegativeBinomial::new(0.0, &one(0.5)).validate();
    assert_eq!(none.log_prob(Tensor::from([0.0, 1.0])).to_vec(), [0.0, f64::NEG_INFINITY]);
}

/// Tests that the first line of each error equals the first line of PyTorch's error. In the next lines, PyTorch lists all values, and this
/// crate lists the invalid values.
#[test]
fn vectors_are_validated() {
    let sentence = |error: wengert_tensor::Error| error.sentence().split('\n').next().unwrap_or_default().to_owned();
    let shares = Tensor::from([0.25, 0.25, 0.5]);
    assert_eq!(
        sentence(Dirichlet::new(&Tensor::from([[1.0, 2.0], [0.0, 2.0]])).try_validate().unwrap_err()),
        "Expected parameter concentration (Tensor of shape (2, 2)) of distribution Dirichlet(concentration: torch.Size([2, 2])) to \
         satisfy the constraint IndependentConstraint(GreaterThan(lower_bound=0.0), 1), but found invalid values:"
    );
    let dirichlet = Dirichlet::new(&shares).validate();
    assert_eq!(
        sentence(dirichlet.try_log_prob(Tensor::from([[0.5, 0.5, 0.5], [0.2, 0.3, 0.5]])).unwrap_err()),
        "Expected value argument (Tensor of shape (2, 3)) to be within the support (Simplex()) of the distribution \
         Dirichlet(concentration: torch.Size([3])), but found invalid values:"
    );
    assert!(dirichlet.log_prob(&shares).item().is_finite());
    for probs in [[1.0, -1.0, 2.0], [1.0, f64::NAN, 2.0], [0.0, 0.0, 0.0]] {
        assert_eq!(
            sentence(Categorical::new(&Tensor::from(probs)).try_validate().unwrap_err()),
            "Expected parameter probs (Tensor of shape (3,)) of distribution Categorical(probs: torch.Size([3])) to satisfy the \
             constraint Simplex(), but found invalid values:"
        );
    }
    let categorical = Categorical::new(&shares).validate();
    assert_eq!(
        sentence(categorical.try_log_prob(Tensor::from([3.0, 1.0])).unwrap_err()),
        "Expected value argument (Tensor of shape (2,)) to be within the support (IntegerInterval(lower_bound=0, upper_bound=2)) of \
         the distribution Categorical(probs: torch.Size([3])), but found invalid values:"
    );
    assert!(categorical.try_log_prob(0.5).is_err() && categorical.try_log_prob(2.0).is_ok());
    let multinomial = Multinomial::new(10, &shares).validate();
    assert!(multinomial.try_log_prob(Tensor::from([1.0, 2.0, 3.0])).is_err());
    assert!(multinomial.try_log_prob(Tensor::from([1.0, 2.0, 7.0])).is_ok());
}

#[test]
fn the_quantile_of_a_probability_is_its_count() {
    fn check<T: Float, D: Distribution<Tensor<T>>>(distribution: D, counts: RangeInclusive<usize>) {
        let counts: Vec<T> = counts.map(|count| T::from_f64(count as f64)).collect();
        let counts = Tensor::from(counts);
        let probabilities = distribution.cdf(&counts);
        for (p, (count, got)) in probabilities.iter().zip(counts.iter().zip(distribution.icdf(&probabilities).iter())) {
            // Far in the tails, the probabilities of adjacent counts round to the same number, so the quantile is not checked there.
            if (1e-30..1.0 - 1e3 * T::EPSILON.to_f64()).contains(&p.to_f64()) {
                assert_eq!(got, count, "{} of {p}", distribution.name());
            }
        }
        assert_eq!(distribution.icdf(&Tensor::scalar(T::from_f64(0.0))).item().to_f64(), 0.0);
        assert!(distribution.icdf(&Tensor::scalar(T::from_f64(1.5))).item().is_nan());
    }
    fn check_all<T: Float>() {
        let number = |x: f64| Tensor::scalar(T::from_f64(x));
        check(Poisson::new(&number(7.5)), 0..=30);
        // The lower tail from the probability 1e-30, the middle, and the upper tail to 1 - 2e-4 (for f32) and 1 - 4e-10.
        for counts in [660..=690, 985..=1015, 1085..=1115, 1180..=1200] {
            check(Poisson::new(&number(1000.0)), counts);
        }
        check(Binomial::new(number(40.0), &number(0.3)), 0..=40);
        check(Geometric::new(&number(0.2)), 0..=60);
        check(NegativeBinomial::new(number(3.5), &number(0.4)), 0..=40);
        check(Bernoulli::new(&number(0.3)), 0..=1);
    }
    check_all::<f32>();
    check_all::<f64>();
    let infinite = |x: Tensor<f64>| x.item() == f64::INFINITY;
    assert!(
        infinite(Poisson::new(&Tensor::scalar(2.0)).icdf(1.0))
            && infinite(Geometric::new(&Tensor::scalar(0.5)).icdf(1.0))
    );
    assert_eq!(Binomial::new(7.0, &Tensor::scalar(0.5)).icdf(1.0).item(), 7.0);
    assert!(Poisson::new(&Tensor::scalar(-2.0)).icdf(0.5).item().is_nan());
}

#[test]
fn vectors_and_correlations_have_the_values_of_the_table() {
    let cases = &cases()["vectors"];
    let case = &cases["multivariate"];
    let (loc, x) = (vector(&case[0]), matrix(&case[2]));
    let covariances = stack(&[matrix(&case[1][0]), matrix(&case[1][1])], 0);
    let ours = MultivariateNormal::new(&loc, &covariances);
    assert_eq!((ours.batch_shape(), ours.event_shape()), (Shape::from([2]), Shape::from([3])));
    assert_near("normal.log_prob", &ours.log_prob(&x), &case[3], 1e-13);
    assert_near("normal.entropy", &ours.entropy(), &case[4], 1e-13);
    assert_near("normal.variance", &ours.variance(), &case[5], 1e-14);
    let single = MultivariateNormal::new(&loc * 0.5, &covariances.select(0, 0));
    assert_near("normal.divergence", &kl_divergence(&ours, &single), &case[6], 1e-13);
    let inverse = MultivariateNormal::from_precision(&loc, &covariances);
    assert_near("normal.log_prob of a precision", &inverse.log_prob(&x), &case[7], 1e-13);
    assert_near("normal.log_prob of one matrix", &single.log_prob(&x), &case[8], 1e-13);
    let lkj = LkjCholesky::new(3, &Tensor::from([0.6, 2.5]));
    assert_near("lkj.log_prob", &lkj.log_prob(matrix(&cases["lkj"][0])), &cases["lkj"][1], 1e-13);
    let error = MultivariateNormal::try_new(&loc, &Tensor::ones([2, 2])).unwrap_err();
    assert_eq!(error.sentence(), "covariance_matrix has the shape [2, 2], but loc has 3 numbers");
    let error = LkjCholesky::try_new(1, &loc).unwrap_err();
    assert_eq!(error.sentence(), "Expected dim to be an integer greater than or equal to 2. Found dim=1.");
}
