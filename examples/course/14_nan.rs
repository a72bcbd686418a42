//! 14. Hunting a NaN: a loss that is not a number, and a gradient that is not.
//!
//! NaN ("not a number") is the result of 0 / 0, ∞ - ∞, 0 · ∞ and the logarithm of a negative number. Arithmetic with a
//! NaN gives NaN, so one element spoils all weights in one step. `first_non_finite` runs the tape again, one operation
//! at a time, and names the first operation with a NaN or infinite result, and its line of code.

use std::process::ExitCode;

use wengert::nn::{Fit, Progress};
use wengert::prelude::*;
use wengert_course::{Options, Result, run};

fn main() -> ExitCode {
    run(Options::new("14_nan", "Finds the operation that made a NaN"), hunt)
}

/// Entropy: -Σ p ln p. At p = 0 it computes 0 · ln 0 = 0 · -∞, which is NaN. The limit is 0.
fn entropy(p: Var<'_, f64>) -> Var<'_, f64> {
    -(p * p.log()).sum(..)
}

/// The same, also for p = 0: the logarithm sees 1 instead of 0, so the value and the gradient are finite.
fn safe_entropy(p: Var<'_, f64>) -> Var<'_, f64> {
    -(p * (p + p.value().eq(0.0).cast::<f64>()).log()).sum(..)
}

/// Returns the distances of points `[n, 2]` from the origin.
fn distances(points: Var<'_, f64>) -> Var<'_, f64> {
    points.square().sum(1).sqrt()
}

fn hunt(_options: &Options) -> Result {
    println!("1. A loss that is NaN\n");
    let p = Tensor::from([0.5, 0.5, 0.0]);
    let tape = Tape::<f64>::new();
    let loss = entropy(tape.var(&p));
    println!("   entropy {}", loss.item());
    print_origin(&tape);
    let tape = Tape::<f64>::new();
    println!("   the safe formula: {:.6} = ln 2\n", safe_entropy(tape.var(&p)).item());

    println!("2. A finite loss whose gradient is NaN\n");
    let points = Tensor::from([[3.0, 4.0], [0.0, 0.0]]);
    let tape = Tape::<f64>::new();
    let x = tape.var(&points);
    let loss = distances(x).sum(..);
    let [slope] = loss.grad([x]);
    println!("   loss {}, gradient {:?}", loss.item(), slope.value().to_vec());
    // The root of 0 is 0, but its slope there is infinite: 1 / (2 · 0). Its product with the slope of the square, 0, is NaN.
    print_origin(&tape);
    let tape = Tape::<f64>::new();
    let x = tape.var(&points);
    let [slope] = (x.square().sum(1) + 1e-12).sqrt().sum(..).grad([x]);
    println!("   with 1e-12 under the root: gradient {:.4?}\n", slope.value().to_vec());
    assert!(slope.value().iter().all(f64::is_finite));

    println!("3. `Fit` stops at the step, before the weights are spoiled\n");
    let (x, y) = (Tensor::from([[1.0f32], [5.0], [-5.0]]), Tensor::from([[0.0f32], [0.7], [0.0]]));
    let generator = &mut Generator::new(0);
    let (mut model, mut sgd): (Linear, _) = (Linear::new(1, 1, generator), Sgd::new(0.1));
    let outcome = Fit::new(10).progress(Progress::Quiet).run(
        &mut model,
        &mut sgd,
        &DataLoader::new(Samples::new(x, y)?, 3),
        generator,
        |model, tape, x| model.forward(tape.constant(x)).log(), // the logarithm of a negative number
        |prediction, y: &Tensor| mse_loss(prediction, y),
    );
    match outcome {
        Ok(_) => println!("   no NaN"),
        Err(error) => println!("{}\n", indented(&error.to_string())),
    }
    assert!(model.parameters().iter().all(|parameter| parameter.value.iter().all(f32::is_finite)));
    println!("   The weights are finite, because the step was not made.");
    Ok(())
}

/// Prints the origin of the first NaN or infinity of a tape.
fn print_origin(tape: &Tape<f64>) {
    match tape.first_non_finite() {
        Some(found) => println!("{}\n", indented(&found.to_string())),
        None => println!("   every number is finite\n"),
    }
}

/// Returns a text with indented lines of at most 78 characters.
fn indented(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let mut width = 0;
        for word in line.split(' ') {
            if width + word.len() > 74 || width == 0 {
                lines += if width > 0 { "\n      " } else { "\n   " };
                width = 3;
            } else {
                lines += " ";
            }
            lines += word;
            width += word.len() + 1;
        }
    }
    lines.trim_start_matches('\n').to_owned()
}
