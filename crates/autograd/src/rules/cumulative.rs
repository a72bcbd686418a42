//! The cumulative sum along a dimension as an operation of a tape, with its derivatives. The adjoint is the cumulative sum from the other
//! end.

use wengert_tensor::ops::TensorLike;
use wengert_tensor::{Axes, Float, Site, Tensor, View};

use super::shared::site;
use crate::{BatchedCall, Call, Error, Operation, Var};

/// The operation that computes the cumulative sum along `axis`.
pub(crate) struct CumSum {
    pub(crate) axis: usize,
}

impl<T: Float> Operation<T> for CumSum {
    fn name(&self) -> &'static str {
        "cumsum"
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].apply_cumsum(self.axis, site("cumsum"))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let at: Site = call.site("cumsum");
        let flipped = |x: Var<'t, T>| x.apply_view(View::Flip(Axes::from_slice(&[self.axis])), at);
        call.value_of(flipped(g).and_then(|g| g.apply_cumsum(self.axis, at)).and_then(flipped))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(v.apply_cumsum(self.axis, call.site("cumsum")))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(call.batched(0).apply_cumsum(self.axis + 1, call.at))
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::prelude::*;

    use crate::Tape;

    #[test]
    fn the_gradient_sums_from_the_other_end() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([[1.0, 2.0, 3.0]]));
        let weight = Tensor::from([[1.0, 10.0, 100.0]]);
        let [dx] = (x.cumsum(1) * &weight).sum(..).grad([x]);
        assert_eq!(dx.value().to_vec(), [111.0, 110.0, 100.0]);
    }

    #[test]
    fn a_running_product_is_exact_at_zeros() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([2.0, 0.0, 5.0, 0.0]));
        let y = x.cumprod(0);
        assert_eq!(y.value().to_vec(), [2.0, 0.0, 0.0, 0.0]);
        let [dx] = y.sum(..).grad([x]);
        assert_eq!(dx.value().to_vec(), [1.0, 12.0, 0.0, 0.0]);
    }
}
