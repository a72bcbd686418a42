//! Checkpoints: models, and the whole state of a training run, in files of the safetensors format, which PyTorch reads too.
//!
//! In Python, `safetensors.torch.load_file(path)` returns a `state_dict` for `load_state_dict`. Names and layouts are the same as in
//! PyTorch. In the other direction, this crate loads a `state_dict` that `safetensors.torch.save_file` saved. The format is described at
//! <https://github.com/huggingface/safetensors#format>. The same values always give the same bytes.
//!
//! Entries of a [`Checkpoint`] that do not belong to the model have names that begin with `@`. A parameter of a model cannot have such a
//! name.
//!
//! | name | element type | contents |
//! |---|---|---|
//! | `@optimizer.{name}.{path}.{state}` | as the model | a state of the parameter at `path`, with PyTorch's name if PyTorch has the state |
//! | `@optimizer.{name}.{path}.step` | u64 | the number of steps that the optimiser has made for the parameter at `path` |
//! | `@optimizer.{name}.{state}` | as the model, f64 or u64 | a state of an `Lbfgs` or `WeightAverage` that belongs to no parameter |
//! | `@settings.{name}.{setting}` | f64, u64 or bool | a setting of the optimiser, `Lbfgs` or `WeightAverage` |
//! | `@settings.{name}.groups.{number}.{path}.{setting}` | f64 or bool | a setting of one of the optimiser's parameter groups |
//! | `@number.{name}`, `@integer.{name}` | f64, u64 | numbers that the program adds: epoch, step, best loss |
//! | `@generator` | u64 | the generator's seed, and the number of words that it has drawn |
//!
//! An entry whose name begins with the names `a` and `a.b` of two objects belongs to `a.b`.
//!
//! Two lines of Python load the model of such a file:
//!
//! ```python
//! tensors = safetensors.torch.load_file(path)
//! model.load_state_dict({name: t for name, t in tensors.items() if not name.startswith("@")}, strict=True)
//! ```

mod contents;
mod header;
mod read;
mod report;
mod tensors;
#[cfg(test)]
mod tests;
mod write;

use std::path::Path;

use wengert_tensor::Float;

use crate::Result;
use crate::module::Module;
pub use read::Saved;
pub use report::LoadReport;
pub use write::Checkpoint;

/// Writes the parameters and buffers of `model` to the file `path`, completely or not at all (see
/// [`write_atomically`](crate::write_atomically)). safetensors: `save_file(model.state_dict(), path)`. For the whole
/// state of a training run see [`Checkpoint`].
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::{Generator, Linear, load, save};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("model.safetensors");
/// let trained = Linear::<f32>::new(4, 2, &mut Generator::new(0));
/// save(&trained, &path)?;
///
/// let mut model = Linear::<f32>::new(4, 2, &mut Generator::new(1));
/// load(&mut model, &path)?;
/// assert_eq!(model.weight.value, trained.weight.value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// - Two parameters or buffers have the same name: [`Error::DuplicateName`](crate::Error::DuplicateName).
/// - A parameter or buffer has a reserved name: [`Error::ReservedName`](crate::Error::ReservedName).
/// - The file cannot be written: [`Error::Write`](crate::Error::Write). An existing file keeps its contents.
#[doc(alias("state_dict"))]
pub fn save<T: Float>(model: &(impl Module<T> + ?Sized), path: impl AsRef<Path>) -> Result<()> {
    Checkpoint::new().model(model).save(path)
}

/// Reads the parameters and buffers of `model` from the file `path`. Names, shapes and element types must agree with the model. Only some
/// counts may be missing (see [`Saved::load_model`]). Other entries of a [`Checkpoint`] are not read. For other element types, other names,
/// or a part of a model see [`Saved`]. PyTorch: `model.load_state_dict(load_file(path), strict=True)`.
///
/// The header is read and checked first. The tensors are read one at a time, and only if all fit the model.
///
/// # Errors
///
/// - The file is missing, unreadable or not a regular file (a folder, a device or a pipe):
///   [`Error::Read`](crate::Error::Read).
/// - The file is not a checkpoint, is damaged, has a header of more than 100 MB, or has two tensors with the same name:
///   [`Error::Checkpoint`](crate::Error::Checkpoint).
/// - The file does not fit the model: [`Error::Keys`](crate::Error::Keys), with all missing, unexpected and mismatched
///   names.
/// - There is not enough memory.
/// - Two parameters or buffers of the model have the same name: [`Error::DuplicateName`](crate::Error::DuplicateName).
///
/// After an error the model is unchanged.
#[doc(alias("load_state_dict"))]
pub fn load<T: Float>(model: &mut (impl Module<T> + ?Sized), path: impl AsRef<Path>) -> Result<()> {
    Checkpoint::open(path)?.load_model(model).map(drop)
}

/// Returns the bytes that [`save`] would write, for a program without files, such as a web page. safetensors:
/// `save(model.state_dict())`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::{Generator, Linear, from_bytes, to_bytes};
///
/// let trained = Linear::<f32>::new(4, 2, &mut Generator::new(0));
/// let bytes = to_bytes(&trained)?;
///
/// let mut model = Linear::<f32>::new(4, 2, &mut Generator::new(1));
/// from_bytes(&mut model, bytes)?;
/// assert_eq!(model.weight.value, trained.weight.value);
/// # Ok::<(), wengert_nn::Error>(())
/// ```
///
/// # Errors
///
/// - Two parameters or buffers have the same name: [`Error::DuplicateName`](crate::Error::DuplicateName).
/// - A parameter or buffer has a reserved name: [`Error::ReservedName`](crate::Error::ReservedName).
pub fn to_bytes<T: Float>(model: &(impl Module<T> + ?Sized)) -> Result<Vec<u8>> {
    Checkpoint::new().model(model).to_bytes()
}

/// Reads the parameters and buffers of `model` from the bytes of a checkpoint, as [`load`] does from a file. PyTorch:
/// `model.load_state_dict(safetensors.torch.load(bytes), strict=True)`.
///
/// # Errors
///
/// - The bytes are not a checkpoint, or are damaged: [`Error::Checkpoint`](crate::Error::Checkpoint).
/// - The checkpoint does not fit the model: [`Error::Keys`](crate::Error::Keys).
/// - There is not enough memory.
/// - Two parameters or buffers of the model have the same name: [`Error::DuplicateName`](crate::Error::DuplicateName).
///
/// After an error the model is unchanged. The path in errors is `bytes in memory`.
pub fn from_bytes<T: Float>(model: &mut (impl Module<T> + ?Sized), bytes: impl Into<Vec<u8>>) -> Result<()> {
    Checkpoint::from_bytes(bytes)?.load_model(model).map(drop)
}
