//! Builds a checkpoint: collects tensors by name and writes them to one file.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype as FileDtype, serialize};
use wengert_macros::precompiled;
use wengert_tensor::{Float, Generator};

use super::header::METADATA;
use crate::bytes::{file_dtype, to_bytes};
use crate::file::write_atomically;
use crate::module::{Leaf, Module};
use crate::optim::{Archive, Entry, Key, Optimizer, Resume, archive_optimizer};
use crate::{Error, Result};

/// The whole state of a training run in one file: the model, optimisers, a generator and numbers. A training run that restores this state
/// continues with the same bits as if it had not been interrupted. PyTorch: `torch.save({"model": model.state_dict(), …})`.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
/// use wengert::prelude::*;
/// use wengert::nn::{Adam, Checkpoint, Generator, Layer, Linear, Optimizer};
///
/// fn train(model: &mut Linear, adam: &mut Adam, generator: &mut Generator) {
///     let x = Tensor::randn([8, 4], generator);
///     let (_, gradients) = Tape::training(generator)
///         .value_and_gradients(|tape| model.forward(tape.constant(&x)).square().mean(..));
///     adam.step(model, &gradients);
/// }
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("run.safetensors");
/// let mut generator = Generator::new(0);
/// let (mut model, mut adam) = (Linear::new(4, 2, &mut generator), Adam::new(0.1));
/// for epoch in 0..3 {
///     train(&mut model, &mut adam, &mut generator);
///     Checkpoint::new()
///         .model(&model)
///         .optimizer("adam", &adam, &model)
///         .generator(&generator)
///         .integer("epoch", epoch + 1)
///         .save(&path)?;
/// }
///
/// // Another process resumes the training.
/// let (mut resumed, mut its_adam) = (Linear::new(4, 2, &mut Generator::new(1)), Adam::new(0.1));
/// let saved = Checkpoint::open(&path)?;
/// saved.load_model(&mut resumed)?;
/// saved.load_optimizer("adam", &mut its_adam, &resumed)?;
/// let mut its_generator = saved.generator()?;
/// assert_eq!(saved.integer("epoch")?, 3);
///
/// train(&mut model, &mut adam, &mut generator);
/// train(&mut resumed, &mut its_adam, &mut its_generator);
/// assert_eq!(resumed.weight.value, model.weight.value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
#[must_use = "a checkpoint is written by `save`"]
pub struct Checkpoint {
    tensors: Vec<NamedTensor>,
    /// The names of the added optimisers and other objects with states, and the positions of their entries in `tensors`.
    objects: Vec<(String, Range<usize>)>,
    /// The error for the first added name that a checkpoint cannot have, or for the first object that cannot be saved. `save` and `to_bytes`
    /// return this error.
    error: Option<Error>,
}

/// A tensor with its name, as it is written to the file.
#[derive(Debug)]
struct NamedTensor {
    name: String,
    dtype: FileDtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Adds the parameters and buffers of `model`. A reserved name becomes the error of the checkpoint, if the checkpoint has no error yet.
#[precompiled]
fn add_model<T: Float>(checkpoint: &mut Checkpoint, model: &dyn Module<T>) {
    let leaves = model.leaves();
    if let Some((name, _)) = leaves.iter().find(|(name, _)| name.starts_with('@') || name == METADATA) {
        checkpoint.error.get_or_insert(Error::ReservedName { name: name.clone() });
    }
    for (name, leaf) in leaves {
        let (dtype, shape, bytes) = match leaf {
            Leaf::Parameter(parameter) => (T::DTYPE, parameter.value.shape(), to_bytes(&parameter.value)),
            Leaf::Buffer(buffer) => (buffer.dtype(), buffer.shape(), buffer.to_bytes()),
        };
        checkpoint.tensors.push(NamedTensor { name, dtype: file_dtype(dtype), shape: shape.to_vec(), bytes });
    }
}

/// Checks that each entry of an object will be read as an entry of this object and of no other one. See [`Key::from_stored_name`].
fn check_objects(tensors: &[NamedTensor], objects: &[(String, Range<usize>)]) -> Result<()> {
    let known_objects: Vec<&str> = tensors.iter().filter_map(|tensor| Key::object_name(&tensor.name)).collect();
    for (number, (name, positions)) in objects.iter().enumerate() {
        for NamedTensor { name: entry, .. } in &tensors[positions.clone()] {
            let is_read_as = |object: &str| Key::from_stored_name(entry, object, &known_objects).is_some();
            let mut others = objects.iter().enumerate().filter(|&(position, _)| position != number);
            let other = others.find(|(_, (other, _))| is_read_as(other)).map(|(_, (other, _))| other);
            if other.is_some() || !is_read_as(name) {
                let other = other.map_or("another object".to_owned(), |other| format!("'{}'", other.escape_debug()));
                let [entry, name] = [entry, name].map(|name| name.escape_debug());
                return Err(Error::Argument(format!(
                    "the entry '{entry}' of the object '{name}' could also belong to {other}; save one of the objects \
                     under another name"
                )));
            }
        }
    }
    Ok(())
}

impl Checkpoint {
    /// Returns an empty checkpoint.
    pub fn new() -> Self {
        Checkpoint::default()
    }

    /// Adds the parameters and buffers of `model`.
    pub fn model<T: Float>(mut self, model: &(impl Module<T> + ?Sized)) -> Self {
        add_model(&mut self, model.as_module());
        self
    }

    /// Adds the settings of an optimiser and its states for the parameters of `model`, under `name`.
    pub fn optimizer<T: Float, O: Optimizer<T>>(
        self,
        name: &str,
        optimizer: &O,
        model: &(impl Module<T> + ?Sized),
    ) -> Self {
        self.add_object(name, |archive| archive_optimizer(&mut optimizer.clone(), model.as_module(), archive))
    }

    /// Adds another object that has states for the parameters of `model`, under `name`: an [`Lbfgs`](crate::Lbfgs) or a
    /// [`WeightAverage`](crate::WeightAverage). If a [`swap`](crate::WeightAverage::swap) has put the average into the model, saving is an
    /// error until a second swap.
    pub fn states<T: Float, R: Resume<T>>(self, name: &str, object: &R, model: &(impl Module<T> + ?Sized)) -> Self {
        self.add_object(name, |archive| object.clone().archive(model, archive))
    }

    /// Calls `write` with an empty archive, and adds the archive's entries to the file under `name`.
    fn add_object(mut self, name: &str, write: impl FnOnce(&mut Archive)) -> Self {
        let mut archive = Archive::for_saving();
        write(&mut archive);
        self.add_entries(name, archive);
        self
    }

    /// Adds the entries of `archive` to the file under `name`. An error of the archive becomes the error of the checkpoint, if the
    /// checkpoint has no error yet.
    fn add_entries(&mut self, name: &str, archive: Archive) {
        match archive.into_entries() {
            Ok(entries) => {
                let first = self.tensors.len();
                self.tensors.extend(entries.into_iter().map(|(key, Entry { dtype, shape, bytes })| {
                    let name = key.stored_name(name);
                    NamedTensor { name, dtype, shape: shape.to_vec(), bytes }
                }));
                self.objects.push((name.to_owned(), first..self.tensors.len()));
            }
            Err(error) => _ = self.error.get_or_insert(error),
        }
    }

    /// Adds a generator: its seed, and the number of words that it has drawn.
    pub fn generator(mut self, generator: &Generator) -> Self {
        let (seed, count) = generator.state();
        let bytes = [seed, count].map(u64::to_le_bytes).concat();
        self.tensors.push(NamedTensor { name: "@generator".to_owned(), dtype: FileDtype::U64, shape: vec![2], bytes });
        self
    }

    /// Adds an integer, for example the epoch or the step.
    pub fn integer(mut self, name: &str, value: u64) -> Self {
        self.add_scalar(format!("@integer.{name}"), FileDtype::U64, value.to_le_bytes().to_vec());
        self
    }

    /// Adds a number, for example the best loss so far. The file keeps all bits of the number.
    pub fn number(mut self, name: &str, value: f64) -> Self {
        self.add_scalar(format!("@number.{name}"), FileDtype::F64, value.to_le_bytes().to_vec());
        self
    }

    /// Adds a tensor without dimensions, whose single element has these bytes.
    fn add_scalar(&mut self, name: String, dtype: FileDtype, bytes: Vec<u8>) {
        self.tensors.push(NamedTensor { name, dtype, shape: Vec::new(), bytes });
    }

    /// Writes the file `path`, completely or not at all (see [`write_atomically`](crate::write_atomically)).
    ///
    /// # Errors
    ///
    /// - Two tensors have the same name: [`Error::DuplicateName`].
    /// - A parameter or buffer has a reserved name: [`Error::ReservedName`].
    /// - The names of two objects make their entries ambiguous, or a [`WeightAverage`](crate::WeightAverage) is between two swaps:
    ///   [`Error::Argument`].
    /// - The file cannot be written: [`Error::Write`]. An existing file keeps its contents.
    pub fn save(self, path: impl AsRef<Path>) -> Result<()> {
        self.write(path.as_ref())
    }

    fn write(self, path: &Path) -> Result<()> {
        write_atomically(path, &self.serialized(path)?)
    }

    /// Returns the bytes that [`save`](Self::save) would write, for a program without files, such as a web page. safetensors: `save`.
    ///
    /// # Errors
    ///
    /// - Two tensors have the same name: [`Error::DuplicateName`].
    /// - A parameter or buffer has a reserved name: [`Error::ReservedName`].
    /// - The names of two objects make their entries ambiguous, or a [`WeightAverage`](crate::WeightAverage) is between two swaps:
    ///   [`Error::Argument`].
    pub fn to_bytes(self) -> Result<Vec<u8>> {
        self.serialized(Path::new("bytes in memory"))
    }

    /// Returns the contents of the file that the checkpoint is written to. Errors show `path` as the path of the file.
    fn serialized(self, path: &Path) -> Result<Vec<u8>> {
        self.error.map_or(Ok(()), Err)?;
        check_names(self.tensors.iter().map(|tensor| &tensor.name[..]))?;
        check_objects(&self.tensors, &self.objects)?;
        let write_error = |error: safetensors::SafeTensorError| Error::Write {
            path: path.to_owned(),
            source: io::Error::other(error.to_string()),
        };
        let view = |tensor| {
            let NamedTensor { name, dtype, shape, bytes }: &NamedTensor = tensor;
            Ok((name, TensorView::new(*dtype, shape.clone(), bytes)?))
        };
        let views = self.tensors.iter().map(view).collect::<std::result::Result<Vec<_>, _>>().map_err(write_error)?;
        // The library `transformers` writes this entry `format` to files for PyTorch, and reads it to recognize the framework of a file.
        let metadata = [("format".to_owned(), "pt".to_owned())];
        serialize(views, Some(metadata.into_iter().collect())).map_err(write_error)
    }
}

/// Returns [`Error::DuplicateName`] with the first repeated name, or `Ok` if all names differ.
pub(super) fn check_names<'n>(mut names: impl Iterator<Item = &'n str>) -> Result<()> {
    let mut seen = HashSet::new();
    match names.find(|name| !seen.insert(*name)) {
        Some(name) => {
            let kind = if name.starts_with('@') { "entries of the checkpoint" } else { "parameters of the model" };
            Err(Error::DuplicateName { kind, name: name.to_owned() })
        }
        None => Ok(()),
    }
}
