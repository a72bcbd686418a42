//! Formulas over arrays, written with operators. If an operation of a formula fails, the formula returns its first error.

use std::ops::{Add, Div, Mul, Neg, Sub};

use wengert_special::{Array, Special};
use wengert_tensor::ops::{
    Activations, Arithmetic, Comparison, Functions, MaskOperand, Masking, Mixed, Reductions, Result, try_where_,
};

/// The result of a formula: an array, or the error of the first operation that failed.
pub(crate) struct Expr<A: Array>(Result<A>);

/// Returns `x` as an operand of a formula.
pub(crate) fn expr<A: Array>(x: &A) -> Expr<A> {
    Expr(Ok(x.clone()))
}

impl<A: Array> From<Result<A>> for Expr<A> {
    fn from(result: Result<A>) -> Self {
        Expr(result)
    }
}

impl<A: Array> Expr<A> {
    /// Returns the result of the formula.
    pub(crate) fn get(self) -> Result<A> {
        self.0
    }

    #[track_caller]
    fn then(self, operation: impl FnOnce(A) -> Result<A>) -> Self {
        Expr(self.0.and_then(operation))
    }

    /// Returns the formula's value to the power `y`.
    #[track_caller]
    pub(crate) fn pow(self, y: Expr<A>) -> Self {
        self.then(|x| y.get().and_then(|y| x.try_pow(&y)))
    }

    /// Returns √(x² + `y`²), where x is the value of this formula, without intermediate overflow.
    #[track_caller]
    pub(crate) fn hypot(self, y: Expr<A>) -> Self {
        self.then(|x| y.get().and_then(|y| x.try_hypot(&y)))
    }

    /// Returns the smaller one of the formula's value and `y`.
    #[track_caller]
    pub(crate) fn minimum(self, y: Expr<A>) -> Self {
        self.then(|x| y.get().and_then(|y| x.try_minimum(&y)))
    }

    /// Returns x ln y, where x is the value of this formula; 0 at x = 0. At x = y = 0, the derivatives with respect to x
    /// and y are 0.
    #[track_caller]
    pub(crate) fn xlogy(self, y: Expr<A>) -> Self {
        self.then(|x| y.get().and_then(|y| x.try_xlogy(&replace_singular(&y, 0.0, &x, 1.0)?)))
    }

    /// Returns x ln(1 + y), where x is the value of this formula; 0 at x = 0. At x = 0 and y = -1, the derivatives with
    /// respect to x and y are 0.
    #[track_caller]
    pub(crate) fn xlog1py(self, y: Expr<A>) -> Self {
        self.then(|x| y.get().and_then(|y| x.try_xlog1py(&replace_singular(&y, -1.0, &x, 0.0)?)))
    }

    /// Returns the array of this formula, with `value` in place of the elements where `mask` is true.
    #[track_caller]
    pub(crate) fn masked(self, mask: impl MaskOperand<A>, value: f64) -> Self {
        self.then(|x| x.try_masked_fill(mask, value))
    }

    /// Returns ln B(x, b), the logarithm of the beta function, where x is the value of this formula.
    #[track_caller]
    pub(crate) fn betaln(self, b: Expr<A>) -> Self {
        self.then(|x| b.get().and_then(|b| x.try_betaln(&b)))
    }

    /// Returns the sum of this formula's array over the last `count` dimensions.
    #[track_caller]
    pub(crate) fn sum_last(self, count: usize) -> Self {
        let dims: Vec<isize> = (1..=count as isize).map(|dim| -dim).collect();
        if dims.is_empty() { self } else { self.then(|x| x.try_sum(dims)) }
    }
}

/// Returns `y`, with `replacement` in place of each element that equals `value` where `x` is 0. There, x times a logarithm of y would have
/// NaN as its derivative.
fn replace_singular<A: Array>(y: &A, value: f64, x: &A, replacement: f64) -> Result<A> {
    let replaced = try_where_(x.try_ne(0.0)?, y, replacement)?;
    try_where_(y.try_ne(value)?, y, &replaced)
}

/// Returns the logarithms of the probabilities `p` and 1 - `p`. The derivative of ln 0 counts as 0, as in PyTorch. So a probability of 0
/// gives no NaN in the derivatives of results that do not depend on it.
pub(crate) fn log_probabilities<A: Array>(p: &A) -> Result<[A; 2], A::Error> {
    let logarithm = |end: f64, inside: f64, function: &dyn Fn(Expr<A>) -> Expr<A>| {
        let at_end = p.try_eq(end)?;
        function(expr(p).masked(&at_end, inside)).masked(&at_end, f64::NEG_INFINITY).get()
    };
    Ok([logarithm(0.0, 1.0, &Expr::ln)?, logarithm(1.0, 0.0, &|p| (-p).ln_1p())?])
}

macro_rules! functions {
    ($($name:ident = $method:ident;)*) => {
        impl<A: Array> Expr<A> {
            $(#[track_caller]
            pub(crate) fn $name(self) -> Self {
                self.then(|x| x.$method())
            })*
        }
    };
}

functions! {
    abs = try_abs;
    atan = try_atan;
    digamma = try_digamma;
    erf = try_erf;
    erfinv = try_erfinv;
    exp = try_exp;
    expm1 = try_expm1;
    floor = try_floor;
    gammaln = try_gammaln;
    ln = try_log;
    ln_1p = try_log1p;
    log1mexp = try_log1mexp;
    logsigmoid = try_logsigmoid;
    ndtr = try_ndtr;
    ndtri = try_ndtri;
    sign = try_sign;
    sqrt = try_sqrt;
    square = try_square;
    tan = try_tan;
}

macro_rules! operators {
    ($($trait:ident $method:ident $try:ident;)*) => {$(
        impl<A: Array> $trait for Expr<A> {
            type Output = Expr<A>;

            #[track_caller]
            fn $method(self, right: Expr<A>) -> Expr<A> {
                self.then(|x| right.get().and_then(|y| x.$try(&y)))
            }
        }

        impl<A: Array> $trait<&A> for Expr<A> {
            type Output = Expr<A>;

            #[track_caller]
            fn $method(self, right: &A) -> Expr<A> {
                self.then(|x| x.$try(right))
            }
        }

        impl<A: Array> $trait<f64> for Expr<A> {
            type Output = Expr<A>;

            #[track_caller]
            fn $method(self, right: f64) -> Expr<A> {
                self.then(|x| x.$try(right))
            }
        }
    )*};
}

operators! {
    Add add try_add;
    Sub sub try_sub;
    Mul mul try_mul;
    Div div try_div;
}

impl<A: Array> Neg for Expr<A> {
    type Output = Expr<A>;

    #[track_caller]
    fn neg(self) -> Expr<A> {
        self.then(|x| x.try_neg())
    }
}

impl<A: Array> Sub<Expr<A>> for f64 {
    type Output = Expr<A>;

    #[track_caller]
    fn sub(self, right: Expr<A>) -> Expr<A> {
        -right + self
    }
}

impl<A: Array> Div<Expr<A>> for f64 {
    type Output = Expr<A>;

    #[track_caller]
    fn div(self, right: Expr<A>) -> Expr<A> {
        right.then(|x| x.try_reciprocal()?.try_mul(self))
    }
}
