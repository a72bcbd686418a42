//! 16. Second order: steps that use the curvature.
//!
//! Gradient descent uses the slope. Newton's method also uses the Hessian, which is a derivative of a derivative on the same
//! tape. If there are too many numbers for a Hessian, L-BFGS approximates it from the last gradients.

use std::process::ExitCode;

use wengert::autograd::transforms::{grad, hessian, hvp};
use wengert::nn::{Lbfgs, Tanh};
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, run};

fn main() -> ExitCode {
    run(Options::new("16_second_order", "Newton's method, products with a Hessian, and L-BFGS"), second_order)
}

/// Rosenbrock's valley (1960): curved, narrow, nearly flat along its floor, with the minimum at (1, 1).
fn valley(p: Var<'_, f64>) -> Var<'_, f64> {
    let (x, y) = (p.select(0, 0), p.select(0, 1));
    (y - x.square()).square() * 100.0 + (1.0 - x).square()
}

fn value(p: &Tensor<f64>) -> f64 {
    valley(Tape::new().constant(p)).item()
}

fn point(p: &Tensor<f64>) -> (f64, f64) {
    (p.select(0, 0).item(), p.select(0, 1).item())
}

fn second_order(options: &Options) -> Result {
    valley_by_both_methods(options)?;
    product_with_a_large_hessian();
    network_by_lbfgs(options)
}

fn valley_by_both_methods(options: &Options) -> Result {
    let start = Tensor::from([-1.2, 1.0]);

    println!("1. Rosenbrock's valley by gradient descent, from (-1.2, 1)\n");
    let (mut p, mut slow) = (start.clone(), vec![point(&start)]);
    for step in 1..=5000 {
        let [slope] = grad(|[p]| valley(p), [&p]);
        p -= &(slope * 0.0015);
        slow.push(point(&p));
        if [10, 100, 1000, 5000].contains(&step) {
            println!("   step {step:>4}   {:.6?}   value {:.2e}", point(&p), value(&p));
        }
    }

    println!("\n2. The same by Newton's method: -H⁻¹ times the slope\n");
    let (mut p, mut quick) = (start.clone(), vec![point(&start)]);
    for step in 1..=6 {
        let [slope] = grad(|[p]| valley(p), [&p]);
        let h = hessian(valley, &p).to_vec(); // [2, 2]
        let [a, b, c, d] = [h[0], h[1], h[2], h[3]];
        let inverse = Tensor::from([[d, -b], [-c, a]]) / (a * d - b * c);
        p -= &inverse.matmul(&slope);
        quick.push(point(&p));
        println!("   step {step:>4}   {:.6?}   value {:.2e}", point(&p), value(&p));
    }
    assert!(value(&p) < 1e-15);
    let height = |x: f64, y: f64| 100.0 * (y - x * x).powi(2) + (1.0 - x).powi(2);
    let chart = Chart::new("Down Rosenbrock's valley", "x", "y")
        .ranges(-1.6..1.6, -0.6..1.8)
        .contours(&[0.3, 3.0, 10.0, 30.0, 100.0, 300.0], height)
        .line("5,000 steps of gradient descent", 0, slow)
        .line("6 steps of Newton's method", 1, quick.clone())
        .points("", 1, quick)
        .crosses("lowest", 3, [(1.0, 1.0)]);
    options.write("valley.svg", chart.to_svg()?)?;
    println!();
    Ok(())
}

fn product_with_a_large_hessian() {
    println!("3. For many numbers: the product of the Hessian with a vector\n");
    let f = formula!(|x| (x.square().sum(..) + 1.0).log());
    let x = Tensor::<f64>::linspace(-1.0, 1.0, 100_000);
    let product = hvp(f, &x, &Tensor::ones([100_000]));
    println!(
        "   100,000 numbers; the Hessian would have 10 billion.\n   Its row sums begin with {:.3e}\n",
        product.to_vec()[0]
    );
}

fn network_by_lbfgs(options: &Options) -> Result {
    println!("4. L-BFGS fits a network to a curve\n");
    let generator = &mut Generator::new(options.seed());
    let mut network = Sequential::<f64>::new();
    network = network.add(Linear::new(1, 20, generator)).add(Tanh).add(Linear::new(20, 20, generator)).add(Tanh);
    let mut network = network.add(Linear::new(20, 1, generator));
    let x = Tensor::<f64>::linspace(-2.0, 2.0, 100).unsqueeze(1);
    let y = (x.square() * 2.0).sin() * (-&x).exp();
    let mut lbfgs = Lbfgs::new(1.0).strong_wolfe();
    for step in 0..=30 {
        let loss = lbfgs.step(&mut network, |network| {
            Tape::new().value_and_gradients(|tape| mse_loss(network.forward(tape.constant(&x)), &y))
        });
        if step % 10 == 0 {
            println!("   step {step:>3}   mean square error {loss:.2e}");
        }
    }
    let fitted = network.forward(Tape::new().constant(&x)).value();
    let curve = |values: &Tensor<f64>| x.iter().zip(values.to_vec()).collect::<Vec<_>>();
    let chart = Chart::new("A curve and a network", "x", "y").points("curve", 7, curve(&y));
    options.write("curve.svg", chart.line("network", 1, curve(&fitted)).to_svg()?)?;
    Ok(())
}
