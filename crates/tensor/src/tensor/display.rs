//! Prints tensors: a line with type and shape, then the elements in nested brackets with aligned columns, as NumPy prints them.
//!
//! `Display` rounds to at most four decimals. `Debug` writes as many digits as are needed to read the same element back. A precision
//! (`{:.2}`) overrides both. A tensor of more than 1000 elements shows the first and last three along each dimension, or fewer if its rank
//! is high. Only the shown elements are read.

use std::fmt::{self, Debug, Display, LowerExp, Write};
use std::iter::repeat_n;

use crate::{DType, Element, Tensor};

/// The largest number of elements that are shown in full.
const MAX_FULL_ELEMENTS: usize = 1000;

/// The largest number of elements shown at each end of a dimension, if a tensor is not shown in full.
const EDGE_ITEMS: usize = 3;

/// The largest number of elements shown of a tensor that is not shown in full. A tensor of high rank then shows fewer than [`EDGE_ITEMS`]
/// elements at each end.
const MAX_SHOWN_ELEMENTS: usize = 2000;

/// The width of a line, in characters.
const LINE_WIDTH: usize = 80;

/// Writes a line with the type and the shape, such as `Tensor<f32> [4, 3]`, then the rows, for people to read.
///
/// All floats have the same number of decimals: at least one, at most four, and only as many as an element needs. Scientific notation is
/// used if an element reaches 10⁸. It is also used if four decimals do not suffice and an element is below 10⁻⁴ or all are below 0.01.
/// Zeros do not count as small elements here. A tensor of rank 0 is one line.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let x = Tensor::from([[1.5f32, -2.0, 0.25], [100.0, f32::NAN, 1.0 / 3.0]]);
/// let text = "\
/// Tensor<f32> [2, 3]
/// [[  1.5000,  -2.0000,   0.2500],
///  [100.0000,      nan,   0.3333]]";
/// assert_eq!(x.to_string(), text);
/// assert_eq!(format!("{:.1}", x.select(0, 0)), "Tensor<f32> [3]\n[ 1.5, -2.0,  0.2]");
/// ```
impl<T: Element> Display for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tensor(self, f, Some(4))
    }
}

/// Writes the elements like [`Display`], but with all digits that are needed to read the same element back.
impl<T: Element> Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_tensor(self, f, None)
    }
}

fn write_tensor<T: Element>(x: &Tensor<T>, f: &mut fmt::Formatter<'_>, decimals: Option<usize>) -> fmt::Result {
    write!(f, "Tensor<{}> {}", T::DTYPE, x.shape())?;
    let shown = shown_indices(x.shape(), x.numel());
    let values = read_elements(x, &shown);
    let mut cells = format_cells(&values, f.precision(), decimals);
    match shown.len() {
        0 => write!(f, " {}", cells.concat()),
        _ if values.is_empty() => f.write_str("\n[]"),
        _ => {
            let width = cells.iter().map(String::len).max().unwrap_or(0);
            cells.iter_mut().for_each(|cell| *cell = format!("{cell:>width$}"));
            f.write_char('\n')?;
            write_rows(f, &shown, &cells)
        }
    }
}

/// Returns the positions to show in each dimension. `None` stands for positions that are left out.
fn shown_indices(sizes: &[usize], numel: usize) -> Vec<Vec<Option<usize>>> {
    if numel <= MAX_FULL_ELEMENTS {
        let all = |&size: &usize| (0..if numel == 0 { 0 } else { size }).map(Some).collect();
        return sizes.iter().map(all).collect();
    }
    // The number of elements shown at each end of each dimension; 0 means only the first element.
    let mut edges = vec![EDGE_ITEMS; sizes.len()];
    let count = |(&size, &edge): (&usize, &usize)| size.min((2 * edge).max(1));
    while sizes.iter().zip(&edges).map(count).fold(1, usize::saturating_mul) > MAX_SHOWN_ELEMENTS {
        let widest = edges.iter().copied().max().unwrap_or(0);
        match edges.iter().zip(sizes).position(|(&edge, &size)| edge == widest && edge > 0 && size > 1) {
            Some(outermost) => edges[outermost] -= 1,
            None => edges.iter_mut().for_each(|edge| *edge = edge.saturating_sub(1)),
        }
    }
    let positions = |(&size, &edge): (&usize, &usize)| {
        if size <= (2 * edge).max(1) {
            return (0..size).map(Some).collect();
        }
        let head = (0..edge.max(1)).map(Some);
        head.chain([None]).chain((size - edge..size).map(Some)).collect()
    };
    sizes.iter().zip(&edges).map(positions).collect()
}

/// Returns the elements at the shown positions, in row-major order.
fn read_elements<T: Element>(x: &Tensor<T>, shown: &[Vec<Option<usize>>]) -> Vec<T> {
    let positions: Vec<Vec<usize>> = shown.iter().map(|axis| axis.iter().copied().flatten().collect()).collect();
    let count = positions.iter().map(Vec::len).product();
    let mut values = Vec::with_capacity(count);
    let mut index = vec![0; positions.len()];
    for element in 0..count {
        let mut rest = element;
        for (slot, positions) in index.iter_mut().zip(&positions).rev() {
            *slot = positions[rest % positions.len()];
            rest /= positions.len();
        }
        values.extend(x.get(&index));
    }
    values
}

/// The notation of floats. Each variant holds the number of decimals.
#[derive(Clone, Copy)]
enum Notation {
    Fixed(usize),
    Scientific(usize),
}

/// Returns the text of each value. All texts have the same notation. Floats have `precision` decimals; without a precision, `max_decimals`
/// limits the number of decimals.
fn format_cells<T: Element>(values: &[T], precision: Option<usize>, max_decimals: Option<usize>) -> Vec<String> {
    match T::DTYPE {
        DType::F32 => {
            format_floats(&values.iter().map(|x| x.to_f64() as f32).collect::<Vec<_>>(), precision, max_decimals)
        }
        DType::F64 => format_floats(&values.iter().map(|x| x.to_f64()).collect::<Vec<_>>(), precision, max_decimals),
        _ => values.iter().map(T::to_string).collect(),
    }
}

fn format_floats<F: Copy + Display + LowerExp + Into<f64>>(
    values: &[F],
    precision: Option<usize>,
    max_decimals: Option<usize>,
) -> Vec<String> {
    let finite: Vec<F> = values.iter().copied().filter(|&x| x.into().is_finite()).collect();
    let sizes = || finite.iter().map(|&x| x.into().abs()).filter(|&size| size > 0.0);
    let (smallest, largest) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    // Counts the decimals of the shortest text that parses to the same float: 1 for `0.1` and for `1.5e-7`.
    let decimals = |text: String| text.split('e').next().and_then(|x| x.split_once('.')).map_or(0, |(_, x)| x.len());
    let fixed = finite.iter().map(|x| decimals(x.to_string())).max().unwrap_or(0).max(1);
    let scientific = || finite.iter().map(|x| decimals(format!("{x:e}"))).max().unwrap_or(0).max(1);
    let notation = match (precision, max_decimals) {
        (Some(precision), _) if largest < 1e16 => Notation::Fixed(precision),
        (Some(precision), _) => Notation::Scientific(precision),
        // Four decimals would show 10⁻⁵ as 0. If all elements are below 0.01, four decimals would leave few digits, as in 0.00123.
        (None, Some(max_decimals)) => {
            match largest >= 1e8 || fixed > max_decimals && (smallest < 1e-4 || largest < 1e-2) {
                false => Notation::Fixed(fixed.min(max_decimals)),
                true => Notation::Scientific(scientific().min(max_decimals)),
            }
        }
        // The standard library's `Debug` for floats has the same upper bound, and the lower bound 10⁻⁴.
        (None, None) => match largest >= 1e16 || smallest < 1e-5 {
            false => Notation::Fixed(fixed),
            true => Notation::Scientific(scientific()),
        },
    };
    let text = |&x: &F| match notation {
        _ if x.into().is_nan() => "nan".to_owned(),
        _ if x.into().is_infinite() => x.to_string(),
        Notation::Fixed(decimals) => format!("{x:.decimals$}"),
        Notation::Scientific(decimals) => format!("{x:.decimals$e}"),
    };
    values.iter().map(text).collect()
}

/// Writes the texts of the elements (`cells`), which have the same width, in nested brackets.
fn write_rows(f: &mut fmt::Formatter<'_>, shown: &[Vec<Option<usize>>], cells: &[String]) -> fmt::Result {
    let outer = shown.len() - 1;
    let mut rows = cells.chunks(shown[outer].iter().flatten().count());
    // `index` is the index of the next row in `shown`, and `depth` the number of open brackets before it. A recursion could overflow the
    // stack, because a tensor may have any number of dimensions.
    let mut index = vec![0; outer];
    let mut depth = 0usize;
    loop {
        let mut axis = match depth.checked_sub(1).map(|axis| shown[axis][index[axis]]) {
            Some(None) => {
                f.write_str("...")?;
                depth
            }
            _ => {
                repeat_n('[', outer - depth).try_for_each(|bracket| f.write_char(bracket))?;
                write_row(f, &shown[outer], rows.next().unwrap_or(&[]), outer + 1)?;
                outer
            }
        };
        loop {
            if axis == 0 {
                return Ok(());
            }
            axis -= 1;
            index[axis] += 1;
            if index[axis] < shown[axis].len() {
                break;
            }
            index[axis] = 0;
            f.write_char(']')?;
        }
        f.write_char(',')?;
        depth = axis + 1;
        repeat_n('\n', outer - axis).chain(repeat_n(' ', depth)).try_for_each(|space| f.write_char(space))?;
    }
}

/// Writes one row in brackets, with line breaks if it is long. `indent` is the column of the first element, after the opening bracket. Later
/// lines start at the same column.
fn write_row(f: &mut fmt::Formatter<'_>, shown: &[Option<usize>], cells: &[String], indent: usize) -> fmt::Result {
    let mut cells = cells.iter();
    let mut column = indent;
    f.write_char('[')?;
    for (i, position) in shown.iter().enumerate() {
        let cell = if position.is_none() { "..." } else { cells.next().map_or("", String::as_str) };
        if i > 0 {
            f.write_char(',')?;
            // The 1 is for the comma or bracket after the cell.
            if column + 2 + cell.len() + 1 > LINE_WIDTH {
                repeat_n(' ', indent)
                    .fold(f.write_char('\n'), |done, space| done.and_then(|()| f.write_char(space)))?;
                column = indent;
            } else {
                f.write_char(' ')?;
                column += 2;
            }
        }
        f.write_str(cell)?;
        column += cell.len();
    }
    f.write_char(']')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Functions, Views};

    fn count(shape: &[usize]) -> Tensor<i64> {
        let strides = crate::Shape::from(shape).row_major_strides();
        Tensor::from_fn(shape, |index| index.iter().zip(&strides).map(|(&i, &stride)| i as i64 * stride as i64).sum())
    }

    #[test]
    fn whole_texts() {
        let table = [
            (count(&[2, 3]).to_string(), "Tensor<i64> [2, 3]\n[[0, 1, 2],\n [3, 4, 5]]"),
            (count(&[3, 1]).t().flip(1).to_string(), "Tensor<i64> [1, 3]\n[[2, 1, 0]]"),
            (Tensor::scalar(-7i64).to_string(), "Tensor<i64> [] -7"),
            (Tensor::scalar(0.1f32).to_string(), "Tensor<f32> [] 0.1"),
            (Tensor::from([1u8, 20, 255]).to_string(), "Tensor<u8> [3]\n[  1,  20, 255]"),
            (Tensor::from([[true], [false]]).to_string(), "Tensor<bool> [2, 1]\n[[ true],\n [false]]"),
            (Tensor::<f64>::zeros([2, 0]).to_string(), "Tensor<f64> [2, 0]\n[]"),
            (
                Tensor::<f64>::zeros([0usize, 1 << 40, 1 << 40]).to_string(),
                "Tensor<f64> [0, 1099511627776, 1099511627776]\n[]",
            ),
            (
                count(&[2, 2, 1, 2]).to_string(),
                "Tensor<i64> [2, 2, 1, 2]\n[[[[0, 1]],\n\n  [[2, 3]]],\n\n\n [[[4, 5]],\n\n  [[6, 7]]]]",
            ),
            (Tensor::scalar(5i64).expand([1, 1, 1]).to_string(), "Tensor<i64> [1, 1, 1]\n[[[5]]]"),
        ];
        for (text, expected) in table {
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn floats_share_a_notation() {
        let row = |values: &[f64]| Tensor::from(values).to_string().lines().nth(1).unwrap().to_owned();
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        let table: &[(&[f64], &str)] = &[
            (&[1.0, 2.0], "[1.0, 2.0]"),
            (&[1.5, -2.0, 0.25], "[ 1.50, -2.00,  0.25]"),
            (&[1.0 / 3.0, 100.0], "[  0.3333, 100.0000]"),
            (&[0.0, -0.0], "[ 0.0, -0.0]"),
            (&[nan, inf, -inf, 1.0], "[ nan,  inf, -inf,  1.0]"),
            (&[nan], "[nan]"),
            (&[0.001, 0.0005], "[0.0010, 0.0005]"),
            (&[0.5, 0.000_25], "[0.5000, 0.0003]"),
            (&[1.0, 0.000_012_5], "[ 1.00e0, 1.25e-5]"),
            (&[0.001_234_567, 0.0], "[1.2346e-3,  0.0000e0]"),
            (&[99_999_999.0, 1.0], "[99999999.0,        1.0]"),
            (&[1e8, 1.0], "[1.0e8, 1.0e0]"),
            (&[f64::MAX, f64::MIN_POSITIVE], "[ 1.7977e308, 2.2251e-308]"),
        ];
        for (values, expected) in table {
            assert_eq!(row(values), *expected);
        }
    }

    #[test]
    fn every_digit_is_of_the_own_precision() {
        let table = [
            (format!("{:?}", Tensor::from([0.1f32, 1.0 / 3.0])), "Tensor<f32> [2]\n[0.10000000, 0.33333334]"),
            (
                format!("{:?}", Tensor::from([0.1, 1.0 / 3.0])),
                "Tensor<f64> [2]\n[0.1000000000000000, 0.3333333333333333]",
            ),
            (format!("{:?}", Tensor::from([1.0f32, 16_777_216.0])), "Tensor<f32> [2]\n[       1.0, 16777216.0]"),
            (format!("{:?}", Tensor::from([1e-7f32, 2.5])), "Tensor<f32> [2]\n[1.0e-7,  2.5e0]"),
            (format!("{:?}", Tensor::from([true, false])), "Tensor<bool> [2]\n[ true, false]"),
        ];
        for (text, expected) in table {
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn a_precision_is_kept() {
        let table = [
            (format!("{:.3}", Tensor::from([1.0, 1e-6])), "Tensor<f64> [2]\n[1.000, 0.000]"),
            (format!("{:.0}", Tensor::from([2.5, 1e9])), "Tensor<f64> [2]\n[         2, 1000000000]"),
            (format!("{:.1}", Tensor::from([1.0, 1e300])), "Tensor<f64> [2]\n[  1.0e0, 1.0e300]"),
            (format!("{:.2?}", Tensor::scalar(1.0f32 / 3.0)), "Tensor<f32> [] 0.33"),
            (format!("{:.2}", Tensor::from([7i64])), "Tensor<i64> [1]\n[7]"),
        ];
        for (text, expected) in table {
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn long_rows_go_on_below() {
        let text = "\
Tensor<i64> [2, 30]
[[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
  19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29],
 [30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48,
  49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59]]";
        assert_eq!(count(&[2, 30]).to_string(), text);
        let wide = Tensor::from([1.0e-300, 2.0]).expand([1000, 2]).reshape([500, 4]);
        assert!(wide.to_string().lines().all(|line| line.len() <= LINE_WIDTH));
    }

    #[test]
    fn large_tensors_are_elided() {
        let text = "\
Tensor<i64> [100, 4, 100]
[[[    0,     1,     2, ...,    97,    98,    99],
  [  100,   101,   102, ...,   197,   198,   199],
  [  200,   201,   202, ...,   297,   298,   299],
  [  300,   301,   302, ...,   397,   398,   399]],

 [[  400,   401,   402, ...,   497,   498,   499],
  [  500,   501,   502, ...,   597,   598,   599],
  [  600,   601,   602, ...,   697,   698,   699],
  [  700,   701,   702, ...,   797,   798,   799]],

 [[  800,   801,   802, ...,   897,   898,   899],
  [  900,   901,   902, ...,   997,   998,   999],
  [ 1000,  1001,  1002, ...,  1097,  1098,  1099],
  [ 1100,  1101,  1102, ...,  1197,  1198,  1199]],

 ...,

 [[38800, 38801, 38802, ..., 38897, 38898, 38899],
  [38900, 38901, 38902, ..., 38997, 38998, 38999],
  [39000, 39001, 39002, ..., 39097, 39098, 39099],
  [39100, 39101, 39102, ..., 39197, 39198, 39199]],

 [[39200, 39201, 39202, ..., 39297, 39298, 39299],
  [39300, 39301, 39302, ..., 39397, 39398, 39399],
  [39400, 39401, 39402, ..., 39497, 39498, 39499],
  [39500, 39501, 39502, ..., 39597, 39598, 39599]],

 [[39600, 39601, 39602, ..., 39697, 39698, 39699],
  [39700, 39701, 39702, ..., 39797, 39798, 39799],
  [39800, 39801, 39802, ..., 39897, 39898, 39899],
  [39900, 39901, 39902, ..., 39997, 39998, 39999]]]";
        assert_eq!(count(&[100, 4, 100]).to_string(), text);
        let text = "\
Tensor<i64> [1001]
[   0,    1,    2, ...,  998,  999, 1000]";
        assert_eq!(count(&[1001]).to_string(), text);
    }

    #[test]
    fn only_the_shown_elements_are_read() {
        let huge = Tensor::scalar(1.0f32).expand([1isize << 40, 1 << 20]);
        let text = "\
Tensor<f32> [1099511627776, 1048576]
[[1.0, 1.0, 1.0, ..., 1.0, 1.0, 1.0],
 [1.0, 1.0, 1.0, ..., 1.0, 1.0, 1.0],
 [1.0, 1.0, 1.0, ..., 1.0, 1.0, 1.0],
 ...,
 [1.0, 1.0, 1.0, ..., 1.0, 1.0, 1.0],
 [1.0, 1.0, 1.0, ..., 1.0, 1.0, 1.0],
 [1.0, 1.0, 1.0, ..., 1.0, 1.0, 1.0]]";
        assert_eq!(huge.to_string(), text);
    }

    #[test]
    fn tensors_of_high_rank_are_elided() {
        // This tensor has 2⁴⁰ elements, in dimensions of size 2.
        let deep = Tensor::scalar(1u8).expand(vec![2isize; 40]);
        let text = deep.to_string();
        assert!(text.matches('1').count() < 3000 && text.ends_with(" ...]"), "{text}");
        assert_eq!(text.matches('[').count(), text.matches(']').count());
        let deeper = Tensor::scalar(1u8).expand(vec![1isize; 20_000]);
        assert_eq!(deeper.to_string().matches('[').count(), 20_001);
    }

    #[test]
    fn the_shown_elements_choose_the_notation() {
        let x = Tensor::<f64>::linspace(0.0, 1.0, 2001).exp();
        assert_eq!(x.to_string(), "Tensor<f64> [2001]\n[1.0000, 1.0005, 1.0010, ..., 2.7156, 2.7169, 2.7183]");
    }
}
