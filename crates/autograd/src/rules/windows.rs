//! Derivatives of convolutions, maximum pooling and mean pooling.
//!
//! The form ⟨x * w, z⟩ is linear in each of x, w and z. Here * is the convolution of an input x by a weight w, and z is an array of the
//! result's shape. The convolution and its two derivatives each compute one of the three arrays from the other two. The derivative of each
//! operation with respect to an operand computes that operand's array, with the incoming gradient in place of the result. So one rule is
//! enough for derivatives of all orders.

use std::rc::Rc;

use wengert_tensor::ops::{ConvolutionForm, MaxPoolForm, MeanPoolForm, Slot, TensorLike, Windowed};
use wengert_tensor::{Float, Shape, Site, Tensor, View};

use super::shared::site;
use crate::{BatchedCall, Call, Error, Operation, Var};

/// An operation that computes one of a convolution's three arrays (input, weight, result) from the other two. It is linear in each of these
/// two.
pub(crate) struct Convolution {
    pub(crate) form: ConvolutionForm,
    pub(crate) slot: Slot,
}

impl<T: Float> Operation<T> for Convolution {
    fn name(&self) -> &'static str {
        match self.slot {
            Slot::Input => "conv_transpose",
            Slot::Weight => "conv_weight",
            Slot::Output => "conv",
        }
    }

    fn shape(&self, _inputs: &[Shape]) -> Result<Shape, String> {
        Ok(self.form.shape(self.slot).clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(inputs[0].apply_convolution(&inputs[1], &self.form, self.slot, site("conv"))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let operands = self.slot.others();
        // The derivative computes the array of the requested operand from the other two arrays. One of these is the result of this
        // operation, which the incoming gradient `g` replaces.
        let target = operands[input];
        let operand = |slot: Slot| if slot == self.slot { g } else { call.input(1 - input) };
        let [first, second] = target.others().map(operand);
        call.value_of(first.apply_convolution(&second, &self.form, target, call.site("conv")))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        let [first, second] = if input == 0 { [v, call.input(1)] } else { [call.input(0), v] };
        call.value_of(first.apply_convolution(&second, &self.form, self.slot, call.site("conv")))
    }

    /// Records the convolutions of all examples. If all examples share the weight, one convolution processes the images of all examples.
    /// Otherwise, each example's channels become separate groups of a single convolution.
    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let (at, size, operands) = (call.at, call.size, self.slot.others());
        let is_shared = (0..2).any(|position| operands[position] == Slot::Weight && !call.is_batched(position));
        let form = if is_shared { self.form.multiply_batch(size) } else { self.form.multiply_groups(size) };
        let has_channels = |slot: Slot| !is_shared && slot != Slot::Weight;
        let operand = |position: usize| {
            let slot = operands[position];
            if is_shared && slot == Slot::Weight {
                return Ok(call.input(position));
            }
            let x = call.try_batched(position)?;
            let x = if has_channels(slot) { swap_first_dims(x, at)? } else { x };
            x.apply_view(View::Reshape(form.shape(slot).clone()), at)
        };
        let (first, second) = (call.value_of(operand(0))?, call.value_of(operand(1))?);
        let result = call.value_of(first.apply_convolution(&second, &form, self.slot, at))?;
        let mut shape = call.shape();
        if !has_channels(self.slot) {
            return call.value_of(result.apply_view(View::Reshape(shape), at));
        }
        shape.swap(0, 1);
        call.value_of(result.apply_view(View::Reshape(shape), at).and_then(|result| swap_first_dims(result, at)))
    }
}

/// Records `x` with its first two dimensions exchanged.
fn swap_first_dims<'t, T: Float>(x: Var<'t, T>, at: Site) -> Result<Var<'t, T>, Error> {
    let order = (0..x.shape().rank()).map(|axis| if axis < 2 { 1 - axis } else { axis });
    x.apply_view(View::Permute(order.collect()), at)
}

/// Maximum pooling, or its adjoint. The first input chooses a position in each window: the position of its largest element. Of several
/// equal elements, the first one counts. If the window has NaNs, the last NaN counts. The pooling reads the second input at these
/// positions. The adjoint adds the elements of the second input to zeros at these positions. Both operations are linear in the second
/// input. The derivative with respect to the first input is zero, or undefined where elements are equal.
pub(crate) struct MaxPooling {
    pub(crate) form: MaxPoolForm,
    pub(crate) is_adjoint: bool,
    /// The result of the pooling for an empty window.
    empty_value: f64,
}

impl MaxPooling {
    fn operation(&self) -> &'static str {
        if self.is_adjoint { "max_unpool" } else { "max_pool" }
    }

    fn apply<A: Windowed<Elem: Float>>(&self, x: &A, values: &A, at: Site) -> Result<A, A::Error> {
        match self.is_adjoint {
            false => x.apply_max_pool(values, &self.form, self.empty_value, at),
            true => x.apply_max_unpool(values, &self.form, at),
        }
    }
}

impl<T: Float> Operation<T> for MaxPooling {
    fn name(&self) -> &'static str {
        self.operation()
    }

    fn shape(&self, _inputs: &[Shape]) -> Result<Shape, String> {
        Ok(if self.is_adjoint { self.form.input() } else { self.form.output() }.clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(self.apply(&inputs[0], &inputs[1], site(self.operation()))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let adjoint = MaxPooling { form: self.form.clone(), is_adjoint: !self.is_adjoint, empty_value: 0.0 };
        if input == 0 { None } else { call.value_of(adjoint.apply(&call.input(0), &g, call.site(self.operation()))) }
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        let linear = MaxPooling { form: self.form.clone(), is_adjoint: self.is_adjoint, empty_value: 0.0 };
        if input == 0 { None } else { call.value_of(linear.apply(&call.input(0), &v, call.site(self.operation()))) }
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let batched = MaxPooling { form: self.form.multiply_batch(call.size), ..*self };
        let values = if self.is_adjoint { batched.form.output() } else { batched.form.input() };
        let (x, values) = (merge_batch(call, 0, batched.form.input())?, merge_batch(call, 1, values)?);
        split_batch(batched.apply(&x, &values, call.at), call)
    }
}

/// Mean pooling, or its adjoint, which spreads each window's value equally over its elements.
pub(crate) struct MeanPooling {
    pub(crate) form: MeanPoolForm,
    pub(crate) is_adjoint: bool,
}

impl MeanPooling {
    fn operation(&self) -> &'static str {
        if self.is_adjoint { "avg_unpool" } else { "avg_pool" }
    }

    fn apply<A: Windowed<Elem: Float>>(&self, x: &A, at: Site) -> Result<A, A::Error> {
        if self.is_adjoint { x.apply_avg_unpool(&self.form, at) } else { x.apply_avg_pool(&self.form, at) }
    }
}

impl<T: Float> Operation<T> for MeanPooling {
    fn name(&self) -> &'static str {
        self.operation()
    }

    fn shape(&self, _inputs: &[Shape]) -> Result<Shape, String> {
        Ok(if self.is_adjoint { self.form.input() } else { self.form.output() }.clone())
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(self.apply(&inputs[0], site(self.operation()))?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        let adjoint = MeanPooling { form: self.form.clone(), is_adjoint: !self.is_adjoint };
        call.value_of(adjoint.apply(&g, call.site(self.operation())))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(self.apply(&v, call.site(self.operation())))
    }

    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        let batched = MeanPooling { form: self.form.multiply_batch(call.size), is_adjoint: self.is_adjoint };
        let from = if self.is_adjoint { batched.form.output() } else { batched.form.input() };
        split_batch(batched.apply(&merge_batch(call, 0, from)?, call.at), call)
    }
}

/// Returns the input with index `position`, reshaped to `shape`, in which one dimension contains the images of all examples. Returns `None`
/// if the rule of `call` fails.
fn merge_batch<'t, T: Float>(call: &BatchedCall<'t, T>, position: usize, shape: &Shape) -> Option<Var<'t, T>> {
    let images = |input: Var<'t, T>| input.apply_view(View::Reshape(shape.clone()), call.at);
    call.value_of(call.try_batched(position).and_then(images))
}

/// Splits a result for the images of all examples into one result per example. The examples become a new first dimension. If there is an
/// error instead of a result, stores it in `call` and returns `None`.
fn split_batch<'t, T: Float>(result: Result<Var<'t, T>, Error>, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
    call.value_of(result.and_then(|result| result.apply_view(View::Reshape(call.shape()), call.at)))
}

impl<T: Float> Windowed for Var<'_, T> {
    fn apply_convolution(&self, other: &Self, form: &ConvolutionForm, slot: Slot, at: Site) -> Result<Self, Error> {
        self.tape.record_operation(Rc::new(Convolution { form: form.clone(), slot }), &[*self, *other], at)
    }

    fn apply_max_pool(&self, values: &Self, form: &MaxPoolForm, empty_value: f64, at: Site) -> Result<Self, Error> {
        let pooling = MaxPooling { form: form.clone(), is_adjoint: false, empty_value };
        self.tape.record_operation(Rc::new(pooling), &[*self, *values], at)
    }

    fn apply_max_unpool(&self, g: &Self, form: &MaxPoolForm, at: Site) -> Result<Self, Error> {
        let pooling = MaxPooling { form: form.clone(), is_adjoint: true, empty_value: 0.0 };
        self.tape.record_operation(Rc::new(pooling), &[*self, *g], at)
    }

    fn apply_avg_pool(&self, form: &MeanPoolForm, at: Site) -> Result<Self, Error> {
        self.tape.record_operation(Rc::new(MeanPooling { form: form.clone(), is_adjoint: false }), &[*self], at)
    }

    fn apply_avg_unpool(&self, form: &MeanPoolForm, at: Site) -> Result<Self, Error> {
        self.tape.record_operation(Rc::new(MeanPooling { form: form.clone(), is_adjoint: true }), &[*self], at)
    }
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::{ConvOptions, PoolOptions};
    use wengert_tensor::prelude::*;

    /// Returns a tensor of numbers between -1 and 1. The first 101 elements are distinct, and the later ones repeat
    /// them.
    fn numbers(shape: [usize; 4], seed: usize) -> Tensor<f64> {
        let count: usize = shape.iter().product();
        let values = (0..count).map(|i| ((i * 37 + seed) % 101) as f64 * 0.02 - 1.0).collect();
        Tensor::from_vec(values, shape)
    }

    #[test]
    fn a_convolution_has_both_derivatives_of_both_orders() {
        let options = ConvOptions::default().stride([1, 2]).padding([0, 1]).dilation([2, 1]).groups(2);
        let (x, w) = (numbers([2, 2, 5, 4], 0), numbers([4, 1, 2, 3], 50));
        crate::assert_gradcheck!(|x, w| x.conv2d(&w, None, &options).square(), &x, &w);
        let (g, w) = (numbers([1, 2, 3, 2], 9), numbers([2, 2, 2, 2], 70));
        let options = ConvOptions::default().stride(2).output_padding(1);
        crate::assert_gradcheck!(|g, w| g.conv_transpose2d(&w, None, &options).square(), &g, &w);
    }

    #[test]
    fn the_largest_of_a_window_has_both_derivatives_of_both_orders() {
        let x = numbers([2, 1, 6, 5], 3);
        crate::assert_gradcheck!(|x| x.max_pool2d(2, &PoolOptions::default()).square(), &x);
        let options = PoolOptions::default().stride(1).padding(1);
        crate::assert_gradcheck!(|x| x.max_pool2d([3, 2], &options).square(), &x);
    }

    #[test]
    fn a_mean_has_both_derivatives_of_both_orders() {
        let x = numbers([2, 1, 6, 5], 3);
        crate::assert_gradcheck!(|x| x.avg_pool2d(2, &PoolOptions::default()).square(), &x);
        let options = PoolOptions::default().stride([1, 2]).padding(1).ceil_mode(true).count_include_pad(false);
        crate::assert_gradcheck!(|x| x.avg_pool2d([2, 3], &options).square(), &x);
        crate::assert_gradcheck!(|x| x.adaptive_avg_pool2d([4, 2]).square(), &x);
    }

    /// Checks the line of an error. The input of the convolution is the same for all examples, and too large for any
    /// memory once it is repeated for each example.
    #[test]
    fn an_error_of_a_batching_rule_has_the_callers_line() {
        use crate::transforms::Vmap;
        let tape = crate::Tape::<f64>::new();
        let x = tape.constant(Tensor::scalar(1.0).expand([1, 1, 1 << 20]));
        let weights = tape.var(&Tensor::scalar(1.0).expand([1usize << 43, 1, 1, 1]));
        let options = ConvOptions::default().stride(1 << 20);
        let vmap = Vmap::new().in_dims([None, Some(0)]);
        let line = line!() + 1;
        let error = vmap.try_record(|[x, w]| [x.conv1d(&w, None, &options)], [x, weights]).unwrap_err();
        let crate::Error::Tensor(error) = &error else { panic!("{error}") };
        assert_eq!((error.site().location.file(), error.site().location.line()), (file!(), line));
    }
}
