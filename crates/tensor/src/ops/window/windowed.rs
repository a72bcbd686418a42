//! The primitives that look through windows: convolutions with their derivatives, the largest element of a window, and the
//! mean of one.

use crate::kernel::conv::convolution;
use crate::kernel::conv::geometry::{Geometry, WindowAxis};
use crate::kernel::pool::{max, mean};
use crate::ops::TensorLike;
use crate::ops::window::windows::Window;
use crate::{Axes, Element, Error, Float, Shape, Site, Tensor};

/// A convolution z = x * w as the form ⟨x * w, z⟩, which is linear in each of the three. Its derivative with respect to one
/// is a function of the other two, and the three of them have each other as derivatives.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct ConvolutionForm {
    /// Of x, w and z, by [`Slot`]. No size is 0 but, maybe, the first of x and z.
    pub(crate) shapes: [Shape; 3],
    pub(crate) stride: Axes,
    pub(crate) dilation: Axes,
    /// How far before the input the first window begins.
    pub(crate) before: Axes,
    pub(crate) groups: usize,
}

/// One of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum Slot {
    /// x, `[n, c, …]`.
    Input,
    /// w, `[out, c / groups, …]`.
    Weight,
    /// z, `[n, out, …]`.
    Output,
}

impl Slot {
    /// All of them.
    pub const ALL: [Slot; 3] = [Slot::Input, Slot::Weight, Slot::Output];

    /// The other two, in order: the operands of what gives this one.
    pub fn others(self) -> [Slot; 2] {
        match self {
            Slot::Input => [Slot::Weight, Slot::Output],
            Slot::Weight => [Slot::Input, Slot::Output],
            Slot::Output => [Slot::Input, Slot::Weight],
        }
    }
}

impl ConvolutionForm {
    pub(crate) fn new(shapes: [Shape; 3], windows: &[Window], before: &[usize], groups: usize) -> Self {
        let stride = windows.iter().map(|window| window.stride).collect();
        let dilation = windows.iter().map(|window| window.dilation).collect();
        ConvolutionForm { shapes, stride, dilation, before: before.iter().copied().collect(), groups }
    }

    /// The shape of one.
    pub fn shape(&self, slot: Slot) -> &Shape {
        &self.shapes[slot as usize]
    }

    /// The same over `size` times as many images, with one weight for all.
    pub fn over_images(&self, size: usize) -> Self {
        let mut form = self.clone();
        for slot in [Slot::Input, Slot::Output] {
            form.shapes[slot as usize][0] *= size;
        }
        form
    }

    /// `size` of them side by side, each with a weight of its own: as many groups.
    pub fn side_by_side(&self, size: usize) -> Self {
        let mut form = ConvolutionForm { groups: self.groups * size, ..self.clone() };
        form.shapes[Slot::Weight as usize][0] *= size;
        for slot in [Slot::Input, Slot::Output] {
            form.shapes[slot as usize][1] *= size;
        }
        form
    }

    /// What the kernel does; `None` where there is nothing to compute.
    fn plan(&self) -> Option<Geometry> {
        let [x, w, z] = &self.shapes;
        if self.shapes.iter().any(|shape| shape.contains(&0)) {
            return None;
        }
        let rank = self.stride.len();
        let axis = |k: usize| match (k + rank).checked_sub(3) {
            None => WindowAxis::NONE,
            Some(k) => WindowAxis {
                input: x[2 + k],
                kernel: w[2 + k],
                output: z[2 + k],
                stride: self.stride[k],
                dilation: self.dilation[k],
                before: self.before[k],
            },
        };
        let (groups, out) = (self.groups, w[0] / self.groups);
        Some(Geometry { batch: x[0], groups, channels: w[1], out, axes: [axis(0), axis(1), axis(2)] })
    }
}

/// Windows on planes, for the largest element of each.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct PoolingForm {
    /// Of the input, `[n, c, …]`, not empty but, maybe, in n and c.
    pub(crate) input: Shape,
    /// Of the result.
    pub(crate) output: Shape,
    pub(crate) plan: max::MaxPool,
}

impl PoolingForm {
    /// The same on `size` times as many images.
    pub fn over_images(&self, size: usize) -> Self {
        let mut form = self.clone();
        form.input[0] *= size;
        form.output[0] *= size;
        form
    }

    /// The shape of the input.
    pub fn input(&self) -> &Shape {
        &self.input
    }

    /// The shape of the result.
    pub fn output(&self) -> &Shape {
        &self.output
    }
}

/// Windows on planes, for the mean of each.
#[derive(Clone, Debug)]
#[doc(hidden)]
pub struct MeanForm {
    /// Of the input, `[n, c, …]`, not empty but, maybe, in n and c.
    pub(crate) input: Shape,
    /// Of the result, likewise.
    pub(crate) output: Shape,
    pub(crate) plan: mean::MeanPool,
}

impl MeanForm {
    /// The same on `size` times as many images.
    pub fn over_images(&self, size: usize) -> Self {
        let mut form = self.clone();
        form.input[0] *= size;
        form.output[0] *= size;
        form
    }

    /// The shape of the input.
    pub fn input(&self) -> &Shape {
        &self.input
    }

    /// The shape of the result.
    pub fn output(&self) -> &Shape {
        &self.output
    }
}

/// The primitives that look through windows.
pub trait Windowed: TensorLike {
    /// The derivative of the form with respect to `slot`, a function of the other two (`self` and `other`, in order).
    #[doc(hidden)]
    fn apply_convolution(
        &self,
        other: &Self,
        form: &ConvolutionForm,
        slot: Slot,
        at: Site,
    ) -> Result<Self, Self::Error>;

    /// The elements of `values` at the places where `self`, of the same shape, is largest in its window; `nothing` where a
    /// window is empty.
    #[doc(hidden)]
    fn apply_choose(&self, values: &Self, form: &PoolingForm, nothing: f64, at: Site) -> Result<Self, Self::Error>
    where
        Self::Elem: Float;

    /// The adjoint of [`apply_choose`](Self::apply_choose) as a function of `values`.
    #[doc(hidden)]
    fn apply_give_back(&self, g: &Self, form: &PoolingForm, at: Site) -> Result<Self, Self::Error>
    where
        Self::Elem: Float;

    /// The mean of every window.
    #[doc(hidden)]
    fn apply_mean(&self, form: &MeanForm, at: Site) -> Result<Self, Self::Error>
    where
        Self::Elem: Float;

    /// The adjoint of [`apply_mean`](Self::apply_mean).
    #[doc(hidden)]
    fn apply_spread(&self, form: &MeanForm, at: Site) -> Result<Self, Self::Error>
    where
        Self::Elem: Float;
}

impl<T: Element> Windowed for Tensor<T> {
    fn apply_convolution(&self, other: &Self, form: &ConvolutionForm, slot: Slot, at: Site) -> Result<Self, Error> {
        let shape = form.shape(slot);
        let Some(plan) = form.plan() else { return Tensor::build_on_zeros(shape, at, |_| {}) };
        let (first, second) = (self.try_contiguous()?, other.try_contiguous()?);
        let (first, second) = (elements(&first), elements(&second));
        Tensor::build(shape, at, |out| match slot {
            Slot::Input => convolution::input_gradient(&plan, first, second, out),
            Slot::Weight => convolution::weight_gradient(&plan, first, second, out),
            Slot::Output => convolution::forward(&plan, first, second, out),
        })
    }

    fn apply_choose(&self, values: &Self, form: &PoolingForm, nothing: f64, at: Site) -> Result<Self, Error>
    where
        T: Float,
    {
        let (x, values) = (self.try_contiguous()?, values.try_contiguous()?);
        Tensor::build(&form.output, at, |out| {
            max::choose(&form.plan, elements(&x), elements(&values), T::from_f64(nothing), out);
        })
    }

    fn apply_give_back(&self, g: &Self, form: &PoolingForm, at: Site) -> Result<Self, Error>
    where
        T: Float,
    {
        let (x, g) = (self.try_contiguous()?, g.try_contiguous()?);
        Tensor::build(&form.input, at, |out| max::scatter(&form.plan, elements(&x), elements(&g), out))
    }

    fn apply_mean(&self, form: &MeanForm, at: Site) -> Result<Self, Error>
    where
        T: Float,
    {
        let x = self.try_contiguous()?;
        Tensor::build(&form.output, at, |out| mean::mean(&form.plan, elements(&x), out))
    }

    fn apply_spread(&self, form: &MeanForm, at: Site) -> Result<Self, Error>
    where
        T: Float,
    {
        let g = self.try_contiguous()?;
        Tensor::build(&form.input, at, |out| mean::spread(&form.plan, elements(&g), out))
    }
}

/// Of a tensor that was made contiguous.
fn elements<T: Element>(x: &Tensor<T>) -> &[T] {
    x.as_slice().unwrap_or_else(|| unreachable!("it is contiguous"))
}
