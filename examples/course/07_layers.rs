//! 7. Logistic regression: classes instead of numbers, a layer and an optimiser instead of formulas.
//!
//! A `Linear` layer gives one score for each class, and `cross_entropy` compares the scores with the class. A straight boundary
//! cannot separate two moons. The same model can separate them if it is given powers of the coordinates.

use std::f32::consts::PI;
use std::process::ExitCode;

use wengert::autograd::transforms::infer;
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, row_svg, run};

fn main() -> ExitCode {
    let options = Options::new("07_layers", "Two classes of points, and the boundary between them");
    run(options.option("steps", 300, "Number of steps"), logistic)
}

/// Returns the points `[n, 2]` of two half circles that reach into each other, and the class of each point.
fn moons(n: usize, generator: &mut Generator) -> (Tensor, Tensor<i64>) {
    let angle = Tensor::<f32>::rand([n], generator) * PI;
    let class = Tensor::arange(n) % 2;
    let up = class.eq(0);
    let x = where_(&up, &angle.cos(), &(1.0 - angle.cos()));
    let y = where_(&up, &angle.sin(), &(0.5 - angle.sin()));
    (stack(&[x, y], 1) + Tensor::randn([n, 2], generator) * 0.12, class)
}

/// Returns x^i y^j of degree 1 to `degree`: `[n, 2]` to `[n, features]`.
fn powers(points: &Tensor, degree: i32) -> Tensor {
    let (x, y) = (points.select(1, 0), points.select(1, 1));
    let columns = (1..=degree).flat_map(|d| (0..=d).map(move |j| (d - j, j)));
    let columns: Vec<Tensor> = columns.map(|(i, j)| x.pow(i) * y.pow(j)).collect();
    stack(&columns, 1)
}

fn logistic(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let (points, classes) = moons(400, generator);

    let mut charts = Vec::new();
    for degree in [1, 3] {
        let features = powers(&points, degree);
        let mut model: Linear = Linear::new(features.shape()[1], 2, generator);
        let mut sgd = Sgd::new(0.5).momentum(0.9);
        let mut last = 0.0;
        for _ in 0..options.get("steps")? {
            let (loss, gradients) = Tape::training(generator)
                .value_and_gradients(|tape| cross_entropy(&model.forward(tape.constant(&features)), &classes));
            sgd.step(&mut model, &gradients);
            last = loss;
        }
        let right = 100.0 * accuracy(&infer(|x| model.forward(x), &features), &classes);
        println!("powers up to {degree}: {} features, loss {last:.4}, {right:.1}% right", features.shape()[1]);

        let of = |class: i64| {
            points
                .masked_select(&classes.eq(class).unsqueeze(1))
                .to_vec()
                .chunks(2)
                .map(|p| (p[0].into(), p[1].into()))
                .collect::<Vec<_>>()
        };
        let chart = Chart::new(format!("Powers up to {degree}: {right:.1}% right"), "x", "y");
        let chart = chart.ranges(-1.6..2.6, -1.2..1.7).regions(|middles| {
            let middles = Tensor::from_fn([middles.len(), 2], |i| {
                let (x, y) = middles[i[0]];
                [x, y][i[1]] as f32
            });
            let scores = infer(|x| model.forward(x), &powers(&middles, degree));
            scores.argmax(1).iter().map(|class| class as usize).collect()
        });
        charts.push(chart.points("", 0, of(0)).points("", 1, of(1)));
    }
    options.write("boundary.svg", row_svg(&charts)?)?;
    Ok(())
}
