//! The handwritten digits that lie in the repository.

use std::path::Path;

use wengert::nn::{Dataset, Generator, Normalize};

use crate::Result;

/// The file, found from whatever folder the example is run in.
pub const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz");

/// 1,797 digits of 8 x 8 pixels from -1 (paper) to 1 (ink), `[n, 64]`, as three quarters to train on and a quarter held out.
///
/// # Errors
///
/// If the file cannot be read.
pub fn digits(path: impl AsRef<Path>, generator: &mut Generator) -> Result<(Dataset<f32>, Dataset<f32>)> {
    let (train, test) = Dataset::read_csv(path, 10)?.random_split(0.25, generator)?;
    let pixels = Normalize::fit_range(train.inputs())?;
    Ok((train.normalized(&pixels)?, test.normalized(&pixels)?))
}
