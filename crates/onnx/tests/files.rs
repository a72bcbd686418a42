//! Tests of exported files. A small runtime decodes the files of all cases and computes their outputs. Other tests compare the bytes of small
//! files with expected bytes, or check errors.

mod cases;
mod runtime;

use std::collections::HashMap;

use cases::Case;
use runtime::{Model, Value, run};
use wengert_autograd::prelude::*;
use wengert_autograd::{Call, Operation};
use wengert_nn::{LSTM, Layer, Linear, Module, write_npy};
use wengert_onnx::{Error, Export, IndexExport};

/// Evaluates the file of a case for the inputs of each run, and compares the outputs with the values that the operations of this workspace compute.
fn check<T: Float>(case: &Case<T>, bound: f64) {
    let model = Model::decode(&case.bytes);
    for run_of_case in &case.runs {
        let floats = run_of_case.inputs.iter().map(|(name, x)| (name.clone(), Value::Floats(x.cast())));
        let integers = run_of_case.indices.iter().map(|(name, x)| (name.clone(), Value::Integers(x.clone())));
        let outputs = run(&model, floats.chain(integers).collect());
        assert_eq!(outputs.len(), run_of_case.outputs.len());
        for (name, expected) in &run_of_case.outputs {
            let (got, expected) = (outputs[name].floats(), expected.cast::<f64>());
            assert_eq!(got.shape(), expected.shape(), "{} {name}", case.name);
            let scale = expected.iter().filter(|y| y.is_finite()).fold(1.0f64, |scale, y| scale.max(y.abs()));
            let error = got.iter().zip(expected.iter()).fold(0.0f64, |error, (got, expected)| {
                if got == expected || got.is_nan() && expected.is_nan() {
                    error
                } else if (got - expected).is_finite() {
                    error.max((got - expected).abs())
                } else {
                    f64::INFINITY
                }
            });
            assert!(error <= bound * scale, "{} {name}: {error:e}", case.name);
        }
    }
}

/// The functions of f64 are accurate to a few units in the last place. The formulas of several operators add a few roundings, and sums of
/// up to 144 products add more.
#[test]
fn files_compute_the_values_of_the_model() {
    let cases = cases::cases::<f64>();
    assert!(cases.len() > 150, "{}", cases.len());
    cases.iter().for_each(|case| check(case, 1e-13));
}

/// A file with one wrong bit in a weight must not pass the check.
#[test]
fn a_wrong_weight_is_found() {
    let mut case = cases::cases::<f64>().into_iter().find(|case| case.name == "gradient_of_conv").unwrap();
    let weight = Model::decode(&case.bytes).graph.constants.into_iter().find_map(|(_, value)| match value {
        Value::Floats(data) if data.numel() == 36 => data.get(&[0, 0, 0, 0]),
        _ => None,
    });
    let pattern = weight.unwrap().to_le_bytes();
    let place = case.bytes.windows(8).position(|bytes| bytes == pattern).unwrap();
    case.bytes[place + 4] ^= 1; // about 1e-6 of the weight
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&case, 1e-13))).is_err());
}

#[test]
fn files_of_f32_have_the_same_constants() {
    cases::cases::<f32>().iter().for_each(|case| check(case, 2e-5));
}

/// Writes the files of all cases into the folder of the variable `WENGERT_ONNX_FOLDER`, for `tools/onnx_check.py`. A case has a folder with
/// the model, and a folder for each run with the arrays `in.NAME.npy` and `out.NAME.npy`.
#[test]
#[ignore = "it writes files for tools/onnx_check.py"]
fn write_the_files() {
    let folder = std::env::var_os("WENGERT_ONNX_FOLDER").expect("WENGERT_ONNX_FOLDER is a folder");
    let folder = std::path::Path::new(&folder);
    write(&cases::cases::<f32>(), &folder.join("f32"));
    write(&cases::cases::<f64>(), &folder.join("f64"));
}

fn write<T: Float>(cases: &[Case<T>], folder: &std::path::Path) {
    for case in cases {
        let folder = folder.join(&case.name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("model.onnx"), &case.bytes).unwrap();
        for (number, run) in case.runs.iter().enumerate() {
            let folder = folder.join(number.to_string());
            std::fs::create_dir_all(&folder).unwrap();
            for (name, x) in &run.inputs {
                write_npy(folder.join(format!("in.{name}.npy")), x).unwrap();
            }
            for (name, x) in &run.indices {
                write_npy(folder.join(format!("in.{name}.npy")), x).unwrap();
            }
            for (name, y) in &run.outputs {
                write_npy(folder.join(format!("out.{name}.npy")), y).unwrap();
            }
        }
    }
}

#[test]
fn a_small_file_has_these_bytes() {
    let x = Tensor::from([1.0f32, 2.0]);
    let bytes = Export::new().name("g").to_bytes([("x", &x)], ["y"], |_, [x]| [x * 2.0]).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let mut expected = vec![0x08, 8, 0x12, 7];
    expected.extend(b"wengert");
    expected.extend([0x1a, version.len() as u8]);
    expected.extend(version.bytes());
    expected.extend([0x3a, 91]);
    // The node: inputs, output, name, operator.
    expected.extend([0x0a, 30, 0x0a, 1, b'x', 0x0a, 10]);
    expected.extend(b"constant_1");
    expected.extend([0x12, 1, b'y', 0x1a, 5]);
    expected.extend(b"Mul_0");
    expected.extend([0x22, 3]);
    expected.extend(b"Mul");
    expected.extend([0x12, 1, b'g']);
    // The constant 2 of rank 0: its element type, name and bytes.
    expected.extend([0x2a, 20, 0x10, 1, 0x42, 10]);
    expected.extend(b"constant_1");
    expected.extend([0x4a, 4, 0, 0, 0, 0x40]);
    // The input and the output: name, element type and shape [2].
    expected.extend([0x5a, 15, 0x0a, 1, b'x', 0x12, 10, 0x0a, 8, 0x08, 1, 0x12, 4, 0x0a, 2, 0x08, 2]);
    expected.extend([0x62, 15, 0x0a, 1, b'y', 0x12, 10, 0x0a, 8, 0x08, 1, 0x12, 4, 0x0a, 2, 0x08, 2]);
    expected.extend([0x42, 4, 0x0a, 0, 0x10, 18]);
    assert_eq!(bytes, expected);
    Model::decode(&bytes);
}

#[test]
fn inputs_outputs_and_parameters_have_names_and_sizes() {
    let generator = &mut Generator::new(0);
    let model: Vec<Linear> = vec![Linear::new(3, 4, generator), Linear::new(4, 2, generator)];
    let x = Tensor::zeros([1, 3]);
    let bytes = Export::new()
        .model(&model)
        .batch("n")
        .to_bytes([("x", &x)], ["y", "pairs", "width"], |tape, [x]| {
            let y = model[1].forward(model[0].forward(x).relu());
            [y, y.reshape([y.numel()]), tape.constant(Tensor::from([2.0, 4.0]))]
        })
        .unwrap();
    let graph = Model::decode(&bytes).graph;
    let port = |port: &runtime::Port| (port.name.clone(), port.element, port.sizes.join(" "));
    assert_eq!(graph.inputs.iter().map(port).collect::<Vec<_>>(), [("x".into(), 1, "n 3".into())]);
    let expected = [("y".into(), 1, "n 2".into()), ("pairs".into(), 1, String::new()), ("width".into(), 1, "2".into())];
    assert_eq!(graph.outputs.iter().map(port).collect::<Vec<_>>(), expected);
    let constants: HashMap<&str, &Value> = graph.constants.iter().map(|(name, value)| (name.as_str(), value)).collect();
    for (path, parameter) in model.named_parameters() {
        assert_eq!(constants[path.as_str()].floats(), &parameter.value.cast::<f64>(), "{path}");
    }
    // An expansion of the bias by a dynamic batch needs no operator.
    assert!(graph.nodes.iter().all(|node| node.operator != "Expand" && node.operator != "Shape"), "{:?}", graph.nodes);
}

/// Checks that a node reads each constant of a file, and that each constant is written once. So a constant that an
/// input or a computed size replaces is not written.
#[test]
fn every_constant_is_read() {
    for case in cases::cases::<f32>() {
        let graph = Model::decode(&case.bytes).graph;
        let read: std::collections::HashSet<&String> = graph.nodes.iter().flat_map(|node| &node.inputs).collect();
        let mut written = std::collections::HashSet::new();
        for (name, _) in &graph.constants {
            assert!(read.contains(name) && written.insert(name), "{}: {name}", case.name);
        }
    }
}

#[test]
fn buffers_have_names() {
    let case = cases::cases::<f32>().into_iter().find(|case| case.name == "cnn").unwrap();
    let graph = Model::decode(&case.bytes).graph;
    let names: Vec<&str> = graph.constants.iter().map(|(name, _)| name.as_str()).collect();
    for path in ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "9.weight", "9.bias"] {
        assert!(names.contains(&path), "{path}: {names:?}");
    }
}

#[test]
fn a_softmax_is_one_operator() {
    let x = Tensor::<f32>::zeros([2, 3]);
    let bytes = Export::new().to_bytes([("x", &x)], ["y"], |_, [x]| [x.softmax(1)]).unwrap();
    let operators: Vec<String> = Model::decode(&bytes).graph.nodes.iter().map(|node| node.operator.clone()).collect();
    assert_eq!(operators, ["Softmax"]);
}

#[test]
fn an_operation_without_a_form_is_an_error_with_its_line() {
    let x = Tensor::from([0.5f64]);
    let line = line!() + 1;
    let error = Export::new().to_bytes([("x", &x)], ["y"], |_, [x]| [x.sigmoid() + x.digamma()]).unwrap_err();
    let Error::Unsupported { operation: "digamma", recorded } = &error else { panic!("{error}") };
    assert_eq!((recorded.file(), recorded.line()), (file!(), line));
    let line = line!() + 1;
    let error = Export::new().to_bytes([("x", &x)], ["y"], |tape, [x]| [tape.apply(Own, &[x])]).unwrap_err();
    assert!(error.to_string().starts_with(&format!("'own' has no form in ONNX\n  --> {}:{line}:", file!())), "{error}");
    // An operation on which no output depends may have no form in ONNX.
    let unused = Export::new().to_bytes([("x", &x)], ["y"], |_, [x]| {
        let _ = x.digamma();
        [x.sigmoid()]
    });
    assert!(unused.is_ok());
}

/// An operation of a user.
struct Own;

impl Operation<f64> for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn run(&self, inputs: &[Tensor<f64>]) -> Result<Tensor<f64>, wengert_autograd::Error> {
        Ok(inputs[0].clone())
    }

    fn vjp<'t>(&self, _: &Call<'t, f64>, _: usize, g: Var<'t, f64>) -> Option<Var<'t, f64>> {
        Some(g)
    }
}

#[test]
fn programs_that_depend_on_values_are_errors() {
    let x = Tensor::from([[1.0f64, 5.0], [3.0, 2.0]]);
    let export = |record: for<'t> fn(Var<'t, f64>) -> Var<'t, f64>| {
        Export::new().to_bytes([("x", &x)], ["y"], |_, [x]| [record(x)])
    };
    assert!(export(|x| x + 1.0).is_ok());
    // This program has the value of its input as a constant.
    assert!(matches!(export(|x| x * x.value().amax(..).item()), Err(Error::Varies { operation: "constant", .. })));
    // `topk` computes its indices while the program is recorded, so they are constants of the program.
    assert!(matches!(export(|x| x.topk(1, 1, true).0), Err(Error::Varies { .. })));
    let branch: for<'t> fn(Var<'t, f64>) -> Var<'t, f64> =
        |x| if x.value().sum(..).item() > 9.0 { x.exp() } else { x.tanh() };
    assert!(matches!(export(branch), Err(Error::Structure { .. })));
}

/// Elements that are equal in the example differ in the other recordings, in varying order. So a dependence on their order is found.
#[test]
fn examples_of_equal_numbers_show_dependences() {
    let x = Tensor::<f64>::zeros([2]);
    let export = |record: for<'t> fn(Var<'t, f64>) -> Var<'t, f64>| {
        Export::new().to_bytes([("x", &x)], ["y"], |_, [x]| [record(x)])
    };
    assert!(matches!(export(|x| x.topk(1, 0, true).0), Err(Error::Varies { .. })));
    assert!(matches!(export(|x| x.index_select(0, &x.value().argmax(0).reshape([1]))), Err(Error::Varies { .. })));
}

#[test]
fn programs_that_depend_on_the_dynamic_size_are_errors() {
    let generator = &mut Generator::new(0);
    let (lstm, x): (LSTM<f64>, _) = (LSTM::new(2, 3, generator), Tensor::ones([4, 1, 2]));
    // The first dimension is time. The network records operations for each step, so the program depends on the length.
    let steps = Export::new().batch("time").to_bytes([("x", &x)], ["y"], |_, [x]| [lstm.forward(x)]);
    assert!(matches!(steps, Err(Error::Structure { .. })));
    let batches = Export::new().dynamic("n", [("x", 1)]).to_bytes([("x", &x)], ["y"], |_, [x]| [lstm.forward(x)]);
    assert!(batches.is_ok());
    let square = Export::new().batch("n").to_bytes([("x", &x)], ["y"], |_, [x]| {
        let n = x.shape()[0];
        [x.select(1, 0).select(1, 0).expand([n, n]).reshape([n * n]).unsqueeze(0).expand([2, n * n]).flip(0)]
    });
    assert!(square.is_ok(), "a reshape and an expansion of an expansion infer the size: {:?}", square.err());
    let mean = Export::new().batch("n").to_bytes([("x", &x)], ["y"], |_, [x]| [x.mean(0)]);
    let error = mean.unwrap_err();
    assert!(error.to_string().contains("or on the size of the dimension 'n'"), "{error}");
    let limit = Export::new().batch("n").to_bytes([("x", &x)], ["y"], |_, [x]| [x.slice(0, 0..x.shape()[0].min(60))]);
    assert!(matches!(limit, Err(Error::Varies { .. })));
}

/// With a stride of 5, the sizes of the recordings (2, 3, 5 and 67) need no padding after the input, but the size 6 needs one element. So the export
/// must fail, although the recordings agree in their padding.
#[test]
fn windows_along_the_dynamic_dimension_are_linear() {
    let (x, weight) = (Tensor::<f64>::ones([1, 1, 4]), Tensor::ones([1, 1, 3]));
    let export = |stride: usize| {
        let options = ConvOptions::default().stride(stride).padding(1);
        Export::new()
            .dynamic("n", [("x", 2)])
            .to_bytes([("x", &x)], ["y"], |tape, [x]| [x.conv1d(&tape.constant(&weight), None, &options)])
    };
    assert!(export(1).is_ok());
    assert!(matches!(export(5), Err(Error::Varies { .. })));
}

#[test]
fn integer_inputs_are_read_by_index_select_only() {
    let table = Tensor::from([[1.0f64, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    let tokens = Tensor::from([0i64, 2]);
    let export = |tokens: &Tensor<i64>, record: for<'t> fn(Var<'t, f64>, &Tensor<i64>) -> Var<'t, f64>| {
        let export = Export::new().indices([("tokens", tokens)]);
        export.to_bytes([("x", &table)], ["y"], |_, [x], [tokens]| [record(x, tokens)])
    };
    assert!(export(&tokens, |x, tokens| x.index_select(0, tokens)).is_ok());
    // An index that is not an input stays a constant.
    assert!(export(&tokens, |x, _| x.index_select(0, &Tensor::from([0, 2]))).is_ok());
    assert!(matches!(export(&tokens, |x, tokens| x.index_select(0, &(2 - tokens))), Err(Error::Varies { .. })));
    assert!(matches!(
        export(&tokens, |x, tokens| x * tokens.get(&[0]).unwrap() as f64),
        Err(Error::Varies { operation: "constant", .. })
    ));
    let zeros = export(&Tensor::from([0i64, 0]), |x, tokens| x.index_select(0, tokens));
    assert!(matches!(zeros, Err(Error::Example { input }) if input == "tokens"));
    assert!(export(&Tensor::from([1i64]), |x, tokens| x.index_select(0, tokens)).is_ok());
    // Another recording changes each element, also an element that equals its neighbour.
    assert!(matches!(
        export(&Tensor::from([2i64, 2, 1]), |x, tokens| x * tokens.get(&[1]).unwrap() as f64),
        Err(Error::Varies { operation: "constant", .. })
    ));
}

#[test]
fn equal_slices_and_inputs_are_ambiguous() {
    let table = Tensor::from([[1.0f64, 2.0], [3.0, 4.0], [5.0, 6.0]]);
    let sum = |export: Export<f64>, tokens: &Tensor<i64>, slices: &[(isize, isize)]| {
        export.indices([("tokens", tokens)]).to_bytes([("x", &table)], ["y"], |_, [x], [tokens]| {
            let rows = slices.iter().map(|&(axis, place)| x.index_select(0, &tokens.select(axis, place)).sum(0));
            [rows.reduce(|sum, row| sum + row).unwrap()]
        })
    };
    let steps = [(1, 0), (1, 1)];
    let error = sum(Export::new(), &Tensor::ones([1, 2]), &steps).unwrap_err();
    assert!(matches!(error, Error::Ambiguous { operation: "index_select", .. }), "{error}");
    assert!(error.to_string().contains("two slices of one, have the same examples\n  --> "), "{error}");
    assert!(sum(Export::new(), &Tensor::from([[1, 2]]), &steps).is_ok());
    // The slice along the first dimension, which has size 1, is the whole input. This does not count as two candidates.
    assert!(sum(Export::new(), &Tensor::from([[1, 1]]), &[(0, 0)]).is_ok());
    // In the recordings of a dynamic batch, the only row of the example is repeated. So several rows have the same values.
    let batch = || Export::new().dynamic("n", [("tokens", 0)]);
    assert!(matches!(sum(batch(), &Tensor::from([[1, 2]]), &[(0, -1)]), Err(Error::Ambiguous { .. })));
    assert!(sum(batch(), &Tensor::from([[1, 2], [2, 0]]), &[(0, 0)]).is_ok());
    let pair = |first: &Tensor<i64>, second: &Tensor<i64>| {
        let export: IndexExport<'_, f64, 2> = Export::new().indices([("first", first), ("second", second)]);
        export.to_bytes([("x", &table)], ["y"], |_, [x], [first, second]| {
            [x.index_select(0, first) - x.index_select(0, second)]
        })
    };
    let (first, second) = (Tensor::from([1, 2]), Tensor::from([2, 1]));
    assert!(matches!(pair(&first, &first), Err(Error::Ambiguous { .. })));
    assert!(pair(&first, &second).is_ok());
}

#[test]
fn names_are_checked() {
    let x = Tensor::<f32>::zeros([2]);
    let names = |input: &str, output: &str| {
        Export::new().to_bytes([(input, &x)], [output], |_, [x]| [x.exp()]).err().map(|error| error.to_string())
    };
    assert_eq!(names("x", "y"), None);
    assert_eq!(names("constant_0", "Exp_0"), None);
    assert_eq!(names("x", "x").unwrap(), "'x' is no valid name: another value has it");
    assert_eq!(names("", "y").unwrap(), "'' is no valid name: it is empty");
    for export in [Export::new().name(""), Export::new().batch("")] {
        let error = export.to_bytes([("x", &x)], ["y"], |_, [x]| [x.exp()]).unwrap_err();
        assert!(matches!(error, Error::Name { name } if name.is_empty()));
    }
    let model: Linear = Linear::new(2, 2, &mut Generator::new(0));
    let taken = Export::new().model(&model).to_bytes([("weight", &x)], ["y"], |_, [x]| [model.forward(x)]);
    assert!(matches!(taken, Err(Error::Name { name }) if name == "weight"));
}

#[test]
fn dimensions_are_checked() {
    let (x, scalar) = (Tensor::<f32>::zeros([2]), Tensor::<f32>::scalar(1.0));
    let refused = |export: Export, x: &Tensor| export.to_bytes([("x", x)], ["y"], |_, [x]| [x.exp()]).unwrap_err();
    assert!(matches!(refused(Export::new().batch("n"), &scalar), Error::NoDimension { axis: 0, .. }));
    assert!(matches!(refused(Export::new().dynamic("n", [("x", 1)]), &x), Error::NoDimension { axis: 1, .. }));
    assert!(
        matches!(refused(Export::new().dynamic("n", [("z", 0)]), &x), Error::NoDimension { input, .. } if input == "z")
    );
    assert!(matches!(refused(Export::new().batch("n"), &Tensor::zeros([0])), Error::NoDimension { .. }));
}

#[test]
fn too_large_files_are_errors() {
    // The windows overlap, so this view of 900 million elements needs little memory.
    let windows = Tensor::<f32>::zeros([60_000]).unfold(0, 30_000, 1);
    let x = Tensor::<f32>::zeros([1]);
    let record = |constant: &Tensor<f32>| {
        Export::new().to_bytes([("x", &x)], ["y"], |tape, [x]| [x + tape.constant(constant).sum(..)])
    };
    assert!(matches!(record(&windows), Err(Error::TooLarge { bytes: 3_600_120_000 })));
    // The file has the only distinct element of this expanded tensor, and not 2³⁰ copies.
    assert!(record(&Tensor::scalar(1.0).expand([1 << 15, 1 << 15])).unwrap().len() < 1000);
}

#[test]
fn a_failed_export_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    let x = Tensor::<f32>::zeros([2]);
    Export::new().write(&path, [("x", &x)], ["y"], |_, [x]| [x.exp()]).unwrap();
    let old = std::fs::read(&path).unwrap();
    Export::new().write(&path, [("x", &x)], ["y"], |_, [x]| [x.lgamma()]).unwrap_err();
    assert_eq!(std::fs::read(&path).unwrap(), old);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let missing = folder.path().join("missing").join("model.onnx");
    assert!(matches!(Export::new().write(missing, [("x", &x)], ["y"], |_, [x]| [x.exp()]), Err(Error::Write(_))));
}
