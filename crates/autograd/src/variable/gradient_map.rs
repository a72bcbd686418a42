//! Gradient hooks: a function that the caller passes replaces the gradient of a variable.

use std::rc::Rc;

use wengert_macros::twins;
use wengert_tensor::plan::ResultOrigin;
use wengert_tensor::{Float, Site, Tensor};

use crate::{Call, Error, Operation, Var};

#[twins]
impl<'t, T: Float> Var<'t, T> {
    /// Returns a variable with the same value. In reverse mode, the incoming gradient of the returned variable is replaced by the result of
    /// `map`, which must have the same shape. PyTorch: `Tensor.register_hook`.
    ///
    /// `map` consists of recorded operations, so the result can be differentiated again. `map` runs once for each
    /// gradient that is recorded, and not at all if none is recorded. Forward mode and the value do not change.
    ///
    /// Within a [`vmap`](crate::transforms::vmap()), `map` sees the gradient of one example. If the function of one
    /// example takes the gradient itself, `map` is recorded once and then batched. If the gradient is taken outside of
    /// the `vmap`, `map` runs once for each example.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::from([1.0, 20.0]));
    /// let clipped = x.map_gradient(|gradient| gradient.clamp(-4.0, 4.0));
    /// let loss = clipped.square().sum(..);
    /// assert_eq!(loss.backward().of(x).to_vec(), [2.0, 4.0]); // without the function: 2 and 40
    /// ```
    ///
    /// # Errors
    ///
    /// If the tape is full. If `map` returns another shape, recording the gradient is an error.
    #[doc(alias("register_hook", "gradient_hook"))]
    pub fn try_map_gradient(self, map: impl for<'g> Fn(Var<'g, T>) -> Var<'g, T> + 'static) -> Result<Self, Error> {
        let at = Site::here("map_gradient");
        self.tape.record_operation(Rc::new(GradientMap(map)), &[self], at)
    }
}

/// The identity operation. In reverse mode, its derivative applies a function to the upstream gradient.
struct GradientMap<F>(F);

impl<T: Float, F: for<'g> Fn(Var<'g, T>) -> Var<'g, T> + 'static> Operation<T> for GradientMap<F> {
    fn name(&self) -> &'static str {
        "map_gradient"
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].clone())
    }

    fn result_origin(&self) -> ResultOrigin {
        ResultOrigin::FirstInput
    }

    fn vjp<'t>(&self, _: &Call<'t, T>, _: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        Some((self.0)(g))
    }

    fn jvp<'t>(&self, _: &Call<'t, T>, _: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        Some(v)
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::transforms::vmap;

    #[test]
    fn the_gradient_is_mapped_and_the_value_and_the_tangent_are_not() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([1.0, -2.0, 3.0]));
        let y = x.map_gradient(|g| g * 10.0);
        assert_eq!(y.value(), x.value());
        let loss = (y * y * y).sum(..);
        let [dx] = loss.grad([x]);
        assert_eq!(dx.value().to_vec(), [30.0, 120.0, 270.0]);
        // The second derivative passes through the identity and through the function of the gradient: 10 · 10 · 6x.
        assert_eq!(dx.sum(..).grad([x])[0].value().to_vec(), [600.0, -1200.0, 1800.0]);
        let tangent = loss.jvp(&[(x, tape.constant(Tensor::ones([3])))]);
        assert_eq!(tangent.item(), 3.0 + 12.0 + 27.0);
    }

    #[test]
    fn a_batched_gradient_is_mapped_for_each_example() {
        let x = Tensor::from([[3.0, 4.0], [0.3, 0.4]]);
        // Each example has its own norm: 5 and 0.5.
        let unit = |g: &Tensor<f64>| g / g.square().sum(..).sqrt();
        let expected = [unit(&x.select(0, 0)), unit(&x.select(0, 1))];
        let found = vmap(
            |x| {
                let y = x.map_gradient(|g| g / g.square().sum(..).sqrt());
                let [dx] = (y.square().sum(..) * 0.5).grad([x]);
                dx
            },
            &x,
        );
        for (found, expected) in [found.select(0, 0), found.select(0, 1)].into_iter().zip(expected) {
            assert!((&found - &expected).abs().amax(..).item() < 1e-15, "{found} {expected}");
        }
    }

    #[test]
    #[should_panic(expected = "map_gradient")]
    fn another_shape_is_an_error_of_the_derivative() {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from([1.0, 2.0]));
        x.map_gradient(|g| g.sum(..)).sum(..).grad([x]);
    }
}
