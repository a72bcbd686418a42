//! 23. Two methods that are mostly broadcasting: k-means, and kernel regression with a learned width.
//!
//! The differences of every point and every centre are `[n, 1, 2] - [k, 2]`; the differences of every two points are
//! `[n, 1] - [n]`. k-means needs no gradient. Kernel regression predicts a value as the mean of the other values, weighted by the
//! distance of their points. The gradient of the error with respect to the width finds the best width.

use std::process::ExitCode;

use wengert::autograd::transforms::value_and_grad;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, row_svg, run};

fn main() -> ExitCode {
    let about = "k-means by broadcasting, and kernel regression with a learned width";
    let options = Options::new("23_clusters", about).option("clusters", 5, "Number of clusters, 1 to 10");
    run(options, |options| {
        clusters(options)?;
        kernels(options)
    })
}

/// Returns the squared distance of every point `[n, 2]` to every centre `[k, 2]`: `[n, k]`.
fn distances(points: &Tensor<f64>, centres: &Tensor<f64>) -> Tensor<f64> {
    (points.unsqueeze(1) - centres).square().sum(2)
}

fn clusters(options: &Options) -> Result {
    let k: usize = options.get("clusters")?;
    if !(1..=10).contains(&k) {
        return Err(format!("--clusters {k}: expected 1 to 10").into());
    }
    let generator = &mut Generator::new(options.seed());
    // Five groups of 80 points.
    let heaps = Tensor::from([[-2.0, -1.5], [2.0, -1.8], [0.0, 0.3], [-2.2, 2.0], [2.1, 1.7]]);
    let points = (heaps.unsqueeze(1) + Tensor::randn([5, 80, 2], generator) * 0.5).reshape([400, 2]);

    println!("1. k-means with {k} clusters\n");
    // Each centre begins at the point that is farthest from the centres so far.
    let mut centres = points.narrow(0, 0, 1);
    while centres.shape()[0] < k {
        let farthest = distances(&points, &centres).amin(1).argmax(0).item();
        centres = cat(&[centres, points.narrow(0, farthest as isize, 1)], 0);
    }
    for round in 1.. {
        let nearest = distances(&points, &centres).argmin(1); // [n]
        let member = one_hot(&nearest, Some(k)).cast::<f64>(); // [n, k]
        // The mean of the points of each cluster. An empty cluster keeps its centre.
        let count = member.sum(0).unsqueeze(1); // [k, 1]
        let means = member.t().matmul(&points) / count.clamp_min(1.0);
        let moved = where_(&count.gt(0.0), &means, &centres);
        let shift = (&moved - &centres).abs().amax(..).item();
        centres = moved;
        println!("round {round:>2}   mean square distance {:.4}", distances(&points, &centres).amin(1).mean(..).item());
        if shift == 0.0 {
            break;
        }
    }
    let nearest = distances(&points, &centres).argmin(1);
    let mut chart = Chart::new("k-means", "x", "y").ranges(-4.0..4.0, -4.0..4.0).regions(|middles| {
        let middles = Tensor::from_fn([middles.len(), 2], |i| [middles[i[0]].0, middles[i[0]].1][i[1]]);
        distances(&middles, &centres).argmin(1).iter().map(|cluster| cluster as usize).collect()
    });
    for cluster in 0..k {
        chart = chart.points("", cluster, pairs(&points.masked_select(&nearest.eq(cluster as i64).unsqueeze(1))));
    }
    options.write("clusters.svg", chart.crosses("centres", 7, pairs(&centres)).to_svg()?)?;
    println!();
    Ok(())
}

/// Returns pairs of consecutive numbers.
fn pairs(numbers: &Tensor<f64>) -> Vec<(f64, f64)> {
    numbers.to_vec().chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Returns the values at `at` `[m]`: the mean of `y`, weighted by exp(-(distance / width)² / 2). Nadaraya and Watson, 1964.
fn predict<'t>(
    at: Var<'t, f64>,
    x: Var<'t, f64>,
    y: Var<'t, f64>,
    width: Var<'t, f64>,
    leave_out: bool,
) -> Var<'t, f64> {
    let (m, n) = (at.shape()[0], x.shape()[0]);
    let mut exponent = ((at.unsqueeze(1).expand([m, n]) - x) / width).square() * -0.5;
    if leave_out {
        // A point does not predict itself: its own weight is 0.
        exponent -= Tensor::<f64>::eye(n) * 1e9;
    }
    exponent.softmax(1).matmul(y)
}

fn kernels(options: &Options) -> Result {
    println!("2. Kernel regression: gradient descent on the leave-one-out error finds the width\n");
    let generator = &mut Generator::new(options.seed());
    let x = Tensor::<f64>::rand([120], generator) * 6.0 - 3.0;
    let y = (&x * 2.0).sin() + &x * 0.3 + Tensor::randn([120], generator) * 0.25;

    let mut log_width = Tensor::scalar(0.0f64); // the width is positive, so its logarithm is learned
    for step in 0..=40 {
        let error = formula!(|[log_width]| {
            let [x, y] = [&x, &y].map(|data| log_width.tape().constant(data));
            (predict(x, x, y, log_width.exp(), true) - y).square().mean(..)
        });
        let (loss, [slope]) = value_and_grad(error, [&log_width]);
        if step % 10 == 0 {
            println!("step {step:>2}   width {:.4}   error {:.4}", log_width.exp().item(), loss);
        }
        log_width -= &(slope * 1.5);
    }
    let at = Tensor::<f64>::linspace(-3.0, 3.0, 241);
    let charts = [0.02, log_width.exp().item(), 1.0].map(|width| {
        let tape = Tape::new();
        let [at_, x_, y_, width_] = [&at, &x, &y, &Tensor::scalar(width)].map(|data| tape.constant(data));
        let curve = predict(at_, x_, y_, width_, false).value();
        let chart = Chart::new(format!("width {width:.2}"), "x", "y").ranges(-3.0..3.0, -2.5..2.5);
        let chart = chart.points("", 7, x.iter().zip(y.iter())).line("prediction", 1, at.iter().zip(curve.to_vec()));
        chart.dashes("truth", 0, at.iter().map(|x| (x, (2.0 * x).sin() + 0.3 * x)))
    });
    options.write("kernels.svg", row_svg(&charts)?)?;
    Ok(())
}
