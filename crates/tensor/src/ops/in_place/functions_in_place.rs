//! The in-place forms of functions of one operand, and of views: for both, `self` becomes the result.

use crate::ops::{Activations, Bounded, Cumulative, Diagonals, Functions, InPlace, TensorLike, Views};
use crate::scalar::instruction::Unary;
use crate::shape::dims::Dims;
use crate::shape::error::{Site, raise};
use crate::{Float, Number};

/// Writes pairs of a method that panics and one that returns the error. `check` looks at the left side first.
macro_rules! in_place {
    ($check:ident: $(
        $name:ident | $try_name:ident ($($arg:ident: $ty:ty),*) [$($clause:tt)*] = $plain:ident | $function:ident;
    )*) => {$(
        #[doc = concat!("`self` becomes its `", stringify!($plain), "`. PyTorch: `", stringify!($name), "`.")]
        #[track_caller]
        fn $name(&mut self, $($arg: $ty),*) where $($clause)* {
            self.$try_name($($arg),*).unwrap_or_else(|error| raise(error));
        }

        #[doc = concat!("[`", stringify!($name), "`](Self::", stringify!($name), "), with the error as a value.")]
        ///
        /// # Errors
        ///
        /// Where the arguments are refused, or `self` is expanded and would be written to.
        #[track_caller]
        fn $try_name(&mut self, $($arg: $ty),*) -> Result<(), Self::Error> where $($clause)* {
            $check(self, Site::here(stringify!($name)))?;
            *self = self.$function($($arg),*)?;
            Ok(())
        }
    )*};
}

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
pub trait FunctionsInPlace: InPlace {
    in_place! { written:
        acos_ | try_acos_() [Self::Elem: Float] = acos | try_acos;
        acosh_ | try_acosh_() [Self::Elem: Float] = acosh | try_acosh;
        asin_ | try_asin_() [Self::Elem: Float] = asin | try_asin;
        asinh_ | try_asinh_() [Self::Elem: Float] = asinh | try_asinh;
        atan_ | try_atan_() [Self::Elem: Float] = atan | try_atan;
        atanh_ | try_atanh_() [Self::Elem: Float] = atanh | try_atanh;
        ceil_ | try_ceil_() [Self::Elem: Number] = ceil | try_ceil;
        cosh_ | try_cosh_() [Self::Elem: Float] = cosh | try_cosh;
        digamma_ | try_digamma_() [Self::Elem: Float] = digamma | try_digamma;
        erf_ | try_erf_() [Self::Elem: Float] = erf | try_erf;
        erfc_ | try_erfc_() [Self::Elem: Float] = erfc | try_erfc;
        erfinv_ | try_erfinv_() [Self::Elem: Float] = erfinv | try_erfinv;
        exp2_ | try_exp2_() [Self::Elem: Float] = exp2 | try_exp2;
        expm1_ | try_expm1_() [Self::Elem: Float] = expm1 | try_expm1;
        floor_ | try_floor_() [Self::Elem: Number] = floor | try_floor;
        lgamma_ | try_lgamma_() [Self::Elem: Float] = lgamma | try_lgamma;
        log10_ | try_log10_() [Self::Elem: Float] = log10 | try_log10;
        log1p_ | try_log1p_() [Self::Elem: Float] = log1p | try_log1p;
        log2_ | try_log2_() [Self::Elem: Float] = log2 | try_log2;
        reciprocal_ | try_reciprocal_() [Self::Elem: Float] = reciprocal | try_reciprocal;
        round_ | try_round_() [Self::Elem: Number] = round | try_round;
        rsqrt_ | try_rsqrt_() [Self::Elem: Float] = rsqrt | try_rsqrt;
        sign_ | try_sign_() [Self::Elem: Number] = sign | try_sign;
        sinc_ | try_sinc_() [Self::Elem: Float] = sinc | try_sinc;
        sinh_ | try_sinh_() [Self::Elem: Float] = sinh | try_sinh;
        tan_ | try_tan_() [Self::Elem: Float] = tan | try_tan;
        trunc_ | try_trunc_() [Self::Elem: Number] = trunc | try_trunc;
        frac_ | try_frac_() [Self::Elem: Float] = frac | try_frac;
        deg2rad_ | try_deg2rad_() [Self::Elem: Float] = deg2rad | try_deg2rad;
        rad2deg_ | try_rad2deg_() [Self::Elem: Float] = rad2deg | try_rad2deg;
        round_to_ | try_round_to_(decimals: i32) [Self::Elem: Float] = round_to | try_round_to;
        logit_ | try_logit_(eps: Option<f64>) [Self::Elem: Float] = logit | try_logit;
        nan_to_num_ | try_nan_to_num_(nan: f64, posinf: Option<f64>, neginf: Option<f64>) [Self::Elem: Float]
            = nan_to_num | try_nan_to_num;
        elu_ | try_elu_(alpha: f64) [Self::Elem: Float] = elu | try_elu;
        celu_ | try_celu_(alpha: f64) [Self::Elem: Float] = celu | try_celu;
        selu_ | try_selu_() [Self::Elem: Float] = selu | try_selu;
        hardtanh_ | try_hardtanh_(low: f64, high: f64) [Self::Elem: Float] = hardtanh | try_hardtanh;
        threshold_ | try_threshold_(threshold: f64, value: f64) [Self::Elem: Float] = threshold | try_threshold;
        cumsum_ | try_cumsum_(dim: isize) [Self::Elem: Number] = cumsum | try_cumsum;
        cumprod_ | try_cumprod_(dim: isize) [Self::Elem: Number] = cumprod | try_cumprod;
        tril_ | try_tril_(diagonal: isize) [Self::Elem: Number] = tril | try_tril;
        triu_ | try_triu_(diagonal: isize) [Self::Elem: Number] = triu | try_triu;
    }

    /// Every bit inverted; of `bool`: not. PyTorch: `bitwise_not_`.
    #[track_caller]
    fn bitwise_not_(&mut self) {
        self.try_bitwise_not_().unwrap_or_else(|error| raise(error));
    }

    /// [`bitwise_not_`](Self::bitwise_not_), with the error as a value.
    ///
    /// # Errors
    ///
    /// Where the elements are floating-point numbers, or `self` is expanded.
    #[track_caller]
    fn try_bitwise_not_(&mut self) -> Result<(), Self::Error> {
        let at = Site::here("bitwise_not_");
        written(self, at)?;
        *self = self.apply_unary(Unary::Not, at)?;
        Ok(())
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
pub trait ViewsInPlace: TensorLike {
    in_place! { renamed:
        t_ | try_t_() [] = t | try_t;
        transpose_ | try_transpose_(first: isize, second: isize) [] = transpose | try_transpose;
        unsqueeze_ | try_unsqueeze_(dim: isize) [] = unsqueeze | try_unsqueeze;
        squeeze_ | try_squeeze_(dims: impl Into<Dims>) [] = squeeze | try_squeeze;
    }

    /// Cut off from what it was made of: no gradient flows through it any more. PyTorch: `detach_`.
    #[track_caller]
    fn detach_(&mut self) {
        *self = self.detach();
    }
}

impl<A: TensorLike> ViewsInPlace for A {}

fn written<A: InPlace>(target: &A, at: Site) -> Result<(), A::Error> {
    target.check_write(None, at)
}

#[allow(clippy::unnecessary_wraps)]
fn renamed<A: TensorLike>(_target: &A, _at: Site) -> Result<(), A::Error> {
    Ok(())
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
        x.addmv_(&Tensor::from([[1.0, 2.0], [3.0, 4.0]]), &Tensor::ones([2]), 1, 1);
        assert_eq!(x.to_vec(), [3.0, 7.0]);
        let error = Tensor::<f64>::zeros([1]).try_addmv_(&Tensor::ones([2, 2]), &Tensor::ones([2]), 1, 1).unwrap_err();
        assert_eq!(error.sentence(), "output with shape [1] doesn't match the broadcast shape [2]");
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
