//! The inputs of the checks: values of a domain, in tensors of all kinds of shapes and layouts.

use wengert::prelude::*;
use wengert::tensor::ops::try_broadcast_shapes;

/// The set of values on which an operation is checked.
#[derive(Clone, Copy, Debug)]
pub enum Domain {
    /// The operation is smooth in these intervals.
    Smooth(&'static [(f64, f64)]),
    /// The operation is smooth in these intervals, except where two elements are equal.
    Distinct(&'static [(f64, f64)]),
    /// The operation is smooth in these intervals, but its values have only nine exact digits.
    Approximate(&'static [(f64, f64)]),
    /// The operation is smooth in these intervals. Its derivative is exact only to single precision, as in PyTorch, and has no derivative
    /// itself.
    Single(&'static [(f64, f64)]),
    /// In these intervals the operation has no derivative with respect to this operand. A request for it returns an error.
    Fixed(&'static [(f64, f64)]),
    /// The operation refuses floating-point numbers.
    Integers,
}

pub use Domain::{Approximate, Distinct, Fixed, Integers, Single, Smooth};

/// Positive and negative values away from 0.
pub const REAL: Domain = Smooth(&[(0.15, 1.6), (-1.7, -0.2)]);
pub const POSITIVE: Domain = Smooth(&[(0.3, 2.5)]);
pub const BETWEEN_ONES: Domain = Smooth(&[(0.1, 0.85), (-0.8, -0.15)]);
pub const PROBABILITY: Domain = Smooth(&[(0.1, 0.9)]);
pub const BETWEEN_INTEGERS: Domain = Smooth(&[(0.1, 0.4), (-1.9, -1.6), (2.6, 2.9), (-0.4, -0.1)]);
pub const UNEQUAL: Domain = Distinct(&[(-1.5, 1.5)]);
/// Values whose quotient by a value of [`NEAR_ONE`] is away from every jump. The quotient is between 2.1 and 2.8, or between -2.8 and -2.1.
pub const QUOTIENT: Domain = Smooth(&[(2.3, 2.6), (-2.6, -2.3)]);
pub const NEAR_ONE: Domain = Smooth(&[(0.95, 1.05)]);

/// The shape of a tensor and its layout in memory.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    Plain(&'static [usize]),
    /// A tensor with this shape that is the transposed view of another tensor.
    Transposed(usize, usize),
    /// A tensor of the first shape, expanded to the second shape.
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

/// The forms that are combined in pairs: a scalar, a vector, sizes of 1 that stretch, different ranks, an empty tensor, and layouts that
/// are not row-major.
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

/// The forms on which only operations on one operand are checked, in addition to the paired forms.
const ALONE: &[Form] = &[Plain(&[2, 0]), Plain(&[1, 2, 1]), Transposed(3, 2), Expanded(&[3], &[2, 3])];

/// Returns every form: the paired forms and the additional ones.
pub fn forms() -> impl Iterator<Item = Form> {
    PAIRED.iter().chain(ALONE).copied()
}

/// Returns every pair of forms that broadcasts, in both orders.
pub fn pairs() -> impl Iterator<Item = (Form, Form)> {
    let all = PAIRED.iter().flat_map(|&left| PAIRED.iter().map(move |&right| (left, right)));
    all.filter(|(left, right)| try_broadcast_shapes([left.shape(), right.shape()]).is_ok())
}

/// Returns a tensor of distinct values of the domain, which an expanded form repeats. Operands with different `phase` have different
/// values.
pub fn tensor(form: Form, domain: Domain, phase: f64) -> Tensor<f64> {
    let (Smooth(intervals) | Distinct(intervals) | Approximate(intervals) | Single(intervals) | Fixed(intervals)) =
        domain
    else {
        panic!("{domain:?} has no points");
    };
    let mut k = 0;
    let mut next = || {
        k += 1;
        // Multiples of the golden ratio modulo 1 are evenly distributed and never equal.
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
