//! Checks results by their definitions: factors multiply to the matrix, solutions have small residuals, determinants equal known values.

use wengert_autograd::{Generator, Tape};
use wengert_linalg::prelude::*;
use wengert_linalg::{QrMode, Tolerance};
use wengert_tensor::prelude::*;

use crate::{diagonally_dominant, difference, positive_definite, random, triangular_system};

/// Sizes below and above the limits at which the algorithms change their blocks, except for the 256 rows of the Cholesky factor
/// ([`LARGE_SIZES`]).
const SIZES: [usize; 13] = [0, 1, 2, 3, 4, 7, 8, 16, 17, 33, 65, 100, 150];

/// Sizes above 256 rows, from which the Cholesky factor is computed by halves. A half of the last size has more than 256 rows too.
const LARGE_SIZES: [usize; 3] = [257, 300, 515];

/// Returns the bound of the error of a product or solution with `n` by `n` matrices whose elements are at most `scale`.
fn error_bound(n: usize, scale: f64) -> f64 {
    // In the worst case that is met in practice, the residual of an elimination grows like n² ε.
    (n * n + 8) as f64 * f64::EPSILON * scale
}

/// Returns the upper triangular U with A = Uᵀ U, computed from the upper triangle of A.
fn upper_factor(a: &Tensor<f64>) -> Tensor<f64> {
    a.transpose(-2, -1).cholesky().transpose(-2, -1)
}

#[test]
fn cholesky_factors_multiply_to_the_matrix() {
    for n in SIZES {
        for shape in [vec![n, n], vec![3, n, n], vec![20, n, n], vec![2, 0, n, n]] {
            if n > 40 && shape[0] == 20 {
                continue;
            }
            let a = positive_definite(&shape, 1);
            let l = a.cholesky();
            assert!(difference(&l.matmul(l.transpose(-2, -1)), &a) <= error_bound(n, n as f64 + 1.0), "{shape:?}");
            assert_eq!(l, l.tril(0));
            assert_eq!(upper_factor(&a), l.transpose(-2, -1).contiguous());
            // The operation reads only one triangle of a matrix.
            assert_eq!(a.tril(0).cholesky(), l);
            assert_eq!(upper_factor(&a.triu(0)), l.transpose(-2, -1));
        }
    }
}

#[test]
fn cholesky_factors_of_large_matrices_multiply_to_the_matrix() {
    for n in LARGE_SIZES {
        let a = positive_definite(&[n, n], 1);
        let l = a.cholesky();
        assert!(difference(&l.matmul(l.t()), &a) <= error_bound(n, n as f64 + 1.0), "{n}");
        assert_eq!(l, l.tril(0));
        assert_eq!(a.tril(0).cholesky(), l, "the operation reads only one triangle");
        // The first leading minor that is not positive is found in each half, at its ends and in its middle.
        for order in [1, n / 4, n / 2, n / 2 + 1, 3 * n / 4, n] {
            let failing = Tensor::from_fn([n, n], |index| f64::from(index == [order - 1; 2]) * -2.0 * n as f64);
            let sentence = (&a + failing).try_cholesky().unwrap_err().sentence();
            assert!(sentence.contains(&format!("(the leading minor of order {order} is")), "{n}: {sentence}");
        }
    }
}

#[test]
fn lu_factors_multiply_to_the_matrix() {
    for rows in SIZES {
        for columns in [rows, rows + 3, rows / 2, 20] {
            for shape in [vec![rows, columns], vec![2, 9, rows, columns]] {
                if rows > 40 && shape.len() > 2 {
                    continue;
                }
                let a = random(&shape, 2);
                let [p, l, u] = a.lu();
                assert!(difference(&p.matmul(&l).matmul(&u), &a) <= error_bound(rows.max(columns), 8.0), "{shape:?}");
                assert_eq!((&l, &u), (&l.tril(0), &u.triu(0)));
                assert!(l.numel() == 0 || l.abs().amax(..).item() == 1.0, "no factor is above 1 with row exchanges");
                assert!(difference(&p.matmul(p.transpose(-2, -1)), &identities(p.shape())) == 0.0);
            }
        }
    }
}

/// Returns a batch of identity matrices.
fn identities(shape: &[usize]) -> Tensor<f64> {
    Tensor::eye(shape[shape.len() - 1]).broadcast_to(shape)
}

#[test]
fn solutions_have_small_residuals() {
    for n in SIZES {
        for (a, b) in [
            (vec![n, n], vec![n]),
            (vec![n, n], vec![n, 3]),
            (vec![n, n], vec![n, 40]),
            (vec![3, n, n], vec![n, 2]),
            (vec![n, n], vec![2, 3, n, 2]),
            (vec![2, 1, n, n], vec![3, n, 1]),
            (vec![21, n, n], vec![21, n, 1]),
            (vec![2, n, n], vec![2, n]),
        ] {
            let (a, b) = (diagonally_dominant(&a, 3), random(&b, 4));
            let x = a.solve(&b);
            let batch_of_vectors =
                b.rank() == 1 || b.rank() + 1 == a.rank() && b.shape()[..] == a.shape()[..a.rank() - 1];
            let product = if batch_of_vectors { a.matmul(x.unsqueeze(-1)).squeeze(-1) } else { a.matmul(&x) };
            let b = b.broadcast_to(product.shape());
            assert!(difference(&product, &b) <= error_bound(n, 8.0), "{} {}", a.shape(), b.shape());
            if !batch_of_vectors {
                let [lu, pivots] = a.lu_factor();
                assert!(difference(&lu.lu_solve(&pivots, &b), &x) <= error_bound(n, 8.0));
            }
        }
    }
}

#[test]
fn triangular_solutions_have_small_residuals() {
    for n in SIZES {
        for (upper, left, unit) in [0, 1, 2, 3, 4, 5, 6, 7].map(|k| (k & 1 == 1, k & 2 == 2, k & 4 == 4)) {
            for width in [1, 2, 50] {
                let whole = diagonally_dominant(&[2, n, n], 5);
                let a = if upper { whole.triu(0) } else { whole.tril(0) };
                let a = if unit { &a / (n as f64 + 1.0) } else { a };
                let b = random(&if left { [2, n, width] } else { [2, width, n] }, 6);
                // Large numbers in the triangle that is not read must not change the result. If the diagonal counts as ones, its elements
                // must not change it either.
                let other = if upper { whole.tril(-1) } else { whole.triu(1) } * 1e9;
                let x = (&a + other).solve_triangular(&b, triangular_system(upper, left, unit));
                let eye = identities(a.shape());
                let a = if unit { if upper { a.triu(1) + eye } else { a.tril(-1) + eye } } else { a };
                let product = if left { a.matmul(&x) } else { x.matmul(&a) };
                assert!(difference(&product, &b) <= error_bound(n, 8.0), "{n} {upper} {left} {unit}");
            }
        }
    }
}

#[test]
fn cholesky_solutions_have_small_residuals() {
    for n in [0, 1, 5, 40] {
        let (a, b) = (positive_definite(&[3, 1, n, n], 7), random(&[2, n, 2], 8));
        for upper in [false, true] {
            let (factor, triangle) =
                if upper { (upper_factor(&a), Triangle::Upper) } else { (a.cholesky(), Triangle::Lower) };
            let x = b.cholesky_solve(factor, triangle);
            assert!(difference(&a.matmul(&x), &b.broadcast_to([3, 2, n, 2])) <= error_bound(n, 8.0));
        }
    }
}

#[test]
fn inverses_and_powers_equal_products() {
    for n in SIZES {
        for shape in [vec![n, n], vec![3, n, n], vec![19, n, n]] {
            if n > 40 && shape[0] == 19 {
                continue;
            }
            let a = diagonally_dominant(&shape, 9);
            let eye = identities(&shape);
            assert!(difference(&a.matmul(a.inv()), &eye) <= error_bound(n, 4.0), "{shape:?}");
            let small = &a / (n as f64 + 2.0);
            assert_eq!((small.matrix_power(0), small.matrix_power(1)), (eye.contiguous(), small.clone()));
            let cube = small.matmul(&small).matmul(&small);
            assert!(difference(&small.matrix_power(3), &cube) <= error_bound(n, 8.0));
            assert!(difference(&a.matrix_power(-2), &a.inv().matmul(a.inv())) <= error_bound(n, 8.0));
        }
    }
}

/// Returns the determinant by expansion along the first row.
fn expand_determinant(a: &[Vec<f64>]) -> f64 {
    let minor = |skipped: usize| -> Vec<Vec<f64>> {
        let without =
            |row: &Vec<f64>| (0..row.len()).filter(|&column| column != skipped).map(|column| row[column]).collect();
        a[1..].iter().map(without).collect()
    };
    let Some(first) = a.first() else { return 1.0 };
    let sign = |column: usize| if column.is_multiple_of(2) { 1.0 } else { -1.0 };
    first.iter().enumerate().map(|(column, &x)| sign(column) * x * expand_determinant(&minor(column))).sum()
}

#[test]
fn determinants_equal_their_expansion() {
    for n in 0..7 {
        let a = random(&[20, n, n], 10);
        let (values, [signs, logarithms]) = (a.det(), a.slogdet());
        for example in 0..20 {
            let rows: Vec<Vec<f64>> = (0..n).map(|row| a.select(0, example).select(0, row).to_vec()).collect();
            let expected = expand_determinant(&rows);
            assert!((values.get(&[example]).unwrap() - expected).abs() <= error_bound(n, 4.0 * 3f64.powi(n as i32)));
            let (sign, logarithm) = (signs.get(&[example]).unwrap(), logarithms.get(&[example]).unwrap());
            assert!((sign * logarithm.exp() - expected).abs() <= error_bound(n, 4.0 * 3f64.powi(n as i32)));
        }
    }
    assert_eq!(Tensor::<f64>::zeros([2, 0, 3, 3]).det().shape(), &[2, 0]);
    let [sign, logarithm] = Tensor::<f64>::ones([3, 3]).slogdet();
    assert_eq!((sign.item(), logarithm.item()), (0.0, f64::NEG_INFINITY));
    assert!(Tensor::full([2, 2], f64::NAN).det().item().is_nan());
}

/// Checks that values, derivatives and error messages equal PyTorch's.
#[test]
fn logdet_is_pytorchs() {
    let a = Tensor::from([[[2.0, 0.0], [0.0, 3.0]], [[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]]);
    let tape = Tape::new();
    let x = tape.var(&a);
    let values = x.logdet().value().to_vec();
    assert!((values[0] - 6f64.ln()).abs() < 1e-15 && values[1].is_nan() && values[2] == f64::NEG_INFINITY);
    let x = tape.var(&a.narrow(0, 0, 2));
    let slopes = x.logdet().sum(..).grad([x])[0].value();
    assert_eq!(slopes, Tensor::from([[[0.5, 0.0], [0.0, 1.0 / 3.0]], [[0.0, 0.0], [0.0, 0.0]]]));
    assert_eq!(Tensor::<f64>::zeros([3, 0, 0]).logdet().to_vec(), [0.0; 3]);
    let sentence = |shape: &[usize]| Tensor::<f64>::zeros(shape).try_logdet().unwrap_err().sentence();
    assert_eq!(sentence(&[2, 3]), "logdet: A must be batches of square matrices, but they are 2 by 3 matrices");
    assert_eq!(sentence(&[2]), "logdet: The input tensor A must have at least 2 dimensions.");
}

/// Checks the cofactors of matrices of rank n - 1, of matrices of lower rank, of nilpotent matrices, and of matrices with a NaN.
#[test]
fn gradients_of_determinants_are_cofactors() {
    let nilpotent = |n: usize| Tensor::from_fn([n, n], |index| f64::from(index[0] + 1 == index[1]));
    let column = Tensor::from([[1.0, -2.0, 0.5, 3.0]]);
    let mut cases =
        vec![nilpotent(2), nilpotent(9), Tensor::zeros([1, 1]), Tensor::zeros([3, 3]), Tensor::ones([2, 2])];
    cases.push(column.t().matmul(&column));
    cases.push(Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]]));
    cases.push(Tensor::from([[0.0, 2.0, 3.0], [0.0, 5.0, 6.0], [0.0, 7.0, 1.0]]));
    cases.push(random(&[5, 5], 11));
    for (n, element) in [(2, 0.0), (2, 1.0), (3, 0.0), (3, 1.0), (20, 0.0)] {
        for place in [0, 1, n - 1, n, n * n / 2, n * n - 1] {
            let a = Tensor::from_fn([n, n], |index| if n * index[0] + index[1] == place { f64::NAN } else { element });
            let tape = wengert_autograd::Tape::<f64>::new();
            let x = tape.var(&a);
            let gradient = x.det().grad([x])[0].value();
            assert!(x.det().item().is_nan() && gradient.iter().all(f64::is_nan), "{a}: {gradient}");
        }
    }
    for a in cases {
        let n = a.shape()[0];
        let tape = wengert_autograd::Tape::<f64>::new();
        let x = tape.var(&a);
        let gradient = x.det().grad([x])[0].value();
        let cofactor = |index: &[usize]| {
            let kept = |skipped: usize| (0..n).filter(move |&other| other != skipped);
            let rows: Vec<Vec<f64>> = kept(index[0])
                .map(|row| kept(index[1]).map(|column| a.get(&[row, column]).unwrap()).collect())
                .collect();
            expand_determinant(&rows) * if (index[0] + index[1]).is_multiple_of(2) { 1.0 } else { -1.0 }
        };
        let expected = Tensor::from_fn([n, n], cofactor);
        assert!(difference(&gradient, &expected) <= error_bound(n, 40.0), "{a}: {gradient} {expected}");
    }
}

/// Checks that a matrix has the same bits in a batch and alone. Different functions compute small matrices of a batch and single matrices.
#[test]
fn a_matrix_has_the_same_bits_in_a_batch_and_alone() {
    for n in [1, 2, 3, 5, 8, 15, 16, 17] {
        for count in [2, 4, 16, 37] {
            let (a, b, column) = (random(&[count, n, n], 12), random(&[count, n, 3], 13), random(&[count, n, 1], 14));
            let definite = positive_definite(&[count, n, n], 15);
            let (l, inverse, solutions, vectors) = (definite.cholesky(), a.inv(), a.solve(&b), a.solve(&column));
            let ([lu, pivots], triangular) = (a.lu_factor(), a.solve_triangular(&b, Triangle::Upper));
            for k in 0..count {
                let one = |x: &Tensor<f64>| x.select(0, k);
                let a = one(&a);
                assert_eq!(one(&l), one(&definite).cholesky(), "{n}");
                assert_eq!(one(&inverse), a.inv(), "{n}");
                assert_eq!(one(&solutions), a.solve(one(&b)), "{n}");
                assert_eq!(one(&vectors), a.solve(one(&column)), "{n}");
                assert_eq!(one(&triangular), a.solve_triangular(one(&b), Triangle::Upper), "{n}");
                assert_eq!([one(&lu), one(&pivots)], a.lu_factor(), "{n}");
            }
        }
    }
}

/// Asserts that two tensors have equal elements, where NaN equals NaN.
#[track_caller]
fn assert_same(x: &Tensor<f64>, y: &Tensor<f64>, a: &Tensor<f64>) {
    let equal_or_nan = |(x, y): (f64, f64)| x == y || x.is_nan() && y.is_nan();
    assert!(x.shape() == y.shape() && x.iter().zip(y.iter()).all(equal_or_nan), "{a}: {x}, not {y}");
}

/// Checks that a matrix with zeros, NaN and infinities has the same results in a batch and alone.
#[test]
fn matrices_with_zeros_nan_and_infinity_have_the_same_results_in_a_batch_and_alone() {
    const ELEMENTS: [f64; 8] = [0.0, -0.0, 0.0, 1.0, -1.0, 2.0, f64::NAN, f64::INFINITY];
    let generator = &mut Generator::new(16);
    for n in [1, 2, 3, 5, 16, 17] {
        // About three quarters of the matrices have no NaN and no infinity.
        let all = Tensor::from_fn([400, n, n], |_| {
            let element_count = if generator.uniform() * ((n * n) as f64) < 1.0 { 8.0 } else { 6.0 };
            ELEMENTS[(generator.uniform() * element_count) as usize]
        });
        for k in 0..100 {
            let batch = all.narrow(0, 4 * k, 4);
            let ([signs, logarithms], [p, l, u]) = (batch.slogdet(), batch.lu());
            let matrices: Vec<Tensor<f64>> = (0..4).map(|k| batch.select(0, k)).collect();
            for (k, a) in matrices.iter().enumerate() {
                let ([sign, logarithm], factors) = (a.slogdet(), a.lu());
                let batched = [&signs, &logarithms, &p, &l, &u];
                let alone = [&sign, &logarithm].into_iter().chain(&factors);
                for (batched, alone) in batched.into_iter().zip(alone) {
                    assert_same(&batched.select(0, k), alone, a);
                }
                assert_same(&batch.det().select(0, k), &a.det(), a);
            }
            // A batch of copies of a matrix gives an error if and only if the single matrix does.
            let equal = stack(&vec![matrices[0].clone(); 4], 0);
            let one = &matrices[0];
            let pairs = [
                (equal.try_inv(), one.try_inv()),
                (equal.try_cholesky(), one.try_cholesky()),
                (equal.try_solve(&equal), one.try_solve(one)),
                (equal.try_lu_factor().map(|[lu, _]| lu), one.try_lu_factor().map(|[lu, _]| lu)),
                (equal.try_solve_triangular(&equal, Triangle::Upper), one.try_solve_triangular(one, Triangle::Upper)),
            ];
            for (batched, alone) in pairs {
                match (batched, alone) {
                    (Ok(batched), Ok(alone)) => assert_same(&batched.select(0, 3), &alone, one),
                    (batched, alone) => assert_eq!(batched.is_err(), alone.is_err(), "{one}"),
                }
            }
        }
    }
}

/// Checks a batch in which one matrix fails, and then a batch in which two matrices fail. The error names the first matrix that fails.
#[test]
fn the_first_failure_of_a_batch_is_reported() {
    for (n, count) in [(2, 3), (2, 40), (20, 5)] {
        let mut matrices = vec![Tensor::<f64>::eye(n); count];
        for failing in [count - 1, count / 2] {
            matrices[failing] = Tensor::zeros([n, n]);
            let a = stack(&matrices, 0);
            for error in [a.try_cholesky().map(drop), a.try_inv().map(drop), a.try_solve(&a).map(drop)] {
                let sentence = error.unwrap_err().sentence();
                assert!(sentence.contains(&format!("(Batch element {failing}): ")), "{sentence}");
            }
        }
    }
}

/// Returns the largest magnitude of A V - V diag(λ), for complex pairs λ and V.
fn error_of_pairs(a: &Tensor<f64>, values: &Tensor<f64>, vectors: &Tensor<f64>) -> f64 {
    let [re, im] = [0, 1].map(|part| vectors.select(-1, part));
    let [x, y] = [0, 1].map(|part| values.select(-1, part).unsqueeze(-2));
    let (real, imaginary) = (a.matmul(&re) - (&re * &x - &im * &y), a.matmul(&im) - (&re * &y + &im * &x));
    real.abs().amax(..).item().max(imaginary.abs().amax(..).item())
}

#[test]
fn eigenpairs_of_general_matrices_fulfil_their_equation() {
    let generator = &mut Generator::new(7);
    for n in [1, 2, 3, 4, 5, 8, 17, 40, 100] {
        let random = Tensor::<f64>::randn([n, n], generator);
        // "shift" has no basis of eigenvectors. For "cyclic", the usual shifts of the QR iteration may repeat forever, so the iteration
        // needs its exceptional shifts.
        let matrices = [
            ("random", random.clone()),
            ("symmetric", &random + random.t()),
            ("skew", &random - random.t()),
            ("upper", random.triu(0)),
            ("lower", random.tril(0)),
            ("zero", Tensor::zeros([n, n])),
            ("ones", Tensor::ones([n, n])),
            ("large", &random * 1e250),
            ("small", &random * 1e-250),
            ("uneven", &random * Tensor::linspace(-20.0, 20.0, n).exp()),
            ("cyclic", Tensor::eye(n).roll(1, 0)),
            ("shift", Tensor::eye(n).roll(1, 0).triu(1) + Tensor::eye(n)),
        ];
        for (name, a) in matrices {
            let (values, vectors) = a.eig();
            let size = a.abs().amax(..).item() * n as f64;
            let error = error_of_pairs(&a, &values, &vectors);
            assert!(error <= 1e-14 * size, "{name} {n}: {error} of {size}");
            let lengths = vectors.square().sum([0, 2]);
            assert!((lengths - 1.0).abs().amax(..).item() < 1e-13, "{name} {n}");
            let [re, im] = [0, 1].map(|part| values.select(-1, part));
            assert!(
                (re.sum(..).item() - a.trace().item()).abs() <= 1e-13 * size,
                "{name} {n}: the sum is not the trace"
            );
            let mut imaginary = im.to_vec().into_iter();
            while let Some(x) = imaginary.next() {
                assert!(x == 0.0 || (x > 0.0 && imaginary.next() == Some(-x)), "{name} {n}: {im}");
            }
            assert!(name != "symmetric" || im.abs().amax(..).item() < 1e-6 * size, "{n}: {im}");
            assert_eq!(a.eigvals(), values, "{name} {n}"); // the same steps, without vectors
        }
    }
    // The companion matrix of (x - 1)(x - 2)(x² + 1).
    let companion =
        Tensor::from([[3.0, -3.0, 3.0, -2.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]);
    let mut roots: Vec<[f64; 2]> = companion.eigvals().to_vec().chunks(2).map(|z| [z[0], z[1]]).collect();
    roots.sort_by(|x, y| x.partial_cmp(y).unwrap());
    for (root, expected) in roots.iter().zip([[0.0, -1.0], [0.0, 1.0], [1.0, 0.0], [2.0, 0.0]]) {
        assert!((0..2).all(|part| (root[part] - expected[part]).abs() < 1e-13), "{roots:?}");
    }
    let single = Tensor::<f32>::from([[0.0, -4.0], [1.0, 0.0]]);
    assert_eq!(single.eigvals(), Tensor::from([[0.0, 2.0], [0.0, -2.0]]));
}

#[test]
fn a_tolerance_counts_small_singular_values_as_zeros() {
    let matrix = Tensor::from([3.0, 0.1, 1e-20]).diag(0);
    let new = Tolerance::new;
    // An absolute bound above 0 replaces the default, and the larger of two bounds counts.
    for (tolerance, rank) in [
        (new(), 2),
        (new().atol(0.0), 2),
        (new().atol(1e-25), 3),
        (new().atol(0.05), 2),
        (new().atol(0.5), 1),
        (new().atol(1e-25).rtol(0.1), 1),
        (new().atol(5.0).rtol(0.0), 0),
    ] {
        for tolerance in [tolerance, tolerance.hermitian()] {
            assert_eq!(matrix.matrix_rank(tolerance).item(), rank, "{tolerance:?}");
        }
        let inverse = matrix.pinv(tolerance).diagonal(0, 0, 1);
        let expected =
            [3.0f64, 0.1, 1e-20].iter().enumerate().map(|(k, x)| if k < rank as usize { 1.0 / x } else { 0.0 });
        assert!(inverse.iter().zip(expected).all(|(x, y)| (x - y).abs() <= 1e-14 * y), "{tolerance:?} {inverse}");
    }
}

#[test]
fn a_complete_decomposition_of_a_tall_matrix_has_no_derivative() {
    let tape = Tape::new();
    let a = tape.var(&random(&[3, 2], 1));
    let sum = a.qr(QrMode::Complete).0.sum(..);
    let error = sum.try_grad([a]).map(drop).unwrap_err().to_string();
    // The message starts like PyTorch's message.
    let sentence = "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.";
    assert!(error.starts_with(sentence), "{error}");
}

/// As in PyTorch, the gradient of the power 0 is zeros, and not missing.
#[test]
fn the_power_zero_has_a_gradient_of_zeros() {
    let tape = Tape::new();
    let a = tape.var(&random(&[2, 3, 3], 1));
    assert_eq!(a.matrix_power(0).sum(..).grad([a])[0].value(), Tensor::zeros([2, 3, 3]));
}
