//! Changes the brightness and colours of pictures `[n, 3, h, w]` with one `+`.
//!
//! `+ [h, w]` adds one picture to every channel of every image. `+ [3, 1, 1]` adds one amount per colour. `+ [1]` adds one
//! amount everywhere. The example writes the pictures before and after, side by side, as one PNG.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::process::ExitCode;

use wengert::prelude::*;
use wengert_options::{Options, Result, run};

fn main() -> ExitCode {
    run(Options::new("image_shift", "The colours of a picture, shifted by one `+`"), shift)
}

fn shift(options: &Options) -> Result {
    // The file gives pixels [h, w, 3]; a batch of one image is [1, 3, h, w]. The permutation moves no pixel in memory.
    let pixels = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/chelsea.png"))?;
    let (h, w) = (pixels.shape()[0], pixels.shape()[1]);
    let images = (pixels.cast::<f32>() / 255.0).permute([2, 0, 1]).unsqueeze(0);

    // This adds light from above: one value per pixel, the same for every channel of every image.
    let light = (1.0 - Tensor::<f32>::linspace(0.0, 1.0, h)).reshape([h, 1]) * 0.5 - 0.25;
    let light = light.expand([h, w]);
    let lit = &images + &light;

    // This gives a warmer tone: it adds one amount per colour.
    let warm = &images + &Tensor::from([0.18, 0.02, -0.15]).reshape([3, 1, 1]);

    // This makes all pixels brighter by the same amount.
    let bright = &images + &Tensor::from([0.2]);

    println!("images {} + light {} = {}", images.shape(), light.shape(), lit.shape());
    println!("images {} + tone [3, 1, 1] = {}", images.shape(), warm.shape());
    println!("images {} + amount [1] = {}", images.shape(), bright.shape());

    let row = cat(&[images, lit, warm, bright], -1);
    let out = options.file("image_shift.png")?;
    write(&row, &out)?;
    println!("before, + [h, w], + [3, 1, 1], + [1]: {}", out.display());
    Ok(())
}

/// Reads the pixels of a PNG with eight bits per channel: `[h, w, 3]`.
fn read(path: &Path) -> Result<Tensor<u8>> {
    let mut picture = png::Decoder::new(BufReader::new(File::open(path)?)).read_info()?;
    let mut bytes = vec![0; picture.output_buffer_size().ok_or("the picture is too large")?];
    let size = picture.next_frame(&mut bytes)?;
    Ok(Tensor::from_vec(bytes, [size.height as usize, size.width as usize, 3]))
}

/// Writes `[1, 3, h, w]` with values from 0 to 1 as a PNG. Other values are clipped.
fn write(images: &Tensor<f32>, path: &Path) -> Result {
    let pixels = images.squeeze(0).permute([1, 2, 0]);
    let (h, w) = (pixels.shape()[0], pixels.shape()[1]);
    let bytes = (pixels.maximum(0.0).minimum(1.0) * 255.0).round().cast::<u8>().to_vec();
    let mut encoder = png::Encoder::new(BufWriter::new(File::create(path)?), w as u32, h as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    Ok(encoder.write_header()?.write_image_data(&bytes)?)
}
