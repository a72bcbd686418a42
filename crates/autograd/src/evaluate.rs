//! Values of variables: the tape's expression, planned and run by the engine.
//!
//! An evaluation visits only the ancestors of the requested nodes and keeps only the requested values.

use wengert_macros::twins;
use wengert_tensor::ops::Evaluate;
use wengert_tensor::plan::{Expression, Index, Op, plan_for};
use wengert_tensor::{Float, Site, Tensor};

use crate::error::raise;
use crate::tape::Record;
use crate::{Error, Tape, Var};

impl<T: Float> Tape<T> {
    /// The values of `roots`, in order.
    pub(crate) fn evaluate(&self, roots: &[Index], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let values = {
            let record = self.record.borrow();
            let value = |&root: &Index| record.leaf(root).or_else(|| record.values.get(&root).cloned());
            if let Some(known) = roots.iter().map(value).collect() {
                return Ok(known);
            }
            record.run(&plan_for(&record, &record.values, roots), at)?
        };
        let mut record = self.record.borrow_mut();
        for (&root, value) in roots.iter().zip(&values) {
            if record.leaf(root).is_none() {
                record.values.insert(root, value.clone());
            }
        }
        Ok(values)
    }
}

#[twins]
impl<T: Float> Var<'_, T> {
    /// The value, computed now unless it was computed before.
    ///
    /// # Errors
    ///
    /// If there is not enough memory, or a custom operation fails.
    pub fn try_value(self) -> Result<Tensor<T>, Error> {
        let mut values = self.tape.evaluate(&[self.index], Site::here("value"))?;
        Ok(values.swap_remove(0))
    }

    /// The value of a variable that has exactly one element. PyTorch: `item`.
    ///
    /// # Panics
    ///
    /// If there are fewer or more elements than one, or [`value`](Self::value) panics.
    #[track_caller]
    pub fn item(self) -> T {
        let at = Site::here("item");
        let shape = self.shape();
        if shape.numel() != 1 {
            raise(Error::NotOneNumber { shape, at });
        }
        match self.tape.evaluate(&[self.index], at) {
            Ok(values) => values[0].item(),
            Err(error) => raise(error),
        }
    }
}

impl<T: Float> Evaluate<T> for Record<T> {
    type Error = Error;

    fn expression(&self) -> &Expression<T> {
        self
    }

    fn known(&self, node: Index) -> Option<&Tensor<T>> {
        match self.op(node) {
            Op::Constant(number) | Op::Variable(number) => Some(self.leaf_data(number)),
            _ => self.values.get(&node),
        }
    }

    fn site(&self, node: Index) -> Site {
        Site { operation: self.name(node), location: self.location(node) }
    }

    fn run_other(&self, node: Index, operands: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        let Op::Other(number) = self.op(node) else { unreachable!("node %{node} is a primitive") };
        let (value, shape) = (self.operation(number).run(operands)?, self.shape(node));
        if value.shape() != shape {
            let message = format!("'{}' gave a result of shape {}, but said {shape}", self.name(node), value.shape());
            return Err(Error::Refused { message, at: self.site(node) });
        }
        Ok(value)
    }
}

/// The oracle of the tests: the same values, evaluated one node at a time.
#[cfg(test)]
pub(crate) fn one_at_a_time<T: Float>(tape: &Tape<T>, roots: &[Index]) -> Result<Vec<Tensor<T>>, Error> {
    let record = tape.record.borrow();
    let mut values: Vec<Tensor<T>> = Vec::new();
    for index in 0..=roots.iter().copied().max().unwrap_or_default() {
        let operands: Vec<_> = record.operands(index).iter().map(|&input| values[input as usize].clone()).collect();
        values.push(match record.leaf(index) {
            Some(data) => data,
            None => record.compute(index, &operands)?,
        });
    }
    Ok(roots.iter().map(|&root| values[root as usize].clone()).collect())
}

#[cfg(test)]
mod tests;
