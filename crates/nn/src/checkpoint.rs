//! Parameters in files: the safetensors format, which PyTorch reads.
//!
//! In Python, `safetensors.torch.load_file(path)` gives a `state_dict` that `load_state_dict` takes: the names are the
//! parameters' and the layouts PyTorch's. The other way round, a `state_dict` saved by `safetensors.torch.save_file`
//! loads here. The format: <https://github.com/huggingface/safetensors#format>. The same values give the same bytes.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors, serialize};
use wengert_tensor::{DType, Float, Shape, Tensor};

use crate::{Error, KeyMismatch, Module, Result, write_atomically};

/// Writes the parameters of `model` to the file `path`, whole or not at all
/// ([`write_atomically`](crate::write_atomically)). safetensors: `save_file(model.state_dict(), path)`.
///
/// ```
/// use wengert_nn::{Generator, Linear, load, save};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.safetensors");
/// let trained = Linear::<f32>::new("fc", 4, 2, &mut Generator::new(0));
/// save(&trained, &path)?;
///
/// let mut model = Linear::<f32>::new("fc", 4, 2, &mut Generator::new(1));
/// load(&mut model, &path)?;
/// assert_eq!(model.weight.value, trained.weight.value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Where two parameters have one name, or the file cannot be written.
pub fn save<T: Float>(model: &impl Module<T>, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let parameters = model.parameters();
    check_names(parameters.iter().map(|parameter| parameter.name()))?;
    let bytes: Vec<Vec<u8>> = parameters.iter().map(|parameter| to_bytes(&parameter.value)).collect();
    let views = parameters.iter().zip(&bytes).map(|(parameter, bytes)| {
        let view = TensorView::new(dtype::<T>(), parameter.value.shape().to_vec(), bytes)?;
        Ok((parameter.name(), view))
    });
    let refused =
        |error: safetensors::SafeTensorError| Error::Checkpoint { path: path.to_owned(), reason: error.to_string() };
    let views: Vec<(&str, TensorView)> = views.collect::<std::result::Result<_, _>>().map_err(refused)?;
    // What PyTorch's own files say, and loaders that know several frameworks ask for.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    write_atomically(path, &serialize(views, Some(metadata)).map_err(refused)?)
}

/// Reads the parameters of `model` from the file `path`. Names, shapes and element types must be those of the model.
/// PyTorch: `model.load_state_dict(load_file(path), strict=True)`.
///
/// # Errors
///
/// Where the file cannot be read or is no checkpoint, and where it does not fit the model: with all names that are
/// missing, unexpected or mismatched ([`Error::Keys`]). Then nothing in the model has changed.
pub fn load<T: Float>(model: &mut impl Module<T>, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let bytes = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| Error::Checkpoint { path: path.to_owned(), reason: error.to_string() })?;
    let mut found: HashMap<String, TensorView> = file.tensors().into_iter().collect();
    let parameters = model.parameters_mut();
    check_names(parameters.iter().map(|parameter| parameter.name()))?;

    let (mut missing, mut mismatched, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for parameter in &parameters {
        let (name, shape) = (parameter.name().to_owned(), parameter.value.shape());
        match found.remove(&name) {
            None => missing.push(name),
            Some(view) if view.dtype() != dtype::<T>() || view.shape() != shape.sizes() => {
                let found = (Shape::from(view.shape()), view.dtype().to_string());
                mismatched.push(KeyMismatch { name, found, expected: (shape.clone(), dtype::<T>().to_string()) });
            }
            Some(view) => values.push(from_bytes(view.data(), shape)?),
        }
    }
    let mut unexpected: Vec<String> = found.into_keys().collect();
    unexpected.sort_unstable();
    if !(missing.is_empty() && unexpected.is_empty() && mismatched.is_empty()) {
        return Err(Error::Keys { path: path.to_owned(), missing, unexpected, mismatched });
    }
    for (parameter, value) in parameters.into_iter().zip(values) {
        parameter.value = value;
    }
    Ok(())
}

fn check_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<()> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(Error::DuplicateName { name: name.to_owned() });
        }
    }
    Ok(())
}

/// Whether `T` is f32 and not f64; the trait is sealed, there is no third.
fn is_single<T: Float>() -> bool {
    T::DTYPE == DType::F32
}

fn dtype<T: Float>() -> Dtype {
    if is_single::<T>() { Dtype::F32 } else { Dtype::F64 }
}

/// Row-major and little-endian, as the format has it. Through f64, which holds every f32.
fn to_bytes<T: Float>(tensor: &Tensor<T>) -> Vec<u8> {
    let values = tensor.iter().map(|value| value.to_f64());
    if is_single::<T>() {
        values.flat_map(|value| (value as f32).to_le_bytes()).collect()
    } else {
        values.flat_map(f64::to_le_bytes).collect()
    }
}

fn from_bytes<T: Float>(bytes: &[u8], shape: &Shape) -> Result<Tensor<T>> {
    let values: Vec<T> = if is_single::<T>() {
        bytes.as_chunks().0.iter().map(|&chunk| T::from_f64(f64::from(f32::from_le_bytes(chunk)))).collect()
    } else {
        bytes.as_chunks().0.iter().map(|&chunk| T::from_f64(f64::from_le_bytes(chunk))).collect()
    };
    Ok(Tensor::try_from_vec(values, shape)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generator, Linear, Parameter};

    struct Model<T: Float>(Vec<Parameter<T>>);

    impl<T: Float> Module<T> for Model<T> {
        fn parameters(&self) -> Vec<&Parameter<T>> {
            self.0.iter().collect()
        }

        fn parameters_mut(&mut self) -> Vec<&mut Parameter<T>> {
            self.0.iter_mut().collect()
        }
    }

    fn model<T: Float>(shapes: &[(&str, &[usize])]) -> Model<T> {
        Model(shapes.iter().map(|&(name, shape)| Parameter::new(name, Tensor::zeros(shape))).collect())
    }

    #[test]
    fn a_checkpoint_written_is_read_back_equal_and_writes_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let awkward = [f64::MIN_POSITIVE / 2.0, -0.0, 1.0 / 3.0, f64::INFINITY, f64::NAN, f64::MAX];
        let saved = Model(vec![
            Parameter::new("b", Tensor::from(awkward)),
            Parameter::new("a", Tensor::scalar(2.5)),
            Parameter::new("empty", Tensor::zeros([0, 3])),
        ]);
        save(&saved, &first).unwrap();
        let mut loaded = model::<f64>(&[("b", &[6]), ("a", &[]), ("empty", &[0, 3])]);
        load(&mut loaded, &first).unwrap();
        let bits = |model: &Model<f64>| -> Vec<Vec<u64>> {
            model.0.iter().map(|parameter| parameter.value.iter().map(f64::to_bits).collect()).collect()
        };
        assert_eq!(bits(&loaded), bits(&saved));
        save(&loaded, &second).unwrap();
        assert_eq!(fs::read(first).unwrap(), fs::read(second).unwrap());
    }

    #[test]
    fn the_layout_is_pytorchs() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut layer = Linear::<f32>::new("fc1", 3, 2, &mut Generator::new(0));
        layer.weight.value = Tensor::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
        save(&layer, &file).unwrap();
        let bytes = fs::read(&file).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        assert_eq!(header.metadata().as_ref().unwrap()["format"], "pt");
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let mut names = tensors.names();
        names.sort_unstable();
        assert_eq!(names, ["fc1.bias", "fc1.weight"]);
        let weight = tensors.tensor("fc1.weight").unwrap();
        assert_eq!((weight.dtype(), weight.shape()), (Dtype::F32, &[2, 3][..]));
        let expected: Vec<u8> = (1..=6).flat_map(|i| (i as f32).to_le_bytes()).collect();
        assert_eq!(weight.data(), expected);
    }

    #[test]
    fn a_checkpoint_of_another_model_lists_what_differs_and_changes_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut saved = model::<f32>(&[("fc1.weight", &[2, 3]), ("fc1.bias", &[2]), ("fc3.bias", &[1])]);
        saved.0[1].value = Tensor::from([1.0, 2.0]);
        save(&saved, &file).unwrap();
        let mut other = model::<f32>(&[("fc1.weight", &[3, 2]), ("fc1.bias", &[2]), ("fc2.bias", &[1])]);
        let error = load(&mut other, &file).unwrap_err();
        let text = error.to_string().replace(file.path().to_str().unwrap(), "f");
        assert_eq!(
            text,
            "'f' does not fit the model:\n  missing in the file: 'fc2.bias'\n  unexpected in the file: 'fc3.bias'\n  \
             mismatch: 'fc1.weight' is F32 [2, 3] in the file, F32 [3, 2] in the model"
        );
        assert_eq!(other.0[1].value.to_vec(), [0.0, 0.0]);
        let mut double = model::<f64>(&[("fc1.weight", &[2, 3]), ("fc1.bias", &[2]), ("fc3.bias", &[1])]);
        let Err(Error::Keys { mismatched, .. }) = load(&mut double, &file) else { panic!("f32 is not f64") };
        assert_eq!(mismatched.len(), 3);
    }

    #[test]
    fn damaged_files_and_equal_names_are_errors() {
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
}
