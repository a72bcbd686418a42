//! A line search for the strong Wolfe conditions, by cubic interpolation.
//!
//! Algorithms 3.5 and 3.6 of Nocedal and Wright, "Numerical optimization" (2006), in the form of PyTorch's
//! `_strong_wolfe` (`torch/optim/lbfgs.py`, which follows Torch7's `lswolfe.lua`).

use wengert_tensor::{Float, Tensor};

use crate::Result;

/// The constant c₁ of the first Wolfe condition: the loss must fall by at least c₁ · length · |slope|. Here length is the length of the
/// move, and slope is the derivative of the loss at the start of the move. PyTorch has the same value.
const DESCENT: f64 = 1e-4;
/// The constant c₂ of the second Wolfe condition. The absolute slope of the loss at the end of a move may be at most c₂ times the absolute
/// slope at its start. PyTorch has the same value.
const CURVATURE: f64 = 0.9;

/// A point on the line of the search, with the loss and the gradient at this point.
#[derive(Clone, Debug)]
pub(super) struct Point<T: Float> {
    /// The distance from the start of the line, as a multiple of the direction vector.
    pub(super) length: f64,
    pub(super) loss: f64,
    pub(super) gradient: Tensor<T>,
    /// The derivative of the loss along the direction of the search.
    pub(super) slope: f64,
}

/// The data of a line search: its start point and its limits.
struct Search<T: Float> {
    start: Point<T>,
    /// The largest absolute value of an element of the direction vector.
    largest: f64,
    /// The search ends when no element of the parameters differs by this value or more between the two ends of the bracket.
    tolerance: f64,
    /// The largest number of points that are evaluated after the first one.
    limit: usize,
}

/// The result of the first phase of a search: a point that satisfies both Wolfe conditions, or two points between which the second phase
/// searches. If the first phase ends at the limit of evaluations, there may be no minimum between the two points.
enum Bracket<T: Float> {
    Found(Point<T>),
    Between([Point<T>; 2]),
}

/// Searches along a line for a point that satisfies the strong Wolfe conditions. Returns this point and the number of evaluated points. If
/// no point that satisfies the conditions was found, returns the end with the lower loss of the last interval in which it searched.
///
/// `at` evaluates the point at a given length from `start`. The first length that is tried is `length`. `largest` is the largest absolute value
/// of an element of the direction. `limit` is the largest number of points that are evaluated after the first one.
pub(super) fn strong_wolfe<T: Float>(
    at: &mut impl FnMut(f64) -> Result<Point<T>>,
    start: Point<T>,
    length: f64,
    largest: f64,
    tolerance: f64,
    limit: usize,
) -> Result<(Point<T>, usize)> {
    let search = Search { start, largest, tolerance, limit };
    let (bracket, tried) = search.bracket(at, length)?;
    match bracket {
        Bracket::Found(point) => Ok((point, tried + 1)),
        Bracket::Between(bracket) => search.zoom(at, bracket, tried),
    }
}

impl<T: Float> Search<T> {
    /// Returns true if the first Wolfe condition holds: the loss at `point` is low enough. The bound is rounded to the element type, as in
    /// PyTorch. Without this rounding, no move would satisfy the condition if the loss should fall by less than its rounding error.
    fn descends(&self, point: &Point<T>) -> bool {
        let bound = self.start.loss + DESCENT * point.length * self.start.slope;
        point.loss <= T::from_f64(bound).to_f64()
    }

    /// Returns true if the second Wolfe condition holds: the absolute slope at `point` is small enough.
    fn is_flat(&self, point: &Point<T>) -> bool {
        point.slope.abs() <= -CURVATURE * self.start.slope
    }

    /// Tries increasing lengths, from `length` on, until a minimum lies between the last two points, a point satisfies
    /// the conditions, or the limit is reached. Returns the bracket, and how many points were evaluated after the first
    /// one.
    fn bracket(&self, at: &mut impl FnMut(f64) -> Result<Point<T>>, length: f64) -> Result<(Bracket<T>, usize)> {
        let (mut previous, mut new) = (self.start.clone(), at(length)?);
        let mut tried = 0;
        loop {
            if tried >= self.limit {
                return Ok((Bracket::Between([self.start.clone(), new]), tried));
            }
            if !self.descends(&new) || tried > 1 && new.loss >= previous.loss {
                return Ok((Bracket::Between([previous, new]), tried));
            }
            if self.is_flat(&new) {
                return Ok((Bracket::Found(new), tried));
            }
            if new.slope >= 0.0 {
                return Ok((Bracket::Between([previous, new]), tried));
            }
            let bounds = [new.length + 0.01 * (new.length - previous.length), new.length * 10.0];
            let length = cubic_minimum(&previous, &new, bounds);
            previous = std::mem::replace(&mut new, at(length)?);
            tried += 1;
        }
    }

    /// Narrows `bracket`, two points between which the loss usually has a minimum. Ends at a point that satisfies the Wolfe conditions, with
    /// a very short bracket, or at the limit of evaluations. Returns the better end of the bracket, and the total number of evaluated points
    /// of the search. `tried` is the number of points that were evaluated before this call, without the first point.
    fn zoom(
        &self,
        at: &mut impl FnMut(f64) -> Result<Point<T>>,
        mut bracket: [Point<T>; 2],
        mut tried: usize,
    ) -> Result<(Point<T>, usize)> {
        let mut stuck = false;
        let mut low = usize::from(bracket[0].loss > bracket[1].loss);
        while tried < self.limit && (bracket[1].length - bracket[0].length).abs() * self.largest >= self.tolerance {
            let [a, b] = [bracket[0].length, bracket[1].length];
            let (least, most) = (a.min(b), a.max(b));
            let mut length = cubic_minimum(&bracket[0], &bracket[1], [least, most]);
            // A new point near an end of the bracket barely narrows the bracket. The second such point in a row is moved away from the end by a
            // tenth of the bracket. A new point that is the end itself is moved too.
            let margin = 0.1 * (most - least);
            let near = (most - length).min(length - least) < margin;
            let at_end = near && (stuck || length >= most || length <= least);
            if at_end {
                length = if (length - most).abs() < (length - least).abs() { most - margin } else { least + margin };
            }
            stuck = near && !at_end;
            let new = at(length)?;
            tried += 1;
            if !self.descends(&new) || new.loss >= bracket[low].loss {
                bracket[1 - low] = new;
                low = usize::from(bracket[0].loss > bracket[1].loss);
                continue;
            }
            let done = self.is_flat(&new);
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
}

/// Returns the length at which the cubic through the losses and slopes of two points has its minimum, limited to `least` to `most`. Returns the
/// middle of these bounds if the cubic has no minimum.
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
