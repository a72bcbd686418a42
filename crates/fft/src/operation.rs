//! The operation that records a map of lines on a tape, with the adjoint map as its derivative.
//!
//! As a map of real numbers, the adjoint of the forward transform is the inverse transform without its factor 1/n. For real signals, only
//! half of a spectrum is stored, and the other half mirrors it. So the adjoints of these transforms also weight the frequencies that have
//! a mirror image. (W. L. Briggs and V. E. Henson, "The DFT", 1995, chapter 4.)

use wengert_autograd::{BatchedCall, Call, Error, Operation, Var};
use wengert_tensor::ops::TensorLike as _;
use wengert_tensor::{Binary, Float, Shape, Site, Tensor, View};

use crate::kernel;
use crate::map::{LineMap, MapKind};

/// A map of lines (signals or spectra) on a tape, with the source line of the call.
pub(crate) struct RecordedMap {
    pub(crate) map: LineMap,
    pub(crate) at: Site,
}

impl<T: Float> Operation<T> for RecordedMap {
    fn name(&self) -> &'static str {
        match self.map.kind {
            MapKind::Forward => "fft",
            MapKind::Inverse => "ifft",
            MapKind::RealToHalf => "rfft",
            MapKind::HalfToReal => "irfft",
        }
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        Ok(self.map.shape(&inputs[0]))
    }

    fn run(&self, inputs: &[Tensor<T>]) -> Result<Tensor<T>, Error> {
        Ok(kernel::transform(self.map, &inputs[0], self.at)?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, _input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(adjoint(self.map, g, self.at))
    }

    fn jvp<'t>(&self, call: &Call<'t, T>, _input: usize, v: Var<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(record_map(self.map, v, self.at))
    }

    // A batch dimension only adds lines (signals or spectra), so the same map serves the batch.
    fn batch<'t>(&self, call: &BatchedCall<'t, T>) -> Option<Var<'t, T>> {
        call.value_of(record_map(self.map, call.batched(0), self.at))
    }
}

/// Records the application of `map` to `x`.
pub(crate) fn record_map<'t, T: Float>(map: LineMap, x: Var<'t, T>, at: Site) -> Result<Var<'t, T>, Error> {
    x.tape().try_apply(RecordedMap { map, at }, &[x])
}

/// Records the adjoint map of `map`, applied to `g`, which has the shape of the map's result.
fn adjoint<'t, T: Float>(map: LineMap, g: Var<'t, T>, at: Site) -> Result<Var<'t, T>, Error> {
    let with_kind = |kind| LineMap { kind, ..map };
    match map.kind {
        MapKind::Forward => record_map(with_kind(MapKind::Inverse), g, at),
        MapKind::Inverse => record_map(with_kind(MapKind::Forward), g, at),
        MapKind::RealToHalf => record_map(with_kind(MapKind::HalfToReal), weight_frequencies(map, g, 0.5, at)?, at),
        MapKind::HalfToReal => weight_frequencies(map, record_map(with_kind(MapKind::RealToHalf), g, at)?, 2.0, at),
    }
}

/// Multiplies half a spectrum by `mirrored_weight` at the frequencies that have a mirror image in the other half.
fn weight_frequencies<'t, T: Float>(
    map: LineMap,
    x: Var<'t, T>,
    mirrored_weight: f64,
    at: Site,
) -> Result<Var<'t, T>, Error> {
    let mirror_weights =
        x.tape().try_constant(map.mirror_weights(mirrored_weight))?.apply_view(View::Expand(x.shape()), at)?;
    x.apply_binary(Binary::Mul, &mirror_weights, at)
}
