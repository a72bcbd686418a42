//! Times the solvers. A printed line has the problem, the library, and the time in microseconds. `solvers.py` prints such lines for SciPy,
//! which has no gradients of solutions.
//!
//! ```text
//! cargo run --release -p wengert-benches --bin solvers -- FILTER
//! ```

use std::hint::black_box;
use std::time::Instant;

use wengert::autograd::transforms::grad;
use wengert::prelude::*;
use wengert::solvers::{Method, Odeint, Root, brentq, least_squares, minimize, quad};

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let print = |name: &str, problem: &dyn Fn()| {
        if name.contains(&wanted) {
            println!("{name} wengert {:.1}", measure(problem));
        }
    };
    equations(&print);
    print("root_broyden", &|| {
        black_box(Root::new().call(broyden, &Tensor::full([10], -1.0)));
    });
    print("brentq_cosine", &|| {
        black_box(brentq(|x| x.cos() - x, 0.0f64, 1.0));
    });
    let t = Tensor::from([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]);
    let y = Tensor::from([5.1, 3.72, 2.9, 2.18, 1.81, 1.2, 0.93, 0.62, 0.56]);
    print("least_squares_decay", &|| {
        let decay = formula!(|x| (-(x.select(0, 1) * &t)).exp() * x.select(0, 0) + x.select(0, 2) - &y);
        black_box(least_squares(decay, &Tensor::from([1.0, 1.0, 0.0])));
    });
    print("minimize_rosenbrock_10", &|| {
        black_box(minimize(rosenbrock, &Tensor::zeros([10])));
    });
    print("quad_gauss", &|| {
        black_box(quad(|x: Var<'_, f64>| (-x.square()).exp(), f64::NEG_INFINITY, f64::INFINITY));
    });
    print("quad_waves", &|| {
        black_box(quad(|x: Var<'_, f64>| (x * 50.0).cos() * x, 0.0, 3.0));
    });
}

/// Times one evaluation of a right-hand side, initial value problems, and gradients of their solutions.
fn equations(print: &dyn Fn(&str, &dyn Fn())) {
    let start = Tensor::from([1.0, 1.0, 1.0]);
    print("one_slope", &|| {
        black_box(infer(lorenz, &start));
    });
    let solver = Odeint::new().rtol(1e-6).atol(1e-9);
    print("ode_lorenz", &|| {
        black_box(solver.call(|_, y| lorenz(y), &start, &Tensor::from([0.0, 10.0])));
    });
    print("ode_pendulum", &|| {
        black_box(solver.call(|_, y| pendulum(y), &Tensor::from([1.0, 0.0]), &Tensor::from([0.0, 20.0])));
    });
    let matrix = Tensor::from_fn([100, 100], |index| match index[0].abs_diff(index[1]) {
        0 => -2.0,
        1 => 1.0,
        _ => 0.0,
    });
    let waves = Tensor::from_fn([100], |index| (index[0] as f64 * 0.1).sin());
    print("ode_heat_100", &|| {
        black_box(solver.call(|_, y| y.tape().constant(&matrix).matmul(y), &waves, &Tensor::from([0.0, 10.0])));
    });
    let stiff = Odeint::new().method(Method::Rodas4).rtol(1e-6).atol(1e-9);
    print("ode_van_der_pol_stiff", &|| {
        black_box(stiff.call(|_, y| van_der_pol(y), &Tensor::from([2.0, 0.0]), &Tensor::from([0.0, 1500.0])));
    });
    let times = Tensor::from([0.0, 1.0]);
    print("adjoint_lorenz", &|| {
        let loss = formula!(|y0| {
            let times = y0.tape().constant(&times);
            solver.record_adjoint(|_, y, _| lorenz(y), y0, times, &[]).square().sum(..)
        });
        black_box(grad(loss, &start));
    });
    let fixed = Odeint::new().method(Method::Rk4).step_size(0.02);
    print("gradient_of_50_steps_lorenz", &|| {
        black_box(grad(|y0| fixed.record(|_, y| lorenz(y), y0, &times).square().sum(..), &start));
    });
}

fn lorenz(y: Var<'_, f64>) -> Var<'_, f64> {
    let (a, b, c) = (y.select(0, 0), y.select(0, 1), y.select(0, 2));
    stack(&[(b - a) * 10.0, a * (28.0 - c) - b, a * b - c * (8.0 / 3.0)], 0)
}

fn pendulum(y: Var<'_, f64>) -> Var<'_, f64> {
    stack(&[y.select(0, 1), -y.select(0, 0).sin()], 0)
}

fn van_der_pol(y: Var<'_, f64>) -> Var<'_, f64> {
    let (x, v) = (y.select(0, 0), y.select(0, 1));
    stack(&[v, (1.0 - x.square()) * v * 1e3 - x], 0)
}

fn broyden(x: Var<'_, f64>) -> Var<'_, f64> {
    let zero = x.tape().constant(Tensor::zeros([1]));
    let (before, after) = (cat(&[zero, x.narrow(0, 0, 9)], 0), cat(&[x.narrow(0, 1, 9), zero], 0));
    (3.0 - x * 2.0) * x - before - after * 2.0 + 1.0
}

fn rosenbrock(x: Var<'_, f64>) -> Var<'_, f64> {
    let (head, tail) = (x.narrow(0, 0, 9), x.narrow(0, 1, 9));
    ((tail - head.square()).square() * 100.0 + (1.0 - head).square()).sum(..)
}

/// Returns the shortest time of a call in microseconds, among the calls of half a second.
fn measure(problem: &dyn Fn()) -> f64 {
    problem();
    let (start, mut shortest) = (Instant::now(), f64::INFINITY);
    while start.elapsed().as_secs_f64() < 0.5 {
        let call = Instant::now();
        problem();
        shortest = shortest.min(call.elapsed().as_secs_f64());
    }
    shortest * 1e6
}
