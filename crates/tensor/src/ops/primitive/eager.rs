//! The primitives on tensors, computed immediately.

use std::any::Any;

use smallvec::SmallVec;
use wengert_macros::precompiled;

use crate::engine::elementwise;
use crate::kernel::element::instances::ElementInstances;
use crate::kernel::gather;
use crate::kernel::matmul::batched::{self, Addend};
use crate::kernel::reduce::strided;
use crate::kernel::rows;
use crate::kernel::scan::lanes;
use crate::kernel::source::Source;
use crate::memory::available::AllocationError;
use crate::ops::TensorLike;
use crate::ops::primitive::pair::broadcast_operand_shapes;
use crate::ops::primitive::tensor_like::Composite;
use crate::ops::primitive::traced;
use crate::ops::reduce::norms::Norm;
use crate::ops::reduce::statistics::Variance;
use crate::scalar::formula::Formula;
use crate::shape::compat::{self, BroadcastRule, Resolved};
use crate::thresholds::ops::{MANY_TERMS, MIN_FUSED};
use crate::thresholds::rows::MIN_EMBEDDED_ROW;
use crate::{Binary, Compare, Element, Error, Float, Layout, Reduction, Shape, Site, Tensor, Unary, View};

#[precompiled]
impl<T: Element> TensorLike for Tensor<T> {
    type Elem = T;
    type Mask = Tensor<bool>;
    type Error = Error;

    fn shape(&self) -> Shape {
        self.shape().clone()
    }

    #[inline]
    fn same_shape(&self, other: &Self) -> bool {
        self.shape() == other.shape()
    }

    // Does the same as the default method of `TensorLike`, but does not copy the shapes.
    #[inline]
    fn resolve(&self, other: &Self, rule: BroadcastRule, at: Site) -> Result<Resolved, Error> {
        if self.shape() == other.shape() && compat::accepts_equal(rule) {
            return Ok(Resolved::Equal);
        }
        compat::resolve(self.shape(), other.shape(), rule, at)
    }

    fn try_constant(&self, data: &Tensor<T>) -> Result<Self, Error> {
        Ok(data.clone())
    }

    fn constant_mask(&self, mask: &Tensor<bool>, _at: Site) -> Result<Tensor<bool>, Error> {
        Ok(mask.clone())
    }

    fn to_tensor(&self, _at: Site) -> Result<Tensor<T>, Error> {
        Ok(self.clone())
    }

    fn check_elements(&self, holds: fn(T) -> bool, message: &'static str, at: Site) -> Result<Self, Error> {
        if self.distinct().iter().all(holds) { Ok(self.clone()) } else { Err(Error::argument(at, message)) }
    }

    fn is_plain(&self) -> bool {
        true
    }

    fn as_tensor_mut(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn apply_composite<const N: usize>(
        operands: [&Self; N],
        composite: &impl Composite<N>,
        at: Site,
    ) -> Result<Self, Error>
    where
        T: Float,
    {
        // For small tensors, tracing the expression takes longer than the passes that fusion saves.
        if operands.iter().all(|x| x.numel() < MIN_FUSED) {
            return composite.apply(operands, at);
        }
        traced::compute_composite(composite, operands, at)
    }

    fn apply_elementwise_composite<const N: usize>(
        operands: [&Self; N],
        composite: &impl Composite<N>,
        at: Site,
    ) -> Result<Self, Error>
    where
        T: Float,
    {
        match composite.formula() {
            Some(formula) => compute_formula(formula, operands, at),
            None if operands.iter().all(|x| x.is_contiguous()) => Self::apply_composite(operands, composite, at),
            None => composite.apply(operands, at),
        }
    }

    fn apply_unary(&self, op: Unary, at: Site) -> Result<Self, Error> {
        check_supported::<T>(T::supports_unary(op), at)?;
        build_in_operand_order(self.shape(), at, [self.layout()], |[x], out| {
            elementwise::unary(op, self.source().with_layout(x), out);
        })
    }

    fn apply_binary(&self, op: Binary, other: &Self, at: Site) -> Result<Self, Error> {
        check_binary(op, other, self.shape(), at)?;
        binary(op, self.shape(), self.source(), other.source(), at)
    }

    // Does the same as the default method of `TensorLike`, but does not create expanded tensors.
    fn apply_broadcast(&self, op: Binary, other: &Self, rule: BroadcastRule, at: Site) -> Result<Self, Error> {
        match self.resolve(other, rule, at)? {
            Resolved::Equal => self.apply_binary(op, other, at),
            Resolved::Broadcast(joined) => {
                check_binary(op, other, &joined, at)?;
                binary(op, &joined, self.source(), other.source(), at)
            }
            Resolved::Flat => self.apply_binary(op, &other.apply_view(View::Reshape(self.shape().clone()), at)?, at),
        }
    }

    // Does the same as the default method of `TensorLike`, but creates a tensor for the number only if the elements are integers.
    fn apply_number(&self, op: Binary, number: T, at: Site) -> Result<Self, Error> {
        if T::DTYPE.is_integer() {
            // Integers take this path because `apply_binary` refuses division by zero.
            let other = Tensor::scalar(number).apply_view(View::Expand(self.shape().clone()), at)?;
            return self.apply_binary(op, &other, at);
        }
        check_supported::<T>(T::supports_binary(op), at)?;
        let (other, layout) = ([number], Layout::contiguous(Shape::scalar()));
        binary(op, self.shape(), self.source(), Source { data: &other, layout: &layout }, at)
    }

    fn apply_div_trunc(&self, other: &Self, at: Site) -> Result<Self, Error> {
        T::element_instance::<TruncatedQuotients>()(self, other, at)
    }

    fn apply_compare(&self, op: Compare, other: &Self, at: Site) -> Result<Tensor<bool>, Error> {
        build_in_operand_order(self.shape(), at, [self.layout(), other.layout()], |[x, y], out| {
            elementwise::compare(op, self.source().with_layout(x), other.source().with_layout(y), out);
        })
    }

    fn apply_nonzero(&self, at: Site) -> Result<Tensor<bool>, Error> {
        if let Some(mask) = (self as &dyn Any).downcast_ref::<Tensor<bool>>() {
            return Ok(mask.clone());
        }
        let zero = Tensor::scalar(T::ZERO).apply_view(View::Expand(self.shape().clone()), at)?;
        self.apply_compare(Compare::Ne, &zero, at)
    }

    fn apply_select(mask: &Tensor<bool>, x: &Self, y: &Self, at: Site) -> Result<Self, Error> {
        build_in_operand_order(x.shape(), at, [x.layout(), y.layout(), mask.layout()], |[first, second, third], out| {
            let (x, y) = (x.source().with_layout(first), y.source().with_layout(second));
            elementwise::select(mask.source().with_layout(third), x, y, out);
        })
    }

    fn apply_view(&self, view: View, at: Site) -> Result<Self, Error> {
        match (view.apply(self.layout()), view) {
            (Some(layout), view) => {
                // Only an expansion and an unfolding can have more elements than their operand, so only they can be too large.
                if view.may_repeat() {
                    crate::memory::reserve::addressable::<T>(layout.shape(), at)?;
                }
                Ok(self.with_layout(layout))
            }
            (None, View::Reshape(shape)) => {
                let copy = self.contiguous_copy(at)?;
                Ok(copy.with_layout(Layout::contiguous(shape)))
            }
            (None, view) => unreachable!("{} was checked against the shape", view.name()),
        }
    }

    fn apply_embed(&self, view: View, shape: &Shape, at: Site) -> Result<Self, Error> {
        // If at least half of the result along the dimension is copied, and the rows are not short, zeros are written only around the copies.
        if let View::Slice { axis, start, len, step: 1 } = view
            && 2 * len >= shape[axis]
            // Without elements, the product of the other sizes may overflow.
            && !shape.contains(&0)
            && shape[axis..].iter().product::<usize>() >= MIN_EMBEDDED_ROW
        {
            return Tensor::build(shape, at, |out| {
                gather::embed_slice(self.source(), (axis, start, shape[axis]), out);
            });
        }
        Tensor::build_on_zeros(shape, at, |out| {
            let Some(window) = view.apply(&Layout::contiguous(shape.clone())) else {
                unreachable!("a contiguous layout has every view")
            };
            match &view {
                &View::Unfold { axis, .. } => gather::embed_windows(self.source(), &window, axis, out),
                view => gather::embed(self.source(), &window, view.may_repeat(), out),
            }
        })
    }

    fn apply_reduce(&self, op: Reduction, axes: &[usize], at: Site) -> Result<Self, Error> {
        self.reduce_to_shape(&self.shape().with_ones(axes), op, axes, at)
    }

    fn apply_reduce_away(&self, op: Reduction, axes: &[usize], at: Site) -> Result<Self, Error> {
        self.reduce_to_shape(&self.shape().without(axes), op, axes, at)
    }

    fn apply_product_sum(&self, other: &Self, axes: &[usize], at: Site) -> Result<Self, Error> {
        T::element_instance::<ProductSums>()(self, other, axes, at)
    }

    fn apply_cumsum(&self, axis: usize, at: Site) -> Result<Self, Error> {
        Tensor::build(self.shape(), at, |out| lanes::running_sums(self.source(), axis, out))
    }

    fn apply_variance(&self, axes: &[usize], correction: f64, _is_total: bool, at: Site) -> Result<Self, Error>
    where
        T: Float,
    {
        self.reduce_by_composite(&Variance { axes, correction }, at)
    }

    fn apply_norm(&self, ord: f64, axes: &[usize], at: Site) -> Result<Self, Error>
    where
        T: Float,
    {
        self.reduce_by_composite(&Norm { ord, axes }, at)
    }

    fn apply_matmul(&self, other: &Self, at: Site) -> Result<Self, Error> {
        let (rank, result) = (self.rank(), Shape::of_product(self.shape(), other.shape()));
        if has_equal_terms(self, other) {
            let first = |x: &Self, axis: usize| x.with_layout(x.layout().slice(axis, 0, 1, 1));
            let (x, y) = (first(self, rank - 1), first(other, rank - 2));
            return Tensor::build(&result, at, |out| {
                batched::matmul(x.source(), y.source(), Addend::Nothing, out)?;
                strided::repeat_totals(Reduction::Sum, out, self.shape()[rank - 1]);
                Ok::<(), AllocationError>(())
            });
        }
        Tensor::build(&result, at, |out| batched::matmul(self.source(), other.source(), Addend::Nothing, out))
    }

    fn apply_take(&self, positions: &Tensor<i64>, at: Site) -> Result<Self, Error> {
        Tensor::build(positions.shape(), at, |out| gather::gather(self.source(), positions.source(), out))
    }

    fn apply_scatter_add(&self, positions: &Tensor<i64>, shape: &Shape, at: Site) -> Result<Self, Error> {
        Tensor::build_on_zeros(shape, at, |out| gather::scatter_add(self.source(), positions.source(), out))
    }

    fn apply_index_select(&self, axis: usize, index: &Tensor<i64>, at: Site) -> Result<Self, Error> {
        let numbers = index.row_major_elements(at)?;
        Tensor::build(&self.shape().replaced(axis..axis + 1, index.shape()), at, |out| {
            rows::index_select(self.source(), axis, &numbers, out);
        })
    }

    fn apply_index_add(terms: &[(&Self, &Tensor<i64>)], axis: usize, size: usize, at: Site) -> Result<Self, Error> {
        let mut ordered = Vec::with_capacity(terms.len());
        for &(x, index) in terms {
            ordered.push((x.row_major_elements(at)?, index.row_major_elements(at)?));
        }
        let ordered: Vec<(&[T], &[i64])> = ordered.iter().map(|(x, index)| (&**x, &**index)).collect();
        let (shape, end) = (terms[0].0.shape(), axis + terms[0].1.rank());
        let width = Shape::from(&shape[end..]).numel();
        Tensor::build(&shape.replaced(axis..end, &[size]), at, |out| rows::index_sum(&ordered, size, width, out))
    }

    fn apply_cat(parts: &[Self], axis: usize, at: Site) -> Result<Self, Error> {
        let mut shape = parts[0].shape().clone();
        shape[axis] = parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.shape()[axis]));
        let outer = Shape::from(&shape[..axis]).numel();
        Tensor::build(&shape, at, |out| {
            if outer > 1 {
                let sources: Vec<Source<'_, T>> =
                    parts.iter().filter(|part| part.numel() > 0).map(Tensor::source).collect();
                rows::concatenate(&sources, axis, out);
                return;
            }
            let whole = Layout::contiguous(shape.clone());
            let (mut start, streams) = (0, rows::is_copy_streamed(out));
            for part in parts {
                let len = part.shape()[axis];
                let window = whole.slice(axis, start, len, 1);
                match part.as_slice() {
                    Some(x) if streams => rows::copy_streamed(x, &mut out[window.offset()..][..x.len()]),
                    _ => elementwise::assign(out, &window, part.source()),
                }
                start += len;
            }
        })
    }
}

#[precompiled]
impl<T: Float> Tensor<T> {
    /// Returns the sum of `self` and the matrix product of `x` and `y`, which has the shape of `self`. Adds in place if `self` is
    /// contiguous and shares its buffer with no other tensor. If each element of the product is a [sum of equal terms](has_equal_terms),
    /// the product is computed first and then added.
    pub(crate) fn add_product(self, x: &Self, y: &Self, at: Site) -> Result<Self, Error> {
        if has_equal_terms(x, y) {
            return self.apply_binary(Binary::Add, &x.apply_matmul(y, at)?, at);
        }
        let (mut storage, layout) = self.into_parts();
        if layout.is_contiguous()
            && let Some(data) = storage.get_mut()
        {
            let out = &mut data[layout.offset()..][..layout.numel()];
            let refused = |_| Error::out_of_memory(layout.shape(), T::DTYPE, at);
            batched::matmul(x.source(), y.source(), Addend::Out, out).map_err(refused)?;
            // In dimensions of size 1, a contiguous layout may have any stride. The result gets row-major strides, as a new tensor would.
            let layout = Layout::contiguous(layout.shape().clone()).with_offset(layout.offset());
            return Ok(Tensor::from_parts(storage, layout));
        }
        let own = Tensor::from_parts(storage, layout);
        Tensor::build(own.shape(), at, |out| {
            batched::matmul(x.source(), y.source(), Addend::Elements(own.source()), out)
        })
    }

    /// Computes a reduction that is made of several primitives. For a contiguous tensor of at least [`MIN_FUSED`] elements, all primitives
    /// are planned together, so that they need few passes over memory.
    fn reduce_by_composite(&self, composite: &impl Composite, at: Site) -> Result<Self, Error> {
        if self.is_contiguous() { Self::apply_composite([self], composite, at) } else { composite.apply([self], at) }
    }
}

#[precompiled]
impl<T: Element> Tensor<T> {
    /// Reduces over `axes`. The result has the shape `result`, in which the dimensions `axes` have size 1 or are missing.
    fn reduce_to_shape(&self, result: &Shape, op: Reduction, axes: &[usize], at: Site) -> Result<Self, Error> {
        check_supported::<T>(T::supports_binary(op.function()), at)?;
        let once;
        let repeats = axes.iter().any(|&axis| self.strides()[axis] == 0 && self.shape()[axis] > 1);
        let (layout, times) = match repeats {
            false => (self.layout(), 1),
            true => {
                let (layout, times) = collapse_expanded_axes(op, T::DTYPE.is_float(), self.layout(), axes);
                once = layout;
                (&once, times)
            }
        };
        Tensor::build(result, at, |out| {
            if layout.numel() == 0 {
                out.fill(T::start(op));
            }
            strided::reduce(op, self.source().with_layout(layout), axes, out)?;
            if times > 1 {
                strided::repeat_totals(op, out, times);
            }
            Ok(())
        })
    }
}

/// The functions that compute [`apply_div_trunc`](TensorLike::apply_div_trunc). For floating-point numbers, one loop divides and rounds.
struct TruncatedQuotients;

impl ElementInstances for TruncatedQuotients {
    type Of<T: Element> = fn(&Tensor<T>, &Tensor<T>, Site) -> Result<Tensor<T>, Error>;

    fn f32() -> Self::Of<f32> {
        |x, y, at| compute_formula(Formula::TruncatedQuotient, [x, y], at)
    }

    fn f64() -> Self::Of<f64> {
        |x, y, at| compute_formula(Formula::TruncatedQuotient, [x, y], at)
    }

    fn i64() -> Self::Of<i64> {
        Self::generic::<i64>()
    }

    fn generic<T: Element>() -> Self::Of<T> {
        |x, y, at| x.apply_binary(Binary::Div, y, at)?.apply_unary(Unary::Trunc, at)
    }
}

/// The functions that compute [`apply_product_sum`](TensorLike::apply_product_sum). For large tensors of floating-point numbers, the products
/// and their sum are computed in one pass.
struct ProductSums;

impl ElementInstances for ProductSums {
    type Of<T: Element> = fn(&Tensor<T>, &Tensor<T>, &[usize], Site) -> Result<Tensor<T>, Error>;

    fn f32() -> Self::Of<f32> {
        |x, y, axes, at| Tensor::apply_composite([x, y], &ProductSum { axes }, at)
    }

    fn f64() -> Self::Of<f64> {
        |x, y, axes, at| Tensor::apply_composite([x, y], &ProductSum { axes }, at)
    }

    fn i64() -> Self::Of<i64> {
        Self::generic::<i64>()
    }

    fn generic<T: Element>() -> Self::Of<T> {
        |x, y, axes, at| x.apply_binary(Binary::Mul, y, at)?.apply_reduce(Reduction::Sum, axes, at)
    }
}

/// A composite operation: the sum of products over `axes`, which the result keeps with size 1.
struct ProductSum<'a> {
    axes: &'a [usize],
}

impl Composite<2> for ProductSum<'_> {
    fn apply<A: TensorLike<Elem: Float>>(&self, [x, y]: [&A; 2], at: Site) -> Result<A, A::Error> {
        x.apply_binary(Binary::Mul, y, at)?.apply_reduce(Reduction::Sum, self.axes, at)
    }
}

/// Computes `op` of two operands that broadcast to `shape`.
fn binary<T: Element>(op: Binary, shape: &Shape, x: Source<T>, y: Source<T>, at: Site) -> Result<Tensor<T>, Error> {
    let may_lead = |layout: &Layout| layout.shape() == shape && !layout.is_contiguous();
    if !may_lead(x.layout) && !may_lead(y.layout) {
        return Tensor::build_inline(shape, at, |out| elementwise::binary(op, shape, x, y, out));
    }
    crate::memory::reserve::addressable::<T>(shape, at)?;
    let (mut first, mut second) = (None, None);
    let (x, y) = (x.expand_to(shape, &mut first), y.expand_to(shape, &mut second));
    build_in_operand_order(shape, at, [x.layout, y.layout], |[first, second], out| {
        let (x, y) = (x.with_layout(first), y.with_layout(second));
        elementwise::binary(op, first.shape(), x, y, out);
    })
}

/// Computes `formula` of operands that broadcast.
fn compute_formula<T: Float, const N: usize>(
    formula: Formula,
    operands: [&Tensor<T>; N],
    at: Site,
) -> Result<Tensor<T>, Error> {
    let shapes = operands.map(Tensor::shape);
    let joined;
    let shape = match shapes.iter().all(|&shape| shape == shapes[0]) {
        true => shapes[0],
        false => {
            joined = broadcast_operand_shapes(&shapes, at)?;
            &joined
        }
    };
    crate::memory::reserve::addressable::<T>(shape, at)?;
    let mut expanded = [const { None }; N];
    let each = operands.iter().zip(&mut expanded).map(|(x, expanded)| x.source().expand_to(shape, expanded));
    let sources: SmallVec<[Source<T>; 3]> = each.collect();
    build_in_operand_order(shape, at, std::array::from_fn::<_, N, _>(|k| sources[k].layout), |layouts, out| {
        elementwise::formula(formula, std::array::from_fn::<_, N, _>(|k| sources[k].with_layout(layouts[k])), out);
    })
}

/// Returns a tensor of shape `shape`, which `fill` computes element by element from the operands. The result is row-major if an operand
/// with several elements is contiguous, or if all operands are expanded. Otherwise the result has the dimension order of the first operand
/// that is not expanded. So transposed operands give a transposed result, as in PyTorch. For a result in this order, `fill` gets the
/// operands' layouts with the dimensions in that operand's order, from its longest stride to its shortest.
fn build_in_operand_order<T: Element, const N: usize>(
    shape: &Shape,
    at: Site,
    layouts: [&Layout; N],
    mut fill: impl FnMut([&Layout; N], &mut [T]),
) -> Result<Tensor<T>, Error> {
    let Some(leader) = leading_layout(shape, &layouts) else {
        return Tensor::build(shape, at, |out| fill(layouts, out));
    };
    let axes = leader.axes_by_stride();
    let permuted = layouts.map(|layout| layout.permute(&axes));
    let result = Tensor::build(permuted[0].shape(), at, |out| fill(permuted.each_ref(), out))?;
    let layout = result.layout().unpermute(&axes);
    Ok(result.with_layout(layout))
}

/// Returns the layout whose dimension order the result takes, or `None` for a row-major result.
fn leading_layout<'a>(shape: &Shape, layouts: &[&'a Layout]) -> Option<&'a Layout> {
    if layouts.iter().any(|layout| layout.is_contiguous() && layout.numel() > 1) {
        return None;
    }
    let is_expanded =
        |layout: &Layout| layout.strides().iter().zip(shape.iter()).any(|(&stride, &size)| stride == 0 && size != 1);
    let leader = layouts.iter().find(|layout| !layout.is_contiguous() && !is_expanded(layout))?;
    (leader.numel() > 0).then_some(leader)
}

/// Replaces the expanded dimensions among `axes` by dimensions of size 1. Returns the new layout, and the number of elements of `layout`
/// that each element of the new layout represents. A product of floating-point numbers keeps expanded dimensions with fewer than
/// [`MANY_TERMS`] elements, because a power has other rounding errors. A product of integers or truth values keeps all dimensions.
fn collapse_expanded_axes(op: Reduction, is_float: bool, layout: &Layout, axes: &[usize]) -> (Layout, usize) {
    let mut layout = layout.clone();
    let mut times = 1;
    let least = match (op, is_float) {
        (Reduction::Prod, true) => MANY_TERMS,
        (Reduction::Prod, false) => return (layout, times),
        _ => 2,
    };
    for &axis in axes {
        let size = layout.shape()[axis];
        if size >= least && layout.strides()[axis] == 0 && layout.numel() > 0 {
            layout = layout.slice(axis, 0, 1, 1);
            times *= size;
        }
    }
    (layout, times)
}

/// Returns true if a matrix product sums at least [`MANY_TERMS`] equal terms, because both operands are expanded along the summed
/// dimension. The sum is then one term times the number of terms. A shorter sum adds every term, like the sums of other operands.
fn has_equal_terms<T: Element>(x: &Tensor<T>, y: &Tensor<T>) -> bool {
    let rank = x.rank();
    x.shape()[rank - 1] >= MANY_TERMS && x.strides()[rank - 1] == 0 && y.strides()[rank - 2] == 0
}

/// Returns an error unless the element type supports the operation.
fn check_supported<T: Element>(supports: bool, at: Site) -> Result<(), Error> {
    if supports { Ok(()) } else { Err(Error::ElementType { dtype: T::DTYPE, at }) }
}

/// Refuses `op` if the element type does not support it, or if it divides an integer by zero. A result without elements needs no division.
pub(crate) fn check_binary<T: Element>(op: Binary, other: &Tensor<T>, result: &Shape, at: Site) -> Result<(), Error> {
    check_supported::<T>(T::supports_binary(op), at)?;
    let integers = T::DTYPE.is_integer();
    let divides = matches!(op, Binary::Div | Binary::Fmod | Binary::Remainder | Binary::FloorDivide);
    if integers && divides && result.numel() > 0 && other.distinct().iter().any(|divisor| divisor == T::ZERO) {
        return Err(Error::argument(at, "ZeroDivisionError"));
    }
    Ok(())
}
