//! Replacements for what the original programs import: NumPy's random numbers, points in the form of a pinwheel, a method of SciPy.

mod newton;
mod random;

pub use newton::newton_cg;
pub use random::RandomState;

use std::f64::consts::TAU;

use wengert::prelude::*;

/// Returns `3 * per_arm` points `[n, 2]` in three curved arms around the origin, with NumPy's random numbers of seed 0.
///
/// ```
/// assert_eq!(wengert_ports::pinwheel(5).shape(), &[15, 2]);
/// ```
pub fn pinwheel(per_arm: usize) -> Tensor<f64> {
    let noise = RandomState::new(0).randn([3 * per_arm, 2]) * Tensor::from([0.3, 0.05]);
    let (radius, side) = (noise.select(1, 0) + 1.0, noise.select(1, 1));
    let arms = Tensor::<f64>::arange(3).repeat_interleave(per_arm, Some(0)) * (TAU / 3.0);
    let angle = arms + radius.exp() * 0.4;
    let (sine, cosine) = (angle.sin(), angle.cos());
    stack(&[&radius * &cosine + &side * &sine, &side * &cosine - &radius * &sine], 1)
}
