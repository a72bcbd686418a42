//! Times linear algebra. A printed line has the operation, the element type, the size n of the matrices, their number, the library, and the
//! time in microseconds. `linalg.py` prints the same lines for other libraries.
//!
//! ```text
//! cargo run --release -p wengert-benches --bin linalg -- FILTER
//! ```

use std::hint::black_box;
use std::time::Instant;

use wengert::linalg::prelude::*;
use wengert::prelude::*;

/// Pairs of the number of rows and columns of each matrix, and the number of matrices in a batch.
const SIZES: [(usize, usize); 7] = [(4, 1), (8, 1), (32, 1), (128, 1), (512, 1), (4, 4096), (8, 4096)];

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    run::<f64>("f64", &wanted);
    run::<f32>("f32", &wanted);
}

/// Times the operations whose names contain `wanted`, for elements of one type.
fn run<T: Float>(name: &str, wanted: &str) {
    for (n, batch) in SIZES {
        let lead: &[usize] = if batch == 1 { &[] } else { &[batch] };
        let random = |columns: usize| {
            let shape: Vec<usize> = lead.iter().chain(&[n, columns]).copied().collect();
            Tensor::<T>::randn(&shape[..], &mut Generator::new(1))
        };
        let (x, b, eye) = (random(n), random(1), Tensor::<T>::eye(n).mul(n as f64));
        let (definite, a) = (x.matmul(x.transpose(-2, -1)).add(&eye), x.add(&eye));
        let l = definite.cholesky();
        let calls: [(&str, &dyn Fn() -> Tensor<T>); 8] = [
            ("cholesky", &|| definite.cholesky()),
            ("solve", &|| a.solve(&b)),
            ("inv", &|| a.inv()),
            ("det", &|| a.det()),
            ("triangular", &|| l.solve_triangular(&b, Triangle::Lower)),
            ("qr", &|| x.qr(QrMode::Reduced).0),
            ("eigh", &|| definite.eigh(Triangle::Lower).1),
            ("svd", &|| x.svd(false).0),
        ];
        for (kind, call) in calls.iter().filter(|(kind, _)| kind.contains(wanted)) {
            println!("{kind} {name} {n} {batch} wengert {:.3}", measure(call));
        }
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
