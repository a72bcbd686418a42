//! Orthogonal polynomials and their derivatives, by the recurrences of the NIST Digital Library of Mathematical Functions, 18.9.

/// A family of orthogonal polynomials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Family {
    /// Chebyshev polynomials of the first kind.
    ChebyshevT,
    /// Chebyshev polynomials of the second kind.
    ChebyshevU,
    /// Chebyshev polynomials of the third kind.
    ChebyshevV,
    /// Chebyshev polynomials of the fourth kind.
    ChebyshevW,
    /// Hermite polynomials of physics.
    HermiteH,
    /// Hermite polynomials of probability theory.
    HermiteHe,
    /// Laguerre polynomials.
    LaguerreL,
    /// Legendre polynomials.
    LegendreP,
}

impl Family {
    /// Returns PyTorch's name of the family.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::ChebyshevT => "chebyshev_polynomial_t",
            Family::ChebyshevU => "chebyshev_polynomial_u",
            Family::ChebyshevV => "chebyshev_polynomial_v",
            Family::ChebyshevW => "chebyshev_polynomial_w",
            Family::HermiteH => "hermite_polynomial_h",
            Family::HermiteHe => "hermite_polynomial_he",
            Family::LaguerreL => "laguerre_polynomial_l",
            Family::LegendreP => "legendre_polynomial_p",
        }
    }

    /// Returns the coefficients (a, b, c, d) of the recurrence d pₖ₊₁(x) = (a x + b) pₖ(x) - c pₖ₋₁(x). The polynomial p₋₁ counts as 0.
    fn coefficients(self, k: usize) -> [f64; 4] {
        let (first, n) = (k == 0, k as f64);
        match self {
            Family::ChebyshevT => [if first { 1.0 } else { 2.0 }, 0.0, 1.0, 1.0],
            Family::ChebyshevU => [2.0, 0.0, 1.0, 1.0],
            Family::ChebyshevV => [2.0, if first { -1.0 } else { 0.0 }, 1.0, 1.0],
            Family::ChebyshevW => [2.0, if first { 1.0 } else { 0.0 }, 1.0, 1.0],
            Family::HermiteH => [2.0, 0.0, 2.0 * n, 1.0],
            Family::HermiteHe => [1.0, 0.0, n, 1.0],
            Family::LaguerreL => [-1.0, 2.0 * n + 1.0, n, n + 1.0],
            Family::LegendreP => [2.0 * n + 1.0, 0.0, n, n + 1.0],
        }
    }
}

/// Computes the derivative of order `order` of the polynomial of degree `n` at `x`. Order 0 is the polynomial itself.
///
/// The m-th derivative of the recurrence is d pₖ₊₁⁽ᵐ⁾ = (a x + b) pₖ⁽ᵐ⁾ + m a pₖ⁽ᵐ⁻¹⁾ - c pₖ₋₁⁽ᵐ⁾.
pub(crate) fn derivative(family: Family, n: usize, order: usize, x: f64) -> f64 {
    if order == 0 {
        return value(family, n, x);
    }
    if order > n {
        return 0.0;
    }
    let (mut previous, mut current) = (vec![0.0; order + 1], vec![0.0; order + 1]);
    current[0] = 1.0;
    for k in 0..n {
        let [a, b, c, d] = family.coefficients(k);
        for m in 0..=order {
            // The m-th derivative is 0 for degrees below m. Its product with an infinite x would be NaN.
            let from_current = if m <= k { (a * x + b) * current[m] } else { 0.0 };
            let from_lower_derivative = if m > 0 { m as f64 * a * current[m - 1] } else { 0.0 };
            let from_previous = if k > 0 { c * previous[m] } else { 0.0 };
            // Overwrites `previous` with the values of degree k + 1. The swap below makes them the current values.
            previous[m] = (from_current + from_lower_derivative - from_previous) / d;
        }
        std::mem::swap(&mut previous, &mut current);
    }
    current[order]
}

/// Computes the polynomial of degree `n` at `x`.
fn value(family: Family, n: usize, x: f64) -> f64 {
    let (mut previous, mut current) = (0.0, 1.0);
    for k in 0..n {
        let [a, b, c, d] = family.coefficients(k);
        let from_previous = if k > 0 { c * previous } else { 0.0 };
        (previous, current) = (current, ((a * x + b) * current - from_previous) / d);
        // All higher degrees are NaN too.
        if current.is_nan() {
            break;
        }
    }
    current
}
