//! Augmentation: random changes of samples that reduce overfitting. Use the functions in [`DataLoader::map`](crate::DataLoader::map), whose
//! generator gives the same batches in each run.
//!
//! Images are `[n, c, h, w]`. Each image gets its own random change. All channels of an image change in the same way. Pixels outside of an
//! image are 0. Two functions also take tensors of any other shape: [`gaussian_noise`] changes each element on its own, and [`mixup`] mixes
//! whole samples. torchvision: `torchvision.transforms.v2`.

use std::ops::RangeInclusive;

use wengert_tensor::ops::{Arithmetic as _, Indexing as _};
use wengert_tensor::{Float, Generator, Tensor};

use crate::{Error, Result};

/// Shifts each image horizontally and vertically by a whole number of pixels, up to `max_shift`. All shifts are equally likely. torchvision:
/// `RandomAffine(0, translate)`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{Generator, augment::random_shift};
/// use wengert::prelude::*;
///
/// let dot = Tensor::from([[[[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0f32]]]]);
/// let shifted = random_shift(&dot, 1, &mut Generator::new(0))?;
/// assert_eq!((shifted.shape(), shifted.sum(..).item()), (dot.shape(), 1.0));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// If the images are not `[n, c, h, w]`, or there is not enough memory.
pub fn random_shift<T: Float>(images: &Tensor<T>, max_shift: usize, generator: &mut Generator) -> Result<Tensor<T>> {
    let [_, _, height, width] = image_sizes(images)?;
    let count = (max_shift as u64).saturating_mul(2).saturating_add(1);
    transform(images, [height, width], || {
        let [down, right] = [(); 2].map(|()| generator.below(count) as f64 - max_shift as f64);
        Affine { linear: [[1.0, 0.0], [0.0, 1.0]], offset: [-down, -right] }
    })
}

/// Mirrors each image from left to right with probability `p`. torchvision: `RandomHorizontalFlip`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{Generator, augment::random_horizontal_flip};
/// use wengert::prelude::*;
///
/// let image = Tensor::from([[[[1.0, 2.0, 3.0f32]]]]);
/// let mirrored = random_horizontal_flip(&image, 1.0, &mut Generator::new(0))?;
/// assert_eq!(mirrored.to_vec(), [3.0, 2.0, 1.0]);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// If the images are not `[n, c, h, w]`, `p` is not from 0 to 1, or there is not enough memory.
pub fn random_horizontal_flip<T: Float>(images: &Tensor<T>, p: f64, generator: &mut Generator) -> Result<Tensor<T>> {
    let [_, _, height, width] = image_sizes(images)?;
    check("random_horizontal_flip", "a probability from 0 to 1", p, (0.0..=1.0).contains(&p))?;
    transform(images, [height, width], || match generator.bernoulli(p) {
        true => Affine { linear: [[1.0, 0.0], [0.0, -1.0]], offset: [0.0, width as f64 - 1.0] },
        false => Affine::IDENTITY,
    })
}

/// Returns a random part of each image, `size` = `[height, width]`, after `padding` pixels of 0 are added on each side.
/// All positions are equally likely. torchvision: `RandomCrop`.
///
/// # Errors
///
/// If the images are not `[n, c, h, w]` or are smaller than the part even with padding, or there is not enough memory.
pub fn random_crop<T: Float>(
    images: &Tensor<T>,
    size: [usize; 2],
    padding: usize,
    generator: &mut Generator,
) -> Result<Tensor<T>> {
    let [_, _, height, width] = image_sizes(images)?;
    let [Some(down), Some(right)] = [(height, size[0]), (width, size[1])]
        .map(|(size, cropped)| padding.saturating_mul(2).saturating_add(size).checked_sub(cropped))
    else {
        let shape = images.shape();
        return Err(Error::Dataset(format!(
            "a part of size {size:?} is larger than images {shape} with a padding of {padding}"
        )));
    };
    transform(images, size, || {
        let offset = [down, right].map(|most| generator.below((most as u64).saturating_add(1)) as f64 - padding as f64);
        Affine { offset, ..Affine::IDENTITY }
    })
}

/// Rotates each image about its centre by up to `degrees` in both directions, with bilinear interpolation. torchvision:
/// `RandomRotation`.
///
/// # Errors
///
/// If the images are not `[n, c, h, w]`, `degrees` is negative or not finite, or there is not enough memory.
pub fn random_rotation<T: Float>(images: &Tensor<T>, degrees: f64, generator: &mut Generator) -> Result<Tensor<T>> {
    let [_, _, height, width] = image_sizes(images)?;
    check("random_rotation", "finite degrees of at least 0", degrees, is_finite_non_negative(degrees))?;
    let middle = [height, width].map(|size| (size as f64 - 1.0) / 2.0);
    transform(images, [height, width], || {
        let (sin, cos) = libm::sincos((degrees * (2.0 * generator.uniform() - 1.0)).to_radians());
        let linear = [[cos, sin], [-sin, cos]];
        let offset = [0, 1].map(|i| middle[i] - linear[i][0] * middle[0] - linear[i][1] * middle[1]);
        Affine { linear, offset }
    })
}

/// Rotates each image about its centre by up to `degrees` in both directions. Also scales it by a factor in the range `scale`, and shifts it
/// by up to `shift` times its size along both axes. Interpolates bilinearly. torchvision: `RandomAffine(degrees, translate, scale)`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{Generator, augment::random_affine};
/// use wengert::prelude::*;
///
/// let images = Tensor::<f32>::ones([5, 3, 32, 32]);
/// let changed = random_affine(&images, 15.0, 0.1, 0.8..=1.2, &mut Generator::new(0))?;
/// assert_eq!(changed.shape(), images.shape());
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// If the images are not `[n, c, h, w]`, `degrees` is negative or not finite, or `shift` is not from 0 to 1. Also if the range `scale` is
/// empty or has a factor that is not above 0 and finite, or there is not enough memory.
pub fn random_affine<T: Float>(
    images: &Tensor<T>,
    degrees: f64,
    shift: f64,
    scale: RangeInclusive<f64>,
    generator: &mut Generator,
) -> Result<Tensor<T>> {
    let [_, _, height, width] = image_sizes(images)?;
    let (low, high) = scale.into_inner();
    if !(low > 0.0 && low <= high && high.is_finite()) {
        return Err(Error::Dataset(format!("random_affine: expected factors above 0, but got {low}..={high}")));
    }
    check("random_affine", "finite degrees of at least 0", degrees, is_finite_non_negative(degrees))?;
    check("random_affine", "a shift from 0 to 1", shift, (0.0..=1.0).contains(&shift))?;
    let middle = [height, width].map(|size| (size as f64 - 1.0) / 2.0);
    transform(images, [height, width], || {
        let mut symmetric = |most: f64| most * (2.0 * generator.uniform() - 1.0);
        let (sin, cos) = libm::sincos(symmetric(degrees).to_radians());
        let translation = [height, width].map(|size| symmetric(shift) * size as f64);
        let factor = low + (high - low) * generator.uniform();
        let linear = [[cos / factor, sin / factor], [-sin / factor, cos / factor]];
        let moved_middle = [0, 1].map(|i| middle[i] + translation[i]);
        let offset = [0, 1].map(|i| middle[i] - linear[i][0] * moved_middle[0] - linear[i][1] * moved_middle[1]);
        Affine { linear, offset }
    })
}

/// Changes each pixel x of an image to brightness · (mean + contrast · (x - mean)), where mean is the mean of the image. Draws the factors
/// brightness and contrast from 1 - `strength` to 1 + `strength` for each image, and limits the results to the range from 0 to 1.
/// torchvision: `ColorJitter(brightness, contrast)`, whose mean is the mean of a grey copy.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{Generator, Samples, DataLoader, augment};
/// use wengert::prelude::*;
///
/// let generator = &mut Generator::new(0);
/// let (pixels, classes) = (Tensor::<f32>::full([8, 3, 32, 32], 0.5), Tensor::randint(0, 2, [8], generator));
/// let batches = DataLoader::new(Samples::new(pixels, classes)?, 4)
///     .map(|(x, y), generator| Ok((augment::color_jitter(&x, 0.2, generator)?, y)));
/// for batch in batches.epoch(0) {
///     let means = batch?.0.mean([1, 2, 3]); // contrast keeps the mean of an image, and brightness changes it by up to 20%
///     assert!(means.iter().all(|mean| (0.399..0.601).contains(&mean)) && means.var(.., 1).item() > 0.0);
/// }
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// If the images are not `[n, c, h, w]`, `strength` is not from 0 to 1, or there is not enough memory.
pub fn color_jitter<T: Float>(images: &Tensor<T>, strength: f64, generator: &mut Generator) -> Result<Tensor<T>> {
    let [n, channels, height, width] = image_sizes(images)?;
    check("color_jitter", "a strength from 0 to 1", strength, (0.0..=1.0).contains(&strength))?;
    let mut result = images.try_contiguous()?;
    let size = channels * height * width;
    let pixels = result.try_make_mut()?;
    for image in pixels.chunks_exact_mut(size.max(1)).take(n) {
        let mean = image.iter().map(|x| x.to_f64()).sum::<f64>() / size as f64;
        let [brightness, contrast] = [(); 2].map(|()| 1.0 + strength * (2.0 * generator.uniform() - 1.0));
        for x in image {
            *x = T::from_f64((brightness * (mean + contrast * (x.to_f64() - mean))).clamp(0.0, 1.0));
        }
    }
    Ok(result)
}

/// Sets a random rectangle of each image to 0 with probability `p`. The rectangle's sides are up to `max_side` times the image's sides, and may
/// be 0. T. DeVries and G. W. Taylor, "Improved Regularization of Convolutional Neural Networks with Cutout", 2017. torchvision:
/// `RandomErasing`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::{Generator, augment::random_erasing};
/// use wengert::prelude::*;
///
/// let images = Tensor::<f32>::ones([4, 3, 32, 32]);
/// let erased = random_erasing(&images, 1.0, 0.5, &mut Generator::new(0))?;
/// let erased = 1.0 - erased.mean([1, 2, 3]); // the erased share of each image
/// assert!(erased.iter().all(|share| share <= 0.25) && erased.amax(..).item() > 0.0);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// If the images are not `[n, c, h, w]`, `p` or `max_side` is not from 0 to 1, or there is not enough memory.
pub fn random_erasing<T: Float>(
    images: &Tensor<T>,
    p: f64,
    max_side: f64,
    generator: &mut Generator,
) -> Result<Tensor<T>> {
    let [n, channels, height, width] = image_sizes(images)?;
    check("random_erasing", "a probability from 0 to 1", p, (0.0..=1.0).contains(&p))?;
    check("random_erasing", "sides from 0 to 1", max_side, (0.0..=1.0).contains(&max_side))?;
    let mut result = images.try_contiguous()?;
    let pixels = result.try_make_mut()?;
    for image in 0..n {
        if !generator.bernoulli(p) {
            continue;
        }
        let [rows, columns] = [height, width].map(|size| {
            let side = generator.below((max_side * size as f64) as u64 + 1) as usize;
            let start = generator.below((size - side) as u64 + 1) as usize;
            start..start + side
        });
        for row in (image * channels..(image + 1) * channels)
            .flat_map(|plane| rows.clone().map(move |row| plane * height + row))
        {
            pixels[row * width + columns.start..row * width + columns.end].fill(T::ZERO);
        }
    }
    Ok(result)
}

/// Adds normal noise with standard deviation `std` to each element. torchvision: `GaussianNoise`.
///
/// # Errors
///
/// If `std` is negative or not finite, or there is not enough memory.
pub fn gaussian_noise<T: Float>(x: &Tensor<T>, std: f64, generator: &mut Generator) -> Result<Tensor<T>> {
    check("gaussian_noise", "a finite standard deviation of at least 0", std, is_finite_non_negative(std))?;
    Ok(x.try_add(&Tensor::try_randn(x.shape(), generator)?.try_mul(std)?)?)
}

/// Mixes each sample of a batch with a random sample of the batch. Inputs and targets mix in the same way: λ · sample + (1 - λ) · other
/// (H. Zhang et al., "mixup: beyond empirical risk minimization", 2017). λ is the same for the whole batch, drawn from the beta
/// distribution with both parameters `alpha`. torchvision: `MixUp`.
///
/// Targets must be floating-point numbers. Give classes as [`one_hot`](wengert_tensor::ops::one_hot) probabilities, `[n, classes]`.
///
/// # Errors
///
/// If inputs or targets have no dimensions, the numbers of samples differ, `alpha` is not finite and above 0, or there
/// is not enough memory.
pub fn mixup<T: Float>(
    inputs: &Tensor<T>,
    targets: &Tensor<T>,
    alpha: f64,
    generator: &mut Generator,
) -> Result<(Tensor<T>, Tensor<T>)> {
    let n = match (inputs.shape().first(), targets.shape().first()) {
        (Some(&n), Some(&m)) if n == m && alpha > 0.0 && alpha.is_finite() => n,
        _ => {
            let (x, y) = (inputs.shape(), targets.shape());
            return Err(Error::Dataset(format!(
                "mixup: expected as many targets as inputs and a finite alpha above 0, but got inputs {x}, targets {y} and an alpha of {alpha}"
            )));
        }
    };
    let lambda = beta(alpha, generator);
    let order: Vec<i64> = generator.permutation(n).into_iter().map(|index| index as i64).collect();
    let order = Tensor::from(order);
    let mix = |x: &Tensor<T>| -> Result<Tensor<T>> {
        let other = x.try_index_select(0, &order)?;
        Ok(x.try_mul(lambda)?.try_add(&other.try_mul(1.0 - lambda)?)?)
    };
    Ok((mix(inputs)?, mix(targets)?))
}

/// Draws from the beta distribution with two equal parameters. The expected number of attempts is at most 2 for every finite `alpha` above 0.
fn beta(alpha: f64, generator: &mut Generator) -> f64 {
    if alpha <= 1.0 { beta_johnk(alpha, generator) } else { beta_cheng(alpha, generator) }
}

/// Draws from the beta distribution with two equal parameters up to 1, by M. D. Jöhnk's rejection method ("Erzeugung von betaverteilten und
/// gammaverteilten Zufallszahlen", 1964). Computes with logarithms, because u^(1/`alpha`) of a random number u from 0 to 1 underflows for
/// small `alpha`. The method accepts at least half of the draws. For parameters above 1 it would be slow: for 10, it accepts 1 of 184,756
/// draws.
fn beta_johnk(alpha: f64, generator: &mut Generator) -> f64 {
    // For smaller parameters the quotients could be infinite. Draws for 1e-300 are already 0 or 1, except with a probability near 1e-300.
    let alpha = alpha.max(1e-300);
    loop {
        let [x, y] = [(); 2].map(|()| libm::log(1.0 - generator.uniform()) / alpha);
        let larger = x.max(y);
        let sum = larger + libm::log(libm::exp(x - larger) + libm::exp(y - larger));
        if sum <= 0.0 {
            return libm::exp(x - sum);
        }
    }
}

/// Draws from the beta distribution with two equal parameters above 1, by the rejection method BB of R. C. H. Cheng ("Generating beta
/// variates with nonintegral shape parameters", 1978).
///
/// For equal parameters a, a draw is 1 / (1 + exp(-v)) with v = log(u / (1 - u)) / √a, where u is a random number from 0 to 1. It is accepted
/// with the probability cosh(v / 2)^(-2a) / (4 u (1 - u)). This is step 5 of the algorithm in a form without differences of large numbers.
/// Step 4, which only saves logarithms, is left out. The expected number of attempts is at most 2/√π, about 1.13.
fn beta_cheng(a: f64, generator: &mut Generator) -> f64 {
    loop {
        let [u, w] = [(); 2].map(|()| 1.0 - generator.uniform());
        let v = libm::log(u / (1.0 - u)) / a.sqrt();
        // The left side is 2a log(cosh(v / 2)), because cosh² = 1 + sinh².
        if a * libm::log1p(libm::sinh(v / 2.0).powi(2)) < -libm::log(4.0 * u * (1.0 - u) * w) {
            return 1.0 / (1.0 + libm::exp(-v));
        }
    }
}

/// An affine map from the row and column of an output pixel to a position in the input.
struct Affine {
    linear: [[f64; 2]; 2],
    offset: [f64; 2],
}

impl Affine {
    /// The map that keeps every position.
    const IDENTITY: Affine = Affine { linear: [[1.0, 0.0], [0.0, 1.0]], offset: [0.0, 0.0] };
}

/// Returns images of the size `output_size`, with bilinear interpolation. Calls `draw_map` for each image, and transforms the image by the
/// returned affine map.
fn transform<T: Float>(
    images: &Tensor<T>,
    output_size: [usize; 2],
    mut draw_map: impl FnMut() -> Affine,
) -> Result<Tensor<T>> {
    let [n, channels, height, width] = image_sizes(images)?;
    let mut result = Tensor::try_full([n, channels, output_size[0], output_size[1]], T::ZERO)?;
    let (input, output) = (images.try_contiguous()?.try_to_vec()?, result.make_mut());
    let (input_area, output_area) = (height * width, output_size[0] * output_size[1]);
    for image in 0..n {
        let Affine { linear, offset } = draw_map();
        for pixel in 0..output_area {
            let point = [pixel / output_size[1], pixel % output_size[1]].map(|index| index as f64);
            let [row, column] = [0, 1].map(|i| linear[i][0] * point[0] + linear[i][1] * point[1] + offset[i]);
            let (top, left) = (row.floor(), column.floor());
            let (low, right) = (row - top, column - left);
            for (down, side, weight) in [
                (0.0, 0.0, (1.0 - low) * (1.0 - right)),
                (0.0, 1.0, (1.0 - low) * right),
                (1.0, 0.0, low * (1.0 - right)),
                (1.0, 1.0, low * right),
            ] {
                let (row, column) = (top + down, left + side);
                let is_inside = row >= 0.0 && column >= 0.0 && row < height as f64 && column < width as f64;
                if weight == 0.0 || !is_inside {
                    continue;
                }
                let (input_pixel, weight) = (row as usize * width + column as usize, T::from_f64(weight));
                for channel in image * channels..(image + 1) * channels {
                    let element = &mut output[channel * output_area + pixel];
                    *element = *element + weight * input[channel * input_area + input_pixel];
                }
            }
        }
    }
    Ok(result)
}

/// Returns an error if `is_valid` is false. The error shows the function `name`, its argument `value`, and a
/// description of the `expected` values.
fn check(name: &str, expected: &str, value: f64, is_valid: bool) -> Result<()> {
    if is_valid { Ok(()) } else { Err(Error::Dataset(format!("{name}: expected {expected}, but got {value}"))) }
}

/// Returns true if `value` is finite and not negative.
fn is_finite_non_negative(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// Returns the sizes `[n, c, h, w]` of images, or an error if `images` does not have four dimensions.
fn image_sizes<T: Float>(images: &Tensor<T>) -> Result<[usize; 4]> {
    let shape = images.shape();
    <[usize; 4]>::try_from(shape.sizes())
        .map_err(|_| Error::Dataset(format!("expected images [n, c, h, w], but got a tensor of shape {shape}")))
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::{Reductions as _, Views as _};

    use super::*;

    /// Returns two images of two channels. All values are different.
    fn images() -> Tensor<f64> {
        Tensor::from_fn([2, 2, 3, 4], |i| (100 * i[0] + 50 * i[1] + 4 * i[2] + i[3] + 1) as f64)
    }

    #[test]
    fn shifts_flips_and_crops_move_whole_pixels() {
        let (images, generator) = (images(), &mut Generator::new(3));
        let at = |x: &Tensor<f64>, n: usize, c: usize, i: isize, j: isize| {
            let place = [usize::try_from(i), usize::try_from(j)].map(|i| i.unwrap_or(99));
            x.get(&[n, c, place[0], place[1]]).unwrap_or(0.0)
        };
        let mut seen = Vec::new();
        for _ in 0..40 {
            let shifted = random_shift(&images, 1, generator).unwrap();
            for n in 0..2 {
                let fits = |&(down, right): &(isize, isize)| {
                    (0..24).all(|k| {
                        let (c, i, j) = (k / 12, (k as isize % 12) / 4, k as isize % 4);
                        at(&shifted, n, c, i, j) == at(&images, n, c, i - down, j - right)
                    })
                };
                let all = (-1..=1).flat_map(|down| (-1..=1).map(move |right| (down, right)));
                seen.push(all.into_iter().find(fits).expect("it is one of the shifts"));
            }
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 9);
        assert_eq!(random_horizontal_flip(&images, 1.0, generator).unwrap(), images.flip(3));
        assert_eq!(random_horizontal_flip(&images, 0.0, generator).unwrap(), images);
        let cropped = random_crop(&images, [2, 2], 0, generator).unwrap();
        let [first, ..] = cropped.to_vec()[..] else { panic!() };
        assert_eq!(cropped.select(0, 0).select(0, 0).to_vec(), [first, first + 1.0, first + 4.0, first + 5.0]);
        assert_eq!(random_crop(&images, [3, 4], 0, generator).unwrap(), images);
        assert_eq!(random_crop(&images, [5, 6], 1, generator).unwrap().sum(..), images.sum(..));
        assert!(random_crop(&images, [4, 4], 0, generator).is_err());
        assert!(random_shift(&Tensor::<f32>::zeros([3, 4]), 1, generator).is_err());
    }

    #[test]
    fn rotations_are_about_the_centre() {
        let (images, generator) = (images(), &mut Generator::new(3));
        assert_eq!(random_rotation(&images, 0.0, generator).unwrap(), images);
        let cross = Tensor::from_fn([4, 1, 5, 5], |i| f64::from(i[2] == 2 || i[3] == 2));
        let turned = random_rotation(&cross, 20.0, generator).unwrap();
        for n in 0..4 {
            assert!((turned.get(&[n, 0, 2, 2]).unwrap() - 1.0).abs() < 1e-12);
            // A rotated cross does not change if it is mirrored in both directions.
            let one = turned.select(0, n);
            let other = one.flip([1, 2]);
            assert!(one.iter().zip(other.iter()).all(|(x, y)| (x - y).abs() < 1e-12));
            assert!(one.get(&[0, 0, 2]).unwrap() < 1.0);
        }
        assert_ne!(turned.select(0, 0), turned.select(0, 1));
    }

    #[test]
    fn an_affine_map_scales_about_the_centre_and_shifts() {
        let (images, generator) = (images(), &mut Generator::new(3));
        assert_eq!(random_affine(&images, 0.0, 0.0, 1.0..=1.0, generator).unwrap(), images);
        // After scaling by 2, the sides of a square of 3 x 3 pixels in 9 x 9 pixels are twice as long. So its area is about four times as
        // large.
        let square =
            Tensor::<f64>::from_fn([6, 1, 9, 9], |i| f64::from((3..6).contains(&i[2]) && (3..6).contains(&i[3])));
        let scaled = random_affine(&square, 0.0, 0.0, 2.0..=2.0, generator).unwrap();
        assert!((scaled.select(0, 0).sum(..).item() - 36.0).abs() < 1e-9, "{scaled}");
        assert!((scaled.get(&[0, 0, 4, 4]).unwrap() - 1.0).abs() < 1e-12);
        // A shift of at most a pixel keeps the square inside the image, so the sum of the pixels stays the same. The centre of the square
        // moves by at most a pixel.
        let shifted = random_affine(&square, 0.0, 1.0 / 9.0, 1.0..=1.0, generator).unwrap();
        let places = Tensor::<f64>::from_fn([9, 1], |i| i[0] as f64 - 4.0);
        let mut centres = Vec::new();
        for n in 0..6 {
            let image = shifted.select(0, n).select(0, 0);
            assert!((image.sum(..).item() - 9.0).abs() < 1e-9);
            centres.push((image * &places).sum(..).item() / 9.0);
        }
        assert!(
            centres.iter().all(|centre| centre.abs() <= 1.0 + 1e-9) && centres.iter().any(|centre| centre.abs() > 0.1)
        );
        assert!(random_affine(&images, 0.0, 0.0, 0.0..=1.0, generator).is_err());
        assert!(random_affine(&images.select(0, 0), 0.0, 0.0, 1.0..=1.0, generator).is_err());
    }

    #[test]
    fn colours_change_by_two_factors_for_each_image() {
        let generator = &mut Generator::new(1);
        let x = Tensor::<f64>::from_fn([8, 3, 2, 2], |i| 0.4 + 0.02 * (4 * i[1] + 2 * i[2] + i[3]) as f64);
        assert!((color_jitter(&x, 0.0, generator).unwrap() - &x).abs().amax(..).item() < 1e-15);
        let changed = color_jitter(&x, 0.3, generator).unwrap();
        let mut factors = Vec::new();
        for n in 0..8 {
            let (old, new) = (x.select(0, n), changed.select(0, n));
            let range = |x: &Tensor<f64>| x.amax(..).item() - x.amin(..).item();
            let brightness = new.mean(..).item() / old.mean(..).item();
            let contrast = range(&new) / range(&old) / brightness;
            assert!((brightness - 1.0).abs() <= 0.3 && (contrast - 1.0).abs() <= 0.3, "{brightness} {contrast}");
            let mean = old.mean(..).item();
            let expected = ((&old - mean) * contrast + mean) * brightness;
            assert!((expected - new).abs().amax(..).item() < 1e-12);
            factors.push(brightness);
        }
        assert!(factors.windows(2).all(|pair| pair[0] != pair[1]));
        let limited = color_jitter(&(&x * 2.0), 1.0, generator).unwrap();
        assert!(limited.iter().all(|x| (0.0..=1.0).contains(&x)));
        assert!(color_jitter(&x, 1.5, generator).is_err());
    }

    #[test]
    fn erasing_sets_a_rectangle_of_all_channels_to_0() {
        let (x, generator) = (Tensor::<f64>::ones([40, 2, 6, 5]), &mut Generator::new(1));
        assert_eq!(random_erasing(&x, 0.0, 0.5, generator).unwrap(), x);
        let erased = random_erasing(&x, 1.0, 0.5, generator).unwrap();
        let mut areas = Vec::new();
        for n in 0..40 {
            let image = erased.select(0, n);
            assert_eq!(image.select(0, 0), image.select(0, 1));
            let zeros: Vec<[usize; 2]> =
                (0..30).map(|k| [k / 5, k % 5]).filter(|&[i, j]| image.get(&[0, i, j]) == Some(0.0)).collect();
            let side = |axis: usize| match (zeros.iter().map(|z| z[axis]).min(), zeros.iter().map(|z| z[axis]).max()) {
                (Some(first), Some(last)) => last - first + 1,
                _ => 0,
            };
            assert_eq!(zeros.len(), side(0) * side(1), "it is a rectangle");
            assert!(side(0) <= 3 && side(1) <= 2);
            areas.push(zeros.len());
        }
        assert!(areas.contains(&6) && areas.iter().any(|&area| area < 6));
        assert!(random_erasing(&x, 1.0, 1.5, generator).is_err());
    }

    #[test]
    fn mixup_interpolates_with_a_share_from_the_beta_distribution() {
        let generator = &mut Generator::new(1);
        for alpha in [1e-320, 0.2, 1.0, 1.5, 2.0, 20.0, 1e3] {
            let shares: Vec<f64> = (0..4000).map(|_| beta(alpha, generator)).collect();
            let mean = shares.iter().sum::<f64>() / 4000.0;
            let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / 4000.0;
            let expected = 1.0 / (4.0 * (2.0 * alpha + 1.0));
            // The bounds are five standard errors for n = 4000 draws. The standard error is √(`expected`/n) for the mean, and at most 0.25/√n
            // for the variance.
            assert!((mean - 0.5).abs() < 5.0 * (expected / 4000.0).sqrt(), "{mean}");
            assert!((variance - expected).abs() < 5.0 * 0.25 / 4000f64.sqrt(), "{variance} {expected}");
        }
        let (x, y) = (Tensor::from([[0.0], [1.0], [2.0f64]]), Tensor::from([0.0, 1.0, 2.0]));
        let (mixed, targets) = mixup(&x, &y, 0.3, generator).unwrap();
        assert_eq!(mixed.to_vec(), targets.to_vec());
        assert!((mixed.sum(..).item() - 3.0).abs() < 1e-12);
        assert!(mixup(&x, &Tensor::from([1.0]), 0.3, generator).is_err());
        for alpha in [0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let text = mixup(&x, &y, alpha, generator).unwrap_err().to_string();
            assert!(text.contains("a finite alpha above 0"), "{text}");
        }
    }

    /// Compares the draws with the distribution functions (Kolmogorov-Smirnov test). For `alpha` of 1, 2 and 3 these are polynomials. For
    /// large `alpha`, √(8 alpha) · (draw - 1/2) is nearly normal.
    #[test]
    fn shares_have_the_beta_distribution_for_every_alpha() {
        let (generator, n) = (&mut Generator::new(7), 10_000);
        let scaled = |alpha: f64| move |x: f64| 0.5 * libm::erfc(-(8.0 * alpha).sqrt() * (x - 0.5) / 2f64.sqrt());
        let cases: [(f64, &dyn Fn(f64) -> f64); 5] = [
            (1.0, &|x| x),
            (2.0, &|x| x * x * (3.0 - 2.0 * x)),
            (3.0, &|x| x.powi(3) * (10.0 - 15.0 * x + 6.0 * x * x)),
            (1e5, &scaled(1e5)),
            (1e12, &scaled(1e12)),
        ];
        for (alpha, function) in cases {
            let mut shares: Vec<f64> = (0..n).map(|_| beta(alpha, generator)).collect();
            shares.sort_by(f64::total_cmp);
            let distance = shares.iter().enumerate().map(|(rank, &share)| {
                let probability = function(share);
                (probability - rank as f64 / n as f64).abs().max((probability - (rank + 1) as f64 / n as f64).abs())
            });
            // The distance exceeds 2.3 / √n with a probability of 5e-5.
            assert!(distance.max_by(f64::total_cmp).unwrap() < 2.3 / (n as f64).sqrt(), "{alpha}");
        }
        for alpha in [1e300, f64::MAX] {
            assert!((0..n).all(|_| (beta(alpha, generator) - 0.5).abs() < 1e-15), "{alpha}");
        }
    }

    #[test]
    fn noise_has_the_given_standard_deviation() {
        let noisy = gaussian_noise(&Tensor::<f64>::zeros([10_000]), 0.5, &mut Generator::new(0)).unwrap();
        let variance = noisy.iter().map(|x| x * x).sum::<f64>() / 10_000.0;
        // The bound is five standard errors of a variance of 0.25 from n = 10,000 numbers: 5 · 0.25 · √(2 / n).
        assert!((variance - 0.25).abs() < 0.018, "{variance}");
    }

    #[test]
    fn huge_shifts_and_paddings_leave_zeros() {
        let (images, generator) = (&images(), &mut Generator::new(0));
        let zeros = Tensor::zeros([2, 2, 3, 4]);
        for huge in [usize::MAX / 2, usize::MAX / 2 + 1, usize::MAX] {
            assert_eq!(random_shift(images, huge, generator).unwrap(), zeros);
            assert_eq!(random_crop(images, [3, 4], huge, generator).unwrap(), zeros);
        }
    }

    #[test]
    fn arguments_outside_their_range_are_errors() {
        let (images, generator) = (&images(), &mut Generator::new(0));
        let text = |result: Result<Tensor<f64>>| result.unwrap_err().to_string();
        for p in [-0.1, 2.0, f64::NAN] {
            let problem = format!("expected a probability from 0 to 1, but got {p}");
            assert_eq!(
                text(random_horizontal_flip(images, p, generator)),
                format!("random_horizontal_flip: {problem}")
            );
            assert_eq!(text(random_erasing(images, p, 0.5, generator)), format!("random_erasing: {problem}"));
            let translation = text(random_affine(images, 0.0, p, 1.0..=1.0, generator));
            assert_eq!(translation, format!("random_affine: expected a shift from 0 to 1, but got {p}"));
        }
        for number in [-1.0, f64::INFINITY, f64::NAN] {
            let problem = format!("expected finite degrees of at least 0, but got {number}");
            assert_eq!(text(random_rotation(images, number, generator)), format!("random_rotation: {problem}"));
            let turned = text(random_affine(images, number, 0.0, 1.0..=1.0, generator));
            assert_eq!(turned, format!("random_affine: {problem}"));
            assert_eq!(
                text(gaussian_noise(images, number, generator)),
                format!("gaussian_noise: expected a finite standard deviation of at least 0, but got {number}")
            );
        }
    }
}
