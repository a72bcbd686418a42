//! Finds the origin of a NaN or an infinity.
//!
//! The search evaluates the tape in the order of recording, one operation at a time, and checks every value until it
//! finds the origin. It is slow, and meant for a loss that has become NaN. Recorded derivatives (by `grad`, `vjp`,
//! `jvp`) are checked like all other nodes, and have the line of the operation that they differentiate.

use std::fmt;
use std::panic::Location;

use wengert_macros::{precompiled, twins};
use wengert_tensor::ops::Evaluate;
use wengert_tensor::plan::{NodeIndex, Op};
use wengert_tensor::{Float, Shape, Tensor};

use crate::tape::Record;
use crate::{Error, Tape};

/// The recorded operation that produced the first NaN of a tape from operands without a NaN, or the first infinity from finite operands.
///
/// ```
/// # use wengert_autograd::prelude::*;
/// let tape = Tape::<f64>::new();
/// let x = tape.var(&Tensor::from([4.0, 0.0, 1.0]));
/// let y = (x.log() * x).sum(..);
/// assert!(y.item().is_nan());
///
/// let found = tape.first_non_finite().unwrap();
/// assert_eq!((found.operation, found.value, &found.index[..]), ("log", f64::NEG_INFINITY, &[1][..]));
/// assert_eq!(found.operands[0].at_index, Some(0.0));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NonFinite {
    /// The operation's name, or `variable` if the data of a variable is not finite, or `constant` if the data of a constant has a NaN.
    pub operation: &'static str,
    /// The line of code that recorded the operation.
    pub recorded: &'static Location<'static>,
    /// The index of the operation on the tape, as in the [listing](Tape::graph).
    pub node: usize,
    /// The shape of the operation's result.
    pub shape: Shape,
    /// The index of the first NaN in the result or, if it has none, of the first infinity.
    pub index: Vec<usize>,
    /// The value of the result at `index`: NaN, ∞ or -∞.
    pub value: f64,
    /// The number of NaNs in the result or, if it has none, of infinities.
    pub count: usize,
    /// The operands of the operation.
    pub operands: Vec<NonFiniteOperand>,
}

/// An operand of a [`NonFinite`] operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NonFiniteOperand {
    /// The operation that produced the operand.
    pub operation: &'static str,
    /// The line of code that recorded that operation.
    pub recorded: &'static Location<'static>,
    /// The index of that operation on the tape.
    pub node: usize,
    /// The shape of the operand.
    pub shape: Shape,
    /// The smallest and the largest element of the operand, or `None` if it has no elements. NaN is left out, unless all elements are NaN.
    pub range: Option<[f64; 2]>,
    /// The operand's element at the index of the result's NaN or infinity, if the operand has the shape of the result.
    pub at_index: Option<f64>,
}

#[twins]
impl<T: Float> Tape<T> {
    /// Returns the operation that produced the first NaN from operands without a NaN, or the first infinity from finite operands. Returns
    /// `None` if there is none. PyTorch: `torch.autograd.detect_anomaly`, which checks derivatives only.
    ///
    /// This evaluates the tape one operation at a time up to the operation that it returns, including nodes whose
    /// values were never requested. It takes more time and memory than an ordinary evaluation. Infinite constants are
    /// assumed to be intended, such as a mask of -∞ before a softmax. Infinities computed from them are not reported
    /// either, but a NaN computed from them is reported.
    ///
    /// # Errors
    ///
    /// If there is not enough memory for a value, a custom operation fails, or an operation refuses its operands' values.
    pub fn try_first_non_finite(&self) -> Result<Option<NonFinite>, Error> {
        first_non_finite(self)
    }
}

/// Evaluates the tape one operation at a time. Stops at the first NaN from operands without a NaN, or the first infinity from finite
/// operands, and returns a description of the operation. Infinite constants are not reported. Returns `None` if nothing is found.
#[precompiled]
fn first_non_finite<T: Float>(tape: &Tape<T>) -> Result<Option<NonFinite>, Error> {
    let record = tape.record.borrow();
    let count = record.len() as NodeIndex;
    let mut last_use: Vec<NodeIndex> = (0..count).collect();
    for index in 0..count {
        for input in record.inputs(index) {
            last_use[input as usize] = index;
        }
    }
    let mut values: Vec<Option<(Tensor<T>, NonFiniteContent)>> = Vec::with_capacity(count as usize);
    for index in 0..count {
        let inputs = record.inputs(index);
        let operands: Vec<&(Tensor<T>, NonFiniteContent)> =
            inputs.iter().filter_map(|&input| values[input as usize].as_ref()).collect();
        let value = match record.leaf(index) {
            Some(data) => data,
            None => {
                let values: Vec<_> = operands.iter().map(|(value, _)| value.clone()).collect();
                record.compute(index, &values)?
            }
        };
        let content = NonFiniteContent::new(&value);
        let operands_content =
            operands.iter().fold(NonFiniteContent::default(), |all, (_, content)| all.union(*content));
        let is_constant = matches!(record.node(index).op, Op::Constant(_) | Op::Number(_));
        if (content.has_nan && !operands_content.has_nan)
            || (content.has_infinity && !is_constant && !operands_content.has_infinity && !operands_content.has_nan)
        {
            let operands: Vec<&Tensor<T>> = operands.iter().map(|(value, _)| value).collect();
            return Ok(Some(describe(&record, index, &value, &operands)));
        }
        values.push(Some((value, content)));
        for input in inputs {
            if last_use[input as usize] == index {
                values[input as usize] = None;
            }
        }
    }
    Ok(None)
}

/// The kinds of non-finite elements that occur in a tensor.
#[derive(Clone, Copy, Default)]
struct NonFiniteContent {
    has_nan: bool,
    has_infinity: bool,
}

impl NonFiniteContent {
    fn new<T: Float>(value: &Tensor<T>) -> Self {
        value.iter().filter(|x| !x.is_finite()).fold(NonFiniteContent::default(), |content, x| {
            let has_nan = x.is_nan();
            content.union(NonFiniteContent { has_nan, has_infinity: !has_nan })
        })
    }

    fn union(self, other: NonFiniteContent) -> Self {
        NonFiniteContent {
            has_nan: self.has_nan || other.has_nan,
            has_infinity: self.has_infinity || other.has_infinity,
        }
    }
}

fn describe<T: Float>(record: &Record<T>, index: NodeIndex, value: &Tensor<T>, operands: &[&Tensor<T>]) -> NonFinite {
    // If the result has a NaN, only NaNs are reported. Otherwise infinities are reported.
    let has_nan = value.iter().any(T::is_nan);
    let is_reported = |x: &T| if has_nan { x.is_nan() } else { !x.is_finite() };
    let first = value.iter().position(|x| is_reported(&x)).unwrap_or_default();
    let place = index_of(value.shape(), first);
    let operand = |(input, tensor): (NodeIndex, &&Tensor<T>)| NonFiniteOperand {
        operation: record.name(input),
        recorded: record.location(input),
        node: input as usize,
        shape: tensor.shape().clone(),
        range: tensor.iter().map(T::to_f64).fold(None, |range, x| {
            let [low, high] = range.unwrap_or([x, x]);
            Some([low.min(x), high.max(x)])
        }),
        at_index: (tensor.shape() == value.shape()).then(|| tensor.get(&place)).flatten().map(T::to_f64),
    };
    NonFinite {
        operation: record.name(index),
        recorded: record.location(index),
        node: index as usize,
        shape: value.shape().clone(),
        value: value.get(&place).map_or(f64::NAN, T::to_f64),
        count: value.iter().filter(is_reported).count(),
        operands: record.inputs(index).into_iter().zip(operands).map(operand).collect(),
        index: place,
    }
}

/// Returns the index of the element at a row-major position. The index has one number for each dimension.
pub(crate) fn index_of(shape: &Shape, position: usize) -> Vec<usize> {
    let mut rest = position;
    let mut index = vec![0; shape.rank()];
    for (axis, &size) in shape.iter().enumerate().rev() {
        index[axis] = rest % size;
        rest /= size;
    }
    index
}

impl fmt::Display for NonFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NonFinite { operation, recorded, shape, value, count, node, .. } = self;
        let place = if self.index.is_empty() { String::new() } else { format!(" at {:?}", self.index) };
        if self.operands.is_empty() {
            write!(f, "the {operation} {shape} given at {recorded} holds {value}{place}")?;
        } else {
            write!(f, "'{operation}' made the first {value}{place} of its result {shape}\n  --> {recorded}, %{node}")?;
        }
        if *count > 1 {
            write!(f, "\n  {count} of its {} elements are so", shape.numel())?;
        }
        for (position, operand) in self.operands.iter().enumerate() {
            write!(f, "\n  operand {position}: {} {}", operand.operation, operand.shape)?;
            if let Some([low, high]) = operand.range {
                write!(f, ", from {low} to {high}")?;
            }
            if let Some(value) = operand.at_index {
                write!(f, ", there {value}")?;
            }
            write!(f, ", recorded at {}", operand.recorded)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use crate::Tape;

    #[test]
    fn the_first_of_several_is_found() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([[1.0, 2.0], [-3.0, 0.0]]));
        let y = x.exp() - 1.0;
        let line = line!() + 1;
        let z = (y / x).sqrt().sum(..);
        assert!(z.item().is_nan());
        let found = tape.first_non_finite().unwrap();
        assert_eq!((found.operation, found.recorded.file(), found.recorded.line()), ("div", file!(), line));
        assert_eq!((found.shape.sizes(), &found.index[..], found.count), (&[2, 2][..], &[1, 1][..], 1));
        assert!(found.value.is_nan());
        let [dividend, divisor] = &found.operands[..] else { panic!("{found}") };
        assert_eq!((dividend.operation, dividend.at_index), ("sub", Some(0.0)));
        assert_eq!((divisor.operation, divisor.range, divisor.at_index), ("variable", Some([-3.0, 2.0]), Some(0.0)));
        let text = found.to_string();
        assert!(text.starts_with("'div' made the first NaN at [1, 1] of its result [2, 2]\n  --> "), "{text}");
        assert!(text.contains("operand 1: variable [2, 2], from -3 to 2, there 0, recorded at "), "{text}");
    }

    #[test]
    fn non_finite_data_is_found_as_data() {
        let tape = Tape::<f32>::new();
        let x = tape.var(&Tensor::from([1.0, f32::NAN, f32::NAN]));
        let _ = x.exp();
        let text = tape.first_non_finite().unwrap().to_string();
        assert!(text.starts_with("the variable [3] given at ") && text.contains("holds NaN at [1]"), "{text}");
        assert!(text.ends_with("2 of its 3 elements are so"), "{text}");
    }

    #[test]
    fn an_infinite_mask_is_accepted_but_a_nan_computed_from_it_is_found() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([[1.0, 2.0], [3.0, 4.0]]));
        let some = Tensor::from([[0.0, f64::NEG_INFINITY], [0.0, 0.0]]);
        let _ = (x + &some).softmax(1).logsumexp(..);
        assert!(tape.first_non_finite().is_none());
        let all = Tensor::from([[0.0, 0.0], [f64::NEG_INFINITY, f64::NEG_INFINITY]]);
        let line = line!() + 1;
        let _ = (x + &all).softmax(1);
        let found = tape.first_non_finite().unwrap();
        assert_eq!((found.operation, found.recorded.line(), &found.index[..]), ("sub", line, &[1, 0][..]));
    }

    #[test]
    fn a_derivative_is_found_under_the_line_that_it_derives() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([0.0, 1.0]));
        let line = line!() + 1;
        let y = x.sqrt().sum(..);
        let _ = y.grad([x]);
        let found = tape.first_non_finite().unwrap();
        assert_eq!((found.operation, found.recorded.line(), found.value), ("div", line, f64::INFINITY));
    }

    #[test]
    fn a_tape_of_finite_values_has_none() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::<f64>::zeros([0, 3]));
        let _ = (x.exp() + 1.0).sum(..);
        assert!(tape.first_non_finite().is_none());
    }
}
