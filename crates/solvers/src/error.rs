//! Errors of the solvers, as values.

use std::fmt;

use wengert_tensor::Site;

/// The result of a solver.
pub type Result<R, E = Error> = std::result::Result<R, E>;

/// An error of a solver. `Debug` writes the same text as `Display`, so that `main() -> Result` and `unwrap` show this text.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The function of the user cannot be recorded, evaluated or differentiated.
    #[error(transparent)]
    Autograd(#[from] wengert_autograd::Error),

    /// An argument is outside of its domain, or the result of the user's function has a wrong shape.
    #[error("{message}\n  {at}")]
    Argument {
        /// The reason.
        message: String,
        /// The solver, and the line of code that called it.
        at: Site,
    },

    /// A value is NaN or infinite where the solver needs a finite number.
    #[error(
        "{at_what} is not finite\n  {at}\n  hint: is the function defined there? `Tape::first_non_finite` finds the operation"
    )]
    NotFinite {
        /// The value, and the place where it was computed.
        at_what: String,
        /// The solver, and the line of code that called it.
        at: Site,
    },

    /// The step of an initial value problem would be smaller than the resolution of the time.
    #[error(
        "the step at time {time:?} would be {step:e}, too small for the resolution of the time\n  {at}\n  hint: the \
         solution may have a singularity; a stiff problem needs `Method::Rodas4`"
    )]
    StepTooSmall {
        /// The time that was reached.
        time: f64,
        /// The length of the step that the error estimate asks for.
        step: f64,
        /// The solver, and the line of code that called it.
        at: Site,
    },

    /// The largest number of steps, iterations or parts of an interval was reached, or a part is too narrow to be
    /// divided.
    #[error("{count} {unit} did not reach the tolerance: {progress}\n  {at}\n  hint: {hint}")]
    Limit {
        /// The number of steps, iterations or parts.
        count: usize,
        /// The unit of `count`: `steps`, `iterations` or `intervals`.
        unit: &'static str,
        /// The state at the end: the time, error, residual or interval of the root that the solver has reached.
        progress: String,
        /// A remedy.
        hint: &'static str,
        /// The solver, and the line of code that called it.
        at: Site,
    },

    /// The Jacobian is singular or not finite at a point, or so nearly singular that the step is not finite. So Newton's method has no
    /// direction.
    #[error("the Jacobian is singular in iteration {iteration}\n  {at}\n  hint: start from another point")]
    Singular {
        /// The number of iterations before the error.
        iteration: usize,
        /// The solver, and the line of code that called it.
        at: Site,
    },

    /// An iteration cannot reduce the residual further, or a recorded fit or minimum did not converge.
    #[error(
        "no progress after {iterations} iterations: the largest residual is {residual:e}\n  {at}\n  hint: start from \
         another point, or set larger tolerances"
    )]
    NoProgress {
        /// The number of iterations.
        iterations: usize,
        /// The largest absolute value of the residual, or of the gradient for a fit or minimum.
        residual: f64,
        /// The solver, and the line of code that called it.
        at: Site,
    },

    /// The function has the same sign at both ends of an interval.
    #[error("f(a) and f(b) must have different signs: f({a:?}) = {fa:?}, f({b:?}) = {fb:?}\n  {at}")]
    NoBracket {
        /// One end.
        a: f64,
        /// The other end.
        b: f64,
        /// The function at `a`.
        fa: f64,
        /// The function at `b`.
        fb: f64,
        /// The solver, and the line of code that called it.
        at: Site,
    },
}

impl Error {
    /// Returns the first line of the error's text.
    pub fn sentence(&self) -> String {
        self.to_string().lines().next().unwrap_or_default().to_owned()
    }
}

/// Writes the same text as `Display`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<wengert_tensor::Error> for Error {
    fn from(error: wengert_tensor::Error) -> Self {
        Error::Autograd(error.into())
    }
}

/// Converts the error of a solver to an error of the tape on which the solver is a recorded operation.
impl From<Error> for wengert_autograd::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Autograd(error) => error,
            Error::Argument { at, .. }
            | Error::NotFinite { at, .. }
            | Error::StepTooSmall { at, .. }
            | Error::Limit { at, .. }
            | Error::Singular { at, .. }
            | Error::NoProgress { at, .. }
            | Error::NoBracket { at, .. } => wengert_autograd::Error::Refused { message: error.sentence(), at },
        }
    }
}

/// Returns [`Error::Argument`], the error of an unsuitable argument, with this message.
pub(crate) fn argument_error(message: impl Into<String>, at: Site) -> Error {
    Error::Argument { message: message.into(), at }
}

/// Returns an error if an element of `x0`, the start of an iteration, is NaN or infinite. Without this check, an infinite start where the
/// function vanishes would count as a result. `solver` is written in the message.
pub(crate) fn check_start(solver: &str, x0: &[f64], at: Site) -> Result<()> {
    if x0.iter().all(|x| x.is_finite()) {
        return Ok(());
    }
    Err(argument_error(format!("{solver}: x0 must be finite"), at))
}

/// Returns an error if a tolerance is NaN or negative. `solver` and the name of the tolerance are written in the message.
pub(crate) fn check_tolerances(solver: &str, tolerances: &[(&str, f64)], at: Site) -> Result<()> {
    match tolerances.iter().find(|(_, value)| value.is_nan() || *value < 0.0) {
        Some((name, value)) => {
            Err(argument_error(format!("{solver}: {name} must be a number that is not negative, got {value:?}"), at))
        }
        None => Ok(()),
    }
}
