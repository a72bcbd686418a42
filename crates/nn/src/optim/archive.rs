//! What an optimiser has, under names: one description that both writes a checkpoint and reads it.

use std::collections::HashMap;

use wengert_tensor::{DType, Float, Shape, Tensor};

use crate::module::{Module, is_below};
use crate::optim::optimizer::{Optimizer, Setting, States, all_settings};

/// What a checkpoint can hold beside a model and its optimisers: what has states that belong to a model.
pub trait Resume<T: Float>: Clone {
    /// Names each number and tensor of this to `archive`, which takes it or sets it.
    fn archive(&mut self, model: &(impl Module<T> + ?Sized), archive: &mut Archive<T>);
}

/// Numbers and tensors by name, while they are collected for a checkpoint or set from one.
#[derive(Debug)]
pub struct Archive<T: Float> {
    entries: HashMap<Key, Entry<T>>,
    reading: bool,
    missing: Vec<Key>,
    mismatched: Vec<Mismatch>,
}

/// A name, with shape and element type in the file and as they should be.
pub(crate) type Mismatch = (Key, (Shape, String), (Shape, String));

/// The name of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// A setting.
    Setting(String),
    /// A state, of the parameter whose path comes first.
    State(String),
}

/// A number or a tensor.
#[derive(Clone, Debug)]
pub(crate) enum Entry<T: Float> {
    Tensor(Tensor<T>),
    Number(f64),
    Integer(u64),
    Flag(bool),
}

impl Key {
    /// The name in a file, of what was saved under `name`.
    pub(crate) fn in_file(&self, name: &str) -> String {
        match self {
            Key::Setting(key) => format!("@settings.{name}.{key}"),
            Key::State(key) => format!("@optimizer.{name}.{key}"),
        }
    }

    /// The key of a name in a file, if it belongs to what was saved under `name`.
    pub(crate) fn from_file(in_file: &str, name: &str) -> Option<Key> {
        let key = |prefix| Some(in_file.strip_prefix(prefix)?.strip_prefix(name)?.strip_prefix('.')?.to_owned());
        key("@settings.").map(Key::Setting).or_else(|| key("@optimizer.").map(Key::State))
    }
}

impl<T: Float> Entry<T> {
    /// Shape and element type, as errors show them.
    fn described(&self) -> (Shape, String) {
        match self {
            Entry::Tensor(tensor) => {
                (tensor.shape().clone(), if T::DTYPE == DType::F32 { "F32" } else { "F64" }.to_owned())
            }
            Entry::Number(_) => (Shape::scalar(), "F64".to_owned()),
            Entry::Integer(_) => (Shape::scalar(), "U64".to_owned()),
            Entry::Flag(_) => (Shape::scalar(), "BOOL".to_owned()),
        }
    }
}

impl<T: Float> Archive<T> {
    pub(crate) fn writing() -> Self {
        Archive { entries: HashMap::new(), reading: false, missing: Vec::new(), mismatched: Vec::new() }
    }

    pub(crate) fn reading(entries: HashMap<Key, Entry<T>>) -> Self {
        Archive { entries, reading: true, ..Archive::writing() }
    }

    pub(crate) fn is_reading(&self) -> bool {
        self.reading
    }

    pub(crate) fn into_entries(self) -> HashMap<Key, Entry<T>> {
        self.entries
    }

    /// After reading: the names that were missing, those of other shapes or types, and those that nothing asked for.
    pub(crate) fn finish(self) -> (Vec<Key>, Vec<Mismatch>, Vec<Key>) {
        (self.missing, self.mismatched, self.entries.into_keys().collect())
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.entries.contains_key(key)
    }

    pub(crate) fn number(&mut self, key: Key, value: &mut f64) {
        self.exchange(key, Entry::Number(*value), |entry| match entry {
            Entry::Number(read) => {
                *value = *read;
                true
            }
            _ => false,
        });
    }

    pub(crate) fn integer(&mut self, key: Key, value: &mut u64) {
        self.exchange(key, Entry::Integer(*value), |entry| match entry {
            Entry::Integer(read) => {
                *value = *read;
                true
            }
            _ => false,
        });
    }

    pub(crate) fn flag(&mut self, key: Key, value: &mut bool) {
        self.exchange(key, Entry::Flag(*value), |entry| match entry {
            Entry::Flag(read) => {
                *value = *read;
                true
            }
            _ => false,
        });
    }

    /// A tensor; what is read has its shape, or rank 0.
    pub(crate) fn tensor(&mut self, key: Key, value: &mut Tensor<T>) {
        let shape = value.shape().clone();
        self.exchange(key, Entry::Tensor(value.clone()), |entry| match entry {
            Entry::Tensor(read) if read.rank() == 0 || *read.shape() == shape => {
                *value = read.clone();
                true
            }
            // In f64 a tensor of rank 0 looks like a number.
            Entry::Number(read) if T::DTYPE == DType::F64 => {
                *value = Tensor::scalar(T::from_f64(*read));
                true
            }
            _ => false,
        });
    }

    /// Writes `own`, or reads what is there with `set`, which says whether it is of the right kind.
    fn exchange(&mut self, key: Key, own: Entry<T>, set: impl FnOnce(&Entry<T>) -> bool) {
        if !self.reading {
            self.entries.insert(key, own);
            return;
        }
        match self.entries.remove(&key) {
            None => self.missing.push(key),
            Some(read) if set(&read) => {}
            Some(read) => self.mismatched.push((key, read.described(), own.described())),
        }
    }
}

/// The settings, groups and states of `optimizer`, the states by the path of their parameter.
pub(crate) fn archive_optimizer<T: Float, O: Optimizer<T>>(
    optimizer: &mut O,
    model: &(impl Module<T> + ?Sized),
    archive: &mut Archive<T>,
) {
    archive_settings(optimizer, "", archive);
    for (number, group) in optimizer.common_mut().groups.iter_mut().enumerate() {
        let prefix = format!("groups.{number}.{}.", group.path);
        archive.number(Key::Setting(format!("{prefix}ratio")), &mut group.ratio);
        archive_settings(&mut group.settings, &prefix, archive);
    }
    for (path, parameter) in model.named_parameters() {
        let steps = Key::State(format!("{path}.step"));
        let present = if archive.is_reading() {
            archive.contains(&steps)
        } else {
            optimizer.common().states(parameter).is_some()
        };
        if !present {
            optimizer.common_mut().take_states(parameter);
            continue;
        }
        let group = optimizer.common().groups.iter().rfind(|group| is_below(&path, &group.path));
        let names = group.map_or(&*optimizer, |group| &group.settings).states();
        let mut states = match optimizer.common().states(parameter) {
            Some(states) if !archive.is_reading() => states.clone(),
            _ => States { steps: 0, tensors: vec![Tensor::zeros(parameter.value.shape()); names.len()] },
        };
        archive.integer(steps, &mut states.steps);
        for (name, tensor) in names.iter().zip(&mut states.tensors) {
            archive.tensor(Key::State(format!("{path}.{name}")), tensor);
        }
        optimizer.common_mut().set_states(parameter, states);
    }
}

/// The settings of an optimiser or of one of its groups.
fn archive_settings<T: Float>(optimizer: &mut impl Optimizer<T>, prefix: &str, archive: &mut Archive<T>) {
    all_settings(optimizer, &mut |name, setting| {
        let key = Key::Setting(format!("{prefix}{name}"));
        match setting {
            Setting::Number(value, _) => archive.number(key, value),
            Setting::Flag(value) => archive.flag(key, value),
        }
    });
}
