//! 17. Your own operation: the log-density of Student's t, with a value and a derivative that you write.
//!
//! ```text
//! log p(x) = c - (ν + 1)/2 ln(1 + x²/ν)      c = ln Γ((ν+1)/2) - ln Γ(ν/2) - ln(πν)/2
//! ```
//!
//! The operation defines its shape, its value, and its derivative, which is a formula over variables. So derivatives of any order
//! follow. An operation of your own is worth its lines if the value needs a loop or a library that no formula has. It is also worth
//! them if the derivative has a shorter or more stable formula than the chain rule gives.
//!
//! See also `gradient_check`, which shows how to find a mistake in such a derivative.

use std::process::ExitCode;

use wengert::autograd::transforms::hessian;
use wengert::autograd::{Call, Error, Operation, gradcheck};
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, run};

fn main() -> ExitCode {
    run(Options::new("17_own_operation", "Your own operation, differentiated twice"), own_operation)
}

/// The log-density of Student's t distribution with ν degrees of freedom.
struct StudentT {
    nu: f64,
}

impl Operation<f64> for StudentT {
    fn name(&self) -> &'static str {
        "student_t"
    }

    fn shape(&self, inputs: &[Shape]) -> std::result::Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<f64>]) -> std::result::Result<Tensor<f64>, Error> {
        let nu = self.nu;
        let half = Tensor::from([(nu + 1.0) / 2.0, nu / 2.0]).lgamma().to_vec();
        let constant = half[0] - half[1] - (std::f64::consts::PI * nu).ln() / 2.0;
        Ok(inputs[0].map(|x| constant - (nu + 1.0) / 2.0 * (x * x / nu).ln_1p()))
    }

    fn vjp<'t>(&self, call: &Call<'t, f64>, _input: usize, g: Var<'t, f64>) -> Option<Var<'t, f64>> {
        // The derivative is -(ν + 1) x / (ν + x²).
        let x = call.input(0);
        Some(g * x * -(self.nu + 1.0) / (x * x + self.nu))
    }

    fn jvp<'t>(&self, call: &Call<'t, f64>, input: usize, v: Var<'t, f64>) -> Option<Var<'t, f64>> {
        self.vjp(call, input, v) // elementwise: the same formula
    }
}

/// Returns the log-density of the data for a location and a scale.
fn log_density<'t>(data: &Tensor<f64>, location: Var<'t, f64>, scale: Var<'t, f64>) -> Var<'t, f64> {
    let standard = (data - location) / scale;
    location.tape().apply(StudentT { nu: 3.0 }, &[standard]) - scale.log()
}

fn own_operation(options: &Options) -> Result {
    // Five observations of two quantities, with one outlier.
    let data = Tensor::from([[1.1, -0.4], [0.9, -0.6], [1.3, -0.5], [1.0, -0.3], [9.0, -0.7]]);
    let (mut location, scale) = (Tensor::from([2.0, 0.0]), Tensor::scalar(0.5));

    println!("1. Data [5, 2], location [2] and scale [] broadcast; checked to order 2:\n");
    println!("{}\n", gradcheck(|[location, scale]| log_density(&data, location, scale), [&location, &scale])?);

    println!("2. The most likely location, by gradient ascent:\n");
    // Fisher scoring: each step divides by the expected curvature, the Fisher information. One observation has (ν + 1) / (ν + 3) / scale².
    let information = 5.0 * (4.0 / 6.0) / (0.5 * 0.5);
    for step in 0..=30 {
        let tape = Tape::new();
        let at = tape.var(&location);
        let total = log_density(&data, at, tape.constant(&scale)).sum(..);
        let [gradient] = total.grad([at]);
        if step % 10 == 0 {
            println!("   step {step:>2}: location {:.6?}, log-likelihood {:.6}", location.to_vec(), total.item());
        }
        location = &location + &(&gradient.value() / information);
    }
    println!("\n   The mean of the first column is 2.66. The outlier 9.0 hardly moves\n   this location.\n");

    println!("3. The curvature there, [2, 2], by forward over reverse mode:\n");
    let h = hessian(|at| log_density(&data, at, at.tape().constant(&scale)).sum(..), &location);
    println!("   {:.4?}\n", h.to_vec());

    // The first column against many locations at once: [5, 1] - [161] is [5, 161].
    let (column, many) = (data.select(1, 0).unsqueeze(1), Tensor::<f64>::linspace(-1.0, 10.0, 161));
    let tape = Tape::new();
    let student = log_density(&column, tape.constant(&many), tape.constant(&scale)).sum(0).value();
    let normal = ((&column - &many) / &scale).square().sum(0) * -0.5;
    let against = |curve: &Tensor<f64>| many.iter().zip((curve - curve.amax(..)).to_vec()).collect::<Vec<_>>();
    let chart = Chart::new("Log-likelihood of a location, below its maximum", "location", "")
        .ranges(-1.0..10.0, -40.0..4.0)
        .line("normal", 1, against(&normal).into_iter().filter(|(_, y)| *y > -40.0))
        .line("Student's t", 0, against(&student))
        .points("observations", 7, data.select(1, 0).iter().map(|x| (x, 1.5)));
    options.write("likelihood.svg", chart.to_svg()?)?;
    Ok(())
}
