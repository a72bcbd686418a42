//! Writes values to positions. If one position is written several times, the last write wins.
//!
//! PyTorch does not specify which write wins, but gives every written value the gradient of its element, as if its write had won. This code
//! does the same: the result has the values of the last writes, and the derivative includes all writes.

use wengert_macros::precompiled;

use crate::kernel::gather::{Values, scatter};
use crate::kernel::rows;
use crate::ops::index::positions::{for_gathered_positions, gathered_positions, one_dim};
use crate::ops::primitive::pair::expand_number;
use crate::ops::{Compose, Result, TensorLike};
use crate::{Binary, Compare, Element, Error, Reduction, Scalar, Shape, Site, Tensor};

/// The positions in a tensor that values are written to, one value per position.
#[derive(Clone, Copy)]
pub(crate) enum WritePositions<'a> {
    /// The elements at these row-major positions.
    RowMajor(&'a Tensor<i64>),
    /// The elements from which `gather` with this index would read.
    Gather { axis: usize, index: &'a Tensor<i64> },
}

#[precompiled]
impl<T: Element> Tensor<T> {
    /// Returns the elements that `gather` reads, in the shape of `index`. `from` is the shape of `self`, or `[1]` if `self` has rank 0.
    fn gather_tensor(&self, from: &Shape, axis: usize, index: &Tensor<i64>, at: Site) -> Result<Self, Error> {
        let Some(x) = self.as_slice() else {
            return self.apply_take(&gathered_positions(from, axis, index, at)?, at);
        };
        let line = index.row_major_elements(at)?;
        Tensor::build(index.shape(), at, |out| {
            for_gathered_positions(from, axis, index.shape(), &line, &mut |start, first, positions| {
                let (out, x) = (out[start..start + positions.len()].iter_mut(), &x[first..]);
                out.zip(positions).for_each(|(out, &position)| *out = x[position as usize]);
            });
        })
    }

    /// Combines the elements at `targets` with `values` by `op`, one after the other. If `op` is `None`, writes the values. There is at least
    /// one position.
    pub(crate) fn scatter_to(
        &mut self,
        targets: WritePositions<'_>,
        values: &Self,
        op: Option<Reduction>,
        at: Site,
    ) -> Result<(), Error> {
        let ordered;
        let values = match values.source().as_operand() {
            Some(values) => values,
            None => {
                ordered = values.row_major_elements(at)?;
                Values::Slice(&ordered)
            }
        };
        let shape = one_dim(self.shape());
        let out = self.elements_mut(at)?;
        match targets {
            WritePositions::RowMajor(positions) => scatter(op, values, &positions.row_major_elements(at)?, out),
            WritePositions::Gather { axis, index } => {
                for_gathered_positions(
                    &shape,
                    axis,
                    &one_dim(index.shape()),
                    &index.row_major_elements(at)?,
                    &mut |start, first, positions| {
                        scatter(op, values.part(start, start + positions.len()), positions, &mut out[first..]);
                    },
                );
            }
        }
        Ok(())
    }

    /// Writes the slices `values` to the slices with the indices `index` along dimension `axis`. If `accumulate` is true, adds the slices
    /// instead.
    pub(crate) fn write_slices(
        &mut self,
        axis: usize,
        index: &[i64],
        values: &Self,
        accumulate: bool,
        at: Site,
    ) -> Result<(), Error> {
        if values.numel() == 0 {
            return Ok(());
        }
        let ordered;
        let values = match values.source().as_operand() {
            Some(values) if !accumulate => values,
            _ => {
                ordered = values.row_major_elements(at)?;
                Values::Slice(&ordered)
            }
        };
        let shape = one_dim(self.shape());
        let (size, width) = (shape[axis], Shape::from(&shape[axis + 1..]).numel());
        let out = self.elements_mut(at)?;
        match values {
            Values::Slice(values) if accumulate => rows::index_add(&[(values, index)], size, width, out),
            values => rows::index_copy(values, index, size, width, out),
        }
        Ok(())
    }
}

/// Returns the elements of `x` that `gather` reads, in the shape of `index`. `from` is the shape of `x`, or `[1]` if `x` has rank 0.
pub(crate) fn gather_along<A: TensorLike>(
    x: &A,
    from: &Shape,
    axis: usize,
    index: &Tensor<i64>,
    at: Site,
) -> Result<A> {
    if x.is_plain() {
        return x.try_constant(&x.to_tensor(at)?.gather_tensor(from, axis, index, at)?);
    }
    x.apply_take(&gathered_positions(from, axis, index, at)?, at)
}

/// Calls `f` with the tensor of `x`, which is plain, so that `f` changes `x`. A tensor `x` is changed in its own buffer if no other tensor
/// shares the buffer.
pub(crate) fn update_plain<A: TensorLike>(
    x: &mut A,
    at: Site,
    f: impl FnOnce(&mut Tensor<A::Elem>) -> Result<(), Error>,
) -> Result<(), A::Error> {
    if let Some(x) = x.as_tensor_mut() {
        return Ok(f(x)?);
    }
    let mut tensor = x.to_tensor(at)?;
    f(&mut tensor)?;
    *x = x.try_constant(&tensor)?;
    Ok(())
}

/// Combines `values` by `op` with the elements of `x` from which `gather` with `index` would read. If `op` is `None`, the values are written.
/// The only other `op` is the sum.
pub(crate) fn scatter_along<A: TensorLike>(
    x: &mut A,
    axis: usize,
    index: &Tensor<i64>,
    values: &A,
    op: Option<Reduction>,
    at: Site,
) -> Result<(), A::Error> {
    if x.is_plain() {
        return scatter_plain(x, WritePositions::Gather { axis, index }, values, op, at);
    }
    let positions = target_positions(&x.shape(), axis, index, at)?;
    if op.is_none() { overwrite(x, &positions, values, at) } else { add_at(x, &positions, values, at) }
}

/// Returns the row-major positions, in a tensor of shape `shape`, from which `gather` with `index` would read. The result has the shape of
/// `index`.
pub(crate) fn target_positions(
    shape: &Shape,
    axis: usize,
    index: &Tensor<i64>,
    at: Site,
) -> Result<Tensor<i64>, Error> {
    let line = index.reshape_to(one_dim(index.shape()), at)?;
    gathered_positions(&one_dim(shape), axis, &line, at)?.reshape_to(index.shape().clone(), at)
}

/// Does the same as [`scatter_along`] for a plain `x`. `targets` can also be a list of positions.
fn scatter_plain<A: TensorLike>(
    x: &mut A,
    targets: WritePositions<'_>,
    values: &A,
    op: Option<Reduction>,
    at: Site,
) -> Result<(), A::Error> {
    let values = values.to_tensor(at)?;
    update_plain(x, at, |x| x.scatter_to(targets, &values, op, at))
}

/// Writes `values` to the row-major `positions` of `x`, one value per position.
pub(crate) fn overwrite<A: TensorLike>(
    x: &mut A,
    positions: &Tensor<i64>,
    values: &A,
    at: Site,
) -> Result<(), A::Error> {
    debug_assert_eq!(positions.shape(), &values.shape());
    if positions.numel() > 0 && x.is_plain() {
        return scatter_plain(x, WritePositions::RowMajor(positions), values, None, at);
    }
    *x = if positions.numel() == 0 { write_nothing(x, values, at)? } else { overwritten(x, positions, values, at)? };
    Ok(())
}

/// Returns `x` with `values` written to the row-major `positions`, at least one.
fn overwritten<A: TensorLike>(x: &A, positions: &Tensor<i64>, values: &A, at: Site) -> Result<A> {
    let shape = x.shape();
    let mut repeated = false;
    let source = Tensor::build(&shape, at, |source| {
        source.fill(-1);
        for (number, position) in positions.iter().enumerate() {
            let source = &mut source[position as usize];
            repeated |= *source >= 0;
            *source = number as i64;
        }
    })?;
    let written = x.constant_mask(&source.compare(Compare::Ge, 0, at)?, at)?;
    let last = values.apply_take(&source.combine(Binary::Maximum, 0, at)?, at)?;
    let result = A::apply_select(&written, &last, x, at)?;
    if !repeated {
        return Ok(result);
    }
    let terms = || {
        let every = values.apply_scatter_add(positions, &shape, at)?;
        Ok(vec![(A::apply_select(&written, &every, x, at)?, None)])
    };
    result.with_derivative(terms, at)
}

/// Returns `x`, the result for an index without elements, which writes no element of `values`. The result depends on `values`, so that the
/// gradient of `values` is zeros, as in PyTorch, and is not missing.
pub(crate) fn write_nothing<A: TensorLike>(x: &A, values: &A, at: Site) -> Result<A> {
    let terms = || {
        let written = values.reshape_to([values.shape().numel()], at)?.slice_axis(0, 0, 0, at)?;
        Ok(vec![(x.clone(), None), (written.apply_scatter_add(&Tensor::zeros([0]), &x.shape(), at)?, None)])
    };
    x.with_derivative(terms, at)
}

/// Writes the number `value` to all `positions` of `x`.
pub(crate) fn overwrite_with_number<A: TensorLike>(
    x: &mut A,
    positions: &Tensor<i64>,
    value: A::Elem,
    at: Site,
) -> Result<(), A::Error> {
    if x.is_plain() {
        return overwrite(x, positions, &expand_number(x, value, positions.shape(), at)?, at);
    }
    let kept = x.constant_mask(&mask_excluding(&x.shape(), positions, at)?, at)?;
    *x = x.choose(&kept, crate::ops::Argument::Number(value), at)?;
    Ok(())
}

/// Returns a mask that is false at `positions` and true elsewhere.
pub(crate) fn mask_excluding(shape: &Shape, positions: &Tensor<i64>, at: Site) -> Result<Tensor<bool>, Error> {
    Tensor::build(shape, at, |kept| {
        kept.fill(true);
        for position in positions.iter() {
            kept[position as usize] = false;
        }
    })
}

/// Adds `values` to the elements of `x` at `positions`. Values for the same position add up.
pub(crate) fn add_at<A: TensorLike>(x: &mut A, positions: &Tensor<i64>, values: &A, at: Site) -> Result<(), A::Error> {
    debug_assert!(A::Elem::DTYPE != crate::DType::Bool);
    if positions.numel() > 0 && x.is_plain() {
        return scatter_plain(x, WritePositions::RowMajor(positions), values, Some(Reduction::Sum), at);
    }
    *x = match positions.numel() {
        0 => write_nothing(x, values, at)?,
        _ => x.plus(&values.apply_scatter_add(positions, &x.shape(), at)?, at)?,
    };
    Ok(())
}
