//! A line search for the strong Wolfe conditions, by cubic interpolation.
//!
//! Nocedal and Wright, "Numerical optimization" (2006), algorithms 3.5 and 3.6, as PyTorch has it (`_strong_wolfe` in
//! `torch/optim/lbfgs.py`, from Torch7's `lswolfe.lua`).

use wengert_tensor::{Float, Tensor};

use crate::Result;

/// How much of the descent that the first slope promises must be there.
const DESCENT: f64 = 1e-4;
/// How much of the first slope may be left.
const CURVATURE: f64 = 0.9;

/// A point on the line.
#[derive(Clone, Debug)]
pub(super) struct Point<T: Float> {
    /// How far from the start, in lengths of the direction.
    pub(super) length: f64,
    pub(super) loss: f64,
    pub(super) gradient: Tensor<T>,
    /// The derivative of the loss along the direction.
    pub(super) slope: f64,
}

/// A point that satisfies the conditions, or the lowest that was seen, and how many were measured. `at` measures the point at a
/// length, `reach` is the largest element of the direction, `limit` the number of points after the first at `length`.
pub(super) fn strong_wolfe<T: Float>(
    at: &mut impl FnMut(f64) -> Result<Point<T>>,
    start: Point<T>,
    length: f64,
    reach: f64,
    tolerance: f64,
    limit: usize,
) -> Result<(Point<T>, usize)> {
    let (loss, slope) = (start.loss, start.slope);
    let descends = |point: &Point<T>| point.loss <= loss + DESCENT * point.length * slope;
    let is_flat = |point: &Point<T>| point.slope.abs() <= -CURVATURE * slope;
    let (mut previous, mut new) = (start.clone(), at(length)?);
    let mut tried = 0;
    // Longer and longer steps, until a minimum is in between.
    let mut bracket = loop {
        if tried >= limit {
            break [start, new];
        }
        if !descends(&new) || tried > 1 && new.loss >= previous.loss {
            break [previous, new];
        }
        if is_flat(&new) {
            return Ok((new, tried + 1));
        }
        if new.slope >= 0.0 {
            break [previous, new];
        }
        let bounds = [new.length + 0.01 * (new.length - previous.length), new.length * 10.0];
        let length = cubic_minimum(&previous, &new, bounds);
        previous = std::mem::replace(&mut new, at(length)?);
        tried += 1;
    };
    // The bracket is made smaller around the minimum.
    let mut stuck = false;
    let mut low = usize::from(bracket[0].loss > bracket[1].loss);
    while tried < limit && (bracket[1].length - bracket[0].length).abs() * reach >= tolerance {
        let [a, b] = [bracket[0].length, bracket[1].length];
        let (least, most) = (a.min(b), a.max(b));
        let mut length = cubic_minimum(&bracket[0], &bracket[1], [least, most]);
        // Near an end of the bracket little is learnt: the second time, or at the end itself, a tenth of it away from there.
        let margin = 0.1 * (most - least);
        let near = (most - length).min(length - least) < margin;
        let at_end = near && (stuck || length >= most || length <= least);
        if at_end {
            length = if (length - most).abs() < (length - least).abs() { most - margin } else { least + margin };
        }
        stuck = near && !at_end;
        let new = at(length)?;
        tried += 1;
        if !descends(&new) || new.loss >= bracket[low].loss {
            bracket[1 - low] = new;
            low = usize::from(bracket[0].loss > bracket[1].loss);
            continue;
        }
        let done = is_flat(&new);
        if !done && new.slope * (bracket[1 - low].length - bracket[low].length) >= 0.0 {
            bracket[1 - low] = bracket[low].clone();
        }
        bracket[low] = new;
        if done {
            break;
        }
    }
    let [first, second] = bracket;
    Ok((if low == 0 { first } else { second }, tried + 1))
}

/// Where the cubic through losses and slopes at two points has its minimum, within `bounds`; their middle if it has none.
fn cubic_minimum<T: Float>(a: &Point<T>, b: &Point<T>, [least, most]: [f64; 2]) -> f64 {
    let (a, b) = if a.length <= b.length { (a, b) } else { (b, a) };
    let d1 = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.length - b.length);
    let square = d1 * d1 - a.slope * b.slope;
    if square < 0.0 || square.is_nan() {
        return (least + most) / 2.0;
    }
    let d2 = square.sqrt();
    let minimum = b.length - (b.length - a.length) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2));
    minimum.max(least).min(most)
}
