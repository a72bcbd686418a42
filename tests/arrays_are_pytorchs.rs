//! Operations on arrays have PyTorch's values, first and second derivatives, and error sentences. They are quantiles, searches, covariances,
//! reductions by index, samples at grids, integrals, products, distances, rearrangements and others. `tools/array_cases.py` wrote the cases.

use serde_json::Value;
use wengert::prelude::*;
use wengert::tensor::ops::{
    ArrayOperand, Fractions, GridMode, GridPadding, PoolOptions, Pooling, QuantileInterpolation, ScatterReduction,
    TensorLike, Windowed, try_bincount, try_block_diag, try_cartesian_prod, try_column_stack, try_dstack,
};
use wengert::tensor::{Error, Span};

use crate::sources::text;

/// The largest allowed difference from PyTorch. The compared numbers are below 1000 and written with 12 digits.
const TOLERANCE: f64 = 1e-9;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn tensor<T: wengert::tensor::Element>(value: &Value) -> Tensor<T> {
    let list = |key: &str| value[key].as_array().expect("a list").clone();
    let shape: Vec<usize> = list("shape").iter().map(|size| number(size) as usize).collect();
    Tensor::from_vec(list("data").iter().map(|x| T::from_f64(number(x))).collect(), &shape[..])
}

fn fractions(value: &Value) -> Fractions {
    match value.as_array() {
        Some(list) => Fractions::from(&list.iter().map(number).collect::<Vec<_>>()[..]),
        None => Fractions::from(number(value)),
    }
}

/// Returns the result of a case whose operation has a derivative.
fn result<A>(case: &Value, inputs: &[A]) -> Result<A, A::Error>
where
    A: Windowed<Elem = f64>,
    for<'a> &'a A: ArrayOperand<A>,
{
    use wengert::tensor::ops::{Covariances, GridSampling, Integrals, Quantiles, ScatterReduce};
    let (arguments, x) = (&case["arguments"], &inputs[0]);
    let dim = arguments["dim"].as_i64().map(|dim| dim as isize);
    let word = |key: &str| arguments[key].as_str().unwrap_or_default();
    let flag = |key: &str| arguments[key].as_bool().unwrap_or_default();
    let mode = || match word("mode") {
        "linear" => QuantileInterpolation::Linear,
        "lower" => QuantileInterpolation::Lower,
        "higher" => QuantileInterpolation::Higher,
        "midpoint" => QuantileInterpolation::Midpoint,
        _ => QuantileInterpolation::Nearest,
    };
    let q = || fractions(&arguments["q"]);
    match (case["name"].as_str().expect("a name"), flag("keepdim")) {
        ("quantile", false) => x.try_quantile(q(), dim, mode()),
        ("quantile", true) => x.try_quantile_keepdim(q(), dim, mode()),
        ("nanquantile", false) => x.try_nanquantile(q(), dim, mode()),
        ("nanquantile", true) => x.try_nanquantile_keepdim(q(), dim, mode()),
        ("cov", _) => {
            let list = |key: &str| arguments[key].as_array().map(|list| list.iter().map(number).collect::<Vec<_>>());
            let f = list("fweights").map(|list| Tensor::from(list).cast::<i64>());
            let a = list("aweights").map(Tensor::from);
            x.try_cov(arguments["correction"].as_i64().expect("a correction"), f.as_ref(), a.as_ref())
        }
        ("corrcoef", _) => x.try_corrcoef(),
        ("scatter_reduce", _) => {
            let reduction = match word("reduction") {
                "sum" => ScatterReduction::Sum,
                "prod" => ScatterReduction::Prod,
                "mean" => ScatterReduction::Mean,
                "amax" => ScatterReduction::Amax,
                _ => ScatterReduction::Amin,
            };
            let index = tensor(&case["index"]);
            x.try_scatter_reduce(dim.expect("a dimension"), &index, &inputs[1], reduction, flag("include_self"))
        }
        ("grid_sample", _) => {
            let mode = if word("mode") == "nearest" { GridMode::Nearest } else { GridMode::Bilinear };
            let padding = match word("padding") {
                "zeros" => GridPadding::Zeros,
                "border" => GridPadding::Border,
                _ => GridPadding::Reflection,
            };
            x.try_grid_sample(&inputs[1], mode, padding, flag("align_corners"))
        }
        ("trapezoid", _) => match inputs {
            [y] => y.try_trapezoid(number(&arguments["dx"]), dim.expect("a dimension")),
            inputs => inputs[0].try_trapezoid_over(&inputs[1], dim.expect("a dimension")),
        },
        ("cumulative_trapezoid", _) => match inputs {
            [y] => y.try_cumulative_trapezoid(number(&arguments["dx"]), dim.expect("a dimension")),
            inputs => inputs[0].try_cumulative_trapezoid_over(&inputs[1], dim.expect("a dimension")),
        },
        ("max_unpool1d" | "max_unpool2d", _) => unpooled(case, x),
        (name, _) => product(name, arguments, inputs),
    }
}

/// Returns an array with the maxima `x` at their positions, and zeros elsewhere.
fn unpooled<A: Windowed<Elem = f64>>(case: &Value, x: &A) -> Result<A, A::Error> {
    let (arguments, index) = (&case["arguments"], tensor(&case["index"]));
    let given = |key: &str| number(&arguments[key]) as usize;
    let options = PoolOptions::default().stride(given("stride")).padding(given("padding"));
    let size: Option<Vec<usize>> =
        arguments["size"].as_array().map(|sizes| sizes.iter().map(|size| number(size) as usize).collect());
    match case["name"].as_str() {
        Some("max_unpool1d") => x.try_max_unpool1d(&index, 2, &options, size.as_deref()),
        _ => x.try_max_unpool2d(&index, 2, &options, size.as_deref()),
    }
}

/// Returns the result of a case whose operation is a product, a distance or a difference.
fn product<A>(name: &str, arguments: &Value, inputs: &[A]) -> Result<A, A::Error>
where
    A: TensorLike<Elem = f64>,
    for<'a> &'a A: ArrayOperand<A>,
{
    use wengert::tensor::ops::{Contracted, Contractions, Cumulative, Norms, Vectors};
    let x = &inputs[0];
    let sizes = |list: &Value| -> Vec<isize> {
        list.as_array().expect("a list").iter().map(|dim| dim.as_i64().expect("a dimension") as isize).collect()
    };
    match name {
        "cdist" => x.try_cdist(&inputs[1], arguments["p"].as_str().expect("a word").parse::<f64>().expect("a number")),
        "diff" => x.try_diff(number(&arguments["n"]) as usize, number(&arguments["dim"]) as isize),
        "kron" => x.try_kron(&inputs[1]),
        "tensordot" => {
            let dims = &arguments["dims"];
            let dims = match dims.as_u64() {
                Some(count) => Contracted::from(count as usize),
                None => Contracted::from((&sizes(&dims[0])[..], &sizes(&dims[1])[..])),
            };
            x.try_tensordot(&inputs[1], dims)
        }
        "pdist" => x.try_pdist(arguments["p"].as_str().expect("a word").parse::<f64>().expect("a number")),
        _ => rearranged(name, arguments, inputs).unwrap_or_else(|| channels(name, arguments, x)),
    }
}

/// Returns the result of a case whose operation joins, selects or writes elements. Returns `None` for other operations.
fn rearranged<A>(name: &str, arguments: &Value, inputs: &[A]) -> Option<Result<A, A::Error>>
where
    A: TensorLike<Elem = f64>,
    for<'a> &'a A: ArrayOperand<A>,
{
    use wengert::tensor::ops::{
        Diagonals, Integrals, Mixed, Norms, Repetition, Sorting, Splitting, ViewScatter, Views,
    };
    let x = &inputs[0];
    let integer = |key: &str| arguments[key].as_i64().map(|number| number as isize);
    let given = |key: &str| integer(key).unwrap_or_else(|| panic!("{name} has no {key}"));
    let inputs: Vec<A> = inputs.to_vec();
    Some(match name {
        "rot90" => x.try_rot90(given("k"), [0, 1].map(|k| arguments["dims"][k].as_i64().expect("a number") as isize)),
        "atleast_1d" => x.try_atleast_1d(),
        "atleast_2d" => x.try_atleast_2d(),
        "atleast_3d" => x.try_atleast_3d(),
        "diagflat" => x.try_diagflat(given("offset")),
        "dstack" => try_dstack(&inputs.iter().collect::<Vec<_>>()),
        "column_stack" => try_column_stack(&inputs.iter().collect::<Vec<_>>()),
        "block_diag" => try_block_diag(&inputs.iter().collect::<Vec<_>>()),
        "cartesian_prod" => try_cartesian_prod(&inputs.iter().collect::<Vec<_>>()),
        "combinations" => {
            x.try_combinations(given("r") as usize, arguments["with_replacement"].as_bool().expect("a truth value"))
        }
        "select_scatter" => x.try_select_scatter(&inputs[1], given("dim"), given("position")),
        "slice_scatter" => {
            let span = Span::from((given("start")..given("end"), given("step")));
            x.try_slice_scatter(&inputs[1], given("dim"), span)
        }
        "diagonal_scatter" => x.try_diagonal_scatter(&inputs[1], given("offset"), given("first"), given("second")),
        "nanmedian" => match integer("dim") {
            Some(dim) => x.try_nanmedian(dim).map(|(values, _)| values),
            None => x.try_nanmedian_all(),
        },
        "gradient" => x.try_gradient(number(&arguments["dx"]), given("dim"), given("order") as usize),
        "gradient_over" => x.try_gradient_over(&inputs[1], given("dim"), given("order") as usize),
        "renorm" => {
            let p = arguments["p"].as_str().expect("a word").parse::<f64>().expect("a number");
            x.try_renorm(p, given("dim"), number(&arguments["bound"]))
        }
        "frexp" => x.try_frexp().map(|(mantissas, _)| mantissas),
        "hsplit" => x.try_hsplit(given("count") as usize).map(|mut parts| parts.pop().expect("a part")),
        "vsplit" => x.try_vsplit(given("count") as usize).map(|mut parts| parts.pop().expect("a part")),
        "dsplit" => x.try_dsplit(given("count") as usize).map(|mut parts| parts.pop().expect("a part")),
        _ => return None,
    })
}

/// Returns the result of a case whose operation concerns channels, pixels or windows of images.
fn channels<A: TensorLike<Elem = f64>>(name: &str, arguments: &Value, x: &A) -> Result<A, A::Error> {
    use wengert::tensor::ops::{Columns, GridSampling, Normalization, Shuffling};
    let given = |key: &str| number(&arguments[key]) as usize;
    let sizes = || -> Vec<isize> {
        arguments["size"].as_array().expect("a list").iter().map(|size| number(size) as isize).collect()
    };
    match name {
        "pixel_shuffle" => x.try_pixel_shuffle(given("factor")),
        "pixel_unshuffle" => x.try_pixel_unshuffle(given("factor")),
        "channel_shuffle" => x.try_channel_shuffle(given("groups")),
        "affine_grid" => x.try_affine_grid(sizes(), arguments["align_corners"].as_bool().expect("a truth value")),
        "fold" => x.try_col2im(sizes(), 2, given("dilation"), given("padding"), given("stride")),
        "local_response_norm" => x.try_local_response_norm(given("size"), 0.5, 0.7, 1.5),
        _ => panic!("no operation {name}"),
    }
}

/// Returns the results of a case whose operation has no derivative, converted to f64. Returns `None` for other operations.
fn plain(case: &Value, inputs: &[Tensor<f64>]) -> Option<Result<Vec<Tensor<f64>>, Error>> {
    let arguments = &case["arguments"];
    let right = arguments["right"].as_bool().unwrap_or_default();
    let numbers = |positions: Tensor<i64>| vec![positions.cast::<f64>()];
    let distinct =
        |(values, inverse, counts): (_, Tensor<i64>, Tensor<i64>)| vec![values, inverse.cast(), counts.cast()];
    Some(match case["name"].as_str()? {
        "searchsorted" => inputs[0].try_searchsorted(&inputs[1], right).map(numbers),
        "bucketize" => inputs[0].try_bucketize(&inputs[1], right).map(numbers),
        "unique" => inputs[0].try_unique().map(distinct),
        "unique_dim" => inputs[0].try_unique_dim(arguments["dim"].as_i64()?).map(distinct),
        "unique_consecutive" => {
            inputs[0].try_unique_consecutive(arguments["dim"].as_i64().map(|dim| dim as isize)).map(distinct)
        }
        "isin" => inputs[0].try_isin(&inputs[1]).map(|mask| vec![mask.cast()]),
        "histc" => {
            let bins = number(&arguments["bins"]) as usize;
            inputs[0].try_histc(bins, number(&arguments["min"]), number(&arguments["max"])).map(|counts| vec![counts])
        }
        "bincount" => try_bincount(&tensor(&case["index"]), number(&arguments["minlength"]) as usize).map(numbers),
        _ => return None,
    })
}

fn assert_close(what: &str, got: &Tensor<f64>, expected: &Tensor<f64>) {
    assert_eq!(got.shape(), expected.shape(), "{what}");
    for (got, expected) in got.iter().zip(expected.iter()) {
        let is_close = (got - expected).abs() < TOLERANCE || got == expected || got.is_nan() && expected.is_nan();
        assert!(is_close, "{what}: {got}, but PyTorch gives {expected}");
    }
}

/// Checks that the first line of a case's error is `sentence`.
fn assert_sentence(what: &str, sentence: &str, got: Option<Error>) {
    let got = got.unwrap_or_else(|| panic!("{what} is no error")).sentence();
    assert_eq!(got.lines().next(), Some(sentence), "{what}");
}

#[test]
fn values_gradients_and_sentences() {
    let cases: Vec<Value> = serde_json::from_str(&text("tests/fixtures/arrays.json")).expect("the file is JSON");
    assert!(cases.len() > 100, "only {} cases", cases.len());
    for case in &cases {
        let inputs: Vec<Tensor<f64>> = case["inputs"].as_array().expect("inputs").iter().map(tensor).collect();
        let what = format!(
            "{} {} of {:?}",
            case["name"],
            case["arguments"],
            inputs.iter().map(Tensor::shape).collect::<Vec<_>>()
        );
        let expected: Vec<Tensor<f64>> =
            case["outputs"].as_array().map(|outputs| outputs.iter().map(tensor).collect()).unwrap_or_default();
        let eager = plain(case, &inputs).unwrap_or_else(|| result(case, &inputs).map(|z| vec![z]));
        if let Some(sentence) = case["error"].as_str() {
            assert_sentence(&what, sentence, eager.err());
            continue;
        }
        let got = eager.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(got.len(), expected.len(), "{what}");
        got.iter().zip(&expected).for_each(|(got, expected)| assert_close(&what, got, expected));
        let Some(gradients) = case["gradient"].as_array() else { continue };
        let tape = Tape::new();
        let variables: Vec<Var<'_, f64>> = inputs.iter().map(|input| tape.var(input)).collect();
        let z = result(case, &variables).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_close(&format!("{what}, recorded"), &z.value(), &expected[0]);
        // The result of sampling the nearest pixels does not depend on the grid. So a gradient that does not exist counts as zeros.
        let slopes =
            (z * tensor::<f64>(&case["weights"])).sum(..).try_grad_or_zeros_slice(&variables).expect("derivatives");
        for (k, (slope, expected)) in slopes.iter().zip(gradients).enumerate() {
            assert_close(&format!("{what}, gradient {k}"), &slope.value(), &tensor(expected));
        }
        let Some(seconds) = case["second"].as_array() else { continue };
        let squares = (z.square() * tensor::<f64>(&case["weights"])).sum(..);
        let slopes = squares.try_grad_or_zeros_slice(&variables).expect("derivatives");
        let (mut sum, mut count) = (tape.constant(0.0), 0);
        for slope in slopes {
            let weights = Tensor::from_fn(slope.shape(), |_| {
                count += 1;
                f64::from(count).cos()
            });
            sum += (slope * weights).sum(..);
        }
        let derivatives = sum.try_grad_or_zeros_slice(&variables).expect("second derivatives");
        for (k, (derivative, expected)) in derivatives.iter().zip(seconds).enumerate() {
            assert_close(&format!("{what}, second derivative {k}"), &derivative.value(), &tensor(expected));
        }
    }
}
