//! Augmentation: samples changed at random, so that a model does not learn them by heart. For
//! [`DataLoader::map`](crate::DataLoader::map), whose generator makes each batch the same in each run.
//!
//! Images are `[n, c, h, w]`; each is changed in its own way, all channels of one alike. Where nothing is left of an image there is 0.
//! torchvision: `torchvision.transforms.v2`.

use wengert_tensor::ops::{Arithmetic as _, Indexing as _};
use wengert_tensor::{Float, Generator, Tensor};

use crate::{Error, Result};

/// Each image shifted by up to `most` pixels in both directions, all distances as likely. torchvision: `RandomAffine(0, translate)`.
///
/// ```
/// use wengert_nn::{Generator, augment::random_shift};
/// use wengert_tensor::prelude::*;
///
/// let dot = Tensor::from([[[[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0f32]]]]);
/// let shifted = random_shift(&dot, 1, &mut Generator::new(0))?;
/// assert_eq!((shifted.shape(), shifted.sum(..).item()), (dot.shape(), 1.0));
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// If the images are not `[n, c, h, w]`.
pub fn random_shift<T: Float>(images: &Tensor<T>, most: usize, generator: &mut Generator) -> Result<Tensor<T>> {
    let [_, _, height, width] = sizes(images)?;
    moved(images, [height, width], || {
        let [down, right] = [(); 2].map(|()| generator.below(2 * most as u64 + 1) as f64 - most as f64);
        Affine { linear: [[1.0, 0.0], [0.0, 1.0]], offset: [-down, -right] }
    })
}

/// Each image mirrored left to right with probability `p`. torchvision: `RandomHorizontalFlip`.
///
/// # Errors
///
/// If the images are not `[n, c, h, w]`.
pub fn random_horizontal_flip<T: Float>(images: &Tensor<T>, p: f64, generator: &mut Generator) -> Result<Tensor<T>> {
    let [_, _, height, width] = sizes(images)?;
    moved(images, [height, width], || match generator.bernoulli(p) {
        true => Affine { linear: [[1.0, 0.0], [0.0, -1.0]], offset: [0.0, width as f64 - 1.0] },
        false => Affine::IDENTITY,
    })
}

/// A part of `size` (height, width) of each image, with `padding` pixels of 0 around it, all places as likely. torchvision:
/// `RandomCrop`.
///
/// # Errors
///
/// If the images are not `[n, c, h, w]`, or smaller than the part with their padding.
pub fn random_crop<T: Float>(
    images: &Tensor<T>,
    size: [usize; 2],
    padding: usize,
    generator: &mut Generator,
) -> Result<Tensor<T>> {
    let [_, _, height, width] = sizes(images)?;
    let [Some(down), Some(right)] =
        [(height, size[0]), (width, size[1])].map(|(of, to)| (of + 2 * padding).checked_sub(to))
    else {
        let shape = images.shape();
        return Err(Error::Dataset(format!("a part of {size:?} of images {shape} with a padding of {padding}")));
    };
    moved(images, size, || {
        let offset = [down, right].map(|most| generator.below(most as u64 + 1) as f64 - padding as f64);
        Affine { offset, ..Affine::IDENTITY }
    })
}

/// Each image turned about its middle by up to `degrees` in both directions, with bilinear interpolation. torchvision:
/// `RandomRotation`.
///
/// # Errors
///
/// If the images are not `[n, c, h, w]`.
pub fn random_rotation<T: Float>(images: &Tensor<T>, degrees: f64, generator: &mut Generator) -> Result<Tensor<T>> {
    let [_, _, height, width] = sizes(images)?;
    let middle = [height, width].map(|size| (size as f64 - 1.0) / 2.0);
    moved(images, [height, width], || {
        let (sin, cos) = (degrees * (2.0 * generator.uniform() - 1.0)).to_radians().sin_cos();
        let linear = [[cos, sin], [-sin, cos]];
        let offset = [0, 1].map(|i| middle[i] - linear[i][0] * middle[0] - linear[i][1] * middle[1]);
        Affine { linear, offset }
    })
}

/// Normal noise of the standard deviation `std` added to each number. torchvision: `GaussianNoise`.
///
/// # Errors
///
/// If memory cannot hold it.
pub fn gaussian_noise<T: Float>(x: &Tensor<T>, std: f64, generator: &mut Generator) -> Result<Tensor<T>> {
    Ok(x.try_add(&Tensor::try_randn(x.shape(), generator)?.try_mul(std)?)?)
}

/// Each sample of a batch mixed with another one of it, inputs and targets alike: λ · sample + (1 - λ) · other, with λ of each batch from
/// the beta distribution of `alpha` and `alpha` (H. Zhang et al., "mixup: beyond empirical risk minimization", 2017). Targets are
/// numbers: classes as [`one_hot`](wengert_tensor::ops::one_hot) probabilities `[n, classes]`. torchvision: `MixUp`.
///
/// # Errors
///
/// If inputs and targets differ in number, have no dimensions, or `alpha` is not more than 0.
pub fn mixup<T: Float>(
    inputs: &Tensor<T>,
    targets: &Tensor<T>,
    alpha: f64,
    generator: &mut Generator,
) -> Result<(Tensor<T>, Tensor<T>)> {
    let n = match (inputs.shape().first(), targets.shape().first()) {
        (Some(&n), Some(&m)) if n == m && alpha > 0.0 => n,
        _ => {
            let (x, y) = (inputs.shape(), targets.shape());
            return Err(Error::Dataset(format!("mixup: inputs {x}, targets {y} and an alpha of {alpha}")));
        }
    };
    let lambda = beta(alpha, generator);
    let order: Vec<i64> = generator.permutation(n).into_iter().map(|index| index as i64).collect();
    let order = Tensor::from(order);
    let mixed = |x: &Tensor<T>| -> Result<Tensor<T>> {
        let other = x.try_index_select(0, &order)?;
        Ok(x.try_mul(lambda)?.try_add(&other.try_mul(1.0 - lambda)?)?)
    };
    Ok((mixed(inputs)?, mixed(targets)?))
}

/// From the beta distribution of two equal parameters, by M. D. Jöhnk's rejection ("Erzeugung von betaverteilten und
/// gammaverteilten Zufallszahlen", 1964), in logarithms: for small parameters u^(1/α) is 0 in floating point. It is fast for the
/// parameters below 1 that are used here, and rejects most draws for parameters far above.
fn beta(alpha: f64, generator: &mut Generator) -> f64 {
    loop {
        let [x, y] = [(); 2].map(|()| (1.0 - generator.uniform()).ln() / alpha);
        let larger = x.max(y);
        let sum = larger + ((x - larger).exp() + (y - larger).exp()).ln();
        if sum <= 0.0 {
            return (x - sum).exp();
        }
    }
}

/// Where the pixel of a result comes from: row and column times `linear`, plus `offset`.
struct Affine {
    linear: [[f64; 2]; 2],
    offset: [f64; 2],
}

impl Affine {
    const IDENTITY: Affine = Affine { linear: [[1.0, 0.0], [0.0, 1.0]], offset: [0.0, 0.0] };
}

/// Images of the size `to`, each moved by a map of its own, with bilinear interpolation, which is none between whole pixels.
fn moved<T: Float>(images: &Tensor<T>, to: [usize; 2], mut map: impl FnMut() -> Affine) -> Result<Tensor<T>> {
    let [n, channels, height, width] = sizes(images)?;
    let mut result = Tensor::try_full([n, channels, to[0], to[1]], T::ZERO)?;
    let (from, into) = (images.try_contiguous()?.try_to_vec()?, result.make_mut());
    let (plane, step) = (height * width, to[0] * to[1]);
    for image in 0..n {
        let Affine { linear, offset } = map();
        for place in 0..step {
            let at = [place / to[1], place % to[1]].map(|index| index as f64);
            let [row, column] = [0, 1].map(|i| linear[i][0] * at[0] + linear[i][1] * at[1] + offset[i]);
            let (top, left) = (row.floor(), column.floor());
            let (low, right) = (row - top, column - left);
            for (down, side, weight) in [
                (0.0, 0.0, (1.0 - low) * (1.0 - right)),
                (0.0, 1.0, (1.0 - low) * right),
                (1.0, 0.0, low * (1.0 - right)),
                (1.0, 1.0, low * right),
            ] {
                let (row, column) = (top + down, left + side);
                let inside = row >= 0.0 && column >= 0.0 && row < height as f64 && column < width as f64;
                if weight == 0.0 || !inside {
                    continue;
                }
                let (source, weight) = (row as usize * width + column as usize, T::from_f64(weight));
                for channel in image * channels..(image + 1) * channels {
                    let target = &mut into[channel * step + place];
                    *target = *target + weight * from[channel * plane + source];
                }
            }
        }
    }
    Ok(result)
}

fn sizes<T: Float>(images: &Tensor<T>) -> Result<[usize; 4]> {
    let shape = images.shape();
    <[usize; 4]>::try_from(shape.sizes())
        .map_err(|_| Error::Dataset(format!("expected images [n, c, h, w], got a tensor of shape {shape}")))
}

#[cfg(test)]
mod tests {
    use wengert_tensor::ops::{Reductions as _, Views as _};

    use super::*;

    /// Two images of two channels with different numbers everywhere.
    fn images() -> Tensor<f64> {
        Tensor::from_fn([2, 2, 3, 4], |i| (100 * i[0] + 50 * i[1] + 4 * i[2] + i[3] + 1) as f64)
    }

    #[test]
    fn images_are_shifted_flipped_and_cropped_whole() {
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
    fn rotations_turn_about_the_middle() {
        let (images, generator) = (images(), &mut Generator::new(3));
        assert_eq!(random_rotation(&images, 0.0, generator).unwrap(), images);
        let cross = Tensor::from_fn([4, 1, 5, 5], |i| f64::from(i[2] == 2 || i[3] == 2));
        let turned = random_rotation(&cross, 20.0, generator).unwrap();
        for n in 0..4 {
            assert!((turned.get(&[n, 0, 2, 2]).unwrap() - 1.0).abs() < 1e-12);
            // Turning by half a turn is the same as mirroring both ways; a cross turned stays symmetric so.
            let one = turned.select(0, n);
            let other = one.flip([1, 2]);
            assert!(one.iter().zip(other.iter()).all(|(x, y)| (x - y).abs() < 1e-12));
            assert!(one.get(&[0, 0, 2]).unwrap() < 1.0);
        }
        assert_ne!(turned.select(0, 0), turned.select(0, 1));
    }

    #[test]
    fn mixtures_are_between_both_and_their_share_is_of_the_beta_distribution() {
        let generator = &mut Generator::new(1);
        for alpha in [0.2, 1.0, 2.0] {
            let shares: Vec<f64> = (0..4000).map(|_| beta(alpha, generator)).collect();
            let mean = shares.iter().sum::<f64>() / 4000.0;
            let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / 4000.0;
            let expected = 1.0 / (4.0 * (2.0 * alpha + 1.0));
            // Five standard errors: of the mean √(v/n), of the variance not more than 0.25/√n.
            assert!((mean - 0.5).abs() < 5.0 * (expected / 4000.0).sqrt(), "{mean}");
            assert!((variance - expected).abs() < 5.0 * 0.25 / 4000f64.sqrt(), "{variance} {expected}");
        }
        let (x, y) = (Tensor::from([[0.0], [1.0], [2.0f64]]), Tensor::from([0.0, 1.0, 2.0]));
        let (mixed, targets) = mixup(&x, &y, 0.3, generator).unwrap();
        assert_eq!(mixed.to_vec(), targets.to_vec());
        assert!((mixed.sum(..).item() - 3.0).abs() < 1e-12);
        assert!(mixup(&x, &Tensor::from([1.0]), 0.3, generator).is_err());
        assert!(mixup(&x, &y, 0.0, generator).is_err());
    }

    #[test]
    fn noise_has_the_deviation_that_was_asked_for() {
        let noisy = gaussian_noise(&Tensor::<f64>::zeros([10_000]), 0.5, &mut Generator::new(0)).unwrap();
        let variance = noisy.iter().map(|x| x * x).sum::<f64>() / 10_000.0;
        // Five standard errors of a variance: 5 · 0.25 · √(2 / n).
        assert!((variance - 0.25).abs() < 0.018, "{variance}");
    }
}
