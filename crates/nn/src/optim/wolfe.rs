//! A line search for the strong Wolfe conditions, by cubic interpolation.
//!
//! Algorithms 3.5 and 3.6 of Nocedal and Wright, "Numerical optimization" (2006), in the form of PyTorch's
//! `_strong_wolfe` (`torch/optim/lbfgs.py`, which follows Torch7's `lswolfe.lua`).

use wengert_tensor::{Float, Tensor};

use crate::Result;

/// The constant c₁ of the first Wolfe condition: the loss must fall by at least c₁ · length · |slope|. Here length is the length of the
/// move, and slope is the derivative of the loss at the start of the move. PyTorch has the same value.
const SUFFICIENT_DECREASE: f64 = 1e-4;
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
pub(super) struct LineSearch<T: Float> {
    pub(super) start: Point<T>,
    /// The largest absolute value of an element of the direction vector.
    pub(super) direction_max_abs: f64,
    /// The search ends when no element of the parameters differs by this value or more between the two ends of the bracket.
    pub(super) tolerance: f64,
    /// The largest number of points that are evaluated after the first one.
    pub(super) max_evaluations: usize,
}

/// The result of the first phase of a search: a point that satisfies both Wolfe conditions, or two points between which the second phase
/// searches. If the first phase ends at the limit of evaluations, there may be no minimum between the two points.
enum Bracket<T: Float> {
    Found(Point<T>),
    Between([Point<T>; 2]),
}

impl<T: Float> LineSearch<T> {
    /// Searches along a line for a point that satisfies the strong Wolfe conditions. Returns this point and the number of evaluated points. If
    /// no point that satisfies the conditions was found, returns the end with the lower loss of the last interval in which it searched.
    ///
    /// `evaluate_at` evaluates the point at a given length from the start. The first length that is tried is `length`.
    pub(super) fn strong_wolfe(
        &self,
        evaluate_at: &mut impl FnMut(f64) -> Result<Point<T>>,
        length: f64,
    ) -> Result<(Point<T>, usize)> {
        let (bracket, n_evaluated) = self.bracket(evaluate_at, length)?;
        match bracket {
            Bracket::Found(point) => Ok((point, n_evaluated + 1)),
            Bracket::Between(bracket) => self.zoom(evaluate_at, bracket, n_evaluated),
        }
    }

    /// Returns true if the first Wolfe condition holds: the loss at `point` is low enough. The bound is rounded to the element type, as in
    /// PyTorch. Without this rounding, no move would satisfy the condition if the loss should fall by less than its rounding error.
    fn has_sufficient_decrease(&self, point: &Point<T>) -> bool {
        let bound = self.start.loss + SUFFICIENT_DECREASE * point.length * self.start.slope;
        point.loss <= T::from_f64(bound).to_f64()
    }

    /// Returns true if the second Wolfe condition holds: the absolute slope at `point` is small enough.
    fn has_small_slope(&self, point: &Point<T>) -> bool {
        point.slope.abs() <= -CURVATURE * self.start.slope
    }

    /// Tries increasing lengths, from `length` on, until a minimum lies between the last two points, a point satisfies
    /// the conditions, or the limit is reached. Returns the bracket, and how many points were evaluated after the first
    /// one.
    fn bracket(
        &self,
        evaluate_at: &mut impl FnMut(f64) -> Result<Point<T>>,
        length: f64,
    ) -> Result<(Bracket<T>, usize)> {
        let (mut previous, mut new) = (self.start.clone(), evaluate_at(length)?);
        let mut n_evaluated = 0;
        loop {
            if n_evaluated >= self.max_evaluations {
                return Ok((Bracket::Between([self.start.clone(), new]), n_evaluated));
            }
            if !self.has_sufficient_decrease(&new) || n_evaluated > 1 && new.loss >= previous.loss {
                return Ok((Bracket::Between([previous, new]), n_evaluated));
            }
            if self.has_small_slope(&new) {
                return Ok((Bracket::Found(new), n_evaluated));
            }
            if new.slope >= 0.0 {
                return Ok((Bracket::Between([previous, new]), n_evaluated));
            }
            let bounds = [new.length + 0.01 * (new.length - previous.length), new.length * 10.0];
            let length = cubic_minimum(&previous, &new, bounds);
            previous = std::mem::replace(&mut new, evaluate_at(length)?);
            n_evaluated += 1;
        }
    }

    /// Narrows `bracket`, two points between which the loss usually has a minimum. Ends at a point that satisfies the Wolfe conditions, with
    /// a very short bracket, or at the limit of evaluations. Returns the better end of the bracket, and the total number of evaluated points
    /// of the search. `n_evaluated` is the number of points that were evaluated before this call, without the first point.
    fn zoom(
        &self,
        evaluate_at: &mut impl FnMut(f64) -> Result<Point<T>>,
        mut bracket: [Point<T>; 2],
        mut n_evaluated: usize,
    ) -> Result<(Point<T>, usize)> {
        let mut was_near_end = false;
        let mut low = usize::from(bracket[0].loss > bracket[1].loss);
        while n_evaluated < self.max_evaluations
            && (bracket[1].length - bracket[0].length).abs() * self.direction_max_abs >= self.tolerance
        {
            let [a, b] = [bracket[0].length, bracket[1].length];
            let (least, most) = (a.min(b), a.max(b));
            let mut length = cubic_minimum(&bracket[0], &bracket[1], [least, most]);
            // A new point near an end of the bracket barely narrows the bracket. The second such point in a row is moved away from the end by a
            // tenth of the bracket. A new point that is the end itself is moved too.
            let margin = 0.1 * (most - least);
            let is_near_end = (most - length).min(length - least) < margin;
            let is_moved = is_near_end && (was_near_end || length >= most || length <= least);
            if is_moved {
                length = if (length - most).abs() < (length - least).abs() { most - margin } else { least + margin };
            }
            was_near_end = is_near_end && !is_moved;
            let new = evaluate_at(length)?;
            n_evaluated += 1;
            if !self.has_sufficient_decrease(&new) || new.loss >= bracket[low].loss {
                bracket[1 - low] = new;
                low = usize::from(bracket[0].loss > bracket[1].loss);
                continue;
            }
            let is_found = self.has_small_slope(&new);
            if !is_found && new.slope * (bracket[1 - low].length - bracket[low].length) >= 0.0 {
                bracket[1 - low] = bracket[low].clone();
            }
            bracket[low] = new;
            if is_found {
                break;
            }
        }
        let [first, second] = bracket;
        Ok((if low == 0 { first } else { second }, n_evaluated + 1))
    }
}

/// Returns the length at which the cubic through the losses and slopes of two points has its minimum, limited to the range from `least` to
/// `most`. Returns the middle of these bounds if the cubic has no minimum.
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
