//! The cases of elementwise functions. Each function gets random numbers of its domain.

use wengert_autograd::prelude::*;

use super::{Case, between, one, two};

/// Makes a list of cases: the function's name, the interval of its argument, and the function.
macro_rules! functions {
    ($($low:literal..$high:literal: $($name:ident)*;)*) => {
        vec![$($(one(stringify!($name), between($low, $high, &[4, 5]), |x| x.$name())),*),*]
    };
}

macro_rules! pairs {
    ($([$a:expr, $b:expr]: $($name:ident)*;)*) => {
        vec![$($(two(stringify!($name), [$a, $b], |a, b| a.$name(b))),*),*]
    };
}

pub fn cases<T: Float>() -> Vec<Case<T>> {
    let mut cases = functions! {
        -3.0..3.0: neg abs sign reciprocal square floor ceil round trunc frac exp exp2 expm1 sin cos tan atan sinh cosh tanh
            asinh sigmoid relu hardsigmoid sinc erf erfc ndtr_of logsigmoid relu6 gelu gelu_tanh silu mish softsign
            tanhshrink hardswish logical_not isnan isfinite isinf deg2rad;
        0.1..5.0: sqrt rsqrt log log2 log10;
        -0.9..0.9: asin acos atanh log1p;
        1.1..3.0: acosh;
    };
    cases.extend(vec![
        one("log1p_tiny", between::<T>(-1e-5, 1e-5, &[9]), |x| x.log1p()),
        one("expm1_tiny", between::<T>(-1e-5, 1e-5, &[9]), |x| x.expm1()),
        one("logit", between(0.05, 0.95, &[7]), |x| x.logit(None)),
        one("logit_within", between(-0.5, 1.5, &[7]), |x| x.logit(Some(1e-3))),
        one("logit_within_a_large_bound", Tensor::from([0.2, 0.5, 0.71, 0.9].map(T::from_f64)), |x| x.logit(Some(0.7))),
        one("softplus", between(-9.0, 9.0, &[7]), |x| x.softplus(1.0, 20.0)),
        one("elu", between(-3.0, 3.0, &[7]), |x| x.elu(1.5)),
        one("leaky_relu", between(-3.0, 3.0, &[7]), |x| x.leaky_relu(0.1)),
        one("clamp", between(-3.0, 3.0, &[7]), |x| x.clamp(-1.0, 2.0)),
        one("pow_of_a_number", between(0.1, 3.0, &[7]), |x| x.pow(1.7) + x.pow(0.5) + x.pow(-0.5) + x.pow(3.0)),
        one("numbers_on_both_sides", between(0.5, 3.0, &[7]), |x| 2.0 - x / 3.0 + 1.0 / x),
        one("comparisons_of_numbers", between(-3.0, 3.0, &[9]), |x| x.gt(0.0) + x.le(1.0) * 2.0 + x.ne(0.5) * 4.0),
        one("masked_fill", between(-3.0, 3.0, &[3, 3]), |x| x.masked_fill(x.lt(0.0), 7.0)),
        one("where_of_a_constant_mask", between(-3.0, 3.0, &[2, 3]), |x| {
            where_(&Tensor::from([true, false, true]), &x, -x)
        }),
        one("where_of_equal_expansions", between(-3.0, 3.0, &[1]), |x| {
            where_(&Tensor::from([true, false, true]), x.expand([3]), x.expand([3]))
        }),
        two("floor_divide_at_limits", dividends_and_divisors(), |a, b| a.floor_divide(b)),
    ]);
    let (x, y) = (|| between(-3.0, 3.0, &[3, 4]), || between(-2.0, 2.0, &[4]));
    cases.extend(pairs! {
        [x(), y()]: add sub mul div maximum minimum fmax fmin fmod remainder floor_divide eq ne lt le gt ge;
        [between(0.1, 3.0, &[3, 4]), between(-2.0, 2.0, &[3, 1])]: pow;
        [between(0.0, 3.0, &[3, 4]), between(0.1, 2.0, &[4])]: xlogy xlog1py;
        [between(-3.0, 3.0, &[2, 4, 3]), between(-2.0, 2.0, &[4])]: prelu;
        [x(), y().lt(0.0).cast()]: logical_and logical_or logical_xor;
    });
    cases
}

/// Returns dividends and divisors, with zeros, infinities and different signs.
fn dividends_and_divisors<T: Float>() -> [Tensor<T>; 2] {
    let infinity = f64::INFINITY;
    let dividends = [1.0, -1.0, 0.0, 3.0, -3.0, 3.0, -3.0, infinity, -7.0, 7.0, 6.0, 1.0];
    let divisors = [0.0, 0.0, 0.0, infinity, infinity, -infinity, -infinity, 2.0, 3.0, -3.0, 3.0, -0.0];
    [dividends, divisors].map(|numbers| Tensor::from(numbers.map(T::from_f64)))
}

/// Methods for operations that are functions in another crate, because the macros of this file make cases from methods.
trait Named: Sized {
    fn ndtr_of(self) -> Self;
}

impl<T: Float> Named for Var<'_, T> {
    fn ndtr_of(self) -> Self {
        use wengert_tensor::ops::TensorLike as _;
        self.apply_unary(wengert_tensor::Unary::Ndtr, wengert_tensor::Site::here("ndtr")).unwrap()
    }
}
