//! Saves and restores the settings and states of an optimiser, an `Lbfgs` or a `WeightAverage` by name. The same code saves and restores: an
//! archive collects values or overwrites them.

use std::collections::HashMap;
use std::fmt;

use safetensors::Dtype as FileDtype;
use wengert_macros::precompiled;
use wengert_tensor::{DType, Float, Shape, Tensor};

use crate::bytes::{convert_floats, file_dtype, first_bytes, from_bytes, is_float, to_bytes};
use crate::module::{Module, is_below};
use crate::optim::common::States;
use crate::optim::optimizer::AnyOptimizer;
use crate::optim::setting::Setting;
use crate::{Error, Result};

/// An object that keeps states for the parameters of a model, for example an average of weights. A [`Checkpoint`](crate::Checkpoint) can save
/// and restore the object.
pub trait Resume<T: Float>: Clone {
    /// Passes each value of this object that a checkpoint saves, with its name, to `archive`. The archive copies each value when saving, and
    /// overwrites each value when restoring.
    fn archive(&mut self, model: &(impl Module<T> + ?Sized), archive: &mut Archive);
}

/// Numbers and tensors by name, which are written to a checkpoint or read from a checkpoint.
pub struct Archive {
    /// The entries that were collected so far, if the archive saves an object. Otherwise empty.
    entries: HashMap<Key, Entry>,
    /// The entries of the file, if the archive restores an object from a file. Otherwise `None`.
    stored: Option<StoredEntries>,
    missing: Vec<Key>,
    mismatched: Vec<Mismatch>,
    /// The first error: an entry could not be read from the file, or the object refused to be saved, as a `WeightAverage` between two swaps does.
    error: Option<Error>,
}

/// A function that reads the bytes of the entry with the given name from a file.
type ReadBytes = Box<dyn Fn(&Key) -> Result<Vec<u8>>>;

/// The entries of a file. An entry is read only if its shape and its element type fit the value that it restores. So a damaged file cannot ask
/// for more memory than the model needs.
pub(crate) struct StoredEntries {
    /// The shape and the element type in the file of each entry that was not requested yet.
    pub(crate) unrequested: HashMap<Key, (Shape, FileDtype)>,
    /// True if a tensor of another floating-point type than the requested type is converted to the requested type.
    pub(crate) converts_floats: bool,
    /// Reads the bytes of an entry.
    pub(crate) read_bytes: ReadBytes,
}

/// Prints the collected entries, the missing names and the mismatches.
impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Archive { entries, missing, mismatched, .. } = self;
        let mut text = f.debug_struct("Archive");
        text.field("entries", entries).field("missing", missing).field("mismatched", mismatched);
        text.finish_non_exhaustive()
    }
}

/// An entry that does not fit the value that it restores.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub(crate) key: Key,
    /// The shape and the element type in the file.
    pub(crate) found: (Shape, String),
    pub(crate) expected: (Shape, String),
    /// True if the entry would fit after a conversion between floating-point types.
    pub(crate) is_convertible: bool,
}

/// The entries that did not restore a value.
pub(crate) struct UnusedEntries {
    /// The expected names that the file lacks.
    pub(crate) missing: Vec<Key>,
    pub(crate) mismatched: Vec<Mismatch>,
    /// The names in the file that were never requested.
    pub(crate) unrequested: Vec<Key>,
}

/// The name of an entry, without the name of the object to which it belongs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A setting of the saved object, for example an optimiser, or of one of its groups.
    Setting(String),
    /// A state. If it belongs to a parameter, its name begins with the parameter's path.
    State(String),
}

/// The value of an entry in the form in which a file stores it. A number or a flag is a tensor of rank 0.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) dtype: FileDtype,
    pub(crate) shape: Shape,
    pub(crate) bytes: Vec<u8>,
}

/// The settings by which the objects in a file are found, because each saved object has one of them. An optimiser and an `Lbfgs` have `lr`, and a
/// `WeightAverage` has `decay`.
const IDENTIFYING_SETTINGS: [&str; 2] = ["lr", "decay"];

impl Key {
    /// Returns the name of the object to which the entry `stored_name` of a file belongs, if the entry is one of the settings in
    /// [`IDENTIFYING_SETTINGS`]. Returns `None` for other entries, and for these settings of a parameter group.
    pub(crate) fn object_name(stored_name: &str) -> Option<&str> {
        let key = stored_name.strip_prefix("@settings.")?;
        let object = IDENTIFYING_SETTINGS.iter().find_map(|setting| key.strip_suffix(setting)?.strip_suffix('.'))?;
        let is_group = object.match_indices(".groups.").any(|(position, separator)| {
            let number = object[position + separator.len()..].split_once('.').map_or("", |(number, _)| number);
            number.parse::<usize>().is_ok()
        });
        (!is_group).then_some(object)
    }

    /// Returns the name of this entry in a file. `object` is the name under which the object, for example an optimiser, was saved.
    pub(crate) fn stored_name(&self, object: &str) -> String {
        match self {
            Key::Setting(key) => format!("@settings.{object}.{key}"),
            Key::State(key) => format!("@optimizer.{object}.{key}"),
        }
    }

    /// Returns the key of the entry that is called `stored_name` in a file. Returns `None` if the entry does not belong to the object (for example an
    /// optimiser) that was saved under `name`. `objects` are the names of the objects in the file, which [`object_name`](Self::object_name)
    /// finds. An entry whose name begins with the names `a` and `a.b` of two objects belongs to `a.b`.
    pub(crate) fn from_stored_name(stored_name: &str, name: &str, objects: &[&str]) -> Option<Key> {
        let key = |prefix| {
            let key = stored_name.strip_prefix(prefix)?;
            let below = |object: &str| key.strip_prefix(object)?.strip_prefix('.');
            let own = below(name)?;
            let is_of_longer = objects.iter().any(|object| object.len() > name.len() && below(object).is_some());
            (!is_of_longer).then(|| own.to_owned())
        };
        key("@settings.").map(Key::Setting).or_else(|| key("@optimizer.").map(Key::State))
    }
}

impl Archive {
    /// Returns an empty archive for saving.
    pub(crate) fn for_saving() -> Self {
        Archive { entries: HashMap::new(), stored: None, missing: Vec::new(), mismatched: Vec::new(), error: None }
    }

    /// Returns an archive with the entries of a file, for restoring.
    pub(crate) fn for_restoring(stored: StoredEntries) -> Self {
        Archive { stored: Some(stored), ..Archive::for_saving() }
    }

    /// Returns true if the archive restores values from a file.
    pub(crate) fn is_restoring(&self) -> bool {
        self.stored.is_some()
    }

    /// Records the reason why the object cannot be saved or restored. The first recorded error counts.
    pub(crate) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }

    /// Returns the entries that were collected for saving.
    ///
    /// # Errors
    ///
    /// If an error was recorded by [`fail`](Self::fail).
    pub(crate) fn into_entries(self) -> Result<HashMap<Key, Entry>> {
        self.error.map_or(Ok(self.entries), Err)
    }

    /// Returns the entries that did not restore a value: missing, mismatched or never requested.
    ///
    /// # Errors
    ///
    /// If an error was recorded, for example because an entry could not be read.
    pub(crate) fn into_unused_entries(self) -> Result<UnusedEntries> {
        let Archive { error, missing, mismatched, stored, .. } = self;
        let unrequested = stored.into_iter().flat_map(|stored| stored.unrequested.into_keys()).collect();
        error.map_or(Ok(UnusedEntries { missing, mismatched, unrequested }), Err)
    }

    /// Returns true if the file has an entry with this name that was not requested yet.
    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.unrequested.contains_key(key))
    }

    /// Saves `value` when saving, or sets `value` to the number in the file when restoring. If the file has no such number, keeps `value` and records
    /// the problem.
    pub(crate) fn number(&mut self, key: Key, value: &mut f64) {
        if let Some(bytes) = self.scalar_bytes(key, FileDtype::F64, &value.to_le_bytes()) {
            *value = f64::from_le_bytes(first_bytes(&bytes));
        }
    }

    /// Saves `value` when saving, or sets `value` to the integer in the file when restoring. If the file has no such integer, keeps `value` and
    /// records the problem.
    pub(crate) fn integer(&mut self, key: Key, value: &mut u64) {
        if let Some(bytes) = self.scalar_bytes(key, FileDtype::U64, &value.to_le_bytes()) {
            *value = u64::from_le_bytes(first_bytes(&bytes));
        }
    }

    /// Saves `value` when saving, or sets `value` to the flag in the file when restoring. If the file has no such flag, keeps `value` and records the
    /// problem.
    pub(crate) fn flag(&mut self, key: Key, value: &mut bool) {
        if let Some(bytes) = self.scalar_bytes(key, FileDtype::BOOL, &[u8::from(*value)]) {
            *value = bytes == [1];
        }
    }

    /// Saves `value` when saving, or sets `value` to the tensor in the file when restoring. The tensor in the file must have rank 0 or the same
    /// shape. If the file has no such tensor, keeps `value` and records the problem.
    pub(crate) fn tensor<T: Float>(&mut self, key: Key, value: &mut Tensor<T>) {
        if self.stored.is_none() {
            let entry = Entry { dtype: file_dtype(T::DTYPE), shape: value.shape().clone(), bytes: to_bytes(value) };
            self.entries.insert(key, entry);
        } else if let Some((shape, bytes)) = self.read_tensor(key, T::DTYPE, value.shape()) {
            match from_bytes(&bytes, &shape) {
                Ok(read) => *value = read,
                Err(error) => self.fail(error),
            }
        }
    }

    /// When saving, stores the bytes `value` as a single element, and returns `None`. When restoring, returns the bytes of the entry if it is a single
    /// element of the type `dtype`. Otherwise records the problem and returns `None`.
    fn scalar_bytes(&mut self, key: Key, dtype: FileDtype, value: &[u8]) -> Option<Vec<u8>> {
        if self.stored.is_none() {
            self.entries.insert(key, Entry { dtype, shape: Shape::scalar(), bytes: value.to_vec() });
            return None;
        }
        let fits = |(shape, found): &(Shape, FileDtype), _| shape.rank() == 0 && *found == dtype;
        self.read_entry(key, (&Shape::scalar(), dtype), fits).map(|(_, _, bytes)| bytes)
    }

    /// Returns the shape of a tensor in the file, and its elements as bytes of the type `dtype`. The tensor must have
    /// the shape `expected`, or rank 0. Otherwise, or if the tensor cannot be read, records the reason and returns `None`.
    fn read_tensor(&mut self, key: Key, dtype: DType, expected: &Shape) -> Option<(Shape, Vec<u8>)> {
        let fits = |(shape, found): &(Shape, FileDtype), converts_floats| {
            (shape.rank() == 0 || shape == expected)
                && (*found == file_dtype(dtype) || converts_floats && is_float(*found))
        };
        let (shape, found, bytes) = self.read_entry(key, (expected, file_dtype(dtype)), fits)?;
        match convert_floats(bytes, found, dtype, &shape) {
            Ok(bytes) => Some((shape, bytes)),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// Reads an entry of the file: its shape, its element type and its bytes. Returns `None` if the file lacks the entry, `fits` returns false for
    /// its shape and type, or the bytes cannot be read. Then the archive keeps the reason. The second argument of `fits` is true if floating-point
    /// types are converted. `expected` is the shape and the type for the error.
    fn read_entry(
        &mut self,
        key: Key,
        expected: (&Shape, FileDtype),
        fits: impl Fn(&(Shape, FileDtype), bool) -> bool,
    ) -> Option<(Shape, FileDtype, Vec<u8>)> {
        let stored = self.stored.as_mut()?;
        let Some(found) = stored.unrequested.remove(&key) else {
            self.missing.push(key);
            return None;
        };
        if !fits(&found, stored.converts_floats) {
            let describe = |shape: &Shape, dtype: FileDtype| (shape.clone(), dtype.to_string());
            let is_convertible = fits(&found, true);
            let (found, expected) = (describe(&found.0, found.1), describe(expected.0, expected.1));
            self.mismatched.push(Mismatch { key, found, expected, is_convertible });
            return None;
        }
        match (stored.read_bytes)(&key) {
            Ok(bytes) => Some((found.0, found.1, bytes)),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }
}

/// Saves or restores the settings, groups and states of `optimizer`. The name of a state begins with its parameter's
/// path. When restoring, removes the states of parameters without states in the file.
#[precompiled]
pub(crate) fn archive_optimizer<T: Float>(
    optimizer: &mut dyn AnyOptimizer<T>,
    model: &dyn Module<T>,
    archive: &mut Archive,
) {
    archive_settings(optimizer, None, "", archive);
    let groups = optimizer.group_paths();
    for (number, path) in groups.iter().enumerate() {
        let prefix = format!("groups.{number}.{path}.");
        archive.number(Key::Setting(format!("{prefix}ratio")), optimizer.group_lr_ratio(number));
        archive_settings(optimizer, Some(number), &prefix, archive);
    }
    for (path, parameter) in model.named_parameters() {
        let steps = Key::State(format!("{path}.step"));
        let current = optimizer.all_states().remove(&parameter.id());
        let has_states = if archive.is_restoring() { archive.contains(&steps) } else { current.is_some() };
        if !has_states {
            continue;
        }
        let group = groups.iter().rposition(|group| is_below(&path, group));
        let expected = optimizer.state_shapes(group, parameter.value.shape());
        let mut states = match current {
            Some(states) if !archive.is_restoring() => states,
            _ => match expected.iter().map(|(_, shape)| Tensor::try_zeros(shape)).collect() {
                Ok(tensors) => States { steps: 0, tensors },
                Err(error) => return archive.fail(wengert_tensor::Error::into(error)),
            },
        };
        archive.integer(steps, &mut states.steps);
        let key = |name| Key::State(format!("{path}.{name}"));
        // Files of earlier versions lack the states of parameters without elements. The next step makes these states.
        let is_empty = archive.is_restoring() && parameter.value.numel() == 0;
        if is_empty && !expected.iter().any(|(name, _)| archive.contains(&key(name))) {
            states.tensors.clear();
        }
        for ((name, _), tensor) in expected.iter().zip(&mut states.tensors) {
            archive.tensor(key(name), tensor);
        }
        optimizer.all_states().insert(parameter.id(), states);
    }
}

/// Saves or restores the settings of an optimiser, or of its group with the index `group`. Each saved name begins with `prefix`.
fn archive_settings<T: Float>(
    optimizer: &mut dyn AnyOptimizer<T>,
    group: Option<usize>,
    prefix: &str,
    archive: &mut Archive,
) {
    optimizer.group_settings(group, &mut |name, setting| {
        let key = Key::Setting(format!("{prefix}{name}"));
        match setting {
            Setting::Number(value, _) => archive.number(key, value),
            Setting::Flag(value) => archive.flag(key, value),
        }
    });
}
