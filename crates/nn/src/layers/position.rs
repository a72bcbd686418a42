//! Where in a sequence a vector is: sines (Vaswani et al. 2017, "Attention Is All You Need", 3.5), a table that is learned, and
//! rotations of queries and keys (Su et al. 2021, "RoFormer", 3.2).

use wengert_autograd::{Error as TapeError, Parameter, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, TensorLike, Views as _, try_cat};
use wengert_tensor::{Error as TensorError, Float, Generator, Scalar, Site, Tensor};

use crate::Result;
use crate::init;
use crate::layers::layer::{Layer, output_of};
use crate::module::Module;

/// The base of the rates in both papers.
const BASE: f64 = 10_000.0;

/// A table of sines and cosines, `[length, width]`: at position p and pair i, sin(p / 10000^(2i / width)) and the cosine of the same.
/// Of an odd width the last cosine is left out. To be added to embeddings.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::sinusoidal_positions;
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
        let angle = position as f64 * rate(column / 2, width, BASE);
        if column.is_multiple_of(2) { angle.sin() } else { angle.cos() }
    };
    let mut table = Tensor::try_full([length, width], T::ZERO)?;
    for (position, row) in table.make_mut().chunks_mut(width.max(1)).enumerate() {
        row.iter_mut().enumerate().for_each(|(column, number)| *number = T::from_f64(element(position, column)));
    }
    Ok(table)
}

/// How fast pair number `pair` turns: base^(-2 pair / width).
fn rate(pair: usize, width: usize, base: f64) -> f64 {
    base.powf(-2.0 * pair as f64 / width as f64)
}

/// A vector for each position, which is learned: a table `[max_length, width]` to be added to embeddings. (PyTorch:
/// `torch.nn.Embedding` of the positions.)
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{Generator, Layer, LearnedPositions};
///
/// let positions = LearnedPositions::<f32>::new(128, 16, &mut Generator::new(0));
/// let tape = Tape::new();
/// let x = tape.constant(&Tensor::zeros([2, 7, 16]));
/// let y = positions.forward(x);
/// assert_eq!(y.value().select(0, 1), positions.weight.value.narrow(0, 0, 7));
/// ```
#[derive(Clone, Debug, Module)]
pub struct LearnedPositions<T: Float = f32> {
    /// `[max_length, width]`.
    pub weight: Parameter<T>,
}

#[twins]
impl<T: Float> LearnedPositions<T> {
    /// A table for sequences of at most `max_length` vectors of `width` numbers, drawn from the standard normal distribution as
    /// that of `torch.nn.Embedding`.
    ///
    /// # Panics
    ///
    /// If there is not enough memory for the table.
    #[track_caller]
    pub fn new(max_length: usize, width: usize, generator: &mut Generator) -> Self {
        LearnedPositions { weight: Parameter::new(init::normal([max_length, width], 0.0, 1.0, generator)) }
    }

    /// `x`, `[…, t, width]`, with the vectors of the positions `offset` to `offset + t` added: in decoding, `offset` is how many
    /// positions came before.
    ///
    /// # Errors
    ///
    /// If the table does not have these positions, or the widths differ.
    pub fn try_forward_at<'t>(&self, x: Var<'t, T>, offset: usize) -> Result<Var<'t, T>> {
        let shape = x.shape();
        output_of(self, self.at(x, offset), self.weight.made(), || {
            let table = self.weight.value.shape();
            format!("LearnedPositions({}, {}) on an input of shape {shape} at position {offset}", table[0], table[1])
        })
    }

    #[track_caller]
    fn at<'t>(&self, x: Var<'t, T>, offset: usize) -> Result<Var<'t, T>, TapeError> {
        let shape = x.shape();
        let length = shape.rank().checked_sub(2).map_or(1, |axis| shape[axis]);
        let rows = x.tape().try_parameter(&self.weight)?.try_narrow(0, offset, length)?;
        x.try_add(rows)
    }
}

/// From position 0 on.
impl<T: Float> Layer<T> for LearnedPositions<T> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        self.try_forward_at(x, 0)
    }
}

/// Which numbers of a vector make a pair that is rotated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RotaryPairs {
    /// Numbers 2i and 2i + 1, as in the paper.
    #[default]
    Interleaved,
    /// Numbers i and width/2 + i, as in GPT-NeoX and Llama.
    Halves,
}

/// Queries or keys `[…, t, d]` with their positions in them: pair i of the vector at position p is rotated by the angle
/// p / 10000^(2i / d), so that the product of a query and a key depends on the distance of their positions. The first vector is at
/// position `offset`: in decoding, how many came before. For tensors and variables.
///
/// ```
/// use wengert_autograd::prelude::*;
/// use wengert_nn::{RotaryPairs, rotary};
///
/// let x = Tensor::from([[1.0, 0.0], [1.0, 0.0]]);
/// let y = rotary(&x, 5, RotaryPairs::Interleaved);
/// assert_eq!(y.to_vec(), [5f64.cos(), 5f64.sin(), 6f64.cos(), 6f64.sin()]);
/// ```
///
/// # Errors
///
/// If there are fewer than two dimensions, or the last size is odd.
#[twins]
pub fn try_rotary<A: TensorLike<Elem: Float>>(x: &A, offset: usize, pairs: RotaryPairs) -> Result<A, A::Error> {
    let (shape, at) = (x.shape(), Site::here("rotary"));
    let (length, width) = match shape[..] {
        [.., length, width] if width.is_multiple_of(2) => (length, width),
        _ => {
            let message = format!("rotary expects […, t, d] with an even d, but got {shape}");
            return Err(TensorError::Argument { message, at }.into());
        }
    };
    let half = width / 2;
    let angles = (0..length)
        .flat_map(|position| (0..half).map(move |pair| (offset + position) as f64 * rate(pair, width, BASE)));
    let angles: Vec<f64> = angles.collect();
    let table = |of: fn(f64) -> f64| angles.iter().map(|&angle| A::Elem::from_f64(of(angle))).collect();
    let columns: &[usize] = match pairs {
        RotaryPairs::Interleaved => &[length, half, 1],
        RotaryPairs::Halves => &[length, half],
    };
    let cos = x.constant(&Tensor::try_from_vec(table(f64::cos), columns)?);
    let sin = x.constant(&Tensor::try_from_vec(table(f64::sin), columns)?);
    // The pairs lie along the last dimension.
    let last = -1;
    let (apart, size) = match pairs {
        RotaryPairs::Interleaved => (x.try_unflatten(last, [half, 2])?, 1),
        RotaryPairs::Halves => (x.clone(), half as isize),
    };
    let (a, b) = (apart.try_narrow(last, 0, size)?, apart.try_narrow(last, size, size)?);
    let turned = [a.try_mul(&cos)?.try_sub(&b.try_mul(&sin)?)?, a.try_mul(&sin)?.try_add(&b.try_mul(&cos)?)?];
    try_cat(&turned, last)?.try_reshape(&shape)
}

#[cfg(test)]
mod tests {
    use wengert_autograd::gradcheck;
    use wengert_autograd::prelude::*;

    use super::*;

    #[test]
    fn products_of_rotated_vectors_depend_on_the_distance() {
        let (q, k) = (Tensor::<f64>::from([[0.3, -1.0, 0.7, 2.0]]), Tensor::from([[1.5, 0.2, -0.4, 0.9]]));
        for pairs in [RotaryPairs::Interleaved, RotaryPairs::Halves] {
            let product = |i: usize, j: usize| -> f64 { (rotary(&q, i, pairs) * rotary(&k, j, pairs)).sum(..).item() };
            assert!((product(3, 10) - product(20, 27)).abs() < 1e-13);
            assert!((product(3, 10) - product(3, 11)).abs() > 1e-3);
            let norm = |x: &Tensor<f64>| x.vector_norm(2.0, ..).item();
            assert!((norm(&rotary(&q, 9, pairs)) - norm(&q)).abs() < 1e-14);
        }
    }

    #[test]
    fn an_offset_continues_the_sequence() {
        let x = Tensor::<f64>::rand([2, 3, 6, 4], &mut Generator::new(0));
        for pairs in [RotaryPairs::Interleaved, RotaryPairs::Halves] {
            let whole = rotary(&x, 0, pairs);
            assert_eq!(rotary(&x.narrow(2, 4, 2), 4, pairs), whole.narrow(2, 4, 2));
            gradcheck(|[x]| rotary(&x, 2, pairs), [&x.select(0, 0).narrow(0, 0, 1)]).unwrap();
        }
        let learned = LearnedPositions::<f64>::new(6, 4, &mut Generator::new(1));
        let tape = Tape::new();
        let x = tape.constant(&x);
        let whole = learned.forward(x).value();
        assert_eq!(learned.forward_at(x.narrow(2, 4, 2), 4).value(), whole.narrow(2, 4, 2));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let learned = LearnedPositions::<f64>::new(6, 4, &mut Generator::new(1));
        let tape = Tape::new();
        let error = learned.try_forward_at(tape.constant(&Tensor::zeros([3, 4])), 4).unwrap_err().to_string();
        assert!(error.contains("start (4) + length (3) exceeds dimension size (6)"), "{error}");
        assert!(error.contains("in the layer LearnedPositions(6, 4)") && error.contains("position.rs"), "{error}");
        let error = try_rotary(&Tensor::<f64>::zeros([2, 3]), 0, RotaryPairs::Halves).unwrap_err().to_string();
        assert!(error.contains("an even d, but got [2, 3]"), "{error}");
        assert_eq!(sinusoidal_positions::<f32>(2, 3).shape(), &[2, 3]);
    }
}
