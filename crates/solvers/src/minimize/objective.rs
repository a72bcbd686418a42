//! A function of several numbers with its exact derivatives.

use wengert_autograd::transforms::{try_hvp, try_value_and_grad};
use wengert_tensor::{Float, Shape};

use crate::error::Result;
use crate::evaluate::{Map, round_to_type, to_f64_vec, to_tensor};

/// The function to minimise, and the number of its evaluations so far.
pub(super) struct Objective<'f, T: Float> {
    pub(super) f: &'f Map<'f, T>,
    pub(super) shape: &'f Shape,
    /// The number of evaluations of the function with its gradient.
    pub(super) evaluations: usize,
    /// The number of products of the Hessian and a vector.
    pub(super) products: usize,
}

/// A point, with the function and its gradient there.
#[derive(Clone)]
pub(super) struct Point {
    pub(super) x: Vec<f64>,
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
}

impl Point {
    pub(super) fn is_finite(&self) -> bool {
        self.value.is_finite() && self.gradient.iter().all(|g| g.is_finite())
    }
}

impl<T: Float> Objective<'_, T> {
    /// Evaluates the function and its gradient at `x`, rounded to the element type.
    pub(super) fn evaluate(&mut self, mut x: Vec<f64>) -> Result<Point> {
        round_to_type::<T>(&mut x);
        self.evaluations += 1;
        let (value, gradient) = try_value_and_grad(self.f, &to_tensor::<T>(&x, self.shape)?)?;
        Ok(Point { x, value: value.to_f64(), gradient: to_f64_vec(&gradient) })
    }

    /// Returns the product of the Hessian at `x` and `v`.
    pub(super) fn hessian_times(&mut self, x: &[f64], v: &[f64]) -> Result<Vec<f64>> {
        self.products += 1;
        Ok(to_f64_vec(&try_hvp(self.f, &to_tensor::<T>(x, self.shape)?, &to_tensor::<T>(v, self.shape)?)?))
    }
}
