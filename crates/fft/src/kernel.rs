//! Transforms of the lines of a buffer. A line holds the numbers of one signal, contiguously.
//!
//! `rustfft` and `realfft` compute each line. Lines are independent, so the results do not depend on the number of threads.

use std::cell::RefCell;
use std::sync::Arc;

use bytemuck::{Pod, cast_slice_mut};
use num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use wengert_tensor::instances::FloatInstances;
use wengert_tensor::{Error, Float, Scalar, Site, Tensor, each_part, num_threads};

use crate::map::{LineMap, MapKind};

/// The number of real numbers in a result from which several threads share its lines. A transform of 2^14 elements takes about 30 µs, and a
/// thread wakes in about 5 µs.
const MIN_PARALLEL: usize = 1 << 14;

/// Applies `map` to each line of `x`.
///
/// # Errors
///
/// If memory cannot hold the result, a contiguous copy of `x`, or the scratch memory of the transform.
pub(crate) fn transform<T: Float>(map: LineMap, x: &Tensor<T>, at: Site) -> Result<Tensor<T>, Error> {
    let shape = map.shape(x.shape());
    let mut out = Tensor::try_full(&shape, T::ZERO).map_err(|error| with_site(error, at))?;
    if out.numel() == 0 || x.numel() == 0 {
        return Ok(out);
    }
    let x = x.try_contiguous().map_err(|error| with_site(error, at))?;
    let source = x.as_slice().unwrap_or_default();
    T::float_instance::<Lines>()(map, source, out.make_mut()).map_err(|error| with_site(error, at))?;
    Ok(out)
}

/// Replaces the operation and the source line in an error of memory allocation by `at`, which names the operation that the user called.
fn with_site(error: Error, at: Site) -> Error {
    match error {
        Error::OutOfMemory { shape, dtype, .. } => Error::OutOfMemory { shape, dtype, at },
        Error::TooLarge { shape, dtype, .. } => Error::TooLarge { shape, dtype, at },
        other => other,
    }
}

/// A type that stands for the generic function [`transform_lines`], because a generic function is not a value. The method
/// `float_instance` chooses the instance for an element type.
struct Lines;

impl FloatInstances for Lines {
    type Of<T: Float> = fn(LineMap, &[T], &mut [T]) -> Result<(), Error>;

    // If the compiler inlined these methods into other crates, each program would compile all algorithms of `rustfft` again.
    #[inline(never)]
    fn f32() -> Self::Of<f32> {
        transform_lines::<f32>
    }

    #[inline(never)]
    fn f64() -> Self::Of<f64> {
        transform_lines::<f64>
    }
}

/// A floating-point type that has transforms. Each thread keeps the plans of `rustfft` for all lengths that it has used.
trait Real: Float + FftNum + Pod {
    fn with_planners<R>(f: impl FnOnce(&mut Planners<Self>) -> R) -> R;
}

struct Planners<T: FftNum> {
    complex: FftPlanner<T>,
    real: RealFftPlanner<T>,
}

impl<T: FftNum> Planners<T> {
    fn new() -> Self {
        Planners { complex: FftPlanner::new(), real: RealFftPlanner::new() }
    }
}

macro_rules! reals {
    ($($type:ty)*) => {$(
        impl Real for $type {
            fn with_planners<R>(f: impl FnOnce(&mut Planners<$type>) -> R) -> R {
                thread_local! {
                    static PLANNERS: RefCell<Planners<$type>> = RefCell::new(Planners::new());
                }
                let mut f = Some(f);
                let done = PLANNERS.try_with(|planners| f.take().map(|f| f(&mut planners.borrow_mut())));
                match (done, f) {
                    (Ok(Some(result)), _) => result,
                    // This thread is ending, and its plans were released. If a destructor now computes a transform, it gets new plans.
                    (_, Some(f)) => f(&mut Planners::new()),
                    (_, None) => unreachable!("the function has run or is left"),
                }
            }
        }
    )*};
}

reals!(f32 f64);

/// A plan of `rustfft` or `realfft` for the transform of one line (a signal or a spectrum).
enum Plan<T: FftNum> {
    Complex(Arc<dyn Fft<T>>),
    RealToHalf(Arc<dyn RealToComplex<T>>),
    HalfToReal(Arc<dyn ComplexToReal<T>>),
}

impl<T: Real> Plan<T> {
    /// Returns the number of real numbers that [`transform_part`] needs in addition to its operand and result: the scratch memory of
    /// the plan and, for transforms between real and complex numbers, a copy of one line.
    fn scratch_len(&self, map: LineMap) -> usize {
        match self {
            Plan::Complex(plan) => 2 * plan.get_inplace_scratch_len(),
            Plan::RealToHalf(plan) => map.lengths().0 + 2 * plan.get_scratch_len(),
            Plan::HalfToReal(plan) => map.lengths().0 + 2 * plan.get_scratch_len(),
        }
    }
}

/// Applies `map` to each line of `source`, and writes the results to `out`. Uses several threads for large arrays. Both
/// buffers have at least one line.
fn transform_lines<T: Real>(map: LineMap, source: &[T], out: &mut [T]) -> Result<(), Error> {
    let n = map.n;
    let plan = T::with_planners(|planners| match map.kind {
        MapKind::Forward => Plan::Complex(planners.complex.plan_fft(n, FftDirection::Forward)),
        MapKind::Inverse => Plan::Complex(planners.complex.plan_fft(n, FftDirection::Inverse)),
        MapKind::RealToHalf => Plan::RealToHalf(planners.real.plan_fft_forward(n)),
        MapKind::HalfToReal => Plan::HalfToReal(planners.real.plan_fft_inverse(n)),
    });
    let (source_len, out_len) = map.lengths();
    let count = out.len() / out_len;
    let threads = if out.len() < MIN_PARALLEL { 1 } else { num_threads().min(count) };
    // A tensor takes its memory from the pool. Fresh memory from the system would take longer than the transform of a long line.
    let scratch_len = plan.scratch_len(map);
    let mut scratch = Tensor::try_full([threads, scratch_len], T::ZERO)?;
    if threads < 2 {
        transform_part(&plan, map, source, scratch.make_mut(), out);
        return Ok(());
    }
    let lines_per_thread = count.div_ceil(threads);
    let operands = source.chunks(lines_per_thread * source_len).zip(out.chunks_mut(lines_per_thread * out_len));
    let mut left = scratch.make_mut();
    let parts = operands.map(|(source, out)| (source, split_off_front(&mut left, scratch_len), out)).collect();
    each_part(parts, true, |_, (source, scratch, out)| transform_part(&plan, map, source, scratch, out));
    Ok(())
}

/// Removes the first `len` elements from `left`, and returns them.
fn split_off_front<'a, T>(left: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let (front, rest) = std::mem::take(left).split_at_mut(len);
    *left = rest;
    front
}

/// Applies the plan to each line of `source`, and writes the results to `out`. Both buffers are the parts that one thread computes.
/// `scratch` has [`Plan::scratch_len`] numbers.
fn transform_part<T: Real>(plan: &Plan<T>, map: LineMap, source: &[T], scratch: &mut [T], out: &mut [T]) {
    let (source_len, out_len) = map.lengths();
    for (source, out) in source.chunks_exact(source_len).zip(out.chunks_exact_mut(out_len)) {
        match plan {
            Plan::Complex(plan) => {
                out.copy_from_slice(source);
                plan.process_with_scratch(complex_numbers(out), complex_numbers(scratch));
            }
            Plan::RealToHalf(plan) => {
                let (line, scratch) = scratch.split_at_mut(source_len);
                line.copy_from_slice(source);
                let done = plan.process_with_scratch(line, complex_numbers(out), complex_numbers(scratch));
                done.unwrap_or_else(|error| unreachable!("the buffers have the lengths of the plan: {error}"));
            }
            Plan::HalfToReal(plan) => {
                let (line, scratch) = scratch.split_at_mut(source_len);
                line.copy_from_slice(source);
                clear_unused_imaginary_parts(map.n, line);
                let done = plan.process_with_scratch(complex_numbers(line), out, complex_numbers(scratch));
                done.unwrap_or_else(|error| unreachable!("the buffers have the lengths of the plan: {error}"));
            }
        }
        if map.factor != 1.0 {
            let factor = <T as Scalar>::from_f64(map.factor);
            out.iter_mut().for_each(|out| *out = *out * factor);
        }
    }
}

/// Sets the imaginary parts in half the spectrum of a signal of `n` real numbers to 0 where the signal does not depend on them. `realfft`
/// returns an error if they are not 0.
fn clear_unused_imaginary_parts<T: Real>(n: usize, spectrum: &mut [T]) {
    spectrum[1] = T::ZERO;
    if n.is_multiple_of(2) {
        spectrum[n + 1] = T::ZERO;
    }
}

/// Returns pairs of real numbers, the real and the imaginary parts, as complex numbers.
fn complex_numbers<T: Real>(pairs: &mut [T]) -> &mut [Complex<T>] {
    cast_slice_mut(pairs)
}
