//! The methods of variables that return their shape, check their tape or record operations.

use std::fmt;

use wengert_macros::precompiled;
use wengert_tensor::plan::Op;
use wengert_tensor::{Float, Shape, Site};

use crate::error::or_raise;
use crate::{Error, Tape, Var};

impl<T: Float> Tape<T> {
    /// Returns true if `var` was recorded on this tape.
    #[inline]
    pub(crate) fn owns(&self, var: Var<'_, T>) -> bool {
        std::ptr::eq(var.tape, self)
    }

    /// Returns an error if one of `vars` belongs to another tape.
    #[inline]
    pub(crate) fn check_owns<'v>(&self, vars: impl IntoIterator<Item = Var<'v, T>>, at: Site) -> Result<(), Error> {
        if vars.into_iter().all(|var| self.owns(var)) { Ok(()) } else { Err(Error::OtherTape { at }) }
    }
}

#[precompiled]
impl<'t, T: Float> Var<'t, T> {
    /// Returns the sizes of the value, which are known before the value is computed.
    #[inline]
    pub fn shape(self) -> Shape {
        self.tape.record.borrow().shape(self.index).clone()
    }

    /// Returns the number of elements. PyTorch: `numel`.
    #[doc(alias("len", "size"))]
    #[inline]
    pub fn numel(self) -> usize {
        self.shape().numel()
    }

    /// Records an operation whose only input is this variable. The result has the same shape.
    #[inline]
    pub(crate) fn record(self, op: Op, at: Site) -> Result<Self, Error> {
        self.tape.push(op, [self.index], |record| record.node(self.index).shape, at)
    }

    /// Records an operation whose only input is this variable. The result has the shape `shape`.
    pub(crate) fn record_over(self, op: Op, shape: &Shape, at: Site) -> Result<Self, Error> {
        self.tape.push(op, [self.index], |record| record.expression.intern(shape), at)
    }

    /// Returns an error if `other` belongs to another tape.
    #[inline]
    pub(crate) fn check_tape(self, other: Self, at: Site) -> Result<(), Error> {
        self.tape.check_owns([other], at)
    }

    /// Returns the variable repeated `size` times along a new first dimension.
    pub(crate) fn repeat_for_batch(self, size: usize, at: Site) -> Result<Self, Error> {
        let shape = self.shape().replaced(0..0, &[size]);
        // This returns an error if a tensor of this shape would be too large.
        wengert_tensor::addressable::<T>(&shape, at)?;
        self.record_over(Op::Expand, &shape, at)
    }

    /// Returns zeros of the same shape as this variable. Only one element is stored.
    #[track_caller]
    pub(crate) fn zeros_like(self) -> Self {
        self.filled(&self.shape(), T::ZERO)
    }

    /// Does the same as [`zeros_like`](Self::zeros_like), but records the zeros at the line of code in `at`, and returns an error if the
    /// tape is full.
    #[inline]
    pub(crate) fn try_zeros_like_at(self, at: Site) -> Result<Self, Error> {
        self.try_filled_like_at(T::ZERO, at)
    }

    /// Returns the number `value` expanded to a shape, on the tape of this variable.
    #[track_caller]
    pub(crate) fn filled(self, shape: &Shape, value: T) -> Self {
        or_raise(self.try_filled_at(shape, value, Site::here("full")))
    }

    /// Does the same as [`filled`](Self::filled), but records the number at the line of code in `at`, and returns an error if the tape is
    /// full.
    pub(crate) fn try_filled_at(self, shape: &Shape, value: T, at: Site) -> Result<Self, Error> {
        let mut record = self.tape.record.borrow_mut();
        let shape = record.expression.intern(shape);
        let index = record.push_filled(value, shape, at).ok_or_else(|| Error::TapeFull { at })?;
        Ok(self.tape.var_of(index))
    }

    /// Does the same as [`try_filled_at`](Self::try_filled_at) for the shape of this variable.
    pub(crate) fn try_filled_like_at(self, value: T, at: Site) -> Result<Self, Error> {
        let mut record = self.tape.record.borrow_mut();
        let shape = record.node(self.index).shape;
        let index = record.push_filled(value, shape, at).ok_or_else(|| Error::TapeFull { at })?;
        Ok(self.tape.var_of(index))
    }
}

#[precompiled]
impl<T: Float> fmt::Debug for Var<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let record = self.tape.record.borrow();
        let (name, shape, location) = (record.name(self.index), record.shape(self.index), record.location(self.index));
        write!(f, "Var<{}> %{} = {name} {shape}, recorded at {location}", T::DTYPE, self.index)
    }
}
