//! Dropout (Srivastava et al. 2014) in the inverted form: training scales the elements that it keeps, so evaluation returns its input.

use wengert_macros::twins;

use crate::ops::random::draw_each;
use crate::ops::{Compose, Result, TensorLike};
use crate::{Float, Generator, Scalar, Site, Tensor, ensure};

/// Dropout: setting random elements to 0 in training.
#[twins(blanket)]
pub trait Dropout: TensorLike<Elem: Float> {
    /// Multiplies each element by 0 with probability `p`, and otherwise by 1 / (1 - p). A NaN or an infinity that is multiplied by 0
    /// becomes NaN. Draws one 64-bit word from `generator` per element, in row-major order. If `training` is false or `p` is 0, returns
    /// `self` and draws nothing. Refuses a `p` outside [0, 1]. PyTorch: `nn.functional.dropout`.
    ///
    /// ```
    /// # use wengert_tensor::prelude::*;
    /// let x = Tensor::<f64>::ones([100]);
    /// let mut generator = Generator::new(1);
    /// let y = x.dropout(0.5, true, &mut generator);
    /// assert!(y.to_vec().iter().all(|&element| element == 0.0 || element == 2.0));
    /// assert_eq!(x.dropout(0.5, false, &mut generator), x);
    /// ```
    fn try_dropout(&self, p: f64, training: bool, generator: &mut Generator) -> Result<Self> {
        let at = Site::here("dropout");
        ensure!((0.0..=1.0).contains(&p), at, "dropout probability has to be between 0 and 1, but got {p}");
        if !training || p == 0.0 {
            return Ok(self.clone());
        }
        let scale = if p < 1.0 { Self::Elem::from_f64(1.0 / (1.0 - p)) } else { Self::Elem::ZERO };
        let noise = Tensor::build(&self.shape(), at, |out| {
            draw_each(out, generator, |generator| if generator.bernoulli(p) { Self::Elem::ZERO } else { scale });
        })?;
        self.times(&self.try_constant(&noise)?, at)
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::elementwise::dropout::Dropout;
    use crate::prelude::*;

    #[test]
    fn probabilities_of_zero_and_one() {
        let mut generator = Generator::new(7);
        let x = Tensor::from([1.0, f64::NAN]);
        let y = x.dropout(1.0, true, &mut generator).to_vec();
        assert_eq!(y[0], 0.0);
        assert!(y[1].is_nan());
        assert_eq!(x.dropout(0.0, true, &mut generator).to_vec()[0], 1.0);
        assert!(x.try_dropout(1.5, true, &mut generator).is_err());
        assert!(x.try_dropout(f64::NAN, false, &mut generator).is_err());
    }

    #[test]
    fn the_share_of_dropped_elements_is_p() {
        let y = Tensor::<f32>::ones([10_000]).dropout(0.25, true, &mut Generator::new(3));
        // The bound is four standard deviations of the binomial number of dropped elements: 4 · √(10000 · 0.25 · 0.75) ≈ 173.2.
        let dropped = y.to_vec().iter().filter(|&&element| element == 0.0).count();
        assert!(dropped.abs_diff(2500) < 174, "{dropped}");
    }
}
