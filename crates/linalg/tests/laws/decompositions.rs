//! Compares derivatives of decompositions with central differences, `vmap` with loops, and values and derivatives with PyTorch's.
//!
//! The functions of the table do not depend on the signs of singular vectors and eigenvectors. `tools/decomposition_cases.py` has the same
//! table.

use serde_json::Value;
use wengert_autograd::prelude::*;
use wengert_autograd::transforms::Vmap;
use wengert_autograd::{GradCheck, Var};
use wengert_linalg::prelude::*;

type V<'t> = Var<'t, f64>;
type Function = for<'t> fn(V<'t>) -> V<'t>;

fn symmetric(x: V<'_>) -> V<'_> {
    x + x.transpose(-2, -1)
}

/// Returns a matrix of rank 2: the product of the first two columns and the first two rows of `x`.
fn rank_two(x: V<'_>) -> V<'_> {
    x.narrow(-1, 0, 2).matmul(x.narrow(-2, 0, 2))
}

/// Returns the last column of each matrix.
fn last_column(x: V<'_>) -> V<'_> {
    x.narrow(-1, x.shape()[x.shape().rank() - 1] as isize - 1, 1)
}

/// Returns all columns of each matrix except the last one.
fn other_columns(x: V<'_>) -> V<'_> {
    x.narrow(-1, 0, x.shape()[x.shape().rank() - 1] - 1)
}

fn full_left_squares(x: V<'_>) -> V<'_> {
    let (u, values, _) = x.svd(true);
    u.narrow(-1, 0, values.shape()[values.shape().rank() - 1]).square()
}

const MATRIX_DIMS: [isize; 2] = [-2, -1];
const LOW_RANK_RTOL: f64 = 1e-10;

const FUNCTIONS: &[(&str, Function)] = &[
    ("qr_q", |x| x.qr(QrMode::Reduced).0),
    ("qr_r", |x| x.qr(QrMode::R).1),
    ("qr_complete", |x| x.qr(QrMode::Complete).0),
    ("eigh_values", |x| symmetric(x).eigh(Triangle::Lower).0),
    ("eigh_upper", |x| symmetric(x).eigh(Triangle::Upper).0),
    ("eigh_squares", |x| symmetric(x).eigh(Triangle::Lower).1.square()),
    ("eigh_function", |x| {
        let (values, vectors) = symmetric(x).eigh(Triangle::Lower);
        (vectors * values.sin().unsqueeze(-2)).matmul(vectors.transpose(-2, -1))
    }),
    ("eigvalsh", |x| symmetric(x).eigvalsh(Triangle::Lower)),
    ("svd_values", |x| x.svd(false).1),
    ("svd_left", |x| x.svd(false).0.square()),
    ("svd_right", |x| x.svd(false).2.square()),
    ("svd_polar", |x| {
        let (u, _, vh) = x.svd(false);
        u.matmul(vh)
    }),
    ("svd_full", full_left_squares),
    ("svdvals", |x| x.svdvals()),
    ("pinv", |x| x.pinv(Tolerance::new())),
    ("pinv_hermitian", |x| symmetric(x).pinv(Tolerance::new().hermitian())),
    ("pinv_low", |x| rank_two(x).pinv(Tolerance::new().rtol(LOW_RANK_RTOL))),
    ("lstsq", |x| other_columns(x).lstsq(last_column(x), None).solution),
    ("lstsq_low", |x| rank_two(x).lstsq(last_column(x), Some(LOW_RANK_RTOL)).solution),
    ("matrix_exp", |x| x.matrix_exp()),
    ("norm_fro", |x| x.matrix_norm(MatrixOrder::Frobenius, MATRIX_DIMS)),
    ("norm_nuc", |x| x.matrix_norm(MatrixOrder::Nuclear, MATRIX_DIMS)),
    ("norm_inf", |x| x.matrix_norm(f64::INFINITY, MATRIX_DIMS)),
    ("norm_-inf", |x| x.matrix_norm(f64::NEG_INFINITY, MATRIX_DIMS)),
    ("norm_1", |x| x.matrix_norm(1, MATRIX_DIMS)),
    ("norm_-1", |x| x.matrix_norm(-1, MATRIX_DIMS)),
    ("norm_2", |x| x.matrix_norm(2, MATRIX_DIMS)),
    ("norm_-2", |x| x.matrix_norm(-2, MATRIX_DIMS)),
    ("cond_2", |x| x.cond(2)),
    ("cond_-2", |x| x.cond(-2)),
    ("cond_1", |x| x.cond(1)),
    ("cond_fro", |x| x.cond(MatrixOrder::Frobenius)),
    ("vander", |x| x.vander(4)),
    ("rank", |x| rank_constant(x, x)),
    ("rank_low", |x| rank_constant(x, rank_two(x))),
    ("eig_vectors", |x| {
        let (values, vectors) = x.eig();
        let weights = values.select(-1, 0).square() + values.select(-1, 1).cos() + 1.0;
        let parts = [0, 1].map(|part| vectors.select(-1, part));
        let [re, im] = parts.map(|part| (part * weights.unsqueeze(-2)).matmul(part.transpose(-2, -1)));
        re + im
    }),
    ("eigvals_sums", |x| {
        let values = x.eigvals();
        let (re, im) = (values.select(-1, 0), values.select(-1, 1));
        let parts = [re * re * re, re.exp() * im.cos(), (re.square() + im.square() + 1.0).sqrt()];
        stack(&parts.map(|part| part.sum(-1)), -1)
    }),
];

fn rank_constant<'t>(x: V<'t>, value: V<'t>) -> V<'t> {
    x.tape().constant(value.matrix_rank(Tolerance::new()).cast::<f64>())
}

fn function(name: &str) -> Function {
    FUNCTIONS.iter().find(|entry| entry.0 == name).unwrap_or_else(|| panic!("{name} is not in the table")).1
}

fn read_cases() -> Value {
    serde_json::from_str(include_str!("decompositions.json")).unwrap()
}

fn sizes(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|size| size.as_u64().unwrap() as usize).collect()
}

/// Returns the numbers of a JSON array, or `None` for null.
fn numbers(value: &Value) -> Option<Vec<f64>> {
    Some(value.as_array()?.iter().map(|x| x.as_f64().unwrap()).collect())
}

fn matrix(case: &Value) -> Tensor<f64> {
    Tensor::try_from_vec(numbers(&case["x"]).unwrap(), &sizes(&case["shape"])[..]).unwrap()
}

/// Returns the sum of the elements of `x`, each multiplied by a constant weight. `weight` gets the row-major index of an element.
fn weighted<'t>(x: V<'t>, weight: impl Fn(usize) -> f64) -> V<'t> {
    let data: Vec<f64> = (0..x.shape().numel()).map(weight).collect();
    (x * x.tape().constant(Tensor::try_from_vec(data, x.shape()).unwrap())).sum(..)
}

/// Asserts that values are near the expected ones. The error of a derivative grows with the condition number of the problem and with the
/// size of the derivative. The matrices of the cases have few digits and condition numbers below 1000. So the bound 1e-9 leaves 1e4 ε for
/// derivatives of higher order.
#[track_caller]
fn assert_close(got: &Tensor<f64>, expected: &[f64], name: &str) {
    let got = got.to_vec();
    assert_eq!(got.len(), expected.len(), "{name}");
    let size = expected.iter().fold(1.0, |all: f64, x| all.max(x.abs()));
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).abs() <= 1e-9 * size, "{name}: {got}, not {expected}");
    }
}

/// Checks that a NaN at any position of A gives NaN in the same column of R, also if all other elements are zeros.
#[test]
fn a_nan_gives_nan_in_its_column_of_r() {
    for (rows, columns) in [(1, 1), (2, 1), (3, 3), (5, 2), (2, 5), (140, 40)] {
        for element in [0.0, 1.0] {
            for place in 0..rows * columns {
                if rows * columns > 100 && place % 619 != 0 {
                    continue;
                }
                let (row, column) = (place / columns, place % columns);
                let number = |index: &[usize]| if *index == [row, column] { f64::NAN } else { element };
                let a = Tensor::from_fn([rows, columns], number);
                let (q, r) = a.qr(QrMode::Reduced);
                let has_nan = |x: Tensor<f64>| x.select(1, column).iter().any(f64::is_nan);
                assert!(has_nan(q.matmul(&r)) && has_nan(r), "{rows} {columns} {element} {place}: {q}");
            }
        }
    }
    let (q, r) = Tensor::from([[1.0], [f64::NAN]]).qr(QrMode::Reduced);
    assert!(q.iter().chain(r.iter()).all(f64::is_nan), "{q} {r}");
}

#[test]
fn values_and_derivatives_are_pytorchs() {
    let file = read_cases();
    let mut counts = [0; 3];
    for case in file["cases"].as_array().unwrap() {
        let (name, kind, x) = (case["f"].as_str().unwrap(), case["kind"].as_str().unwrap(), matrix(case));
        let name_of = |what: &str| format!("{what} of {name}, {kind} {}", x.shape());
        // Matrices that are not random have equal eigenvalues or singular values, or dependent columns, so PyTorch may choose other vectors.
        // The functions of QR, `eigh`, `eig` and `svd` are left out for these matrices.
        if kind != "random" && ["qr", "eigh_", "eig_", "svd_"].iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        let tape = Tape::<f64>::new();
        let variable = tape.var(&x);
        let y = function(name)(variable);
        assert_eq!(y.shape(), sizes(&case["y_shape"])[..], "{}", name_of("shape"));
        let Some(expected) = numbers(&case["y"]) else { continue };
        // PyTorch's condition numbers of singular matrices are quotients by rounding errors, so they are not compared.
        if name.starts_with("cond") && expected.iter().any(|x| x.abs() > 1e6 || x.abs() < 1e-6) {
            continue;
        }
        assert_close(&y.value(), &expected, &name_of("value"));
        counts[0] += 1;
        let (Some(g), false) = (numbers(&case["g"]), name.starts_with("rank")) else { continue };
        // For zero or equal singular values, PyTorch has other conventions for the derivatives of the pseudoinverse and of the norms that are
        // computed from singular values. So these derivatives are not compared.
        if kind != "random" && !["matrix_exp", "norm_1", "norm_inf", "norm_fro", "vander"].contains(&name) {
            continue;
        }
        let [dx] = weighted(y, |k| (k as f64).cos()).grad_or_zeros([variable]);
        assert_close(&dx.value(), &g, &name_of("gradient"));
        counts[1] += 1;
        let Some(h) = numbers(&case["h"]) else { continue };
        if kind != "random" && !["matrix_exp", "vander"].contains(&name) {
            continue;
        }
        let [ddx] = weighted(dx, |k| ((k + 1) as f64).sin()).grad_or_zeros([variable]);
        assert_close(&ddx.value(), &h, &name_of("second derivative"));
        counts[2] += 1;
    }
    println!("{counts:?} values, gradients and second derivatives");
    assert!(counts[0] > 200 && counts[1] > 150 && counts[2] > 100, "{counts:?}");
}

#[test]
fn errors_are_pytorchs() {
    let file = read_cases();
    for case in file["errors"].as_array().unwrap() {
        let (name, sentence) = (case["f"].as_str().unwrap(), case["sentence"].as_str().unwrap());
        let mut x = Tensor::<f64>::ones(&sizes(&case["shape"])[..]);
        if let Some(place) = case["nan"].as_u64() {
            x.make_mut()[place as usize] = f64::NAN;
        }
        let error = match name {
            "qr_q" => x.try_qr(QrMode::Reduced).err(),
            "eigh" => x.try_eigh(Triangle::Lower).err(),
            "svdvals" => x.try_svdvals().err(),
            "matrix_exp" => x.try_matrix_exp().err(),
            "norm_fro" => x.try_matrix_norm(MatrixOrder::Frobenius, MATRIX_DIMS).err(),
            "norm_-2" => x.try_matrix_norm(-2, MATRIX_DIMS).err(),
            "cond_1" => x.try_cond(1).err(),
            "cond_fro" => x.try_cond(MatrixOrder::Frobenius).err(),
            "rank" => x.try_matrix_rank(Tolerance::new()).err(),
            "eig" => x.try_eig().err(),
            "eigvals" => x.try_eigvals().err(),
            "lstsq" => x.try_lstsq(Tensor::ones(&sizes(&case["other"])[..]), None).err(),
            other => panic!("{other} is not in the table"),
        };
        assert_eq!(error.map(|error| error.sentence()).as_deref(), Some(sentence), "{case}");
    }
}

/// Returns the cases with random elements for which PyTorch has a derivative, as pairs of the function's name and the input.
fn random_cases() -> Vec<(String, Tensor<f64>)> {
    let file = read_cases();
    let cases = file["cases"].as_array().unwrap().iter();
    cases
        .filter(|case| {
            case["kind"] == "random" && !case["g"].is_null() && !case["f"].as_str().unwrap().starts_with("rank")
        })
        .map(|case| (case["f"].as_str().unwrap().to_owned(), matrix(case)))
        .collect()
}

#[test]
fn derivatives_agree_with_central_differences() {
    for (name, x) in random_cases().iter().filter(|(_, x)| x.rank() == 2 && x.numel() > 0) {
        let f = function(name);
        if let Err(failure) = GradCheck::new().accuracy(1e-12).check(|[x]| f(x), [x]) {
            panic!("{name} {}: {failure}", x.shape());
        }
    }
}

#[test]
fn vmap_equals_a_loop() {
    for (name, x) in random_cases().iter().filter(|(_, x)| x.rank() == 3 && x.shape()[0] == 2) {
        let f = function(name);
        let gradient = |x: V<'_>| weighted(f(x), |k| (k as f64).cos()).grad_or_zeros([x])[0].value();
        let [batched] = Vmap::new().call(|[x]| weighted(f(x), |k| (k as f64).cos()).grad_or_zeros([x]), [x]);
        for index in 0..2 {
            let tape = Tape::<f64>::new();
            let single = x.narrow(0, index, 1).squeeze(0);
            let expected = gradient(tape.var(&single)).to_vec();
            assert_close(&batched.narrow(0, index, 1), &expected, &format!("{name} {}", x.shape()));
        }
    }
}

/// Checks that the derivative checks of this file refuse a wrong derivative.
#[test]
fn a_wrong_derivative_is_found() {
    let x = Tensor::from([[1.0, 2.0], [3.0, 5.0]]);
    // The detached factor loses a part of the derivative.
    assert!(GradCheck::new().check(|[x]| x.matrix_exp() * x.detach(), [&x]).is_err());
}

#[test]
fn least_squares_with_residuals_and_batches() {
    let a = Tensor::from([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]);
    let b = Tensor::from([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [0.0]]]);
    let result = a.unsqueeze(0).lstsq(&b, None);
    assert_eq!(result.solution, Tensor::from([[[1.0], [2.0]], [[4.0], [5.0]]]));
    assert_eq!(result.residuals, Tensor::from([[9.0], [0.0]]));
    assert_eq!(result.rank.to_vec(), [2.0, 2.0]);
    // B is one matrix of right sides for each of two batches: it would be vectors only if its shape were [2, 1, 2].
    let scaled = stack(&[Tensor::<f64>::eye(2), Tensor::eye(2) * 2.0], 0).unsqueeze(1);
    let b = Tensor::from([[[2.0, 4.0], [6.0, 8.0]], [[0.0, 2.0], [4.0, 6.0]]]);
    let solution = scaled.lstsq(&b, None).solution;
    assert_eq!(solution, scaled.solve(&b));
    assert_eq!(solution.shape(), &[2, 2, 2, 2]);
    assert_eq!(a.t().lstsq(Tensor::from([1.0, 2.0]), None).residuals.shape(), &[0]);
    assert_eq!(Tensor::<f64>::ones([3, 2]).lstsq(Tensor::ones([3]), None).rank.item(), 1.0);
}

#[test]
fn a_full_square_of_hopeless_size_is_an_error() {
    let tall = Tensor::<f32>::zeros([1 << 21, 1]);
    assert!(tall.try_svd(true).is_err());
    assert!(tall.try_qr(QrMode::Complete).is_err());
}
