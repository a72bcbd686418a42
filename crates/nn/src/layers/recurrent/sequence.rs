//! Runs a cell over all steps of a batch of sequences.
//!
//! A single matrix product multiplies the inputs of all steps by the weight of the input. So each step only multiplies its state by the weight
//! of the state.

use wengert_autograd::{Error as TapeError, Var};
use wengert_tensor::ops::{LinearMaps as _, TensorLike as _, Views as _, try_cat, try_where_};
use wengert_tensor::{Error as TensorError, Float, Shape, Site, Tensor, check_list};

use crate::layers::forward::layer_error;
use crate::layers::recurrent::cell::RecurrentCell;
use crate::layers::recurrent::kind::RecurrentKind;
use crate::layers::recurrent::state::RecurrentState as _;

/// The approximate memory that a tape needs to record one step, in bytes: four or more nodes with their lines of code and their views. An input with
/// more steps than memory can record is an error.
const STEP_BYTES: usize = 256;

/// The sizes of a batch of sequences, and the order of their dimensions.
#[derive(Clone, Copy)]
pub(super) struct SequenceLayout {
    pub(super) steps: usize,
    pub(super) batch: usize,
    features: usize,
    has_batch: bool,
    batch_first: bool,
}

impl SequenceLayout {
    /// Returns the sizes of an input `[t, n, features]` (t steps, n sequences), or `[n, t, features]` with
    /// `batch_first`, or `[t, features]` without a batch. An input of another rank or without steps is an error, and so are more steps
    /// than memory can hold.
    #[track_caller]
    pub(super) fn new<T: Float>(shape: &Shape, batch_first: bool, layer: &'static str) -> Result<Self, TapeError> {
        let (steps, batch, features) = match *shape.sizes() {
            [steps, features] => (steps, 1, features),
            [batch, steps, features] if batch_first => (steps, batch, features),
            [steps, batch, features] => (steps, batch, features),
            _ => {
                return Err(layer_error(
                    layer,
                    format!("Expected input to be 2D or 3D, got {}D instead", shape.rank()),
                ));
            }
        };
        if steps == 0 {
            return Err(layer_error(layer, "Expected sequence length to be larger than 0 in RNN".to_owned()));
        }
        let at = Site::here(layer);
        if steps.checked_mul(batch).is_none() {
            return Err(TensorError::TooLarge { shape: shape.clone(), dtype: T::DTYPE, at }.into());
        }
        check_list::<[u8; STEP_BYTES]>(steps, at)?;
        Ok(SequenceLayout { steps, batch, features, has_batch: shape.rank() == 3, batch_first })
    }

    /// Checks that there is a length for each sequence and that no length exceeds the number of steps. Returns the masks of the padding, or
    /// `None` if all sequences have all steps.
    #[track_caller]
    pub(super) fn padding<'t, T: Float>(
        self,
        x: Var<'t, T>,
        lengths: &[usize],
        layer: &'static str,
    ) -> Result<Option<Padding<'t, T>>, TapeError> {
        let SequenceLayout { steps, batch, .. } = self;
        if lengths.len() != batch {
            return Err(layer_error(layer, format!("{} lengths for a batch of {batch} sequences", lengths.len())));
        }
        match lengths.iter().find(|&&length| length > steps) {
            Some(length) => Err(layer_error(layer, format!("a length of {length} in a batch of {steps} steps"))),
            None => Padding::new(x, lengths, steps),
        }
    }

    /// Returns the shapes of the state that the caller passes for `cells` cells. `sizes` are the numbers of features of the output and of an
    /// LSTM's cell state. The state has no batch dimension if the input has none.
    pub(super) fn outer_state_shapes(self, cells: usize, sizes: [usize; 2]) -> [Shape; 2] {
        let batched = self.batched_state_shapes(cells, sizes);
        if self.has_batch { batched } else { sizes.map(|size| Shape::from([cells, size])) }
    }

    /// Returns the shapes of a state of `cells` cells with a batch dimension, for the numbers of features `sizes`.
    pub(super) fn batched_state_shapes(self, cells: usize, sizes: [usize; 2]) -> [Shape; 2] {
        sizes.map(|size| Shape::from([cells, self.batch, size]))
    }

    /// Returns the input `x` as rows, `[t · n, features]`, for t steps of n sequences. A step has one row for each sequence, and the rows of a
    /// step are adjacent.
    #[track_caller]
    pub(super) fn flatten_rows<'t, T: Float>(self, x: Var<'t, T>) -> Result<Var<'t, T>, TapeError> {
        let step_first = if self.has_batch && self.batch_first { x.try_transpose(0, 1)? } else { x };
        step_first.try_reshape([self.steps * self.batch, self.features])
    }

    /// Returns `rows` of `width` elements as a tensor with the order of the input's dimensions. This is the inverse of
    /// [`flatten_rows`](Self::flatten_rows).
    #[track_caller]
    pub(super) fn restore_order<'t, T: Float>(self, rows: Var<'t, T>, width: usize) -> Result<Var<'t, T>, TapeError> {
        if !self.has_batch {
            return rows.try_reshape([self.steps, width]);
        }
        let y = rows.try_reshape([self.steps, self.batch, width])?;
        if self.batch_first { y.try_transpose(0, 1) } else { Ok(y) }
    }
}

/// The masks of a batch of sequences of different lengths: 1 at the steps of a sequence, and 0 after its end.
pub(super) struct Padding<'t, T: Float> {
    /// The mask of all t steps of n sequences, `[t · n, 1]`.
    row_mask: Var<'t, T>,
    /// The mask of each step, `[n, 1]` for n sequences; `None` if every sequence is long enough to have the step.
    step_masks: Vec<Option<Var<'t, T>>>,
}

impl<'t, T: Float> Padding<'t, T> {
    /// Returns the masks of sequences of these `lengths` on the tape of `x`, or `None` if every sequence has all `steps`.
    #[track_caller]
    fn new(x: Var<'t, T>, lengths: &[usize], steps: usize) -> Result<Option<Self>, TapeError> {
        let shortest = lengths.iter().copied().min().unwrap_or(steps);
        if shortest == steps {
            return Ok(None);
        }
        let batch = lengths.len();
        let is_inside = Tensor::try_from_fn([steps, batch], |index| index[0] < lengths[index[1]])?
            .try_reshape([steps * batch, 1])?;
        let row_mask = x.constant_mask(&is_inside, Site::here("sequence"))?;
        let mut step_masks = vec![None; shortest];
        for step in shortest..steps {
            step_masks.push(Some(row_mask.try_narrow(0, step * batch, batch)?));
        }
        Ok(Some(Padding { row_mask, step_masks }))
    }

    /// Returns `rows`, `[t · n, width]` for t steps of n sequences, with zeros in the rows after the end of each sequence.
    #[track_caller]
    pub(super) fn zero_padding(&self, rows: Var<'t, T>) -> Result<Var<'t, T>, TapeError> {
        try_where_(&self.row_mask, &rows, 0.0)
    }
}

impl<K: RecurrentKind<T>, T: Float> RecurrentCell<K, T> {
    /// Runs the cell over all steps of `rows`, `[t · n, in]` for t steps of n sequences, backwards if `is_reversed` is true. Returns the
    /// outputs in the order of the steps, `[t · n, hidden]` (`[t · n, proj]` with a projection), and the last state.
    #[track_caller]
    pub(super) fn run_sequence<'t>(
        &self,
        rows: Var<'t, T>,
        SequenceLayout { steps, batch, .. }: SequenceLayout,
        mut state: K::State<'t>,
        padding: Option<&Padding<'t, T>>,
        is_reversed: bool,
    ) -> Result<(Var<'t, T>, K::State<'t>), TapeError> {
        let variables = self.variables(rows.tape())?;
        let gates = rows.try_linear(&variables.input_weight, variables.bias.as_ref())?;
        let mut outputs = Vec::with_capacity(steps);
        for number in 0..steps {
            let step = if is_reversed { steps - 1 - number } else { number };
            let x = gates.try_narrow(0, step * batch, batch)?;
            let next = self.kind.try_step(x, state, &variables)?;
            state = match padding.and_then(|padding| padding.step_masks[step].as_ref()) {
                Some(mask) => next.try_where(mask, state)?,
                None => next,
            };
            outputs.push(next.output());
        }
        if is_reversed {
            outputs.reverse();
        }
        Ok((try_cat(&outputs, 0)?, state))
    }
}
