//! Operations that replace a tensor by a view of itself, and tests of the in-place forms that `#[in_place]` generates.

use wengert_macros::twins;

use crate::ops::{TensorLike, Views};
use crate::{Dims, Position};

/// The replacement of a tensor by a view of itself. No element is written.
///
/// ```
/// # use wengert_tensor::prelude::*;
/// let mut x = Tensor::from([[1.0, 2.0, 3.0]]);
/// x.t_();
/// assert_eq!(x.shape(), &[3, 1]);
/// x.squeeze_(1);
/// assert_eq!(x.to_vec(), [1.0, 2.0, 3.0]);
/// ```
#[twins(blanket)]
pub trait ViewsInPlace: TensorLike {
    /// Replaces `self` by `self.t()`. PyTorch: `t_`.
    fn try_t_(&mut self) -> Result<(), Self::Error> {
        *self = self.try_t()?;
        Ok(())
    }

    /// Replaces `self` by `self.transpose(first, second)`. PyTorch: `transpose_`.
    fn try_transpose_(&mut self, first: impl Position, second: impl Position) -> Result<(), Self::Error> {
        *self = self.try_transpose(first, second)?;
        Ok(())
    }

    /// Replaces `self` by `self.unsqueeze(dim)`. PyTorch: `unsqueeze_`.
    fn try_unsqueeze_(&mut self, dim: impl Position) -> Result<(), Self::Error> {
        *self = self.try_unsqueeze(dim)?;
        Ok(())
    }

    /// Replaces `self` by `self.squeeze(dims)`. PyTorch: `squeeze_`.
    fn try_squeeze_(&mut self, dims: impl Into<Dims>) -> Result<(), Self::Error> {
        *self = self.try_squeeze(dims)?;
        Ok(())
    }

    /// Replaces `self` by a constant with the same values, through which no gradient flows. PyTorch: `detach_`.
    #[track_caller]
    fn detach_(&mut self) {
        *self = self.detach();
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;

    #[test]
    fn the_left_side_becomes_the_result() {
        let mut x = Tensor::from([[1.5, -2.5], [3.0, 4.0]]);
        let kept = x.clone();
        x.floor_();
        assert_eq!(x.to_vec(), [1.0, -3.0, 3.0, 4.0]);
        x.cumsum_(0);
        x.triu_(0);
        assert_eq!(x, Tensor::from([[1.0, -3.0], [0.0, 1.0]]));
        x.nan_to_num_(0.0, None, None);
        x.hardtanh_(-1.0, 0.5);
        assert_eq!(x.to_vec(), [0.5, -1.0, 0.0, 0.5]);
        assert_eq!(kept.to_vec()[0], 1.5);
        let mut bits = Tensor::from([0i64, 5]);
        bits.bitwise_not_();
        assert_eq!(bits.to_vec(), [-1, -6]);
        assert!(Tensor::from([1.0]).try_bitwise_not_().is_err());
        assert!(Tensor::<f64>::ones([1]).expand([2]).try_erf_().is_err());
    }

    #[test]
    fn matrices_and_vectors() {
        let mut x = Tensor::<f64>::zeros([2]);
        x.addmv_(Tensor::from([[1.0, 2.0], [3.0, 4.0]]), Tensor::ones([2]), 1, 1);
        assert_eq!(x.to_vec(), [3.0, 7.0]);
        let error = Tensor::<f64>::zeros([1]).try_addmv_(Tensor::ones([2, 2]), Tensor::ones([2]), 1, 1).unwrap_err();
        assert_eq!(error.sentence(), "output with shape [1] doesn't match the broadcast shape [2]");
        let error = Tensor::<f64>::zeros([1]).try_addmv_(Tensor::ones([2, 2]), Tensor::ones([3]), 1, 1).unwrap_err();
        assert!(error.to_string().contains(file!()), "{error}");
        let mut x = Tensor::<f64>::ones([2, 2]);
        x.addr_(Tensor::from([1.0, 2.0]), Tensor::from([1.0, 10.0]), 0, 1);
        assert_eq!(x.to_vec(), [1.0, 10.0, 2.0, 20.0]);
        let (a, b) = (Tensor::<f64>::ones([3, 2, 1]), Tensor::ones([3, 1, 2]));
        x.addbmm_(&a, &b, 0, 1);
        assert_eq!(x.to_vec(), [3.0; 4]);
        let mut x = Tensor::<f64>::ones([3, 2, 2]);
        x.baddbmm_(&a, &b, 2, 1);
        assert_eq!(x.to_vec(), [3.0; 12]);
    }

    #[test]
    fn incomplete_gamma_functions() {
        let (a, x) = (Tensor::from([[1.0, 2.5], [0.5, 4.0]]), Tensor::from([0.25, 3.0]));
        let (mut lower, mut upper) = (a.clone(), a.clone());
        lower.igamma_(&x);
        upper.igammac_(&x);
        assert_eq!((&lower, &upper), (&a.igamma(&x), &a.igammac(&x)));
        lower.igamma_(2.0);
        assert_eq!(lower, a.igamma(&x).igamma(2.0));
        let error = Tensor::<f64>::ones([2]).try_igamma_(&a).unwrap_err();
        assert_eq!(error.sentence(), "output with shape [2] doesn't match the broadcast shape [2, 2]");
        assert!(Tensor::<f64>::ones([1]).expand([3]).try_igammac_(1.0).is_err());
    }

    #[test]
    fn two_operands() {
        let mut x = Tensor::from([12i64, 18]);
        x.gcd_(8);
        assert_eq!(x.to_vec(), [4, 2]);
        x.lcm_(Tensor::from([6i64]));
        x.bitwise_left_shift_(1);
        x.bitwise_right_shift_(2);
        assert_eq!(x.to_vec(), [6, 3]);
        let mut x = Tensor::from([-1.0, 0.0, 3.0]);
        x.heaviside_(0.5);
        x.ldexp_(3.0);
        assert_eq!(x.to_vec(), [0.0, 4.0, 8.0]);
        assert!(x.try_ldexp_(Tensor::ones([2, 3])).is_err());
    }
}
