//! Systems of equations with an upper triangle.

use wengert_autograd::{FunctionCall, Var};
use wengert_tensor::prelude::*;
use wengert_tensor::{Error, Float, Shape, Site, Tensor};

use super::transposed;
use crate::array::{Array as _, Kernel};
use crate::matrices::Batch;
use crate::numerics::arithmetic::add_scaled;

/// X with R X = B, or Rᵀ X = B. Only the upper triangle of R is read.
#[derive(Clone, Copy)]
pub(crate) struct SolveUpper {
    /// True for Rᵀ X = B.
    pub(crate) transposed: bool,
}

impl<T: Float> Kernel<T> for SolveUpper {
    fn name(&self) -> &'static str {
        "solve_upper"
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        Ok(vec![inputs[1].clone()])
    }

    fn run(&self, inputs: &[Tensor<T>], at: Site) -> Result<Vec<Tensor<T>>, Error> {
        let shape = inputs[1].shape();
        let (order, width) = (shape[shape.rank() - 2], shape[shape.rank() - 1]);
        let batch = Shape::from(&shape[..shape.rank() - 2]);
        let solved = Batch { shape: &batch, name: "solve_upper", reason: "", at };
        solved.compute(&[&inputs[0], &inputs[1]], &[shape.clone()], |input, out| {
            let (r, x) = (input[0], &mut *out[0]);
            x.copy_from_slice(input[1]);
            if width == 0 {
                return Ok(());
            }
            // Each solved row is subtracted from the rows that are not yet solved: the rows above, or the rows below for Rᵀ.
            for step in 0..order {
                let i = if self.transposed { step } else { order - 1 - step };
                let (above, rest) = x.split_at_mut(i * width);
                let (row, below) = rest.split_at_mut(width);
                row.iter_mut().for_each(|x| *x = *x / r[i * order + i]);
                if self.transposed {
                    for (j, other) in below.chunks_exact_mut(width).enumerate() {
                        add_scaled(other, -r[i * order + i + 1 + j], row);
                    }
                } else {
                    for (j, other) in above.chunks_exact_mut(width).enumerate() {
                        add_scaled(other, -r[j * order + i], row);
                    }
                }
            }
            Ok(())
        })
    }

    /// g_B solves the transposed system for g. g_R is the upper triangle of -g_B Xᵀ, or of -X g_Bᵀ for Rᵀ (Giles 2008, section 2.3.1).
    fn vjp<'t>(&self, call: &FunctionCall<'t, T>, gradients: &[Var<'t, T>]) -> Vec<Option<Var<'t, T>>> {
        let solve = SolveUpper { transposed: !self.transposed };
        let solved = Var::apply_kernel(solve, &[call.inputs[0], gradients[0]], Site::here("solve_upper"));
        let gb = solved.unwrap_or_else(|error| crate::raise(error))[0];
        let x = call.outputs[0];
        let product = if self.transposed { x.matmul(transposed(gb)) } else { gb.matmul(transposed(x)) };
        vec![Some(product.triu(0) * -1.0), Some(gb)]
    }
}
