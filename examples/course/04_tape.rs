//! 4. Inside the tape: back-propagation by hand, then in a hundred lines, then by Wengert.
//!
//! A computation is a list of small operations. Each operation knows the derivative of its result with respect to its operands.
//! A walk through the list from the end to the beginning multiplies and adds these derivatives. This is back-propagation, or
//! reverse-mode automatic differentiation. The list is called a Wengert list (R. E. Wengert, "A simple automatic derivative
//! evaluation program", 1964).

use std::cell::RefCell;
use std::ops::{Add, Mul};
use std::process::ExitCode;

use wengert::prelude::*;
use wengert_course::{Options, Result, run};

fn main() -> ExitCode {
    run(Options::new("04_tape", "Back-propagation by hand, in a hundred lines, and by a tape"), inside)
}

/// A list of operations, in the order of their computation.
#[derive(Default)]
struct List {
    entries: RefCell<Vec<Entry>>,
}

/// A computed number, and its operands by index, each with the derivative of this number with respect to the operand.
struct Entry {
    value: f64,
    operands: Vec<(usize, f64)>,
}

/// A reference to an entry of a list.
#[derive(Clone, Copy)]
struct Number<'l> {
    list: &'l List,
    index: usize,
}

impl List {
    /// Appends an input, which has no operands.
    fn input(&self, value: f64) -> Number<'_> {
        self.entry(value, Vec::new())
    }

    fn entry(&self, value: f64, operands: Vec<(usize, f64)>) -> Number<'_> {
        let mut entries = self.entries.borrow_mut();
        entries.push(Entry { value, operands });
        Number { list: self, index: entries.len() - 1 }
    }
}

impl<'l> Number<'l> {
    fn value(self) -> f64 {
        self.list.entries.borrow()[self.index].value
    }

    /// Returns the hyperbolic tangent. The derivative of tanh(x) is 1 - tanh(x)².
    fn tanh(self) -> Number<'l> {
        let result = self.value().tanh();
        self.list.entry(result, vec![(self.index, 1.0 - result * result)])
    }

    /// Returns the derivatives of this number with respect to every entry of the list.
    fn backward(self) -> Vec<f64> {
        let entries = self.list.entries.borrow();
        let mut derivatives = vec![0.0; entries.len()];
        derivatives[self.index] = 1.0; // the derivative of a number with respect to itself
        for index in (0..=self.index).rev() {
            for &(operand, local) in &entries[index].operands {
                derivatives[operand] += derivatives[index] * local; // the chain rule
            }
        }
        derivatives
    }
}

impl<'l> Add for Number<'l> {
    type Output = Number<'l>;

    fn add(self, other: Number<'l>) -> Number<'l> {
        self.list.entry(self.value() + other.value(), vec![(self.index, 1.0), (other.index, 1.0)])
    }
}

impl<'l> Mul for Number<'l> {
    type Output = Number<'l>;

    fn mul(self, other: Number<'l>) -> Number<'l> {
        let (x, y) = (self.value(), other.value());
        self.list.entry(x * y, vec![(self.index, y), (other.index, x)])
    }
}

fn inside(options: &Options) -> Result {
    let (w, x, b) = (0.8, -1.5, 0.4);
    println!("y = tanh(w x + b) x at w = {w}, x = {x}, b = {b}\n");

    println!("1. By hand, from the end to the beginning\n");
    let product = w * x;
    let sum = product + b;
    let bent = f64::tanh(sum);
    let y = bent * x;
    println!("   product = {product:.4}, sum = {sum:.4}, bent = {bent:.4}, y = {y:.4}\n");
    let dy_dbent = x;
    let dy_dsum = dy_dbent * (1.0 - bent * bent);
    let dy_db = dy_dsum;
    let dy_dproduct = dy_dsum;
    let dy_dw = dy_dproduct * x;
    let dy_dx = dy_dproduct * w + bent; // x is used twice, so its derivative has two terms
    println!("   dy/dw = {dy_dw:.6}, dy/dx = {dy_dx:.6}, dy/db = {dy_db:.6}\n");

    println!("2. By the list above\n");
    let list = List::default();
    let (lw, lx, lb) = (list.input(w), list.input(x), list.input(b));
    let result = (lw * lx + lb).tanh() * lx;
    let derivatives = result.backward();
    for (index, entry) in list.entries.borrow().iter().enumerate() {
        let [value, derivative] = [entry.value, derivatives[index]];
        println!("   %{index}  value {value:>7.4}  dy/d%{index} {derivative:>7.4}  operands {:.4?}", entry.operands);
    }

    println!("\n3. By Wengert's tape\n");
    let tape = Tape::<f64>::new();
    let [tw, tx, tb] = [w, x, b].map(|number| tape.var(&Tensor::scalar(number)));
    let ty = (tw * tx + tb).tanh() * tx;
    println!("{}", indented(&ty.graph().to_string()));
    options.write("tape.svg", ty.graph().to_svg())?;
    let slopes = ty.grad([tw, tx, tb]);
    println!(
        "\n   dy/dw = {:.6}, dy/dx = {:.6}, dy/db = {:.6}\n",
        slopes[0].item(),
        slopes[1].item(),
        slopes[2].item()
    );
    for (slope, (number, by_hand)) in slopes.iter().zip([(lw, dy_dw), (lx, dy_dx), (lb, dy_db)]) {
        assert!((derivatives[number.index] - by_hand).abs() < 1e-12);
        assert!((slope.item() - by_hand).abs() < 1e-12);
    }

    println!("4. The derivatives are entries, too, so they have derivatives:\n");
    let [curvature] = slopes[0].grad([tw]);
    println!("   d²y/dw² = {:.6}; the tape has {} entries now", curvature.item(), tape.len());
    assert!((curvature.item() - -2.0 * bent * (1.0 - bent * bent) * x * x * x).abs() < 1e-14);
    options.write("derivative.svg", slopes[0].graph().to_svg())
}

/// Returns the lines of a listing, each indented, with the names of files without folders.
fn indented(listing: &str) -> String {
    let short = |line: &str| match line.rsplit_once('/') {
        Some((before, file)) => format!("   {}  {file}", before.rsplit_once("  ").map_or(before, |(text, _)| text)),
        None => format!("   {line}"),
    };
    listing.lines().map(short).collect::<Vec<_>>().join("\n")
}
