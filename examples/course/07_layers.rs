//! 7. Layers and an optimiser: a network finds the features by itself.
//!
//! Example 6 needed powers that a person chose. Here a hidden layer computes features, and the training finds them. A `Linear`
//! layer keeps its weights, and the optimiser updates all of them. Without a nonlinear function between them, two layers are
//! only one straight boundary.

use std::process::ExitCode;

use wengert::prelude::*;
use wengert_course::{Options, Result, moons, moons_chart, row_svg, run};

fn main() -> ExitCode {
    let options = Options::new("07_layers", "A network of two layers separates two moons");
    run(options.count("steps", 300, "Number of steps").count("hidden", 16, "Numbers between the layers"), layers)
}

/// Maps points `[n, 2]` to scores `[n, 2]`.
#[derive(Module)]
struct Network {
    first: Linear,
    second: Linear,
    is_bent: bool,
}

impl Network {
    fn new(hidden: usize, is_bent: bool, generator: &mut Generator) -> Self {
        Network { first: Linear::new(2, hidden, generator), second: Linear::new(hidden, 2, generator), is_bent }
    }

    fn forward<'t>(&self, points: Var<'t>) -> Var<'t> {
        let features = self.first.forward(points);
        self.second.forward(if self.is_bent { features.relu() } else { features })
    }
}

fn layers(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let (points, classes) = moons(400, generator);
    let mut charts = Vec::new();
    for (name, is_bent) in [("two layers", false), ("two layers and a ReLU", true)] {
        let mut network = Network::new(options.get("hidden"), is_bent, generator);
        let mut sgd = Sgd::new(0.1).momentum(0.9);
        let mut last = 0.0;
        for _ in 0..options.get::<usize>("steps") {
            let (loss, gradients) = Tape::new()
                .value_and_gradients(|tape| cross_entropy(&network.forward(tape.constant(&points)), &classes));
            sgd.step(&mut network, &gradients);
            last = loss;
        }
        let scores = |points: &Tensor| infer(|points| network.forward(points), points);
        let right = 100.0 * accuracy(&scores(&points), &classes);
        println!("{name}: {} numbers learned, loss {last:.4}, {right:.1}% right", network.num_parameters());
        charts.push(moons_chart(format!("{name}: {right:.1}% right"), &points, &classes, scores));
    }
    options.write("layers.svg", row_svg(&charts)?)
}
