//! Compares the values of most functions with a table that mpmath computed with 60 digits (`tools/special_cases.py`), in f64 and f32. Also
//! checks inverses and edge cases.

use serde_json::Value;
use wengert_autograd::prelude::*;
use wengert_autograd::{GradCheck, assert_gradcheck, transforms};
use wengert_special::prelude::*;

/// A function that computes a special function for each row of a table. It gets the columns of the table as tensors. The last column has the
/// expected results.
type ColumnFunction<T> = fn(&[Tensor<T>]) -> Tensor<T>;

/// Returns for each function the name of its table, the function, the largest permitted error in f64, and a size. Errors are relative to the
/// expected value, or to this size if it is larger.
fn functions<T: Float>() -> Vec<(&'static str, ColumnFunction<T>, f64, f64)> {
    vec![
        ("log_ndtr", |x| x[0].log_ndtr(), 3e-15, 0.0),
        ("ndtr", |x| x[0].ndtr(), 3e-15, 0.0),
        ("ndtri", |x| x[0].ndtri(), 3e-15, 0.0),
        ("erfcx", |x| x[0].erfcx(), 3e-15, 0.0),
        ("log1mexp", |x| x[0].log1mexp(), 3e-15, 0.0),
        ("i0", |x| x[0].i0(), 3e-15, 0.0),
        ("i0e", |x| x[0].i0e(), 3e-15, 0.0),
        ("i1", |x| x[0].i1(), 3e-15, 0.0),
        ("i1e", |x| x[0].i1e(), 3e-15, 0.0),
        ("bessel_j0", |x| x[0].bessel_j0(), 3e-15, 0.1),
        ("bessel_j1", |x| x[0].bessel_j1(), 3e-15, 0.1),
        ("bessel_y0", |x| x[0].bessel_y0(), 3e-15, 0.1),
        ("bessel_y1", |x| x[0].bessel_y1(), 3e-15, 0.1),
        ("gammaln", |x| x[0].gammaln(), 2e-14, 1.0),
        ("multigammaln3", |x| x[0].multigammaln(3), 2e-14, 1.0),
        ("polygamma0", |x| x[0].polygamma(0), 2e-14, 1.0),
        ("polygamma1", |x| x[0].polygamma(1), 2e-14, 1.0),
        ("polygamma2", |x| x[0].polygamma(2), 2e-14, 1.0),
        ("polygamma4", |x| x[0].polygamma(4), 2e-14, 1.0),
        ("betaln", |x| x[0].betaln(&x[1]), 2e-14, 1.0),
        ("gammainc", |x| x[0].gammainc(&x[1]), 3e-13, 0.0),
        ("gammaincc", |x| x[0].gammaincc(&x[1]), 3e-13, 0.0),
        ("betainc", |x| x[0].betainc(&x[1], &x[2]), 3e-13, 0.0),
    ]
}

/// A function that computes an orthogonal polynomial of a given degree at each element.
type Polynomial<T> = fn(&T, usize) -> T;

fn polynomials<A: wengert_special::Array>() -> [(&'static str, Polynomial<A>); 8] {
    [
        ("chebyshev_polynomial_t", A::chebyshev_polynomial_t),
        ("chebyshev_polynomial_u", A::chebyshev_polynomial_u),
        ("chebyshev_polynomial_v", A::chebyshev_polynomial_v),
        ("chebyshev_polynomial_w", A::chebyshev_polynomial_w),
        ("hermite_polynomial_h", A::hermite_polynomial_h),
        ("hermite_polynomial_he", A::hermite_polynomial_he),
        ("laguerre_polynomial_l", A::laguerre_polynomial_l),
        ("legendre_polynomial_p", A::legendre_polynomial_p),
    ]
}

fn cases() -> Value {
    serde_json::from_str(include_str!("../cases.json")).unwrap()
}

/// Returns the columns of a table as tensors. The last column has the expected values.
fn columns<T: Float>(rows: &Value) -> Vec<Tensor<T>> {
    let rows: Vec<Vec<f64>> = serde_json::from_value(rows.clone()).unwrap();
    let column = |k: usize| Tensor::from_vec(rows.iter().map(|row| T::from_f64(row[k])).collect(), [rows.len()]);
    (0..rows[0].len()).map(column).collect()
}

/// Returns the largest error of the elements of `got`, and the index of this element. Each error is relative to the largest of `want`,
/// `min_scale` and the smallest normal number of f32.
fn error<T: Float>(got: &Tensor<T>, want: &Tensor<T>, min_scale: f64) -> (f64, usize) {
    assert_eq!(got.shape(), want.shape());
    let relative_error = |(got, want): (T, T)| {
        let (got, want) = (got.to_f64(), want.to_f64());
        let size = want.abs().max(min_scale).max(f64::from(f32::MIN_POSITIVE));
        if got == want { 0.0 } else { (got - want).abs() / size }
    };
    let errors = got.iter().zip(want.iter()).map(relative_error).enumerate();
    errors.fold((0.0, 0), |(most, at), (k, error)| if error > most || error.is_nan() { (error, k) } else { (most, at) })
}

#[test]
fn every_function_has_its_accuracy_in_both_types() {
    let cases = cases();
    let mut wrong = String::new();
    let doubles = functions::<f64>().into_iter().zip(functions::<f32>());
    for ((name, double, tolerance, min_scale), (_, single, ..)) in doubles {
        let x = columns::<f64>(&cases[name]);
        let (error64, at) = error(&double(&x), x.last().unwrap(), min_scale);
        if error64.is_nan() || error64 > tolerance {
            let row: Vec<f64> = x.iter().map(|x| x.get(&[at]).unwrap()).collect();
            wrong += &format!("\n{name}: {error64:e} at {row:?}, not {}", double(&x).get(&[at]).unwrap());
        }
        let x = columns::<f32>(&cases[name]);
        let (error32, at) = error(&single(&x), x.last().unwrap(), min_scale);
        // The f64 result, rounded to f32, is at most one unit in the last place (2⁻²³, relatively) from the rounded exact value. Functions
        // that the tensor crate computes in f32 may be two units away.
        if error32.is_nan() || error32 > 2.5e-7 {
            let row: Vec<f32> = x.iter().map(|x| x.get(&[at]).unwrap()).collect();
            wrong += &format!("\n{name} in f32: {error32:e} at {row:?}, not {}", single(&x).get(&[at]).unwrap());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn polynomials_have_their_accuracy_in_both_types() {
    let cases = cases();
    let pairs = polynomials::<Tensor<f64>>().into_iter().zip(polynomials::<Tensor<f32>>());
    for ((name, double), (_, single)) in pairs {
        for n in [1, 2, 7, 30] {
            let table = &cases[format!("{name}{n}")];
            let x = columns::<f64>(table);
            let (error64, at) = error(&double(&x[0], n), &x[1], 1.0);
            assert!(error64 <= 3e-14, "{name} {n}: {error64:e} at {:?}", x[0].get(&[at]));
            let x = columns::<f32>(table);
            let (error32, at) = error(&single(&x[0], n), &x[1], 1.0);
            assert!(error32 <= 1.2e-7, "{name} {n} in f32: {error32:e} at {:?}", x[0].get(&[at]));
        }
    }
}

/// The values are PyTorch's, except for Bessel functions at infinity, where PyTorch returns NaN.
#[test]
fn bessel_functions_and_polynomials_at_their_edges() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let assert_same = |x: &Tensor<f64>, expected: &[f64]| {
        let x = x.to_vec();
        let equal = x.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-15 || x == y || x.is_nan() && y.is_nan());
        assert!(x.len() == expected.len() && equal, "{x:?}, not {expected:?}");
    };
    let x = Tensor::<f64>::from([0.0, -0.0, INF, -INF, NAN, -1.0]);
    assert_same(&x.bessel_j0(), &[1.0, 1.0, 0.0, 0.0, NAN, 0.7651976865579665]);
    assert_same(&x.bessel_j1(), &[0.0, 0.0, 0.0, 0.0, NAN, -0.44005058574493355]);
    assert_same(&x.bessel_y0(), &[-INF, -INF, 0.0, NAN, NAN, NAN]);
    assert_same(&x.bessel_y1(), &[-INF, -INF, 0.0, NAN, NAN, NAN]);
    let slopes = |f: for<'t> fn(Var<'t, f64>) -> Var<'t, f64>| {
        let tape = Tape::new();
        let x = tape.var(&Tensor::from([0.0, 1e-300]));
        let [first] = f(x).sum(..).grad([x]);
        let [second] = first.sum(..).grad([x]);
        [first.value().to_vec(), second.value().to_vec()].concat()
    };
    assert_same(&Tensor::from(slopes(|x| x.bessel_j0())), &[0.0, 0.0, -0.5, -0.5]);
    assert_same(&Tensor::from(slopes(|x| x.bessel_j1())), &[0.5, 0.5, 0.0, 0.0]);
    let y0_slopes = slopes(|x| x.bessel_y0());
    assert!(y0_slopes[0] == INF && y0_slopes[1] > 6e299 && y0_slopes[2..] == [-INF, -INF], "{y0_slopes:?}");
    // PyTorch's second derivative at 0 is NaN.
    assert_same(&Tensor::from(slopes(|x| x.bessel_y1())), &[INF, INF, -INF, -INF]);
    for (name, f) in polynomials::<Tensor<f64>>() {
        let y = |n| f(&Tensor::from([INF, NAN, -1.0]), n).to_vec();
        assert_eq!(y(0), [1.0; 3], "{name}");
        assert!(y(1)[0].is_infinite() && y(1)[1].is_nan() && y(2)[0] == INF && y(3)[0].is_nan(), "{name}");
        // At -1 the values are whole numbers or, for Laguerre polynomials, fractions.
        let expected = match name {
            "chebyshev_polynomial_t" | "legendre_polynomial_p" => -1.0,
            "chebyshev_polynomial_u" => -8.0,
            "chebyshev_polynomial_v" => -15.0,
            "chebyshev_polynomial_w" => -1.0,
            "hermite_polynomial_h" => -464.0,
            "hermite_polynomial_he" => 20.0,
            _ => 25.9765873015873,
        };
        assert!((y(7)[2] - expected).abs() < 1e-13, "{name}: {}", y(7)[2]);
    }
    assert_eq!(Tensor::<f64>::zeros([0, 3]).legendre_polynomial_p(3).shape(), &[0, 3]);
}

#[test]
fn derivatives_with_respect_to_shapes_equal_the_tables() {
    let cases = cases();
    // Each element depends on one element of each input, so the gradient of the sum has the derivatives of the elements.
    fn gradient<'t>(y: Var<'t, f64>, x: Var<'t, f64>) -> Var<'t, f64> {
        y.sum(..).grad([x])[0]
    }
    for name in ["gammainc_a", "gammainc_aa", "betainc_a", "betainc_ab"] {
        let x = columns::<f64>(&cases[name]);
        let tape = Tape::new();
        let inputs: Vec<Var<'_, f64>> = x.iter().map(|x| tape.var(x)).collect();
        let got = match name {
            "gammainc_a" => gradient(inputs[0].gammainc(inputs[1]), inputs[0]),
            "gammainc_aa" => gradient(gradient(inputs[0].gammainc(inputs[1]), inputs[0]), inputs[0]),
            "betainc_a" => gradient(inputs[0].betainc(inputs[1], inputs[2]), inputs[0]),
            _ => gradient(gradient(inputs[0].betainc(inputs[1], inputs[2]), inputs[0]), inputs[1]),
        };
        let (got, want) = (got.value(), x.last().unwrap());
        // Second derivatives have zeros, where a relative error has no meaning. So their errors are divided by at least 1e-5, which is a
        // typical size of these derivatives.
        let min_scale = if name.ends_with("_a") { 0.0 } else { 1e-5 };
        let (error, at) = error(&got, want, min_scale);
        let row: Vec<f64> = x.iter().map(|x| x.get(&[at]).unwrap()).collect();
        assert!(error <= 1e-10, "{name}: {error:e} at {row:?}, not {}", got.get(&[at]).unwrap());
    }
}

#[test]
fn inverse_functions_return_the_probability() {
    let shares = Tensor::from([1e-200, 1e-12, 1e-3, 0.2, 0.5, 0.7, 0.99, 1.0 - 1e-9]);
    for a in [1e-2, 0.3, 1.0, 4.5, 80.0, 1e5] {
        // One rounding of x changes the probability by up to a ε, relatively.
        let bound = 1e-11 + a * f64::EPSILON;
        let a = Tensor::scalar(a).expand([8]);
        // The check leaves out results so near to 0 or 1 that rounding has destroyed the digits of their probability.
        let check = |back: Tensor<f64>, x: Tensor<f64>, share: &Tensor<f64>, name: &str| {
            for ((back, x), share) in back.iter().zip(x.iter()).zip(share.iter()) {
                let is_accurate = (1e-290..0.999).contains(&x) || share < 0.99 && x > 1.0;
                assert!(!x.is_nan(), "{name} {a:?}: {share:e}");
                assert!(!is_accurate || (back / share - 1.0).abs() < bound, "{name} {a:?}: {back:e} {share:e} {x:e}");
            }
        };
        let x = a.gammaincinv(&shares);
        check(a.gammainc(&x), x, &shares, "gammaincinv");
        let x = a.gammainccinv(&shares);
        check(a.gammaincc(&x), x, &shares, "gammainccinv");
        for b in [0.05, 1.0, 7.0, 2000.0] {
            let x = a.betaincinv(b, &shares);
            check(a.betainc(b, &x), x, &shares, "betaincinv");
        }
    }
}

#[test]
fn edge_values() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let to_text = |x: Tensor<f64>| format!("{:?}", x.to_vec());
    let ends = Tensor::from([-inf, inf, nan]);
    assert_eq!(to_text(ends.log_ndtr()), "[-inf, -0.0, NaN]");
    assert_eq!(to_text(ends.erfcx()), "[inf, 0.0, NaN]");
    assert_eq!(to_text(ends.i0()), "[inf, inf, NaN]");
    assert_eq!(to_text(ends.i1()), "[-inf, inf, NaN]");
    assert_eq!(to_text(ends.i1e()), "[-0.0, 0.0, NaN]");
    let huge = Tensor::from([-f64::MAX, f64::MAX]);
    assert_eq!(to_text(huge.i0()), "[inf, inf]");
    assert_eq!(to_text(huge.i1()), "[-inf, inf]");
    // The expected values are PyTorch's. They equal 1 / √(2πx).
    for (got, want) in huge.i0e().iter().chain(huge.i1e().abs().iter()).zip([2.975_447_459_315_900_2e-155; 4]) {
        assert_close(got, want, 1e-14);
    }
    assert_eq!(to_text(Tensor::from([0.0, 1.0, -0.1, 1.1, nan]).ndtri()), "[-inf, inf, NaN, NaN, NaN]");
    assert_eq!(to_text(Tensor::from([0.0, 0.5, -inf]).log1mexp()), "[-inf, NaN, -0.0]");
    // The values and slopes of `entr` are PyTorch's.
    let x = Tensor::from([nan, -inf, -1.0, 0.0, 1.0, inf]);
    assert_eq!(to_text(x.entr()), "[NaN, -inf, -inf, 0.0, -0.0, -inf]");
    let tape = Tape::new();
    let x = tape.var(&x);
    assert_eq!(to_text(x.entr().sum(..).grad([x])[0].value()), "[NaN, NaN, NaN, inf, -1.0, -inf]");
    assert_eq!(
        to_text(Tensor::from([0.0, 1.0, -1.0, 0.0]).betaln(Tensor::from([1.0, inf, 1.0, inf]))),
        "[inf, -inf, NaN, NaN]"
    );
    let a = Tensor::from([0.0, 0.0, 2.0, inf, inf, 2.0, -1.0]);
    let x = Tensor::from([1.0, 0.0, 0.0, 1.0, inf, inf, 1.0]);
    assert_eq!(to_text(a.gammainc(&x)), "[1.0, NaN, 0.0, 0.0, NaN, 1.0, NaN]");
    assert_eq!(to_text(a.gammaincc(&x)), "[0.0, NaN, 1.0, 1.0, NaN, 0.0, NaN]");
    assert_eq!(to_text(Tensor::from([2.0, 2.0, 2.0]).gammaincinv(Tensor::from([0.0, 1.0, 1.5]))), "[0.0, inf, NaN]");
    // These results underflow, and Newton's method starts where x is 0.
    assert_eq!(to_text(Tensor::from([1e-3, 1e-4]).gammaincinv(Tensor::from([0.4, 0.1]))), "[0.0, 0.0]");
    assert_eq!(to_text(Tensor::from([1e-4]).betaincinv(Tensor::from([1.0]), Tensor::from([1e-13]))), "[0.0]");
    let a = Tensor::from([0.0, 2.0, 0.0, 2.0, 2.0, 2.0, -1.0]);
    let b = Tensor::from([2.0, 0.0, 0.0, 2.0, 2.0, 2.0, 1.0]);
    let x = Tensor::from([0.5, 0.5, 0.5, 0.0, 1.0, 1.5, 0.5]);
    assert_eq!(to_text(a.betainc(&b, &x)), "[1.0, 0.0, NaN, 0.0, 1.0, NaN, NaN]");
    assert_eq!(to_text(Tensor::from([1.0, 1.0]).gamma_density(Tensor::from([0.0, -1.0]))), "[1.0, 0.0]");
    assert_eq!(to_text(Tensor::<f64>::from([0.0]).polygamma(1)), "[inf]");
    for p in [1, 2, 5] {
        assert_eq!(to_text(Tensor::from([inf, nan]).multigammaln(p)), "[inf, NaN]", "{p}");
    }
    assert_eq!(to_text(Tensor::from([inf, nan, 1.0]).multigammaln(0)), "[0.0, 0.0, 0.0]");
}

#[test]
fn empty_and_broadcast_operands() {
    let a = Tensor::<f64>::ones([2, 1]);
    assert_eq!(a.betainc(Tensor::ones([3]), Tensor::full([4, 1, 1], 0.5)).shape(), &[4, 2, 3]);
    assert_eq!(Tensor::<f64>::ones([0, 2]).gammainc(Tensor::ones([2])).shape(), &[0, 2]);
    let error = a.try_gammainc(Tensor::ones([3, 3])).unwrap_err();
    assert_eq!(
        error.sentence(),
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"
    );
    assert!(error.to_string().contains(file!()), "{error}");
}

#[test]
fn vmap_equals_a_loop() {
    let (a, x) = (Tensor::from([[0.5, 2.0], [3.0, 8.0]]), Tensor::from([1.0, 4.0]));
    let [batched] =
        transforms::Vmap::new().in_dims([Some(0), None]).call(|[a, x]| a.gammainc(x).sum(..).grad([a]), [&a, &x]);
    let tape = Tape::new();
    let whole = tape.var(&a);
    let [expected] = whole.gammainc(&x).sum(..).grad([whole]);
    assert_eq!(batched, expected.value());
}

/// Asserts that `got` is `want`, up to the relative error `tolerance`.
#[track_caller]
fn assert_close(got: f64, want: f64, tolerance: f64) {
    assert!(got == want || (got - want).abs() <= tolerance * want.abs(), "{got:e}, not {want:e}");
}

#[test]
fn incomplete_functions_of_large_and_small_parameters() {
    // The columns are a, (x - a) / √a, and the smaller of the lower and the upper function at x, computed with mpmath.
    let gamma = [
        (1.01e6, -8.0, 5.244_613_627_577_96e-16),
        (1e10, 0.0, 0.499_998_670_192_398_6),
        (1e13, -1.0, 0.158_655_253_932_381_1),
        (1e13, 8.0, 6.221_296_094_596_2e-16),
    ];
    for (a, z, want) in gamma {
        let (a, x) = (Tensor::scalar(a), Tensor::scalar(a + z * f64::sqrt(a)));
        let (lower, upper) = (a.gammainc(&x).item(), a.gammaincc(&x).item());
        assert_close(lower.min(upper), want, 1e-11);
        assert_close(lower + upper, 1.0, 1e-15);
    }
    // In some of these rows x/a overflows or is above 1e305. In the others a is small, and `gammaincc` is about as small as a.
    let tiny = f64::from_bits(1);
    for (a, x, want) in [
        (1e-20, 0.5, 5.597_735_947_761_607_8e-21),
        (1e-20, 1e-20, 4.547_448_619_497_938e-19),
        (1e-20, 1.0, 2.193_839_343_955_202_6e-21),
        (3e-16, 1.0, 6.581_518_031_865_61e-17),
        (1e-10, 1.000_000_000_05, 2.193_839_343_995_738e-11),
        (5e-4, 1.0002, 1.097_112_882_804_924_8e-4),
        (1e-8, 0.25, 1.044_282_635_067_712e-8),
        (5e-4, 1e-3, 0.003_160_968_584_978_896_4),
        (5e-4, 0.9, 0.000_130_153_419_763_918_97),
        (1e-300, 1e10, 0.0),
        (0.5, f64::MAX, 0.0),
        (1e3, f64::MAX, 0.0),
        (tiny, 2.0, 0.0),
        (tiny, f64::MAX, 0.0),
    ] {
        let (a, x) = (Tensor::scalar(a), Tensor::scalar(x));
        assert_close(a.gammaincc(&x).item(), want, 3e-13);
        assert_close(a.gammainc(&x).item(), 1.0 - want, 1e-15);
    }
    // The columns are a, b, x, the function, and the largest permitted relative error.
    let beta = [
        (1e14, 1e14, 0.5, 0.5, 1e-12),
        (1e-8, 0.1, 0.1, 0.999_999_879_454_492_2, 1e-14),
        (0.1, 1e-8, 0.9, 1.205_455_077_719_11e-7, 1e-7),
        (1e-3, 1e-8, 0.9, 1.002_185_667_129_9e-5, 1e-9),
        // Far from the mean, with a large a and a small b, the function is nearly 1 - erf(√3).
        (1e14, 0.5, 1.0 - 3e-14, 0.014_347_7, 1e-2),
    ];
    for (a, b, x, want, tolerance) in beta {
        assert_close(Tensor::scalar(a).betainc(b, x).item(), want, tolerance);
    }
}

#[test]
fn derivatives_with_respect_to_large_shapes_agree_with_the_normal_limit() {
    // At the mean, ∂P/∂a = -1 / √(2π a) (1 + 1 / (6 a) …), and the second derivative is far smaller.
    for a in [9.9e5, 1.01e6, 1e9] {
        let tape = Tape::<f64>::new();
        let shape = tape.var(&Tensor::scalar(a));
        let [slope] = shape.gammainc(a).grad([shape]);
        let expected = -1.0 / (std::f64::consts::TAU * a).sqrt();
        assert_close(slope.item(), expected, 1.0 / a);
        // One standard deviation above the mean, P is nearly Φ(z) with z = (x - a) / √a.
        let x = a + a.sqrt();
        let [slope] = shape.gammainc(x).grad([shape]);
        let [curvature] = slope.grad([shape]);
        let density = expected * (-0.5f64).exp();
        assert_close(slope.item(), density, 2.0 / a.sqrt());
        assert_close(curvature.item(), density / a.sqrt(), 5.0 / a.sqrt());
    }
}

#[test]
fn quantiles_of_extreme_beta_distributions() {
    // Computed with mpmath and SciPy. For the last two, rounding errors of a distribution function near 1 limit the accuracy.
    let table = [
        (7.3, 1e-3, 1e-100, 6.767_741_802_551e-14),
        (1e5, 1e-3, 1e-100, 0.997_822_684_759_36),
        (1e5, 30.0, 1e-300, 0.991_895_119_199_95),
        (1.0, 1e-3, 1e-300, 1e-297),
        (1e-8, 2.0, 0.6, 0.0),
        (1e-8, 2.0, 1.0 - 1e-7, 1.670_197_156e-5),
        (1e-8, 0.5, 1.0 - 1e-7, 1.815_831_381e-4),
    ];
    for (a, b, p, want) in table {
        assert_close(Tensor::scalar(a).betaincinv(b, p).item(), want, 1e-6);
    }
}

#[test]
fn second_derivatives_at_the_ends_of_the_support() {
    let second = |f: &dyn for<'t> Fn(Var<'t, f64>) -> Var<'t, f64>, x: f64| {
        let tape = Tape::new();
        let x = tape.var(&Tensor::scalar(x));
        let [slope] = f(x).grad([x]);
        slope.grad_or_zeros([x])[0].item()
    };
    let gamma = |a: f64| second(&|x| x.tape().constant(a).gammainc(x), 0.0);
    assert_eq!([0.5, 1.0, 1.5, 2.0, 3.0].map(gamma), [f64::NEG_INFINITY, -1.0, f64::INFINITY, 1.0, 0.0]);
    // For b = 2, the derivative of the density is 2 - 6 x for a = 1, and 6 - 12 x for a = 2.
    let beta = |a: f64, x: f64| second(&|x| x.tape().constant(a).betainc(2.0, x), x);
    assert_eq!([1.0, 2.0, 3.0].map(|a| beta(a, 0.0)), [-2.0, 6.0, 0.0]);
    assert_eq!([1.0, 2.0, 3.0].map(|a| beta(a, 1.0)), [-2.0, -6.0, -12.0]);
    // Tests the mixed derivative with respect to a and x.
    let tape = Tape::<f64>::new();
    let (a, x) = (tape.var(&Tensor::scalar(3.0)), tape.var(&Tensor::scalar(0.0)));
    let [slope] = a.gammainc(x).grad([x]);
    assert_eq!(slope.grad([a])[0].item(), 0.0);
}

#[test]
fn betaincc_is_the_complement_of_betainc() {
    let (a, b) = (Tensor::from([[0.3], [2.0]]), Tensor::from([0.7, 5.0, 1.0]));
    for x in [0.0, 0.2, 0.7, 1.0] {
        let sum = a.betainc(&b, x) + a.betaincc(&b, x);
        assert!((sum - 1.0).abs().amax(..).item() < 1e-15);
    }
    // For a = 1, the expected value is (1 - x)ᵇ.
    assert_close(Tensor::scalar(1.0).betaincc(1e6, 1e-20).item(), 1.0 - 1e-14, 1e-16);
    assert_close(Tensor::scalar(1f32).betaincc(1e6, 1e-6).item().into(), (-1f64).exp(), 1e-6);
    let x = Tensor::scalar(0.3);
    assert_gradcheck!(GradCheck::new(), |a, b, x| a.betaincc(b, x), &a, &b, &x);
}

#[test]
fn derivatives_of_scaled_bessel_functions_of_large_arguments() {
    // d/dx exp(-x) I₀(x) is nearly -1 / (2 x √(2π x)) (1 + 3 / (8 x)), and d/dx exp(-x) I₁(x) has 1 - 9 / (8 x) in place of the last factor.
    for x in [1e4f32, 1e6, 1e8] {
        let slope = |f: &dyn for<'t> Fn(Var<'t, f32>) -> Var<'t, f32>, x: f32| {
            let tape = Tape::new();
            let x = tape.var(&Tensor::scalar(x));
            f64::from(f(x).grad([x])[0].item())
        };
        let size = f64::from(x);
        let expected = -0.5 / (size * (std::f64::consts::TAU * size).sqrt());
        for sign in [1.0, -1.0] {
            assert_close(slope(&|x| x.i0e(), sign * x), f64::from(sign) * expected * (1.0 + 3.0 / (8.0 * size)), 1e-6);
            assert_close(slope(&|x| x.i1e(), sign * x), expected * (1.0 - 9.0 / (8.0 * size)), 1e-6);
        }
    }
}
