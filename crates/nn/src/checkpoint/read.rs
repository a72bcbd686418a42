//! Reads tensors of a checkpoint by name, with conversion and renaming, into a model and other objects.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::Dtype as FileDtype;
use safetensors::tensor::{Metadata, TensorInfo};
use wengert_macros::precompiled;
use wengert_tensor::{DType, Float, Generator, Shape};

use super::contents::Contents;
use super::header::read_header;
use super::report::LoadReport;
use super::write::{Checkpoint, check_names};
use crate::bytes::{convert_floats, file_dtype, from_bytes, is_float};
use crate::error::similar_names;
use crate::file::open_regular;
use crate::module::{LeafMut, Module};
use crate::optim::{Archive, Key, Mismatch, Optimizer, Resume, StoredEntries, UnusedEntries, archive_optimizer};
use crate::{Error, KeyMismatch, Result};

/// An open checkpoint: a file ([`Checkpoint::open`](crate::Checkpoint::open)) or bytes in memory
/// ([`Checkpoint::from_bytes`](crate::Checkpoint::from_bytes)). Each method reads only the tensors that it needs.
///
/// ```
/// # mod wengert { pub use wengert_nn as nn; }
/// use wengert::nn::{Checkpoint, Generator, Linear, Module, save};
///
/// #[derive(Module)]
/// struct Classifier {
///     body: Linear,
///     head: Linear,
/// }
///
/// // A file with the body only, in f64 and with other names.
/// let generator = &mut Generator::new(0);
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("body.safetensors");
/// save(&Linear::<f64>::new(4, 3, generator), &path)?;
///
/// let mut model = Classifier { body: Linear::new(4, 3, generator), head: Linear::new(3, 2, generator) };
/// let saved = Checkpoint::open(&path)?.convert().partial().rename(|name| format!("body.{name}"));
/// let report = saved.load_model(&mut model)?;
/// assert_eq!(report.missing, ["head.weight", "head.bias"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Saved {
    /// The path of the file, or [`IN_MEMORY`].
    path: PathBuf,
    contents: Contents,
    /// The position in the contents where the tensors begin.
    start: u64,
    pub(super) header: Metadata,
    pub(super) convert: bool,
    partial: bool,
    rename: Box<dyn Fn(&str) -> String>,
}

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Saved { path, convert, partial, .. } = self;
        f.debug_struct("Saved").field("path", path).field("convert", convert).field("partial", partial).finish()
    }
}

impl Checkpoint {
    /// Opens the checkpoint in the file `path`, and reads and checks its header.
    ///
    /// # Errors
    ///
    /// - The file is missing, unreadable or not a regular file: [`Error::Read`].
    /// - The file is not a checkpoint, or is damaged: [`Error::Checkpoint`].
    pub fn open(path: impl AsRef<Path>) -> Result<Saved> {
        Saved::open(path.as_ref())
    }

    /// Reads and checks the header of a checkpoint in memory, for example bytes that a web page has fetched. safetensors: `load`.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; }
    /// use wengert::nn::{Checkpoint, Generator, Linear};
    ///
    /// let trained = Linear::<f32>::new(4, 2, &mut Generator::new(0));
    /// let bytes = Checkpoint::new().model(&trained).integer("epoch", 3).to_bytes()?;
    ///
    /// let mut model = Linear::<f32>::new(4, 2, &mut Generator::new(1));
    /// let saved = Checkpoint::from_bytes(bytes)?;
    /// saved.load_model(&mut model)?;
    /// assert_eq!((model.weight.value, saved.integer("epoch")?), (trained.weight.value, 3));
    /// # Ok::<(), wengert_nn::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Checkpoint`] if the bytes are not a checkpoint, or are damaged. The path in this and later errors is `bytes in memory`.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Saved> {
        Saved::from_bytes(bytes.into())
    }
}

/// The path that errors show for a checkpoint in memory.
const IN_MEMORY: &str = "bytes in memory";

/// Reads and checks the header of a checkpoint of `size` bytes. Returns the position where the tensors begin, and the header. Errors show
/// `path` as the path of the file.
fn read_checked_header(from: &mut dyn Read, size: u64, path: &Path) -> Result<(u64, Metadata)> {
    match read_header(from, size) {
        Err(source) => Err(Error::Read { path: path.to_owned(), source }),
        Ok(Err(reason)) => Err(Error::Checkpoint { path: path.to_owned(), reason }),
        Ok(Ok(header)) => Ok(header),
    }
}

impl Saved {
    /// Opens the checkpoint in the file `path`: see [`Checkpoint::open`].
    fn open(path: &Path) -> Result<Saved> {
        let (mut file, size) = open_regular(path)?;
        let (start, header) = read_checked_header(&mut file, size, path)?;
        Ok(Saved::new(path.to_owned(), Contents::File(Arc::new(file)), start, header))
    }

    /// Opens the checkpoint that consists of `bytes`: see [`Checkpoint::from_bytes`].
    fn from_bytes(bytes: Vec<u8>) -> Result<Saved> {
        let (start, header) = read_checked_header(&mut &bytes[..], bytes.len() as u64, Path::new(IN_MEMORY))?;
        Ok(Saved::new(IN_MEMORY.into(), Contents::Memory(bytes.into()), start, header))
    }

    /// Returns an open checkpoint with the default settings: it is loaded completely, and without conversion or renaming.
    fn new(path: PathBuf, contents: Contents, start: u64, header: Metadata) -> Self {
        Saved { path, contents, start, header, convert: false, partial: false, rename: Box::new(str::to_owned) }
    }

    /// Makes the methods that read tensors convert other floating-point types (f16, bf16, f32, f64) to the type that is
    /// needed, rounded to nearest. This applies to parameters, to buffers of the model's type, to the states of
    /// optimisers and other objects, and to [`tensor`](Self::tensor).
    #[must_use]
    pub fn convert(self) -> Self {
        Saved { convert: true, ..self }
    }

    /// Makes [`load_model`](Self::load_model) load the tensors that fit the model and report the others. PyTorch:
    /// `strict=False`, which still refuses different shapes.
    #[must_use]
    pub fn partial(self) -> Self {
        Saved { partial: true, ..self }
    }

    /// Makes [`load_model`](Self::load_model) apply `rename` to the name of each tensor in the file. The result is the
    /// name in the model. Names that begin with `@` are not changed.
    #[must_use]
    pub fn rename(self, rename: impl Fn(&str) -> String + 'static) -> Self {
        Saved { rename: Box::new(rename), ..self }
    }

    /// Reads the parameters and buffers of `model`. Returns the names that were not loaded. The report is empty unless the load is
    /// [`partial`](Self::partial). PyTorch: `load_state_dict`.
    ///
    /// As in PyTorch, a file may lack the `num_batches_tracked` of a batch normalization. Then the layer keeps its own count.
    ///
    /// # Errors
    ///
    /// - The file does not fit the model: [`Error::Keys`], with all missing, unexpected and mismatched names. A [`partial`](Self::partial)
    ///   load does not return this error.
    /// - The file cannot be read: [`Error::Read`].
    /// - Two parameters or buffers of the model, or two tensors of the file after renaming, have the same name:
    ///   [`Error::DuplicateName`].
    /// - There is not enough memory.
    ///
    /// After an error the model is unchanged.
    pub fn load_model<T: Float>(&self, model: &mut (impl Module<T> + ?Sized)) -> Result<LoadReport> {
        load_leaves(self, model.as_module_mut())
    }

    /// Reads the settings and states that [`Checkpoint::optimizer`] saved under `name`. The model, the kind of optimiser and its groups
    /// must be the same. Settings of the file replace the settings of the program, as in PyTorch's `load_state_dict`.
    ///
    /// # Errors
    ///
    /// - The file has other states, settings or groups, or belongs to another model: [`Error::Keys`].
    /// - There is not enough memory.
    /// - The file cannot be read: [`Error::Read`].
    ///
    /// After an error the optimiser is unchanged.
    pub fn load_optimizer<T: Float, O: Optimizer<T>>(
        &self,
        name: &str,
        optimizer: &mut O,
        model: &(impl Module<T> + ?Sized),
    ) -> Result<()> {
        let mut restored = optimizer.clone();
        self.read_entries(name, |archive| archive_optimizer(&mut restored, model.as_module(), archive))?;
        *optimizer = restored;
        Ok(())
    }

    /// Reads the states that [`Checkpoint::states`] saved under `name` for the same model, and restores `object` from them.
    ///
    /// # Errors
    ///
    /// - The file has other states or settings, or belongs to another model: [`Error::Keys`].
    /// - There is not enough memory.
    /// - The file cannot be read: [`Error::Read`].
    ///
    /// After an error `object` is unchanged.
    pub fn load_states<T: Float, R: Resume<T>>(
        &self,
        name: &str,
        object: &mut R,
        model: &(impl Module<T> + ?Sized),
    ) -> Result<()> {
        let mut restored = object.clone();
        self.read_entries(name, |archive| restored.archive(model, archive))?;
        *object = restored;
        Ok(())
    }

    /// Passes all entries that were saved under `name` to `read`. Returns an error if `read` requests an entry that is
    /// missing or does not fit, or does not request all entries.
    fn read_entries(&self, name: &str, read: impl FnOnce(&mut Archive)) -> Result<()> {
        let mut archive = self.open_archive(name);
        read(&mut archive);
        self.check_archive(name, archive)
    }

    /// Returns an archive with the entries that were saved under `name`.
    fn open_archive(&self, name: &str) -> Archive {
        let (tensors, mut infos) = (self.header.tensors(), HashMap::new());
        let objects: Vec<&str> = tensors.keys().filter_map(|stored_name| Key::object_name(stored_name)).collect();
        for (stored_name, info) in &tensors {
            if let Some(key) = Key::from_stored_name(stored_name, name, &objects) {
                infos.insert(key, (*info).clone());
            }
        }
        let shape_and_dtype = |info: &TensorInfo| (Shape::from(&info.shape[..]), info.dtype);
        let unrequested = infos.iter().map(|(key, info)| (key.clone(), shape_and_dtype(info))).collect();
        let (contents, path, start) = (self.contents.clone(), self.path.clone(), self.start);
        let read_bytes = move |key: &Key| {
            let bytes = contents.read_tensor(start, &infos[key]);
            bytes.map_err(|source| Error::Read { path: path.clone(), source })
        };
        Archive::for_restoring(StoredEntries {
            unrequested,
            converts_floats: self.convert,
            read_bytes: Box::new(read_bytes),
        })
    }

    /// Returns an error if the entries under `name` in the file did not fit the object that read them from `archive`.
    fn check_archive(&self, name: &str, archive: Archive) -> Result<()> {
        let UnusedEntries { missing, mismatched, unrequested } = archive.into_unused_entries()?;
        let stored_names = |keys: Vec<Key>| {
            let mut names: Vec<String> = keys.iter().map(|key| key.stored_name(name)).collect();
            names.sort_unstable();
            names
        };
        let mismatched = mismatched.into_iter().map(|Mismatch { key, found, expected, is_convertible }| KeyMismatch {
            name: key.stored_name(name),
            found,
            expected,
            convertible: is_convertible,
        });
        let (missing, unexpected, mismatched) =
            (stored_names(missing), stored_names(unrequested), mismatched.collect());
        let report = LoadReport { missing, unexpected, mismatched, ..LoadReport::default() };
        if report.is_complete() { Ok(()) } else { Err(self.keys_error(report)) }
    }

    /// Returns the saved generator.
    ///
    /// # Errors
    ///
    /// [`Error::Keys`] if the file has no generator, [`Error::Read`] if it cannot be read.
    pub fn generator(&self) -> Result<Generator> {
        let [seed, count] = self.read_words("@generator", FileDtype::U64, [2])?;
        Ok(Generator::from_state(u64::from_le_bytes(seed), u64::from_le_bytes(count)))
    }

    /// Returns the integer that was saved under `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Keys`] if the file has no such integer, [`Error::Read`] if it cannot be read.
    pub fn integer(&self, name: &str) -> Result<u64> {
        let [word] = self.read_words(&format!("@integer.{name}"), FileDtype::U64, [])?;
        Ok(u64::from_le_bytes(word))
    }

    /// Returns the number that was saved under `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Keys`] if the file has no such number, [`Error::Read`] if it cannot be read.
    pub fn number(&self, name: &str) -> Result<f64> {
        let [word] = self.read_words(&format!("@number.{name}"), FileDtype::F64, [])?;
        Ok(f64::from_le_bytes(word))
    }

    /// Returns the `N` elements, of 8 bytes each, of the tensor `name`. The product of the sizes in `shape` is `N`. A
    /// missing tensor, or another type or shape in the file, is an error.
    fn read_words<const N: usize, const R: usize>(
        &self,
        name: &str,
        expected: FileDtype,
        shape: [usize; R],
    ) -> Result<[[u8; 8]; N]> {
        let mut report = LoadReport::default();
        match self.header.info(name) {
            None => report.missing.push(name.to_owned()),
            Some(info) if info.dtype == expected && info.shape == shape => {
                if let Ok(words) = self.read_bytes(info)?.as_chunks::<8>().0.try_into() {
                    return Ok(words);
                }
            }
            Some(info) => {
                let expected = (Shape::from(&shape[..]), expected.to_string());
                let (name, found) = (name.to_owned(), shape_and_dtype(info));
                report.mismatched.push(KeyMismatch { name, found, expected, convertible: false });
            }
        }
        Err(self.keys_error(report))
    }

    /// Reads the bytes of a tensor, or returns an error if the file cannot be read or memory is short. For a tensor of
    /// a model, the caller has compared its shape in the file with the model's shape. So a damaged file cannot make the
    /// program request too much memory.
    pub(super) fn read_bytes(&self, info: &TensorInfo) -> Result<Vec<u8>> {
        let bytes = self.contents.read_tensor(self.start, info);
        bytes.map_err(|source| Error::Read { path: self.path.clone(), source })
    }

    /// Returns the error for a file that does not fit the model or object that reads it.
    pub(super) fn keys_error(&self, report: LoadReport) -> Error {
        let LoadReport { missing, unexpected, renamed, mismatched } = report;
        Error::Keys { path: self.path.clone(), missing, unexpected, renamed, mismatched }
    }
}

/// Returns the shape and the element type of a tensor, as errors show them.
pub(super) fn shape_and_dtype(info: &TensorInfo) -> (Shape, String) {
    (Shape::from(&info.shape[..]), info.dtype.to_string())
}

/// A parameter or a buffer that a checkpoint replaces.
struct Destination<'m> {
    dtype: DType,
    shape: Shape,
    /// True for a parameter, and for a buffer with the model's element type. Such a value can be converted from another floating-point type
    /// in the file.
    is_convertible: bool,
    /// Decodes elements of the type `dtype`. Returns a function that replaces the value.
    decode: Box<Decode<'m>>,
}

/// A function that decodes the value of a parameter or a buffer from bytes.
type Decode<'m> = dyn FnOnce(&[u8]) -> Result<Setter<'m>> + 'm;

/// A function that replaces the value of a parameter or a buffer. All values are decoded before the first one is replaced.
type Setter<'m> = Box<dyn FnOnce() + 'm>;

impl<'m> Destination<'m> {
    fn new<T: Float>(leaf: LeafMut<'m, T>) -> Self {
        match leaf {
            LeafMut::Parameter(parameter) => {
                let shape = parameter.value.shape().clone();
                let decode = move |bytes: &[u8]| {
                    let value = from_bytes(bytes, parameter.value.shape())?;
                    Ok(Box::new(move || parameter.value = value) as Setter<'m>)
                };
                Destination { dtype: T::DTYPE, shape, is_convertible: true, decode: Box::new(decode) }
            }
            LeafMut::Buffer(buffer) => Destination {
                dtype: buffer.dtype(),
                shape: buffer.shape().clone(),
                is_convertible: buffer.dtype() == T::DTYPE,
                decode: Box::new(move |bytes| buffer.decode(bytes)),
            },
        }
    }

    /// Returns true if the file's tensor `info` can replace the value. `converts_floats` is true if floating-point types are converted.
    fn fits(&self, info: &TensorInfo, converts_floats: bool) -> bool {
        let is_converted = converts_floats && self.is_convertible && is_float(info.dtype);
        info.shape == self.shape.sizes() && (info.dtype == file_dtype(self.dtype) || is_converted)
    }
}

/// Reads the parameters and buffers of `model`: see [`Saved::load_model`].
#[precompiled]
fn load_leaves<T: Float>(saved: &Saved, model: &mut dyn Module<T>) -> Result<LoadReport> {
    load_destinations(
        saved,
        model.leaves_mut().into_iter().map(|(name, leaf)| (name, Destination::new(leaf))).collect(),
    )
}

fn load_destinations(saved: &Saved, destinations: Vec<(String, Destination<'_>)>) -> Result<LoadReport> {
    check_names(destinations.iter().map(|(name, _)| &name[..]))?;
    let names: HashSet<String> = destinations.iter().map(|(name, _)| name.clone()).collect();
    let mut stored = tensors_of_model(saved)?;
    let (mut report, mut fitting, mut missing) = (LoadReport::default(), Vec::new(), Vec::new());
    for (name, destination) in destinations {
        match stored.remove(&name) {
            None if is_count_of_batches(&name, &destination, &names) => {}
            None => missing.push((name, destination.shape)),
            Some(info) if destination.fits(&info, saved.convert) => fitting.push((info, destination)),
            Some(info) => {
                let convertible = destination.fits(&info, true);
                let expected = (destination.shape, file_dtype(destination.dtype).to_string());
                report.mismatched.push(KeyMismatch { name, found: shape_and_dtype(&info), expected, convertible });
            }
        }
    }
    let shaped = |(name, info): (String, TensorInfo)| (name, Shape::from(&info.shape[..]));
    let mut unexpected: Vec<(String, Shape)> = stored.into_iter().map(shaped).collect();
    unexpected.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    report.renamed = similar_names(&missing, &unexpected);
    report.missing = missing.into_iter().map(|(name, _)| name).collect();
    report.unexpected = unexpected.into_iter().map(|(name, _)| name).collect();
    if !saved.partial && !report.is_complete() {
        return Err(saved.keys_error(report));
    }
    // All tensors are read and converted before the model changes.
    let mut setters = Vec::with_capacity(fitting.len());
    for (info, destination) in fitting {
        let bytes = convert_floats(saved.read_bytes(&info)?, info.dtype, destination.dtype, &destination.shape)?;
        setters.push((destination.decode)(&bytes)?);
    }
    setters.into_iter().for_each(|set| set());
    Ok(report)
}

/// Returns the tensors of the file that belong to a model, by their names after renaming. Two tensors with the same
/// name are an error.
fn tensors_of_model(saved: &Saved) -> Result<HashMap<String, TensorInfo>> {
    let mut found: HashMap<String, TensorInfo> = HashMap::new();
    for (name, info) in saved.header.tensors() {
        if !name.starts_with('@') {
            let name = (saved.rename)(&name);
            if found.insert(name.clone(), info.clone()).is_some() {
                return Err(Error::DuplicateName { kind: "tensors of the file, after renaming,", name });
            }
        }
    }
    Ok(found)
}

/// Returns true if `destination` is the count `num_batches_tracked` of a layer with running statistics. A file may lack this count, because the
/// first versions of PyTorch did not save it. The model then keeps its own count. `names` are the names of all parameters and buffers.
fn is_count_of_batches(name: &str, destination: &Destination<'_>, names: &HashSet<String>) -> bool {
    let Some(prefix) = name.strip_suffix("num_batches_tracked") else { return false };
    destination.dtype == DType::I64 && destination.shape.rank() == 0 && names.contains(&format!("{prefix}running_mean"))
}
