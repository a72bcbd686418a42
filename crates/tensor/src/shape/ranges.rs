//! Ranges as callers write them: the positions of a slice, and the numbers of `arange`.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::shape::dims::Position;
use crate::{Error, Site, ensure};

/// Positions of a dimension as callers write them: a range, or a range with a step, `(1.., 2)`. Negative ends count from the end, and
/// ends beyond the dimension are clamped, as in Python.
///
/// | Python | here |
/// |---|---|
/// | `1:` | `1..` |
/// | `:-1` | `..-1` |
/// | `1:4` | `1..4`, or `1..=3` |
/// | `1::2` | `(1.., 2)` |
/// | `::2` | `(.., 2)` |
///
/// If the program computes the ends, write a triple `(Some(start), None, step)`, like Python's `slice(start, None, step)`. The numbers of
/// such a triple are of type `isize`. The numbers of a range are of type `isize`, `i32`, `i64` or `usize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first position. `None` means the start of the dimension.
    pub start: Option<isize>,
    /// The position after the last one. `None` means the end of the dimension.
    pub end: Option<isize>,
    /// The distance between neighbouring positions. Operations refuse 0 and negative numbers.
    pub step: isize,
}

impl Span {
    fn new(start: Option<isize>, end: Option<isize>) -> Self {
        Span { start, end, step: 1 }
    }

    /// Returns the end of a range whose last position is `last`. If `last` is -1 (the last position of the dimension), returns `None`,
    /// which means the end of the dimension.
    fn after(last: isize) -> Option<isize> {
        if last == -1 { None } else { Some(last.saturating_add(1)) }
    }
}

impl From<RangeFull> for Span {
    fn from(_: RangeFull) -> Self {
        Span::new(None, None)
    }
}

impl From<(Option<isize>, Option<isize>, isize)> for Span {
    fn from((start, end, step): (Option<isize>, Option<isize>, isize)) -> Self {
        Span { start, end, step }
    }
}

impl<R: Into<Span>, P: Position> From<(R, P)> for Span {
    fn from((range, step): (R, P)) -> Self {
        Span { step: step.position(), ..range.into() }
    }
}

macro_rules! spans {
    ($($range:ident: |$of:ident| $start:expr, $end:expr;)*) => {
        spans!(@each isize $($range: |$of| $start, $end;)*);
        spans!(@each i32 $($range: |$of| $start, $end;)*);
        spans!(@each i64 $($range: |$of| $start, $end;)*);
        spans!(@each usize $($range: |$of| $start, $end;)*);
    };
    (@each $number:ident $($range:ident: |$of:ident| $start:expr, $end:expr;)*) => {$(
        impl From<$range<$number>> for Span {
            fn from($of: $range<$number>) -> Self {
                Span::new($start, $end)
            }
        }
    )*};
}

spans! {
    Range: |range| Some(range.start.position()), Some(range.end.position());
    RangeFrom: |range| Some(range.start.position()), None;
    RangeTo: |range| None, Some(range.end.position());
    RangeInclusive: |range| Some(range.start().position()), Span::after(range.end().position());
    RangeToInclusive: |range| None, Span::after(range.end.position());
}

/// Evenly spaced numbers as callers write them: a number of elements `n` (for 0 to n - 1), a range, or a range with a step. The end of a
/// range is excluded. The step is 1 unless it is given, as in `(0.0..1.0, 0.1)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progression(Numbers);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Numbers {
    Integers {
        start: i64,
        end: i64,
        step: i64,
    },
    /// An end of the range or the step is above the largest i64.
    Overflow,
    /// `single` is true if the caller wrote the numbers as f32.
    Floats {
        start: f64,
        end: f64,
        step: f64,
        single: bool,
    },
}

/// The numbers of a [`Progression`]: the first number, the step, and how many numbers there are.
pub(crate) enum Series {
    Integers { start: i64, step: i64, count: usize },
    Floats { start: f64, step: f64, count: usize },
}

impl Progression {
    /// Returns the numbers of the progression. Refuses a step that is 0, NaN or infinite or leads away from the end, and floating-point ends
    /// that are not finite. Refuses numbers of type `usize` above the largest i64. The error messages are PyTorch's.
    pub(crate) fn resolve(self, at: Site) -> Result<Series, Error> {
        let sign = "upper bound and lower bound inconsistent with step sign";
        match self.0 {
            Numbers::Overflow => Err(Error::argument(at, "value cannot be converted to type int64_t without overflow")),
            Numbers::Integers { start, end, step } => {
                ensure!(step != 0, at, "step must be nonzero");
                ensure!(if step > 0 { end >= start } else { end <= start }, at, "{sign}");
                let count = start.abs_diff(end).div_ceil(step.unsigned_abs());
                // A count that does not fit into `usize` becomes `usize::MAX`, which the caller refuses as a size.
                Ok(Series::Integers { start, step, count: usize::try_from(count).unwrap_or(usize::MAX) })
            }
            Numbers::Floats { start, end, step, single } => {
                ensure!(start.is_finite() && end.is_finite(), at, "unsupported range: {start} -> {end}");
                ensure!(step != 0.0 && !step.is_nan(), at, "step must be nonzero");
                ensure!(step.is_finite(), at, "step must be finite but got {step}");
                ensure!(if step > 0.0 { end >= start } else { end <= start }, at, "{sign}");
                // The conversion saturates. A count that does not fit into `usize` becomes `usize::MAX`, which the caller refuses as a
                // size.
                let mut count = ((end - start) / step).ceil() as usize;
                // In f64, three times 0.1_f32 is slightly less than 0.3_f32. In f32 they are equal, and the end is excluded.
                let last = |count: usize| (start + (count - 1) as f64 * step) as f32;
                let reaches_end = |last: f32| if step > 0.0 { last >= end as f32 } else { last <= end as f32 };
                if single && count > 0 && reaches_end(last(count)) {
                    count -= 1;
                }
                Ok(Series::Floats { start, step, count })
            }
        }
    }
}

/// Implements the conversions from ranges, with and without a step.
macro_rules! progressions {
    ($number:ty: |$start:ident, $end:ident, $step:ident| $numbers:expr) => {
        impl From<Range<$number>> for Progression {
            fn from(range: Range<$number>) -> Self {
                Progression::from((range, 1 as $number))
            }
        }

        impl From<(Range<$number>, $number)> for Progression {
            fn from((Range { start: $start, end: $end }, $step): (Range<$number>, $number)) -> Self {
                Progression($numbers)
            }
        }
    };
}

progressions!(i64: |start, end, step| Numbers::Integers { start, end, step });
progressions!(i32: |start, end, step| Numbers::Integers { start: start.into(), end: end.into(), step: step.into() });
progressions!(usize: |start, end, step| {
    match [start, end, step].map(i64::try_from) {
        [Ok(start), Ok(end), Ok(step)] => Numbers::Integers { start, end, step },
        _ => Numbers::Overflow,
    }
});
progressions!(f64: |start, end, step| Numbers::Floats { start, end, step, single: false });
progressions!(f32: |start, end, step| {
    Numbers::Floats { start: start.into(), end: end.into(), step: step.into(), single: true }
});

/// Implements the conversion from a number of elements `n`, for the numbers 0 to n - 1.
macro_rules! counts {
    ($($number:ty)*) => {$(
        impl From<$number> for Progression {
            fn from(end: $number) -> Self {
                Progression::from(0..end)
            }
        }
    )*};
}

counts!(usize i32 i64);

#[cfg(test)]
#[allow(clippy::reversed_empty_ranges)] // Reversed ranges are among the cases.
mod tests {
    use super::*;
    use crate::prelude::*;

    #[test]
    fn ranges_of_all_types_are_spans() {
        let span = |start, end, step| Span { start, end, step };
        let table: [(Span, Span); 12] = [
            ((1..).into(), span(Some(1), None, 1)),
            ((..-1).into(), span(None, Some(-1), 1)),
            ((..).into(), span(None, None, 1)),
            ((1usize..4).into(), span(Some(1), Some(4), 1)),
            ((1isize..=3).into(), span(Some(1), Some(4), 1)),
            ((-3..=-1).into(), span(Some(-3), None, 1)),
            ((..=-2).into(), span(None, Some(-1), 1)),
            ((..=usize::MAX).into(), span(None, Some(isize::MAX), 1)),
            ((1.., 2).into(), span(Some(1), None, 2)),
            ((.., 3usize).into(), span(None, None, 3)),
            ((0..4, -1isize).into(), span(Some(0), Some(4), -1)),
            ((Some(1), None, 2).into(), span(Some(1), None, 2)),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn slices_are_pythons() {
        // Python returns the same for list(range(6))[...].
        let x = Tensor::<i64>::arange(6);
        let table = [
            (x.slice(0, 1..), vec![1, 2, 3, 4, 5]),
            (x.slice(0, ..-1), vec![0, 1, 2, 3, 4]),
            (x.slice(0, (1.., 2)), vec![1, 3, 5]),
            (x.slice(0, (.., 4)), vec![0, 4]),
            (x.slice(-1, -2..), vec![4, 5]),
            (x.slice(0, 4..2), vec![]),
            (x.slice(0, -100..=100), vec![0, 1, 2, 3, 4, 5]),
            (x.slice(0, 2..=3usize), vec![2, 3]),
            (x.slice(0, (Some(1), Some(-1), 2)), vec![1, 3]),
        ];
        for (found, expected) in table {
            assert_eq!(found.to_vec(), expected);
        }
        assert!(x.try_slice(0, (.., 0)).is_err() && x.try_slice(0, (.., -1)).is_err());
    }

    #[test]
    fn numbers_in_steps_are_pytorchs() {
        // PyTorch returns the same for torch.arange(...), apart from the last case, which is at the limits of i64.
        assert_eq!(Tensor::<i64>::arange(2..5).to_vec(), [2, 3, 4]);
        assert_eq!(Tensor::<i64>::arange((5..0, -2)).to_vec(), [5, 3, 1]);
        assert_eq!(Tensor::<u8>::arange((0usize..6, 3)).to_vec(), [0, 3]);
        assert_eq!(Tensor::<f32>::arange(-1..2).to_vec(), [-1.0, 0.0, 1.0]);
        assert_eq!(Tensor::<f64>::arange((0.0..1.0, 0.25)).to_vec(), [0.0, 0.25, 0.5, 0.75]);
        assert_eq!(Tensor::<f64>::arange((1.0..0.0, -0.5)).to_vec(), [1.0, 0.5]);
        assert_eq!(Tensor::<f32>::arange(0.5..3.0).to_vec(), [0.5, 1.5, 2.5]);
        assert_eq!(Tensor::<f64>::arange((0.0..0.3, 0.1)).to_vec(), [0.0, 0.1, 0.2]);
        assert_eq!(Tensor::<f32>::arange((0f32..0.3, 0.1)).to_vec(), [0.0, 0.1, 0.2]);
        assert_eq!(Tensor::<f32>::arange((0f32..0.6, 0.2)).to_vec(), [0.0, 0.2, 0.4]);
        assert_eq!(Tensor::<f32>::arange((0f32..-0.6, -0.2)).to_vec(), [0.0, -0.2, -0.4]);
        assert_eq!(Tensor::<f32>::arange((0f32..1e30, 1e30)).to_vec(), [0.0]);
        assert_eq!(Tensor::<i64>::arange(3..3).shape(), &[0]);
        assert_eq!(Tensor::<i64>::arange((i64::MIN..i64::MAX, i64::MAX)).to_vec(), [i64::MIN, -1, i64::MAX - 1]);
    }

    #[test]
    fn ranges_without_an_end_are_refused() {
        let refused = |range: Progression| Tensor::<f64>::try_arange(range).unwrap_err().sentence();
        assert_eq!(refused((0..4, 0).into()), "step must be nonzero");
        assert_eq!(refused((0.0..4.0, f64::NAN).into()), "step must be nonzero");
        assert_eq!(refused((0..4, -1).into()), "upper bound and lower bound inconsistent with step sign");
        assert_eq!(refused((-1i64).into()), "upper bound and lower bound inconsistent with step sign");
        assert_eq!(refused((0.0..f64::INFINITY).into()), "unsupported range: 0 -> inf");
        assert_eq!(refused((0.0..1.0, f64::INFINITY).into()), "step must be finite but got inf");
        let overflow = "value cannot be converted to type int64_t without overflow";
        assert_eq!(refused((usize::MAX - 2..usize::MAX).into()), overflow);
        assert_eq!(refused((0..usize::MAX, usize::MAX).into()), overflow);
        assert_eq!(refused(usize::MAX.into()), overflow);
        assert!(!refused((0.0..1.0, 1e-300).into()).is_empty());
        assert!(!refused((i64::MIN..i64::MAX).into()).is_empty());
    }
}
