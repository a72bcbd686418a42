//! Forward mode as a transformation of the tape: it records tangents from the inputs up to the requested outputs.

use wengert_macros::{precompiled, twins};
use wengert_tensor::ops::{TensorLike as _, Views as _};
use wengert_tensor::plan::{NodeIndex, Op};
use wengert_tensor::{Float, Site, Tensor};

use super::path::{Sources, Traversal};
use crate::rules::{self, Primitive, RuleResult};
use crate::{Error, Tape, Var};

#[twins]
#[precompiled]
impl<'t, T: Float> Tape<T> {
    /// Records the directional derivative of each of `outputs` as each input moves along its tangent. Each pair of `inputs` consists of an
    /// input and its tangent. The derivative is zero for an output that depends on no input. PyTorch: `torch.func.jvp`.
    ///
    /// ```
    /// # use wengert_autograd::prelude::*;
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::from([1.0, 2.0]));
    /// let v = tape.constant(&Tensor::from([1.0, 0.0]));
    /// let [dy] = tape.jvp(&[x * x], &[(x, v)])[..] else { unreachable!() };
    /// assert_eq!(dy.value().to_vec(), [2.0, 0.0]);
    /// ```
    ///
    /// # Errors
    ///
    /// If a tangent has another shape than its input, or a variable belongs to another tape. If an operation between inputs and outputs has
    /// no derivative, even if the tangent of its input is zero. Also if a derivative rule returns an error, or the tape is full.
    pub fn try_jvp(
        &'t self,
        outputs: &[Var<'t, T>],
        inputs: &[(Var<'t, T>, Var<'t, T>)],
    ) -> Result<Vec<Var<'t, T>>, Error> {
        self.forward(outputs, inputs, Site::here("jvp"))
    }

    pub(crate) fn forward(
        &'t self,
        outputs: &[Var<'t, T>],
        inputs: &[(Var<'t, T>, Var<'t, T>)],
        at: Site,
    ) -> Result<Vec<Var<'t, T>>, Error> {
        self.check_owns(
            outputs.iter().copied().chain(inputs.iter().flat_map(|&(input, tangent)| [input, tangent])),
            at,
        )?;
        for (position, (input, tangent)) in inputs.iter().enumerate() {
            if !input.same_shape(tangent) {
                let (expected, got) = (Box::new(input.shape()), Box::new(tangent.shape()));
                return Err(Error::SeedShape { position, expected, got, at });
            }
        }
        let sources: Vec<NodeIndex> = inputs.iter().map(|(input, _)| input.index).collect();
        let ends = || outputs.iter().map(|output| output.index);
        let path = self.path(Sources::Nodes(&sources), ends(), Traversal::Differentiable);
        self.check_differentiable(&path, ends(), at)?;
        let mut tangents: Vec<Option<Var<'t, T>>> = vec![None; path.nodes.len()];
        for &(input, tangent) in inputs {
            if let Some(slot) = path.position(input.index) {
                tangents[slot] = Some(rules::accumulate(tangents[slot], tangent, at)?);
            }
        }
        let derivation = self.start_derivation();
        for (slot, &index) in path.nodes.iter().enumerate() {
            let primitive = derivation.primitive(index, at);
            for (position, &operand) in primitive.inputs.iter().enumerate() {
                let below = path.position(operand).filter(|_| rules::is_differentiable_in(primitive.op, position));
                let Some(v) = below.and_then(|below| tangents[below]) else {
                    continue;
                };
                let term = match primitive.jvp(position, v)? {
                    RuleResult::Value(term) => Some(term),
                    RuleResult::Zero => None,
                    RuleResult::FromReverse => jvp_from_vjp(&primitive, position, v)?,
                    RuleResult::Undefined => return Err(primitive.not_differentiable_error()),
                };
                if let Some(term) = term {
                    tangents[slot] = Some(rules::accumulate(tangents[slot], term, at)?);
                }
            }
        }
        drop(derivation);
        let tangent = |output: &Var<'t, T>| path.position(output.index).and_then(|slot| tangents[slot]);
        outputs.iter().map(|output| tangent(output).map_or_else(|| output.try_zeros_like_at(at), Ok)).collect()
    }
}

/// Records J v, where J is the Jacobian of `primitive` for the input with index `input`, and v is the tangent of this input. Uses only the
/// reverse rule g ↦ Jᵀ g for an output gradient g. This rule is linear in g, so J v is the derivative of ⟨Jᵀ g, v⟩ with respect to g.
/// Returns `None` if the result is zero.
fn jvp_from_vjp<'t, T: Float>(
    primitive: &Primitive<'t, T>,
    input: usize,
    v: Var<'t, T>,
) -> Result<Option<Var<'t, T>>, Error> {
    let &Primitive { tape, index, at, .. } = primitive;
    let zeros = Tensor::scalar(T::ZERO).expand(tape.var_of(index).shape());
    let g = tape.try_leaf(&zeros, Op::Variable, Some(at))?;
    let Some(transposed) = primitive.vjp(input, g)? else { return Ok(None) };
    Ok(tape.reverse(&[(transposed, v)], &[g], at)?[0])
}

#[twins]
impl<'t, T: Float> Var<'t, T> {
    /// Records the directional derivative of this variable as each input moves along its tangent. Each pair of `inputs` consists of an
    /// input and its tangent.
    ///
    /// # Errors
    ///
    /// If a tangent has another shape than its input, or a variable belongs to another tape. If an operation between inputs and this
    /// variable has no derivative, even if the tangent of its input is zero. Also if a derivative rule returns an error, or the tape is
    /// full.
    pub fn try_jvp(self, inputs: &[(Var<'t, T>, Var<'t, T>)]) -> Result<Var<'t, T>, Error> {
        Ok(self.tape.forward(&[self], inputs, Site::here("jvp"))?[0])
    }
}
