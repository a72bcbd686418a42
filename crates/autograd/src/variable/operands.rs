//! Variables and tensors as masks, optional operands and factors of matrix products. Also the sum of an iterator of variables.

use std::iter::Sum;

use wengert_tensor::ops::{MaskOperand, OptionalOperand, ProductOperand, TensorLike, product};
use wengert_tensor::{Float, Site, Tensor};

use crate::{Error, Var};

impl<'t, T: Float> MaskOperand<Var<'t, T>> for Var<'t, T> {
    fn to_mask(&self, _masked: &Var<'t, T>, _at: Site) -> Result<Var<'t, T>, Error> {
        Ok(*self)
    }
}

impl<'t, T: Float> MaskOperand<Var<'t, T>> for Tensor<bool> {
    fn to_mask(&self, masked: &Var<'t, T>, at: Site) -> Result<Var<'t, T>, Error> {
        TensorLike::constant_mask(masked, self, at)
    }
}

impl<'t, T: Float> OptionalOperand<Var<'t, T>> for Var<'t, T> {
    fn into_option(self, _first: &Var<'t, T>) -> Result<Option<Var<'t, T>>, Error> {
        Ok(Some(self))
    }
}

impl<'t, T: Float> OptionalOperand<Var<'t, T>> for &Tensor<T> {
    fn into_option(self, first: &Var<'t, T>) -> Result<Option<Var<'t, T>>, Error> {
        first.try_constant(self).map(Some)
    }
}

/// Implements matrix products in which at least one operand is a variable. The other operand is a variable or a tensor.
macro_rules! products {
    ($($left:ty, $right:ty: |$x:ident, $y:ident| $variables:expr;)*) => {$(
        impl<'t, T: Float> ProductOperand<$left> for $right {
            type Product = Var<'t, T>;

            fn product_after(self, $x: &$left, at: Site) -> Result<Var<'t, T>, Error> {
                let $y = self;
                let (x, y) = $variables;
                product(&x, &y, at)
            }
        }
    )*};
}

products! {
    Var<'t, T>, Var<'t, T>: |x, y| (*x, y);
    Var<'t, T>, &Tensor<T>: |x, y| (*x, x.try_constant(y)?);
    Var<'t, T>, Tensor<T>: |x, y| (*x, x.try_constant(&y)?);
    Tensor<T>, Var<'t, T>: |x, y| (y.try_constant(x)?, y);
    Tensor<T>, &Var<'t, T>: |x, y| (y.try_constant(x)?, *y);
}

/// The sum of variables of one tape.
///
/// # Panics
///
/// If the iterator is empty, because the sum would have no tape. If this can happen, begin with a number:
/// `terms.fold(tape.constant(0.0), |sum, term| sum + term)`. Also if an addition panics, for example because the shapes do not broadcast,
/// or the variables belong to different tapes.
impl<'t, T: Float> Sum for Var<'t, T> {
    #[track_caller]
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        match terms.reduce(|sum, term| sum + term) {
            Some(sum) => sum,
            None => panic!(
                "a sum of no variables has no tape\n  hint: begin with a number on the tape: \
                 `terms.fold(tape.constant(0.0), |sum, term| sum + term)`"
            ),
        }
    }
}

/// The sum of variables of one tape. Panics if the iterator is empty, or an addition panics.
impl<'v, 't, T: Float> Sum<&'v Var<'t, T>> for Var<'t, T> {
    #[track_caller]
    fn sum<I: Iterator<Item = &'v Self>>(terms: I) -> Self {
        terms.copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn masks_are_tensors_or_variables() {
        let tape = Tape::<f64>::new();
        let data = Tensor::from([-1.0, 2.0, -3.0]);
        let (x, mask) = (tape.var(&data), data.lt(0.0));
        for filled in [x.masked_fill(&mask, 0.0), x.masked_fill(mask.clone(), 0.0), x.masked_fill(x.lt(0.0), 0.0)] {
            assert_eq!(filled.value().to_vec(), [0.0, 2.0, 0.0]);
            let [slope] = filled.sum(..).grad([x]);
            assert_eq!(slope.value().to_vec(), [0.0, 1.0, 0.0]);
        }
        assert_eq!(data.masked_fill(&mask, 0.0).to_vec(), [0.0, 2.0, 0.0]);
        for chosen in [where_(&mask, x, -x), where_(x.lt(0.0), &x, -x), where_(mask.clone(), &x, &-&data)] {
            assert_eq!(chosen.value().to_vec(), [-1.0, -2.0, -3.0]);
        }
    }

    #[test]
    fn a_bias_is_an_array_an_option_or_none() {
        let tape = Tape::<f64>::new();
        let (x, w) = (tape.var(&Tensor::from([[1.0, 2.0]])), tape.var(&Tensor::from([[3.0, 4.0]])));
        let (b, data) = (tape.var(&Tensor::from([10.0])), Tensor::from([10.0]));
        for y in [x.linear(w, b), x.linear(w, &b), x.linear(&w, Some(&b)), x.linear(w, &data)] {
            assert_eq!(y.item(), 21.0);
        }
        assert_eq!(x.linear(w, None).item(), 11.0);
    }

    #[test]
    fn sums_of_variables_and_numbers_as_constants() {
        let tape = Tape::<f32>::new();
        let x = tape.var(&Tensor::scalar(2.0));
        let terms = [x, x * x, x * x * x];
        assert_eq!(terms.iter().sum::<Var<'_>>().item(), 14.0);
        assert_eq!(terms.into_iter().sum::<Var<'_>>().grad([x])[0].item(), 1.0 + 4.0 + 12.0);
        assert_eq!((tape.constant(0.5) + tape.constant(1) + tape.constant(Tensor::scalar(2.0))).item(), 3.5);
        let no_terms = std::panic::catch_unwind(|| std::iter::empty::<Var<'_>>().sum::<Var<'_>>().index);
        let message = *no_terms.unwrap_err().downcast::<&str>().unwrap();
        assert!(message.contains("tape.constant(0.0)"), "{message}");
    }
}
