//! The stored tensors of a set, and windows over them.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};
use wengert_tensor::{DType, Element, Tensor};

use super::format::Window;

/// All stored tensors of the set by name.
pub struct Store(HashMap<String, Stored>);

struct Stored {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Store {
    /// Reads a safetensors file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let data = fs::read(path).map_err(|error| named(&error))?;
        let file = SafeTensors::deserialize(&data).map_err(|error| named(&error))?;
        let mut tensors = HashMap::new();
        for (name, view) in file.iter() {
            let dtype = match view.dtype() {
                Dtype::F64 => DType::F64,
                Dtype::F32 => DType::F32,
                Dtype::I64 => DType::I64,
                Dtype::BOOL => DType::Bool,
                other => return Err(named(&format_args!("tensor {name} has the dtype {other:?}"))),
            };
            let stored = Stored { dtype, shape: view.shape().to_vec(), bytes: view.data().to_vec() };
            tensors.insert(name.to_owned(), stored);
        }
        Ok(Store(tensors))
    }

    /// Returns the number of tensors.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns an error if the file has no tensor with the name `key`.
    pub fn check_key(&self, key: &str) -> Result<(), String> {
        if self.0.contains_key(key) { Ok(()) } else { Err(format!("there is no tensor '{key}'")) }
    }

    /// Returns an error if the base of the window is missing, has another element type, or is too small.
    pub fn check(&self, window: &Window) -> Result<(), String> {
        let base = self.0.get(&window.base).ok_or_else(|| format!("there is no tensor '{}'", window.base))?;
        if base.dtype != window.dtype {
            return Err(format!("tensor '{}' is {}, not {}", window.base, base.dtype, window.dtype));
        }
        match window.dtype {
            DType::F64 => self.window::<f64>(window).map(drop),
            DType::F32 => self.window::<f32>(window).map(drop),
            DType::I64 => self.window::<i64>(window).map(drop),
            _ => self.window::<bool>(window).map(drop),
        }
    }

    /// Returns a tensor with the layout of the window over a copy of the whole base.
    pub fn window<T: Stores>(&self, window: &Window) -> Result<Tensor<T>, String> {
        let data = self.data::<T>(&window.base)?;
        // The offset of an empty window may be beyond the buffer, so it is limited.
        let offset = if window.shape.contains(&0) { window.offset.min(data.len()) } else { window.offset };
        Tensor::try_from_strided(data, &window.shape[..], &window.strides, offset).map_err(|error| error.sentence())
    }

    /// Returns the stored tensor with the name `key`.
    pub fn tensor<T: Stores>(&self, key: &str) -> Result<Tensor<T>, String> {
        let shape = &self.0.get(key).ok_or_else(|| format!("there is no tensor '{key}'"))?.shape;
        Tensor::try_from_vec(self.data::<T>(key)?, &shape[..]).map_err(|error| error.sentence())
    }

    fn data<T: Stores>(&self, key: &str) -> Result<Vec<T>, String> {
        let stored = self.0.get(key).ok_or_else(|| format!("there is no tensor '{key}'"))?;
        if stored.dtype != T::DTYPE {
            return Err(format!("tensor '{key}' is {}, not {}", stored.dtype, T::DTYPE));
        }
        Ok(stored.bytes.chunks_exact(size_of::<T>()).map(T::from_bytes).collect())
    }
}

/// An element type that tensors of the file may have.
pub trait Stores: Element {
    /// Returns an element from its little-endian bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! stores {
    ($($type:ident),*) => {$(
        impl Stores for $type {
            fn from_bytes(bytes: &[u8]) -> Self {
                let mut array = [0; size_of::<$type>()];
                array.copy_from_slice(bytes);
                $type::from_le_bytes(array)
            }
        }
    )*};
}

stores!(f64, f32, i64);

impl Stores for bool {
    fn from_bytes(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
}
