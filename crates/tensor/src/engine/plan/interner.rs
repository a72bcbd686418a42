//! Lists of distinct values, such as shapes, in which each value has an index.

use std::hash::Hash;
use std::ops::Index;

use rustc_hash::FxHashMap;

/// A list of distinct values. Each value has an index, and the map finds the index of a value.
pub(super) struct Interner<K> {
    list: Vec<K>,
    indices: FxHashMap<K, u32>,
}

impl<K: Clone + Eq + Hash> Interner<K> {
    /// Returns the index of `key`. Adds `key` to the list if it is new.
    pub(super) fn intern(&mut self, key: K) -> u32 {
        let list = &mut self.list;
        *self.indices.entry(key).or_insert_with_key(|key| {
            list.push(key.clone());
            (list.len() - 1) as u32
        })
    }
}

impl<K> Default for Interner<K> {
    fn default() -> Self {
        Interner { list: Vec::new(), indices: FxHashMap::default() }
    }
}

impl<K> Index<u32> for Interner<K> {
    type Output = K;

    fn index(&self, index: u32) -> &K {
        &self.list[index as usize]
    }
}
