//! Translates convolutions and poolings.

use wengert_tensor::ops::{ConvolutionForm, MaxPoolForm, MeanPoolForm, MeanWindow, Slot, WindowAxis};
use wengert_tensor::{Float, Shape, Tensor};

use super::lowering::{Lowering, integers_attribute};
use super::views::integer_attribute;
use crate::error::Error;
use crate::graph::{Attribute, ElementKind, Source, ValueId};

impl<T: Float> Lowering<T> {
    /// Translates a convolution or a transposed convolution. `slot` is the array that the operation computes: the
    /// output or the input. For the weight, returns an error. The operands are the other two arrays, in the order
    /// input, weight, output.
    pub(super) fn convolution(
        &mut self,
        form: &ConvolutionForm,
        slot: Slot,
        [mut first, second]: [ValueId; 2],
    ) -> Result<ValueId, Error> {
        let windows: Vec<WindowAxis> = form.windows().collect();
        let mut attributes = vec![
            ("group", integer_attribute(form.groups())),
            ("kernel_shape", integers_attribute(windows.iter().map(|window| window.kernel))),
            ("strides", integers_attribute(windows.iter().map(|window| window.stride))),
            ("dilations", integers_attribute(windows.iter().map(|window| window.dilation))),
        ];
        let pads_after: Vec<i64> = windows.iter().map(end_padding).collect();
        let pads_before = windows.iter().map(|window| window.padding_before as i64);
        attributes
            .push(("pads", Attribute::Integers(pads_before.chain(pads_after.iter().map(|&end| end.max(0))).collect())));
        let shape = form.shape(slot).clone();
        match slot {
            Slot::Output => {
                // If at least as many elements as the stride remain after the last window, the operator would compute
                // more windows. So the remaining elements are cut off.
                for (k, (window, &end)) in windows.iter().zip(&pads_after).enumerate() {
                    if -end >= window.stride as i64 {
                        let read = window.input as i64 + end;
                        let shape = self.shape(first).replaced(2 + k..3 + k, &[read as usize]);
                        first = self.slice(first, vec![[0, read, 2 + k as i64, 1]], &shape);
                    }
                }
                Ok(self.node_with("Conv", &[first, second], attributes, shape))
            }
            Slot::Input => {
                attributes.push((
                    "output_padding",
                    Attribute::Integers(pads_after.iter().map(|&end| (-end).max(0)).collect()),
                ));
                Ok(self.node_with("ConvTranspose", &[second, first], attributes, shape))
            }
            Slot::Weight => Err(self.unsupported()),
        }
    }

    /// Translates a maximum pooling.
    pub(super) fn max_pooling(&mut self, form: &MaxPoolForm, x: ValueId) -> ValueId {
        let windows = form.moving_windows();
        let pads_before = windows.iter().map(|window| window.padding_before as i64);
        let mut pads: Vec<i64> = pads_before.chain(windows.iter().map(|window| end_padding(window).max(0))).collect();
        let mut x = x;
        // ONNX Runtime refuses a padding that is not below the size of the kernel. A dilated kernel may have such a
        // padding.
        if pads.iter().zip(windows.iter().cycle()).any(|(&pad, window)| pad >= window.kernel as i64) {
            x = self.pad_with_lowest(x, &pads);
            pads.fill(0);
        }
        let attributes = vec![
            ("kernel_shape", integers_attribute(windows.iter().map(|window| window.kernel))),
            ("strides", integers_attribute(windows.iter().map(|window| window.stride))),
            ("dilations", integers_attribute(windows.iter().map(|window| window.dilation))),
            ("pads", Attribute::Integers(pads)),
        ];
        self.node_with("MaxPool", &[x], attributes, form.output().clone())
    }

    /// Pads the spatial dimensions with -∞. `pads` has the numbers of elements before each of these dimensions, and
    /// then the numbers after them.
    fn pad_with_lowest(&mut self, x: ValueId, pads: &[i64]) -> ValueId {
        let (pads_before, pads_after) = pads.split_at(pads.len() / 2);
        let x_shape = self.shape(x);
        let first = x_shape.rank() - pads_before.len();
        let padded_sizes: Vec<usize> = pads_before
            .iter()
            .zip(pads_after)
            .zip(&x_shape[first..])
            .map(|((b, a), &size)| size + (b + a) as usize)
            .collect();
        let unpadded = vec![0; first];
        let all_pads = self.integers([&unpadded[..], pads_before, &unpadded, pads_after].concat());
        let lowest = self.number(f64::NEG_INFINITY);
        self.node("Pad", &[x, all_pads, lowest], x_shape.replaced(first..x_shape.rank(), &padded_sizes))
    }

    /// Translates a mean pooling or its adjoint. A pooling with windows of one size without padding becomes
    /// `AveragePool`. Other poolings, and all adjoints, become products with a matrix for each dimension, which has the
    /// weights of the elements in the windows.
    pub(super) fn mean_pooling(&mut self, form: &MeanPoolForm, is_adjoint: bool, x: ValueId) -> Result<ValueId, Error> {
        let windows = form.mean_windows();
        let (input, output) = (form.input(), form.output());
        let uniform_windows: Option<Vec<(usize, usize)>> =
            windows.iter().zip(&input[2..]).map(|(windows, &size)| uniform_windows(windows, size)).collect();
        if let (Some(uniform_windows), false) = (uniform_windows, is_adjoint) {
            let attributes = vec![
                ("kernel_shape", integers_attribute(uniform_windows.iter().map(|window| window.0))),
                ("strides", integers_attribute(uniform_windows.iter().map(|window| window.1))),
            ];
            return Ok(self.node_with("AveragePool", &[x], attributes, output.clone()));
        }
        let mut x = x;
        for (k, windows) in windows.iter().enumerate() {
            let size = input[2 + k];
            let weight = |[window, position]: [usize; 2]| {
                let MeanWindow { start, end, divisor } = windows[window];
                if (start..end).contains(&position) { 1.0 / divisor } else { 0.0 }
            };
            // A left factor has a row for each element of the result along this dimension, and a column for each element of `x`. For the last
            // dimension, the matrix is the right factor, and therefore transposed.
            let sizes = if is_adjoint { [size, windows.len()] } else { [windows.len(), size] };
            let element = |at: &[usize]| T::from_f64(weight(if is_adjoint { [at[1], at[0]] } else { [at[0], at[1]] }));
            let is_last = k + 1 == input.rank() - 2;
            let matrix = match is_last {
                true => Tensor::try_from_fn([sizes[1], sizes[0]], |at| element(&[at[1], at[0]]))?,
                false => Tensor::try_from_fn(sizes, element)?,
            };
            let shape = self.shape(x).replaced(2 + k..3 + k, &[sizes[0]]);
            let matrix = self.floats(matrix);
            x = if is_last {
                self.node("MatMul", &[x, matrix], shape)
            } else {
                self.node("MatMul", &[matrix, x], shape)
            };
        }
        Ok(x)
    }

    /// Appends a constant with the elements of `data`.
    pub(super) fn floats(&mut self, data: Tensor<T>) -> ValueId {
        let shape: Shape = data.shape().clone();
        self.graph.add_value(Source::Floats(data), ElementKind::Float, shape, self.origin)
    }
}

/// Returns the number of padding elements between the end of the input and the end of the last window. It is negative if
/// elements remain after the last window.
fn end_padding(window: &WindowAxis) -> i64 {
    let &WindowAxis { input, kernel, output, stride, dilation, padding_before } = window;
    let [input, kernel, output, stride, dilation, padding_before] =
        [input, kernel, output, stride, dilation, padding_before].map(|size| i64::try_from(size).unwrap_or(i64::MAX));
    let span = dilation.saturating_mul(kernel.saturating_sub(1)).saturating_add(1);
    let last = output.saturating_sub(1).saturating_mul(stride);
    last.saturating_add(span).saturating_sub(input).saturating_sub(padding_before)
}

/// Returns the size and the stride of the windows over `size` elements. Returns `None` unless all windows have the same size and distance,
/// there is no padding, and each mean is the window's sum divided by its size.
fn uniform_windows(windows: &[MeanWindow], size: usize) -> Option<(usize, usize)> {
    let first = windows.first()?;
    let kernel = first.end - first.start;
    let stride = windows.get(1).map_or(1, |second| second.start);
    let is_regular = |(number, window): (usize, &MeanWindow)| {
        window.start == number * stride && window.end - window.start == kernel && window.divisor == kernel as f64
    };
    let fits = kernel > 0 && stride > 0 && (size - kernel) / stride + 1 == windows.len();
    // A single window may be followed by elements that no window reads. The stride then must exceed their number.
    let stride = if windows.len() == 1 { size.max(1) } else { stride };
    let fits = fits || windows.len() == 1 && kernel > 0;
    (fits && windows.iter().enumerate().all(is_regular)).then_some((kernel, stride))
}
