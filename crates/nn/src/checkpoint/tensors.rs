//! Reads single tensors of a checkpoint by name, without a model.

use wengert_tensor::{Element, Shape, Tensor};

use super::read::{Saved, shape_and_dtype};
use super::report::LoadReport;
use crate::bytes::{convert_floats, file_dtype, from_bytes, is_float};
use crate::{KeyMismatch, Result};

impl Saved {
    /// Returns the names of all tensors in the file, sorted. Names that begin with `@` are entries of a
    /// [`Checkpoint`](crate::Checkpoint) that do not belong to the model. safetensors: `safe_open(path, "np").keys()`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_tensor::prelude; }
    /// use wengert::nn::{Checkpoint, Generator, Linear, save};
    /// use wengert::prelude::*;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("model.safetensors");
    /// let model = Linear::<f32>::new(4, 2, &mut Generator::new(0));
    /// save(&model, &path)?;
    ///
    /// let saved = Checkpoint::open(&path)?;
    /// assert_eq!(saved.names(), ["bias", "weight"]);
    /// assert_eq!(saved.shape("weight").unwrap(), [2, 4]);
    /// let weight: Tensor = saved.tensor("weight")?;
    /// assert_eq!(weight, model.weight.value);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.header.tensors().into_keys().collect();
        names.sort_unstable();
        names
    }

    /// Returns the shape of the tensor `name`, or `None` if the file has no tensor of this name. safetensors:
    /// `get_slice(name).get_shape()`.
    pub fn shape(&self, name: &str) -> Option<Shape> {
        self.header.info(name).map(|info| Shape::from(&info.shape[..]))
    }

    /// Reads the tensor `name`. Its element type must be `E`. After [`convert`](Self::convert), each floating-point type (f16, bf16, f32,
    /// f64) is converted to a floating-point type `E`, rounded to nearest. [`rename`](Self::rename) does not apply. safetensors:
    /// `get_tensor(name)`.
    ///
    /// # Errors
    ///
    /// - The file has no tensor of this name, or the tensor has another element type: [`Error::Keys`](crate::Error::Keys).
    /// - The file cannot be read: [`Error::Read`](crate::Error::Read).
    /// - There is not enough memory.
    pub fn tensor<E: Element>(&self, name: &str) -> Result<Tensor<E>> {
        let mut report = LoadReport::default();
        let Some(info) = self.header.info(name) else {
            report.missing.push(name.to_owned());
            return Err(self.keys_error(report));
        };
        let (shape, own) = (Shape::from(&info.shape[..]), file_dtype(E::DTYPE));
        let converts = self.convert && is_float(info.dtype) && E::DTYPE.is_float();
        if info.dtype != own && !converts {
            report.mismatched.push(KeyMismatch {
                name: name.to_owned(),
                found: shape_and_dtype(info),
                expected: (shape, own.to_string()),
                convertible: is_float(info.dtype) && E::DTYPE.is_float(),
            });
            return Err(self.keys_error(report));
        }
        let bytes = self.read_bytes(info)?;
        from_bytes(&convert_floats(bytes, info.dtype, E::DTYPE, &shape)?, &shape)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use safetensors::tensor::TensorView;
    use safetensors::{Dtype as FileDtype, serialize};

    use super::*;
    use crate::{Checkpoint, Error};

    #[test]
    fn tensors_of_every_type_are_read_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let floats = [1.5f32, -0.0, f32::MAX].map(f32::to_le_bytes).concat();
        let halves = [half::f16::from_f32(1.5), half::f16::from_f32(-2.0)].map(half::f16::to_le_bytes).concat();
        let integers = [i64::MIN, 7].map(i64::to_le_bytes).concat();
        let tensors = [
            ("floats", FileDtype::F32, vec![3], &floats[..]),
            ("halves", FileDtype::F16, vec![2, 1], &halves[..]),
            ("integers", FileDtype::I64, vec![2], &integers[..]),
            ("flags", FileDtype::BOOL, vec![2], &[1, 0]),
            ("bytes", FileDtype::U8, vec![], &[255]),
            ("empty", FileDtype::F64, vec![0, 3], &[]),
        ];
        let views: HashMap<&str, TensorView<'_>> = tensors
            .into_iter()
            .map(|(name, dtype, shape, bytes)| (name, TensorView::new(dtype, shape, bytes).unwrap()))
            .collect();
        std::fs::write(&path, serialize(views, None).unwrap()).unwrap();
        let saved = Checkpoint::open(&path).unwrap();
        assert_eq!(saved.names(), ["bytes", "empty", "flags", "floats", "halves", "integers"]);
        assert_eq!((saved.shape("halves"), saved.shape("half")), (Some(Shape::from([2, 1])), None));
        assert_eq!(saved.tensor::<f32>("floats").unwrap(), Tensor::from([1.5, -0.0, f32::MAX]));
        assert_eq!(saved.tensor::<i64>("integers").unwrap(), Tensor::from([i64::MIN, 7]));
        assert_eq!(saved.tensor::<bool>("flags").unwrap(), Tensor::from([true, false]));
        assert_eq!(saved.tensor::<u8>("bytes").unwrap(), Tensor::scalar(255));
        assert_eq!(saved.tensor::<f64>("empty").unwrap().shape(), &[0, 3]);
        let refused = |name| saved.tensor::<f64>(name).unwrap_err();
        for (name, missing, mismatched) in [("half", 1, 0), ("halves", 0, 1), ("floats", 0, 1), ("integers", 0, 1)] {
            let Error::Keys { missing: absent, mismatched: other, .. } = refused(name) else { panic!("{name}") };
            assert_eq!((absent.len(), other.len()), (missing, mismatched), "{name}");
        }
        let saved = saved.convert();
        assert_eq!(saved.tensor::<f64>("halves").unwrap(), Tensor::from([[1.5], [-2.0]]));
        assert_eq!(saved.tensor::<f64>("floats").unwrap().get(&[2]), Some(f32::MAX.into()));
        assert!(saved.tensor::<f64>("integers").is_err() && saved.tensor::<i64>("floats").is_err());
    }
}
