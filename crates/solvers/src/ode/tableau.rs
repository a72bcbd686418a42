//! The coefficients of explicit Runge-Kutta methods.
//!
//! The last row of each table gives the new state, so a step also computes the slope at the new state. The error estimate, the interpolation
//! and the next step use this slope.

/// The coefficients of an explicit Runge-Kutta method, as in a Butcher tableau.
pub(super) struct Tableau {
    /// The time of each stage after the first, as a fraction of the step.
    pub(super) nodes: &'static [f64],
    /// For each stage after the first, the weights of the slopes before it. The last stage is the new state.
    pub(super) rows: &'static [&'static [f64]],
    /// The weights of the error estimate. Empty for methods without an estimate.
    pub(super) error: &'static [f64],
    /// The order of the error estimate in the step length. It determines the exponent of the step control.
    pub(super) error_order: f64,
    /// For each slope, the coefficients of θ, θ², … of its weight in the interpolation.
    pub(super) interpolation: &'static [&'static [f64]],
}

/// Euler's method, of order 1.
pub(super) const EULER: Tableau =
    Tableau { nodes: &[1.0], rows: &[&[1.0]], error: &[], error_order: 0.0, interpolation: &[] };

/// The midpoint method, of order 2.
pub(super) const MIDPOINT: Tableau =
    Tableau { nodes: &[0.5, 1.0], rows: &[&[0.5], &[0.0, 1.0]], error: &[], error_order: 0.0, interpolation: &[] };

/// The classical method of order 4 (Hairer, Nørsett and Wanner, "Solving ordinary differential equations I", 1993, table II.1.2).
pub(super) const RK4: Tableau = Tableau {
    nodes: &[0.5, 0.5, 1.0, 1.0],
    rows: &[&[0.5], &[0.0, 0.5], &[0.0, 0.0, 1.0], &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0]],
    error: &[],
    error_order: 0.0,
    interpolation: &[],
};

/// The method of P. Bogacki and L. F. Shampine, "A 3(2) pair of Runge-Kutta formulas" (1989), with cubic Hermite interpolation.
pub(super) const BOGACKI_SHAMPINE: Tableau = Tableau {
    nodes: &[0.5, 0.75, 1.0],
    rows: &[&[0.5], &[0.0, 0.75], &[2.0 / 9.0, 1.0 / 3.0, 4.0 / 9.0]],
    error: &[5.0 / 72.0, -1.0 / 12.0, -1.0 / 9.0, 1.0 / 8.0],
    error_order: 3.0,
    interpolation: &[
        &[1.0, -4.0 / 3.0, 5.0 / 9.0],
        &[0.0, 1.0, -2.0 / 3.0],
        &[0.0, 4.0 / 3.0, -8.0 / 9.0],
        &[0.0, -1.0, 1.0],
    ],
};

/// The method of J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae" (1980). The interpolation of order 4 is from
/// L. F. Shampine, "Some practical Runge-Kutta formulas" (1986).
pub(super) const DORMAND_PRINCE: Tableau = Tableau {
    nodes: &[0.2, 0.3, 0.8, 8.0 / 9.0, 1.0, 1.0],
    rows: &[
        &[0.2],
        &[3.0 / 40.0, 9.0 / 40.0],
        &[44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0],
        &[19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0],
        &[9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0],
        &[35.0 / 384.0, 0.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0],
    ],
    error: &[-71.0 / 57600.0, 0.0, 71.0 / 16695.0, -71.0 / 1920.0, 17253.0 / 339200.0, -22.0 / 525.0, 1.0 / 40.0],
    error_order: 5.0,
    interpolation: &[
        &[1.0, -8048581381.0 / 2820520608.0, 8663915743.0 / 2820520608.0, -12715105075.0 / 11282082432.0],
        &[],
        &[0.0, 131558114200.0 / 32700410799.0, -68118460800.0 / 10900136933.0, 87487479700.0 / 32700410799.0],
        &[0.0, -1754552775.0 / 470086768.0, 14199869525.0 / 1410260304.0, -10690763975.0 / 1880347072.0],
        &[0.0, 127303824393.0 / 49829197408.0, -318862633887.0 / 49829197408.0, 701980252875.0 / 199316789632.0],
        &[0.0, -282668133.0 / 205662961.0, 2019193451.0 / 616988883.0, -1453857185.0 / 822651844.0],
        &[0.0, 40617522.0 / 29380423.0, -110615467.0 / 29380423.0, 69997945.0 / 29380423.0],
    ],
};

/// Returns the weight of a slope in the interpolation at the fraction `theta` of the step.
pub(super) fn interpolation_weight(coefficients: &[f64], theta: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| (sum + coefficient) * theta)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&Tableau; 5] = [&EULER, &MIDPOINT, &RK4, &BOGACKI_SHAMPINE, &DORMAND_PRINCE];

    #[test]
    fn each_row_sums_to_its_node() {
        for tableau in ALL {
            assert_eq!(tableau.nodes.len(), tableau.rows.len());
            for (node, row) in tableau.nodes.iter().zip(tableau.rows) {
                assert!((row.iter().sum::<f64>() - node).abs() < 1e-14, "{row:?} at {node}");
            }
            assert!(tableau.error.iter().sum::<f64>().abs() < 1e-15);
        }
    }

    /// At the end of a step, the interpolation has the value and the slope of the new state.
    #[test]
    fn interpolations_end_at_the_new_state() {
        for tableau in [&BOGACKI_SHAMPINE, &DORMAND_PRINCE] {
            let last = tableau.rows[tableau.rows.len() - 1];
            for (slope, coefficients) in tableau.interpolation.iter().enumerate() {
                let expected = last.get(slope).copied().unwrap_or(0.0);
                assert!((interpolation_weight(coefficients, 1.0) - expected).abs() < 1e-14);
                let derivative: f64 = coefficients.iter().zip(1..).map(|(c, power)| c * f64::from(power)).sum();
                let expected = if slope == tableau.interpolation.len() - 1 { 1.0 } else { 0.0 };
                assert!((derivative - expected).abs() < 1e-13);
            }
        }
    }
}
