//! Transforms of the lines of a buffer. A line holds the numbers of one signal, contiguously.
//!
//! `rustfft` and `realfft` compute each line. Lines are independent, so the results do not depend on the number of threads.

use std::cell::RefCell;
use std::sync::Arc;

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
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
/// If memory cannot hold the result, or a contiguous copy of `x`.
pub(crate) fn transform<T: Float>(map: LineMap, x: &Tensor<T>, at: Site) -> Result<Tensor<T>, Error> {
    let shape = map.shape(x.shape());
    let mut out = Tensor::try_full(&shape, T::ZERO).map_err(|error| with_site(error, at))?;
    if out.numel() == 0 || x.numel() == 0 {
        return Ok(out);
    }
    let x = x.try_contiguous().map_err(|error| with_site(error, at))?;
    let source = x.as_slice().unwrap_or_default();
    T::float_instance::<Lines>()(map, source, out.make_mut());
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
    type Of<T: Float> = fn(LineMap, &[T], &mut [T]);

    fn f32() -> Self::Of<f32> {
        transform_lines::<f32>
    }

    fn f64() -> Self::Of<f64> {
        transform_lines::<f64>
    }
}

/// A floating-point type that has transforms. Each thread keeps the plans of `rustfft` for all lengths that it has used.
trait Real: Float + FftNum {
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

/// Applies `map` to each line of `source`, and writes the results to `out`. Uses several threads for large arrays. Both
/// buffers have at least one line.
fn transform_lines<T: Real>(map: LineMap, source: &[T], out: &mut [T]) {
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
    if threads < 2 {
        return transform_part(&plan, map, source, out);
    }
    let lines_per_thread = count.div_ceil(threads);
    let parts = source.chunks(lines_per_thread * source_len).zip(out.chunks_mut(lines_per_thread * out_len)).collect();
    each_part(parts, true, |_, (source, out)| transform_part(&plan, map, source, out));
}

/// Applies the plan to each line of `source`, and writes the results to `out`. Both buffers are the parts that one thread computes.
fn transform_part<T: Real>(plan: &Plan<T>, map: LineMap, source: &[T], out: &mut [T]) {
    let (source_len, out_len) = map.lengths();
    let pairs = source.chunks_exact(source_len).zip(out.chunks_exact_mut(out_len));
    let factor = <T as Scalar>::from_f64(map.factor);
    let zero = Complex::new(T::ZERO, T::ZERO);
    let mut spectrum = vec![zero; map.n];
    match plan {
        Plan::Complex(plan) => {
            let mut scratch = vec![zero; plan.get_inplace_scratch_len()];
            for (source, out) in pairs {
                pairs_to_complex(source, &mut spectrum);
                plan.process_with_scratch(&mut spectrum, &mut scratch);
                complex_to_pairs(&spectrum, factor, out);
            }
        }
        Plan::RealToHalf(plan) => {
            let (mut scratch, mut line) = (plan.make_scratch_vec(), plan.make_input_vec());
            spectrum.truncate(map.n / 2 + 1);
            spectrum.resize(map.n / 2 + 1, zero);
            for (source, out) in pairs {
                line.copy_from_slice(source);
                if let Err(error) = plan.process_with_scratch(&mut line, &mut spectrum, &mut scratch) {
                    unreachable!("the buffers have the lengths of the plan: {error}")
                }
                complex_to_pairs(&spectrum, factor, out);
            }
        }
        Plan::HalfToReal(plan) => {
            let mut scratch = plan.make_scratch_vec();
            spectrum.truncate(map.n / 2 + 1);
            spectrum.resize(map.n / 2 + 1, zero);
            for (source, out) in pairs {
                pairs_to_complex(source, &mut spectrum);
                // The result does not depend on the imaginary parts that are set to 0 here. But `realfft` returns an error if they are not
                // 0.
                spectrum[0].im = T::ZERO;
                if map.n.is_multiple_of(2) {
                    spectrum[map.n / 2].im = T::ZERO;
                }
                if let Err(error) = plan.process_with_scratch(&mut spectrum, out, &mut scratch) {
                    unreachable!("the buffers have the lengths of the plan: {error}")
                }
                if map.factor != 1.0 {
                    out.iter_mut().for_each(|out| *out = *out * factor);
                }
            }
        }
    }
}

fn pairs_to_complex<T: Real>(source: &[T], line: &mut [Complex<T>]) {
    for (number, pair) in line.iter_mut().zip(source.chunks_exact(2)) {
        *number = Complex::new(pair[0], pair[1]);
    }
}

fn complex_to_pairs<T: Real>(line: &[Complex<T>], factor: T, out: &mut [T]) {
    for (pair, number) in out.chunks_exact_mut(2).zip(line) {
        pair[0] = number.re * factor;
        pair[1] = number.im * factor;
    }
}
