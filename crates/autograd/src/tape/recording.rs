//! Records leaves (data) and the nodes of operations. Nothing is computed.

use std::rc::Rc;

use smallvec::SmallVec;
use wengert_macros::{precompiled, twins};
use wengert_tensor::plan::{Inputs, NodeIndex, Op, ResultOrigin};
use wengert_tensor::{Float, Shape, Site, Tensor};

use super::constant::Constant;
use crate::tape::{Operation, Record};
use crate::{Error, Tape, Var};

#[twins]
#[precompiled]
impl<'t, T: Float> Tape<T> {
    /// Returns a variable with the values of `data`. Gradients can be taken with respect to it. Nothing is copied.
    ///
    /// # Errors
    ///
    /// If the tape is full.
    pub fn try_var(&self, data: &Tensor<T>) -> Result<Var<'_, T>, Error> {
        self.try_leaf(data, Op::Variable, Some(Site::here("var")))
    }

    /// Returns a variable that stops gradients, for inputs, targets and masks. Its value is a tensor (which is not copied) or a number
    /// (which has no dimensions).
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let tape = Tape::<f64>::new();
    /// let terms = [1.0, 2.0].map(|value| tape.constant(&Tensor::scalar(value)));
    /// assert_eq!(terms.iter().fold(tape.constant(0.0), |sum, term| sum + term).item(), 3.0);
    /// ```
    ///
    /// # Errors
    ///
    /// If the tape is full.
    pub fn try_constant(&self, data: impl Constant<T>) -> Result<Var<'_, T>, Error> {
        data.record(self, Site::here("constant"))
    }

    /// Returns a constant with the values `data`, recorded at the line of code in `at`.
    #[inline]
    pub(crate) fn constant_at(&self, data: &Tensor<T>, at: Site) -> Var<'_, T> {
        self.leaf(data, Op::Constant, Some(at))
    }

    /// Returns a variable like [`var`](Self::var), recorded at the line of code in `at`.
    #[inline]
    pub(crate) fn leaf_at(&self, data: &Tensor<T>, at: Site) -> Var<'_, T> {
        self.leaf(data, Op::Variable, Some(Site { operation: "var", ..at }))
    }

    /// Records data as a leaf. If `at` is `None`, the leaf is a constant that is written in an operation. It then gets the line of code of
    /// this operation when the operation is recorded. Returns an error if the tape is full.
    pub(crate) fn try_leaf(
        &'t self,
        data: &Tensor<T>,
        op: fn(u32) -> Op,
        at: Option<Site>,
    ) -> Result<Var<'t, T>, Error> {
        let leaf = self.leaf_without_expansion(data, op, at)?;
        self.record.borrow_mut().note_expansion(leaf.index, data);
        Ok(leaf)
    }

    /// Records data as a leaf like [`try_leaf`](Self::try_leaf), but never as an expansion of smaller data. The reason is that the
    /// evaluation may read other data of this shape instead.
    pub(crate) fn leaf_without_expansion(
        &'t self,
        data: &Tensor<T>,
        op: fn(u32) -> Op,
        at: Option<Site>,
    ) -> Result<Var<'t, T>, Error> {
        self.record_leaf(at, |record| (op(record.add_data(data.clone())), record.expression.intern(data.shape())))
    }

    /// Records a number as a leaf that stops gradients. If `at` is `None`, the leaf gets the line of code of the operation that reads it
    /// when the operation is recorded. Returns an error if the tape is full.
    pub(crate) fn try_number(&self, value: T, at: Option<Site>) -> Result<Var<'_, T>, Error> {
        self.record_leaf(at, |record| {
            (record.expression.add_number(value.to_f64()), record.expression.intern(&Shape::scalar()))
        })
    }

    /// Records a leaf. `add` stores its data in the record, and returns the leaf's operation and the index of its shape. Returns an error if
    /// the tape is full.
    fn record_leaf(
        &self,
        at: Option<Site>,
        add: impl FnOnce(&mut Record<T>) -> (Op, u32),
    ) -> Result<Var<'_, T>, Error> {
        let pushed = {
            let mut record = self.record.borrow_mut();
            let (op, shape) = add(&mut record);
            record.push(op, [], shape, at.map(|at| at.location))
        };
        match pushed {
            Some(index) => Ok(Var::new(self, index)),
            None => Err(Error::TapeFull { at: at.unwrap_or(Site::here("constant")) }),
        }
    }

    /// Records a custom operation.
    ///
    /// # Errors
    ///
    /// If the operation refuses the inputs' shapes, or no memory can hold a result of its shape. If an input belongs to another tape, or the
    /// tape is full.
    pub fn try_apply(&'t self, operation: impl Operation<T>, inputs: &[Var<'t, T>]) -> Result<Var<'t, T>, Error> {
        let at = Site::here(operation.name());
        self.record_operation(Rc::new(operation), inputs, at)
    }

    /// Returns the inputs and the result of each call of the custom operation `name`, in the order of recording. If a
    /// [`Function`](crate::Function) does not have exactly one result, the result here is a vector of the elements of all its results.
    pub fn calls(&'t self, name: &str) -> Vec<(Vec<Var<'t, T>>, Var<'t, T>)> {
        let record = self.record.borrow();
        let named = |&index: &NodeIndex| matches!(record.op(index), Op::Other(_)) && record.name(index) == name;
        let call =
            |index| (record.operands(index).iter().map(|&input| self.var_of(input)).collect(), self.var_of(index));
        (0..record.len() as NodeIndex).filter(named).map(call).collect()
    }

    /// Records an operation that is an object of the trait [`Operation`]. Such an object may store arguments, such as positions or a stride.
    pub(crate) fn record_operation(
        &'t self,
        operation: Rc<dyn Operation<T>>,
        inputs: &[Var<'t, T>],
        at: Site,
    ) -> Result<Var<'t, T>, Error> {
        let indices = self.owned_indices(inputs, at)?;
        let shapes: SmallVec<[Shape; 2]> = {
            let record = self.record.borrow();
            indices.iter().map(|&index| record.shape(index).clone()).collect()
        };
        let shape = operation.shape(&shapes).map_err(|message| Error::Refused { message, at })?;
        // This returns an error if a tensor of this shape would be too large.
        wengert_tensor::addressable::<T>(&shape, at)?;
        let mut record = self.record.borrow_mut();
        let shape = record.expression.intern(&shape);
        let (name, result_origin) = (operation.name(), operation.result_origin());
        let index = record.push_operation((operation, name), &indices, shape, result_origin, at.location);
        let index = index.ok_or(Error::TapeFull { at })?;
        Ok(Var::new(self, index))
    }

    /// Records the concatenation of `parts` along the dimension `axis`.
    pub(crate) fn record_cat(
        &'t self,
        parts: &[Var<'t, T>],
        axis: usize,
        shape: &Shape,
        at: Site,
    ) -> Result<Var<'t, T>, Error> {
        let indices = self.owned_indices(parts, at)?;
        let mut record = self.record.borrow_mut();
        let shape = record.expression.intern(shape);
        let index = record.push_list(Op::Cat(axis as u32), &indices, shape, ResultOrigin::Computed, at.location);
        let index = index.ok_or(Error::TapeFull { at })?;
        Ok(Var::new(self, index))
    }

    /// Records an operation whose inputs are variables of this tape. `shape` returns the index of the result's shape.
    #[inline]
    pub(crate) fn push<const N: usize>(
        &self,
        op: Op,
        inputs: [NodeIndex; N],
        shape: impl FnOnce(&mut Record<T>) -> u32,
        at: Site,
    ) -> Result<Var<'_, T>, Error> {
        let mut record = self.record.borrow_mut();
        let shape = shape(&mut record);
        match record.push(op, inputs, shape, Some(at.location)) {
            Some(index) => Ok(Var::new(self, index)),
            None => Err(Error::TapeFull { at }),
        }
    }

    fn owned_indices(&self, inputs: &[Var<'_, T>], at: Site) -> Result<Inputs, Error> {
        self.check_owns(inputs.iter().copied(), at)?;
        Ok(inputs.iter().map(|input| input.index).collect())
    }
}
