//! Where operations are checked: numbers of a domain, in tensors of every kind of shape and layout.

use wengert::prelude::*;
use wengert::tensor::ops::try_broadcast_shapes;

/// Where an operation is checked.
#[derive(Clone, Copy, Debug)]
pub enum Domain {
    /// Smooth in these intervals.
    Smooth(&'static [(f64, f64)]),
    /// The same, but for elements that are equal: there is a kink where two of them meet.
    Distinct(&'static [(f64, f64)]),
    /// The same; the values are exact to nine digits only.
    Approximate(&'static [(f64, f64)]),
    /// The same; as PyTorch's, its derivative is exact to single precision only, and has no derivative of its own.
    Single(&'static [(f64, f64)]),
    /// In these intervals it has no derivative with respect to this operand, and says so.
    Fixed(&'static [(f64, f64)]),
    /// It has no meaning on floating-point numbers, and says so.
    Integers,
}

pub use Domain::{Approximate, Distinct, Fixed, Integers, Single, Smooth};

/// Anywhere but near 0.
pub const REAL: Domain = Smooth(&[(0.15, 1.6), (-1.7, -0.2)]);
pub const POSITIVE: Domain = Smooth(&[(0.3, 2.5)]);
pub const BETWEEN_ONES: Domain = Smooth(&[(0.1, 0.85), (-0.8, -0.15)]);
pub const PROBABILITY: Domain = Smooth(&[(0.1, 0.9)]);
pub const BETWEEN_INTEGERS: Domain = Smooth(&[(0.1, 0.4), (-1.9, -1.6), (2.6, 2.9), (-0.4, -0.1)]);
pub const UNEQUAL: Domain = Distinct(&[(-1.5, 1.5)]);
/// Divided by a number of [`NEAR_ONE`], between 2.1 and 2.8, or their opposites: away from every jump of the quotient.
pub const QUOTIENT: Domain = Smooth(&[(2.3, 2.6), (-2.6, -2.3)]);
pub const NEAR_ONE: Domain = Smooth(&[(0.95, 1.05)]);

/// A tensor's shape, and how it lies in memory.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    Plain(&'static [usize]),
    /// This shape, as the transpose of another tensor.
    Transposed(usize, usize),
    /// The first shape expanded to the second.
    Expanded(&'static [usize], &'static [usize]),
}

pub use Form::{Expanded, Plain, Transposed};

impl Form {
    pub fn shape(self) -> Shape {
        match self {
            Plain(shape) | Expanded(_, shape) => Shape::from(shape),
            Transposed(rows, columns) => Shape::from([rows, columns]),
        }
    }

    pub fn is_expanded(self) -> bool {
        matches!(self, Expanded(..))
    }
}

/// A number, a line, what grows and what stretches, a gap of ranks, nothing, and layouts that are not row-major.
const PAIRED: &[Form] = &[
    Plain(&[]),
    Plain(&[4]),
    Plain(&[1]),
    Plain(&[0]),
    Plain(&[3, 4]),
    Plain(&[1, 4]),
    Plain(&[3, 1]),
    Plain(&[2, 1, 1]),
    Transposed(3, 4),
    Expanded(&[3, 1], &[3, 4]),
];

/// What one operand is checked with besides.
const ALONE: &[Form] = &[Plain(&[2, 0]), Plain(&[1, 2, 1]), Transposed(3, 2), Expanded(&[3], &[2, 3])];

/// Every form.
pub fn forms() -> impl Iterator<Item = Form> {
    PAIRED.iter().chain(ALONE).copied()
}

/// Every pair of forms that broadcast, each in both orders.
pub fn pairs() -> impl Iterator<Item = (Form, Form)> {
    let all = PAIRED.iter().flat_map(|&left| PAIRED.iter().map(move |&right| (left, right)));
    all.filter(|(left, right)| try_broadcast_shapes([left.shape(), right.shape()]).is_ok())
}

/// Numbers of the domain, no two of them near each other; those of different operands (`phase`) neither.
pub fn tensor(form: Form, domain: Domain, phase: f64) -> Tensor<f64> {
    let (Smooth(intervals) | Distinct(intervals) | Approximate(intervals) | Single(intervals) | Fixed(intervals)) =
        domain
    else {
        panic!("{domain:?} has no points");
    };
    let mut k = 0;
    let mut next = || {
        k += 1;
        // Multiples of the golden ratio, modulo 1: evenly spread, never equal.
        let share = (0.5 + phase + f64::from(k) * 0.618_033_988_749_895).fract();
        let (low, high) = intervals[k as usize % intervals.len()];
        low + (high - low) * share
    };
    match form {
        Plain(shape) => Tensor::from_fn(shape, |_| next()),
        Transposed(rows, columns) => Tensor::from_fn([columns, rows], |_| next()).t(),
        Expanded(from, to) => Tensor::from_fn(from, |_| next()).expand(to),
    }
}
