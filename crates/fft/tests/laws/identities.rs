//! Checks laws of the transforms: equality with the definition, derivatives of orders 1 and 2 in both modes, batches, sizes, threads.

use std::f64::consts::TAU;

use wengert_autograd::prelude::*;
use wengert_autograd::transforms::vmap;
use wengert_autograd::{Tape, gradcheck};
use wengert_fft::{ConvolveMode, Norm, complex, fftfreq, prelude::*, rfftfreq};
use wengert_tensor::{Error, set_num_threads};

const NORMS: [Norm; 3] = [Norm::Backward, Norm::Ortho, Norm::Forward];

fn sample<const N: usize>(shape: [usize; N]) -> Tensor<f64> {
    let weights = [0.7, 1.3, 2.1, 0.4];
    Tensor::from_fn(shape, |index| index.iter().zip(weights).map(|(&i, w)| (i as f64 + 0.3) * w).sum::<f64>().sin())
}

/// Returns the transform of the complex numbers `x`, computed by its definition with n² products. `sign` is the sign of the exponent.
fn naive_transform(x: &[f64], sign: f64) -> Vec<f64> {
    let n = x.len() / 2;
    let term = |j: usize, k: usize| {
        let (sin, cos) = (sign * TAU * (j * k % n) as f64 / n as f64).sin_cos();
        [x[2 * j] * cos - x[2 * j + 1] * sin, x[2 * j] * sin + x[2 * j + 1] * cos]
    };
    (0..n).flat_map(|k| (0..n).map(|j| term(j, k)).fold([0.0, 0.0], |sum, z| [sum[0] + z[0], sum[1] + z[1]])).collect()
}

fn assert_near(got: &Tensor<f64>, expected: &[f64], bound: f64, what: &str) {
    let got = got.to_vec();
    assert_eq!(got.len(), expected.len(), "{what}");
    for (got, expected) in got.iter().zip(expected) {
        assert!((got - expected).abs() <= bound, "{what}: {got}, expected {expected}");
    }
}

/// Checks transforms of different numbers of elements: powers of two, products of small primes, primes, and numbers for which `rustfft` has
/// a special algorithm.
#[test]
fn every_length_equals_the_definition() {
    for n in (1..=40).chain([64, 97, 100, 127, 128, 243, 256, 360, 509]) {
        let x = sample([n, 2]);
        // A sum of the definition has n terms that are at most 2. The fast transform has an error of a few log n roundings.
        let bound = 4.0 * n as f64 * (n as f64).sqrt() * f64::EPSILON;
        let forward = naive_transform(&x.to_vec(), -1.0);
        assert_near(&x.fft(None, -1, Norm::Backward), &forward, bound, &format!("fft of {n}"));
        let inverse: Vec<f64> = naive_transform(&x.to_vec(), 1.0);
        assert_near(&x.ifft(None, -1, Norm::Forward), &inverse, bound, &format!("ifft of {n}"));
        let real = sample([n]);
        let half = complex(&real, &Tensor::zeros([n])).fft(None, -1, Norm::Backward).narrow(0, 0, n / 2 + 1);
        assert_near(&real.rfft(None, -1, Norm::Backward), &half.to_vec(), bound, &format!("rfft of {n}"));
        for norm in NORMS {
            assert_near(&x.fft(None, -1, norm).ifft(None, -1, norm), &x.to_vec(), bound, &format!("both of {n}"));
            let back = real.rfft(None, -1, norm).irfft(Some(n), -1, norm);
            assert_near(&back, &real.to_vec(), bound, &format!("both of {n} real numbers"));
            let back = real.ihfft(None, -1, norm).hfft(Some(n), -1, norm);
            assert_near(&back, &real.to_vec(), bound, &format!("both of {n} numbers with symmetry"));
        }
    }
}

#[test]
fn derivatives_agree_with_differences() {
    for n in [1, 2, 3, 4, 5, 6] {
        for norm in NORMS {
            // The functions square the transform, so that the second derivative is not 0.
            gradcheck(|[x]| x.fft(None, 0, norm).square() * x, [&sample([n, 2])]).unwrap();
            gradcheck(|[x]| x.ifft(Some(4), -1, norm).square(), [&sample([n, 2])]).unwrap();
            gradcheck(|[x]| x.rfft(None, 0, norm).square(), [&sample([n, 2])]).unwrap();
            gradcheck(|[x]| x.irfft(Some(n), 1, norm).square(), [&sample([2, 4, 2])]).unwrap();
            gradcheck(|[x]| x.hfft(Some(n), 0, norm).square(), [&sample([n / 2 + 1, 2])]).unwrap();
            gradcheck(|[x]| x.ihfft(None, 0, norm).square(), [&sample([n])]).unwrap();
        }
    }
    gradcheck(|[x]| x.rfft2(Norm::Ortho).irfftn(Some(&[3, 4]), .., Norm::Ortho).square(), [&sample([3, 4])]).unwrap();
    for mode in [ConvolveMode::Full, ConvolveMode::Same, ConvolveMode::Valid] {
        let check = gradcheck(|[x, y]| x.fft_convolve(&y, mode).square(), [&sample([2, 5]), &sample([3])]);
        check.unwrap();
    }
    gradcheck(|[x, y]| x.complex_mul(&y.conj()).complex_abs(), [&sample([3, 2]), &sample([2])]).unwrap();
}

/// `hfftn` is `irfftn` of the conjugate, with the other normalization, and `ihfftn` is its inverse. Shapes and errors are PyTorch's.
#[test]
fn hermitian_transforms_along_several_dimensions_equal_their_definition() {
    let halves = sample([3, 4, 4, 2]);
    for (norm, other) in [(Norm::Backward, Norm::Forward), (Norm::Ortho, Norm::Ortho), (Norm::Forward, Norm::Backward)]
    {
        for sizes in [[3, 6], [5, 7], [2, 3], [1, 1]] {
            let spectrum = halves.hfftn(Some(&sizes), [0, -1], norm);
            assert_eq!(spectrum.shape(), &[sizes[0], 4, sizes[1]]);
            let expected = halves.conj().irfftn(Some(&sizes), [0, -1], other);
            assert_near(&spectrum, &expected.to_vec(), 1e-12, "hfftn");
            let back = spectrum.ihfftn(None, [0, -1], norm);
            assert_eq!(back.shape(), &[sizes[0], 4, sizes[1] / 2 + 1, 2]);
            assert_near(&back.hfftn(Some(&sizes), [0, -1], norm), &spectrum.to_vec(), 1e-12, "hfftn of ihfftn");
        }
    }
    // The default of the last size is 2 (m - 1). Fewer sizes than dimensions select the last dimensions.
    assert_eq!(halves.hfftn(None, .., Norm::Backward).shape(), &[3, 4, 6]);
    assert_eq!(halves.hfftn(Some(&[5]), .., Norm::Backward).shape(), &[3, 4, 5]);
    assert_eq!(halves.hfft2(Norm::Backward), halves.hfftn(None, [-2, -1], Norm::Backward));
    let real = sample([3, 4, 5]);
    assert_eq!(real.ihfftn(None, .., Norm::Backward).shape(), &[3, 4, 3, 2]);
    assert_eq!(real.ihfftn(Some(&[2, 6]), .., Norm::Backward).shape(), &[3, 2, 4, 2]);

    let x = sample([4, 4, 2]);
    let dims = |dims: &[isize]| wengert_tensor::Dims::from(dims);
    for (result, sentence) in [
        (x.try_hfftn(None, dims(&[]), Norm::Backward), "hfftn must transform at least one axis"),
        (x.try_ihfftn(None, dims(&[]), Norm::Backward), "ihfftn must transform at least one axis"),
        (x.try_hfftn(Some(&[]), .., Norm::Backward), "hfftn must transform at least one axis"),
        (x.try_hfftn(None, [0, -2], Norm::Backward), "FFT dims must be unique"),
        (
            x.try_hfftn(Some(&[4, 6]), 0, Norm::Backward),
            "When given, dim and shape arguments must have the same length",
        ),
        (
            x.try_hfftn(Some(&[4, 6, 2]), .., Norm::Backward),
            "Got shape with 3 values but input tensor only has 2 dimensions.",
        ),
        (x.try_hfftn(Some(&[4, 0]), .., Norm::Backward), "Invalid number of data points (0) specified"),
        (x.try_hfftn(Some(&[0, 4]), .., Norm::Backward), "Invalid number of data points (0) specified"),
        (sample([4, 1, 2]).try_hfftn(None, .., Norm::Backward), "Invalid number of data points (0) specified"),
        (
            x.try_hfftn(None, [0, 2], Norm::Backward),
            "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
        ),
    ] {
        assert_eq!(result.unwrap_err().sentence(), sentence);
    }
}

#[test]
fn vmap_equals_a_loop() {
    let x = sample([3, 4, 5, 2]);
    let batched = vmap(|x| x.fft(None, 0, Norm::Ortho).irfft(Some(6), -1, Norm::Backward).square(), &x);
    let loops = (0..3).map(|i| x.select(0, i).fft(None, 0, Norm::Ortho).irfft(Some(6), -1, Norm::Backward).square());
    assert_eq!(batched, stack(&loops.collect::<Vec<_>>(), 0));
    let slopes = vmap(|x| x.rfft(None, -1, Norm::Backward).square().sum(..).grad([x])[0], &sample([4, 6]));
    for (i, slope) in slopes.unbind(0).iter().enumerate() {
        let tape = Tape::new();
        let x = tape.var(&sample([4, 6]).select(0, i));
        let [expected] = x.rfft(None, -1, Norm::Backward).square().sum(..).grad([x]);
        assert_eq!(*slope, expected.value());
    }
    // The number of recorded nodes does not depend on the number of examples.
    let nodes = |examples: usize| {
        let tape = Tape::<f64>::new();
        vmap(|x| x.fft(None, -1, Norm::Backward), tape.var(&sample([examples, 4, 2])));
        tape.len()
    };
    assert_eq!(nodes(2), nodes(50));
}

#[test]
fn layouts_do_not_matter() {
    let x = sample([4, 6, 2]);
    let t = x.transpose(0, 1);
    let expected = t.contiguous().fft(None, 0, Norm::Backward);
    assert_eq!(t.fft(None, 0, Norm::Backward), expected);
    assert_eq!(x.fft(None, 1, Norm::Backward).transpose(0, 1), expected);
    let wide = x.narrow(0, 0, 1).expand([3, -1, -1]);
    assert_eq!(wide.rfft(None, 1, Norm::Backward), wide.contiguous().rfft(None, 1, Norm::Backward));
}

#[test]
fn convolutions_equal_the_definition() {
    for (n, m) in [(1, 1), (1, 4), (5, 3), (3, 5), (17, 9), (100, 30)] {
        let (x, y) = (sample([n]), sample([m]));
        let (a, b) = (x.to_vec(), y.to_vec());
        let element = |k: usize| (0..n).filter(|&j| k >= j && k - j < m).map(|j| a[j] * b[k - j]).sum::<f64>();
        let full: Vec<f64> = (0..n + m - 1).map(element).collect();
        let bound = 16.0 * (n + m) as f64 * f64::EPSILON;
        assert_near(&x.fft_convolve(&y, ConvolveMode::Full), &full, bound, "full");
        let start = (m - 1) / 2;
        assert_near(&x.fft_convolve(&y, ConvolveMode::Same), &full[start..start + n], bound, "same");
        let valid = &full[n.min(m) - 1..n.max(m)];
        assert_near(&x.fft_convolve(&y, ConvolveMode::Valid), valid, bound, "valid");
    }
    let signals = sample([2, 1, 5]).fft_convolve(&sample([3, 4]), ConvolveMode::Full);
    assert_eq!(signals.shape(), &[2, 3, 8]);
}

#[test]
fn frequencies_and_shifts_equal_their_definition() {
    assert_eq!(fftfreq::<f64>(4, 0.25).to_vec(), [0.0, 1.0, -2.0, -1.0]);
    assert_eq!(rfftfreq::<f32>(5, 2.0).to_vec(), [0.0, 0.1, 0.2]);
    assert_eq!(fftfreq::<f64>(0, 1.0).shape(), &[0]);
    for n in 0..6usize {
        let x = Tensor::<f64>::arange(n);
        let expected: Vec<f64> = (0..n).map(|i| ((i + n.div_ceil(2)) % n) as f64).collect();
        assert_eq!(x.fftshift(0).to_vec(), expected, "{n}");
        assert_eq!(x.fftshift(..).ifftshift(..), x, "{n}");
    }
    let x = Tensor::from([[0, 1, 2], [3, 4, 5]]);
    assert_eq!(x.fftshift(..), Tensor::from([[5, 3, 4], [2, 0, 1]]));
    assert_eq!(x.fftshift(1), Tensor::from([[2, 0, 1], [5, 3, 4]]));
    assert!(x.try_fftshift(2).is_err());
    gradcheck(|[x]| x.fftshift(..).square(), [&sample([3, 2])]).unwrap();
}

#[test]
fn mistakes_are_errors_at_the_callers_line() {
    let (x, line) = (sample([3]), line!());
    let error = x.try_fft(None, -1, Norm::Backward).unwrap_err();
    assert_eq!(error.sentence(), "Tensor must have a last dimension of size 2");
    assert!((line..line + 3).contains(&error.site().location.line()), "{error}");
    let error = sample([2, 3]).try_fft_convolve(&sample([3, 4]), ConvolveMode::Full).unwrap_err();
    assert!(matches!(error, Error::Broadcast(..)) && error.site().location.file() == file!(), "{error}");
    assert!(sample([0]).try_fft_convolve(&sample([3]), ConvolveMode::Full).is_err());
    assert!(sample([2, 3]).try_complex_mul(&sample([2])).is_err());
    assert!(wengert_fft::try_complex(&sample([2]), &sample([3])).is_err());
}

#[test]
fn absurd_sizes_are_errors() {
    let x = sample([3, 2]);
    for n in [usize::MAX, isize::MAX as usize, 1 << 60, 1 << 48] {
        assert!(x.try_fft(Some(n), 0, Norm::Backward).is_err(), "{n}");
        assert!(x.try_rfft(Some(n), 0, Norm::Backward).is_err(), "{n}");
        assert!(x.try_irfft(Some(n), 0, Norm::Backward).is_err(), "{n}");
        let tape = Tape::new();
        let recorded = tape.var(&x).try_irfft(Some(n), 0, Norm::Backward);
        assert!(recorded.map_or(true, |y| y.try_value().is_err()), "{n}");
    }
    let wide = Tensor::<f64>::zeros([1]).expand([1usize << 45]);
    assert!(wide.try_fft_convolve(&wide, ConvolveMode::Full).is_err());
    assert!(wengert_fft::try_fftfreq::<f32>(usize::MAX, 1.0).is_err());
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let x = sample([37, 1024, 2]);
    let run = |threads| {
        set_num_threads(threads);
        let z = x.fft(None, 1, Norm::Ortho);
        (z.to_vec(), z.irfft(None, 0, Norm::Backward).to_vec())
    };
    let expected = run(1);
    for threads in [2, 3, 16] {
        assert!(run(threads) == expected, "{threads} threads");
    }
}

/// Checks that the gradient check finds a wrong derivative: half of this transform is recorded as a constant.
#[test]
fn a_wrong_derivative_is_found() {
    fn half(x: Var<'_, f64>) -> Var<'_, f64> {
        let y = x.rfft(None, 0, Norm::Backward);
        y * 0.5 + y.detach() * 0.5
    }
    assert!(gradcheck(|[x]| half(x), [&sample([5])]).is_err());
}

/// A value that computes a transform when it is dropped, and sends the result to the test.
struct AtTheEnd(std::sync::mpsc::Sender<Vec<f64>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        self.0.send(sample([6, 2]).fft(None, 0, Norm::Backward).to_vec()).expect("the test receives");
    }
}

thread_local! {
    static EARLY: std::cell::RefCell<Option<AtTheEnd>> = const { std::cell::RefCell::new(None) };
}

/// Checks a transform in the destructor of a thread-local variable. The plans of the thread may be destroyed before this variable.
#[test]
fn a_thread_local_variable_may_transform_when_it_is_dropped() {
    let (sender, results) = std::sync::mpsc::channel();
    let run = move || {
        EARLY.set(Some(AtTheEnd(sender)));
        sample([6, 2]).fft(None, 0, Norm::Backward).to_vec()
    };
    let expected = std::thread::spawn(run).join().expect("the thread ends");
    assert_eq!(results.recv().expect("the destructor ran to its end"), expected);
}
