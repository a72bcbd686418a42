//! Forward mode as a program transformation: tangents are recorded from the inputs up to the outputs asked for.

use wengert_tensor::plan::{Index, Op};
use wengert_tensor::{Float, Site};

use crate::error::or_raise;
use crate::record::DETACH;
use crate::rules::{self, Mode};
use crate::{Error, Tape, Var};

impl<'t, T: Float> Tape<T> {
    /// The directional derivative of each of `outputs` as each input moves along its tangent, as variables on the same tape;
    /// zeros for an output that depends on no input. PyTorch: `torch.func.jvp`.
    ///
    /// ```
    /// use wengert_autograd::prelude::*;
    ///
    /// let tape = Tape::<f64>::new();
    /// let x = tape.var(&Tensor::from([1.0, 2.0]));
    /// let v = tape.constant(&Tensor::from([1.0, 0.0]));
    /// let [dy] = tape.jvp(&[x * x], &[(x, v)])[..] else { unreachable!() };
    /// assert_eq!(dy.value().to_vec(), [2.0, 0.0]);
    /// ```
    ///
    /// # Panics
    ///
    /// Where a tangent's shape is not its input's, or an operation on the way has no derivative; see
    /// [`try_jvp`](Self::try_jvp).
    #[track_caller]
    pub fn jvp(&'t self, outputs: &[Var<'t, T>], inputs: &[(Var<'t, T>, Var<'t, T>)]) -> Vec<Var<'t, T>> {
        or_raise(self.try_jvp(outputs, inputs))
    }

    /// [`jvp`](Self::jvp), with the error as a value.
    ///
    /// # Errors
    ///
    /// Where a tangent's shape is not its input's, or an operation on the way has no derivative.
    #[track_caller]
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
        for (position, (input, tangent)) in inputs.iter().enumerate() {
            let (expected, got) = (Box::new(input.shape()), Box::new(tangent.shape()));
            if expected != got {
                return Err(Error::SeedShape { position, expected, got, at });
            }
        }
        let belongs = |var: &Var<'t, T>| var.tape.id == self.id;
        if !outputs.iter().all(belongs) || !inputs.iter().all(|(input, tangent)| belongs(input) && belongs(tangent)) {
            return Err(Error::OtherTape { at });
        }
        let Some(last) = outputs.iter().map(|output| output.index).max() else {
            return Ok(Vec::new());
        };
        let sources: Vec<Index> = inputs.iter().map(|(input, _)| input.index).collect();
        let path = self.dependents(&sources, last);
        // Only what an output needs gets a tangent.
        let needed = self.ancestors(outputs, path.first);
        let mut tangents: Vec<Option<Var<'t, T>>> = vec![None; path.marks.len()];
        for &(input, tangent) in inputs {
            if let Some(slot) = path.slot(input.index) {
                tangents[slot] = Some(rules::accumulate(tangents[slot], tangent, at)?);
            }
        }
        let lines = self.derive();
        for slot in (0..tangents.len()).filter(|&slot| path.marks[slot] && needed[slot]) {
            let index = path.first + slot as Index;
            let (op, operands) = lines.on_behalf_of(index);
            if matches!(op, Op::Alias(_)) && op != DETACH {
                let operation = self.record.borrow().name(index);
                // Whatever comes from below: it may be zero already (of a `floor`), and must not be asked for.
                let recorded = self.record.borrow().location(index);
                return Err(Error::NotDifferentiable { operation, recorded, at });
            }
            for (position, &operand) in operands.iter().enumerate() {
                let below = path.slot(operand).filter(|_| rules::flows(op, position));
                let Some(v) = below.and_then(|below| tangents[below]) else {
                    continue;
                };
                if let Some(term) = rules::derivative(self, index, op, &operands, position, v, Mode::Jvp, at)? {
                    tangents[slot] = Some(rules::accumulate(tangents[slot], term, at)?);
                }
            }
        }
        drop(lines);
        Ok(outputs
            .iter()
            .map(|output| {
                path.slot(output.index).and_then(|slot| tangents[slot]).unwrap_or_else(|| output.zeros_like_at(at))
            })
            .collect())
    }

    /// Which nodes from `first` on some output is computed from, the outputs included.
    fn ancestors(&self, outputs: &[Var<'t, T>], first: Index) -> Vec<bool> {
        let last = outputs.iter().map(|output| output.index).max().unwrap_or(first);
        let mut marks = vec![false; (last.max(first) - first + 1) as usize];
        for output in outputs.iter().filter(|output| output.index >= first) {
            marks[(output.index - first) as usize] = true;
        }
        let record = self.record.borrow();
        for slot in (0..marks.len()).rev() {
            if marks[slot] {
                for input in record.inputs(first + slot as Index) {
                    if input >= first {
                        marks[(input - first) as usize] = true;
                    }
                }
            }
        }
        marks
    }
}

impl<'t, T: Float> Var<'t, T> {
    /// The directional derivative of this as each input moves along its tangent, as a variable on the same tape.
    ///
    /// # Panics
    ///
    /// Where a tangent's shape is not its input's, or an operation on the way has no derivative; see [`Tape::try_jvp`].
    #[track_caller]
    pub fn jvp(self, inputs: &[(Var<'t, T>, Var<'t, T>)]) -> Var<'t, T> {
        self.tape.jvp(&[self], inputs)[0]
    }
}
