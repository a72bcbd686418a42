//! The primitives over sliding windows: convolutions with their derivatives, and maximum and mean pooling.

use crate::kernel::conv::convolution;
use crate::kernel::conv::geometry::{Geometry, WindowAxis};
use crate::kernel::pool::{max, mean};
use crate::ops::window::windows::Window;
use crate::ops::{Result, TensorLike};
use crate::{Axes, Element, Error, Float, Shape, Site, Tensor};

/// A convolution z = x * w, described by the trilinear form ⟨x * w, z⟩, which is linear in each of x, w and z. The derivative of the form
/// with respect to one array is a function of the other two arrays. These three functions are each other's derivatives.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct ConvolutionForm {
    /// The shapes of x, w and z, by [`Slot`]. The batch size, the channels of a group and the sizes of a padded input can be 0.
    pub(crate) shapes: [Shape; 3],
    pub(crate) stride: Axes,
    pub(crate) dilation: Axes,
    /// The number of padding elements before the input, per dimension.
    pub(crate) padding_before: Axes,
    pub(crate) groups: usize,
}

/// One of the three arrays of a [`ConvolutionForm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Slot {
    /// The input x, `[n, c, …]`.
    Input,
    /// The weight w, `[out, c / groups, …]`.
    Weight,
    /// The output z, `[n, out, …]`.
    Output,
}

impl Slot {
    /// Returns the other two arrays, in the order x, w, z. The derivative with respect to this array is computed from them.
    pub fn others(self) -> [Slot; 2] {
        match self {
            Slot::Input => [Slot::Weight, Slot::Output],
            Slot::Weight => [Slot::Input, Slot::Output],
            Slot::Output => [Slot::Input, Slot::Weight],
        }
    }
}

impl ConvolutionForm {
    pub(crate) fn new(shapes: [Shape; 3], windows: &[Window], padding_before: &[usize], groups: usize) -> Self {
        let stride = windows.iter().map(|window| window.stride).collect();
        let dilation = windows.iter().map(|window| window.dilation).collect();
        ConvolutionForm { shapes, stride, dilation, padding_before: padding_before.iter().copied().collect(), groups }
    }

    /// Returns the shape of x, w or z.
    pub fn shape(&self, slot: Slot) -> &Shape {
        &self.shapes[slot as usize]
    }

    /// Returns the number of groups of channels.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Returns the windows along each dimension after the first two.
    pub fn windows(&self) -> impl Iterator<Item = WindowAxis> {
        let [x, w, z] = &self.shapes;
        (0..self.stride.len()).map(move |k| WindowAxis {
            input: x[2 + k],
            kernel: w[2 + k],
            output: z[2 + k],
            stride: self.stride[k],
            dilation: self.dilation[k],
            padding_before: self.padding_before[k],
        })
    }

    /// Returns the form for a batch that is `size` times as large, with the same weight.
    pub fn multiply_batch(&self, size: usize) -> Self {
        let mut form = self.clone();
        for slot in [Slot::Input, Slot::Output] {
            form.shapes[slot as usize][0] *= size;
        }
        form
    }

    /// Returns the form for `size` convolutions with separate weights, expressed as `size` times as many groups.
    pub fn multiply_groups(&self, size: usize) -> Self {
        let mut form = ConvolutionForm { groups: self.groups * size, ..self.clone() };
        form.shapes[Slot::Weight as usize][0] *= size;
        for slot in [Slot::Input, Slot::Output] {
            form.shapes[slot as usize][1] *= size;
        }
        form
    }

    /// Returns the sizes of the convolution as `kernel::conv` takes them, or `None` if one of the arrays is empty.
    fn geometry(&self) -> Option<Geometry> {
        let [x, w, _] = &self.shapes;
        if self.shapes.iter().any(|shape| shape.contains(&0)) {
            return None;
        }
        let mut axes = [WindowAxis::NONE; 3];
        for (axis, window) in axes[3 - self.stride.len()..].iter_mut().zip(self.windows()) {
            // If there is a single window or a single weight along a dimension, the distance to the next window or weight has no effect.
            // The distance is made small, because products with it could overflow.
            let stride = if window.output == 1 { window.stride.min(window.input) } else { window.stride };
            let dilation = if window.kernel == 1 { 1 } else { window.dilation };
            *axis = WindowAxis { stride, dilation, ..window };
        }
        Some(Geometry { batch: x[0], groups: self.groups, channels: w[1], out: w[0] / self.groups, axes })
    }
}

/// The shapes of the input and the result of a pooling operation, and its windows. The type `P` of the windows decides the kind of pooling.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct PoolForm<P> {
    /// The shape of the input, `[n, c, …]`. The sizes n and c can be 0. If an adaptive pooling of volumes has an empty result, the last size
    /// can also be 0.
    pub(crate) input: Shape,
    pub(crate) output: Shape,
    pub(crate) windows: P,
}

/// The shapes and the windows of a maximum pooling.
#[doc(hidden)]
pub type MaxPoolForm = PoolForm<max::MaxPool>;

/// The shapes and the windows of a mean pooling.
#[doc(hidden)]
pub type MeanPoolForm = PoolForm<mean::MeanPool>;

impl<P: Clone> PoolForm<P> {
    /// Returns the pooling of a batch that is `size` times as large.
    pub fn multiply_batch(&self, size: usize) -> Self {
        let mut form = self.clone();
        form.input[0] *= size;
        form.output[0] *= size;
        form
    }

    /// Returns the shape of the input.
    pub fn input(&self) -> &Shape {
        &self.input
    }

    /// Returns the shape of the result.
    pub fn output(&self) -> &Shape {
        &self.output
    }
}

/// The primitives over sliding windows.
pub trait Windowed: TensorLike {
    /// Computes the derivative of the trilinear form ⟨x * w, z⟩ of [`ConvolutionForm`] with respect to `slot`. The operands `self` and
    /// `other` are the other two arrays in the order x, w, z.
    #[doc(hidden)]
    fn apply_convolution(&self, other: &Self, form: &ConvolutionForm, slot: Slot, at: Site) -> Result<Self>;

    /// Returns, for each window, the element of `values` at the position where `self` is largest in the window. `values` and `self` have
    /// the same shape. The result for an empty window is `empty_value`.
    #[doc(hidden)]
    fn apply_max_pool(&self, values: &Self, form: &MaxPoolForm, empty_value: f64, at: Site) -> Result<Self>
    where
        Self::Elem: Float;

    /// Applies the adjoint of [`apply_max_pool`](Self::apply_max_pool), which is a linear function of `values`, to the gradient `g`.
    #[doc(hidden)]
    fn apply_max_unpool(&self, g: &Self, form: &MaxPoolForm, at: Site) -> Result<Self>
    where
        Self::Elem: Float;

    /// Returns the mean of each window.
    #[doc(hidden)]
    fn apply_avg_pool(&self, form: &MeanPoolForm, at: Site) -> Result<Self>
    where
        Self::Elem: Float;

    /// Applies the adjoint of [`apply_avg_pool`](Self::apply_avg_pool) to the gradient `self`.
    #[doc(hidden)]
    fn apply_avg_unpool(&self, form: &MeanPoolForm, at: Site) -> Result<Self>
    where
        Self::Elem: Float;
}

#[wengert_macros::precompiled]
impl<T: Element> Windowed for Tensor<T> {
    fn apply_convolution(&self, other: &Self, form: &ConvolutionForm, slot: Slot, at: Site) -> Result<Self, Error> {
        let shape = form.shape(slot);
        let Some(geometry) = form.geometry() else { return Tensor::build_on_zeros(shape, at, |_| {}) };
        let (first, second) = (self.try_contiguous()?, other.try_contiguous()?);
        let (first, second) = (elements(&first), elements(&second));
        Tensor::build(shape, at, |out| match slot {
            Slot::Input => convolution::input_gradient(&geometry, first, second, out),
            Slot::Weight => convolution::weight_gradient(&geometry, first, second, out),
            Slot::Output => convolution::forward(&geometry, first, second, out),
        })
    }

    fn apply_max_pool(&self, values: &Self, form: &MaxPoolForm, empty_value: f64, at: Site) -> Result<Self, Error>
    where
        T: Float,
    {
        let (x, values) = (self.try_contiguous()?, values.try_contiguous()?);
        Tensor::build(&form.output, at, |out| {
            max::choose(&form.windows, elements(&x), elements(&values), T::from_f64(empty_value), out);
        })
    }

    fn apply_max_unpool(&self, g: &Self, form: &MaxPoolForm, at: Site) -> Result<Self, Error>
    where
        T: Float,
    {
        let (x, g) = (self.try_contiguous()?, g.try_contiguous()?);
        Tensor::build(&form.input, at, |out| max::scatter(&form.windows, elements(&x), elements(&g), out))
    }

    fn apply_avg_pool(&self, form: &MeanPoolForm, at: Site) -> Result<Self, Error>
    where
        T: Float,
    {
        let x = self.try_contiguous()?;
        Tensor::build(&form.output, at, |out| mean::mean(&form.windows, elements(&x), out))
    }

    fn apply_avg_unpool(&self, form: &MeanPoolForm, at: Site) -> Result<Self, Error>
    where
        T: Float,
    {
        let g = self.try_contiguous()?;
        Tensor::build(&form.input, at, |out| mean::spread(&form.windows, elements(&g), out))
    }
}

/// Returns the elements of `x`, which must be contiguous.
fn elements<T: Element>(x: &Tensor<T>) -> &[T] {
    x.as_slice().unwrap_or_else(|| unreachable!("the tensor is contiguous"))
}
