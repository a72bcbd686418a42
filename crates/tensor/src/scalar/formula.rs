//! Elementwise formulas of several operations, which one loop of a kernel computes.

use crate::Binary;

/// An elementwise formula of one to three operands, which one loop computes. The results have the same bits as if each operation
/// had its own loop.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Formula {
    /// min(max(x, low), high).
    Clamp { low: f64, high: f64 },
    /// x + (value · y) · z if `op` is `Mul`, x + (value · y) / z if it is `Div`.
    AddScaled { op: Binary, value: f64 },
    /// x + weight · (y - x) if |weight| < 1/2, otherwise y + (weight - 1) · (y - x).
    Lerp { weight: f64 },
    /// Like [`Lerp`](Formula::Lerp), but the weight is the third operand.
    LerpTensor,
    /// x with replacements for NaN, ∞ and -∞. An infinity without a replacement becomes the largest or the lowest finite number.
    NanToNum { nan: f64, posinf: Option<f64>, neginf: Option<f64> },
    /// x (x + 3) / 6 between -3 and 3, 0 below and x above.
    Hardswish,
    /// 0 where |x| is at most the bound, and x elsewhere.
    Hardshrink { bound: f64 },
    /// 0 where |x| is at most the bound. Elsewhere x, moved toward 0 by the bound.
    Softshrink { bound: f64 },
    /// `value` where x is at most the threshold, and x elsewhere.
    Threshold { threshold: f64, value: f64 },
    /// x / y, rounded toward 0.
    TruncatedQuotient,
    /// (x - y)².
    SquaredDifference,
    /// |x - y|.
    Distance,
    /// c (d - c/2) / divisor for the difference d = x - y, where c is d clamped to ±`delta`.
    Huber { delta: f64, divisor: f64 },
}
