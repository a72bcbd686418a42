//! Saves and restores the settings and states of an optimiser by name. The same code saves and restores: an archive collects values or
//! overwrites them.

use std::collections::HashMap;
use std::fmt;

use safetensors::Dtype;
use wengert_macros::precompiled;
use wengert_tensor::{DType, Float, Shape, Tensor};

use crate::bytes::{convert_floats, dtype, from_bytes, is_float, to_bytes, word};
use crate::module::{Module, is_below};
use crate::optim::common::States;
use crate::optim::optimizer::AnyOptimizer;
use crate::optim::setting::Setting;
use crate::{Error, Result};

/// An object that keeps states for the parameters of a model, for example an average of weights. A [`Checkpoint`](crate::Checkpoint) can save
/// and restore the object.
pub trait Resume<T: Float>: Clone {
    /// Passes each number and tensor of this object with its name to `archive`. The archive copies each value when saving, and overwrites each
    /// value when restoring.
    fn archive(&mut self, model: &(impl Module<T> + ?Sized), archive: &mut Archive);
}

/// Numbers and tensors by name, which are written to a checkpoint or read from a checkpoint.
pub struct Archive {
    /// The entries that were collected so far, if the archive saves an object. Otherwise empty.
    entries: HashMap<Key, Entry>,
    /// The entries of the file, if the archive restores an object from a file. Otherwise `None`.
    stored: Option<Stored>,
    missing: Vec<Key>,
    mismatched: Vec<Mismatch>,
    /// The first error: an entry could not be read from the file, or the object refused to be saved, as a `WeightAverage` between two swaps does.
    failed: Option<Error>,
}

/// A function that reads the bytes of the entry with the given name from a file.
type ReadBytes = Box<dyn Fn(&Key) -> Result<Vec<u8>>>;

/// The entries of a file. An entry is read only if its shape and its element type fit the value that it restores. So a damaged file cannot ask
/// for more memory than the model needs.
pub(crate) struct Stored {
    /// The shape and the element type in the file of each entry that was not requested yet.
    pub(crate) kinds: HashMap<Key, (Shape, Dtype)>,
    /// True if a tensor of another floating-point type than the requested type is converted to the requested type.
    pub(crate) converts: bool,
    /// Reads the bytes of an entry.
    pub(crate) read: ReadBytes,
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

/// An entry that does not fit: its name, its shape and element type in the file, the expected shape and element type, and true if the entry
/// would fit after a conversion.
pub(crate) type Mismatch = (Key, (Shape, String), (Shape, String), bool);

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
    pub(crate) dtype: Dtype,
    pub(crate) shape: Shape,
    pub(crate) bytes: Vec<u8>,
}

/// The settings by which the objects in a file are found, because each saved object has one of them. An optimiser and an `Lbfgs` have `lr`, and a
/// `WeightAverage` has `decay`.
const MARKS: [&str; 2] = ["lr", "decay"];

impl Key {
    /// Returns the name of the object to which the entry `in_file` of a file belongs, if the entry is one of the settings in [`MARKS`]. Returns
    /// `None` for other entries, and for these settings of a parameter group.
    pub(crate) fn marked_object(in_file: &str) -> Option<&str> {
        let key = in_file.strip_prefix("@settings.")?;
        let object = MARKS.iter().find_map(|setting| key.strip_suffix(setting)?.strip_suffix('.'))?;
        let is_group = object.match_indices(".groups.").any(|(position, separator)| {
            let number = object[position + separator.len()..].split_once('.').map_or("", |(number, _)| number);
            number.parse::<usize>().is_ok()
        });
        (!is_group).then_some(object)
    }

    /// Returns the name of this entry in a file. `name` is the name under which the object, for example an optimiser, was saved.
    pub(crate) fn in_file(&self, name: &str) -> String {
        match self {
            Key::Setting(key) => format!("@settings.{name}.{key}"),
            Key::State(key) => format!("@optimizer.{name}.{key}"),
        }
    }

    /// Returns the key of the entry that is called `in_file` in a file. Returns `None` if the entry does not belong to the object (for example an
    /// optimiser) that was saved under `name`. `objects` are the names of the objects in the file, which [`marked_object`](Self::marked_object)
    /// finds. An entry whose name begins with the names `a` and `a.b` of two objects belongs to `a.b`.
    pub(crate) fn from_file(in_file: &str, name: &str, objects: &[&str]) -> Option<Key> {
        let key = |prefix| {
            let key = in_file.strip_prefix(prefix)?;
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
    pub(crate) fn writing() -> Self {
        Archive { entries: HashMap::new(), stored: None, missing: Vec::new(), mismatched: Vec::new(), failed: None }
    }

    /// Returns an archive with the entries of a file, for restoring.
    pub(crate) fn reading(stored: Stored) -> Self {
        Archive { stored: Some(stored), ..Archive::writing() }
    }

    /// Returns true if the archive restores values from a file.
    pub(crate) fn is_reading(&self) -> bool {
        self.stored.is_some()
    }

    /// Records the reason why the object cannot be saved or restored. The first recorded error counts.
    pub(crate) fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// Returns the entries that were collected for saving.
    ///
    /// # Errors
    ///
    /// If an error was recorded by [`fail`](Self::fail).
    pub(crate) fn into_entries(self) -> Result<HashMap<Key, Entry>> {
        self.failed.map_or(Ok(self.entries), Err)
    }

    /// Ends the reading. Returns the expected names that the file lacks, the entries whose shape or type differs, and the names in the file
    /// that were never requested.
    ///
    /// # Errors
    ///
    /// If an entry could not be read.
    pub(crate) fn finish(self) -> Result<(Vec<Key>, Vec<Mismatch>, Vec<Key>)> {
        match self.failed {
            Some(error) => Err(error),
            None => {
                let rest = self.stored.into_iter().flat_map(|stored| stored.kinds.into_keys());
                Ok((self.missing, self.mismatched, rest.collect()))
            }
        }
    }

    /// Returns true if the file has an entry with this name that was not requested yet.
    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.kinds.contains_key(key))
    }

    /// Saves `value` when saving, or sets `value` to the number in the file when restoring. If the file has no such number, keeps `value` and records
    /// the problem.
    pub(crate) fn number(&mut self, key: Key, value: &mut f64) {
        if let Some(bytes) = self.scalar(key, Dtype::F64, &value.to_le_bytes()) {
            *value = f64::from_le_bytes(word(&bytes));
        }
    }

    /// Saves `value` when saving, or sets `value` to the integer in the file when restoring. If the file has no such integer, keeps `value` and
    /// records the problem.
    pub(crate) fn integer(&mut self, key: Key, value: &mut u64) {
        if let Some(bytes) = self.scalar(key, Dtype::U64, &value.to_le_bytes()) {
            *value = u64::from_le_bytes(word(&bytes));
        }
    }

    /// Saves `value` when saving, or sets `value` to the flag in the file when restoring. If the file has no such flag, keeps `value` and records the
    /// problem.
    pub(crate) fn flag(&mut self, key: Key, value: &mut bool) {
        if let Some(bytes) = self.scalar(key, Dtype::BOOL, &[u8::from(*value)]) {
            *value = bytes == [1];
        }
    }

    /// Saves `value` when saving, or sets `value` to the tensor in the file when restoring. The tensor in the file must have rank 0 or the same
    /// shape. If the file has no such tensor, keeps `value` and records the problem.
    pub(crate) fn tensor<T: Float>(&mut self, key: Key, value: &mut Tensor<T>) {
        if self.stored.is_none() {
            let entry = Entry { dtype: dtype(T::DTYPE), shape: value.shape().clone(), bytes: to_bytes(value) };
            self.entries.insert(key, entry);
        } else if let Some((shape, bytes)) = self.read_tensor(key, T::DTYPE, value.shape()) {
            match from_bytes(&bytes, &shape) {
                Ok(read) => *value = read,
                Err(error) => self.fail(error),
            }
        }
    }

    /// When saving, stores the bytes `own` as a single element, and returns `None`. When restoring, returns the bytes of the entry if it is a single
    /// element of the type `dtype`. Otherwise records the problem and returns `None`.
    fn scalar(&mut self, key: Key, dtype: Dtype, own: &[u8]) -> Option<Vec<u8>> {
        if self.stored.is_none() {
            self.entries.insert(key, Entry { dtype, shape: Shape::scalar(), bytes: own.to_vec() });
            return None;
        }
        let fits = |(shape, found): &(Shape, Dtype), _| shape.rank() == 0 && *found == dtype;
        self.read(key, (&Shape::scalar(), dtype), fits).map(|(_, _, bytes)| bytes)
    }

    /// Returns the shape of a tensor in the file, and its elements as bytes of the type `dtype`. The tensor must have
    /// the shape `own`, or rank 0. Otherwise, or if the tensor cannot be read, records the reason and returns `None`.
    fn read_tensor(&mut self, key: Key, of: DType, own: &Shape) -> Option<(Shape, Vec<u8>)> {
        let fits = |(shape, found): &(Shape, Dtype), converts| {
            (shape.rank() == 0 || shape == own) && (*found == dtype(of) || converts && is_float(*found))
        };
        let (shape, found, bytes) = self.read(key, (own, dtype(of)), fits)?;
        match convert_floats(bytes, found, of, &shape) {
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
    fn read(
        &mut self,
        key: Key,
        expected: (&Shape, Dtype),
        fits: impl Fn(&(Shape, Dtype), bool) -> bool,
    ) -> Option<(Shape, Dtype, Vec<u8>)> {
        let stored = self.stored.as_mut()?;
        let Some(kind) = stored.kinds.remove(&key) else {
            self.missing.push(key);
            return None;
        };
        if !fits(&kind, stored.converts) {
            let shown = |shape: &Shape, dtype: Dtype| (shape.clone(), dtype.to_string());
            let convertible = fits(&kind, true);
            self.mismatched.push((key, shown(&kind.0, kind.1), shown(expected.0, expected.1), convertible));
            return None;
        }
        match (stored.read)(&key) {
            Ok(bytes) => Some((kind.0, kind.1, bytes)),
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
        archive.number(Key::Setting(format!("{prefix}ratio")), optimizer.group_ratio(number));
        archive_settings(optimizer, Some(number), &prefix, archive);
    }
    for (path, parameter) in model.named_parameters() {
        let steps = Key::State(format!("{path}.step"));
        let own = optimizer.all_states().remove(&parameter.id());
        let present = if archive.is_reading() { archive.contains(&steps) } else { own.is_some() };
        if !present {
            continue;
        }
        let group = groups.iter().rposition(|group| is_below(&path, group));
        let expected = optimizer.states_of(group, parameter.value.shape());
        let mut states = match own {
            Some(states) if !archive.is_reading() => states,
            _ => match expected.iter().map(|(_, shape)| Tensor::try_zeros(shape)).collect() {
                Ok(tensors) => States { steps: 0, tensors },
                Err(error) => return archive.fail(wengert_tensor::Error::into(error)),
            },
        };
        archive.integer(steps, &mut states.steps);
        let key = |name| Key::State(format!("{path}.{name}"));
        // Files of earlier versions lack the states of parameters without elements. The next step makes these states.
        let is_empty = archive.is_reading() && parameter.value.numel() == 0;
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
