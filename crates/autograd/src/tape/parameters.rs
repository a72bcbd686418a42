//! Records parameters as variables, and binds variables to parameters.

use wengert_macros::{precompiled, twins};
use wengert_tensor::plan::Op;
use wengert_tensor::{Float, Shape, Site, Tensor};

use crate::{Error, Parameter, Tape, Var};

#[twins]
#[precompiled]
impl<'t, T: Float> Tape<T> {
    /// Returns the variable of a parameter, or a constant if the parameter is frozen. Repeated calls return the same variable. If a
    /// variable is bound to the parameter ([`bind`](Self::bind)), returns that variable.
    ///
    /// # Errors
    ///
    /// If the parameter's tensor was changed or replaced after this tape recorded it. Each training step needs its own tape. Also if the tape
    /// is full.
    pub fn try_parameter(&self, parameter: &Parameter<T>) -> Result<Var<'_, T>, Error> {
        self.parameter_at(parameter, Site::here("parameter"))
    }

    /// Does the same as [`try_parameter`](Self::try_parameter), for the operation at `at`. A new leaf gets the line of code in `at`.
    pub(crate) fn parameter_at(&'t self, parameter: &Parameter<T>, at: Site) -> Result<Var<'t, T>, Error> {
        let id = parameter.id();
        if let Some(&(_, index)) = self.record.borrow().bound_parameters.iter().rev().find(|(bound, _)| *bound == id) {
            return Ok(Var::new(self, index));
        }
        let known = self.record.borrow().parameters.iter().find(|(known, _)| *known == id).map(|&(_, index)| index);
        if let Some(index) = known {
            // The tape holds the memory of the recorded values. If the parameter has changed since, its values are in other memory, or it
            // is another view of this memory.
            let recorded = self.record.borrow().leaf(index);
            let value = &parameter.value;
            let is_same = |known: Tensor<T>| known.shares_storage(value) && known.layout() == value.layout();
            if !recorded.is_none_or(is_same) {
                return Err(Error::ParameterChanged { created_at: parameter.created_at(), at });
            }
            return Ok(Var::new(self, index));
        }
        let op = if parameter.is_frozen() { Op::Constant } else { Op::Variable };
        // If the values of a parameter are not in the model's memory (`GradientSink::is_remote`), its tensor is an expanded number that
        // only stands for them. So the recorded program must not use the fact that all its elements are equal.
        let var = self.leaf_without_expansion(&parameter.value, op, Some(at))?;
        self.record.borrow_mut().parameters.push((id, var.index));
        Ok(var)
    }

    /// Replaces a parameter by the variable `value` on this tape. The output of a model is then a function of variables, which can be
    /// differentiated like any other. A later call replaces an earlier one. Operations that are already recorded do not change. PyTorch:
    /// `torch.func.functional_call`.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let w = Parameter::new(Tensor::from([1.0f32, 2.0]));
    /// let tape = Tape::new();
    /// let scale = tape.var(&Tensor::scalar(3.0));
    /// tape.bind(&w, tape.constant(&w.value) * scale);
    /// let y = tape.parameter(&w).sum(..);
    /// assert_eq!(y.item(), 9.0);
    /// assert_eq!(y.grad([scale])[0].item(), 3.0);
    /// ```
    ///
    /// # Errors
    ///
    /// If the variable has another shape than the parameter, or belongs to another tape.
    pub fn try_bind(&self, parameter: &Parameter<T>, value: Var<'_, T>) -> Result<(), Error> {
        self.check_variable_shape("parameter", parameter.value.shape(), value, Site::here("bind"))?;
        self.record.borrow_mut().bound_parameters.push((parameter.id(), value.index));
        Ok(())
    }

    /// Returns an error if a variable belongs to another tape, or if its shape is not `shape`.
    pub(super) fn check_variable_shape(
        &self,
        what: &str,
        shape: &Shape,
        value: Var<'_, T>,
        at: Site,
    ) -> Result<(), Error> {
        self.check_owns([value], at)?;
        let got = value.shape();
        if got != *shape {
            let message = format!(
                "expected a variable of the {what}'s shape {shape}, got one of shape {got}\n  hint: `reshape` or `expand` gives it \
                 this shape"
            );
            return Err(Error::Refused { message, at });
        }
        Ok(())
    }
}
