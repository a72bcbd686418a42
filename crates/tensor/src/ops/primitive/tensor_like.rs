//! The primitives: a tensor computes them at once, a recorded variable records them.

use crate::shape::compat::{self, BroadcastRule, Resolved};
use crate::{Binary, Compare, Element, Error, Float, Reduction, Shape, Site, Tensor, Unary, View};

/// The result of an operation: an array, a mask or another value, or the error of the array type.
pub type Result<T, E = <T as TensorLike>::Error> = std::result::Result<T, E>;

/// What [`Tensor`] and recorded variables have in common: a shape, and these primitive operations.
///
/// The methods here are for those who write operations; they take arguments that are resolved and checked, operands of equal
/// shapes, and the call [`Site`] that errors name. Users call the methods of the families in [`ops`](crate::ops), which are
/// written over these.
pub trait TensorLike: Clone + Sized {
    /// Type of the elements.
    type Elem: Element;
    /// The result of a comparison: `Tensor<bool>` for tensors; zeros and ones for recorded variables. Masks compare to masks.
    type Mask: TensorLike<Error = Self::Error, Mask = Self::Mask>;
    /// The error of an operation that is refused.
    type Error: std::error::Error + From<Error> + 'static;

    /// The sizes.
    fn shape(&self) -> Shape;

    /// Whether both have the same sizes. (Recorded variables compare the numbers of interned shapes.)
    fn same_shape(&self, other: &Self) -> bool {
        self.shape() == other.shape()
    }

    /// Plain data as an operand beside this one (on the same tape). Nothing is copied.
    fn constant(&self, data: &Tensor<Self::Elem>) -> Self;

    /// A number beside this one (on the same tape), of no dimensions.
    fn number(&self, value: Self::Elem) -> Self {
        self.constant(&Tensor::scalar(value))
    }

    /// A mask of plain data beside this one (on the same tape).
    fn mask(&self, mask: &Tensor<bool>) -> Self::Mask;

    /// The present values. A recorded variable is evaluated.
    fn to_tensor(&self, at: Site) -> Result<Tensor<Self::Elem>, Self::Error>;

    /// The same values, through which no gradient flows. Users call [`detach`](crate::ops::Views::detach).
    ///
    /// # Errors
    ///
    /// Where it cannot be recorded.
    fn apply_detach(&self, at: Site) -> Result<Self, Self::Error>;

    /// The same values; asking for a gradient through them is an error, which names `at`. Where nothing is recorded, `self`.
    ///
    /// # Errors
    ///
    /// Where it cannot be recorded.
    fn opaque(&self, at: Site) -> Result<Self, Self::Error> {
        let _ = at;
        Ok(self.clone())
    }

    /// The values of `value`, of the same shape, with the derivative of `self`: a straight-through estimator. Where nothing
    /// is recorded, `value`.
    ///
    /// # Errors
    ///
    /// Where it cannot be recorded.
    fn with_value(&self, value: &Self, at: Site) -> Result<Self, Self::Error> {
        value.with_derivative(|| Ok(vec![(self.clone(), None)]), at)
    }

    /// The values of `self` with a derivative of its own: Σ slope · d input over the pairs that `terms` gives, all of the
    /// shape of `self`; no slope means 1. For functions whose derivative is, by convention, not that of the computation. A
    /// second derivative differentiates the slopes. Where nothing is recorded, the result is `self` and `terms` is not called.
    ///
    /// # Errors
    ///
    /// Where `terms` fails, or it cannot be recorded.
    #[allow(clippy::type_complexity)]
    fn with_derivative(
        &self,
        terms: impl FnOnce() -> Result<Vec<(Self, Option<Self>)>, Self::Error>,
        at: Site,
    ) -> Result<Self, Self::Error> {
        let _ = (terms, at);
        Ok(self.clone())
    }

    /// The same values, which are the softmax of `x` along `axis`, or its logarithm: the derivative is computed from them, without what
    /// they were computed from. Where nothing is recorded, `self`.
    ///
    /// # Errors
    ///
    /// Where it cannot be recorded.
    fn as_softmax(&self, x: &Self, axis: usize, log: bool, at: Site) -> Result<Self, Self::Error> {
        let _ = (x, axis, log, at);
        Ok(self.clone())
    }

    /// The same values; an error with the sentence `message` if `holds` is false for one of them: at once for tensors, when
    /// they are computed for recorded variables.
    ///
    /// # Errors
    ///
    /// Where `holds` is false for a value, and where it cannot be recorded.
    fn guarded(&self, holds: fn(Self::Elem) -> bool, message: &'static str, at: Site) -> Result<Self, Self::Error>;

    /// What `composite` makes of this: where values are computed at once, planned like a recorded tape and run in as few passes.
    ///
    /// # Errors
    ///
    /// Where one of its primitives is refused.
    #[doc(hidden)]
    fn composed(&self, composite: &impl Composite, at: Site) -> Result<Self, Self::Error>
    where
        Self::Elem: Float,
    {
        composite.of(self, at)
    }

    /// `op` of each element.
    fn apply_unary(&self, op: Unary, at: Site) -> Result<Self, Self::Error>;

    /// `op` of each pair of elements; equal shapes.
    fn apply_binary(&self, op: Binary, other: &Self, at: Site) -> Result<Self, Self::Error>;

    /// Decides how this and `other` come to one shape.
    ///
    /// # Errors
    ///
    /// Where they do not.
    #[doc(hidden)]
    #[inline]
    fn resolve(&self, other: &Self, rule: BroadcastRule, at: Site) -> Result<Resolved, Error> {
        if self.same_shape(other) && compat::accepts_equal(rule) {
            return Ok(Resolved::Equal);
        }
        compat::resolve(&self.shape(), &other.shape(), rule, at)
    }

    /// `op` of this and `other`, which broadcast under `rule`.
    #[doc(hidden)]
    #[inline]
    fn apply_broadcast(&self, op: Binary, other: &Self, rule: BroadcastRule, at: Site) -> Result<Self, Self::Error> {
        match self.resolve(other, rule, at)? {
            Resolved::Equal => self.apply_binary(op, other, at),
            Resolved::Broadcast(joined) => {
                let expanded = |x: &Self| match x.shape() == joined {
                    true => Ok(x.clone()),
                    false => x.apply_view(View::Expand(joined.clone()), at),
                };
                expanded(self)?.apply_binary(op, &expanded(other)?, at)
            }
            Resolved::Flat => self.apply_binary(op, &other.apply_view(View::Reshape(self.shape()), at)?, at),
        }
    }

    /// `op` of each element and `number`, in this order.
    #[doc(hidden)]
    #[inline]
    fn apply_number(&self, op: Binary, number: Self::Elem, at: Site) -> Result<Self, Self::Error> {
        let number = self.number(number).apply_view(View::Expand(self.shape()), at)?;
        self.apply_binary(op, &number, at)
    }

    /// The square root, or 1 over it where `inverse`, as a power: what PyTorch computes where the exponent is the plain number
    /// 1/2 or -1/2. At -0 and -∞ it differs from the power with an array of exponents.
    fn apply_root(&self, inverse: bool, at: Site) -> Result<Self, Self::Error>;

    /// Comparison of each pair of elements; equal shapes.
    fn apply_compare(&self, op: Compare, other: &Self, at: Site) -> Result<Self::Mask, Self::Error>;

    /// The element of `x` where `mask` holds, that of `y` elsewhere; equal shapes.
    fn apply_select(mask: &Self::Mask, x: &Self, y: &Self, at: Site) -> Result<Self, Self::Error>;

    /// A view of the same elements; its arguments fit the shape.
    fn apply_view(&self, view: View, at: Site) -> Result<Self, Self::Error>;

    /// The adjoint of `view`: zeros of shape `shape`, to which each element is added at the position where `view` of a
    /// tensor of that shape would have read it.
    fn apply_embed(&self, view: View, shape: &Shape, at: Site) -> Result<Self, Self::Error>;

    /// The reduction over `axes`, which stay with size 1. Over no elements it is the identity of `op`, where there is one.
    fn apply_reduce(&self, op: Reduction, axes: &[usize], at: Site) -> Result<Self, Self::Error>;

    /// [`apply_reduce`](Self::apply_reduce) with the dimensions `axes` removed.
    #[doc(hidden)]
    fn apply_reduce_away(&self, op: Reduction, axes: &[usize], at: Site) -> Result<Self, Self::Error> {
        let shape = self.shape().without(axes);
        self.apply_reduce(op, axes, at)?.apply_view(View::Reshape(shape), at)
    }

    /// The running sum along `axis`.
    fn apply_cumsum(&self, axis: usize, at: Site) -> Result<Self, Self::Error>;

    /// The variance over `axes`, which stay with size 1: see [`Statistics::var`](crate::ops::Statistics::var). `is_total`: the
    /// caller named no dimensions, on which the derivative depends where n - `correction` is not positive. A primitive for
    /// the sake of its derivative, 2 (x - mean) / (n - correction), without a term for the mean.
    fn apply_variance(&self, axes: &[usize], correction: f64, is_total: bool, at: Site) -> Result<Self, Self::Error>
    where
        Self::Elem: Float;

    /// The `ord`-norm over `axes`, which stay with size 1: see [`Norms::vector_norm`](crate::ops::Norms::vector_norm). A
    /// primitive for the sake of its derivative at the zero vector and at zeros, which is a convention.
    fn apply_norm(&self, ord: f64, axes: &[usize], at: Site) -> Result<Self, Self::Error>
    where
        Self::Elem: Float;

    /// Matrix products `[…, m, k] x [k, n]` over equal batch dimensions.
    fn apply_matmul(&self, other: &Self, at: Site) -> Result<Self, Self::Error>;

    /// Elements of the row-major order at `positions` (0 to the number of elements), in the shape of `positions`.
    fn apply_take(&self, positions: &Tensor<i64>, at: Site) -> Result<Self, Self::Error>;

    /// The adjoint of [`apply_take`](Self::apply_take): zeros of shape `shape`, to which each element is added at its
    /// position in row-major order.
    fn apply_scatter_add(&self, positions: &Tensor<i64>, shape: &Shape, at: Site) -> Result<Self, Self::Error>;

    /// The slices along `axis` whose numbers are in `index` (0 to the size of the dimension), copied: the dimension is replaced by
    /// those of `index`.
    fn apply_index_select(&self, axis: usize, index: &Tensor<i64>, at: Site) -> Result<Self, Self::Error>;

    /// The adjoint of [`apply_index_select`](Self::apply_index_select), summed over `terms`, at least one, of an array and its
    /// `index`: zeros, with a dimension of size `size` in place of those of `index` from `axis` on, to which each slice is added at
    /// its number, in the order of `index`. All terms give the same shape.
    fn apply_index_add(
        terms: &[(&Self, &Tensor<i64>)],
        axis: usize,
        size: usize,
        at: Site,
    ) -> Result<Self, Self::Error>;

    /// `parts`, at least one, joined along `axis`; all other sizes are equal.
    fn apply_cat(parts: &[Self], axis: usize, at: Site) -> Result<Self, Self::Error>;
}

/// An operation of one operand that is made of several primitives, written once for every kind of operand.
#[doc(hidden)]
pub trait Composite {
    /// The operation of `x`.
    ///
    /// # Errors
    ///
    /// Where one of its primitives is refused.
    fn of<A: TensorLike<Elem: Float>>(&self, x: &A, at: Site) -> Result<A, A::Error>;
}
