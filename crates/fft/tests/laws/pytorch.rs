//! Compares the transforms, their first and second derivatives and their errors with PyTorch, by the cases that `tools/fft_cases.py` wrote.

use serde_json::Value;
use wengert_autograd::prelude::*;
use wengert_autograd::{Error, Tape, Var};
use wengert_fft::{Norm, Stft, prelude::*};
use wengert_fft::{bartlett_window, blackman_window, hamming_window, hann_window, kaiser_window};
use wengert_tensor::ops::PadMode;
use wengert_tensor::{Dims, Float};

/// The bound of the difference from PyTorch's values. The file has twelve digits of each value, which gives a relative error of up to
/// 5e-12. The sums have at most 48 terms of at most 2, and a second derivative is a sum of these sums.
const TOLERANCE: f64 = 1e-9;

fn tensor(value: &Value) -> Tensor<f64> {
    let numbers = |key: &str| value[key].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>();
    let shape: Vec<usize> = numbers("shape").iter().map(|&size| size as usize).collect();
    Tensor::try_from_vec(numbers("data"), &shape[..]).unwrap()
}

/// Calls the transform of a case on an array.
macro_rules! call {
    ($x:expr, $case:expr) => {{
        let (x, arguments) = ($x, &$case["arguments"]);
        let n = arguments["n"].as_u64().map(|n| n as usize);
        let dim = arguments["dim"].as_i64().unwrap_or(-1) as isize;
        let norm: Norm = arguments["norm"].as_str().unwrap_or("backward").parse().unwrap();
        let sizes: Option<Vec<usize>> =
            arguments["s"].as_array().map(|list| list.iter().map(|n| n.as_u64().unwrap() as usize).collect());
        let sizes = sizes.as_deref();
        let dims = match arguments["dim"].as_array() {
            Some(list) => Dims::from(&list.iter().map(|dim| dim.as_i64().unwrap() as isize).collect::<Vec<_>>()[..]),
            None => Dims::from(..),
        };
        match $case["name"].as_str().unwrap() {
            "fft" => x.try_fft(n, dim, norm),
            "ifft" => x.try_ifft(n, dim, norm),
            "rfft" => x.try_rfft(n, dim, norm),
            "irfft" => x.try_irfft(n, dim, norm),
            "hfft" => x.try_hfft(n, dim, norm),
            "ihfft" => x.try_ihfft(n, dim, norm),
            "fftn" => x.try_fftn(sizes, dims, norm),
            "ifftn" => x.try_ifftn(sizes, dims, norm),
            "rfftn" => x.try_rfftn(sizes, dims, norm),
            "irfftn" => x.try_irfftn(sizes, dims, norm),
            "fft2" => x.try_fft2(norm),
            "ifft2" => x.try_ifft2(norm),
            "rfft2" => x.try_rfft2(norm),
            "irfft2" => x.try_irfft2(norm),
            "hfftn" => x.try_hfftn(sizes, dims, norm),
            "ihfftn" => x.try_ihfftn(sizes, dims, norm),
            "hfft2" => x.try_hfft2(norm),
            "ihfft2" => x.try_ihfft2(norm),
            "stft" => x.try_stft(&short_time(arguments)),
            "istft" => x.try_istft(&short_time(arguments), arguments["length"].as_u64().map(|n| n as usize)),
            other => panic!("no transform {other}"),
        }
    }};
}

/// Returns the settings of a short-time transform.
fn short_time<T: Float>(arguments: &Value) -> Stft<T> {
    let size = |key: &str| arguments[key].as_u64().map(|n| n as usize);
    let n_fft = size("n_fft").unwrap();
    let mut options = Stft::new(n_fft);
    let len = size("win_length").unwrap_or(n_fft);
    let window = arguments["window"].as_str().map(|name| match name {
        "hann_window" => hann_window(len, true),
        "hamming_window" => hamming_window(len, true),
        "blackman_window" => blackman_window(len, true),
        "bartlett_window" => bartlett_window(len, true),
        "kaiser_window" => kaiser_window(len, true, 12.0),
        other => panic!("no window {other}"),
    });
    if let Some(window) = window {
        options = options.window(&window);
    }
    if let Some(hop_length) = size("hop_length") {
        options = options.hop_length(hop_length);
    }
    let pad_mode = match arguments["pad_mode"].as_str().unwrap_or("reflect") {
        "constant" => PadMode::Constant(0.0),
        "reflect" => PadMode::Reflect,
        "replicate" => PadMode::Replicate,
        "circular" => PadMode::Circular,
        other => panic!("no padding {other}"),
    };
    let flag = |key: &str, default: bool| arguments[key].as_bool().unwrap_or(default);
    options
        .pad_mode(pad_mode)
        .center(flag("center", true))
        .normalized(flag("normalized", false))
        .onesided(flag("onesided", true))
}

fn assert_close(what: &str, got: &Tensor<f64>, expected: &Tensor<f64>) {
    assert_eq!(got.shape(), expected.shape(), "{what}");
    for (got, expected) in got.iter().zip(expected.iter()) {
        assert!((got - expected).abs() < TOLERANCE, "{what}: {got}, but PyTorch gives {expected}");
    }
}

#[test]
fn values_gradients_and_errors_are_pytorchs() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../cases.json")).unwrap();
    assert!(cases.len() > 150, "only {} cases", cases.len());
    for case in &cases {
        let what = format!("{} {} of {}", case["name"], case["arguments"], case["input"]["shape"]);
        let x = tensor(&case["input"]);
        if let Some(sentence) = case["error"].as_str() {
            assert_eq!(call!(&x, case).expect_err(&what).sentence(), sentence, "{what}");
            let tape = Tape::new();
            let Err(Error::Tensor(error)) = call!(tape.var(&x), case) else { panic!("{what} is recorded") };
            assert_eq!(error.sentence(), sentence, "{what}");
            continue;
        }
        assert_close(&what, &call!(&x, case).unwrap(), &tensor(&case["output"]));
        let tape = Tape::new();
        let var = tape.var(&x);
        let y: Var<f64> = call!(var, case).unwrap();
        assert_close(&format!("{what}, recorded"), &y.value(), &tensor(&case["output"]));
        let weights = tensor(&case["weights"]);
        let [slope] = (y * &weights).sum(..).grad([var]);
        assert_close(&format!("{what}, gradient"), &slope.value(), &tensor(&case["gradient"]));
        let [slope] = (y.square() * weights).sum(..).grad([var]);
        let [second] = (slope * tensor(&case["direction"])).sum(..).grad([var]);
        assert_close(&format!("{what}, second derivative"), &second.value(), &tensor(&case["second"]));
        // Compares again in single precision, whose rounding error is 2^29 times larger.
        let single = call!(x.cast::<f32>(), case).unwrap().cast::<f64>();
        let error = (single - tensor(&case["output"])).abs();
        assert!(error.numel() == 0 || error.amax(..).item() < 1e-5, "{what}, in f32");
    }
}
