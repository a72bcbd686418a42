//! 6. Classes instead of numbers: scores, the softmax, and the cross-entropy.
//!
//! The model gives a score for each class. The softmax turns scores into probabilities: exp(score) / Σ exp(scores). The loss is
//! the mean of -ln(probability of the right class), the cross-entropy. This model is logistic regression. Its boundary is straight
//! in its features, so it separates two moons only if the features contain powers of the coordinates.

use std::process::ExitCode;

use wengert::prelude::*;
use wengert_course::{Options, Result, moons, moons_chart, row_svg, run};

fn main() -> ExitCode {
    let options = Options::new("06_classes", "Two classes of points, and the boundary between them");
    run(options.count("steps", 1000, "Number of steps"), classes)
}

/// Returns all products x^i y^j with i + j from 1 to `degree`: `[n, 2]` to `[n, features]`.
fn powers(points: &Tensor, degree: i32) -> Tensor {
    let (x, y) = (points.select(1, 0), points.select(1, 1));
    let columns = (1..=degree).flat_map(|d| (0..=d).map(move |j| (d - j, j)));
    let columns: Vec<Tensor> = columns.map(|(i, j)| x.pow(i) * y.pow(j)).collect();
    stack(&columns, 1)
}

fn classes(options: &Options) -> Result {
    println!("1. Scores, probabilities, loss\n");
    let scores = Tensor::from([[2.0f32, 0.0], [0.5, 1.5], [1.0, 1.0]]);
    let classes = Tensor::from([0i64, 0, 1]);
    let probabilities = scores.exp() / scores.exp().sum_keepdim(1);
    println!("scores\n{scores}\nprobabilities\n{probabilities}");
    let of_class = probabilities.gather(1, &classes.unsqueeze(1)).squeeze(1); // the probability of the right class
    println!("-ln of the right class's probability: {:.4?}", (-of_class.log()).to_vec());
    let by_hand = -of_class.log().mean(..).item();
    println!("mean {by_hand:.4}; cross_entropy gives {:.4}\n", cross_entropy(&scores, &classes).item());
    assert!((by_hand - cross_entropy(&scores, &classes).item()).abs() < 1e-6);

    println!("2. Two moons\n");
    let generator = &mut Generator::new(options.seed());
    let (points, classes) = moons(400, generator);
    let mut charts = Vec::new();
    for degree in [1, 3] {
        let features = powers(&points, degree);
        let count = features.shape()[1];
        let (mut weights, mut biases) = (Tensor::<f32>::zeros([count, 2]), Tensor::<f32>::zeros([2]));
        let mut last = 0.0;
        for _ in 0..options.get::<usize>("steps") {
            let tape = Tape::new();
            let (w, b) = (tape.var(&weights), tape.var(&biases));
            let scores = tape.constant(&features).matmul(w) + b; // [n, count] times [count, 2]
            let loss = cross_entropy(&scores, &classes);
            let gradients = loss.backward();
            weights -= &(gradients.of(w) * 0.2);
            biases -= &(gradients.of(b) * 0.2);
            last = loss.item();
        }
        let scores = |points: &Tensor| powers(points, degree).matmul(&weights) + &biases;
        let right = 100.0 * accuracy(&scores(&points), &classes);
        println!("powers up to {degree}: {count} features, loss {last:.4}, {right:.1}% right");
        charts.push(moons_chart(format!("Powers up to {degree}: {right:.1}% right"), &points, &classes, scores));
    }
    options.write("boundary.svg", row_svg(&charts)?)
}
