//! The primitives. A tensor computes them immediately; a recorded variable records them.

use wengert_macros::twins;

use crate::scalar::formula::Formula;
use crate::shape::compat::{self, BroadcastRule, Resolved};
use crate::{Binary, Compare, Element, Error, Float, Reduction, Scalar, Shape, Site, Tensor, Unary, View, raise};

/// The result of an operation: an array, a mask or another value, or the error of the array type.
pub type Result<T, E = <T as TensorLike>::Error> = std::result::Result<T, E>;

/// The first operand of a function, or an item of a list of operands: a tensor or a variable, by reference or by value.
#[diagnostic::on_unimplemented(message = "`{Self}` is neither a tensor nor a variable")]
pub trait IntoArray {
    /// The tensor or variable.
    type Array: TensorLike;

    /// Returns the tensor or variable.
    fn array(self) -> Self::Array;
}

impl<A: TensorLike> IntoArray for &A {
    type Array = A;

    fn array(self) -> A {
        self.clone()
    }
}

impl<T: Element> IntoArray for Tensor<T> {
    type Array = Self;

    fn array(self) -> Self {
        self
    }
}

/// Returns the arrays of a list of operands.
#[doc(hidden)]
pub fn arrays<I: IntoArray + Clone>(list: &[I]) -> Vec<I::Array> {
    list.iter().cloned().map(IntoArray::array).collect()
}

/// The interface that [`Tensor`] and recorded variables share: the shape, and the primitive operations.
///
/// These methods are for code that implements operations. They take resolved and checked arguments, operands of equal shapes, and
/// the call [`Site`] for errors. Users call the methods of the families in [`ops`](crate::ops), which are built from these
/// primitives. Each primitive returns an error if memory cannot hold its result, or if it cannot be recorded because the tape is full.
pub trait TensorLike: IntoArray<Array = Self> + Clone + Sized {
    /// The type of the elements.
    type Elem: Element;
    /// The type of a comparison's result: `Tensor<bool>` for tensors, and zeros and ones for recorded variables. Comparing masks
    /// gives masks.
    type Mask: TensorLike<Error = Self::Error, Mask = Self::Mask> + MaskOperand<Self>;
    /// The error of a refused operation.
    type Error: std::error::Error + From<Error> + 'static;

    /// Returns the shape: the size of each dimension.
    fn shape(&self) -> Shape;

    /// Returns true if `self` and `other` have the same shape. Recorded variables compare only the indices of their stored shapes.
    fn same_shape(&self, other: &Self) -> bool {
        self.shape() == other.shape()
    }

    /// Returns `data` as an operand for `self`. If `self` is a recorded variable, the operand is a constant on its tape. Copies no element.
    fn try_constant(&self, data: &Tensor<Self::Elem>) -> Result<Self>;

    /// Returns `value` as an operand of rank 0 for `self`. If `self` is a recorded variable, the operand is a constant on its tape.
    ///
    /// # Errors
    ///
    /// If the tape is full.
    #[inline]
    #[twins]
    fn try_number(&self, value: Self::Elem) -> Result<Self> {
        self.try_constant(&Tensor::scalar(value))
    }

    /// Does the same as [`try_constant`](Self::try_constant).
    ///
    /// # Panics
    ///
    /// If the tape is full.
    #[inline]
    #[track_caller]
    fn constant(&self, data: &Tensor<Self::Elem>) -> Self {
        self.try_constant(data).unwrap_or_else(|error| raise(error))
    }

    /// Returns `mask` as a mask for `self`. If `self` is a recorded variable, the mask is a constant on its tape.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the mask. A tape has masks of numbers, which are larger than truth values.
    fn constant_mask(&self, mask: &Tensor<bool>, at: Site) -> Result<Self::Mask>;

    /// Returns the current values. A recorded variable is evaluated first.
    fn to_tensor(&self, at: Site) -> Result<Tensor<Self::Elem>, Self::Error>;

    /// Returns the values of `self` as a constant, through which no gradient flows. A plain tensor returns itself. Users call
    /// [`detach`](crate::ops::Views::detach).
    fn apply_detach(&self, at: Site) -> Result<Self> {
        let _ = at;
        Ok(self.clone())
    }

    /// Returns the values of `self`. Taking a gradient through the result is an error that names `at`. A plain tensor returns itself.
    fn refuse_gradients(&self, at: Site) -> Result<Self> {
        let _ = at;
        Ok(self.clone())
    }

    /// Returns an array with the values of `value` but the derivative of `self` (a straight-through estimator). `self` and `value` have the
    /// same shape. For plain tensors, returns `value`.
    fn with_value(&self, value: &Self, at: Site) -> Result<Self> {
        value.with_derivative(|| Ok(vec![(self.clone(), None)]), at)
    }

    /// Returns an array with the values of `self` and the derivative Σ slope · d input over the pairs (input, slope) that `terms` returns.
    /// All inputs and slopes have the shape of `self`; the slope `None` stands for 1. A second derivative differentiates the slopes.
    /// Operations whose derivative in PyTorch is a convention, and differs from the derivative of the computation, call this method. A
    /// plain tensor returns itself and does not call `terms`.
    ///
    /// # Errors
    ///
    /// If `terms` fails.
    #[allow(clippy::type_complexity)]
    fn with_derivative(
        &self,
        terms: impl FnOnce() -> Result<Vec<(Self, Option<Self>)>, Self::Error>,
        at: Site,
    ) -> Result<Self> {
        let _ = (terms, at);
        Ok(self.clone())
    }

    /// Returns `self`, recorded as a function of `others` too. The derivative with respect to each of `others` is 0, so their gradients are zeros
    /// and not missing. `others` may have any shapes. A plain tensor returns itself.
    fn with_zero_gradients(&self, others: &[&Self], at: Site) -> Result<Self> {
        let _ = (others, at);
        Ok(self.clone())
    }

    /// Returns the values of `self`, marked as the softmax of `x` along `axis` (as the logarithm of this softmax, if `log` is true). The
    /// derivative is then computed from the values of `self` alone, so that the values from which `self` was computed can be released. A
    /// plain tensor returns itself.
    fn as_softmax(&self, x: &Self, axis: usize, log: bool, at: Site) -> Result<Self> {
        let _ = (x, axis, log, at);
        Ok(self.clone())
    }

    /// Returns true for a plain tensor, through which no derivative is taken. An operation may then use primitives whose derivatives would
    /// be wrong.
    #[doc(hidden)]
    fn is_plain(&self) -> bool {
        false
    }

    /// Returns `self` as a tensor that can be written to. Returns `None` if `self` is not a tensor.
    #[doc(hidden)]
    fn as_tensor_mut(&mut self) -> Option<&mut Tensor<Self::Elem>> {
        None
    }

    /// Returns the values of `self`, or an error with the message `message` if `holds` is false for one of these values. A tensor is
    /// checked immediately, a recorded variable when its values are computed.
    fn check_elements(&self, holds: fn(Self::Elem) -> bool, message: &'static str, at: Site) -> Result<Self>;

    /// Applies `composite` to `operands`. For plain tensors, the primitives of the composite operation may be planned together, which takes
    /// fewer passes over memory.
    #[doc(hidden)]
    #[track_caller]
    fn apply_composite<const N: usize>(operands: [&Self; N], composite: &impl Composite<N>, at: Site) -> Result<Self>
    where
        Self::Elem: Float,
    {
        composite.apply(operands, at)
    }

    /// Does the same as [`apply_composite`](Self::apply_composite) for a composite of elementwise operations. If the tensors are not
    /// contiguous, the order of the result's dimensions in memory is the same as after separate primitives.
    #[doc(hidden)]
    #[track_caller]
    fn apply_elementwise_composite<const N: usize>(
        operands: [&Self; N],
        composite: &impl Composite<N>,
        at: Site,
    ) -> Result<Self>
    where
        Self::Elem: Float,
    {
        composite.apply(operands, at)
    }

    /// Computes `op` of each element.
    fn apply_unary(&self, op: Unary, at: Site) -> Result<Self>;

    /// Computes `op` of each pair of elements. The shapes are equal.
    fn apply_binary(&self, op: Binary, other: &Self, at: Site) -> Result<Self>;

    /// Decides how `self` and `other` get a common shape under `rule`. Returns an error if there is no common shape.
    #[doc(hidden)]
    #[inline]
    fn resolve(&self, other: &Self, rule: BroadcastRule, at: Site) -> Result<Resolved, Error> {
        if self.same_shape(other) && compat::accepts_equal(rule) {
            return Ok(Resolved::Equal);
        }
        compat::resolve(&self.shape(), &other.shape(), rule, at)
    }

    /// Returns `self` and `other`, expanded to their common shape under `rule`. Returns an error if there is no common shape.
    #[doc(hidden)]
    fn broadcast_with(&self, other: &Self, rule: BroadcastRule, at: Site) -> Result<(Self, Self), Self::Error> {
        let expand = |x: &Self, joint: &Shape| match x.shape() == *joint {
            true => Ok(x.clone()),
            false => x.apply_view(View::Expand(joint.clone()), at),
        };
        match self.resolve(other, rule, at)? {
            Resolved::Equal => Ok((self.clone(), other.clone())),
            Resolved::Broadcast(joint) => Ok((expand(self, &joint)?, expand(other, &joint)?)),
            Resolved::Flat => Ok((self.clone(), other.apply_view(View::Reshape(self.shape()), at)?)),
        }
    }

    /// Computes `op` of `self` and `other`, which broadcast under `rule`.
    #[doc(hidden)]
    #[inline]
    fn apply_broadcast(&self, op: Binary, other: &Self, rule: BroadcastRule, at: Site) -> Result<Self> {
        let (x, y) = self.broadcast_with(other, rule, at)?;
        x.apply_binary(op, &y, at)
    }

    /// Computes `op` of each element and `number`, in this order.
    #[doc(hidden)]
    #[inline]
    fn apply_number(&self, op: Binary, number: Self::Elem, at: Site) -> Result<Self> {
        let number = self.try_number(number)?.apply_view(View::Expand(self.shape()), at)?;
        self.apply_binary(op, &number, at)
    }

    /// Divides each pair of elements and rounds the quotient toward 0. The shapes are equal.
    #[doc(hidden)]
    fn apply_div_trunc(&self, other: &Self, at: Site) -> Result<Self> {
        self.apply_binary(Binary::Div, other, at)?.apply_unary(Unary::Trunc, at)
    }

    /// Compares each pair of elements. The shapes are equal.
    fn apply_compare(&self, op: Compare, other: &Self, at: Site) -> Result<Self::Mask>;

    /// Returns a mask that is true where an element is not 0. A mask of truth values returns itself.
    #[doc(hidden)]
    fn apply_nonzero(&self, at: Site) -> Result<Self::Mask> {
        let (mut zero, shape) = (self.try_number(Self::Elem::ZERO)?, self.shape());
        if shape.rank() > 0 {
            zero = zero.apply_view(View::Expand(shape), at)?;
        }
        self.apply_compare(Compare::Ne, &zero, at)
    }

    /// Returns the element of `x` where `mask` is true, and the element of `y` elsewhere. The shapes are equal.
    fn apply_select(mask: &Self::Mask, x: &Self, y: &Self, at: Site) -> Result<Self>;

    /// Returns a view of the same elements. A reshape copies the elements if their strides do not allow a view. The caller has checked that
    /// `view` fits the shape of `self`.
    fn apply_view(&self, view: View, at: Site) -> Result<Self>;

    /// Applies the adjoint of `view`: returns zeros of shape `shape` with each element of `self` added at the position from which
    /// `view` would read it.
    fn apply_embed(&self, view: View, shape: &Shape, at: Site) -> Result<Self>;

    /// Reduces over `axes`, which the result keeps with size 1. A reduction of no elements gives the identity of `op`: 0 for a sum, 1 for a product,
    /// the lowest value for a maximum.
    fn apply_reduce(&self, op: Reduction, axes: &[usize], at: Site) -> Result<Self>;

    /// Reduces like [`apply_reduce`](Self::apply_reduce), and removes the dimensions `axes`.
    #[doc(hidden)]
    fn apply_reduce_away(&self, op: Reduction, axes: &[usize], at: Site) -> Result<Self> {
        let shape = self.shape().without(axes);
        self.apply_reduce(op, axes, at)?.apply_view(View::Reshape(shape), at)
    }

    /// Returns the sum of the products of pairs of elements over `axes`, which the result keeps with size 1. The shapes are equal.
    #[doc(hidden)]
    fn apply_product_sum(&self, other: &Self, axes: &[usize], at: Site) -> Result<Self> {
        self.apply_binary(Binary::Mul, other, at)?.apply_reduce(Reduction::Sum, axes, at)
    }

    /// Returns the running sum along `axis`.
    fn apply_cumsum(&self, axis: usize, at: Site) -> Result<Self>;

    /// Returns the variance over `axes`, which the result keeps with size 1: see [`Statistics::var`](crate::ops::Statistics::var). `is_total`
    /// is true if the caller passed `..` as the dimensions. The variance is a primitive because its derivative, 2 (x - mean) / (n -
    /// `correction`) for n elements, needs no term for the mean. If n - `correction` is not positive, the derivative depends on `is_total`.
    fn apply_variance(&self, axes: &[usize], correction: f64, is_total: bool, at: Site) -> Result<Self>
    where
        Self::Elem: Float;

    /// Returns the `ord`-norm over `axes`, which the result keeps with size 1: see [`Norms::vector_norm`](crate::ops::Norms::vector_norm). The
    /// norm is a primitive because its derivatives at the zero vector and at zero elements are conventions.
    fn apply_norm(&self, ord: f64, axes: &[usize], at: Site) -> Result<Self>
    where
        Self::Elem: Float;

    /// Returns the matrix products of `self`, `[…, m, k]`, and `other`, `[…, k, n]`. The batch dimensions are equal.
    fn apply_matmul(&self, other: &Self, at: Site) -> Result<Self>;

    /// Returns the elements at the row-major `positions`, in the shape of `positions`. The positions are not negative and below the
    /// number of elements.
    fn apply_take(&self, positions: &Tensor<i64>, at: Site) -> Result<Self>;

    /// Applies the adjoint of [`apply_take`](Self::apply_take): returns zeros of shape `shape` with each element of `self` added at
    /// its row-major position.
    fn apply_scatter_add(&self, positions: &Tensor<i64>, shape: &Shape, at: Site) -> Result<Self>;

    /// Returns a copy of the slices with the indices `index` along `axis`. The dimensions of `index` replace the dimension `axis`. The
    /// indices are not negative, and below the size of `axis`.
    fn apply_index_select(&self, axis: usize, index: &Tensor<i64>, at: Site) -> Result<Self>;

    /// Applies the adjoint of [`apply_index_select`](Self::apply_index_select) to each pair of `terms`, an array and its `index`, and
    /// returns the sum. In the result, one dimension of size `size` replaces the dimensions of `index`, which start at `axis`. Each slice
    /// is added to zeros at its index, in the order of `index`. There is at least one pair, and all pairs give the same shape.
    fn apply_index_add(terms: &[(&Self, &Tensor<i64>)], axis: usize, size: usize, at: Site) -> Result<Self>;

    /// Joins the arrays `parts`, at least one, along `axis`. All other sizes are equal.
    fn apply_cat(parts: &[Self], axis: usize, at: Site) -> Result<Self>;
}

/// A mask for an operation on an `A`, by reference or by value: a `Tensor<bool>`, or the variable that a comparison of variables
/// returns.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no mask for `{A}`",
    label = "neither a `Tensor<bool>` nor the result of a comparison of `{A}`",
    note = "a comparison makes a mask: `x.gt(0.0)`, `x.eq(&y)`, `x.isnan()`"
)]
pub trait MaskOperand<A: TensorLike> {
    /// Returns the mask. If the masked array is a variable, a `Tensor<bool>` becomes a constant on the variable's tape.
    ///
    /// # Errors
    ///
    /// If memory cannot hold the mask.
    fn to_mask(&self, masked: &A, at: Site) -> Result<A::Mask>;
}

impl<A: TensorLike, M: MaskOperand<A>> MaskOperand<A> for &M {
    fn to_mask(&self, masked: &A, at: Site) -> Result<A::Mask> {
        (**self).to_mask(masked, at)
    }
}

impl<T: Element> MaskOperand<Tensor<T>> for Tensor<bool> {
    fn to_mask(&self, _masked: &Tensor<T>, _at: Site) -> Result<Tensor<bool>, Error> {
        Ok(self.clone())
    }
}

/// An operation of `N` operands that is made of several primitives. The operation is written once for tensors and recorded variables.
#[doc(hidden)]
pub trait Composite<const N: usize = 1> {
    /// Applies the operation to `operands`.
    #[track_caller]
    fn apply<A: TensorLike<Elem: Float>>(&self, operands: [&A; N], at: Site) -> Result<A>;

    /// Returns the formula of an elementwise operation that a single loop computes with the same bits. For plain tensors, this loop replaces
    /// the primitives. The operands broadcast. Returns `None` if there is no such formula.
    fn formula(&self) -> Option<Formula> {
        None
    }
}
