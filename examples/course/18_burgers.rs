//! 18. An equation solved by a network: Burgers' equation, in which a smooth wave becomes a front.
//!
//! ```text
//! u_t + u u_x = ν u_xx      u(x, 0) = -sin(πx)      u(-1, t) = u(1, t) = 0
//! ```
//!
//! There is no data. The network computes u at points in space and time. The loss is the residual of the equation there, which
//! contains derivatives of the network with respect to its *inputs*. The gradient of this loss with respect to the weights is a
//! derivative of third order. The formula of u satisfies the initial and boundary values. The exact solution (Cole 1951, Hopf
//! 1950) is an integral.

use std::f64::consts::PI;
use std::process::ExitCode;

use wengert::nn::Lbfgs;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, row_svg, run};

fn main() -> ExitCode {
    let options = Options::new("18_burgers", "Burgers' equation solved by a network");
    run(options.count("steps", 40, "Steps of L-BFGS, with up to 20 updates each"), solve)
}

/// The viscosity. A smaller viscosity gives a steeper front.
const NU: f64 = 0.02;

#[derive(Module)]
#[module(f64)]
struct Network(Vec<Linear<f64>>);

impl Network {
    fn new(sizes: &[usize], generator: &mut Generator) -> Self {
        Network(sizes.windows(2).map(|pair| Linear::new(pair[0], pair[1], generator)).collect())
    }

    /// Returns u at places x `[n, 1]` and times t `[n, 1]`.
    fn u<'t>(&self, x: Var<'t, f64>, t: Var<'t, f64>) -> Var<'t, f64> {
        let (last, hidden) = self.0.split_last().expect("a network has layers");
        let inner = last.forward(hidden.iter().fold(cat(&[x, t], 1), |y, layer| layer.forward(y).tanh()));
        // At t = 0 and at x = ±1 this formula has the required values for any network.
        t * (1.0 - x.square()) * inner - (x * PI).sin()
    }

    /// Returns the mean squared residual of the equation.
    fn loss<'t>(&self, x: Var<'t, f64>, t: Var<'t, f64>) -> Var<'t, f64> {
        let u = self.u(x, t);
        let [ux, ut] = u.sum(..).grad([x, t]);
        let [uxx] = ux.sum(..).grad([x]);
        (ut + u * ux - uxx * NU).square().mean(..)
    }
}

/// Returns the exact solution at one place and time. The transform of Cole and Hopf leads to the heat equation, whose solution
/// is an integral over the initial values. The substitution y = x - √(4νt) z gives it the weight exp(-z²), and a sum over z is exact to the
/// last digits.
fn exact(x: f64, t: f64) -> f64 {
    let spread = (4.0 * NU * t).sqrt();
    let (mut above, mut below) = (0.0, 0.0);
    for step in -400..=400 {
        let z = f64::from(step) * 0.02;
        let y = x - spread * z;
        // The largest possible exponent is subtracted, so that nothing overflows. This divides `above` and `below` by the same number.
        let weight = (-z * z - ((PI * y).cos() + 1.0) / (2.0 * PI * NU)).exp();
        above -= (PI * y).sin() * weight;
        below += weight;
    }
    above / below
}

fn solve(options: &Options) -> Result {
    let steps: usize = options.get("steps");
    let generator = &mut Generator::new(options.seed());
    let mut network = Network::new(&[2, 24, 24, 24, 1], generator);

    // Half of the points are spread over the whole interval, and the other half lie near the front.
    let x = Tensor::<f64>::rand([800, 1], generator) * 2.0 - 1.0;
    let x = cat(&[x.clone(), x * 0.2], 0);
    let t = Tensor::<f64>::rand([1600, 1], generator);

    // The error is measured on other points: a grid of 101 places at 21 times.
    let grid = [Tensor::<f64>::linspace(-1.0, 1.0, 101), Tensor::linspace(0.0, 1.0, 21)];
    let truth =
        Tensor::from_fn([101, 21], |i| exact(grid[0].get(&[i[0]]).unwrap_or(0.0), grid[1].get(&[i[1]]).unwrap_or(0.0)));
    let on_grid = |network: &Network| {
        let [gx, gt] = [grid[0].unsqueeze(1).expand([101, 21]), grid[1].expand([101, 21])].map(|g| g.reshape([-1, 1]));
        let tape = Tape::new();
        network.u(tape.constant(&gx), tape.constant(&gt)).value().reshape([101, 21])
    };
    let error = |u: &Tensor<f64>| (u - &truth).square().sum(..).item().sqrt() / truth.square().sum(..).item().sqrt();

    let mut lbfgs = Lbfgs::new(1.0).strong_wolfe();
    for step in 0..=steps {
        if step % 10 == 0 || step == steps {
            let tape = Tape::new();
            let loss = network.loss(tape.var(&x), tape.var(&t)).item();
            println!("step {step:>3}   loss {loss:.2e}   error {:.3}%", 100.0 * error(&on_grid(&network)));
        }
        if step < steps {
            lbfgs.step(&mut network, |network| {
                Tape::new().value_and_gradients(|tape| network.loss(tape.var(&x), tape.var(&t)))
            });
        }
    }

    let u = on_grid(&network);
    let charts = [5, 10, 20].map(|moment| {
        let curve_at =
            |solution: &Tensor<f64>| grid[0].iter().zip(solution.select(1, moment).to_vec()).collect::<Vec<_>>();
        let time = grid[1].get(&[moment as usize]).unwrap_or(0.0);
        let chart = Chart::new(format!("t = {time:.2}"), "x", "u").ranges(-1.0..1.0, -1.15..1.15);
        chart.band("exact", 0, curve_at(&truth)).dashes("network", 1, curve_at(&u))
    });
    options.write("burgers.svg", row_svg(&charts)?)?;
    let error = error(&u);
    println!("relative error: {:.3}%", 100.0 * error);
    if error > 0.01 {
        return Err("the error is above 1%: try more --steps".into());
    }
    Ok(())
}
