//! The supports of distributions and the ranges of parameters, with PyTorch's names for both.

use wengert_special::Array;
use wengert_tensor::ops::{Arithmetic, Comparison, Result};
use wengert_tensor::{Element, Error, Float as _, Scalar, Shape, Site, Tensor, View};

use crate::expression::{Expr, expr};

/// A set that contains all values of a distribution. Outside of the set, the density or probability is 0. The bounds of an interval are
/// arrays, because they may be parameters.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub enum Support<A> {
    /// All numbers.
    Real,
    /// The numbers x > 0.
    Positive,
    /// The numbers x ≥ 0.
    Nonnegative,
    /// The numbers x with low ≤ x ≤ high, where low is the first array and high is the second array.
    Interval(A, A),
    /// The counts 0, 1, 2, …
    Counts,
    /// The integers from 0 to a bound. Each element of the array is the bound for one distribution of the batch.
    CountsTo(A),
    /// The numbers 0 and 1.
    Boolean,
}

impl<A: Array> Support<A> {
    /// Returns true if the support consists of integers.
    pub(crate) fn is_discrete(&self) -> bool {
        matches!(self, Support::Counts | Support::CountsTo(_) | Support::Boolean)
    }

    /// Returns masks of the elements of `x` that are outside of the support. An element is outside if any of the masks is true.
    pub(crate) fn outside(&self, x: &A) -> Result<Vec<A::Mask>, A::Error> {
        let mut masks = self.below(x)?.into_iter().chain(self.above(x)?).collect::<Vec<_>>();
        if self.is_discrete() {
            masks.push(is_fraction(x)?);
        }
        Ok(masks)
    }

    /// Returns the mask of the elements of `x` below the support, or `None` if it has no lower bound.
    pub(crate) fn below(&self, x: &A) -> Result<Option<A::Mask>, A::Error> {
        Ok(match self {
            Support::Real => None,
            Support::Positive => Some(x.try_le(0.0)?),
            Support::Nonnegative | Support::Counts | Support::CountsTo(_) | Support::Boolean => Some(x.try_lt(0.0)?),
            Support::Interval(low, _) => Some(x.try_lt(low)?),
        })
    }

    /// Returns the mask of the elements of `x` above the support, or `None` if the support has no upper bound and contains ∞.
    pub(crate) fn above(&self, x: &A) -> Result<Option<A::Mask>, A::Error> {
        Ok(match self {
            Support::Counts => Some(x.try_ge(f64::INFINITY)?),
            Support::Interval(_, high) | Support::CountsTo(high) => Some(x.try_gt(high)?),
            Support::Boolean => Some(x.try_gt(1.0)?),
            _ => None,
        })
    }

    /// Returns `x`, with a value of the support in place of each element outside, so that formulas and their derivatives are finite.
    pub(crate) fn moved_inside(&self, x: &A, outside: &[A::Mask]) -> Result<A, A::Error> {
        let inside = match self {
            Support::Real => return Ok(x.clone()),
            Support::Positive | Support::Nonnegative => x.try_number(A::Elem::from_f64(1.0))?,
            Support::Counts | Support::CountsTo(_) | Support::Boolean => x.try_number(A::Elem::from_f64(0.0))?,
            Support::Interval(low, high) => (expr(low) + high).get()?.try_mul(0.5)?,
        };
        let mut x = x.clone();
        for mask in outside {
            x = wengert_tensor::ops::try_where_(mask, &inside, &x)?;
        }
        Ok(x)
    }

    /// Returns PyTorch's name of the support as a constraint. Evaluates bounds that are recorded variables.
    pub(crate) fn constraint(&self, at: Site) -> Result<String, A::Error> {
        Ok(match self {
            Support::Real => "Real()".to_owned(),
            Support::Positive => "GreaterThan(lower_bound=0.0)".to_owned(),
            Support::Nonnegative => "GreaterThanEq(lower_bound=0.0)".to_owned(),
            Support::Interval(low, high) => {
                format!("Interval(lower_bound={}, upper_bound={})", bound_text(low, at)?, bound_text(high, at)?)
            }
            Support::Counts => "IntegerGreaterThan(lower_bound=0)".to_owned(),
            Support::CountsTo(high) => format!("IntegerInterval(lower_bound=0, upper_bound={})", bound_text(high, at)?),
            Support::Boolean => "Boolean()".to_owned(),
        })
    }
}

/// Returns the mask of the elements of `x` that are not integers. NaN and infinities are not marked.
pub(crate) fn is_fraction<A: Array>(x: &A) -> Result<A::Mask, A::Error> {
    x.try_gt(&x.try_floor()?)
}

/// Returns the text that PyTorch prints for a bound: the number for rank 0, else the tensor.
pub(crate) fn bound_text<A: Array>(values: &A, at: Site) -> Result<String, A::Error> {
    let values = values.to_tensor(at)?;
    Ok(match values.shape().rank() {
        0 => format!("{:?}", values.item().to_f64()),
        _ => values.to_string(),
    })
}

/// Returns `values`, with `value` in place of the elements where one of the masks is true.
pub(crate) fn fill_masked<A: Array>(values: A, masks: &[A::Mask], value: f64) -> Result<A> {
    masks.iter().fold(expr(&values), |values: Expr<A>, mask| values.masked(mask, value)).get()
}

/// The range of a parameter: the set of values that each element x may have.
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(hidden)]
pub enum ParameterRange {
    /// All numbers.
    Real,
    /// The numbers x > 0.
    Positive,
    /// The numbers x ≥ 0.
    Nonnegative,
    /// The numbers x with 0 ≤ x ≤ 1.
    Unit,
    /// The numbers x with 0 ≤ x < 1.
    BelowOne,
    /// The counts 0, 1, 2, …
    Count,
    /// Vectors of positive numbers along the last dimension.
    Positives,
    /// Vectors of probabilities along the last dimension. The constructor divides them by their sum.
    Probabilities,
}

impl ParameterRange {
    /// Returns true if `x` is in the range.
    fn contains(self, x: f64) -> bool {
        match self {
            ParameterRange::Real => !x.is_nan(),
            ParameterRange::Positive | ParameterRange::Positives => x > 0.0,
            // If the sum of a vector of probabilities was 0, the division has given at least one NaN or -∞, which this comparison refuses.
            // If all elements were negative, they are positive now.
            ParameterRange::Nonnegative | ParameterRange::Probabilities => x >= 0.0,
            ParameterRange::Unit => (0.0..=1.0).contains(&x),
            ParameterRange::BelowOne => (0.0..1.0).contains(&x),
            ParameterRange::Count => x >= 0.0 && x.fract() == 0.0,
        }
    }

    /// Returns PyTorch's name of the range as a constraint.
    fn constraint(self) -> &'static str {
        match self {
            ParameterRange::Real => "Real()",
            ParameterRange::Positive => "GreaterThan(lower_bound=0.0)",
            ParameterRange::Nonnegative => "GreaterThanEq(lower_bound=0.0)",
            ParameterRange::Unit => "Interval(lower_bound=0.0, upper_bound=1.0)",
            ParameterRange::BelowOne => "HalfOpenInterval(lower_bound=0.0, upper_bound=1.0)",
            ParameterRange::Count => "IntegerGreaterThan(lower_bound=0)",
            ParameterRange::Positives => "IndependentConstraint(GreaterThan(lower_bound=0.0), 1)",
            ParameterRange::Probabilities => "Simplex()",
        }
    }
}

/// A parameter: its name, its range and its values.
pub type Parameter<'a, A> = (&'static str, ParameterRange, &'a A);

/// Returns the text that PyTorch prints for a distribution. Each parameter appears with its value, or with its shape if it does not have
/// exactly one value.
fn distribution_text<T: Element>(name: &str, parameters: &[(&'static str, ParameterRange, Tensor<T>)]) -> String {
    let one = |(name, _, values): &(&'static str, ParameterRange, Tensor<T>)| match values.numel() {
        1 => format!("{name}: {:?}", values.iter().next().map_or(0.0, T::to_f64)),
        _ => format!("{name}: torch.Size({:?})", values.shape().to_vec()),
    };
    format!("{name}({})", parameters.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// Returns the text that PyTorch prints for a shape.
fn shape_text(shape: &Shape) -> String {
    match shape[..] {
        [size] => format!("({size},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Returns PyTorch's error if a parameter is outside of its range. Evaluates recorded variables.
pub(crate) fn check_parameters<A: Array>(
    name: &str,
    parameters: &[Parameter<'_, A>],
    at: Site,
) -> Result<(), A::Error> {
    for &(parameter, range, values) in parameters {
        let values = values.to_tensor(at)?;
        let requirement = format!("satisfy the constraint {},", range.constraint());
        let invalid = values.iter().map(Scalar::to_f64).filter(|&x| !range.contains(x)).collect::<Vec<_>>();
        check_parameter((name, parameters), (parameter, &requirement), values.shape(), &invalid, at)?;
    }
    Ok(())
}

/// Returns PyTorch's error if there are `invalid` values in `parameter`, an array of the shape `shape`. `requirement` completes "Expected the
/// parameter to". `name` and `parameters` describe the distribution.
pub(crate) fn check_parameter<A: Array>(
    (name, parameters): (&str, &[Parameter<'_, A>]),
    (parameter, requirement): (&str, &str),
    shape: &Shape,
    invalid: &[f64],
    at: Site,
) -> Result<(), A::Error> {
    if invalid.is_empty() {
        return Ok(());
    }
    let to_values = |&(name, range, x): &Parameter<'_, A>| Ok((name, range, x.to_tensor(at)?));
    let distribution_text =
        distribution_text(name, &parameters.iter().map(to_values).collect::<Result<Vec<_>, A::Error>>()?);
    Err(argument_error(
        at,
        format!(
            "Expected parameter {parameter} (Tensor of shape {}) of distribution {distribution_text} to {requirement} but found invalid \
             values:\n{invalid:?}",
            shape_text(shape)
        ),
    ))
}

/// Returns PyTorch's error if a mask of `outside` is true for an element of `x`, or an element is NaN. Evaluates recorded variables.
pub(crate) fn check_values<A: Array>(
    (name, constraint): (&str, &str),
    parameters: &[Parameter<'_, A>],
    x: &A,
    outside: &[A::Mask],
    at: Site,
) -> Result<(), A::Error> {
    let zeros = x.try_number(A::Elem::from_f64(0.0))?.apply_view(View::Expand(x.shape()), at)?;
    let outside_marks = fill_masked(zeros, outside, 1.0)?.to_tensor(at)?;
    let values = x.to_tensor(at)?;
    let invalid = values.iter().zip(outside_marks.iter()).filter(|(x, mark)| mark.to_f64() != 0.0 || x.is_nan());
    let invalid: Vec<f64> = invalid.map(|(x, _)| x.to_f64()).collect();
    if invalid.is_empty() {
        return Ok(());
    }
    let shape_text = shape_text(values.shape());
    let to_values = |&(name, range, x): &Parameter<'_, A>| Ok((name, range, x.to_tensor(at)?));
    let parameters = parameters.iter().map(to_values).collect::<Result<Vec<_>, A::Error>>()?;
    let distribution_text = distribution_text(name, &parameters);
    Err(argument_error(
        at,
        format!(
            "Expected value argument (Tensor of shape {shape_text}) to be within the support ({constraint}) of the distribution {distribution_text}, \
             but found invalid values:\n{invalid:?}"
        ),
    ))
}

/// Returns the error of an argument with the text `message`, for the call at `at`.
pub(crate) fn argument_error<E: From<Error>>(at: Site, message: impl Into<String>) -> E {
    Error::Argument { message: message.into(), at }.into()
}

/// Returns the shape to which `shapes` broadcast, or an error if they do not broadcast.
pub(crate) fn broadcast_shape<E: From<Error>>(shapes: &[Shape], at: Site) -> std::result::Result<Shape, E> {
    let shapes: Vec<&Shape> = shapes.iter().collect();
    wengert_tensor::broadcast::join(&shapes).map_err(|mismatch| Error::Broadcast(mismatch, at).into())
}
