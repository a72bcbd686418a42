//! The data of a constant: a tensor or a number.

use wengert_tensor::plan::Op;
use wengert_tensor::{Float, Site, Tensor};

use crate::{Error, Tape, Var};

/// The data of [`Tape::constant`]: a tensor, by reference or by value, or a number of type f64, f32, i64, i32 or usize.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no constant of a tape of `{T}`",
    label = "write a tensor of `{T}`, as in `tape.constant(&x)`, or a number",
    note = "put each tensor of a tuple on the tape: `|model, tape, (a, b)| model.forward(tape.constant(a), tape.constant(b))`",
    note = "the element type of a tensor is converted with `x.cast::<{T}>()`; a parameter is put on the tape with `tape.parameter(&p)`"
)]
pub trait Constant<T: Float> {
    /// Records the data on `tape`. Returns an error if the tape is full.
    #[doc(hidden)]
    fn record(self, tape: &Tape<T>, at: Site) -> Result<Var<'_, T>, Error>;
}

impl<T: Float> Constant<T> for &Tensor<T> {
    fn record(self, tape: &Tape<T>, at: Site) -> Result<Var<'_, T>, Error> {
        tape.try_leaf(self, Op::Constant, Some(at))
    }
}

impl<T: Float> Constant<T> for &mut Tensor<T> {
    fn record(self, tape: &Tape<T>, at: Site) -> Result<Var<'_, T>, Error> {
        tape.try_leaf(self, Op::Constant, Some(at))
    }
}

impl<T: Float> Constant<T> for Tensor<T> {
    fn record(self, tape: &Tape<T>, at: Site) -> Result<Var<'_, T>, Error> {
        tape.try_leaf(&self, Op::Constant, Some(at))
    }
}

macro_rules! numbers {
    ($($number:ty: $from:ident;)*) => {$(
        impl<T: Float> Constant<T> for $number {
            fn record(self, tape: &Tape<T>, at: Site) -> Result<Var<'_, T>, Error> {
                tape.try_number(T::$from(self as _), Some(at))
            }
        }
    )*};
}

wengert_tensor::with_number_types!(numbers);
