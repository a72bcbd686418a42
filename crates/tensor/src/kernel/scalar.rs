//! Functions of one or two numbers that the standard library lacks, in f64; f32 goes through f64, which rounds correctly in
//! all but rare cases.

/// 1/(1 + e⁻ˣ), exact at both ends.
pub(crate) fn sigmoid(x: f64) -> f64 {
    if x >= 0.0 {
        1.0 / (1.0 + (-x).exp())
    } else {
        let e = x.exp();
        e / (1.0 + e)
    }
}

/// Error function (FreeBSD msun, through libm).
pub(crate) fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// 1 - erf x, without cancellation.
pub(crate) fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// Inverse of [`erf`]: ±∞ at ±1, NaN outside.
///
/// M. B. Giles, "Approximating the erfinv function" (2011), for a start; then Newton steps on erfc, whose relative error stays
/// small in the tails. The start is good to 1e-7 in the middle and to 1e-3 at the very ends, so four steps are enough.
pub(crate) fn erfinv(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 1.0 {
        return f64::NAN;
    }
    if x.abs() == 1.0 {
        return f64::INFINITY.copysign(x);
    }
    let w = -((1.0 - x) * (1.0 + x)).ln();
    let polynomial = |t: f64, coefficients: &[f64]| coefficients.iter().fold(0.0, |sum, c| sum * t + c);
    let mut y = x * if w < 5.0 {
        polynomial(
            w - 2.5,
            &[
                2.810_226_36e-08,
                3.432_739_39e-07,
                -3.523_387_7e-06,
                -4.391_506_54e-06,
                2.185_808_7e-04,
                -1.253_725_03e-03,
                -4.177_681_640e-03,
                2.466_407_27e-01,
                1.501_409_41,
            ],
        )
    } else {
        polynomial(
            w.sqrt() - 3.0,
            &[
                -2.002_142_57e-04,
                1.009_505_58e-04,
                1.349_343_22e-03,
                -3.673_428_44e-03,
                5.739_507_73e-03,
                -7.622_461_30e-03,
                9.438_870_47e-03,
                1.001_674_06,
                2.832_976_82,
            ],
        )
    };
    for _ in 0..4 {
        // The residual erf(y) - x; near the ends as a difference of erfc, where 1 - |x| is exact.
        let residual = if x.abs() < 0.5 { erf(y) - x } else { x.signum() * ((1.0 - x.abs()) - erfc(y.abs())) };
        let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
        if slope == 0.0 {
            break;
        }
        let step = residual / slope;
        y -= step;
        if step.abs() <= f64::EPSILON * y.abs() {
            break;
        }
    }
    y
}

/// ln |Γ(x)|; ∞ at 0 and the negative integers.
pub(crate) fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// Derivative of ln Γ(x). As PyTorch: ∓∞ at ±0, NaN at negative integers.
///
/// Recurrence up to 10, then the asymptotic series (Abramowitz and Stegun 6.3.5, 6.3.18); reflection below 0 (6.3.7).
pub(crate) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        let angle = std::f64::consts::PI * (x - x.trunc());
        return digamma(1.0 - x) - std::f64::consts::PI / angle.tan();
    }
    let mut x = x;
    let mut shift = 0.0;
    while x < 10.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    if x > 1e17 {
        return x.ln();
    }
    let z = 1.0 / (x * x);
    let series = z
        * (1.0 / 12.0
            - z * (1.0 / 120.0
                - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * (1.0 / 132.0 - z * (691.0 / 32760.0 - z / 12.0))))));
    shift + x.ln() - 0.5 / x - series
}

/// The number after `x` toward `y`.
pub(crate) fn nextafter(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        f64::NAN
    } else if x == y {
        y
    } else if y > x {
        x.next_up()
    } else {
        x.next_down()
    }
}

/// [`nextafter`] in f32.
pub(crate) fn nextafter_f32(x: f32, y: f32) -> f32 {
    if x.is_nan() || y.is_nan() {
        f32::NAN
    } else if x == y {
        y
    } else if y > x {
        x.next_up()
    } else {
        x.next_down()
    }
}

/// Greatest common divisor, not negative; gcd(0, 0) = 0.
pub(crate) fn gcd(x: i64, y: i64) -> i64 {
    let (mut a, mut b) = (x.unsigned_abs(), y.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erfinv_undoes_erf() {
        for x in [-0.999_999, -0.9, -0.5, -1e-8, 0.0, 1e-300, 0.3, 0.7, 0.99, 1.0 - 1e-12] {
            let back = erf(erfinv(x));
            assert!((back - x).abs() <= 4.0 * f64::EPSILON * x.abs(), "{x}: {back}");
        }
        assert_eq!(erfinv(1.0), f64::INFINITY);
        assert!(erfinv(1.5).is_nan());
    }

    #[test]
    fn digamma_at_known_points() {
        let euler = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + euler).abs() < 1e-15);
        assert!((digamma(0.5) + euler + 2.0 * 2f64.ln()).abs() < 1e-14);
        assert!((digamma(-0.5) - 0.036_489_973_978_576_52).abs() < 1e-14);
        assert_eq!(digamma(0.0), f64::NEG_INFINITY);
        assert!(digamma(-2.0).is_nan());
    }

    #[test]
    fn the_greatest_common_divisor_is_not_negative() {
        assert_eq!((gcd(-12, 18), gcd(0, -5), gcd(0, 0)), (6, 5, 0));
    }
}
