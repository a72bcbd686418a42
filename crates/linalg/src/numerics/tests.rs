//! Decompositions of many matrices, compared with their definitions: the product is the matrix, and the vectors are orthonormal.

use wengert_tensor::Float;

use super::arithmetic::{abs, maximum};
use super::failure::Failure;
use super::pseudoinverse::{Cutoff, least_squares, pseudoinverse};
use super::singular::Vectors;
use super::{eigen, exponential, qr, singular};

/// A matrix for the tests, whose elements are stored row by row.
struct Case<T> {
    name: String,
    rows: usize,
    columns: usize,
    data: Vec<T>,
}

/// Returns numbers in [-1, 1) from a linear congruential generator.
fn random(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
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
        data: (0..rows * columns).map(|k| T::from_f64(element(k))).collect(),
    };
    // The products that check large matrices take long. So there are fewer kinds of large matrices.
    let (large, few) = (rows * columns > 4000, ["random", "identity", "rank 1", "graded", "large"]);
    kinds.iter().filter(|kind| !large || few.contains(&kind.0)).map(case).collect()
}

/// Returns the product of `[m, k]` and `[k, n]`, computed in f64.
fn product<T: Float>(x: &[T], y: &[T], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    let y: Vec<f64> = y.iter().map(|y| y.to_f64()).collect();
    for i in 0..m {
        let line = &mut out[i * n..(i + 1) * n];
        for l in 0..k {
            let factor = x[i * k + l].to_f64();
            line.iter_mut().zip(&y[l * n..(l + 1) * n]).for_each(|(out, y)| *out += factor * y);
        }
    }
    out
}

/// Returns the transposed matrix.
fn transposed<T: Float>(x: &[T], rows: usize, columns: usize) -> Vec<T> {
    (0..rows * columns).map(|k| x[k % rows * columns + k / rows]).collect()
}

/// Asserts that the columns of a matrix `[rows, columns]` are orthonormal. The error grows with the number of reflections and rotations
/// that made a column, and is of the order of the machine precision for each.
#[track_caller]
fn assert_orthonormal<T: Float>(x: &[T], rows: usize, columns: usize, name: &str) {
    let gram = product(&transposed(x, rows, columns), x, [columns, rows, columns]);
    let tolerance = 10.0 * (rows.max(columns) as f64) * T::EPSILON.to_f64();
    for (k, &entry) in gram.iter().enumerate() {
        let expected = f64::from(u8::from(k / columns == k % columns));
        assert!((entry - expected).abs() <= tolerance, "{name}: {entry} at {k}, not {expected}");
    }
}

/// Asserts that two matrices agree up to 10 n ε times the largest element. Here n is the number of sums and reflections that an element
/// results from.
#[track_caller]
fn assert_close<T: Float>(x: &[f64], y: &[T], n: usize, name: &str) {
    let largest = y.iter().fold(T::ZERO, |all, &y| maximum(all, abs(y))).to_f64();
    let tolerance = 10.0 * n as f64 * T::EPSILON.to_f64() * largest;
    for (k, (x, y)) in x.iter().zip(y).enumerate() {
        assert!((x - y.to_f64()).abs() <= tolerance, "{name}: {x} and {y} at {k}");
    }
}

/// Asserts that values which were computed without vectors agree with values that were computed with vectors. For large matrices, these
/// computations are different algorithms.
#[track_caller]
fn assert_values<T: Float>(alone: &[T], values: &[T], n: usize, name: &str) {
    let alone: Vec<f64> = alone.iter().map(|x| x.to_f64()).collect();
    assert_close(&alone, values, n, name);
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
    for Case { name, rows, columns, data } in SHAPES.iter().flat_map(|&[rows, columns]| cases::<T>(rows, columns)) {
        for width in [rows.min(columns), rows] {
            let mut a = data.clone();
            let reflectors = qr::qr_factor(&mut a, rows, columns).unwrap();
            let q = reflectors.product(width).unwrap();
            let mut r = vec![T::ONE; width * columns];
            qr::write_triangle(&a, columns, width, &mut r);
            assert_orthonormal(&q, rows, width, &name);
            assert_close(&product(&q, &r, [rows, width, columns]), &data, rows, &name);
            let below = (0..r.len()).filter(|k| k / columns > k % columns);
            assert!(below.map(|k| r[k]).all(|x| x == T::ZERO), "{name}");
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
        for Case { name, mut data, .. } in cases::<T>(order, order) {
            for k in 0..data.len() {
                data[k] = data[k % order * order + k / order];
            }
            let (mut values, mut vectors) = (vec![T::ZERO; order], vec![T::ZERO; order * order]);
            eigen::eigh(&data, false, &mut values, Some(&mut vectors)).unwrap();
            assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "{name}");
            assert_orthonormal(&vectors, order, order, &name);
            let scaled: Vec<T> = (0..order * order).map(|k| vectors[k] * values[k % order.max(1)]).collect();
            let back = product(&scaled, &transposed(&vectors, order, order), [order, order, order]);
            assert_close(&back, &data, order, &name);
            let (mut alone, mut upper) = (vec![T::ZERO; order], vec![T::ZERO; order]);
            eigen::eigh(&data, false, &mut alone, None).unwrap();
            assert_values(&alone, &values, order, &name);
            // The lower triangle must not be read.
            let mut half = data.clone();
            (0..half.len()).filter(|k| k / order > k % order).for_each(|k| half[k] = T::NAN);
            eigen::eigh(&half, true, &mut upper, None).unwrap();
            assert_eq!(upper, alone, "{name}");
        }
    }
}

#[test]
fn eigenvectors_of_every_matrix() {
    check_eigen::<f32>();
    check_eigen::<f64>();
}

fn check_singular<T: Float>() {
    for Case { name, rows, columns, data } in SHAPES.iter().flat_map(|&[rows, columns]| cases::<T>(rows, columns)) {
        for full in [false, true] {
            let count = rows.min(columns);
            let [left, right] = if full { [rows, columns] } else { [count; 2] };
            let (mut u, mut vh) = (vec![T::ZERO; rows * left], vec![T::ZERO; right * columns]);
            let mut values = vec![T::ZERO; count];
            let vectors = Vectors { u: &mut u, vh: &mut vh, full };
            singular::svd(&data, [rows, columns], &mut values, Some(vectors)).unwrap();
            assert!(values.windows(2).all(|pair| pair[0] >= pair[1]), "{name}");
            assert!(values.iter().all(|&value| value >= T::ZERO), "{name}");
            assert_orthonormal(&u, rows, left, &name);
            assert_orthonormal(&transposed(&vh, right, columns), columns, right, &name);
            let scaled: Vec<T> = (0..count * columns).map(|k| vh[k] * values[k / columns]).collect();
            let narrow: Vec<T> = (0..rows * count).map(|k| u[k / count * left + k % count]).collect();
            let back = product(&narrow, &scaled, [rows, count, columns]);
            assert_close(&back, &data, rows.max(columns), &name);
            let mut alone = vec![T::ZERO; count];
            singular::svd(&data, [rows, columns], &mut alone, None).unwrap();
            assert_values(&alone, &values, rows.max(columns), &name);
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
    let tiny = 1e-20;
    let a = [1.0, 1.0, 0.0, 0.0, tiny, 1.0, 0.0, 0.0, tiny];
    let mut values = [0.0f64; 3];
    singular::svd(&a, [3, 3], &mut values, None).unwrap();
    let determinant = tiny * tiny;
    let measured = values[0] * values[1] * values[2];
    assert!((measured / determinant - 1.0).abs() < 1e-13, "{measured}");
}

#[test]
fn eigenvalues_of_the_second_difference() {
    // The eigenvalues have the closed form 2 - 2 cos(k π / (n + 1)) for k = 1 … n.
    for order in [20, 60, 300] {
        let element = |k: usize| match (k / order).abs_diff(k % order) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        };
        let a: Vec<f64> = (0..order * order).map(element).collect();
        let mut vectors = vec![0.0; order * order];
        for vectors in [None, Some(&mut vectors[..])] {
            let mut values = vec![0.0; order];
            eigen::eigh(&a, false, &mut values, vectors).unwrap();
            for (k, value) in values.iter().enumerate() {
                let expected = 2.0 - 2.0 * ((k + 1) as f64 * std::f64::consts::PI / (order + 1) as f64).cos();
                // By Weyl's theorem, an eigenvalue moves by at most the norm of the matrix's error. This is n ε times the matrix's norm, 4.
                assert!((value - expected).abs() < 4.0 * order as f64 * f64::EPSILON, "{value} {expected}");
            }
        }
        assert_orthonormal(&vectors, order, order, "second difference");
    }
}

/// Tests matrices with clusters of eigenvalues. Wilkinson's matrices have pairs of eigenvalues that are nearly equal. A matrix
/// whose diagonal blocks are Wilkinson's matrices, with an element `link` from 0 to 1 between the blocks, has many nearly equal eigenvalues.
/// If `link` is small, most of the vectors are found without the secular equation.
#[test]
fn eigenvectors_of_clusters() {
    for (copies, link) in [(7, 1e-14), (7, 1e-8), (5, 1.0), (9, 0.0)] {
        let order = 21 * copies;
        let element = |k: usize| match (k / order).abs_diff(k % order) {
            0 => (k % order % 21).abs_diff(10) as f64,
            1 if (k / order).max(k % order).is_multiple_of(21) => link,
            1 => 1.0,
            _ => 0.0,
        };
        let a: Vec<f64> = (0..order * order).map(element).collect();
        let (mut values, mut vectors) = (vec![0.0; order], vec![0.0; order * order]);
        eigen::eigh(&a, false, &mut values, Some(&mut vectors)).unwrap();
        let name = format!("{copies} copies with {link}");
        assert_orthonormal(&vectors, order, order, &name);
        let scaled: Vec<f64> = (0..order * order).map(|k| vectors[k] * values[k % order]).collect();
        assert_close(&product(&scaled, &transposed(&vectors, order, order), [order; 3]), &a, order, &name);
        let (mut u, mut vh) = (vec![0.0; order * order], vec![0.0; order * order]);
        let out = Vectors { u: &mut u, vh: &mut vh, full: false };
        singular::svd(&a, [order; 2], &mut values, Some(out)).unwrap();
        assert_orthonormal(&u, order, order, &name);
        assert_orthonormal(&transposed(&vh, order, order), order, order, &name);
        let scaled: Vec<f64> = (0..order * order).map(|k| u[k] * values[k % order]).collect();
        assert_close(&product(&scaled, &vh, [order; 3]), &a, order, &name);
    }
}

#[test]
fn non_finite_elements_are_errors() {
    for non_finite in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let a = [1.0, non_finite, non_finite, 2.0];
        assert_eq!(eigen::eigh(&a, false, &mut [0.0; 2], None), Err(Failure::NonFinite));
        assert_eq!(singular::svd(&a, [2, 2], &mut [0.0; 2], None), Err(Failure::NonFinite));
    }
}

#[test]
fn the_signs_are_lapacks() {
    // The reflection for a column of A maps the column, from the diagonal on, to a diagonal element of R followed by zeros. This element has
    // the opposite sign of the column's diagonal element. If the column has only zeros below the diagonal, it does not change.
    let mut a = vec![3.0f64, 1.0, 4.0, 2.0];
    let q = qr::qr_factor(&mut a, 2, 2).unwrap().product(2).unwrap();
    let expected = [-0.6, -0.8, -0.8, 0.6];
    assert!(q.iter().zip(expected).all(|(q, expected)| (q - expected).abs() < 1e-15), "{q:?}");
    assert!((a[0] + 5.0).abs() < 1e-15 && (a[1] + 2.2).abs() < 1e-15 && (a[3] - 0.4).abs() < 1e-15, "{a:?}");
    let mut triangular = vec![3.0f64, 1.0, 0.0, -2.0];
    let q = qr::qr_factor(&mut triangular, 2, 2).unwrap().product(2).unwrap();
    assert_eq!((q, triangular), (vec![1.0, 0.0, 0.0, 1.0], vec![3.0, 1.0, 0.0, -2.0]));
}

fn check_exponential<T: Float>() {
    // exp(t [[0, -1], [1, 0]]) is the rotation by t, and exp of a nilpotent matrix is a polynomial.
    for angle in [0.0, 1e-20, 1e-9, 1e-4, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0] {
        let angle = T::from_f64(angle);
        let mut out = vec![T::ZERO; 4];
        exponential::exponential(&[T::ZERO, -angle, angle, T::ZERO], 2, &mut out).unwrap();
        let (sin, cos) = angle.to_f64().sin_cos();
        // Each squaring in the algorithm can double the relative error, which is a few ε at first.
        let tolerance = 20.0 * T::EPSILON.to_f64() * (1.0 + angle.to_f64());
        for (x, expected) in out.iter().zip([cos, -sin, sin, cos]) {
            assert!((x.to_f64() - expected).abs() <= tolerance, "{angle}: {x} {expected}");
        }
        // Judged by its norm alone, this matrix would need many squarings.
        let large = T::from_f64(1e6);
        exponential::exponential(&[T::ZERO, large, T::ZERO, T::ZERO], 2, &mut out).unwrap();
        assert_eq!(out, [T::ONE, large, T::ZERO, T::ONE]);
    }
    let mut out = vec![T::ZERO];
    for x in [-80.0, -1.0, 1e-30, 0.3, 2.0, 80.0] {
        let x = T::from_f64(x);
        exponential::exponential(&[x], 1, &mut out).unwrap();
        let tolerance = 20.0 * T::EPSILON.to_f64() * (1.0 + x.to_f64().abs());
        assert!((out[0].to_f64() / x.to_f64().exp() - 1.0).abs() <= tolerance, "{x}: {}", out[0]);
    }
    exponential::exponential(&[T::INFINITY], 1, &mut out).unwrap();
    assert!(out[0].is_nan());
    exponential::exponential::<T>(&[], 0, &mut []).unwrap();
}

#[test]
fn exponentials_of_rotations_and_nilpotent_matrices() {
    check_exponential::<f32>();
    check_exponential::<f64>();
}

#[test]
fn the_exponential_of_a_sum_that_commutes() {
    let n = 20;
    let a = random(n * n, 3);
    let double: Vec<f64> = a.iter().map(|x| 2.0 * x).collect();
    let (mut once, mut twice) = (vec![0.0; n * n], vec![0.0; n * n]);
    exponential::exponential(&a, n, &mut once).unwrap();
    exponential::exponential(&double, n, &mut twice).unwrap();
    assert_close(&product(&once, &once, [n, n, n]), &twice, 10 * n, "exp(2 A) = exp(A)²");
}

const CUTOFF: Cutoff = Cutoff { absolute: 0.0, relative: 1e-12 };

/// Tests the four equations that define the pseudoinverse (Penrose, "A generalized inverse for matrices", 1955).
#[test]
fn the_pseudoinverse_satisfies_penroses_equations() {
    for [m, n] in [[1, 1], [3, 3], [5, 3], [3, 5], [20, 17], [4, 0], [0, 2]] {
        for rank in [m.min(n), 2, 1, 0] {
            let rank = rank.min(m).min(n);
            let a = product(&random(m * rank, 5), &random(rank * n, 6), [m, rank, n]);
            let mut inverse = vec![0.0; n * m];
            assert_eq!(pseudoinverse(&a, [m, n], CUTOFF, &mut inverse), Ok(rank));
            let (left, right) = (product(&a, &inverse, [m, n, m]), product(&inverse, &a, [n, m, n]));
            let name = format!("[{m}, {n}] of rank {rank}");
            // The errors grow with the condition numbers of these matrices, which are below 1000.
            assert_close(&product(&left, &a, [m, m, n]), &a, 1000, &name);
            assert_close(&product(&right, &inverse, [n, n, m]), &inverse, 1000, &name);
            assert_close(&transposed(&left, m, m), &left, 1000, &name);
            assert_close(&transposed(&right, n, n), &right, 1000, &name);
        }
    }
}

#[test]
fn least_squares_equal_the_pseudoinverse() {
    for [m, n, k] in [[5, 3, 2], [3, 3, 1], [3, 5, 2], [20, 17, 3], [4, 0, 2], [3, 2, 0]] {
        for rank in [m.min(n), 1] {
            let rank = rank.min(n);
            let a = product(&random(m * rank, 7), &random(rank * n, 8), [m, rank, n]);
            let b = random(m * k, 9);
            let (mut inverse, mut x) = (vec![0.0; n * m], vec![0.0; n * k]);
            pseudoinverse(&a, [m, n], CUTOFF, &mut inverse).unwrap();
            assert_eq!(least_squares(&a, &b, [m, n, k], CUTOFF, &mut x), Ok(rank));
            assert_close(&product(&inverse, &b, [n, m, k]), &x, 1000, &format!("[{m}, {n}] of rank {rank}"));
        }
    }
}
