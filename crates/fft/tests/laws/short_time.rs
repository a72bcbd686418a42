//! Checks laws of the short-time transforms and their windows: values of PyTorch, inverses, derivatives in both modes, errors.

use wengert_autograd::prelude::*;
use wengert_autograd::transforms::vmap;
use wengert_autograd::{Tape, gradcheck};
use wengert_fft::{
    Stft, bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window, prelude::*, try_hann_window,
};
use wengert_tensor::ops::PadMode;

fn sample<const N: usize>(shape: [usize; N]) -> Tensor<f64> {
    let weights = [0.7, 1.3, 2.1, 0.4];
    Tensor::from_fn(shape, |index| index.iter().zip(weights).map(|(&i, w)| (i as f64 + 0.3) * w).sum::<f64>().sin())
}

#[test]
fn symmetric_windows_have_the_values_of_pytorch() {
    let table = [
        (hann_window(5, false), [0.0, 0.5, 1.0, 0.5, 0.0]),
        (hamming_window(5, false), [0.08, 0.54, 1.0, 0.54, 0.08]),
        (blackman_window(5, false), [0.0, 0.34, 1.0, 0.34, 0.0]),
        (bartlett_window(5, false), [0.0, 0.5, 1.0, 0.5, 0.0]),
        (kaiser_window(5, false, 3.0), [0.204884756401, 0.726925530288, 1.0, 0.726925530288, 0.204884756401]),
    ];
    for (window, expected) in table {
        let expected = Tensor::<f64>::from(expected);
        assert!((&window - &expected).abs().amax(..).item() < 1e-12, "{window:?}, expected {expected:?}");
    }
    // The Bessel functions of 900 overflow. PyTorch returns NaN here; SciPy's `i0e` gives this quotient.
    let narrow = kaiser_window::<f64>(4, true, 900.0).to_vec();
    assert!((narrow[1] / 4.626568112016979e-53 - 1.0).abs() < 1e-10, "{narrow:?}");
    assert_eq!((narrow[2], narrow[3]), (1.0, narrow[1]));
    for periodic in [false, true] {
        assert_eq!(hann_window::<f32>(0, periodic).shape(), &[0]);
        assert_eq!(blackman_window::<f32>(1, periodic).to_vec(), [1.0]);
    }
}

/// Checks that frame t of the spectra is the transform of the 8 elements from element 5 t on, times the window.
#[test]
fn a_frame_is_the_transform_of_its_elements() {
    let (x, window) = (sample([23]), hann_window(8, true));
    let spectra = x.stft(&Stft::new(8).hop_length(5).window(&window).center(false));
    assert_eq!(spectra.shape(), &[5, 4, 2]);
    for frame in 0..4 {
        let expected = (x.narrow(0, 5 * frame, 8) * &window).rfft(None, -1, Default::default());
        let error = (spectra.select(1, frame as isize) - expected).abs().amax(..).item();
        assert!(error < 1e-14, "frame {frame}: {error}");
    }
}

#[test]
fn the_inverse_restores_the_signal() {
    let modes = [PadMode::Constant(0.5), PadMode::Reflect, PadMode::Replicate, PadMode::Circular];
    for (n, hop, len) in [(8, 2, 40), (9, 3, 31), (16, 4, 17), (5, 1, 12), (4, 4, 20)] {
        for mode in modes {
            for (normalized, onesided) in [(false, true), (true, true), (true, false)] {
                let options = Stft::new(n).hop_length(hop).window(&hamming_window(n, true)).pad_mode(mode);
                let options = options.normalized(normalized).onesided(onesided);
                let x = sample([2, 3, len]);
                let spectra = x.stft(&options);
                assert_eq!(spectra.shape()[..2], [2, 3]);
                let restored = spectra.istft(&options, Some(len));
                // The last frame may end before the end of the signal, where the inverse appends zeros.
                let covered = len.min((spectra.shape()[3] - 1) * hop + n - n / 2);
                let error = (restored - &x).narrow(2, 0, covered).abs().amax(..).item();
                assert!(error < 1e-12, "{n} {hop} {len} {mode:?} {normalized} {onesided}: {error}");
            }
        }
    }
}

#[test]
fn derivatives_agree_with_differences_and_vmap_with_a_loop() {
    let options = Stft::new(6).hop_length(2).window(&hamming_window(5, true));
    gradcheck(|[x]| x.stft(&options).square(), [&sample([2, 9])]).unwrap();
    gradcheck(|[z]| z.istft(&options, Some(7)).square(), [&sample([4, 4, 2])]).unwrap();
    let x = sample([3, 9]);
    let tape = Tape::new();
    let var = tape.var(&x);
    let batched = vmap(|x| x.stft(&options), var);
    assert_eq!(batched.value(), x.stft(&options));
}

#[test]
fn mistakes_are_errors_at_the_callers_line() {
    let (x, four) = (sample([9]), Stft::<f64>::new(4));
    let spectra = x.stft(&four);
    let refused = [
        (x.try_stft(&Stft::new(0)), "n_fft and hop_length must be positive, but got 0 and 0"),
        (x.try_stft(&Stft::new(3)), "n_fft and hop_length must be positive, but got 3 and 0"),
        (
            x.try_stft(&four.clone().window(&hann_window(5, true))),
            "The window must have the shape [win_length] with 1 to 4 elements, but has [5]",
        ),
        (
            x.try_stft(&four.clone().window(&Tensor::ones([2, 2]))),
            "The window must have the shape [win_length] with 1 to 4 elements, but has [2, 2]",
        ),
        (Tensor::scalar(1.0).try_stft(&four), "The signals must have at least one dimension."),
        (x.try_stft(&Stft::new(10).center(false)), "A frame of n_fft = 10 elements is longer than the signals of 9"),
        // PyTorch's message ends with "dimension 2 of input [1, 1, 9]", because its `stft` adds two dimensions. The rest is equal.
        (
            x.try_stft(&Stft::new(18)),
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (9, 9) at \
             dimension 1 of input [1, 9]",
        ),
        (
            spectra.select(0, 0).try_istft(&four, None),
            "Expected spectra […, 3, t, 2] with at least one frame, but got [10, 2]",
        ),
        (
            spectra.try_istft(&Stft::new(8), None),
            "Expected spectra […, 5, t, 2] with at least one frame, but got [3, 10, 2]",
        ),
        (
            spectra.narrow(1, 0, 0).try_istft(&four, None),
            "Expected spectra […, 3, t, 2] with at least one frame, but got [3, 0, 2]",
        ),
        (spectra.try_istft(&four, Some(0)), "The signals must have at least one element."),
        (
            spectra.try_istft(&four.clone().hop_length(1).window(&Tensor::full([4], 1e-6)), None),
            "The sum of the squared windows must be at least 1e-11, but its minimum is 3.00e-12. A smaller hop_length helps.",
        ),
        (
            spectra.try_istft(&four.clone().hop_length(4).window(&hann_window(4, true)), None),
            "The sum of the squared windows must be at least 1e-11, but its minimum is 0.00e0. A smaller hop_length helps.",
        ),
    ];
    for (result, sentence) in refused {
        let error = result.expect_err(sentence);
        assert_eq!(error.sentence(), sentence);
        assert!(error.to_string().contains("short_time.rs"), "{error}");
    }
    let vast = sample([1]).expand([1isize << 59]);
    for result in [
        vast.try_stft(&four),
        vast.try_stft(&four.clone().center(false)),
        vast.try_stft(&Stft::new(usize::MAX).hop_length(1)),
        spectra.try_istft(&four.clone().hop_length(usize::MAX), None),
        spectra.try_istft(&four, Some(usize::MAX)),
    ] {
        result.expect_err("too large");
    }
    try_hann_window::<f64>(usize::MAX, true).expect_err("too large");
}
