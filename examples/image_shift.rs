//! Pictures as `[n, 3, h, w]`, shifted in value with one `+`.
//!
//! `+ [h, w]` adds one picture to every channel of every image, `+ [3, 1, 1]` one amount per colour, `+ [1]` one amount
//! everywhere. Before and after are written side by side as one PNG.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use image::{ImageError, RgbImage};
use wengert::prelude::*;

fn main() -> ExitCode {
    let out = PathBuf::from("out/image_shift.png");
    match run(&out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("image_shift: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let picture = image::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/chelsea.png"))?.to_rgb8();
    let (w, h) = (picture.width() as usize, picture.height() as usize);

    // Pixels come as [h, w, 3]; a batch of one image is [1, 3, h, w]. No pixel is moved for that.
    let pixels = Tensor::from_vec(picture.into_raw(), [h, w, 3]).cast::<f32>();
    let images = (pixels / 255.0).permute([2, 0, 1]).unsqueeze(0);

    // Light from above: one value per pixel, the same for every channel of every image.
    let light = (1.0 - Tensor::<f32>::linspace(0.0, 1.0, h)).reshape([h, 1]) * 0.5 - 0.25;
    let light = light.expand([h, w]);
    let lit = &images + &light;

    // A warmer tone: one amount per colour.
    let warm = &images + &Tensor::from([0.18, 0.02, -0.15]).reshape([3, 1, 1]);

    // Brighter everywhere.
    let bright = &images + &Tensor::from([0.2]);

    println!("images {} + light {} = {}", images.shape(), light.shape(), lit.shape());
    println!("images {} + tone [3, 1, 1] = {}", images.shape(), warm.shape());
    println!("images {} + amount [1] = {}", images.shape(), bright.shape());

    let row = cat(&[images, lit, warm, bright], -1);
    write(&row, out)?;
    println!("before, + [h, w], + [3, 1, 1], + [1]: {}", out.display());
    Ok(())
}

/// Writes `[1, 3, h, w]` with values around 0 to 1 as a PNG; what lies outside is clipped.
fn write(images: &Tensor<f32>, path: &Path) -> Result<(), String> {
    let pixels = images.squeeze(0).permute([1, 2, 0]);
    let (h, w) = (pixels.shape()[0], pixels.shape()[1]);
    let bytes = (pixels.maximum(0.0).minimum(1.0) * 255.0).round().cast::<u8>().to_vec();
    let written = path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(ImageError::from);
    match RgbImage::from_raw(w as u32, h as u32, bytes) {
        Some(picture) => {
            written.and_then(|()| picture.save(path)).map_err(|error| format!("{}: {error}", path.display()))
        }
        None => unreachable!("three bytes a pixel"),
    }
}
