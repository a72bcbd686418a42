//! The reductions. Each reduction is defined in this file only: its name, the initial value of a total, and the function that combines two
//! totals. The loops are in [`kernel::reduce`](crate::kernel::reduce). The loops work for every definition and every element type.
//!
//! A reduction folds a function of two operands, which is associative except for rounding. The same function combines two elements, and the
//! totals of two ranges of elements.

use crate::scalar::element::Semiring;
use crate::scalar::functions::{Binary, names};
use crate::scalar::math::{larger, larger_number, smaller, smaller_number};

names! {
    /// Reductions over some dimensions.
    Reduction {
        /// The sum. The sum of no elements is 0.
        Sum = "sum",
        /// The product. The product of no elements is 1.
        Prod = "prod",
        /// The largest element. If any element is NaN, the result is NaN and its derivative is NaN everywhere.
        Amax = "amax",
        /// The smallest element. If any element is NaN, the result is NaN and its derivative is NaN everywhere.
        Amin = "amin",
        /// Like [`Amax`](Reduction::Amax), but the derivative treats NaN elements as ties.
        Max = "max",
        /// Like [`Amin`](Reduction::Amin), but the derivative treats NaN elements as ties.
        Min = "min",
    }
}

/// Evaluates `$body` with `$fold` as the name of the type that defines the reduction `$op`.
macro_rules! with_fold {
    ($op:expr, $fold:ident => $body:expr) => {
        match $op {
            $crate::Reduction::Sum => {
                type $fold = $crate::scalar::reduction::Sum;
                $body
            }
            $crate::Reduction::Prod => {
                type $fold = $crate::scalar::reduction::Product;
                $body
            }
            $crate::Reduction::Amax | $crate::Reduction::Max => {
                type $fold = $crate::scalar::reduction::Largest;
                $body
            }
            $crate::Reduction::Amin | $crate::Reduction::Min => {
                type $fold = $crate::scalar::reduction::Smallest;
                $body
            }
        }
    };
}

/// Evaluates `$body` as [`with_fold!`](with_fold) does, but for truth values. Their sum is the largest of them, and their product the
/// smallest.
macro_rules! with_fold_of_bool {
    ($op:expr, $fold:ident => $body:expr) => {
        match $op {
            $crate::Reduction::Sum | $crate::Reduction::Amax | $crate::Reduction::Max => {
                type $fold = $crate::scalar::reduction::Largest;
                $body
            }
            $crate::Reduction::Prod | $crate::Reduction::Amin | $crate::Reduction::Min => {
                type $fold = $crate::scalar::reduction::Smallest;
                $body
            }
        }
    };
}

pub(crate) use {with_fold, with_fold_of_bool};

/// The definition of a reduction for elements `T`.
pub(crate) trait Fold<T> {
    /// The initial value of a total, and the total of no elements. Combining another total with it gives the other total, except that a sum
    /// of -0 becomes +0.
    const START: T;
    /// The elementwise function that the reduction folds.
    const FUNCTION: Binary;
    /// The function f for which f(x, n) is the reduction of n elements equal to x. `None` means that this reduction is x.
    const REPEATED: Option<Binary> = None;
    /// True if the total is one of the elements, and is NaN if any element is NaN. Then a loop may search for NaNs separately and combine
    /// elements by [`combine_numbers`](Self::combine_numbers).
    const SELECTS: bool = false;

    /// Combines two totals. Usually, the elements of the first total precede the elements of the second in memory. In some loops, the
    /// elements of the two totals alternate in memory.
    fn combine(x: T, y: T) -> T;

    /// Combines two totals that are not NaN.
    #[inline(always)]
    fn combine_numbers(x: T, y: T) -> T {
        Self::combine(x, y)
    }
}

/// The sum. It starts from +0, as in PyTorch, so the sum of a single element -0 is +0.
pub(crate) struct Sum;

impl<T: Semiring> Fold<T> for Sum {
    const START: T = T::ZERO;
    const FUNCTION: Binary = Binary::Add;
    const REPEATED: Option<Binary> = Some(Binary::Mul);

    #[inline(always)]
    fn combine(x: T, y: T) -> T {
        x.plus(y)
    }
}

pub(crate) struct Product;

impl<T: Semiring> Fold<T> for Product {
    const START: T = T::ONE;
    const FUNCTION: Binary = Binary::Mul;
    const REPEATED: Option<Binary> = Some(Binary::Pow);

    #[inline(always)]
    fn combine(x: T, y: T) -> T {
        x.times(y)
    }
}

/// The largest element. Of two equal totals, `combine` returns the first.
pub(crate) struct Largest;

impl<T: Semiring> Fold<T> for Largest {
    const START: T = T::LOWEST;
    const FUNCTION: Binary = Binary::Maximum;
    const SELECTS: bool = true;

    #[inline(always)]
    fn combine(x: T, y: T) -> T {
        larger(x, y)
    }

    #[inline(always)]
    fn combine_numbers(x: T, y: T) -> T {
        larger_number(x, y)
    }
}

/// The smallest element. Of two equal totals, `combine` returns the first.
pub(crate) struct Smallest;

impl<T: Semiring> Fold<T> for Smallest {
    const START: T = T::HIGHEST;
    const FUNCTION: Binary = Binary::Minimum;
    const SELECTS: bool = true;

    #[inline(always)]
    fn combine(x: T, y: T) -> T {
        smaller(x, y)
    }

    #[inline(always)]
    fn combine_numbers(x: T, y: T) -> T {
        smaller_number(x, y)
    }
}

impl Reduction {
    /// Returns the elementwise function that the reduction folds. An element type supports the reduction if it supports this function.
    pub(crate) fn function(self) -> Binary {
        with_fold!(self, F => <F as Fold<f64>>::FUNCTION)
    }

    /// Returns the function f for which f(x, n) is the reduction of n elements equal to x. `None` means that this reduction is x.
    pub(crate) fn repeated(self) -> Option<Binary> {
        with_fold!(self, F => <F as Fold<f64>>::REPEATED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Semiring>(elements: &[T]) {
        for &op in Reduction::ALL {
            for &x in elements {
                let total = with_fold!(op, F => <F as Fold<T>>::combine(<F as Fold<T>>::START, x));
                assert!(total == x || total.partial_cmp(&x).is_none(), "{op:?} of {x} is {total}");
            }
        }
    }

    #[test]
    fn a_start_changes_no_total() {
        check(&[0.0f32, -1.5, 3.0, f32::MAX, f32::MIN, f32::INFINITY, -f32::INFINITY, f32::NAN]);
        check(&[0.0f64, -1.5, 3.0, f64::MAX, f64::MIN, f64::INFINITY, -f64::INFINITY, f64::NAN]);
        check(&[0i64, 5, -7, i64::MIN, i64::MAX]);
        check(&[0u8, 5, 255]);
        check(&[false, true]);
    }
}
