//! The handwritten digits that lie in the repository.

use std::path::Path;

use wengert::nn::{Dataset, Generator, Normalize, Samples};
use wengert::prelude::*;

use crate::Result;

/// The file, found from whatever folder the example is run in.
pub const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz");

/// 1,797 digits of 8 x 8 pixels from 0 (paper) to 1 (ink), `[n, 64]`, as three quarters to train on and a quarter held out.
///
/// # Errors
///
/// If the file cannot be read.
pub fn digits(path: impl AsRef<Path>, generator: &mut Generator) -> Result<(Samples, Samples)> {
    let (train, test) = Samples::<Tensor>::read_csv(path, 10)?.random_split(0.25, generator)?;
    // Pixels may be from 0 to 16 or from 0 to 255: the training part says.
    let ink = Normalize::new(Tensor::scalar(0.0), train.inputs().amax(..));
    Ok((train.normalized(&ink)?, test.normalized(&ink)?))
}
