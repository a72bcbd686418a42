//! Truncated Taylor series in two variables. An algorithm that computes with these series gets a function's value and its derivatives
//! together.
//!
//! The method is known as Taylor arithmetic: A. Griewank and A. Walther, "Evaluating Derivatives" (2008), chapter 13.

use std::ops::{Add, Div, Mul};

/// The maximum number of coefficients of a jet.
pub(crate) const MAX_COEFFICIENTS: usize = 16;

/// A Taylor series: the coefficients of εⁱ δʲ of a function of (a + ε, b + δ), where i and j run from 0 to the two `orders`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jet {
    orders: [usize; 2],
    coefficients: [f64; MAX_COEFFICIENTS],
}

impl Jet {
    /// Returns true if a jet of these orders has at most [`MAX_COEFFICIENTS`] coefficients.
    pub(crate) fn fits([rows, columns]: [usize; 2]) -> bool {
        (rows + 1).saturating_mul(columns + 1) <= MAX_COEFFICIENTS
    }

    /// Returns the jet whose coefficient of εⁱ δʲ is `coefficient`(i, j).
    pub(crate) fn new(orders: [usize; 2], coefficient: impl Fn(usize, usize) -> f64) -> Self {
        let mut jet = Jet { orders, coefficients: [0.0; MAX_COEFFICIENTS] };
        for (i, j) in jet.indices() {
            jet.coefficients[jet.index_of(i, j)] = coefficient(i, j);
        }
        jet
    }

    /// Returns the jet of `value` + ε `slopes[0]` + δ `slopes[1]`.
    pub(crate) fn linear(orders: [usize; 2], value: f64, slopes: [f64; 2]) -> Self {
        Jet::new(orders, |i, j| match (i, j) {
            (0, 0) => value,
            (1, 0) => slopes[0],
            (0, 1) => slopes[1],
            _ => 0.0,
        })
    }

    /// Returns the index in `coefficients` of the coefficient of εⁱ δʲ.
    fn index_of(&self, i: usize, j: usize) -> usize {
        i * (self.orders[1] + 1) + j
    }

    /// Returns the coefficient of εⁱ δʲ.
    fn coefficient(&self, i: usize, j: usize) -> f64 {
        self.coefficients[self.index_of(i, j)]
    }

    /// Returns the exponents (i, j) of all coefficients, in the order of their storage.
    fn indices(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [rows, columns] = self.orders;
        (0..=rows).flat_map(move |i| (0..=columns).map(move |j| (i, j)))
    }

    /// Returns the first coefficient, which is the value of the function at (a, b), where ε and δ are 0.
    pub(crate) fn value(&self) -> f64 {
        self.coefficients[0]
    }

    /// Replaces the first coefficient.
    pub(crate) fn set_value(&mut self, value: f64) {
        self.coefficients[0] = value;
    }

    /// Returns the derivative of the function of order `orders[0]` with respect to a and of order `orders[1]` with respect to b. These are the
    /// highest orders of the jet.
    pub(crate) fn derivative(&self) -> f64 {
        let [i, j] = self.orders;
        self.coefficient(i, j) * factorial(i) * factorial(j)
    }

    /// Returns the jet of the exponential of the jet's function.
    pub(crate) fn exp(&self) -> Self {
        let mut e = Jet { orders: self.orders, coefficients: [0.0; MAX_COEFFICIENTS] };
        e.coefficients[0] = self.value().exp();
        for (i, j) in self.indices().skip(1) {
            // The derivative of E = exp L with respect to one variable is E L'. The product's coefficients give the next coefficient of E.
            let mut sum = 0.0;
            for p in 0..=i {
                for q in 0..=j {
                    let weight = if i > 0 { p } else { q };
                    if weight > 0 {
                        sum += weight as f64 * self.coefficient(p, q) * e.coefficient(i - p, j - q);
                    }
                }
            }
            e.coefficients[e.index_of(i, j)] = sum / if i > 0 { i } else { j } as f64;
        }
        e
    }

    /// Returns the largest magnitude of the coefficients after the first, relative to `scale`. A coefficient is divided by |s / v| if this
    /// is above 1. Here s is the coefficient of `scale` at the same place, and v is the value of `scale`.
    fn distance_from_constant(&self, scale: &Jet) -> f64 {
        let size = scale.value().abs();
        let relative = |k: usize| self.coefficients[k].abs() / (scale.coefficients[k].abs() / size).max(1.0);
        (1..(self.orders[0] + 1) * (self.orders[1] + 1)).map(relative).fold(0.0, f64::max)
    }

    /// Returns the jet with all coefficients multiplied by `factor`.
    pub(crate) fn scaled(mut self, factor: f64) -> Self {
        self.coefficients.iter_mut().for_each(|c| *c *= factor);
        self
    }

    /// Returns true if each coefficient of `self` is too small to change the same coefficient of `sum` when it is added.
    pub(crate) fn is_negligible(&self, sum: &Jet) -> bool {
        let count = (self.orders[0] + 1) * (self.orders[1] + 1);
        (0..count).all(|k| self.coefficients[k].abs() <= f64::EPSILON / 4.0 * sum.coefficients[k].abs())
    }
}

impl Add for Jet {
    type Output = Jet;

    fn add(mut self, other: Jet) -> Jet {
        self.coefficients.iter_mut().zip(other.coefficients).for_each(|(x, y)| *x += y);
        self
    }
}

impl Mul for Jet {
    type Output = Jet;

    fn mul(self, other: Jet) -> Jet {
        Jet::new(self.orders, |i, j| {
            let mut sum = 0.0;
            for p in 0..=i {
                for q in 0..=j {
                    sum += self.coefficient(p, q) * other.coefficient(i - p, j - q);
                }
            }
            sum
        })
    }
}

impl Div for Jet {
    type Output = Jet;

    fn div(self, other: Jet) -> Jet {
        let mut quotient = Jet { orders: self.orders, coefficients: [0.0; MAX_COEFFICIENTS] };
        for (i, j) in self.indices() {
            let mut rest = self.coefficient(i, j);
            for p in 0..=i {
                for q in 0..=j {
                    if p + q > 0 {
                        rest -= other.coefficient(p, q) * quotient.coefficient(i - p, j - q);
                    }
                }
            }
            quotient.coefficients[quotient.index_of(i, j)] = rest / other.value();
        }
        quotient
    }
}

/// Returns n!.
pub(crate) fn factorial(n: usize) -> f64 {
    (2..=n).fold(1.0, |product, k| product * k as f64)
}

/// Computes the continued fraction b₀ + a₁ / (b₁ + a₂ / (b₂ + …)) by W. J. Lentz's method, with the changes of I. J. Thompson and A. R.
/// Barnett (1986). `first` is b₀, and `term`(k) returns aₖ and bₖ. The result is NaN if 1,000,000 terms are not enough.
pub(crate) fn continued_fraction(first: Jet, term: impl Fn(f64) -> (Jet, Jet)) -> Jet {
    const TINY: f64 = 1e-300;
    let nonzero = |mut jet: Jet| {
        if jet.coefficients[0] == 0.0 {
            jet.coefficients[0] = TINY;
        }
        jet
    };
    let one = Jet::linear(first.orders, 1.0, [0.0; 2]);
    let mut fraction = nonzero(first);
    let (mut c, mut d) = (fraction, Jet::linear(first.orders, 0.0, [0.0; 2]));
    for k in 1..1_000_000 {
        let (a, b) = term(f64::from(k));
        d = one / nonzero(a * d + b);
        c = nonzero(b + a / c);
        let change = c * d;
        fraction = fraction * change;
        if (change.value() - 1.0).abs() <= f64::EPSILON
            && change.distance_from_constant(&fraction) <= 4.0 * f64::EPSILON
        {
            return fraction;
        }
    }
    fraction.scaled(f64::NAN)
}
