//! Times the ports of `examples/ports`. `benches/ports.py` sends lines `NAME objective` or `NAME fit`, and this program answers each line
//! with a time in seconds. An unknown name stands for `mixture_variational_inference`.

#![allow(dead_code)] // The functions of the ports that only draw pictures are not called here.

use std::hint::black_box;
use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::time::Instant;

use gplvm::gaussian_process;
use wengert::autograd::transforms::{ravel, value_and_grad};
use wengert::prelude::*;
use wengert_ports::{RandomState, pinwheel};

#[path = "../examples/ports/gmm.rs"]
mod gmm;
#[path = "../examples/ports/gplvm.rs"]
mod gplvm;
#[path = "../examples/ports/ica.rs"]
mod ica;
#[path = "../examples/ports/mixture_variational_inference.rs"]
mod mixture_variational_inference;

/// Returns the median time of a call, in seconds. Each sample lasts at least 5 ms, and samples are taken for 1 s.
fn median(mut call: impl FnMut()) -> f64 {
    let begin = Instant::now();
    let mut samples = Vec::new();
    while begin.elapsed().as_secs_f64() < 1.0 {
        let (sample, mut calls) = (Instant::now(), 0);
        while sample.elapsed().as_secs_f64() < 0.005 {
            call();
            calls += 1;
        }
        samples.push(sample.elapsed().as_secs_f64() / f64::from(calls));
    }
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Returns the time, in seconds, to compute the objective of the port `name` and its gradient at the starting parameters.
fn objective(name: &str) -> f64 {
    let time = |start: &Tensor<f64>, f: &dyn for<'t> Fn(Var<'t, f64>) -> Var<'t, f64>| {
        median(|| drop(black_box(value_and_grad(f, start))))
    };
    match name {
        "gaussian_process" => {
            let [x, y] = gaussian_process::data();
            time(&gaussian_process::start(4), &|theta| {
                gaussian_process::objective(theta, theta.tape().constant(&x), theta.tape().constant(&y))
            })
        }
        "gmm" => {
            let (points, (start, layout)) = (pinwheel(100), ravel(&gmm::start()));
            time(&start, &|theta| gmm::objective(layout.unravel(&theta), &points))
        }
        "ica" => {
            let ([_, _, observed], (start, layout)) = (ica::data(), ravel(&ica::start()));
            time(&start, &|theta| ica::objective(layout.unravel(&theta), &observed))
        }
        "gplvm" => {
            let (data, (start, layout)) = (pinwheel(30), ravel(&gplvm::start()));
            time(&start, &|theta| gplvm::objective(layout.unravel(&theta), &data))
        }
        _ => {
            let (start, layout) = ravel(&mixture_variational_inference::start());
            let mut random = RandomState::new(0);
            median(|| {
                let noise = random.randn([10, 40, 2]);
                let f = formula!(|theta| { mixture_variational_inference::objective(layout.unravel(&theta), &noise) });
                black_box(value_and_grad(f, &start));
            })
        }
    }
}

/// Returns the time, in seconds, of the whole fit of the port `name`.
fn fit(name: &str) -> f64 {
    let data = (gaussian_process::data(), pinwheel(100), ica::data(), pinwheel(30));
    let begin = Instant::now();
    let loss = match name {
        "gaussian_process" => gaussian_process::fit(&data.0[0], &data.0[1]).1,
        "gmm" => gmm::fit(&data.1, 300).1,
        "ica" => ica::fit(&data.2[2], 1000).1,
        "gplvm" => gplvm::fit(&data.3, 500).1,
        _ => {
            let mut fit = mixture_variational_inference::Fit::at_start();
            (0..2000).fold(0.0, |_, _| -fit.step())
        }
    };
    let seconds = begin.elapsed().as_secs_f64();
    eprintln!("{name}: objective {loss:.6} at the end");
    seconds
}

fn main() {
    for line in stdin().lock().lines().map_while(Result::ok) {
        let (name, what) = line.split_once(' ').unwrap_or((&line, "objective"));
        let seconds = if what == "fit" { fit(name) } else { objective(name) };
        println!("{seconds:e}");
        stdout().flush().expect("the standard output is open");
    }
}
