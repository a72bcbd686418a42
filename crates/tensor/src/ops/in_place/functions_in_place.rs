//! The in-place forms of functions of one operand, and of views: for both, `self` becomes the result.

use wengert_macros::twins;

use crate::ops::{Activations, Bounded, Cumulative, Diagonals, Functions, InPlace, TensorLike, Views};
use crate::scalar::instruction::Unary;
use crate::shape::dims::Dims;
use crate::shape::error::Site;
use crate::{Float, Number};

/// Functions of one operand, in place. A left side with several elements in one place is refused, as in PyTorch.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let mut x = Tensor::from([0.25, 4.0]);
/// x.reciprocal_();
/// assert_eq!(x.to_vec(), [4.0, 0.25]);
/// assert!(Tensor::<f64>::ones([1]).expand([3]).try_floor_().is_err());
/// ```
#[twins]
pub trait FunctionsInPlace: InPlace {
    /// `self` becomes its `acos`. PyTorch: `acos_`.
    fn try_acos_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Acos, Site::here("acos_"))
    }

    /// `self` becomes its `acosh`. PyTorch: `acosh_`.
    fn try_acosh_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Acosh, Site::here("acosh_"))
    }

    /// `self` becomes its `asin`. PyTorch: `asin_`.
    fn try_asin_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Asin, Site::here("asin_"))
    }

    /// `self` becomes its `asinh`. PyTorch: `asinh_`.
    fn try_asinh_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Asinh, Site::here("asinh_"))
    }

    /// `self` becomes its `atan`. PyTorch: `atan_`.
    fn try_atan_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Atan, Site::here("atan_"))
    }

    /// `self` becomes its `atanh`. PyTorch: `atanh_`.
    fn try_atanh_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Atanh, Site::here("atanh_"))
    }

    /// `self` becomes its `ceil`. PyTorch: `ceil_`.
    fn try_ceil_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.update_unary(Unary::Ceil, Site::here("ceil_"))
    }

    /// `self` becomes its `cosh`. PyTorch: `cosh_`.
    fn try_cosh_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Cosh, Site::here("cosh_"))
    }

    /// `self` becomes its `digamma`. PyTorch: `digamma_`.
    fn try_digamma_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Digamma, Site::here("digamma_"))
    }

    /// `self` becomes its `erf`. PyTorch: `erf_`.
    fn try_erf_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Erf, Site::here("erf_"))
    }

    /// `self` becomes its `erfc`. PyTorch: `erfc_`.
    fn try_erfc_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Erfc, Site::here("erfc_"))
    }

    /// `self` becomes its `erfinv`. PyTorch: `erfinv_`.
    fn try_erfinv_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Erfinv, Site::here("erfinv_"))
    }

    /// `self` becomes its `exp2`. PyTorch: `exp2_`.
    fn try_exp2_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Exp2, Site::here("exp2_"))
    }

    /// `self` becomes its `expm1`. PyTorch: `expm1_`.
    fn try_expm1_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Expm1, Site::here("expm1_"))
    }

    /// `self` becomes its `floor`. PyTorch: `floor_`.
    fn try_floor_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.update_unary(Unary::Floor, Site::here("floor_"))
    }

    /// `self` becomes its `lgamma`. PyTorch: `lgamma_`.
    fn try_lgamma_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Lgamma, Site::here("lgamma_"))
    }

    /// `self` becomes its `log10`. PyTorch: `log10_`.
    fn try_log10_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Log10, Site::here("log10_"))
    }

    /// `self` becomes its `log1p`. PyTorch: `log1p_`.
    fn try_log1p_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Log1p, Site::here("log1p_"))
    }

    /// `self` becomes its `log2`. PyTorch: `log2_`.
    fn try_log2_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Log2, Site::here("log2_"))
    }

    /// `self` becomes its `reciprocal`. PyTorch: `reciprocal_`.
    fn try_reciprocal_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Reciprocal, Site::here("reciprocal_"))
    }

    /// `self` becomes its `round`. PyTorch: `round_`.
    fn try_round_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.update_unary(Unary::Round, Site::here("round_"))
    }

    /// `self` becomes its `rsqrt`. PyTorch: `rsqrt_`.
    fn try_rsqrt_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("rsqrt_"))?;
        *self = self.try_rsqrt()?;
        Ok(())
    }

    /// `self` becomes its `sign`. PyTorch: `sign_`.
    fn try_sign_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.update_unary(Unary::Sign, Site::here("sign_"))
    }

    /// `self` becomes its `sinc`. PyTorch: `sinc_`.
    fn try_sinc_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Sinc, Site::here("sinc_"))
    }

    /// `self` becomes its `sinh`. PyTorch: `sinh_`.
    fn try_sinh_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Sinh, Site::here("sinh_"))
    }

    /// `self` becomes its `tan`. PyTorch: `tan_`.
    fn try_tan_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.update_unary(Unary::Tan, Site::here("tan_"))
    }

    /// `self` becomes its `trunc`. PyTorch: `trunc_`.
    fn try_trunc_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.update_unary(Unary::Trunc, Site::here("trunc_"))
    }

    /// `self` becomes its `frac`. PyTorch: `frac_`.
    fn try_frac_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("frac_"))?;
        *self = self.try_frac()?;
        Ok(())
    }

    /// `self` becomes its `deg2rad`. PyTorch: `deg2rad_`.
    fn try_deg2rad_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("deg2rad_"))?;
        *self = self.try_deg2rad()?;
        Ok(())
    }

    /// `self` becomes its `rad2deg`. PyTorch: `rad2deg_`.
    fn try_rad2deg_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("rad2deg_"))?;
        *self = self.try_rad2deg()?;
        Ok(())
    }

    /// `self` becomes its `round_to`. PyTorch: `round_to_`.
    fn try_round_to_(&mut self, decimals: i32) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("round_to_"))?;
        *self = self.try_round_to(decimals)?;
        Ok(())
    }

    /// `self` becomes its `logit`. PyTorch: `logit_`.
    fn try_logit_(&mut self, eps: Option<f64>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("logit_"))?;
        *self = self.try_logit(eps)?;
        Ok(())
    }

    /// `self` becomes its `nan_to_num`. PyTorch: `nan_to_num_`.
    fn try_nan_to_num_(&mut self, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("nan_to_num_"))?;
        *self = self.try_nan_to_num(nan, posinf, neginf)?;
        Ok(())
    }

    /// `self` becomes its `elu`. PyTorch: `elu_`.
    fn try_elu_(&mut self, alpha: f64) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("elu_"))?;
        *self = self.try_elu(alpha)?;
        Ok(())
    }

    /// `self` becomes its `celu`. PyTorch: `celu_`.
    fn try_celu_(&mut self, alpha: f64) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("celu_"))?;
        *self = self.try_celu(alpha)?;
        Ok(())
    }

    /// `self` becomes its `selu`. PyTorch: `selu_`.
    fn try_selu_(&mut self) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("selu_"))?;
        *self = self.try_selu()?;
        Ok(())
    }

    /// `self` becomes its `hardtanh`. PyTorch: `hardtanh_`.
    fn try_hardtanh_(&mut self, low: f64, high: f64) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("hardtanh_"))?;
        *self = self.try_hardtanh(low, high)?;
        Ok(())
    }

    /// `self` becomes its `threshold`. PyTorch: `threshold_`.
    fn try_threshold_(&mut self, threshold: f64, value: f64) -> Result<(), Self::Error>
    where
        Self::Elem: Float,
    {
        self.check_write(None, Site::here("threshold_"))?;
        *self = self.try_threshold(threshold, value)?;
        Ok(())
    }

    /// `self` becomes its `cumsum`. PyTorch: `cumsum_`.
    fn try_cumsum_(&mut self, dim: isize) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.check_write(None, Site::here("cumsum_"))?;
        *self = self.try_cumsum(dim)?;
        Ok(())
    }

    /// `self` becomes its `cumprod`. PyTorch: `cumprod_`.
    fn try_cumprod_(&mut self, dim: isize) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.check_write(None, Site::here("cumprod_"))?;
        *self = self.try_cumprod(dim)?;
        Ok(())
    }

    /// `self` becomes its `tril`. PyTorch: `tril_`.
    fn try_tril_(&mut self, diagonal: isize) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.check_write(None, Site::here("tril_"))?;
        *self = self.try_tril(diagonal)?;
        Ok(())
    }

    /// `self` becomes its `triu`. PyTorch: `triu_`.
    fn try_triu_(&mut self, diagonal: isize) -> Result<(), Self::Error>
    where
        Self::Elem: Number,
    {
        self.check_write(None, Site::here("triu_"))?;
        *self = self.try_triu(diagonal)?;
        Ok(())
    }

    /// Every bit inverted; of `bool`: not. PyTorch: `bitwise_not_`.
    fn try_bitwise_not_(&mut self) -> Result<(), Self::Error> {
        self.update_unary(Unary::Not, Site::here("bitwise_not_"))
    }
}

impl<A: InPlace> FunctionsInPlace for A {}

/// Views in place: the name stands for the view from now on. Nothing is written to.
///
/// ```
/// use wengert_tensor::prelude::*;
///
/// let mut x = Tensor::from([[1.0, 2.0, 3.0]]);
/// x.t_();
/// assert_eq!(x.shape(), &[3, 1]);
/// x.squeeze_(1);
/// assert_eq!(x.to_vec(), [1.0, 2.0, 3.0]);
/// ```
#[twins]
pub trait ViewsInPlace: TensorLike {
    /// `self` becomes its `t`. PyTorch: `t_`.
    fn try_t_(&mut self) -> Result<(), Self::Error> {
        *self = self.try_t()?;
        Ok(())
    }

    /// `self` becomes its `transpose`. PyTorch: `transpose_`.
    fn try_transpose_(&mut self, first: isize, second: isize) -> Result<(), Self::Error> {
        *self = self.try_transpose(first, second)?;
        Ok(())
    }

    /// `self` becomes its `unsqueeze`. PyTorch: `unsqueeze_`.
    fn try_unsqueeze_(&mut self, dim: isize) -> Result<(), Self::Error> {
        *self = self.try_unsqueeze(dim)?;
        Ok(())
    }

    /// `self` becomes its `squeeze`. PyTorch: `squeeze_`.
    fn try_squeeze_(&mut self, dims: impl Into<Dims>) -> Result<(), Self::Error> {
        *self = self.try_squeeze(dims)?;
        Ok(())
    }

    /// Cut off from what it was made of: no gradient flows through it any more. PyTorch: `detach_`.
    #[track_caller]
    fn detach_(&mut self) {
        *self = self.detach();
    }
}

impl<A: TensorLike> ViewsInPlace for A {}

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
        x.addmv_(&Tensor::from([[1.0, 2.0], [3.0, 4.0]]), &Tensor::ones([2]), 1, 1);
        assert_eq!(x.to_vec(), [3.0, 7.0]);
        let error = Tensor::<f64>::zeros([1]).try_addmv_(&Tensor::ones([2, 2]), &Tensor::ones([2]), 1, 1).unwrap_err();
        assert_eq!(error.sentence(), "output with shape [1] doesn't match the broadcast shape [2]");
        let error = Tensor::<f64>::zeros([1]).try_addmv_(&Tensor::ones([2, 2]), &Tensor::ones([3]), 1, 1).unwrap_err();
        assert!(error.to_string().contains(file!()), "{error}");
        let mut x = Tensor::<f64>::ones([2, 2]);
        x.addr_(&Tensor::from([1.0, 2.0]), &Tensor::from([1.0, 10.0]), 0, 1);
        assert_eq!(x.to_vec(), [1.0, 10.0, 2.0, 20.0]);
        let (a, b) = (Tensor::<f64>::ones([3, 2, 1]), Tensor::ones([3, 1, 2]));
        x.addbmm_(&a, &b, 0, 1);
        assert_eq!(x.to_vec(), [3.0; 4]);
        let mut x = Tensor::<f64>::ones([3, 2, 2]);
        x.baddbmm_(&a, &b, 2, 1);
        assert_eq!(x.to_vec(), [3.0; 12]);
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
