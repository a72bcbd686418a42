//! The results of a gradient check and their text.

use std::fmt;
use std::panic::Location;

use wengert_tensor::Shape;

use crate::Error;

/// The mode in which a derivative was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// The first derivative, computed by `vjp`.
    Reverse,
    /// The first derivative, computed by `jvp`.
    Forward,
    /// The second derivative: the gradient, differentiated by `vjp`.
    ReverseOverReverse,
    /// The second derivative: the gradient, differentiated by `jvp`.
    ForwardOverReverse,
    /// The second derivative: the directional derivative, differentiated by `vjp`.
    ReverseOverForward,
    /// The second derivative: the directional derivative, differentiated by `jvp`.
    ForwardOverForward,
}

impl Mode {
    /// Returns the order of the derivative: 1 or 2.
    pub fn order(self) -> usize {
        if matches!(self, Mode::Reverse | Mode::Forward) { 1 } else { 2 }
    }

    /// Returns the name of the mode in reports.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Reverse => "reverse",
            Mode::Forward => "forward",
            Mode::ReverseOverReverse => "reverse over reverse",
            Mode::ForwardOverReverse => "forward over reverse",
            Mode::ReverseOverForward => "reverse over forward",
            Mode::ForwardOverForward => "forward over forward",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The output or the input of a derivative. It is one element of a tensor, or else a weighted sum of the outputs or a direction of the
/// inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// One element.
    Element {
        /// The position of the tensor in the list of tensors.
        tensor: usize,
        /// The element's index in the tensor.
        index: Vec<usize>,
    },
    /// A random weighted sum of all outputs, or a random direction of all inputs. It replaces single elements if there are too many. The
    /// field is its index.
    Projection(usize),
}

impl Place {
    fn describe(&self, single: &str) -> String {
        match self {
            Place::Element { index, .. } if index.is_empty() => single.to_owned(),
            Place::Element { index, .. } => format!("{single}{index:?}"),
            Place::Projection(number) => format!("{single} along random direction {number}"),
        }
    }

    fn describe_input(&self) -> String {
        match self {
            Place::Element { tensor, .. } => self.describe(&format!("input {tensor}")),
            Place::Projection(_) => self.describe("inputs"),
        }
    }

    fn describe_output(&self, mode: Mode) -> String {
        match (mode, self) {
            (Mode::Reverse | Mode::Forward, _) => self.describe("output"),
            (Mode::ReverseOverForward | Mode::ForwardOverForward, _) => self.describe("directional derivative"),
            (_, Place::Element { tensor, .. }) => self.describe(&format!("(gradient of input {tensor})")),
            (_, Place::Projection(_)) => self.describe("gradient"),
        }
    }
}

/// One derivative, computed by central differences and by the tape's rules.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Derivative {
    /// The mode of the derivative.
    pub mode: Mode,
    /// The differentiated element, or a weighted sum of elements if there are many. At order 1, the elements belong to the function's
    /// output. At order 2, the elements belong to the gradient or to the directional derivative.
    pub output: Place,
    /// The element of the input, or the direction in the input if there are many elements, along which the derivative is taken.
    pub input: Place,
    /// The derivative by central differences.
    pub expected: f64,
    /// The derivative by the tape's rules.
    pub got: f64,
    /// The allowed difference: a bound of the errors of the central difference, plus the rounding errors of the rules.
    pub tolerance: f64,
    /// The slopes on the left side and on the right side of the point, which differ at a kink.
    pub slopes: [f64; 2],
    /// True if the function seems to have a kink at the point: the slopes differ by about the same number at all distances from it.
    pub is_kink: bool,
}

impl Derivative {
    /// Returns the difference of the two derivatives divided by the tolerance. The derivatives disagree if this quotient exceeds 1. The
    /// quotient is infinite if one derivative is NaN.
    pub fn excess(&self) -> f64 {
        let difference = (self.expected - self.got).abs();
        if difference == 0.0 {
            0.0
        } else if difference.is_nan() {
            f64::INFINITY
        } else {
            difference / self.tolerance
        }
    }
}

impl fmt::Display for Derivative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  d {} / d {}, {}",
            self.output.describe_output(self.mode),
            self.input.describe_input(),
            self.mode
        )?;
        writeln!(f, "    expected    {:>22}  (central differences)", format_number(self.expected))?;
        writeln!(f, "    got         {:>22}", format_number(self.got))?;
        let difference = (self.expected - self.got).abs();
        write!(f, "    difference  {difference:>22.1e}  (tolerance {:.1e})", self.tolerance)
    }
}

fn format_number(value: f64) -> String {
    if value == 0.0 || (1e-4..1e6).contains(&value.abs()) { format!("{value:.12}") } else { format!("{value:.12e}") }
}

/// The report of a gradient check that passed.
///
/// `Display` shows the number of compared derivatives, the modes, the independent inputs, and the derivative that came closest to failing.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The modes in which derivatives were checked.
    pub modes: Vec<Mode>,
    /// The number of compared derivatives. It is 0 if there are no elements.
    pub compared: usize,
    /// The derivative that came closest to its tolerance.
    pub worst: Option<Derivative>,
    /// The positions of the inputs on which the output does not depend, according to the tape. Their derivative is zero. The list is empty
    /// if reverse mode is skipped.
    pub independent_inputs: Vec<usize>,
    /// The size of the largest value of the function and its derivatives so far, at least 1.
    pub(super) scale: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modes: Vec<&str> = self.modes.iter().map(|mode| mode.name()).collect();
        let (noun, verb) = if self.compared == 1 { ("derivative", "agrees") } else { ("derivatives", "agree") };
        write!(f, "{} {noun} {verb} with central differences:\n  {}", self.compared, modes.join(", "))?;
        if !self.independent_inputs.is_empty() {
            let which: Vec<String> = self.independent_inputs.iter().map(usize::to_string).collect();
            write!(f, "\n  the output does not depend on input {}", which.join(", "))?;
        }
        match &self.worst {
            Some(worst) => write!(f, "\n  closest to failing:\n{worst}"),
            None => write!(f, "\n  there are no elements to compare"),
        }
    }
}

/// The report of derivatives that disagree with central differences.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The derivative with the largest error relative to its tolerance.
    pub worst: Derivative,
    /// The number of derivatives of this mode that disagree.
    pub failed: usize,
    /// The number of derivatives of this mode that were compared.
    pub compared: usize,
    /// The first recorded operation whose own derivative is wrong, if one is found. Each operation is checked alone,
    /// with the operands that it has on the tape.
    pub culprit: Option<Culprit>,
}

/// A recorded operation and the line of code that recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// The name of the operation.
    pub operation: &'static str,
    /// The line of code that recorded the operation.
    pub recorded: &'static Location<'static>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let worst = &self.worst;
        let order = if worst.mode.order() == 1 { "first" } else { "second" };
        writeln!(
            f,
            "{} of {} {order} derivatives ({}) disagree with central differences; the worst:\n{worst}",
            self.failed, self.compared, worst.mode
        )?;
        if worst.expected != 0.0 && worst.got.is_finite() {
            writeln!(f, "    got/expected {:>21}", format_number(worst.got / worst.expected))?;
        }
        let [left, right] = worst.slopes;
        if worst.is_kink {
            return write!(
                f,
                "  hint: the slope is {left:.6} on one side and {right:.6} on the other: this is no smooth point, and \
                 central differences prove nothing there"
            );
        }
        match &self.culprit {
            Some(Culprit { operation, recorded }) => {
                write!(f, "  the derivative of '{operation}' is wrong by itself; it was recorded at {recorded}")
            }
            None => write!(
                f,
                "  hint: no recorded operation is wrong by itself; is something detached, computed outside of the tape, or \
                 recorded with another derivative (`with_derivative`, `with_value`)?"
            ),
        }
    }
}

/// The reason why a gradient check did not pass.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Derivatives disagree with central differences.
    #[error("gradient check failed: {0}")]
    Mismatch(Box<Mismatch>),

    /// No derivative disagrees, but a tolerance is so wide that the check shows nothing.
    #[error(
        "gradient check undecided: rounding or a kink hides the derivative\n{0}\n  the slope is {left:.6} on one side and \
         {right:.6} on the other\n  hint: scale the function or its inputs nearer to 1, move away from the kink, or choose \
         another step",
        left = .0.slopes[0], right = .0.slopes[1]
    )]
    Undecided(Box<Derivative>),

    /// The result of the function, or at order 2 the result of its derivative, is infinite or NaN.
    #[error("gradient check impossible: {}", non_finite(output, *value, moved, *mode))]
    NonFinite {
        /// The function that has the value: [`Mode::Reverse`] for the checked function, [`Mode::ReverseOverReverse`]
        /// for its gradient, and [`Mode::ReverseOverForward`] for its directional derivative.
        mode: Mode,
        /// The element of the function's result, or at order 2 of its derivative, that is infinite or NaN.
        output: Place,
        /// The value of the element.
        value: f64,
        /// The input that was moved away from the point of the check, and by how much. It is `None` at the point itself.
        moved: Option<(Place, f64)>,
    },

    /// The function, or at order 2 its derivative, returns different results at the same point.
    #[error(
        "gradient check impossible: the function is not repeatable: {} is {first} and then {second} at the same point\n  \
         hint: fix its random numbers",
        output.describe("output")
    )]
    NotRepeatable {
        /// The element of the result that differs.
        output: Place,
        /// The value of the element at the first call of the function.
        first: f64,
        /// The value of the element at the second call of the function.
        second: f64,
    },

    /// The function, or at order 2 its derivative, returns results of different shapes at the same point or at neighbouring points.
    #[error(
        "gradient check impossible: the function returned a result of shape {first} and then of shape {second}\n  hint: \
         the shape may depend neither on the values of the inputs nor on earlier calls"
    )]
    ShapeChanged {
        /// The shape of the first result.
        first: Shape,
        /// The shape of a later result.
        second: Shape,
    },

    /// Neither reverse nor forward mode is to be checked.
    #[error(
        "gradient check impossible: both modes are skipped, so there is nothing to check\n  hint: call only one of \
         `skip_forward` and `skip_reverse`"
    )]
    NoMode,

    /// The function or its derivative could not be recorded or evaluated.
    #[error("gradient check impossible ({mode}): {error}")]
    Refused {
        /// The mode of the derivative that was to be computed. If the function itself fails, it is a reverse mode, even
        /// if reverse mode is skipped.
        mode: Mode,
        /// The error of recording or evaluation.
        error: Error,
    },
}

fn non_finite(output: &Place, value: f64, moved: &Option<(Place, f64)>, mode: Mode) -> String {
    let what = output.describe_output(mode);
    match moved {
        None => format!("{what} is {value}"),
        Some((input, step)) => format!(
            "{what} becomes {value} as {} moves by {step:.1e}\n  hint: the point lies at an edge of the domain; move it \
             inside, or choose a smaller step",
            input.describe_input()
        ),
    }
}
