//! 29. A fit in the spectrum: the tones of a bell under a strong drift, by gradients through a Fourier transform.
//!
//! The recording is a sum of three fading tones and a slow drift that is much louder. In the spectrum the drift is at low frequencies and
//! the tones are at others. So the loss compares spectra, and only in the band of the tones. The gradient goes through the transform to the
//! frequencies, which become far more exact than the distance between two frequencies of the spectrum.

use std::f64::consts::TAU;
use std::process::ExitCode;

use wengert::autograd::transforms::{infer, ravel};
use wengert::fft::{Norm, prelude::*, rfftfreq};
use wengert::prelude::*;
use wengert_course::{Chart, Options, Result, row_svg, run};

/// The number of samples of the recording.
const SAMPLES: usize = 512;
/// The number of samples per second.
const RATE: f64 = 64.0;
/// The band of the tones, in Hz.
const BAND: std::ops::Range<f64> = 4.0..16.0;
/// The tones: the frequency in Hz, and the rate of exponential decay per second.
const TONES: [(f64, f64); 3] = [(5.37, 0.25), (7.81, 0.5), (12.24, 0.4)];

fn main() -> ExitCode {
    let options = Options::new("29_spectrum", "The tones of a bell under a strong drift");
    run(options.count("steps", 300, "Number of steps of the optimiser"), spectrum)
}

/// Returns the sum `[SAMPLES]` of fading tones. The arguments have the shape `[tones]`, and `fading` is the logarithm
/// of the decay rate per second.
fn tones<'t>([frequency, fading, cosine, sine]: [Var<'t, f64>; 4]) -> Var<'t, f64> {
    let t = Tensor::<f64>::arange(SAMPLES) / RATE;
    let angle = frequency.unsqueeze(1) * &t * TAU; // [tones, SAMPLES]
    let level = (fading.unsqueeze(1).exp() * &t * -1.0).exp();
    (level * (cosine.unsqueeze(1) * angle.cos() + sine.unsqueeze(1) * angle.sin())).sum(0)
}

/// Returns the sum of a drift, which is a random walk, and a little noise.
fn disturbance(generator: &mut Generator) -> Tensor<f64> {
    let steps = Tensor::<f64>::randn([SAMPLES], generator);
    steps.cumsum(0) * 0.3 + Tensor::randn([SAMPLES], generator) * 0.1
}

/// Returns the frequencies of the three highest peaks of a spectrum within the band, in ascending order.
fn peaks(power: &Tensor<f64>, frequencies: &Tensor<f64>) -> Tensor<f64> {
    let mut rest = power.to_vec();
    let found = TONES.map(|_| {
        let inside = |&k: &usize| BAND.contains(&frequencies.to_vec()[k]);
        let best = (0..rest.len()).filter(inside).max_by(|&i, &j| rest[i].total_cmp(&rest[j])).unwrap_or(0);
        rest[best.saturating_sub(6)..best + 7].fill(0.0);
        frequencies.to_vec()[best]
    });
    Tensor::from(found).sort(0, false).0
}

fn spectrum(options: &Options) -> Result {
    let generator = &mut Generator::new(options.seed());
    let column = |f: fn(&(f64, f64)) -> f64| Tensor::from(TONES.each_ref().map(f));
    let truth = [
        column(|tone| tone.0),
        column(|tone| tone.1.ln()),
        Tensor::from([0.6, -0.8, 0.9]),
        Tensor::from([0.5, 0.4, -0.6]),
    ];
    let (truth, layout) = ravel(&truth); // four tensors as one vector
    let clean = infer(|truth| tones(layout.unravel(&truth)), &truth);
    let recording = &clean + disturbance(generator);

    let frequencies = rfftfreq::<f64>(SAMPLES, 1.0 / RATE);
    let measured = recording.rfft(None, -1, Norm::Ortho); // [SAMPLES / 2 + 1, 2]
    let band = frequencies.map(|f| f64::from(u8::from(BAND.contains(&f)))).unsqueeze(1);

    let start = peaks(&measured.complex_abs(), &frequencies);
    let guess = [start.clone(), Tensor::full([3], -1.0), Tensor::full([3], 0.1), Tensor::full([3], 0.1)];
    let mut theta = Parameter::new(ravel(&guess).0);
    let mut adam = Adam::new(0.02);
    let steps: usize = options.get("steps");
    for step in 0..=steps {
        let (loss, gradients) = Tape::new().value_and_gradients(|tape| {
            let spectrum = tones(layout.unravel(&tape.parameter(&theta))).rfft(None, -1, Norm::Ortho);
            ((spectrum - &measured) * &band).square().sum(..)
        });
        if step % (steps / 5).max(1) == 0 {
            println!("step {step:>3}   error in the band {loss:.3}");
        }
        adam.step(&mut theta, &gradients);
    }

    let [found, ..] = layout.unravel(&theta.value);
    println!("highest bin   fitted   truth   (bins are {} Hz apart)", RATE / SAMPLES as f64);
    for ((bin, found), (truth, _)) in start.iter().zip(found.iter()).zip(TONES) {
        println!("{bin:>8.3} Hz {found:>8.3} {truth:>7.2}");
    }
    draw(options, &recording, &clean, &infer(|theta| tones(layout.unravel(&theta)), &theta.value))
}

/// Draws the spectra, and a part of the signals.
fn draw(options: &Options, recording: &Tensor<f64>, clean: &Tensor<f64>, fitted: &Tensor<f64>) -> Result {
    let frequencies = rfftfreq::<f64>(SAMPLES, 1.0 / RATE);
    let level = |signal: &Tensor<f64>| {
        let levels = signal.rfft(None, -1, Norm::Ortho).complex_abs();
        frequencies.to_vec().into_iter().zip(levels.to_vec()).filter(|(f, _)| *f <= 18.0).collect::<Vec<_>>()
    };
    let chart = Chart::new("the spectrum", "Hz", "level").ranges(0.0..18.0, 0.0..8.0);
    let chart = chart.line("recording", 7, level(recording)).line("fitted", 1, level(fitted));
    let times = (0..SAMPLES / 4).map(|k| k as f64 / RATE);
    let wave = |signal: &Tensor<f64>| times.clone().zip(signal.to_vec()).collect::<Vec<_>>();
    let waves = Chart::new("two seconds", "s", "").line("recording", 7, wave(recording));
    let waves = waves.line("fitted", 1, wave(fitted)).dashes("truth", 0, wave(clean));
    options.write("spectrum.svg", row_svg(&[chart, waves])?)
}
