//! The handwritten digits that lie in the repository, or MNIST.

use std::path::Path;

use wengert::nn::{Dataset, Generator, Normalize, Samples, read_idx};
use wengert::prelude::*;

use crate::Result;

/// The file, found from whatever folder the example is run in.
pub const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz");

/// Digits `[n, height · width]` with pixels from 0 (paper) to 1 (ink), and their classes: those to train on and those held out.
///
/// A table ([`DIGITS`] is one of 1,797 digits of 8 x 8 pixels) gives three quarters of its rows and the rest. A folder is one of MNIST's IDX
/// files, `train-images-idx3-ubyte` and so on, gzipped or not; `t10k` is held out.
///
/// # Errors
///
/// If a file cannot be read.
pub fn digits(path: impl AsRef<Path>, generator: &mut Generator) -> Result<(Samples, Samples)> {
    let path = path.as_ref();
    let (train, test) = match path.is_dir() {
        true => (idx(path, "train")?, idx(path, "t10k")?),
        false => Samples::read_csv(path, 10)?.random_split(0.25, generator)?,
    };
    // Pixels may be from 0 to 16 or from 0 to 255: the training part says.
    let ink = Normalize::new(Tensor::scalar(0.0), train.inputs().amax(..));
    Ok((train.normalized(&ink)?, test.normalized(&ink)?))
}

fn idx(folder: &Path, part: &str) -> Result<Samples> {
    let file = |kind| {
        let plain = folder.join(format!("{part}-{kind}-ubyte"));
        if plain.exists() { plain } else { plain.with_extension("gz") }
    };
    let images = read_idx(file("images-idx3"))?;
    Ok(Samples::new(images.try_flatten(1, -1)?, read_idx(file("labels-idx1"))?)?)
}
