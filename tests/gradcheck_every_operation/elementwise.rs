//! Elementwise operations, in and out of place: on every form, or on every pair of forms that broadcasts.

use wengert::prelude::*;
use wengert::tensor::ops::Argument;
use wengert::tensor::{Binary, Unary};

use super::grid::{
    Approximate, BETWEEN_INTEGERS, BETWEEN_ONES, Domain, Fixed, Integers, NEAR_ONE, POSITIVE, PROBABILITY, QUOTIENT,
    REAL, Single, Smooth,
};
use super::row::{Row, in_place, one, two};

/// The intervals on which the gamma function and its derivatives are checked. The trigamma function is inexact, because it sums as few
/// terms as PyTorch's.
const GAMMA: Domain = Approximate(&[(0.5, 4.0), (-1.8, -1.2)]);

/// Returns the domain of a primitive of one operand.
pub fn domain_of_unary(op: Unary) -> Domain {
    match op {
        Unary::Neg | Unary::Abs | Unary::Sign | Unary::Reciprocal | Unary::Square => REAL,
        Unary::Exp | Unary::Exp2 | Unary::Expm1 | Unary::Sin | Unary::Cos | Unary::Atan => REAL,
        Unary::Sinh | Unary::Cosh | Unary::Tanh | Unary::Asinh | Unary::Sigmoid | Unary::Relu => REAL,
        Unary::Erf | Unary::Erfc | Unary::Ndtr => REAL,
        Unary::Sqrt | Unary::SqrtFlat | Unary::PowHalf | Unary::PowMinusHalf => POSITIVE,
        Unary::Log | Unary::Log2 | Unary::Log10 => POSITIVE,
        Unary::Lgamma | Unary::Digamma | Unary::Trigamma => GAMMA,
        Unary::Log1p => Smooth(&[(0.1, 2.0), (-0.7, -0.1)]),
        Unary::Tan => Smooth(&[(-1.1, -0.2), (0.2, 1.1), (2.1, 4.0)]),
        Unary::Asin | Unary::Acos | Unary::Atanh | Unary::Erfinv => BETWEEN_ONES,
        Unary::Acosh => Smooth(&[(1.3, 4.0)]),
        Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => BETWEEN_INTEGERS,
        Unary::Sinc => REAL,
        Unary::Logit => PROBABILITY,
        Unary::Hardsigmoid => Single(&[(-2.5, 2.5), (3.5, 4.0), (-4.0, -3.5)]),
        Unary::Not => Integers,
        new => panic!("{} needs a domain", new.name()),
    }
}

/// Returns the domains of both operands of a primitive, and true if both operands may be the same.
pub fn domain_of_binary(op: Binary) -> (Domain, Domain, bool) {
    match op {
        Binary::Add | Binary::Sub | Binary::Mul | Binary::Div => (REAL, REAL, true),
        // These primitives have a kink where both operands are equal, but max(x, x) = x is smooth.
        Binary::Maximum | Binary::Minimum | Binary::Fmax | Binary::Fmin => (REAL, REAL, true),
        Binary::Atan2 | Binary::Hypot | Binary::Copysign => (REAL, REAL, true),
        Binary::Pow => (POSITIVE, REAL, false),
        // For these primitives, the quotient x/x would be at a jump.
        Binary::Fmod | Binary::Remainder | Binary::FloorDivide => (QUOTIENT, NEAR_ONE, false),
        // nextafter(x, x) is x, and its derivative is 0, which is an exception to the formula.
        Binary::Nextafter => (REAL, REAL, false),
        Binary::Prelu => (REAL, REAL, true),
        Binary::LogitWithin => (Smooth(&[(0.2, 0.8)]), Smooth(&[(0.01, 0.1)]), false),
        Binary::Xlogy | Binary::Xlog1py => (REAL, POSITIVE, false),
        Binary::Zeta => (Fixed(&[(1.5, 4.0)]), POSITIVE, false),
        Binary::And | Binary::Or | Binary::Xor | Binary::ShiftLeft | Binary::ShiftRight => (Integers, Integers, false),
        Binary::Gcd | Binary::Lcm => (Integers, Integers, false),
        new => panic!("{} needs a domain", new.name()),
    }
}

/// Operations on one operand of any shape.
pub const ONE: &[Row] = one! {
    rsqrt: POSITIVE => |x| x.rsqrt();
    sub "from a number": REAL => |x| (2.0 - x).sub(0.3);
    div "a number by x": REAL => |x| (2.0 / x).div(0.7);
    frexp: Smooth(&[(0.55, 0.95), (-1.9, -1.1)]) => |x| x.frexp().0 * x;
    remainder "by a number": BETWEEN_INTEGERS => |x| x.remainder(0.7) + x % 0.7;
    fmod "by a number": BETWEEN_INTEGERS => |x| x.fmod(0.7);
    pow "to a number": POSITIVE => |x| x.pow(2.5);
    pow "to an integer": REAL => |x| x.pow(3.0);
    pow "square root": POSITIVE => |x| x.pow(0.5) + x.pow(-0.5);
    maximum "with a number": REAL => |x| x.maximum(0.05);
    where_ "one side": REAL => |x| where_(&x.gt(0.0), &(x * x), 0.5);
    where_ "on masks of masks": REAL => |x| {
        let inside = x.gt(-1.0).logical_and(x.lt(1.0));
        where_(&inside.logical_xor(x.gt(0.0)).logical_or(x.lt(-1.5)), &x.exp(), x * x)
    };
    where_ "both sides": REAL => |x| where_(&x.gt(0.0), &(x * x), x.exp());
    mul "by a mask": REAL => |x| x.lt(0.0).mul(x.exp());
    isnan: REAL => |x| x.isnan();
    isinf: REAL => |x| x.isinf();
    isfinite: REAL => |x| x.isfinite();
    isposinf: REAL => |x| x.isposinf();
    isneginf: REAL => |x| x.isneginf();
    signbit: REAL => |x| x.signbit();
    logical_not: REAL => |x| x.logical_not();
    relu6: REAL => |x| (x * 5.0).relu6();
    hardtanh: REAL => |x| x.hardtanh(-1.0, 0.8);
    leaky_relu: REAL => |x| x.leaky_relu(0.1);
    elu: REAL => |x| x.elu(1.3);
    celu: REAL => |x| x.celu(1.3);
    selu: REAL => |x| x.selu();
    gelu: REAL => |x| x.gelu();
    gelu_tanh: REAL => |x| x.gelu_tanh();
    silu: REAL => |x| x.silu();
    mish: REAL => |x| x.mish();
    softplus: REAL => |x| x.softplus(1.5, 2.0);
    softsign: REAL => |x| x.softsign();
    tanhshrink: REAL => |x| x.tanhshrink();
    hardshrink: REAL => |x| x.hardshrink(0.5);
    softshrink: REAL => |x| x.softshrink(0.5);
    threshold: REAL => |x| x.threshold(0.1, 20.0);
    hardswish: REAL => |x| (x * 2.5).hardswish();
    logsigmoid: REAL => |x| x.logsigmoid();
    prelu "one weight": REAL => |x| x.prelu(&x.sum(..));
    clamp "by numbers": REAL => |x| x.clamp(-0.9, 0.7);
    clamp_within "by numbers": REAL => |x| x.clamp_within(Some(Argument::Number(-0.9)), None);
    nan_to_num: REAL => |x| x.nan_to_num(0.0, None, None) * x;
    logit: PROBABILITY => |x| x.logit(None);
    logit "kept from the ends": PROBABILITY => |x| x.logit(Some(0.05));
    sinc: REAL => |x| x.sinc();
    frac: BETWEEN_INTEGERS => |x| x.frac() * x;
    round_to: BETWEEN_INTEGERS => |x| x.round_to(0) * x;
    deg2rad: REAL => |x| x.deg2rad().sin();
    rad2deg: REAL => |x| x.rad2deg().square();
    masked_fill "by a number": REAL => |x| x.exp().masked_fill(&x.gt(0.0), 0.5);
    exp "in a chain": REAL => |x| ((x * 0.5).tanh() * x.sigmoid() + x.sin()).exp() / (x * x + 1.0);
};

/// Operations on two operands that broadcast.
pub const TWO: &[Row] = two! {
    add "and the other operators": REAL, REAL, true => |x, y| x.add(y) * (x - y) / (y * y + 1.0);
    div_floor: QUOTIENT, NEAR_ONE, false => |x, y| x.div_floor(y) * x;
    div_trunc: QUOTIENT, NEAR_ONE, false => |x, y| x.div_trunc(y) * y;
    eq: REAL, REAL, false => |x, y| x.eq(y);
    ne: REAL, REAL, false => |x, y| x.ne(y);
    lt: REAL, REAL, false => |x, y| x.lt(y);
    le: REAL, REAL, false => |x, y| x.le(y);
    gt: REAL, REAL, false => |x, y| x.gt(y);
    ge: REAL, REAL, false => |x, y| x.ge(y);
    isclose: REAL, REAL, false => |x, y| x.isclose(y, 1e-5, 1e-8, false);
    logical_and: REAL, REAL, true => |x, y| x.logical_and(y);
    logical_or: REAL, REAL, true => |x, y| x.logical_or(y);
    logical_xor: REAL, REAL, true => |x, y| x.logical_xor(y);
    where_: REAL, REAL, true => |x, y| where_(&y.gt(0.0), &(x * y), y.exp());
    where_ "on a mask of its own shape": REAL, REAL, true => |x, y| where_(&x.gt(0.0), &y.exp(), y * y);
    masked_fill "by the mask of another": REAL, REAL, true => |x, y| x.exp().masked_fill(&y.gt(0.0), y.sum(..));
    clamp: REAL, REAL, true => |x, y| x.clamp(y, y + 1.0);
    clamp_min: REAL, REAL, true => |x, y| x.clamp_min(y) * x;
    clamp_max: REAL, REAL, true => |x, y| x.clamp_max(y) * y;
    clamp_within: REAL, REAL, true => |x, y| x.clamp_within(None, Some(Argument::Array(y))) * x;
    lerp "by a number": REAL, REAL, true => |x, y| x.lerp(&y, 0.3);
    lerp "by a variable": REAL, REAL, true => |x, y| x.lerp(&x.sin(), y);
    addcmul: REAL, REAL, true => |x, y| x.addcmul(&y, &x, 0.5);
    addcdiv: REAL, REAL, true => |x, y| y.addcdiv(&x, &y, 0.5);
    ldexp: REAL, REAL, true => |x, y| x.ldexp(y);
    logaddexp: REAL, REAL, true => |x, y| x.logaddexp(y);
    logaddexp2: REAL, REAL, true => |x, y| x.logaddexp2(y);
    xlogy: REAL, POSITIVE, false => |x, y| x.xlogy(y);
    igamma: Fixed(&[(1.5, 4.0)]), POSITIVE, false => |x, y| x.igamma(y);
    igammac: Fixed(&[(1.5, 4.0)]), POSITIVE, false => |x, y| x.igammac(y);
    rsub: REAL, REAL, true => |x, y| x.rsub(y);
    xlog1py: REAL, POSITIVE, false => |x, y| x.xlog1py(y);
    log "in a normal log-density": REAL, POSITIVE, false => |x, s| (x / s).square() * -0.5 - s.log();
};

/// Operations that change their first operand, with or without a second one.
pub const IN_PLACE: &[Row] = in_place! {
    neg_: REAL => |x| x.neg_();
    abs_: REAL => |x| x.abs_();
    square_: REAL => |x| x.square_();
    sqrt_: POSITIVE => |x| x.sqrt_();
    exp_: REAL => |x| x.exp_();
    log_: POSITIVE => |x| x.log_();
    sin_: REAL => |x| x.sin_();
    cos_: REAL => |x| x.cos_();
    tanh_: REAL => |x| x.tanh_();
    sigmoid_: REAL => |x| x.sigmoid_();
    relu_: REAL => |x| x.relu_();
    leaky_relu_: REAL => |x| x.leaky_relu_(0.1);
    acos_: BETWEEN_ONES => |x| x.acos_();
    acosh_: Smooth(&[(1.3, 4.0)]) => |x| x.acosh_();
    asin_: BETWEEN_ONES => |x| x.asin_();
    asinh_: REAL => |x| x.asinh_();
    atan_: REAL => |x| x.atan_();
    atanh_: BETWEEN_ONES => |x| x.atanh_();
    ceil_: BETWEEN_INTEGERS => |x| x.ceil_();
    cosh_: REAL => |x| x.cosh_();
    deg2rad_: REAL => |x| x.deg2rad_();
    digamma_: GAMMA => |x| x.digamma_();
    erf_: REAL => |x| x.erf_();
    erfc_: REAL => |x| x.erfc_();
    erfinv_: BETWEEN_ONES => |x| x.erfinv_();
    exp2_: REAL => |x| x.exp2_();
    expm1_: REAL => |x| x.expm1_();
    floor_: BETWEEN_INTEGERS => |x| x.floor_();
    frac_: BETWEEN_INTEGERS => |x| x.frac_();
    lgamma_: GAMMA => |x| x.lgamma_();
    log10_: POSITIVE => |x| x.log10_();
    log1p_: POSITIVE => |x| x.log1p_();
    log2_: POSITIVE => |x| x.log2_();
    rad2deg_: REAL => |x| x.rad2deg_();
    reciprocal_: REAL => |x| x.reciprocal_();
    round_: BETWEEN_INTEGERS => |x| x.round_();
    rsqrt_: POSITIVE => |x| x.rsqrt_();
    sign_: REAL => |x| x.sign_();
    sinc_: REAL => |x| x.sinc_();
    sinh_: REAL => |x| x.sinh_();
    tan_: REAL => |x| x.tan_();
    trunc_: BETWEEN_INTEGERS => |x| x.trunc_();
    round_to_: BETWEEN_INTEGERS => |x| x.round_to_(0);
    logit_: PROBABILITY => |x| x.logit_(Some(0.05));
    nan_to_num_: REAL => |x| x.nan_to_num_(0.0, None, None);
    elu_: REAL => |x| x.elu_(1.3);
    celu_: REAL => |x| x.celu_(1.3);
    selu_: REAL => |x| x.selu_();
    hardtanh_: REAL => |x| x.hardtanh_(-1.0, 0.8);
    threshold_: REAL => |x| x.threshold_(0.1, 20.0);
    apply_: BETWEEN_ONES => |x| x.apply_(Unary::Atanh);
    zero_: REAL => |x| x.zero_();
    logical_not_: REAL => |x| x.logical_not_();
    fill_: REAL => |x| x.fill_(x.exp().sum(..));
    add_: REAL, REAL => |x, y| x.add_(y);
    add_ "after others": REAL, REAL => |x, y| {
        x.exp_();
        x.mul_(y);
        x.add_(1.0);
        x.square_()
    };
    sub_: REAL, REAL => |x, y| x.sub_(y);
    mul_: REAL, REAL => |x, y| x.mul_(y);
    div_: REAL, REAL => |x, y| x.div_(y);
    pow_: POSITIVE, REAL => |x, y| x.pow_(y);
    fmod_: QUOTIENT, NEAR_ONE => |x, y| x.fmod_(y);
    remainder_: QUOTIENT, NEAR_ONE => |x, y| x.remainder_(y);
    div_floor_: QUOTIENT, NEAR_ONE => |x, y| x.div_floor_(y);
    div_trunc_: QUOTIENT, NEAR_ONE => |x, y| x.div_trunc_(y);
    atan2_: REAL, REAL => |x, y| x.atan2_(y);
    hypot_: REAL, REAL => |x, y| x.hypot_(y);
    copysign_: REAL, REAL => |x, y| x.copysign_(y);
    nextafter_: REAL, REAL => |x, y| x.nextafter_(y);
    copy_: REAL, REAL => |x, y| x.copy_(y * y);
    addcmul_: REAL, REAL => |x, y| x.addcmul_(&y, &y, 0.5);
    addcdiv_: REAL, REAL => |x, y| x.addcdiv_(&y.exp(), &y, 0.5);
    lerp_: REAL, REAL => |x, y| x.lerp_(&y, 0.3);
    clamp_: REAL, REAL => |x, y| x.clamp_(y, y + 1.0);
    clamp_within_: REAL, REAL => |x, y| x.clamp_within_(Some(Argument::Array(y)), None);
    clamp_min_: REAL, REAL => |x, y| x.clamp_min_(y);
    clamp_max_: REAL, REAL => |x, y| x.clamp_max_(y);
    igamma_: Fixed(&[(1.5, 4.0)]), POSITIVE => |x, y| x.igamma_(y);
    igammac_: Fixed(&[(1.5, 4.0)]), POSITIVE => |x, y| x.igammac_(y);
    xlogy_: REAL, POSITIVE => |x, y| x.xlogy_(y);
    masked_fill_: REAL, REAL => |x, y| x.masked_fill_(y.gt(0.0), y.exp().sum(..));
    eq_: REAL, REAL => |x, y| x.eq_(y);
    ne_: REAL, REAL => |x, y| x.ne_(y);
    lt_: REAL, REAL => |x, y| x.lt_(y);
    le_: REAL, REAL => |x, y| x.le_(y);
    gt_: REAL, REAL => |x, y| x.gt_(y);
    ge_: REAL, REAL => |x, y| x.ge_(y);
    logical_and_: REAL, REAL => |x, y| x.logical_and_(y);
    logical_or_: REAL, REAL => |x, y| x.logical_or_(y);
    ldexp_: REAL, REAL => |x, y| x.ldexp_(y);
    logical_xor_: REAL, REAL => |x, y| x.logical_xor_(y);
};
