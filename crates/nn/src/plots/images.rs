//! Draws images with captions, and the filters of a model.

use std::fmt::Write as _;

use wengert_tensor::ops::{Arithmetic as _, Reductions as _, Views as _};
use wengert_tensor::{Float, Tensor};

use super::style::{escape_markup, png};
use crate::{Error, Result};

/// Draws images `[n, 1, h, w]` (gray) or `[n, 3, h, w]` (red, green, blue) as an SVG image, in rows of `columns` images. Each image has its
/// caption below, if there is one. The smallest finite element of all images is black, the largest white. NaN is black. A caption that
/// begins with `!` is red, and the `!` is not shown.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
/// use wengert::nn::plots::image_grid;
/// use wengert::prelude::*;
///
/// let images = Tensor::from_fn([3, 1, 8, 8], |i| (i[2] * i[3]) as f32);
/// let svg = image_grid(&images, &["0", "1", "!7 for 1"], 2)?;
/// assert_eq!(svg.matches("<image").count(), 3);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// If the images have another shape, or `columns` is 0: [`Error::Dataset`]. Also if there is not enough memory.
pub fn image_grid<T: Float>(images: &Tensor<T>, captions: &[&str], columns: usize) -> Result<String> {
    let finite = || images.iter().map(T::to_f64).filter(|x| x.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let width = if high > low { high - low } else { 1.0 };
    let shade = |x: f64| (255.0 * (x - low) / width).round() as u8;
    grid(images, captions, columns, |pixel| match *pixel {
        [r, g, b] => [shade(r), shade(g), shade(b)],
        _ => [shade(pixel[0]); 3],
    })
}

/// Draws the weights of a layer as images. For a convolution, `[out, in, h, w]`, there is an image for each output channel, the mean over
/// the input channels. For a linear layer, `[out, in]`, each row is a square image. Blue is negative, white is 0, red is positive. Each
/// image has its own scale.
///
/// # Errors
///
/// If the weights have another shape, `in` of a linear layer is not a square number, or `columns` is 0:
/// [`Error::Dataset`]. Also if there is not enough memory.
pub fn filters<T: Float>(weight: &Tensor<T>, columns: usize) -> Result<String> {
    let side = weight.shape().last().map_or(0, |&features| features.isqrt());
    let maps = match weight.shape()[..] {
        [_, _, _, _] => weight.try_mean_keepdim(1)?,
        [out, features] if side * side == features => weight.try_reshape([out, 1, side, side])?,
        _ => {
            let shape = weight.shape();
            return Err(Error::Dataset(format!(
                "expected filters [out, in, h, w] or [out, side · side], but got {shape}"
            )));
        }
    };
    let n = maps.shape()[0];
    if maps.numel() == 0 {
        return grid(&maps, &[], columns, |_| [255; 3]);
    }
    let most = maps.try_abs()?.try_reshape([n, maps.numel() / n])?.try_amax(1)?;
    let scaled = Tensor::<f64>::try_from_fn(maps.shape(), |i| {
        let (value, most) = (maps.get(i).map_or(0.0, T::to_f64), most.get(&[i[0]]).map_or(0.0, T::to_f64));
        if most > 0.0 { value / most } else { 0.0 }
    })?;
    grid(&scaled, &[], columns, |pixel| {
        let fade = |full: f64| (255.0 + pixel[0].abs() * (full - 255.0)).round() as u8;
        if pixel[0] < 0.0 { [fade(33.0), fade(102.0), fade(172.0)] } else { [fade(178.0), fade(24.0), fade(43.0)] }
    })
}

/// Draws images in rows of `columns`. `colour` returns the colour of a pixel from its channels. Images of another shape
/// than `[n, 1, h, w]` or `[n, 3, h, w]` and 0 columns are errors.
fn grid<T: Float>(
    images: &Tensor<T>,
    captions: &[&str],
    columns: usize,
    colour: impl Fn(&[f64]) -> [u8; 3],
) -> Result<String> {
    let &[n, channels @ (1 | 3), height, width] = &images.shape()[..] else {
        let shape = images.shape();
        return Err(Error::Dataset(format!(
            "expected images [n, 1, h, w] or [n, 3, h, w], but got a tensor of shape {shape}"
        )));
    };
    if columns == 0 {
        return Err(Error::Dataset("expected at least 1 column of images, but got 0".to_owned()));
    }
    // Small images are enlarged by an integer factor.
    let scale = (96 / width.max(height).max(1)).max(1);
    let (wide, high) = (width * scale, height * scale);
    let letters = captions.iter().map(|caption| caption.chars().count()).max().unwrap_or(0);
    let (cell, line) = (wide.max(8 * letters) + 12, if letters > 0 { 22 } else { 0 });
    let (across, down) = (columns.min(n) * cell + 12, n.div_ceil(columns) * (high + line + 12) + 12);
    let mut svg = format!(
        "<svg width=\"{across}\" height=\"{down}\" viewBox=\"0 0 {across} {down}\" xmlns=\"http://www.w3.org/2000/svg\" \
         font-family=\"sans-serif\" font-size=\"14\">\n<rect width=\"{across}\" height=\"{down}\" fill=\"#ffffff\"/>\n"
    );
    let values = images.try_permute([0, 2, 3, 1])?.try_to_vec()?;
    for image in 0..n {
        let of_image = &values[image * height * width * channels..][..height * width * channels];
        let pixel = |pixel: &[T]| colour(&pixel.iter().map(|x| x.to_f64()).collect::<Vec<_>>());
        let pixels: Vec<[u8; 3]> = of_image.chunks(channels).map(pixel).collect();
        let (x, y) = (12 + image % columns * cell, 12 + image / columns * (high + line + 12));
        let _ = writeln!(
            svg,
            "<image x=\"{}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" preserveAspectRatio=\"none\" \
             style=\"image-rendering:pixelated\" href=\"{}\"/>",
            x + (cell - 12 - wide) / 2,
            png(&pixels, width),
        );
        if let Some(caption) = captions.get(image) {
            let (ink, caption) = match caption.strip_prefix('!') {
                Some(caption) => ("#c82832", caption),
                None => ("#3c3c3c", *caption),
            };
            let (x, y) = (x + (cell - 12) / 2, y + high + 16);
            let _ = writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"{ink}\">{}</text>",
                escape_markup(caption)
            );
        }
    }
    Ok(svg + "</svg>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_its_images_and_captions() {
        let images = Tensor::from_fn([5, 3, 4, 6], |i| i[3] as f64);
        let svg = image_grid(&images, &["a", "!b & c"], 3).unwrap();
        assert_eq!(svg.matches("<image").count(), 5);
        assert!(svg.contains(">a</text>") && svg.contains("fill=\"#c82832\">b &amp; c</text>"));
        assert!(image_grid(&Tensor::<f32>::zeros([0, 1, 4, 4]), &[], 3).unwrap().ends_with("</svg>\n"));
        assert!(image_grid(&Tensor::full([1, 1, 2, 2], f64::NAN), &[], 3).is_ok());
        assert!(image_grid(&Tensor::<f32>::zeros([2, 2, 4, 4]), &[], 3).is_err());
        assert!(image_grid(&images, &[], 0).is_err());
        assert_eq!(filters(&Tensor::<f32>::ones([8, 16, 3, 3]), 4).unwrap().matches("<image").count(), 8);
        assert_eq!(filters(&Tensor::<f32>::zeros([2, 64]), 4).unwrap().matches("<image").count(), 2);
        assert!(filters(&Tensor::<f32>::ones([2, 63]), 4).is_err());
        assert!(filters(&Tensor::<f32>::ones([0, 4]), 4).is_ok());
    }
}
