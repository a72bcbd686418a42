//! Convolutions (cross-correlations, as in every framework of the field) over one to three dimensions, and their adjoints.
//!
//! The windows of the input are a view; written out once as a matrix, they are multiplied by the weights, a group at a time
//! (Chellapilla, Puri and Simard 2006, "im2col"). A transposed convolution is the same steps backwards. Layouts are PyTorch's:
//! input `[n, c, …]` or `[c, …]`, weight `[out, c / groups, …]`, transposed `[c, out / groups, …]`.

use super::formula::Formula;
use super::padding::constant_padded;
use super::windows::{Window, at_least, batched, per_dimension, unbatched};
use super::{TensorLike, twin};
use crate::dims::Sizes;
use crate::error::{Error, Site};
use crate::{Number, Shape};

/// How the window moves. Sizes are one number for all dimensions or one for each.
///
/// ```
/// use wengert_tensor::ops::ConvOptions;
///
/// let halving = ConvOptions::default().stride(2).padding([1, 1]);
/// ```
#[derive(Clone, Debug)]
pub struct ConvOptions {
    stride: Sizes,
    padding: Option<Sizes>,
    dilation: Sizes,
    groups: usize,
    output_padding: Sizes,
}

impl Default for ConvOptions {
    /// Stride 1, no padding, dilation 1, one group.
    fn default() -> Self {
        ConvOptions {
            stride: Sizes::from(1),
            padding: Some(Sizes::from(0)),
            dilation: Sizes::from(1),
            groups: 1,
            output_padding: Sizes::from(0),
        }
    }
}

impl ConvOptions {
    /// From one window to the next.
    #[must_use]
    pub fn stride(mut self, stride: impl Into<Sizes>) -> Self {
        self.stride = stride.into();
        self
    }

    /// Zeros on both sides.
    #[must_use]
    pub fn padding(mut self, padding: impl Into<Sizes>) -> Self {
        self.padding = Some(padding.into());
        self
    }

    /// As many zeros as make the result as large as the input; where they are odd in number, one more at the end. Stride 1
    /// only. PyTorch: `padding='same'`.
    #[must_use]
    pub fn same(mut self) -> Self {
        self.padding = None;
        self
    }

    /// From one element of a window to the next.
    #[must_use]
    pub fn dilation(mut self, dilation: impl Into<Sizes>) -> Self {
        self.dilation = dilation.into();
        self
    }

    /// Groups of channels that do not see each other; as many as channels make a depthwise convolution.
    #[must_use]
    pub fn groups(mut self, groups: usize) -> Self {
        self.groups = groups;
        self
    }

    /// Of a transposed convolution: how much larger the result is at the end. Smaller than stride or dilation.
    #[must_use]
    pub fn output_padding(mut self, output_padding: impl Into<Sizes>) -> Self {
        self.output_padding = output_padding.into();
        self
    }
}

/// Convolutions.
pub trait Convolution: TensorLike<Elem: Number> {
    twin! { trait
        /// Convolution of `[n, c, l]` (or `[c, l]`) by `weight` `[out, c / groups, k]`, plus `bias` `[out]`. PyTorch:
        /// `nn.functional.conv1d`.
        ///
        /// ```
        /// use wengert_tensor::ops::{ConvOptions, Convolution};
        /// use wengert_tensor::prelude::*;
        ///
        /// let signal = Tensor::from([[[1.0, 2.0, 4.0, 8.0]]]);
        /// let differences = Tensor::from([[[-1.0, 1.0]]]);
        /// let y = signal.conv1d(&differences, None, &ConvOptions::default());
        /// assert_eq!(y, Tensor::from([[[1.0, 2.0, 4.0]]]));
        /// ```
        fn conv1d | try_conv1d(&self, weight: &Self, bias: Option<&Self>, options: &ConvOptions) -> Self = at {
            convolved(self, weight, bias, options, 1, at)
        }

        /// Convolution of `[n, c, h, w]` (or `[c, h, w]`) by `weight` `[out, c / groups, kh, kw]`, plus `bias` `[out]`.
        /// PyTorch: `nn.functional.conv2d`.
        ///
        /// ```
        /// use wengert_tensor::ops::{ConvOptions, Convolution};
        /// use wengert_tensor::prelude::*;
        ///
        /// let image = Tensor::<f64>::arange(9).reshape([1, 1, 3, 3]);
        /// let blur = Tensor::full([1, 1, 2, 2], 0.25);
        /// assert_eq!(image.conv2d(&blur, None, &ConvOptions::default()).to_vec(), [2.0, 3.0, 5.0, 6.0]);
        /// let halved = image.conv2d(&blur, None, &ConvOptions::default().stride(2).padding(1));
        /// assert_eq!(halved.shape(), &[1, 1, 2, 2]);
        /// ```
        fn conv2d | try_conv2d(&self, weight: &Self, bias: Option<&Self>, options: &ConvOptions) -> Self = at {
            convolved(self, weight, bias, options, 2, at)
        }

        /// Convolution of `[n, c, d, h, w]` (or `[c, d, h, w]`) by `weight` `[out, c / groups, kd, kh, kw]`, plus `bias`
        /// `[out]`. PyTorch: `nn.functional.conv3d`.
        fn conv3d | try_conv3d(&self, weight: &Self, bias: Option<&Self>, options: &ConvOptions) -> Self = at {
            convolved(self, weight, bias, options, 3, at)
        }

        /// The adjoint of [`conv1d`](Self::conv1d), plus `bias` `[out]`: `[n, c, l]` by `weight` `[c, out / groups, k]`.
        /// PyTorch: `nn.functional.conv_transpose1d`.
        fn conv_transpose1d | try_conv_transpose1d(&self, weight: &Self, bias: Option<&Self>, options: &ConvOptions)
            -> Self = at {
            transposed(self, weight, bias, options, 1, at)
        }

        /// The adjoint of [`conv2d`](Self::conv2d), plus `bias` `[out]`: `[n, c, h, w]` by `weight`
        /// `[c, out / groups, kh, kw]`. PyTorch: `nn.functional.conv_transpose2d`.
        fn conv_transpose2d | try_conv_transpose2d(&self, weight: &Self, bias: Option<&Self>, options: &ConvOptions)
            -> Self = at {
            transposed(self, weight, bias, options, 2, at)
        }

        /// The adjoint of [`conv3d`](Self::conv3d), plus `bias` `[out]`. PyTorch: `nn.functional.conv_transpose3d`.
        fn conv_transpose3d | try_conv_transpose3d(&self, weight: &Self, bias: Option<&Self>, options: &ConvOptions)
            -> Self = at {
            transposed(self, weight, bias, options, 3, at)
        }
    }
}

impl<A: TensorLike<Elem: Number>> Convolution for A {}

/// Input with a batch dimension, whether that was put there, and the windows; shapes checked.
fn prepared<A: TensorLike>(
    x: &A,
    weight: &A,
    options: &ConvOptions,
    rank: usize,
    at: Site,
) -> Result<(A, bool, Vec<Window>), A::Error> {
    let own = x.shape();
    let kernel = weight.shape();
    let refuse = |message: String| Err(A::Error::from(Error::argument(at, message)));
    if own.rank() != rank + 1 && own.rank() != rank + 2 {
        return refuse(format!(
            "Expected {}D (unbatched) or {}D (batched) input to {}, but got input of size: {own}",
            rank + 1,
            rank + 2,
            at.operation
        ));
    }
    let stride = at_least(&options.stride, rank, ("stride", 1), at)?;
    let dilation = at_least(&options.dilation, rank, ("dilation", 1), at)?;
    if kernel.rank() != rank + 2 || kernel[2..].contains(&0) {
        return refuse(format!(
            "Expected {}-dimensional weight with a kernel that is not empty for {}, but got weight of size {kernel}",
            rank + 2,
            at.operation
        ));
    }
    let groups = options.groups;
    if groups == 0 {
        return refuse("non-positive groups is not supported".into());
    }
    if kernel[0] < groups || !kernel[0].is_multiple_of(groups) {
        let what = if kernel[0] < groups { "at least" } else { "divisible by" };
        return refuse(format!(
            "Given groups={groups}, expected weight to be {what} {groups} at dimension 0, but got weight of size [{kernel}] \
             instead"
        ));
    }
    let (x, added) = batched(x, rank + 2, at)?;
    let windows =
        (0..rank).map(|k| Window { kernel: kernel[2 + k], stride: stride[k], dilation: dilation[k] }).collect();
    Ok((x, added, windows))
}

fn check_channels(x: &Shape, weight: &Shape, expected: usize, prefix: &str, at: Site) -> Result<(), Error> {
    if x[1] == expected {
        return Ok(());
    }
    let message = format!(
        "Given {prefix}, weight of size {weight}, expected input{x} to have {expected} channels, but got {} channels instead",
        x[1]
    );
    Err(Error::argument(at, message))
}

fn convolved<A: TensorLike<Elem: Number>>(
    x: &A,
    weight: &A,
    bias: Option<&A>,
    options: &ConvOptions,
    rank: usize,
    at: Site,
) -> Result<A, A::Error> {
    let (x, added, windows) = prepared(x, weight, options, rank, at)?;
    let (own, kernel, groups) = (x.shape(), weight.shape(), options.groups);
    let sides = sides(options, &windows, rank, at)?;
    check_channels(&own, &kernel, kernel[1] * groups, &format!("groups={groups}"), at)?;
    let (batch, channels, out) = (own[0], own[1], kernel[0]);
    check_bias(bias, &kernel, out, at)?;
    let padded: Vec<usize> = (0..rank).map(|k| own[2 + k] + sides[k].0 + sides[k].1).collect();
    if (0..rank).any(|k| windows[k].count(padded[k]) == 0) {
        let list =
            |sizes: &mut dyn Iterator<Item = usize>| sizes.map(|size| size.to_string()).collect::<Vec<_>>().join(" x ");
        let message = format!(
            "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual \
             input size",
            list(&mut padded.iter().copied()),
            list(&mut windows.iter().map(|window| window.span()))
        );
        return Err(Error::argument(at, message).into());
    }
    let mut view = zero_padded(&x, &sides, at)?;
    for (k, window) in windows.iter().enumerate() {
        view = window.view(&view, 2 + k, at)?;
    }
    // [n, c, …out, …kernel] to [c, …kernel, n, …out]: a column for every window.
    let counts: Vec<usize> = (0..rank).map(|k| windows[k].count(padded[k])).collect();
    let taps: usize = kernel[2..].iter().product();
    let positions = batch * counts.iter().product::<usize>();
    let order: Vec<usize> = std::iter::once(1).chain(2 + rank..2 + 2 * rank).chain([0]).chain(2..2 + rank).collect();
    let columns = view.permuted(&order, at)?.reshaped([groups, channels / groups * taps, positions], at)?;
    let rows = weight.reshaped([groups, out / groups, channels / groups * taps], at)?;
    let product = rows.apply_matmul(&columns, at)?;
    let mut result: Shape = [out, batch].into();
    counts.iter().for_each(|&count| result.push(count));
    let order: Vec<usize> = [1, 0].into_iter().chain(2..2 + rank).collect();
    let z = product.reshaped(result, at)?.permuted(&order, at)?;
    unbatched(with_bias(z, bias, at)?, added, at)
}

fn transposed<A: TensorLike<Elem: Number>>(
    x: &A,
    weight: &A,
    bias: Option<&A>,
    options: &ConvOptions,
    rank: usize,
    at: Site,
) -> Result<A, A::Error> {
    let (x, added, windows) = prepared(x, weight, options, rank, at)?;
    let (own, kernel, groups) = (x.shape(), weight.shape(), options.groups);
    let sides = match &options.padding {
        Some(padding) => at_least(padding, rank, ("padding", 0), at)?,
        None => return Err(Error::argument(at, "padding='same' is not supported for transposed convolutions").into()),
    };
    let more = at_least(&options.output_padding, rank, ("output_padding", 0), at)?;
    check_channels(&own, &kernel, kernel[0], "transposed=1", at)?;
    let (batch, channels, out) = (own[0], own[1], kernel[1] * groups);
    check_bias(bias, &kernel, out, at)?;
    for k in 0..rank {
        let Window { stride, dilation, .. } = windows[k];
        if more[k] >= stride.max(dilation) {
            let message = format!(
                "output padding must be smaller than either stride or dilation, but got output_padding: {more:?}, stride: \
                 {stride}, dilation: {dilation}"
            );
            return Err(Error::argument(at, message).into());
        }
        if own[2 + k] == 0 || windows[k].extent(own[2 + k]) + more[k] <= 2 * sides[k] {
            let message = format!(
                "Given input size per channel: {:?}. The output would be empty at dimension {k}: padding {} is too large",
                &own[2..],
                sides[k]
            );
            return Err(Error::argument(at, message).into());
        }
    }
    let taps: usize = kernel[2..].iter().product();
    let positions = batch * own[2..].iter().product::<usize>();
    let order: Vec<usize> = [1, 0].into_iter().chain(2..2 + rank).collect();
    let columns = x.permuted(&order, at)?.reshaped([groups, channels / groups, positions], at)?;
    let rows = weight.reshaped([groups, channels / groups, out / groups * taps], at)?.permuted(&[0, 2, 1], at)?;
    let product = rows.apply_matmul(&columns, at)?;
    // [out, …kernel, n, …in] to [n, out, …in, …kernel], whose windows overlap and add up.
    let mut apart: Shape = [out].into();
    kernel[2..].iter().for_each(|&size| apart.push(size));
    apart.push(batch);
    own[2..].iter().for_each(|&size| apart.push(size));
    let order: Vec<usize> = [1 + rank, 0].into_iter().chain(2 + rank..2 + 2 * rank).chain(1..1 + rank).collect();
    let mut z = product.reshaped(apart, at)?.permuted(&order, at)?;
    for (k, window) in windows.iter().enumerate().rev() {
        let mut shape = z.shape();
        shape.remove(shape.rank() - 1);
        shape[2 + k] = window.extent(own[2 + k]);
        z = window.embed(&z, 2 + k, &shape, at)?;
    }
    let cut: Vec<_> = (0..rank).map(|k| (2 + k, -(sides[k] as isize), more[k] as isize - sides[k] as isize)).collect();
    unbatched(with_bias(constant_padded(&z, &cut, 0.0, at)?, bias, at)?, added, at)
}

/// Zeros before and after each dimension.
fn sides(options: &ConvOptions, windows: &[Window], rank: usize, at: Site) -> Result<Vec<(usize, usize)>, Error> {
    match &options.padding {
        Some(padding) => {
            Ok(at_least(padding, rank, ("padding", 0), at)?.into_iter().map(|size| (size, size)).collect())
        }
        None if per_dimension(&options.stride, rank, "stride", at)?.iter().any(|&stride| stride != 1) => {
            Err(Error::argument(at, "padding='same' is not supported for strided convolutions"))
        }
        None => Ok(windows
            .iter()
            .map(|window| {
                let total = window.span() - 1;
                (total / 2, total - total / 2)
            })
            .collect()),
    }
}

fn zero_padded<A: TensorLike>(x: &A, sides: &[(usize, usize)], at: Site) -> Result<A, A::Error> {
    let sides: Vec<_> = (2..).zip(sides).map(|(axis, side)| (axis, side.0 as isize, side.1 as isize)).collect();
    constant_padded(x, &sides, 0.0, at)
}

fn check_bias<A: TensorLike>(bias: Option<&A>, weight: &Shape, out: usize, at: Site) -> Result<(), Error> {
    match bias.map(A::shape) {
        Some(shape) if shape != [out] => {
            let message = format!(
                "Given weight of size {weight}, expected bias to be 1-dimensional with {out} elements, but got bias of size \
                 {shape} instead"
            );
            Err(Error::argument(at, message))
        }
        _ => Ok(()),
    }
}

fn with_bias<A: TensorLike>(z: A, bias: Option<&A>, at: Site) -> Result<A, A::Error> {
    let Some(bias) = bias else { return Ok(z) };
    let mut shape = Shape::ones(z.shape().rank());
    shape[1] = bias.shape()[0];
    z.plus(&bias.reshaped(shape, at)?, at)
}

#[cfg(test)]
mod tests {
    use super::{ConvOptions, Convolution};
    use crate::prelude::*;

    /// Sums over every window, as the definition has it.
    fn by_definition(x: &Tensor<f64>, w: &Tensor<f64>, stride: isize, padding: isize, dilation: isize) -> Tensor<f64> {
        let size = |axis: usize| {
            let (n, k) = (x.shape()[axis] as isize, w.shape()[axis] as isize);
            ((n + 2 * padding - dilation * (k - 1) - 1) / stride + 1) as usize
        };
        Tensor::from_fn([x.shape()[0], w.shape()[0], size(2), size(3)], |i| {
            let mut sum = 0.0;
            for c in 0..w.shape()[1] {
                for kh in 0..w.shape()[2] {
                    for kw in 0..w.shape()[3] {
                        let h = i[2] as isize * stride - padding + kh as isize * dilation;
                        let l = i[3] as isize * stride - padding + kw as isize * dilation;
                        let value = (h >= 0 && l >= 0).then(|| x.get(&[i[0], c, h as usize, l as usize])).flatten();
                        sum += value.unwrap_or(0.0) * w.get(&[i[1], c, kh, kw]).unwrap();
                    }
                }
            }
            sum
        })
    }

    fn integers(shape: [usize; 4]) -> Tensor<f64> {
        let mut state = 7u64;
        Tensor::from_fn(shape, |_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % 7) as f64 - 3.0
        })
    }

    #[test]
    fn a_convolution_is_its_definition_and_the_transposed_one_its_adjoint() {
        let (x, w) = (integers([2, 3, 6, 5]), integers([4, 3, 2, 3]));
        for (stride, padding, dilation) in [(1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 1, 2)] {
            let options = ConvOptions::default().stride(stride).padding(padding).dilation(dilation);
            let y = x.conv2d(&w, None, &options);
            assert_eq!(y, by_definition(&x, &w, stride as isize, padding as isize, dilation as isize));
            // <conv x, g> = <x, convᵀ g>, over the part of x that windows reach.
            let g = integers([2, 4, y.shape()[2], y.shape()[3]]);
            let missing = |axis: usize| {
                let (n, k) = (x.shape()[axis] as i32, w.shape()[axis] as i32);
                (n + 2 * padding - dilation * (k - 1) - 1) % stride
            };
            let options = options.output_padding([missing(2), missing(3)]);
            let back = g.conv_transpose2d(&w, None, &options);
            assert_eq!(back.shape(), x.shape());
            assert_eq!((&y * &g).sum(.., false), (&x * &back).sum(.., false));
        }
    }

    #[test]
    fn groups_do_not_see_each_other() {
        let (x, w) = (integers([1, 4, 3, 3]), integers([2, 2, 2, 2]));
        let bias = Tensor::from([10.0, 20.0]);
        let y = x.conv2d(&w, Some(&bias), &ConvOptions::default().groups(2));
        for group in 0..2 {
            let part = x.narrow(1, 2 * group, 2).conv2d(&w.narrow(0, group, 1), None, &ConvOptions::default());
            assert_eq!(y.narrow(1, group, 1), &part + 10.0 * (group + 1) as f64);
        }
    }

    #[test]
    fn same_padding_keeps_the_size() {
        let x = Tensor::from([[1.0, 2.0, 3.0]]);
        let pair = Tensor::from([[[10.0, 1.0]]]);
        let y = x.conv1d(&pair, None, &ConvOptions::default().same());
        assert_eq!(y, Tensor::from([[12.0, 23.0, 30.0]]));
        assert!(x.try_conv1d(&pair, None, &ConvOptions::default().same().stride(2)).is_err());
    }

    #[test]
    fn the_sentences_of_what_is_refused() {
        let sentence = |x: &[usize], w: &[usize], options: ConvOptions| {
            Tensor::<f64>::zeros(x).try_conv1d(&Tensor::zeros(w), None, &options).unwrap_err().sentence()
        };
        assert_eq!(
            sentence(&[5], &[1, 1, 1], ConvOptions::default()),
            "Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input of size: [5]"
        );
        assert_eq!(
            sentence(&[1, 2, 5], &[3, 1, 2], ConvOptions::default()),
            "Given groups=1, weight of size [3, 1, 2], expected input[1, 2, 5] to have 1 channels, but got 2 channels \
             instead"
        );
        assert_eq!(
            sentence(&[1, 1, 2], &[3, 1, 4], ConvOptions::default()),
            "Calculated padded input size per channel: (2). Kernel size: (4). Kernel size can't be greater than actual \
             input size"
        );
        assert_eq!(
            sentence(&[1, 2, 5], &[3, 1, 2], ConvOptions::default().groups(2)),
            "Given groups=2, expected weight to be divisible by 2 at dimension 0, but got weight of size [[3, 1, 2]] instead"
        );
    }
}
