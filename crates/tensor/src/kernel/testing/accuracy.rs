//! Measures the errors of elementwise functions of one and two operands, in units in the last place (ulp). An ulp is the distance from a
//! number to the next larger number of its type.
//!
//! Results in f64 are compared with values computed with 60 digits. The script `functions.py` writes these values to
//! `reference/functions.csv`, in the script's folder. Results in f32 are compared with results in f64, over all exponents and signs. An
//! error of the f64 result is at most 14 billionths of an f32 ulp. It is larger for `trigamma` (a hundredth) and near the zeros of `lgamma`
//! and `digamma` at negative arguments. The bounds of the errors are promises: `docs/accuracy.md` lists them, and a test keeps that list
//! equal to the one here.

use std::fmt::Write;
use std::fs;

use crate::ops::TensorLike;
use crate::{Binary, Element, Site, Tensor, Unary};

/// The maximum errors of each function, in ulp. The first is the error of the f32 result against the f64 result. The second is the error of
/// the f64 result against the correctly rounded result.
const BOUNDS: &[(&str, f64, f64)] = &[
    ("exp", 2.0, 1.0),
    ("exp2", 2.0, 1.0),
    ("expm1", 2.0, 2.0),
    ("log", 2.0, 1.0),
    ("log2", 2.0, 2.0),
    ("log10", 2.0, 2.0),
    ("log1p", 2.0, 1.0),
    ("sin", 2.0, 1.0),
    ("cos", 2.0, 1.0),
    ("tan", 2.0, 1.0),
    ("asin", 2.0, 1.0),
    ("acos", 2.0, 1.0),
    ("atan", 2.0, 1.0),
    ("sinh", 2.0, 1.0),
    ("cosh", 2.0, 1.0),
    ("tanh", 2.0, 2.0),
    ("asinh", 1.0, 1.0),
    ("acosh", 1.0, 1.0),
    ("atanh", 1.0, 1.0),
    ("sigmoid", 3.0, 1.0),
    ("sinc", 1.0, 2.0),
    ("logit", 1.0, 1.0),
    ("erf", 2.0, 2.0),
    ("erfc", 4.0, 3.0),
    ("erfinv", 1.0, 1.0),
    ("lgamma", 1.0, 3.0),
    ("digamma", 1.0, 6.0),
    ("trigamma", 1.0, NINE_DIGITS),
    ("pow", 2.0, 1.0),
    ("atan2", 2.0, 1.0),
    ("hypot", 1.0, 1.0),
    ("xlogy", 2.0, 1.0),
    ("xlog1py", 2.0, 1.0),
    ("zeta", 1.0, 5.0),
    ("ndtr", 5.0, 7.0),
];

/// Returns the bounds of the named function's errors in f32 and f64, in ulp, if they are listed.
pub(crate) fn bounds(name: &str) -> Option<(f64, f64)> {
    BOUNDS.iter().find(|bound| bound.0 == name).map(|&(_, narrow, wide)| (narrow, wide))
}

/// The bound, in ulp, for functions with PyTorch's accuracy of nine digits: 10⁻⁹ in units of 2⁻⁵², rounded up.
const NINE_DIGITS: f64 = 4.6e6;

/// Functions that have zeros at negative arguments, between two floating-point numbers. At negative arguments, the errors of f64 results of
/// magnitude below 1 are measured in ulps of the number 1.
const WITH_NEGATIVE_ZEROS: &[&str] = &["lgamma", "digamma"];

/// Returns a sample of all f32 bit patterns. The sample is denser between -20 and 20. It includes the multiples of 1/8 from -32 to 32, and
/// the numbers next to these multiples.
fn sample() -> Vec<f32> {
    let mut points: Vec<f32> = (0..=u32::MAX).step_by(40_009).map(f32::from_bits).collect();
    points.extend((-20_000..=20_000).map(|i| i as f32 * 1e-3));
    for i in -256..=256 {
        let x = i as f32 / 8.0;
        points.extend([x, x.next_up(), x.next_down()]);
    }
    // The arguments at which `erfc` has its largest errors: 3.53 ulp with fused multiplication and addition, and 3.68 ulp without.
    points.extend([1.541_311_1, 7.510_146_6]);
    points.extend([f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0, -0.0, f32::MIN_POSITIVE, f32::MAX, f32::MIN]);
    points
}

/// Returns the distance between `got` and `exact` in ulp. It is 0 if both are NaN, and infinite if only one is. `unit` is the ulp of a
/// number of the size of `exact`. Both numbers are clamped to the range from -`beyond` to `beyond`. For f32, `beyond` is the power of two
/// after the largest finite number, so that an overflow is a distance of few ulp. For f64, it is infinity.
fn distance(got: f64, exact: f64, unit: f64, beyond: f64) -> f64 {
    if got.is_nan() || exact.is_nan() {
        return if got.is_nan() && exact.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let finite = |x: f64| x.clamp(-beyond, beyond);
    if got == exact { 0.0 } else { (finite(got) - finite(exact)).abs() / unit }
}

fn ulps_f32(got: f32, exact: f64) -> f64 {
    let size = (exact.abs() as f32).min(f32::MAX.next_down());
    let unit = f64::from(size.next_up()) - f64::from(size);
    distance(f64::from(got), exact, unit, 2f64.powi(128))
}

fn ulps_f64(got: f64, exact: f64) -> f64 {
    let size = exact.abs().min(f64::MAX.next_down());
    distance(got, exact, size.next_up() - size, f64::INFINITY)
}

fn site() -> Site {
    Site::here("accuracy")
}

fn unary<T: Element>(op: Unary, x: &[T]) -> Option<Vec<T>> {
    Tensor::from(x.to_vec()).apply_unary(op, site()).ok().map(|z| z.to_vec())
}

fn binary<T: Element>(op: Binary, x: &[T], y: &[T]) -> Option<Vec<T>> {
    Tensor::from(x.to_vec()).apply_binary(op, &Tensor::from(y.to_vec()), site()).ok().map(|z| z.to_vec())
}

/// The largest error of a function, in units in the last place. `place` has the arguments, the result and the exact value.
#[derive(Clone, Debug, Default)]
struct Worst {
    ulps: f64,
    place: String,
}

impl Worst {
    fn add(&mut self, ulps: f64, place: impl FnOnce() -> String) {
        if ulps > self.ulps {
            *self = Worst { ulps, place: place() };
        }
    }
}

/// Returns the largest error of the named function in f32.
fn worst_f32(name: &str, x: &[f32]) -> Worst {
    let mut worst = Worst::default();
    let wide = |x: &[f32]| -> Vec<f64> { x.iter().map(|&x| f64::from(x)).collect() };
    if let Some(&op) = Unary::ALL.iter().find(|op| op.name() == name) {
        let (got, exact) = (unary(op, x).unwrap(), unary(op, &wide(x)).unwrap());
        for i in 0..x.len() {
            worst.add(ulps_f32(got[i], exact[i]), || format!("{:e}: {:e}, not {:e}", x[i], got[i], exact[i]));
        }
        return worst;
    }
    let op = *Binary::ALL.iter().find(|op| op.name() == name).unwrap();
    // Makes pairs from the sample, and pairs of numbers near 1 with exponents that give finite results.
    let mut y = x.to_vec();
    y.rotate_left(12_345);
    let mut x = x.to_vec();
    for i in 0..20_000 {
        let angle = i as f32;
        x.push(1.0 + 0.9 * (angle * 0.7).sin());
        y.push(30.0 * (angle * 1.3).cos());
    }
    let (got, exact) = (binary(op, &x, &y).unwrap(), binary(op, &wide(&x), &wide(&y)).unwrap());
    for i in 0..x.len() {
        let place = || format!("{:e}, {:e}: {:e}, not {:e}", x[i], y[i], got[i], exact[i]);
        worst.add(ulps_f32(got[i], exact[i]), place);
    }
    worst
}

/// Returns the largest error of the named function in f64, over the rows of `reference`, which has exact values.
fn worst_f64(name: &str, reference: &str) -> Worst {
    let mut worst = Worst::default();
    let mut count = 0;
    for line in reference.lines() {
        let mut fields = line.split(',');
        if fields.next() != Some(name) {
            continue;
        }
        count += 1;
        let numbers: Vec<f64> = fields.map(|field| field.parse().unwrap()).collect();
        let (arguments, exact) = (&numbers[..numbers.len() - 1], numbers[numbers.len() - 1]);
        let got = match *arguments {
            [x] => unary(*Unary::ALL.iter().find(|op| op.name() == name).unwrap(), &[x]),
            [x, y] => binary(*Binary::ALL.iter().find(|op| op.name() == name).unwrap(), &[x], &[y]),
            _ => None,
        };
        let got = got.unwrap()[0];
        let mut ulps = ulps_f64(got, exact);
        if WITH_NEGATIVE_ZEROS.contains(&name) && arguments[0] < 0.0 && exact.abs() < 1.0 {
            ulps = (got - exact).abs() / f64::EPSILON;
        }
        worst.add(ulps, || format!("{arguments:?}: {got:e}, not {exact:e}"));
    }
    assert!(count > 0, "{name} has no reference values");
    worst
}

#[test]
fn every_function_is_within_its_bounds() {
    let reference = include_str!("reference/functions.csv");
    let x = sample();
    let mut named: Vec<&str> = reference.lines().filter_map(|line| line.split(',').next()).collect();
    named.dedup();
    assert_eq!(named, BOUNDS.iter().map(|bound| bound.0).collect::<Vec<_>>(), "bounds and reference values");
    for &(name, narrow, wide) in BOUNDS {
        let (in_f32, in_f64) = (worst_f32(name, &x), worst_f64(name, reference));
        println!("{name:10} {:8.3} {:12.3}   {}   {}", in_f32.ulps, in_f64.ulps, in_f32.place, in_f64.place);
        assert!(in_f32.ulps <= narrow, "{name} in f32: {in_f32:?}");
        assert!(in_f64.ulps <= wide, "{name} in f64: {in_f64:?}");
    }
}

/// Checks the functions of one number over all 2³² numbers in f32. The environment variable `FUNCTION` chooses one function:
/// `FUNCTION=erfc cargo test -p wengert-tensor --lib every_f32 -- --ignored --nocapture`.
#[test]
#[ignore = "takes a minute for each function"]
fn every_f32_is_within_its_bounds() {
    const CHUNK: usize = 1 << 20;
    let only = std::env::var("FUNCTION").ok();
    let is_unary = |name: &str| Unary::ALL.iter().any(|op| op.name() == name);
    for &(name, narrow, _) in BOUNDS {
        if !is_unary(name) || only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut worst = Worst::default();
        for first in (0..=u32::MAX).step_by(CHUNK) {
            let x: Vec<f32> = (0..CHUNK as u32).map(|number| f32::from_bits(first + number)).collect();
            let found = worst_f32(name, &x);
            worst.add(found.ulps, || found.place);
        }
        println!("{name:10} {:8.3}   {}", worst.ulps, worst.place);
        assert!(worst.ulps <= narrow, "{name} in f32: {worst:?}");
    }
}

#[test]
fn acosh_is_nan_below_1() {
    // For a large negative x, libraries add x and a root of nearly the same magnitude. The sum loses its digits, so some libraries return a
    // finite number and not NaN.
    let x: Vec<f64> = (0..4000).map(|i| 1.0 - (f64::from(i) * 0.01).exp()).skip(1).collect();
    let wide = Tensor::from_vec(x.clone(), [x.len()]).apply_unary(Unary::Acosh, Site::here("acosh")).unwrap();
    assert!(wide.iter().all(f64::is_nan));
    let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let narrow = Tensor::from_vec(x.clone(), [x.len()]).apply_unary(Unary::Acosh, Site::here("acosh")).unwrap();
    assert!(narrow.iter().all(f32::is_nan));
}

#[test]
fn an_error_is_seen() {
    assert_eq!(ulps_f32(1.0f32.next_up().next_up(), 1.0), 2.0);
    assert_eq!(ulps_f32(0.0, f64::from(f32::from_bits(3))), 3.0);
    assert_eq!(ulps_f32(f32::INFINITY, 2f64.powi(128) - 2f64.powi(103)), 0.5);
    assert_eq!(ulps_f32(f32::NAN, 1.0), f64::INFINITY);
    assert_eq!(ulps_f64(3.0, 3f64.next_down()), 1.0);
    assert_eq!(worst_f64("exp", "exp,0.0,1.5").ulps, 0.5 / f64::EPSILON);
}

/// Compares `docs/accuracy.md` with the bounds in this file. If the environment variable `UPDATE_DOCS` is set, the test writes that file
/// first.
#[test]
fn the_docs_list_the_bounds() {
    let mut text = String::from(INTRODUCTION);
    for &(name, narrow, wide) in BOUNDS {
        let wide = if wide == NINE_DIGITS { "nine digits".to_owned() } else { wide.to_string() };
        writeln!(text, "| `{name}` | {narrow} | {wide} |").unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/accuracy.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, &text).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), text, "set UPDATE_DOCS=1 to write it again");
}

const INTRODUCTION: &str = "\
# Accuracy

Errors are in units in the last place (ulp): one ulp is the distance from a number to the next larger one of its type. A test checks
these bounds (`crates/tensor/src/kernel/testing/accuracy.rs`). With `UPDATE_DOCS=1` it writes this file.

- f32: the largest error against the result in f64, over a sweep of all exponents, including subnormal numbers, and both signs.
- f64: the largest error against the correctly rounded value, over at least 40 points for each function, computed with 60 digits.

Sums, differences, products, quotients, square roots, roundings, remainders, maxima and comparisons are correctly rounded or
exact. A function of several steps, for example `softmax` or `gelu`, adds up the errors of its steps. Some
of these functions subtract nearly equal numbers, for example `tanhshrink` near 0 and `gelu_tanh` far below 0. Their error is a few ulp of
the largest intermediate value. A sum of a tensor's elements is pairwise: its error grows with the logarithm of their count. A tape adds
the sums of up to 16 blocks one after the other; see [operations.md](operations.md#accuracy).

`lgamma` and `digamma` have zeros at negative arguments. If the magnitude of the result there is below 1, the unit in f64 is the
ulp of 1. `trigamma`, the derivative of `digamma`, uses PyTorch's formula. For positive arguments it has nine exact digits.

| function | f32 | f64 |
|---|---|---|
";
