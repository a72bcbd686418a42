//! Vectors that encode the positions of a sequence. They are sines and cosines (Vaswani et al. 2017, "Attention Is All You Need", 3.5) or rows
//! of a trained table.

use wengert_autograd::{Error as TapeError, Parameter, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, Views as _};
use wengert_tensor::{Error as TensorError, Float, Generator, Tensor};

use crate::layers::forward::{layer_error, output_of};
use crate::layers::layer::Layer;
use crate::module::Module;
use crate::{Result, init};

/// The base b of the angles p b^(-2i / width), for position p and the pair i of columns. The value is from "Attention Is All You Need" and
/// "RoFormer".
const BASE: f64 = 10_000.0;

/// Returns a table of sines and cosines, `[length, width]`, which a model adds to its embeddings. Row p is for position p. Its columns 2i and
/// 2i + 1 are the sine and the cosine of p / 10000^(2i / width). If the width is odd, the last cosine is left out.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::sinusoidal_positions;
///
/// let table = sinusoidal_positions::<f64>(50, 4);
/// assert_eq!(table.select(0, 0).to_vec(), [0.0, 1.0, 0.0, 1.0]);
/// assert_eq!(table.select(0, 7).to_vec()[2], 0.07f64.sin());
/// ```
///
/// # Errors
///
/// If memory cannot hold the table.
#[twins]
pub fn try_sinusoidal_positions<T: Float>(length: usize, width: usize) -> Result<Tensor<T>, TensorError> {
    let element = |position: usize, column: usize| {
        let angle = position as f64 * angular_frequency(column / 2, width);
        if column.is_multiple_of(2) { libm::sin(angle) } else { libm::cos(angle) }
    };
    let mut table = Tensor::try_full([length, width], T::ZERO)?;
    for (position, row) in table.make_mut().chunks_mut(width.max(1)).enumerate() {
        row.iter_mut().enumerate().for_each(|(column, number)| *number = T::from_f64(element(position, column)));
    }
    Ok(table)
}

/// Returns the difference between the angles of two adjacent positions for the pair of columns with index `pair`, in radians: BASE^(-2 pair / width).
pub(super) fn angular_frequency(pair: usize, width: usize) -> f64 {
    libm::pow(BASE, -2.0 * pair as f64 / width as f64)
}

/// A table `[max_length, width]` with a trained vector for each position, which is added to embeddings. PyTorch: a `torch.nn.Embedding` that is
/// indexed by the positions.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Generator, Layer, LearnedPositions};
///
/// let positions = LearnedPositions::<f32>::new(128, 16, &mut Generator::new(0));
/// let tape = Tape::new();
/// let x = tape.constant(&Tensor::zeros([2, 7, 16]));
/// let y = positions.forward(x);
/// assert_eq!(y.value().select(0, 1), positions.weight.value.narrow(0, 0, 7));
/// ```
#[derive(Clone, Debug, Module)]
pub struct LearnedPositions<T: Float = f32> {
    /// The table, `[max_length, width]`.
    pub weight: Parameter<T>,
}

#[twins]
impl<T: Float> LearnedPositions<T> {
    /// Returns a table for sequences of at most `max_length` vectors of `width` elements, drawn from the standard normal distribution as in
    /// `torch.nn.Embedding`.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the table.
    #[track_caller]
    pub fn new(max_length: usize, width: usize, generator: &mut Generator) -> Self {
        LearnedPositions { weight: Parameter::new(init::normal([max_length, width], 0.0, 1.0, generator)) }
    }

    /// Returns `x`, `[…, t, width]`, plus the vectors of t positions, beginning with the position `offset`. In decoding, `offset` is the number
    /// of earlier positions.
    ///
    /// # Errors
    ///
    /// If the table does not have all these positions, the width of `x` is not the width of the table, or `x` has fewer than two
    /// dimensions.
    pub fn try_forward_at<'t>(&self, x: Var<'t, T>, offset: usize) -> Result<Var<'t, T>> {
        let shape = x.shape();
        output_of(self, self.add_positions(x, offset), self.weight.created_at(), || {
            let table = self.weight.value.shape();
            format!("LearnedPositions({}, {}) on an input of shape {shape} at position {offset}", table[0], table[1])
        })
    }

    /// Returns `x` plus the vectors of its positions; see [`try_forward_at`](Self::try_forward_at).
    #[track_caller]
    fn add_positions<'t>(&self, x: Var<'t, T>, offset: usize) -> Result<Var<'t, T>, TapeError> {
        let (shape, width) = (x.shape(), self.weight.value.shape().last().copied().unwrap_or_default());
        let length = match shape[..] {
            [.., length, last] if last == width => length,
            _ => {
                let message = format!("expected an input […, t, {width}], but got {shape}");
                return Err(layer_error("learned_positions", message));
            }
        };
        let rows = x.tape().try_parameter(&self.weight)?.try_narrow(0, offset, length)?;
        x.try_add(rows)
    }
}

/// Adds the vectors of the positions to the input, beginning with position 0.
impl<T: Float> Layer<T> for LearnedPositions<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        self.try_forward_at(x, 0)
    }
}
