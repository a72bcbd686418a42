//! The gradient check: it compares derivatives with central differences, which use no derivative rules.
//!
//! A function of broadcast operands passes the check, and the program prints the report. Then the derivative of a custom
//! operation has a common mistake: the factor 2 of y² is missing. The check names the element, both numbers, and the faulty
//! operation.

use std::process::ExitCode;

use wengert::autograd::{Call, Error, GradCheck, Operation, assert_gradcheck, gradcheck};
use wengert::prelude::*;
use wengert_options::{Options, run};

/// The operation z = x y², with a correct or a wrong derivative.
struct TimesSquare {
    right: bool,
}

impl Operation<f64> for TimesSquare {
    fn name(&self) -> &'static str {
        "times_square"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<f64>]) -> Result<Tensor<f64>, Error> {
        Ok(inputs[0].try_mul(&inputs[1].try_square()?)?)
    }

    fn vjp<'t>(&self, call: &Call<'t, f64>, input: usize, g: Var<'t, f64>) -> Option<Var<'t, f64>> {
        let (x, y) = (call.input(0), call.input(1));
        Some(match (input, self.right) {
            (0, _) => g * y.square(),
            (_, true) => g * x * y * 2.0,
            (_, false) => g * x * y, // the factor 2 is missing
        })
    }

    fn jvp<'t>(&self, call: &Call<'t, f64>, input: usize, v: Var<'t, f64>) -> Option<Var<'t, f64>> {
        self.vjp(call, input, v) // The operation is elementwise, so both modes have the same formula.
    }
}

fn main() -> ExitCode {
    run(Options::new("gradient_check", "Finds a mistake in a derivative by central differences"), gradient_check)
}

fn gradient_check(_options: &Options) -> wengert_options::Result {
    let x = Tensor::from([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]]);
    let row = Tensor::from([1.0, 2.0, 0.5]);
    let column = Tensor::from([[0.3], [0.7]]);

    println!("1. (x + row) * tanh(column), over [2, 3], [3] and [2, 1], passes at orders 1 and 2, in both modes:\n");
    match gradcheck(|[x, row, column]| (x + row) * column.tanh(), [&x, &row, &column]) {
        Ok(report) => println!("{report}\n"),
        Err(failure) => return Err(failure.into()),
    }

    println!("2. A custom operation with a mistake in its derivative fails:\n");
    let wrong = gradcheck(
        |[x, row]| {
            let y = row.expand(x.shape()); // the only operation that broadcasts
            x.tape().apply(TimesSquare { right: false }, &[x, y]).tanh()
        },
        [&x, &row],
    );
    match wrong {
        Ok(report) => unreachable!("it is wrong: {report}"),
        Err(failure) => println!("{failure}\n"),
    }

    println!("3. The corrected operation passes. In a test, one line is enough:");
    println!("   assert_gradcheck!(|x, y| f(x, y), &x, &y);");
    let y = row.expand(x.shape());
    assert_gradcheck!(|x, y| x.tape().apply(TimesSquare { right: true }, &[x, y]), &x, &y);
    assert_gradcheck!(GradCheck::new().order(1).skip_forward(), |x| x.logsumexp(1), &x);
    Ok(())
}
