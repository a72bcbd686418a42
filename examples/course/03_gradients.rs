//! 3. Gradients: by hand, by differences, and by a tape.
//!
//! A tape records the computation. `grad` walks it backwards and records the derivative on the same tape. The derivative is a
//! variable like any other, and it has derivatives itself.
//!
//! See also `gradient_check`, which compares all derivatives of a function with differences and names a wrong element.

use std::process::ExitCode;

use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, run};

fn main() -> ExitCode {
    run(Options::new("03_gradients", "Derivatives by hand, by differences, and by a tape"), gradients)
}

/// y = sin(x²) eˣ.
fn f(x: f64) -> f64 {
    (x * x).sin() * x.exp()
}

/// The same function of a variable on a tape.
fn recorded(x: Var<'_, f64>) -> Var<'_, f64> {
    x.square().sin() * x.exp()
}

fn gradients(options: &Options) -> Result {
    println!("1. The derivative of sin(x²) eˣ at x = 0.7, three times\n");
    let x = 0.7f64;
    // The chain rule and the product rule on paper: 2x cos(x²) eˣ + sin(x²) eˣ.
    let by_hand = 2.0 * x * (x * x).cos() * x.exp() + f(x);
    let h = 1e-5;
    let by_differences = (f(x + h) - f(x - h)) / (2.0 * h);
    let tape = Tape::<f64>::new();
    let variable = tape.var(&Tensor::scalar(x));
    let [slope] = recorded(variable).grad([variable]);
    println!("   by hand          {by_hand:.12}");
    println!("   by differences   {by_differences:.12}   (wrong from the 12th digit on)");
    println!("   by the tape      {:.12}\n", slope.item());
    assert!((slope.item() - by_hand).abs() < 1e-14);

    println!("2. For a million numbers the tape needs one pass; differences would need two million\n");
    let numbers = Tensor::<f64>::linspace(-1.0, 1.0, 1_000_000);
    let tape = Tape::new();
    let variable = tape.var(&numbers);
    let gradients = recorded(variable).sum(..).backward();
    println!(
        "   {} derivatives, the last {:.6}\n",
        gradients.of(variable).numel(),
        gradients.of(variable).to_vec()[999_999]
    );

    println!("3. A broadcast operand gets a gradient of its own shape: the sum over the expanded dimensions\n");
    let tape = Tape::<f64>::new();
    let (maps, bias) = (tape.var(&Tensor::ones([4, 3, 5, 5])), tape.var(&Tensor::zeros([3, 1, 1])));
    let gradients = (maps + bias).sum(..).backward();
    println!("   bias [3, 1, 1], gradient {:?}: 4 samples x 5 x 5 pixels\n", gradients.of(bias).to_vec());

    println!("4. A derivative is a variable: call `grad` again for its derivative\n");
    let xs = Tensor::<f64>::linspace(-4.0, 4.0, 201);
    let tape = Tape::new();
    let x = tape.var(&xs);
    let mut chart = Chart::new("tanh and its derivatives", "x", "");
    let mut y = x.tanh();
    for (order, name) in ["tanh", "first derivative", "second", "third"].into_iter().enumerate() {
        let points = xs.iter().zip(y.value().to_vec());
        chart = chart.line(name, order, points);
        [y] = y.sum(..).grad([x]);
    }
    options.write("derivatives.svg", chart.to_svg()?)?;
    Ok(())
}
