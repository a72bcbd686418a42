//! Times linear algebra with nalgebra or faer. Prints the same columns as `benches/linalg.rs`: operation, element type, size of the
//! matrices, number of matrices, library, microseconds.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/Cargo.toml -- nalgebra|faer FILTER
//! ```
//!
//! These libraries have no batches, so a batch is a loop over matrices. `RAYON_NUM_THREADS` sets the number of faer's threads.

use std::hint::black_box;
use std::time::Instant;

use faer::linalg::solvers::DenseSolveCore as _;
use faer::prelude::*;
use faer::{Mat, Side};
use nalgebra::{DMatrix, RealField};

/// Pairs of the number of rows and columns of each matrix, and the number of matrices in a batch.
const SIZES: [(usize, usize); 7] = [(4, 1), (8, 1), (32, 1), (128, 1), (512, 1), (4, 4096), (8, 4096)];

/// The operations that the libraries are compared on.
const KINDS: [&str; 8] = ["cholesky", "solve", "inv", "det", "triangular", "qr", "eigh", "svd"];

fn main() {
    let library = std::env::args().nth(1).unwrap_or_default();
    let wanted = std::env::args().nth(2).unwrap_or_default();
    for (n, batch) in SIZES {
        for kind in KINDS.into_iter().filter(|kind| kind.contains(&*wanted)) {
            for (name, time) in match &*library {
                "nalgebra" => {
                    [("f64", nalgebra_call::<f64>(kind, n, batch)), ("f32", nalgebra_call::<f32>(kind, n, batch))]
                }
                "faer" => [("f64", faer_call::<f64>(kind, n, batch)), ("f32", faer_call::<f32>(kind, n, batch))],
                _ => panic!("the first argument is nalgebra or faer, not {library}"),
            } {
                println!("{kind} {name} {n} {batch} {library} {time:.3}");
            }
        }
    }
}

/// Returns numbers between -1 and 1 from a linear congruential generator.
fn random(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Returns the time, in microseconds, in which nalgebra computes the operation `kind` for all matrices of a batch.
fn nalgebra_call<T: RealField + Copy>(kind: &str, n: usize, batch: usize) -> f64 {
    let numbers = |columns: usize, seed: usize| {
        let numbers = random(n * columns, seed as u64).into_iter().map(nalgebra::convert::<f64, T>);
        DMatrix::from_iterator(n, columns, numbers)
    };
    let eye = DMatrix::<T>::identity(n, n) * nalgebra::convert::<f64, T>(n as f64);
    let matrices = |make: &dyn Fn(usize) -> DMatrix<T>| (0..batch).map(make).collect::<Vec<_>>();
    let x = matrices(&|k| numbers(n, k));
    let b = matrices(&|k| numbers(1, k));
    let definite = matrices(&|k| &x[k] * x[k].transpose() + &eye);
    let a = matrices(&|k| &x[k] + &eye);
    let l = matrices(&|k| definite[k].clone().cholesky().expect("the matrix is definite").unpack());
    match kind {
        "cholesky" => {
            measure(|| matrices(&|k| definite[k].clone().cholesky().expect("the matrix is definite").unpack()))
        }
        "solve" => measure(|| matrices(&|k| a[k].clone().lu().solve(&b[k]).expect("the matrix is regular"))),
        "inv" => measure(|| matrices(&|k| a[k].clone().try_inverse().expect("the matrix is regular"))),
        "det" => measure(|| (0..batch).map(|k| a[k].determinant()).collect::<Vec<_>>()),
        "triangular" => measure(|| matrices(&|k| l[k].solve_lower_triangular(&b[k]).expect("the matrix is regular"))),
        "qr" => measure(|| (0..batch).map(|k| x[k].clone().qr().unpack()).collect::<Vec<_>>()),
        "eigh" => measure(|| (0..batch).map(|k| definite[k].clone().symmetric_eigen()).collect::<Vec<_>>()),
        _ => measure(|| (0..batch).map(|k| x[k].clone().svd(true, true)).collect::<Vec<_>>()),
    }
}

/// Returns the time, in microseconds, in which faer computes the operation `kind` for all matrices of a batch.
fn faer_call<T: faer::traits::RealField>(kind: &str, n: usize, batch: usize) -> f64 {
    let number = |x: f64| faer::traits::math_utils::from_f64::<T>(x);
    let numbers = |columns: usize, seed: usize| {
        let numbers = random(n * columns, seed as u64);
        Mat::from_fn(n, columns, |row, column| number(numbers[row * columns + column]))
    };
    let eye = Mat::from_fn(n, n, |row, column| number(if row == column { n as f64 } else { 0.0 }));
    let matrices = |make: &dyn Fn(usize) -> Mat<T>| (0..batch).map(make).collect::<Vec<_>>();
    let x = matrices(&|k| numbers(n, k));
    let b = matrices(&|k| numbers(1, k));
    let definite = matrices(&|k| &x[k] * x[k].transpose() + &eye);
    let a = matrices(&|k| &x[k] + &eye);
    let l = matrices(&|k| definite[k].llt(Side::Lower).expect("the matrix is definite").L().to_owned());
    match kind {
        "cholesky" => {
            measure(|| matrices(&|k| definite[k].llt(Side::Lower).expect("the matrix is definite").L().to_owned()))
        }
        "solve" => measure(|| matrices(&|k| a[k].partial_piv_lu().solve(&b[k]))),
        "inv" => measure(|| matrices(&|k| a[k].partial_piv_lu().inverse())),
        "det" => measure(|| (0..batch).map(|k| a[k].determinant()).collect::<Vec<_>>()),
        "triangular" => measure(|| {
            matrices(&|k| {
                let mut x = b[k].clone();
                l[k].solve_lower_triangular_in_place(&mut x);
                x
            })
        }),
        "qr" => measure(|| matrices(&|k| x[k].qr().compute_thin_Q())),
        "eigh" => measure(|| (0..batch).map(|k| definite[k].self_adjoint_eigen(Side::Lower).ok()).collect::<Vec<_>>()),
        _ => measure(|| (0..batch).map(|k| x[k].thin_svd().ok()).collect::<Vec<_>>()),
    }
}

/// Returns the shortest time of a call in microseconds.
fn measure<R>(call: impl Fn() -> R) -> f64 {
    black_box(call());
    let (mut best, mut rounds, mut count, begin) = (f64::INFINITY, 1u32, 0, Instant::now());
    while begin.elapsed().as_secs_f64() < 0.3 || count < 5 {
        let start = Instant::now();
        for _ in 0..rounds {
            black_box(call());
        }
        let taken = start.elapsed().as_secs_f64();
        best = best.min(taken / f64::from(rounds));
        rounds = if taken < 1e-3 { rounds * 2 } else { rounds };
        count += 1;
    }
    best * 1e6
}
