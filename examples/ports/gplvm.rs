//! A Gaussian process latent variable model. Each point has a hidden place in a plane, and each coordinate of the data is a Gaussian process
//! over these places. A port of HIPS/autograd's `gplvm.py`.

use std::process::ExitCode;

use wengert::autograd::transforms::ravel;
use wengert::distributions::prelude::*;
use wengert::nn::Lbfgs;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, row_svg, run};
use wengert_ports::{RandomState, pinwheel};

#[allow(dead_code)] // This program uses only `objective`.
#[path = "gaussian_process.rs"]
pub mod gaussian_process;

fn main() -> ExitCode {
    let options = Options::new("gplvm", "Hidden places of points, found by Gaussian processes");
    run(options.count("steps", 500, "Largest number of moves of the optimiser"), places)
}

/// Returns the initial parameters: five parameters of each Gaussian process `[2, 5]`, and the hidden places of the points `[90, 2]`.
pub fn start() -> [Tensor<f64>; 2] {
    let mut random = RandomState::new(1);
    [random.randn([2, 5]) * 0.1, random.randn([90, 2]) * 0.1]
}

/// Returns minus the logarithm of the joint density of the data `[n, 2]` and the hidden places `[n, 2]`.
pub fn objective<'t>([settings, places]: [Var<'t, f64>; 2], data: &Tensor<f64>) -> Var<'t, f64> {
    let tape = places.tape();
    let process = |k| gaussian_process::objective(settings.select(0, k), places, tape.constant(data.select(1, k)));
    process(0) + process(1) - Normal::new(tape.constant(0.0), 1.0).log_prob(places).sum(..)
}

/// Returns the parameters after at most `steps` iterations of L-BFGS, and the objective for these parameters.
pub fn fit(data: &Tensor<f64>, steps: usize) -> ([Tensor<f64>; 2], f64) {
    let (start, layout) = ravel(&start());
    let mut lbfgs = Lbfgs::new(1.0).strong_wolfe().max_iter(steps);
    let (theta, loss) = lbfgs.minimize(|theta| objective(layout.unravel(&theta), data), &start);
    (layout.unravel(&theta), loss)
}

fn places(options: &Options) -> Result {
    let data = pinwheel(30);
    let ([settings, places], loss) = fit(&data, options.get("steps"));
    println!("log likelihood {:.4}", -loss);
    for (name, setting) in ["first", "second"].iter().zip(settings.exp().unbind(0)) {
        let [noise, height] = [1, 2].map(|k| setting.select(0, k).item());
        println!("{name} coordinate: noise {noise:.1e}, height {height:.3}");
    }
    picture(options, [("the data", data), ("the hidden places", places)])
}

fn picture(options: &Options, panels: [(&str, Tensor<f64>); 2]) -> Result {
    let charts = panels.map(|(title, points)| {
        let pairs: Vec<_> = points.to_vec().chunks(2).map(|p| (p[0], p[1])).collect();
        let arms = pairs.chunks(30).enumerate();
        arms.fold(Chart::new(title, "x", "y"), |chart, (arm, points)| chart.points("", arm, points.to_vec()))
    });
    options.write("places.svg", row_svg(&charts)?)
}
