//! Resampling of images and signals to another size.
//!
//! Each dimension is resampled separately. A new element is a copy of an old element, the mean of a window, or a weighted sum. A weighted sum
//! has two or four terms per dimension. For weighted sums, PyTorch's formula gives the position of a new element among the old elements
//! (ATen: `area_pixel_compute_source_index`).

use wengert_macros::twins;

use crate::kernel::resample::{self as kernel, WeightedSum};
use crate::memory::reserve;
use crate::ops::window::pooling::adaptive_avg_pool;
use crate::ops::window::windows::per_dimension_at_least;
use crate::ops::{Compose, Result, TensorLike, Windowed};
use crate::{DType, Error, Float, Scalar, Shape, Site, Sizes, Tensor, ensure};

/// The formula by which new elements are computed from old ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterpolateMode {
    /// New element i of m new elements is the old element ⌊i n / m⌋ of n old elements. The position is computed in `f32`, so rounding can
    /// change it. PyTorch: `nearest`.
    Nearest,
    /// Each new element is the old element whose centre is nearest. PyTorch: `nearest-exact`.
    NearestExact,
    /// Linear interpolation between the neighbours along each dimension. PyTorch: `linear`, `bilinear`, `trilinear`.
    Linear {
        /// True if the centres of the first and last elements stay aligned; false if their outer edges stay aligned.
        align_corners: bool,
    },
    /// Cubic convolution of four neighbours along each of two dimensions (Keys 1981, a = -0.75). PyTorch: `bicubic`.
    Cubic {
        /// True if the centres of the first and last elements stay aligned; false if their outer edges stay aligned.
        align_corners: bool,
    },
    /// The means of the windows of an adaptive pooling. PyTorch: `area`.
    Area,
}

/// Resampling of images and other arrays to another size.
#[twins(blanket)]
pub trait Interpolation: Windowed<Elem: Float> {
    /// Resamples `[n, c, …]` to `size`: one value for all dimensions after the first two, or one per dimension. Refuses fewer than three and
    /// more than five dimensions, sizes of 0, and `Cubic` unless two dimensions are resampled. PyTorch: `nn.functional.interpolate`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::from([[[0.0, 10.0]]]);
    /// assert_eq!(x.interpolate(4, InterpolateMode::Nearest).to_vec(), [0.0, 0.0, 10.0, 10.0]);
    /// let linear = InterpolateMode::Linear { align_corners: false };
    /// assert_eq!(x.interpolate(4, linear).to_vec(), [0.0, 2.5, 7.5, 10.0]);
    /// ```
    #[doc(alias("upsample", "resize"))]
    fn try_interpolate(&self, size: impl Into<Sizes>, mode: InterpolateMode) -> Result<Self> {
        let at = Site::here("interpolate");
        let shape = self.shape();
        let size = size.into();
        ensure!(
            (3..=5).contains(&shape.rank()),
            at,
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got {}D)",
            shape.rank()
        );
        let rank = shape.rank() - 2;
        ensure!(
            !shape[2..].contains(&0) && size.as_slice().iter().all(|&size| size >= 1),
            at,
            "Input and output sizes should be greater than 0, but got input {shape} and output {:?}",
            size.as_slice()
        );
        let size = per_dimension_at_least(&size, rank, ("size", 1), at)?;
        let cubic = matches!(mode, InterpolateMode::Cubic { .. });
        ensure!(rank == 2 || !cubic, at, "{mode:?} is not defined for {}D input", shape.rank());
        // `plain_sums` copies a view that is not contiguous. A result with fewer elements than the view does not justify this copy.
        let plain = |x: &Self| -> std::result::Result<bool, Self::Error> {
            let new = Shape::from(&size[..]).numel().saturating_mul(shape[0]).saturating_mul(shape[1]);
            Ok(x.is_plain() && (shape.numel() <= new || x.to_tensor(at)?.is_contiguous()))
        };
        match mode {
            InterpolateMode::Area => adaptive_avg_pool(self, rank, &Sizes::from(&size[..]), at),
            InterpolateMode::Linear { .. } if plain(self)? => plain_sums::<_, 2>(self, &size, mode, at),
            InterpolateMode::Cubic { .. } if plain(self)? => plain_sums::<_, 4>(self, &size, mode, at),
            _ => separate_sums(self, &size, mode, at),
        }
    }
}

/// Resamples one dimension after the other.
fn separate_sums<A: TensorLike<Elem: Float>>(x: &A, size: &[usize], mode: InterpolateMode, at: Site) -> Result<A> {
    let mut x = x.clone();
    for (k, &to) in size.iter().enumerate() {
        x = resample(&x, 2 + k, to, mode, at)?;
    }
    Ok(x)
}

/// Does the same as [`separate_sums`] for a plain tensor and a mode with `N` terms per dimension. Resamples up to two dimensions at once.
fn plain_sums<A: TensorLike<Elem: Float>, const N: usize>(
    x: &A,
    size: &[usize],
    mode: InterpolateMode,
    at: Site,
) -> Result<A> {
    let mut result = x.to_tensor(at)?;
    // The dimensions that each pass resamples.
    let passes: &[&[usize]] = match size.len() {
        1 => &[&[0]],
        2 => &[&[0, 1]],
        _ => &[&[0], &[1, 2]],
    };
    for &dims in passes {
        let shape = result.shape().clone();
        let mut target = shape.clone();
        let mut sums = [None, None];
        for (&dim, sums) in dims.iter().zip(&mut sums) {
            let (from, to) = (shape[2 + dim], size[dim]);
            // If the size does not change, the dimension stays (see `resample`).
            if from != to {
                // Checks the memory for two lists with an entry per new element: the terms, and the weighted sums made from the terms.
                check_taps(to.saturating_mul(2), at)?;
                *sums = Some(weighted_sums::<A::Elem, N>(from, to, mode));
                target[2 + dim] = to;
            }
        }
        if target == shape {
            continue;
        }
        let [down, across] = sums.each_ref().map(Option::as_deref);
        // The kernel resamples matrices. If `x` has only one dimension after the channels, its lines count as matrices of one row.
        let (sizes, [down, across]) = match shape.get(3 + dims[0]..) {
            Some(rest) if !rest.is_empty() => ((shape[2 + dims[0]], Shape::from(rest).numel()), [down, across]),
            _ => ((1, shape[2]), [None, down]),
        };
        let elements = result.row_major_elements(at)?;
        let resampled = Tensor::build(&target, at, |out| kernel::resample(&elements, sizes, down, across, out))?;
        drop(elements);
        result = resampled;
    }
    x.try_constant(&result)
}

/// Returns an error if there is no memory for the terms of `to` weighted sums.
fn check_taps(to: usize, at: Site) -> Result<(), Error> {
    reserve::check_list::<[f64; 8]>(to, at).map_err(|_| Error::out_of_memory([to], DType::F64, at))
}

/// Returns, for each new element, the weighted sum that computes it: the indices and the weights of `N` old elements.
fn weighted_sums<T: Float, const N: usize>(from: usize, to: usize, mode: InterpolateMode) -> Vec<WeightedSum<T, N>> {
    let taps = taps(from, to, mode);
    let terms: [(&[i64], &[f64]); N] =
        std::array::from_fn(|k| (&taps[k].indices[..], taps[k].weights.as_deref().unwrap_or_default()));
    let sum = |number: usize| {
        (terms.map(|(indices, _)| indices[number] as usize), terms.map(|(_, weights)| T::from_f64(weights[number])))
    };
    (0..to).map(sum).collect()
}

fn resample<A: TensorLike<Elem: Float>>(x: &A, axis: usize, to: usize, mode: InterpolateMode, at: Site) -> Result<A> {
    let from = x.shape()[axis];
    // If the size does not change, the input is returned. A weighted sum could multiply an infinite neighbour by 0, which gives NaN.
    if from == to {
        return Ok(x.clone());
    }
    // A new element is a weighted sum of up to 4 old elements. Each term of the sums has a list of positions and a list of weights, with one
    // entry per new element.
    check_taps(to, at)?;
    let mut sum: Option<A> = None;
    for Tap { indices, weights } in taps(from, to, mode) {
        let read = x.apply_index_select(axis, &Tensor::try_from_vec(indices, [to])?, at)?;
        let term = match weights {
            None => read,
            Some(weights) => {
                let shape = Shape::ones(x.shape().rank()).with_size(axis, to);
                let weights = weights.into_iter().map(A::Elem::from_f64).collect();
                read.times(&x.try_constant(&Tensor::try_from_vec(weights, shape)?)?, at)?
            }
        };
        sum = Some(match sum {
            None => term,
            Some(sum) => sum.plus(&term, at)?,
        });
    }
    Ok(sum.unwrap_or_else(|| unreachable!("each of these modes has a term")))
}

/// A term of the weighted sums.
struct Tap {
    /// For every new element, the index of the old element in this term.
    indices: Vec<i64>,
    /// For every new element, the weight of the old element. It is `None` if there is only one term.
    weights: Option<Vec<f64>>,
}

/// Returns the terms of the weighted sums that resample `from` elements to `to` elements.
fn taps(from: usize, to: usize, mode: InterpolateMode) -> Vec<Tap> {
    let scale = from as f64 / to as f64;
    let last = from as i64 - 1;
    // PyTorch computes the position in `f32` for every element type. The rounding decides which element is nearest if the position is close
    // to a whole number.
    let nearest = |shift: f32| {
        let scale = from as f32 / to as f32;
        let position = |number: usize| (((number as f32 + shift) * scale).floor() as i64).min(last);
        vec![Tap { indices: (0..to).map(position).collect(), weights: None }]
    };
    let interpolated_positions = |align_corners: bool, below_zero: bool| -> Vec<(i64, f64)> {
        (0..to)
            .map(|number| {
                let position = if align_corners {
                    number as f64 * if to > 1 { last as f64 / (to - 1) as f64 } else { 0.0 }
                } else {
                    let position = (number as f64 + 0.5) * scale - 0.5;
                    if below_zero { position } else { position.max(0.0) }
                };
                (position.floor() as i64, position - position.floor())
            })
            .collect()
    };
    match mode {
        InterpolateMode::Nearest => nearest(0.0),
        InterpolateMode::NearestExact => nearest(0.5),
        InterpolateMode::Linear { align_corners } => {
            let positions = interpolated_positions(align_corners, false);
            let tap = |step: i64, weight: fn(f64) -> f64| Tap {
                indices: positions.iter().map(|&(position, _)| (position + step).clamp(0, last)).collect(),
                weights: Some(positions.iter().map(|&(_, t)| weight(t)).collect()),
            };
            vec![tap(0, |t| 1.0 - t), tap(1, |t| t)]
        }
        InterpolateMode::Cubic { align_corners } => {
            let positions = interpolated_positions(align_corners, true);
            let tap = |step: i64| Tap {
                indices: positions.iter().map(|&(position, _)| (position + step).clamp(0, last)).collect(),
                weights: Some(positions.iter().map(|&(_, t)| cubic(t - step as f64)).collect()),
            };
            (-1..=2).map(tap).collect()
        }
        InterpolateMode::Area => unreachable!("areas are averaged by adaptive pooling"),
    }
}

/// Returns the weight of an element at distance `x` in cubic convolution.
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.75;
    let x = x.abs();
    if x <= 1.0 { ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0 } else { ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A }
}

#[cfg(test)]
mod tests {
    use crate::Site;
    use crate::ops::window::interpolation::{InterpolateMode, Interpolation, cubic, separate_sums};
    use crate::prelude::*;

    /// Compares the kernel for tensors with the operations that are recorded for variables, which resample one dimension after the other.
    #[test]
    fn two_dimensions_at_once_have_the_bits_of_separate_dimensions() {
        let modes =
            |align_corners| [InterpolateMode::Linear { align_corners }, InterpolateMode::Cubic { align_corners }];
        let sizes: [(&[usize], &[usize]); 9] = [
            (&[5], &[9]),
            (&[9], &[4]),
            (&[5, 7], &[11, 13]),
            (&[5, 7], &[5, 3]),
            (&[5, 7], &[3, 7]),
            (&[40, 90], &[70, 30]),
            (&[1, 1], &[4, 3]),
            (&[3, 4, 5], &[5, 3, 7]),
            (&[3, 4, 5], &[3, 6, 5]),
        ];
        for (from, to) in sizes {
            let shape = [&[2, 3], from].concat();
            let x = Tensor::<f32>::randn(&shape[..], &mut Generator::new(1));
            for mode in modes(false).into_iter().chain(modes(true)) {
                if from.len() != 2 && matches!(mode, InterpolateMode::Cubic { .. }) {
                    continue;
                }
                let expected = separate_sums(&x, to, mode, Site::here("test")).unwrap();
                let got = x.interpolate(to, mode);
                assert_eq!(got.shape(), expected.shape());
                assert!(
                    got.iter().zip(expected.iter()).all(|(x, y)| x.to_bits() == y.to_bits()),
                    "{from:?} {to:?} {mode:?}"
                );
                let apart = x.transpose(0, 1).contiguous().transpose(0, 1);
                assert_eq!(apart.interpolate(to, mode), got);
            }
        }
    }

    /// Resamples views to fewer elements. No memory could hold all elements of the first view, so only the elements that the result needs may
    /// be read.
    #[test]
    fn a_large_view_is_not_copied() {
        let wide = Tensor::<f32>::ones([1, 1, 1]).expand([1, 1, 1usize << 40]);
        assert_eq!(wide.interpolate(4, InterpolateMode::Linear { align_corners: false }).to_vec(), [1.0; 4]);
        let turned = Tensor::<f64>::rand([2, 3, 8, 6], &mut Generator::new(1)).transpose(2, 3);
        for mode in [InterpolateMode::Linear { align_corners: true }, InterpolateMode::Cubic { align_corners: false }] {
            assert_eq!(turned.interpolate([3, 4], mode), turned.contiguous().interpolate([3, 4], mode));
        }
    }

    #[test]
    fn corners_or_outer_edges_stay_aligned() {
        let x = Tensor::from([[[0.0, 6.0, 12.0]]]);
        let to = |mode| x.interpolate(5, mode).to_vec();
        assert_eq!(to(InterpolateMode::Linear { align_corners: true }), [0.0, 3.0, 6.0, 9.0, 12.0]);
        let edges = to(InterpolateMode::Linear { align_corners: false });
        assert_eq!((edges[0], edges[2], edges[4]), (0.0, 6.0, 12.0));
        assert!(f64::abs(edges[1] - 2.4) < 1e-14);
        assert_eq!(to(InterpolateMode::Nearest), [0.0, 0.0, 6.0, 6.0, 12.0]);
        assert_eq!(to(InterpolateMode::NearestExact), [0.0, 0.0, 6.0, 12.0, 12.0]);
        assert_eq!(x.interpolate(1, InterpolateMode::Area).item(), 6.0);
        let error = x.try_interpolate(1usize << 60, InterpolateMode::Area).unwrap_err();
        assert_eq!(error.site().operation, "interpolate");
    }

    #[test]
    fn areas_are_averaged_over_up_to_three_dimensions() {
        for size in [&[5][..], &[5, 4], &[5, 4, 3]] {
            let x = Tensor::<f64>::rand([&[2, 3], size].concat(), &mut Generator::new(1));
            let target: Vec<usize> = size.iter().map(|size| size - 2).collect();
            let areas = x.interpolate(&target[..], InterpolateMode::Area);
            let pooled = match size.len() {
                1 => x.adaptive_avg_pool1d(&target[..]),
                2 => x.adaptive_avg_pool2d(&target[..]),
                _ => x.adaptive_avg_pool3d(&target[..]),
            };
            assert_eq!(areas, pooled);
        }
    }

    #[test]
    fn cubic_weights_add_up_to_one() {
        for t in [0.0, 0.25, 0.5, 0.9] {
            let sum: f64 = (-1..=2).map(|step| cubic(t - f64::from(step))).sum();
            assert!((sum - 1.0).abs() < 1e-15);
        }
        let x = Tensor::<f64>::full([1, 1, 3, 4], 2.5);
        let y = x.interpolate([5, 2], InterpolateMode::Cubic { align_corners: false });
        assert!(y.to_vec().iter().all(|value| (value - 2.5).abs() < 1e-14));
        assert!(
            x.narrow(2, 0, 1)
                .reshape([1, 1, 4])
                .try_interpolate(2, InterpolateMode::Cubic { align_corners: true })
                .is_err()
        );
    }
}
