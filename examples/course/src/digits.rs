//! The handwritten digits of the repository, or MNIST.

use std::path::Path;

use wengert::nn::{Dataset, Generator, Normalize, Samples, read_idx};
use wengert::prelude::*;

use crate::Result;

/// The path of the table; it does not depend on the working directory.
pub const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz");

/// Returns digits `[n, height · width]` with pixels from 0 (paper) to 1 (ink), and their classes: a training part and a
/// held-out part.
///
/// `path` is a table or a folder. Of a table, three quarters of the rows are for training. The table [`DIGITS`] has 1,797
/// digits of 8 x 8 pixels. A folder has MNIST's IDX files, `train-images-idx3-ubyte` and so on, gzipped or not. The files
/// whose names begin with `t10k` are held out.
///
/// # Errors
///
/// If a file cannot be read or is malformed.
pub fn digits(path: impl AsRef<Path>, generator: &mut Generator) -> Result<(Samples, Samples)> {
    let path = path.as_ref();
    let (train, test) = match path.is_dir() {
        true => (idx(path, "train")?, idx(path, "t10k")?),
        false => Samples::read_csv(path, 10)?.random_split(0.25, generator)?,
    };
    // Pixels may range from 0 to 16 or from 0 to 255; the training part determines the scale.
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
