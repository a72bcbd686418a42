//! The tests of linear algebra: values by definition and from PyTorch, derivatives, batches, errors, threads.

mod decompositions;
mod definitions;
mod derivatives;
mod empty_batches;
mod many_matrices;
mod matrix_norms;
mod multi_dot;
mod pytorch;
mod reflections;
mod refusals;
mod tensor_equations;
mod threads;

use wengert_autograd::Generator;
use wengert_linalg::{Triangle, TriangularSystem};
use wengert_tensor::prelude::*;

/// Returns matrices of normally distributed numbers.
fn random(shape: &[usize], seed: u64) -> Tensor<f64> {
    Tensor::randn(shape, &mut Generator::new(seed))
}

/// Returns symmetric positive-definite matrices whose smallest eigenvalue is at least `n` / 4.
fn positive_definite(shape: &[usize], seed: u64) -> Tensor<f64> {
    let (x, n) = (random(shape, seed), shape[shape.len() - 1]);
    x.matmul(x.transpose(-2, -1)) * 0.5 + Tensor::eye(n) * (n as f64 / 4.0)
}

/// Returns matrices that are diagonally dominant, so that they have a small condition number.
fn diagonally_dominant(shape: &[usize], seed: u64) -> Tensor<f64> {
    let n = shape[shape.len() - 1];
    random(shape, seed) * 0.5 + Tensor::eye(n) * (n as f64)
}

/// Returns the form of a triangular system, given PyTorch's arguments.
fn triangular_system(upper: bool, left: bool, unitriangular: bool) -> TriangularSystem {
    let mut triangular_system = TriangularSystem::from(if upper { Triangle::Upper } else { Triangle::Lower });
    if !left {
        triangular_system = triangular_system.right();
    }
    if unitriangular { triangular_system.unitriangular() } else { triangular_system }
}

/// Returns the largest difference between elements of two tensors. The shapes must be equal.
fn difference(x: &Tensor<f64>, y: &Tensor<f64>) -> f64 {
    assert_eq!(x.shape(), y.shape());
    if x.numel() == 0 { 0.0 } else { (x - y).abs().amax(..).item() }
}
