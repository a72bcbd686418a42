//! Writes values to positions. If one position is written several times, the last write wins.
//!
//! PyTorch does not specify which write wins, but gives every written value the gradient of its element, as if its write had won. This code
//! does the same: the result has the values of the last writes, and the derivative includes all writes.

use crate::kernel::gather::scatter;
use crate::ops::primitive::compose::Compose;
use crate::ops::primitive::pair::number;
use crate::ops::{Result, TensorLike};
use crate::{Binary, Compare, Error, Scalar, Shape, Site, Tensor};

/// Returns `x` with `values` written to the row-major `positions`, one value per position.
pub(crate) fn overwrite<A: TensorLike>(x: &A, positions: &Tensor<i64>, values: &A, at: Site) -> Result<A> {
    debug_assert_eq!(positions.shape(), &values.shape());
    if positions.numel() == 0 {
        return Ok(x.clone());
    }
    if x.is_plain() {
        let mut result = x.to_tensor(at)?.copied(at)?;
        scatter(values.to_tensor(at)?.source(), positions.source(), result.elements_mut(at)?);
        return Ok(x.constant(&result));
    }
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
    let written = x.mask(&source.compare(Compare::Ge, 0, at)?, at)?;
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

/// Returns `x` with the number `value` written to all `positions`.
pub(crate) fn overwrite_with_number<A: TensorLike>(
    x: &A,
    positions: &Tensor<i64>,
    value: A::Elem,
    at: Site,
) -> Result<A> {
    if x.is_plain() {
        return overwrite(x, positions, &number(x, value, positions.shape(), at)?, at);
    }
    x.choose(&x.mask(&mask_without(&x.shape(), positions, at)?, at)?, crate::ops::Argument::Number(value), at)
}

/// Returns a mask that is false at `positions` and true elsewhere.
pub(crate) fn mask_without(shape: &Shape, positions: &Tensor<i64>, at: Site) -> Result<Tensor<bool>, Error> {
    Tensor::build(shape, at, |kept| {
        kept.fill(true);
        for position in positions.iter() {
            kept[position as usize] = false;
        }
    })
}

/// Returns `x` with `values` added at `positions`. Values for the same position add up.
pub(crate) fn add_at<A: TensorLike>(x: &A, positions: &Tensor<i64>, values: &A, at: Site) -> Result<A> {
    if positions.numel() == 0 {
        return Ok(x.clone());
    }
    debug_assert!(A::Elem::DTYPE != crate::DType::Bool);
    x.plus(&values.apply_scatter_add(positions, &x.shape(), at)?, at)
}
