//! Tests of checkpoints: round trips, damaged and foreign files, conversions, and names.

use std::any::Any;
use std::fs;

use safetensors::tensor::TensorView;
use safetensors::{Dtype as FileDtype, SafeTensors, serialize};
use wengert_autograd::{Gradients, Tape};
use wengert_tensor::ops::{Arithmetic as _, Functions as _, Reductions as _};
use wengert_tensor::{DType, Shape, Tensor};

use super::header::METADATA;
use super::*;
use crate::{
    Adafactor, Adam, AnyBuffer, Asgd, Buffer, Error, Generator, Layer as _, Lbfgs, Leaf, LeafMut, Linear, Muon, NAdam,
    Optimizer, Parameter, Sgd, WeightAverage,
};

/// A model whose parameters have arbitrary names.
struct Model<T: Float>(Vec<(String, Parameter<T>)>);

impl<T: Float> Module<T> for Model<T> {
    fn children<'m>(&'m self, each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {
        self.0.iter().for_each(|(name, parameter)| each(name, parameter));
    }

    fn children_mut<'m>(&'m mut self, each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {
        self.0.iter_mut().for_each(|(name, parameter)| each(name, parameter));
    }
}

fn model<T: Float>(shapes: &[(&str, &[usize])]) -> Model<T> {
    Model(shapes.iter().map(|&(name, shape)| (name.to_owned(), Parameter::new(Tensor::zeros(shape)))).collect())
}

#[test]
fn a_checkpoint_that_is_saved_and_loaded_is_equal_and_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let awkward = [f64::MIN_POSITIVE / 2.0, -0.0, 1.0 / 3.0, f64::INFINITY, f64::NAN, f64::MAX];
    let saved = Model(vec![
        ("b".to_owned(), Parameter::new(Tensor::from(awkward))),
        ("a".to_owned(), Parameter::new(Tensor::scalar(2.5))),
        ("empty".to_owned(), Parameter::new(Tensor::zeros([0, 3]))),
    ]);
    save(&saved, &first).unwrap();
    let mut loaded = model::<f64>(&[("b", &[6]), ("a", &[]), ("empty", &[0, 3])]);
    load(&mut loaded, &first).unwrap();
    let bits = |model: &Model<f64>| -> Vec<Vec<u64>> {
        model.0.iter().map(|(_, parameter)| parameter.value.iter().map(f64::to_bits).collect()).collect()
    };
    assert_eq!(bits(&loaded), bits(&saved));
    save(&loaded, &second).unwrap();
    assert_eq!(fs::read(first).unwrap(), fs::read(second).unwrap());
}

#[test]
fn bytes_in_memory_are_the_bytes_of_a_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let layer = Linear::<f64>::new(3, 2, &mut Generator::new(0));
    let optimizer = Adam::new(0.25);
    let whole = || Checkpoint::new().model(&layer).optimizer("o", &optimizer, &layer).integer("epoch", 3);
    whole().save(&file).unwrap();
    let bytes = whole().to_bytes().unwrap();
    assert_eq!(bytes, fs::read(&file).unwrap());

    let (mut loaded, mut restored) = (Linear::<f64>::new(3, 2, &mut Generator::new(1)), Adam::new(0.5));
    let saved = Checkpoint::from_bytes(bytes.clone()).unwrap();
    saved.load_model(&mut loaded).unwrap();
    saved.load_optimizer("o", &mut restored, &loaded).unwrap();
    assert_eq!((&loaded.weight.value, restored.learning_rate()), (&layer.weight.value, 0.25));
    assert_eq!(saved.integer("epoch").unwrap(), 3);
    for end in 0..bytes.len() {
        let error = from_bytes(&mut loaded, &bytes[..end]).unwrap_err();
        assert!(matches!(error, Error::Checkpoint { .. }), "{end}");
    }
    let error = from_bytes(&mut Linear::<f64>::new(2, 2, &mut Generator::new(1)), bytes).unwrap_err();
    assert!(error.to_string().starts_with("'bytes in memory' does not fit the model"), "{error}");
    let twins = model::<f32>(&[("w", &[1]), ("w", &[1])]);
    assert!(matches!(to_bytes(&twins), Err(Error::DuplicateName { .. })));
}

#[test]
fn the_layout_is_pytorchs() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut layer = Linear::<f32>::new(3, 2, &mut Generator::new(0));
    layer.weight.value = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    save(&layer, &file).unwrap();
    let bytes = fs::read(&file).unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(header.metadata().as_ref().unwrap()["format"], "pt");
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let mut names = tensors.names();
    names.sort_unstable();
    assert_eq!(names, ["bias", "weight"]);
    let weight = tensors.tensor("weight").unwrap();
    assert_eq!((weight.dtype(), weight.shape()), (FileDtype::F32, &[2, 3][..]));
    let expected: Vec<u8> = (1..=6).flat_map(|i| (i as f32).to_le_bytes()).collect();
    assert_eq!(weight.data(), expected);
}

#[test]
fn a_checkpoint_of_another_model_lists_the_differences_and_changes_nothing() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut saved = model::<f32>(&[("fc1.weight", &[2, 3]), ("fc1.bias", &[2]), ("fc3.bias", &[1])]);
    saved.0[1].1.value = Tensor::from([1.0, 2.0]);
    save(&saved, &file).unwrap();
    let mut other = model::<f32>(&[("fc1.weight", &[3, 2]), ("fc1.bias", &[2]), ("fc2.bias", &[1])]);
    let error = load(&mut other, &file).unwrap_err();
    let text = error.to_string().replace(file.path().to_str().unwrap(), "f");
    assert_eq!(
        text,
        "'f' does not fit the model:\n  missing in the file: 'fc2.bias'\n  unexpected in the file: 'fc3.bias'\n  \
         'fc2.bias' may be 'fc3.bias' in the file (`Saved::rename`)\n  mismatch: 'fc1.weight' is F32 [2, 3] in the file, F32 [3, 2] in the model"
    );
    assert_eq!(other.0[1].1.value.to_vec(), [0.0, 0.0]);
    let mut double = model::<f64>(&[("fc1.weight", &[2, 3]), ("fc1.bias", &[2]), ("fc3.bias", &[1])]);
    let Err(Error::Keys { mismatched, .. }) = load(&mut double, &file) else { panic!("f32 is not f64") };
    assert_eq!(mismatched.len(), 3);
}

#[test]
fn damaged_files_and_duplicate_names_are_errors() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut saved = model::<f32>(&[("w", &[4])]);
    save(&saved, &file).unwrap();
    let whole = fs::read(&file).unwrap();
    for end in [0, 4, 20, whole.len() - 1] {
        fs::write(&file, &whole[..end]).unwrap();
        assert!(matches!(load(&mut saved, &file), Err(Error::Checkpoint { .. })), "{end}");
    }
    let twins = model::<f32>(&[("w", &[1]), ("w", &[1])]);
    assert!(matches!(save(&twins, &file), Err(Error::DuplicateName { .. })));
    assert!(matches!(load(&mut saved, "no/such/file"), Err(Error::Read { .. })));
}

/// Returns the bytes of a file that has this header and then `size` zeros.
fn with_header(header: &str, size: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; size]].concat()
}

/// Returns the text of the error of `load` for a file with these contents.
fn refusal(contents: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, contents).unwrap();
    let error = load(&mut model::<f32>(&[("w", &[1])]), &file).unwrap_err();
    error.to_string().replace(file.path().to_str().unwrap(), "f")
}

#[test]
fn restored_line_searches_and_averages_continue_the_same_way() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let new = || Linear::<f64>::new(3, 2, &mut Generator::new(0));
    let x = Tensor::from([[1.0, 2.0, -1.0], [0.5, -2.0, 3.0], [2.0, 0.0, 1.0]]);
    let step = |model: &mut Linear<f64>, search: &mut Lbfgs<f64>, average: &mut WeightAverage<f64>| {
        search.step(model, |model| {
            let tape = Tape::training(&mut Generator::new(0));
            tape.value_and_gradients(|tape| (model.forward(tape.constant(&x)).tanh() - 0.3).square().sum(..))
        });
        average.update(model);
    };
    let parts = || (new(), Lbfgs::new(0.1).max_iter(3).strong_wolfe(), WeightAverage::ema(0.9));
    let (mut model, mut search, mut average) = parts();
    for _ in 0..2 {
        step(&mut model, &mut search, &mut average);
    }
    let half = Checkpoint::new().model(&model).states("search", &search, &model);
    half.states("average", &average, &model).save(&file).unwrap();
    step(&mut model, &mut search, &mut average);

    let (mut other, mut other_search, mut other_average) = parts();
    let saved = Checkpoint::open(&file).unwrap();
    saved.load_model(&mut other).unwrap();
    saved.load_states("search", &mut other_search, &other).unwrap();
    saved.load_states("average", &mut other_average, &other).unwrap();
    step(&mut other, &mut other_search, &mut other_average);
    assert_eq!(other.to_vector(), model.to_vector());
    average.apply_to(&mut model);
    other_average.apply_to(&mut other);
    assert_eq!(other.to_vector(), model.to_vector());
}

#[test]
fn a_line_search_is_restored_with_its_settings_and_from_files_without_them() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let x = Tensor::from([[1.0, 2.0, -1.0], [0.5, -2.0, 3.0], [2.0, 0.0, 1.0]]);
    let step = |model: &mut Linear<f64>, search: &mut Lbfgs<f64>| {
        search.step(model, |model| {
            let tape = Tape::new();
            tape.value_and_gradients(|tape| (model.forward(tape.constant(&x)).tanh() - 0.3).square().sum(..))
        });
    };
    let new = || Linear::<f64>::new(3, 2, &mut Generator::new(0));
    for max_eval in [None, Some(4)] {
        let settings = || Lbfgs::new(0.1).max_iter(5).history_size(7);
        let (mut model, mut search) = (new(), max_eval.map_or_else(settings, |most| settings().max_eval(most)));
        (0..2).for_each(|_| step(&mut model, &mut search));
        Checkpoint::new().model(&model).states("search", &search, &model).save(&file).unwrap();
        step(&mut model, &mut search);
        // Loading replaces the settings of `other`, which differ from the settings in the file.
        for mut other in [Lbfgs::new(0.1), Lbfgs::new(1.0).history_size(2).max_iter(3).max_eval(2)] {
            let (mut restored, saved) = (new(), Checkpoint::open(&file).unwrap());
            saved.load_model(&mut restored).unwrap();
            saved.load_states("search", &mut other, &restored).unwrap();
            step(&mut restored, &mut other);
            assert_eq!(restored.to_vector(), model.to_vector());
        }
    }
    // Files of earlier versions lack the settings `max_iter`, `max_eval` and `history_size`. Loading such a file keeps the program's
    // settings, and as many of the last pairs of the history as `history_size` allows.
    let bytes = fs::read(&file).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let (mut older, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, entry) in header.as_object().unwrap() {
        let added = ["max_iter", "max_eval", "history_size"].iter().any(|added| name.ends_with(added));
        let mut entry = entry.clone();
        if let (false, Some(offsets)) = (added, entry["data_offsets"].as_array()) {
            let [start, end] = [0, 1].map(|position| offsets[position].as_u64().unwrap() as usize);
            let at = data.len();
            data.extend_from_slice(&bytes[8 + length..][start..end]);
            entry["data_offsets"] = serde_json::json!([at, data.len()]);
        }
        if !added {
            older.insert(name.clone(), entry);
        }
    }
    let text = serde_json::Value::Object(older).to_string();
    fs::write(&file, [with_header(&text, 0), data].concat()).unwrap();
    let (mut restored, saved) = (new(), Checkpoint::open(&file).unwrap());
    let mut other = Lbfgs::new(0.1).max_iter(5).max_eval(4).history_size(2);
    saved.load_model(&mut restored).unwrap();
    saved.load_states("search", &mut other, &restored).unwrap();
    let text = format!("{other:?}");
    assert!(text.contains("max_iter: 5, max_eval: Some(4)") && text.contains("history_size: 2"), "{text}");
    assert_eq!(text.matches("Pair {").count(), 2, "{text}");
    step(&mut restored, &mut other);
}

#[test]
fn headers_are_checked_before_anything_is_read() {
    let damaged = "'f' is not a safetensors checkpoint, or is damaged: ";
    let w = r#""w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
    let table = [
        (vec![0; 7], "its 7 bytes are too few for the length of a header"),
        (vec![0xff; 9], "a header of 18446744073709551615 bytes, but the format allows 100000000"),
        (vec![9, 0, 0, 0, 0, 0, 0, 0, b'{', b'}'], "a header of 9 bytes in a file of 10"),
        ([&100_000_000u64.to_le_bytes()[..], b"{}"].concat(), "a header of 100000000 bytes in a file of 10"),
        (with_header(&format!("{{{w}}}"), 3), "the tensors of its header have 4 bytes, but 3 bytes follow it"),
        (with_header(&format!("{{{w}}}"), 5), "the tensors of its header have 4 bytes, but 5 bytes follow it"),
        (with_header(&format!("{{{w}}} {{}}"), 4), "trailing characters at line 1 column 56"),
        (with_header("[1]", 0), "invalid type: sequence, expected tensors by their names at line 1 column 0"),
        (
            with_header(&format!(r#"{{{w},"v":{{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}}}"#), 6),
            "invalid offset for tensor `v`",
        ),
    ];
    for (contents, expected) in table {
        assert_eq!(refusal(&contents).strip_prefix(damaged), Some(expected));
    }
    // A file without tensors consists only of its header. Spaces at the end of the header are ignored.
    assert!(refusal(&with_header("{}   ", 0)).ends_with("missing in the file: 'w'"));
}

#[test]
fn similar_names_have_the_same_shape() {
    let file = tempfile::NamedTempFile::new().unwrap();
    // The tensors whose names are most similar to the model's names have other shapes, so the error does not suggest them.
    save(&model::<f32>(&[("fc2.bias", &[7]), ("layer.fc1.bias", &[3]), ("fc1.bia", &[9])]), &file).unwrap();
    let mut other = model::<f32>(&[("fc1.bias", &[3]), ("fc3.bias", &[4])]);
    let Err(Error::Keys { renamed, .. }) = load(&mut other, &file) else { panic!("the names differ") };
    assert_eq!(renamed, [("fc1.bias".to_owned(), "layer.fc1.bias".to_owned())]);
}

/// Returns a sparse file of 1 TiB with one tensor of U64, or `None` if the file system refuses this size.
fn sparse(name: &str, shape: &str) -> Option<tempfile::NamedTempFile> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let bytes = 1u64 << 40;
    let header = format!(r#"{{"{name}":{{"dtype":"U64","shape":{shape},"data_offsets":[0,{bytes}]}}}}"#);
    fs::write(&file, with_header(&header, 0)).unwrap();
    file.as_file().set_len(8 + header.len() as u64 + bytes).ok().map(|()| file)
}

#[test]
fn shapes_are_compared_before_memory_is_requested() {
    for name in ["@integer.epoch", "@number.best", "@generator"] {
        let Some(file) = sparse(name, "[137438953472]") else { return };
        let saved = Checkpoint::open(&file).unwrap();
        let errors = [saved.integer("epoch").err(), saved.number("best").err(), saved.generator().map(drop).err()];
        let mismatches = errors.iter().flatten().filter(|error| {
            matches!(error, Error::Keys { mismatched, .. } if mismatched.len() == 1 && mismatched[0].name == name)
        });
        assert_eq!(mismatches.count(), 1, "{name}");
    }
    let mut linear = Linear::<f64>::new(3, 2, &mut Generator::new(5));
    for state in ["@optimizer.o.weight.step", "@settings.o.lr", "@optimizer.o.weight.momentum_buffer"] {
        let Some(file) = sparse(state, "[65536,2097152]") else { return };
        let saved = Checkpoint::open(&file).unwrap().convert();
        let error = saved.load_optimizer("o", &mut Sgd::<f64>::new(0.1).momentum(0.9), &linear).unwrap_err();
        assert!(matches!(error, Error::Keys { .. }), "{state}: {error}");
    }
    let Some(file) = sparse("weight", "[137438953472]") else { return };
    assert!(matches!(load(&mut linear, &file), Err(Error::Keys { .. })));
}

#[test]
fn a_large_file_that_is_not_a_checkpoint_is_not_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let size = 1 << 40; // This is a sparse file, if the file system supports them.
    if file.as_file().set_len(size).is_ok() {
        let error = load(&mut model::<f32>(&[("w", &[1])]), &file).unwrap_err();
        assert!(matches!(error, Error::Checkpoint { .. }), "{error}");
    }
    let error = load(&mut model::<f32>(&[]), "/dev/zero").unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
}

#[test]
fn two_tensors_with_the_same_name_are_an_error() {
    let entry = r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
    let second = r#"{"dtype":"F32","shape":[1],"data_offsets":[4,8]}"#;
    for (first, again) in [("w", "w"), ("w", r"\u0077"), (METADATA, METADATA)] {
        let text = refusal(&with_header(&format!(r#"{{"{first}":{entry},"{again}":{second}}}"#), 8));
        assert!(text.contains(&format!("two tensors have the name '{first}'")), "{text}");
    }
    let error = save(&model::<f32>(&[("w", &[1]), ("w", &[2])]), "unused").unwrap_err();
    assert_eq!(error.to_string(), "two parameters of the model have the name 'w'");
    let error = Checkpoint::new().integer("epoch", 1).integer("epoch", 2).to_bytes().unwrap_err();
    assert_eq!(error.to_string(), "two entries of the checkpoint have the name '@integer.epoch'");
    let error = save(&model::<f32>(&[(METADATA, &[1])]), "unused").unwrap_err();
    assert!(error.to_string().starts_with("a parameter cannot be named '__metadata__'"), "{error}");
}

#[test]
fn long_lists_and_long_names_are_shortened() {
    let names: Vec<String> = (0..20_000).map(|i| format!("empty{i:06}")).collect();
    let entries = names.iter().map(|name| format!(r#""{name}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#));
    let header = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
    let text = refusal(&with_header(&header, 0));
    let expected = "'f' does not fit the model:\n  missing in the file: 'w'\n  unexpected in the file: 'empty000000', \
                    'empty000001', 'empty000002', 'empty000003', 'empty000004', 'empty000005', 'empty000006', \
                    'empty000007', 'empty000008', 'empty000009' and 19990 more";
    assert_eq!(text, expected);
    let name = "n".repeat(100_000);
    let header = format!(
        r#"{{"w":{{"dtype":"F32","shape":[{}0],"data_offsets":[0,0]}},"{name}":{{"dtype":"F32","#,
        "1,".repeat(10_000)
    ) + r#""shape":[0],"data_offsets":[0,0]}}"#;
    let text = refusal(&with_header(&header, 0));
    assert!(text.contains(&format!("'{}…'", "n".repeat(200))) && text.len() < 800, "{text}");
}

#[test]
fn control_characters_in_names_are_escaped() {
    let header = r#"{"\u001b[2J":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}"#;
    assert!(refusal(&with_header(header, 0)).ends_with(r"unexpected in the file: '\u{1b}[2J'"));
    let header = r#"{"w":{"dtype":"\u001b[2J","shape":[0],"data_offsets":[0,0]}}"#;
    assert!(refusal(&with_header(header, 0)).contains(r"unknown variant `\u{1b}[2J`"));
    let error = save(&model::<f32>(&[("a\nb", &[1]), ("a\nb", &[1])]), "unused").unwrap_err();
    assert_eq!(error.to_string(), r"two parameters of the model have the name 'a\nb'");
}

/// Returns a file with tensors of these names, element types, shapes and bytes.
fn written(tensors: &[(&str, FileDtype, &[usize], &[u8])]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let view = |&(name, dtype, shape, bytes): &(_, _, &[usize], _)| {
        (name, TensorView::new(dtype, shape.to_vec(), bytes).unwrap())
    };
    fs::write(&file, serialize(tensors.iter().map(view), None).unwrap()).unwrap();
    file
}

#[test]
fn floats_of_every_width_are_converted_on_request() {
    // Each of these tensors has the elements 1.5 and -2. Their element types differ.
    let halves = written(&[
        ("a", FileDtype::F16, &[2], &[0x00, 0x3e, 0x00, 0xc0]),
        ("b", FileDtype::BF16, &[2], &[0xc0, 0x3f, 0x00, 0xc0]),
        ("c", FileDtype::F64, &[2], &[1.5f64, -2.0].map(f64::to_le_bytes).concat()),
    ]);
    let mut single = model::<f32>(&[("a", &[2]), ("b", &[2]), ("c", &[2])]);
    let text = load(&mut single, &halves).unwrap_err().to_string();
    assert!(text.contains("mismatch: 'b' is BF16 [2] in the file, F32 [2] in the model"), "{text}");
    assert!(text.ends_with("`Saved::convert` converts between floating-point types"), "{text}");
    assert!(Checkpoint::open(&halves).unwrap().convert().load_model(&mut single).unwrap().is_complete());
    assert!(single.parameters().iter().all(|parameter| parameter.value.to_vec() == [1.5, -2.0]));
    let mut double = model::<f64>(&[("a", &[2]), ("b", &[2]), ("c", &[2])]);
    Checkpoint::open(&halves).unwrap().convert().load_model(&mut double).unwrap();
    assert!(double.parameters().iter().all(|parameter| parameter.value.to_vec() == [1.5, -2.0]));
    // Conversion rounds to nearest, ties to even. 1 + 2⁻²⁴ lies half way between two f32 values.
    let fine = written(&[("w", FileDtype::F64, &[1], &(1.0 + 2f64.powi(-24)).to_le_bytes())]);
    let mut rounded = model::<f32>(&[("w", &[1])]);
    Checkpoint::open(&fine).unwrap().convert().load_model(&mut rounded).unwrap();
    assert_eq!(rounded.0[0].1.value.to_vec(), [1.0]);
}

/// The running mean and the count of batches of a batch normalization, with PyTorch's names.
#[derive(Module)]
struct Statistics {
    running_mean: Buffer,
    num_batches_tracked: Buffer<i64>,
}

#[test]
fn buffers_of_pytorch_are_loaded_and_integers_are_never_converted() {
    let mean = [0.5f32, 0.25].map(f32::to_le_bytes).concat();
    let mut model = Statistics {
        running_mean: Buffer::new(Tensor::zeros([2])),
        num_batches_tracked: Buffer::new(Tensor::scalar(0)),
    };
    let file = written(&[
        ("running_mean", FileDtype::F32, &[2], &mean),
        ("num_batches_tracked", FileDtype::I64, &[], &7i64.to_le_bytes()),
    ]);
    load(&mut model, &file).unwrap();
    assert_eq!((model.running_mean.value.to_vec(), model.num_batches_tracked.value.item()), (vec![0.5, 0.25], 7));
    let half = written(&[
        ("running_mean", FileDtype::BF16, &[2], &[0xc0, 0x3f, 0x00, 0xc0]),
        ("num_batches_tracked", FileDtype::F32, &[], &7f32.to_le_bytes()),
    ]);
    let saved = Checkpoint::open(&half).unwrap().convert();
    assert!(matches!(saved.load_model(&mut model), Err(Error::Keys { mismatched, .. }) if mismatched.len() == 1));
    saved.partial().load_model(&mut model).unwrap();
    assert_eq!((model.running_mean.value.to_vec(), model.num_batches_tracked.value.item()), (vec![1.5, -2.0], 7));
}

/// A buffer that cannot hold new elements, as if memory ran out.
struct Full(Buffer<f64>);

impl AnyBuffer for Full {
    fn dtype(&self) -> DType {
        DType::F64
    }

    fn shape(&self) -> &Shape {
        self.0.value.shape()
    }

    fn to_bytes(&self) -> Vec<u8> {
        crate::bytes::to_bytes(&self.0.value)
    }

    fn decode(&mut self, _: &[u8]) -> Result<Box<dyn FnOnce() + '_>> {
        Err(Error::Dataset("no memory".to_owned()))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Module<f64> for Full {
    fn leaf(&self) -> Option<Leaf<'_, f64>> {
        Some(Leaf::Buffer(self))
    }

    fn leaf_mut(&mut self) -> Option<LeafMut<'_, f64>> {
        Some(LeafMut::Buffer(self))
    }
}

#[test]
fn a_tensor_that_cannot_be_converted_leaves_the_model_and_the_average_unchanged() {
    let model = |value: f64| {
        let buffer = Buffer::new(Tensor::scalar(value));
        (Parameter::new(Tensor::scalar(value)), (buffer.clone(), Full(buffer)))
    };
    let values = |model: &(Parameter<f64>, (Buffer<f64>, Full))| {
        [model.0.value.item(), model.1.0.value.item(), model.1.1.0.value.item()]
    };
    let (bytes, mut other) = (to_bytes(&model(1.0)).unwrap(), model(2.0));
    let error = from_bytes(&mut other, bytes).unwrap_err();
    assert_eq!((error.to_string(), values(&other)), ("no memory".to_owned(), [2.0; 3]));
    let mut average = WeightAverage::swa();
    average.update(&model(1.0));
    assert!(average.try_swap(&mut other).is_err());
    assert_eq!(values(&other), [2.0; 3]);
    average.update(&other); // After a successful swap this would panic.
}

#[test]
fn a_file_may_lack_the_counts_of_batches_as_in_pytorch() {
    let mean = [0.5f32, 0.25].map(f32::to_le_bytes).concat();
    let file = written(&[("running_mean", FileDtype::F32, &[2], &mean)]);
    let mut model = Statistics {
        running_mean: Buffer::new(Tensor::zeros([2])),
        num_batches_tracked: Buffer::new(Tensor::scalar(3)),
    };
    load(&mut model, &file).unwrap();
    assert_eq!((model.running_mean.value.to_vec(), model.num_batches_tracked.value.item()), (vec![0.5, 0.25], 3));
    // A file may lack the count of batches of a batch normalization. It may not lack any other buffer.
    let count = written(&[("num_batches_tracked", FileDtype::I64, &[], &7i64.to_le_bytes())]);
    assert!(matches!(load(&mut model, &count), Err(Error::Keys { missing, .. }) if missing == ["running_mean"]));
    let mut alone = crate::BatchNorm1d::<f32>::new(2);
    alone.running_mean = None;
    let rest = ["weight", "bias", "running_var"].map(|name| (name, FileDtype::F32, &[2][..], &mean[..]));
    assert!(load(&mut alone, written(&rest)).is_err());
    let all = ["weight", "bias", "running_mean", "running_var"].map(|name| (name, FileDtype::F32, &[2][..], &mean[..]));
    load(&mut crate::BatchNorm1d::<f32>::new(2), written(&all)).unwrap();
}

#[test]
fn a_partial_load_reports_the_rest() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut saved = model::<f32>(&[("module.a", &[2]), ("module.b", &[3]), ("module.c", &[1])]);
    saved.0[0].1.value = Tensor::from([1.0, 2.0]);
    save(&saved, &file).unwrap();
    let mut other = model::<f32>(&[("a", &[2]), ("b", &[4]), ("d", &[1])]);
    let text = load(&mut other, &file).unwrap_err().to_string();
    assert!(text.contains("'a' may be 'module.a' in the file (`Saved::rename`)"), "{text}");
    let opened = Checkpoint::open(&file).unwrap().rename(|name| name.replacen("module.", "", 1)).partial();
    let report = opened.load_model(&mut other).unwrap();
    assert_eq!((&report.missing[..], &report.unexpected[..]), (&["d".to_owned()][..], &["c".to_owned()][..]));
    assert_eq!((report.mismatched.len(), &report.mismatched[0].name[..]), (1, "b"));
    assert_eq!(other.0[0].1.value.to_vec(), [1.0, 2.0]);
    assert!(report.to_string().starts_with("not loaded:\n  missing in the file: 'd'"), "{report}");
    let all = Checkpoint::open(&file).unwrap().rename(|_| "a".to_owned());
    let text = all.load_model(&mut other).unwrap_err().to_string();
    assert_eq!(text, "two tensors of the file, after renaming, have the name 'a'");
}

#[test]
fn a_file_of_torch_save_is_recognized() {
    for start in [&b"PK\x03\x04\0\0\x08\x08\0\0"[..], b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."] {
        let text = refusal(start);
        assert!(text.contains("it is a file of `torch.save`") && text.contains("save_file"), "{text}");
    }
    // Files in later protocols of pickle, which `torch.save` writes with `_use_new_zipfile_serialization=False` and a `pickle_protocol` above
    // 2.
    for start in [&b"\x80\x03\x8a\x0al\xfc\x9cF\xf9 j"[..], b"\x80\x05\x95\x0d\0\0\0\0\0\0\0"] {
        assert!(refusal(start).contains("it is a file of `torch.save`"));
    }
}

#[test]
fn a_header_whose_length_begins_as_a_file_of_torch_save_is_valid() {
    // The little-endian lengths 640 and 66,176 begin with the bytes 80 02, as a pickle of `torch.save` does.
    for length in [640, 640 + 65_536] {
        assert!(
            refusal(&with_header(&("{}".to_owned() + &" ".repeat(length - 2)), 0))
                .ends_with("missing in the file: 'w'")
        );
    }
    // A header of 67,324,752 bytes has a length that begins with "PK\x03\x04".
    assert!(refusal(b"PK\x03\x04\0\0\0\0").ends_with("a header of 67324752 bytes in a file of 8"));
}

fn gradients(model: &Linear<f64>, generator: &mut Generator) -> Gradients<f64> {
    let x = Tensor::randn([4, 3], generator);
    let tape = Tape::training(generator);
    let (_, gradients) = tape.value_and_gradients(|tape| {
        let y = model.forward(tape.constant(&x));
        wengert_tensor::ops::Arithmetic::mul(&y, y).sum(..)
    });
    gradients
}

/// Checks that a training run continues in the same way after its model, optimiser and generator are saved and restored. `made` returns a new
/// optimiser, and `settled` changes the optimiser's settings before it is saved.
fn resumes<O: Optimizer<f64>>(made: impl Fn() -> O, settled: impl Fn(&mut O)) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut generator = Generator::new(5);
    let (mut model, mut optimizer) = (Linear::<f64>::new(3, 2, &mut generator), made());
    let train = |model: &mut Linear<f64>, optimizer: &mut O, generator: &mut Generator| {
        for _ in 0..3 {
            let gradients = gradients(model, generator);
            optimizer.step(model, &gradients);
        }
    };
    train(&mut model, &mut optimizer, &mut generator);
    settled(&mut optimizer);
    let checkpoint = Checkpoint::new().model(&model).optimizer("o", &optimizer, &model).generator(&generator);
    checkpoint.integer("step", u64::MAX).number("best", f64::NEG_INFINITY).save(&file).unwrap();

    let (mut resumed, mut its) = (Linear::<f64>::new(3, 2, &mut Generator::new(6)), made());
    let saved = Checkpoint::open(&file).unwrap();
    saved.load_model(&mut resumed).unwrap();
    saved.load_optimizer("o", &mut its, &resumed).unwrap();
    let mut its_generator = saved.generator().unwrap();
    assert_eq!((saved.integer("step").unwrap(), saved.number("best").unwrap()), (u64::MAX, f64::NEG_INFINITY));
    assert!(matches!(saved.number("step"), Err(Error::Keys { missing, .. }) if missing == ["@number.step"]));
    train(&mut model, &mut optimizer, &mut generator);
    train(&mut resumed, &mut its, &mut its_generator);
    assert_eq!(resumed.weight.value, model.weight.value);
    assert_eq!(its_generator, generator);
    load(&mut resumed, &file).unwrap(); // Loading a model ignores the other entries of the file.
}

#[test]
fn restored_optimisers_continue_the_same_way() {
    resumes(|| Sgd::new(0.1).momentum(0.9).group("bias", |sgd| sgd.lr(0.01)), |sgd| sgd.set_lr(0.025));
    resumes(|| Sgd::new(0.1), |_| ());
    resumes(|| Adam::new(0.1).amsgrad().group("weight", |adam| adam.weight_decay(0.5)), |adam| adam.set_lr(0.03));
}

/// Checks that `convert` loads a checkpoint of another element type: `into` gets the states that `from` has after three steps. The parameters
/// are a number and a vector.
fn converts<T: Float, U: Float, O: Optimizer<T>, P: Optimizer<U>>(mut from: O, mut into: P) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut model = (Parameter::new(Tensor::<T>::scalar(T::ONE)), Parameter::new(Tensor::<T>::ones([3])));
    for _ in 0..3 {
        let tape = Tape::new();
        let loss = (tape.parameter(&model.0) * tape.parameter(&model.1)).square().sum(..);
        let gradients = loss.backward();
        drop(tape);
        from.step(&mut model, &gradients);
    }
    Checkpoint::new().model(&model).optimizer("o", &from, &model).save(&file).unwrap();
    let mut other = (Parameter::new(Tensor::<U>::scalar(U::ZERO)), Parameter::new(Tensor::<U>::zeros([3])));
    let saved = Checkpoint::open(&file).unwrap();
    assert!(matches!(saved.load_optimizer("o", &mut into, &other), Err(Error::Keys { .. })));
    let saved = saved.convert();
    saved.load_model(&mut other).unwrap();
    saved.load_optimizer("o", &mut into, &other).unwrap();
    for (parameter, converted) in [(&model.0, &other.0), (&model.1, &other.1)] {
        let (old, new) = (from.common().states(parameter).unwrap(), into.common().states(converted).unwrap());
        assert_eq!((new.steps, new.tensors.len()), (old.steps, old.tensors.len()));
        for (old, new) in old.tensors.iter().zip(&new.tensors) {
            assert_eq!(new.shape(), old.shape());
            assert!(new.iter().eq(old.iter().map(|x| U::from_f64(x.to_f64()))), "{old} {new}");
        }
    }
}

#[test]
fn states_without_dimensions_are_converted() {
    converts(NAdam::<f64>::new(0.1), NAdam::<f32>::new(0.1));
    converts(NAdam::<f32>::new(0.1), NAdam::<f64>::new(0.1));
    converts(Asgd::<f64>::new(0.1).t0(1.0), Asgd::<f32>::new(0.1));
    converts(Adam::<f64>::new(0.1), Adam::<f32>::new(0.1));
}

#[test]
fn objects_whose_names_begin_alike_are_distinguished() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut model = Linear::<f64>::new(3, 2, &mut Generator::new(5));
    let step = gradients(&model, &mut Generator::new(0));
    let new = || Sgd::new(0.5).momentum(0.9).group("bias", |sgd| sgd.lr(0.25));
    let (mut sgd, mut adam, mut average) = (new(), Adam::new(0.125), WeightAverage::ema(0.75));
    sgd.step(&mut model, &step);
    adam.step(&mut model, &step);
    average.update(&model);
    let checkpoint = Checkpoint::new().model(&model).optimizer("a", &sgd, &model).optimizer("a.b", &adam, &model);
    checkpoint.states("a.b.c", &average, &model).states("a.d", &Lbfgs::new(0.5), &model).save(&file).unwrap();
    let saved = Checkpoint::open(&file).unwrap();
    let (mut other, mut its, mut average) = (new().lr(1.0), Adam::new(1.0), WeightAverage::swa());
    saved.load_optimizer("a", &mut other, &model).unwrap();
    saved.load_optimizer("a.b", &mut its, &model).unwrap();
    saved.load_states("a.b.c", &mut average, &model).unwrap();
    saved.load_states("a.d", &mut Lbfgs::new(1.0), &model).unwrap();
    assert_eq!((other.learning_rate(), its.learning_rate(), average.updates()), (0.5, 0.125, 1));
    let tensors = |optimizer: &Sgd<f64>| optimizer.common().states(&model.weight).unwrap().tensors.clone();
    assert_eq!(tensors(&other), tensors(&sgd));
}

#[test]
fn objects_that_a_file_cannot_distinguish_are_not_saved() {
    let refusal = |checkpoint: Checkpoint| checkpoint.to_bytes().unwrap_err().to_string();
    let (outer, inner) = (model::<f64>(&[("b.w", &[1]), ("c.w", &[1])]), model::<f64>(&[("w", &[1])]));
    let mut sgd = Sgd::<f64>::new(0.5);
    let states = || crate::States { steps: 3, tensors: Vec::new() };
    sgd.common_mut().set_states(&outer.0[1].1, states());
    let checkpoint =
        |sgd: &Sgd<f64>| Checkpoint::new().optimizer("a", sgd, &outer).optimizer("a.b", &Sgd::new(0.25), &inner);
    // The only state in the file is the entry `@optimizer.a.c.w.step`, which cannot belong to `a.b`. So the file can be saved and loaded.
    let saved = Checkpoint::from_bytes(checkpoint(&sgd).to_bytes().unwrap()).unwrap();
    let (mut first, mut second) = (Sgd::new(1.0), Sgd::new(1.0));
    saved.load_optimizer("a", &mut first, &outer).unwrap();
    saved.load_optimizer("a.b", &mut second, &inner).unwrap();
    let steps = |sgd: &Sgd<f64>, parameter| sgd.common().states(parameter).map(|states| states.steps);
    assert_eq!((steps(&first, &outer.0[0].1), steps(&first, &outer.0[1].1)), (None, Some(3)));
    assert_eq!(steps(&second, &inner.0[0].1), None);
    // In the file, this state of the parameter `b.w` in the object `a` has the same name as a state of `w` in `a.b`.
    sgd.common_mut().set_states(&outer.0[0].1, states());
    let text = refusal(checkpoint(&sgd));
    assert!(text.contains("the entry '@optimizer.a.b.w.step' of the object 'a' could also belong to 'a.b'"), "{text}");
    // Also refused: an object whose name looks like an entry of another object's group, and two objects of different kinds with the same
    // name.
    let text = refusal(Checkpoint::new().optimizer("a", &sgd, &inner).optimizer("a.groups.0.w", &sgd, &inner));
    assert!(text.contains("of the object 'a.groups.0.w' could also belong to 'a'"), "{text}");
    let average = WeightAverage::swa();
    let text = refusal(Checkpoint::new().optimizer("a", &sgd, &inner).states("a", &average, &inner));
    assert!(text.contains("of the object 'a' could also belong to 'a'"), "{text}");
}

#[test]
fn an_average_between_two_swaps_is_not_saved() {
    let (mut average, mut model) = (WeightAverage::swa(), Linear::<f64>::new(3, 2, &mut Generator::new(5)));
    average.update(&model);
    average.swap(&mut model);
    let error = Checkpoint::new().model(&model).states("average", &average, &model).to_bytes().unwrap_err();
    assert!(error.to_string().contains("call `swap` a second time"), "{error}");
    let error = Checkpoint::new().states("average", &average, &model).save("unused").unwrap_err();
    assert!(error.to_string().contains("call `swap` a second time"), "{error}");
    average.swap(&mut model);
    Checkpoint::new().model(&model).states("average", &average, &model).to_bytes().unwrap();
}

#[test]
fn an_average_without_updates_is_restored() {
    let mut model = Linear::<f64>::new(3, 2, &mut Generator::new(5));
    let bytes = Checkpoint::new().states("average", &WeightAverage::ema(0.25), &model).to_bytes().unwrap();
    let mut average = WeightAverage::swa();
    average.update(&model);
    Checkpoint::from_bytes(bytes).unwrap().load_states("average", &mut average, &model).unwrap();
    assert_eq!(average.updates(), 0);
    assert!(average.try_swap(&mut model).is_err());
    average.update(&model);
    average.swap(&mut model);
}

/// Checks that a checkpoint restores the states of an optimiser whose model has empty parameters: the next step of the restored optimiser
/// gives equal parameters.
fn restores_empty_parameters<O: Optimizer<f64>>(new: impl Fn() -> O) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let shapes: [(&str, &[usize]); 4] = [("a", &[0, 3]), ("b", &[3, 0]), ("c", &[0, 0]), ("d", &[3, 2])];
    let mut model = model::<f64>(&shapes);
    let step = |model: &mut Model<f64>, optimizer: &mut O| {
        let tape = Tape::new();
        let sums: Vec<_> =
            model.0.iter().map(|(_, parameter)| (tape.parameter(parameter) + 1.0).square().sum(..)).collect();
        let gradients = sums.into_iter().reduce(|a, b| a + b).unwrap().backward();
        drop(tape);
        optimizer.step(model, &gradients);
    };
    let mut optimizer = new();
    step(&mut model, &mut optimizer);
    Checkpoint::new().model(&model).optimizer("o", &optimizer, &model).save(&file).unwrap();
    let (mut other, mut restored) = (self::model::<f64>(&shapes), new());
    let saved = Checkpoint::open(&file).unwrap();
    saved.load_model(&mut other).unwrap();
    saved.load_optimizer("o", &mut restored, &other).unwrap();
    step(&mut model, &mut optimizer);
    step(&mut other, &mut restored);
    assert_eq!(other.to_vector(), model.to_vector());
}

#[test]
fn states_of_empty_parameters_are_restored() {
    restores_empty_parameters(|| Adafactor::new(0.1));
    restores_empty_parameters(|| Muon::new(0.1));
    restores_empty_parameters(|| Adam::new(0.1));
    // Earlier versions saved only the number of steps for an empty parameter. Such files can still be loaded.
    let (model, mut muon) = (model::<f64>(&[("a", &[0, 3]), ("b", &[1, 3])]), Muon::new(0.1));
    let old = |count| {
        let mut muon = Muon::new(0.1);
        let states = || crate::States { steps: 2, tensors: Vec::new() };
        model.0.iter().take(count).for_each(|(_, parameter)| muon.common_mut().set_states(parameter, states()));
        Checkpoint::from_bytes(Checkpoint::new().optimizer("o", &muon, &model).to_bytes().unwrap()).unwrap()
    };
    old(1).load_optimizer("o", &mut muon, &model).unwrap();
    assert_eq!(muon.common().states(&model.0[0].1).unwrap().steps, 2);
    // If a parameter with elements has no states in the file, loading fails.
    assert!(matches!(old(2).load_optimizer("o", &mut muon, &model), Err(Error::Keys { .. })));
}

#[test]
fn an_optimiser_of_another_kind_is_an_error_that_changes_nothing() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (mut model, mut sgd) = (Linear::<f64>::new(3, 2, &mut Generator::new(5)), Sgd::new(0.1).momentum(0.9));
    let step = gradients(&model, &mut Generator::new(0));
    sgd.step(&mut model, &step);
    Checkpoint::new().model(&model).optimizer("sgd", &sgd, &model).save(&file).unwrap();
    let saved = Checkpoint::open(&file).unwrap();
    let mut adam = Adam::new(0.5);
    let text = saved.load_optimizer("sgd", &mut adam, &model).unwrap_err().to_string();
    assert!(text.contains("'@settings.sgd.beta1'") && text.contains("'@settings.sgd.momentum'"), "{text}");
    assert_eq!(adam.learning_rate(), 0.5);
    assert!(saved.load_optimizer("other", &mut sgd, &model).is_err());
    let before = fs::read(&file).unwrap();
    Checkpoint::new().model(&model).optimizer("sgd", &sgd, &model).save(&file).unwrap();
    assert_eq!(fs::read(&file).unwrap(), before); // Equal values give equal bytes.
}

#[test]
fn a_conversion_is_suggested_only_where_it_helps() {
    let hint = |error: Error| error.to_string().contains("`Saved::convert`");
    let float8 = written(&[("w", FileDtype::F8_E4M3, &[2], &[0, 0])]);
    assert!(!hint(load(&mut model::<f32>(&[("w", &[2])]), &float8).unwrap_err()));
    let other_shape = written(&[("w", FileDtype::F64, &[1], &[0; 8])]);
    assert!(!hint(load(&mut model::<f32>(&[("w", &[2])]), &other_shape).unwrap_err()));
    let single = written(&[("@number.x", FileDtype::F32, &[], &[0; 4]), ("i", FileDtype::I64, &[], &[0; 8])]);
    let saved = Checkpoint::open(&single).unwrap();
    assert!(!hint(saved.number("x").unwrap_err()));
    assert!(hint(saved.tensor::<f64>("@number.x").unwrap_err()));
    assert!(!hint(saved.tensor::<f64>("i").unwrap_err()) && !hint(saved.tensor::<i64>("@number.x").unwrap_err()));
    // The states of an optimiser are converted, but not its settings.
    let mut other = model::<f64>(&[("w", &[2])]);
    let mut adam = Adam::<f64>::new(0.1);
    let gradients = Tape::new().value_and_gradients(|tape| tape.parameter(&other.0[0].1).sum(..)).1;
    adam.step(&mut other, &gradients);
    let bytes = Checkpoint::new().optimizer("a", &adam, &other).to_bytes().unwrap();
    let load_into = |saved: Saved| {
        saved.load_optimizer("a", &mut Adam::<f32>::new(0.1), &model::<f32>(&[("w", &[2])])).unwrap_err()
    };
    assert!(hint(load_into(Checkpoint::from_bytes(bytes).unwrap())));
    let setting = written(&[("@settings.a.lr", FileDtype::F32, &[], &[0; 4])]);
    assert!(!hint(load_into(Checkpoint::open(&setting).unwrap())));
}
