//! Decompositions of many matrices, compared with their definitions: the product is the matrix, and the vectors are orthonormal.

use wengert_linalg::prelude::*;
use wengert_tensor::Float;
use wengert_tensor::prelude::*;

/// A matrix for the tests, with a description.
struct Case<T: Float> {
    name: String,
    rows: usize,
    columns: usize,
    matrix: Tensor<T>,
}

/// Returns random numbers in [-1, 1).
fn random(count: usize, seed: u64) -> Vec<f64> {
    Tensor::<f64>::uniform(-1.0, 1.0, [count], &mut Generator::new(seed)).to_vec()
}

/// Returns matrices of one shape: random, of rank 1, graded, with few different elements, and of extreme magnitudes.
fn cases<T: Float>(rows: usize, columns: usize) -> Vec<Case<T>> {
    let values = random(rows * columns, (rows * 1000 + columns) as u64);
    let side = columns.max(1);
    let extreme = if size_of::<T>() == 8 { 1e250 } else { 1e30 };
    let kinds: [(&str, &dyn Fn(usize) -> f64); 9] = [
        ("random", &|k| values[k]),
        ("zero", &|_| 0.0),
        ("identity", &|k| f64::from(u8::from(k / side == k % side))),
        ("ones", &|_| 1.0),
        ("rank 1", &|k| values[k / side] * values[k % side]),
        ("graded", &|k| values[k] * 0.25f64.powi((k / side + k % side) as i32)),
        ("graded upwards", &|k| values[k] * 0.25f64.powi((rows + columns - k / side - k % side) as i32)),
        ("large", &|k| values[k] * extreme),
        ("small", &|k| values[k] / extreme),
    ];
    let case = |&(name, element): &(&str, &dyn Fn(usize) -> f64)| Case {
        name: format!("{name} [{rows}, {columns}]"),
        rows,
        columns,
        matrix: Tensor::from_fn([rows, columns], |i| T::from_f64(element(i[0] * columns + i[1]))),
    };
    // The products that check large matrices take long. So there are fewer kinds of large matrices.
    let (large, few) = (rows * columns > 4000, ["random", "identity", "rank 1", "graded", "large"]);
    kinds.iter().filter(|kind| !large || few.contains(&kind.0)).map(case).collect()
}

/// Returns the product of two matrices, computed in f64 by plain loops.
fn product<T: Float>(x: &Tensor<T>, y: &Tensor<T>) -> Tensor<f64> {
    let (m, k, n) = (x.shape()[0], x.shape()[1], y.shape()[1]);
    let (x, y) = (x.cast::<f64>().to_vec(), y.cast::<f64>().to_vec());
    let mut out = vec![0.0; m * n];
    for i in 0..m {
        let line = &mut out[i * n..(i + 1) * n];
        for l in 0..k {
            let factor = x[i * k + l];
            line.iter_mut().zip(&y[l * n..(l + 1) * n]).for_each(|(out, y)| *out += factor * y);
        }
    }
    Tensor::from_vec(out, [m, n])
}

/// Asserts that the columns of a matrix are orthonormal. The error grows with the number of reflections and rotations that made a column,
/// and is of the order of the machine precision for each.
#[track_caller]
fn assert_orthonormal<T: Float>(x: &Tensor<T>, name: &str) {
    let (rows, columns) = (x.shape()[0], x.shape()[1]);
    let tolerance = 10.0 * (rows.max(columns) as f64) * T::EPSILON.to_f64();
    let difference = product(&x.t(), x) - Tensor::eye(columns);
    assert!(difference.to_vec().iter().all(|x| x.abs() <= tolerance), "{name}: {difference}");
}

/// Asserts that two arrays agree up to 10 n ε times the largest element of the second array. Here n is the number of sums and reflections
/// that an element results from.
#[track_caller]
fn assert_close<T: Float>(x: &Tensor<f64>, y: &Tensor<T>, n: usize, name: &str) {
    let y = y.cast::<f64>();
    assert_eq!(x.shape(), y.shape(), "{name}");
    let largest = y.to_vec().iter().fold(0.0, |all: f64, y| all.max(y.abs()));
    let tolerance = 10.0 * n as f64 * T::EPSILON.to_f64() * largest;
    for (k, (x, y)) in x.to_vec().iter().zip(y.to_vec()).enumerate() {
        assert!((x - y).abs() <= tolerance, "{name}: {x} and {y} at {k}");
    }
}

/// Asserts that values which were computed without vectors agree with values that were computed with vectors. For large matrices, these
/// computations are different algorithms.
#[track_caller]
fn assert_values<T: Float>(alone: &Tensor<T>, values: &Tensor<T>, n: usize, name: &str) {
    assert_close(&alone.cast::<f64>(), values, n, name);
}

/// Returns true if no element is larger than the element before it.
fn is_descending<T: Float>(values: &Tensor<T>) -> bool {
    values.to_vec().windows(2).all(|pair| pair[0] >= pair[1])
}

const SHAPES: [[usize; 2]; 20] = [
    [0, 0],
    [0, 3],
    [3, 0],
    [1, 1],
    [1, 4],
    [4, 1],
    [2, 2],
    [3, 3],
    [5, 3],
    [3, 5],
    [16, 16],
    [17, 17],
    [40, 7],
    [7, 40],
    [32, 32],
    [33, 34],
    [70, 35],
    [35, 90],
    [150, 140],
    [130, 170],
];

fn check_qr<T: Float>() {
    for Case { name, rows, matrix, .. } in SHAPES.iter().flat_map(|&[rows, columns]| cases::<T>(rows, columns)) {
        for mode in [QrMode::Reduced, QrMode::Complete] {
            let (q, r) = matrix.qr(mode);
            assert_orthonormal(&q, &name);
            assert_close(&product(&q, &r), &matrix, rows, &name);
            assert_eq!(r, r.triu(0), "{name}");
        }
    }
}

#[test]
fn qr_of_every_matrix() {
    check_qr::<f32>();
    check_qr::<f64>();
}

fn check_eigen<T: Float>() {
    for order in [0, 1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 40, 67, 150] {
        for Case { name, matrix, .. } in cases::<T>(order, order) {
            let matrix = matrix.tril(0) + matrix.tril(-1).t();
            let (values, vectors) = matrix.eigh(Triangle::Lower);
            assert!(is_descending(&-&values), "{name}");
            assert_orthonormal(&vectors, &name);
            assert_close(&product(&(&vectors * &values), &vectors.t()), &matrix, order, &name);
            let alone = matrix.eigvalsh(Triangle::Lower);
            assert_values(&alone, &values, order, &name);
            // The lower triangle must not be read.
            let half = matrix.masked_fill(Tensor::<f64>::ones([order, order]).tril(-1).gt(0.0), f64::NAN);
            assert_eq!(half.eigvalsh(Triangle::Upper), alone, "{name}");
        }
    }
}

#[test]
fn eigenvectors_of_every_matrix() {
    check_eigen::<f32>();
    check_eigen::<f64>();
}

fn check_singular<T: Float>() {
    for Case { name, rows, columns, matrix } in SHAPES.iter().flat_map(|&[rows, columns]| cases::<T>(rows, columns)) {
        for full_matrices in [false, true] {
            let count = rows.min(columns);
            let (u, values, vh) = matrix.svd(full_matrices);
            assert!(is_descending(&values), "{name}");
            assert!(values.to_vec().iter().all(|&value| value >= T::ZERO), "{name}");
            assert_orthonormal(&u, &name);
            assert_orthonormal(&vh.t(), &name);
            let scaled = vh.narrow(0, 0, count) * values.unsqueeze(-1);
            assert_close(&product(&u.narrow(1, 0, count), &scaled), &matrix, rows.max(columns), &name);
            assert_values(&matrix.svdvals(), &values, rows.max(columns), &name);
        }
    }
}

#[test]
fn singular_vectors_of_every_matrix() {
    check_singular::<f32>();
    check_singular::<f64>();
}

/// Tests a bidiagonal matrix with a tiny singular value. The product of its singular values is known: the determinant. Demmel and Kahan's
/// iteration finds the smallest value with a small relative error.
#[test]
fn small_singular_values_have_a_small_relative_error() {
    let tiny = 1e-20f64;
    let a = Tensor::from([[1.0, 1.0, 0.0], [0.0, tiny, 1.0], [0.0, 0.0, tiny]]);
    let determinant = tiny * tiny;
    let measured = a.svdvals().prod(..).item();
    assert!((measured / determinant - 1.0).abs() < 1e-13, "{measured}");
}

#[test]
fn eigenvalues_of_the_second_difference() {
    // The eigenvalues have the closed form 2 - 2 cos(k π / (n + 1)) for k = 1 … n.
    for order in [20, 60, 300] {
        let a = Tensor::from_fn([order, order], |i| match i[0].abs_diff(i[1]) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        });
        let (with_vectors, vectors) = a.eigh(Triangle::Lower);
        for values in [a.eigvalsh(Triangle::Lower), with_vectors] {
            for (k, value) in values.to_vec().into_iter().enumerate() {
                let expected = 2.0 - 2.0 * ((k + 1) as f64 * std::f64::consts::PI / (order + 1) as f64).cos();
                // By Weyl's theorem, an eigenvalue moves by at most the norm of the matrix's error. This is n ε times the matrix's norm, 4.
                assert!((value - expected).abs() < 4.0 * order as f64 * f64::EPSILON, "{value} {expected}");
            }
        }
        assert_orthonormal(&vectors, "second difference");
    }
}

/// Tests matrices with clusters of eigenvalues. Wilkinson's matrices have pairs of eigenvalues that are nearly equal. A matrix
/// whose diagonal blocks are Wilkinson's matrices, with an element `link` from 0 to 1 between the blocks, has many nearly equal eigenvalues.
/// If `link` is small, most of the vectors are found without the secular equation.
#[test]
fn eigenvectors_of_clusters() {
    for (copies, link) in [(7, 1e-14), (7, 1e-8), (5, 1.0), (9, 0.0)] {
        let order = 21 * copies;
        let a = Tensor::from_fn([order, order], |i| match i[0].abs_diff(i[1]) {
            0 => (i[0] % 21).abs_diff(10) as f64,
            1 if i[0].max(i[1]).is_multiple_of(21) => link,
            1 => 1.0,
            _ => 0.0,
        });
        let name = format!("{copies} copies with {link}");
        let (values, vectors) = a.eigh(Triangle::Lower);
        assert_orthonormal(&vectors, &name);
        assert_close(&product(&(&vectors * values), &vectors.t()), &a, order, &name);
        let (u, values, vh) = a.svd(false);
        assert_orthonormal(&u, &name);
        assert_orthonormal(&vh.t(), &name);
        assert_close(&product(&u, &(&vh * values.unsqueeze(-1))), &a, order, &name);
    }
}

#[test]
fn non_finite_elements_are_errors() {
    for non_finite in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let a = Tensor::from([[1.0, non_finite], [non_finite, 2.0]]);
        for error in [a.try_eigh(Triangle::Lower).unwrap_err(), a.try_svd(false).unwrap_err()] {
            assert!(error.sentence().contains("the input matrix contained non-finite values"), "{error}");
        }
    }
}

#[test]
fn the_signs_are_lapacks() {
    // The reflection for a column of A maps the column, from the diagonal on, to a diagonal element of R followed by zeros. This element has
    // the opposite sign of the column's diagonal element. If the column has only zeros below the diagonal, it does not change.
    let (q, r) = Tensor::from([[3.0f64, 1.0], [4.0, 2.0]]).qr(QrMode::Complete);
    for (got, expected) in [(q, [-0.6, -0.8, -0.8, 0.6]), (r, [-5.0, -2.2, 0.0, 0.4])] {
        assert!(got.to_vec().iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-15), "{got}");
    }
    let triangular = Tensor::from([[3.0f64, 1.0], [0.0, -2.0]]);
    assert_eq!(triangular.qr(QrMode::Complete), (Tensor::eye(2), triangular));
}

fn check_exponential<T: Float>() {
    // exp(t [[0, -1], [1, 0]]) is the rotation by t, and exp of a nilpotent matrix is a polynomial.
    for angle in [0.0, 1e-20, 1e-9, 1e-4, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0] {
        let angle = T::from_f64(angle);
        let rotation = Tensor::from([[T::ZERO, -angle], [angle, T::ZERO]]).matrix_exp();
        let (sin, cos) = angle.to_f64().sin_cos();
        // Each squaring in the algorithm can double the relative error, which is a few ε at first.
        let tolerance = 20.0 * T::EPSILON.to_f64() * (1.0 + angle.to_f64());
        for (x, expected) in rotation.to_vec().iter().zip([cos, -sin, sin, cos]) {
            assert!((x.to_f64() - expected).abs() <= tolerance, "{angle}: {x} {expected}");
        }
        // Judged by its norm alone, this matrix would need many squarings.
        let large = T::from_f64(1e6);
        let nilpotent = Tensor::from([[T::ZERO, large], [T::ZERO, T::ZERO]]);
        assert_eq!(nilpotent.matrix_exp(), Tensor::from([[T::ONE, large], [T::ZERO, T::ONE]]));
    }
    for x in [-80.0, -1.0, 1e-30, 0.3, 2.0, 80.0] {
        let x = T::from_f64(x);
        let got = Tensor::from([[x]]).matrix_exp().item();
        let tolerance = 20.0 * T::EPSILON.to_f64() * (1.0 + x.to_f64().abs());
        assert!((got.to_f64() / x.to_f64().exp() - 1.0).abs() <= tolerance, "{x}: {got}");
    }
    assert!(Tensor::from([[T::INFINITY]]).matrix_exp().item().is_nan());
    assert_eq!(Tensor::<T>::zeros([0, 0]).matrix_exp().shape(), &[0, 0]);
}

#[test]
fn exponentials_of_rotations_and_nilpotent_matrices() {
    check_exponential::<f32>();
    check_exponential::<f64>();
}

#[test]
fn the_exponential_of_a_sum_that_commutes() {
    let n = 20;
    let a = Tensor::from_vec(random(n * n, 3), [n, n]);
    let (once, twice) = (a.matrix_exp(), (a * 2.0).matrix_exp());
    assert_close(&product(&once, &once), &twice, 10 * n, "exp(2 A) = exp(A)²");
}

/// Returns a random matrix `[rows, columns]` of rank `rank`.
fn matrix_of_rank(rank: usize, rows: usize, columns: usize) -> Tensor<f64> {
    let factor = |rows, columns, seed| Tensor::from_vec(random(rows * columns, seed), [rows, columns]);
    product(&factor(rows, rank, 5), &factor(rank, columns, 6))
}

/// The bound up to which singular values count as zeros, relative to the largest singular value.
const CUTOFF: f64 = 1e-12;

/// Tests the four equations that define the pseudoinverse (Penrose, "A generalized inverse for matrices", 1955).
#[test]
fn the_pseudoinverse_satisfies_penroses_equations() {
    for [m, n] in [[1, 1], [3, 3], [5, 3], [3, 5], [20, 17], [4, 0], [0, 2]] {
        for rank in [m.min(n), 2, 1, 0] {
            let rank = rank.min(m).min(n);
            let a = matrix_of_rank(rank, m, n);
            let inverse = a.pinv(Tolerance::new().rtol(CUTOFF));
            assert_eq!(a.matrix_rank(Tolerance::new().rtol(CUTOFF)).item(), rank as i64);
            let (left, right) = (product(&a, &inverse), product(&inverse, &a));
            let name = format!("[{m}, {n}] of rank {rank}");
            // The errors grow with the condition numbers of these matrices, which are below 1000.
            assert_close(&product(&left, &a), &a, 1000, &name);
            assert_close(&product(&right, &inverse), &inverse, 1000, &name);
            assert_close(&left.t(), &left, 1000, &name);
            assert_close(&right.t(), &right, 1000, &name);
        }
    }
}

#[test]
fn least_squares_equal_the_pseudoinverse() {
    for [m, n, k] in [[5, 3, 2], [3, 3, 1], [3, 5, 2], [20, 17, 3], [4, 0, 2], [3, 2, 0]] {
        for rank in [m.min(n), 1] {
            let rank = rank.min(n);
            let a = matrix_of_rank(rank, m, n);
            let b = Tensor::from_vec(random(m * k, 9), [m, k]);
            let got = a.lstsq(&b, Some(CUTOFF));
            assert_eq!(got.rank.item(), rank as f64);
            let expected = product(&a.pinv(Tolerance::new().rtol(CUTOFF)), &b);
            assert_close(&expected, &got.solution, 1000, &format!("[{m}, {n}] of rank {rank}"));
        }
    }
}
