//! Dropout layers. On a training tape they set some elements or channels to 0; on any other tape they return their input.
//!
//! Each layer draws from the tape's generator in each forward pass, so that different layers and different passes drop different elements.

use std::panic::Location;

use wengert_autograd::{Error as TapeError, Var};
use wengert_macros::twins;
use wengert_tensor::ops::{Arithmetic as _, Dropout as _};
use wengert_tensor::{Float, Shape, Tensor};

use crate::error::raise;
use crate::layers::forward::{expect_rank, fork_generator, output_of};
use crate::layers::layer::Layer;
use crate::module::Module;
use crate::{Error, Result};

/// Defines dropout layers with a probability `p` and a constructor. Each row of the macro's input has a doc comment and the layer's name.
macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident $(<const $d:ident: usize>)?;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name $(<const $d: usize>)? {
            p: f64,
            created_at: &'static Location<'static>,
        }

        #[twins]
        impl $(<const $d: usize>)? $name $(<$d>)? {
            /// Returns a layer that drops each element or channel with the probability `p`. PyTorch's default is 0.5.
            ///
            /// # Errors
            ///
            /// If `p` is not from 0 to 1.
            pub fn try_new(p: f64) -> Result<Self> {
                check_probability(p)?;
                Ok($name { p, created_at: Location::caller() })
            }
        }

        impl<T: Float, $(const $d: usize)?> Module<T> for $name $(<$d>)? {}
    )*};
}

dropouts! {
    /// Dropout: on a training tape, sets each element to 0 with probability p, and divides the other elements by 1 - p. On any other tape,
    /// returns its input. PyTorch: `torch.nn.Dropout`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert::nn::{Dropout, Layer};
    ///
    /// let dropout = Dropout::new(0.5);
    /// let x = Tensor::<f32>::ones([100]);
    /// let tape = Tape::training(&mut Generator::new(0));
    /// let y = dropout.forward(tape.constant(&x)).value();
    /// assert!(y.iter().all(|y| y == 0.0 || y == 2.0));
    /// assert_eq!(dropout.forward(Tape::new().constant(&x)).value(), x); // evaluation
    /// ```
    Dropout;
    /// Dropout of channels, for inputs `[n, c, …]` of n examples with c channels. On a training tape, it sets each channel of each example
    /// to 0 with probability p, and divides the other channels by 1 - p. `D` is the number of dimensions after the channels: [`Dropout1d`],
    /// [`Dropout2d`], [`Dropout3d`].
    ///
    /// An input may also lack the batch dimension. (PyTorch's `Dropout2d` interprets `[c, h, w]` as `[n, c, l]`, and warns.)
    DropoutChannels<const D: usize>;
}

/// Dropout of the c channels of n sequences of length l, `[n, c, l]`. PyTorch: `torch.nn.Dropout1d`.
pub type Dropout1d = DropoutChannels<1>;

/// Dropout of the c channels of n images of height h and width w, `[n, c, h, w]`. PyTorch: `torch.nn.Dropout2d`.
pub type Dropout2d = DropoutChannels<2>;

/// Dropout of the c channels of n volumes of depth d, height h and width w, `[n, c, d, h, w]`. PyTorch: `torch.nn.Dropout3d`.
pub type Dropout3d = DropoutChannels<3>;

impl<T: Float> Layer<T> for Dropout {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, dropout(x, self.p), self.created_at, || describe("Dropout", self.p, x))
    }
}

impl<const D: usize> DropoutChannels<D> {
    /// Drops channels of `x` on a training tape; returns `x` itself on any other tape, and if the probability is 0.
    #[track_caller]
    fn drop_channels<'t, T: Float>(&self, x: Var<'t, T>) -> std::result::Result<Var<'t, T>, TapeError> {
        let rank = expect_rank("dropout", x, [D + 1, D + 2])?;
        match fork_generator(x.tape(), "Dropout", self.p != 0.0) {
            Some(mut generator) if self.p != 0.0 => {
                let channels = mask_shape(&x.shape(), rank - D);
                x.try_mul(&Tensor::try_full(channels, T::ONE)?.try_dropout(self.p, true, &mut generator)?)
            }
            _ => Ok(x),
        }
    }
}

impl<T: Float, const D: usize> Layer<T> for DropoutChannels<D> {
    #[track_caller]
    fn try_forward<'t>(&self, x: Var<'t, T>) -> Result<Var<'t, T>> {
        output_of(self, self.drop_channels(x), self.created_at, || describe(&format!("Dropout{D}d"), self.p, x))
    }
}

/// Returns the description of the dropout layer `name` with the probability `p`, and of its input `x`, for an error.
pub(super) fn describe<T: Float>(name: &str, p: f64, x: Var<'_, T>) -> String {
    format!("{name}(p={p}) on an input of shape {}", x.shape())
}

/// Returns an error unless the probability `p` of dropout is from 0 to 1.
pub(super) fn check_probability(p: f64) -> Result<()> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(Error::Setting { name: "p", value: p, expected: "a probability from 0 to 1" })
}

/// Panics at the caller's line if the probability `p` of dropout is not from 0 to 1.
#[track_caller]
pub(crate) fn expect_probability(p: f64) {
    if let Err(error) = check_probability(p) {
        raise(error);
    }
}

/// Returns the shape of the dropout mask: the first `dims` sizes of `shape`, then ones.
pub(super) fn mask_shape(shape: &Shape, dims: usize) -> Shape {
    shape.iter().enumerate().map(|(axis, &size)| if axis < dims { size } else { 1 }).collect()
}

/// Applies dropout with probability `p` on a training tape; returns `x` itself on any other tape, and if `p` is 0.
#[track_caller]
pub(crate) fn dropout<'t, T: Float>(x: Var<'t, T>, p: f64) -> std::result::Result<Var<'t, T>, TapeError> {
    match fork_generator(x.tape(), "Dropout", p != 0.0) {
        Some(mut generator) if p != 0.0 => x.try_dropout(p, true, &mut generator),
        _ => Ok(x),
    }
}

pub(super) use dropouts;
