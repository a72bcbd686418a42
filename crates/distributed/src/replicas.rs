//! Makes the models of all ranks equal by a broadcast, and checks that they are equal.

use wengert_nn::{LeafMut, Module};
use wengert_tensor::{Float, Tensor};

use crate::group::{Group, hash};
use crate::{Error, Result};

impl Group {
    /// Replaces the parameters and buffers of every rank by the values of rank 0.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on every rank, if the models differ in paths, shapes or types; [`Error::Lost`]; the errors of a buffer that
    /// refuses the bytes; [`Error::Tensor`] if there is not enough memory.
    pub fn broadcast_model<T: Float>(&self, model: &mut (impl Module<T> + ?Sized)) -> Result<()> {
        self.check_agreement("broadcast_model", &describe(model))?;
        if self.size() == 1 {
            return Ok(());
        }
        let mut numbers: Vec<T> = Vec::new();
        let mut bytes = Vec::new();
        for (_, leaf) in model.leaves_mut() {
            match leaf {
                LeafMut::Parameter(parameter) => numbers.extend(parameter.value.iter()),
                LeafMut::Buffer(buffer) => bytes.extend(buffer.to_bytes()),
            }
        }
        let (count, size) = (numbers.len(), bytes.len());
        let mut numbers = self.broadcast_elements("broadcast_model", numbers, count, 0)?.into_iter();
        let mut bytes = &self.broadcast_elements("broadcast_model", bytes, size, 0)?[..];
        for (_, leaf) in model.leaves_mut() {
            match leaf {
                LeafMut::Parameter(parameter) => {
                    let shape = parameter.value.shape().clone();
                    parameter.value = Tensor::try_from_vec(numbers.by_ref().take(shape.numel()).collect(), &shape)?;
                }
                LeafMut::Buffer(buffer) => {
                    let (own, rest) = bytes.split_at(buffer.to_bytes().len());
                    buffer.set_from_bytes(own)?;
                    bytes = rest;
                }
            }
        }
        Ok(())
    }

    /// Checks that all ranks have the same parameters and buffers, bit for bit. The check compares 64-bit hashes.
    ///
    /// # Errors
    ///
    /// [`Error::Unequal`], on every rank, with the first path that differs; [`Error::Mismatch`], on every rank, if
    /// paths, shapes or types differ; [`Error::Lost`].
    pub fn check_equal<T: Float>(&self, model: &(impl Module<T> + ?Sized)) -> Result<()> {
        self.check_agreement("check_equal", &describe(model))?;
        if self.size() == 1 {
            return Ok(());
        }
        let (mut paths, mut hashes) = (Vec::new(), Vec::new());
        for (path, leaf) in model.leaves() {
            paths.push(path);
            hashes.extend(leaf_hash(&leaf).to_le_bytes());
        }
        let sizes = vec![hashes.len(); self.size()];
        let all = self.all_gather_bytes("check_equal", hashes, &sizes)?;
        for (rank, hashes) in all.iter().enumerate() {
            let pairs = hashes.chunks(8).zip(all[0].chunks(8));
            if let Some((path, _)) = paths.iter().zip(pairs).find(|(_, (own, first))| own != first) {
                return Err(Error::Unequal { path: path.clone(), rank });
            }
        }
        Ok(())
    }
}

fn leaf_hash<T: Float>(leaf: &wengert_nn::Leaf<'_, T>) -> u64 {
    match leaf {
        wengert_nn::Leaf::Parameter(parameter) => {
            let bits: Vec<[u8; 8]> =
                parameter.value.iter().map(|value| value.to_f64().to_bits().to_le_bytes()).collect();
            hash([bits.as_flattened()])
        }
        wengert_nn::Leaf::Buffer(buffer) => hash([&buffer.to_bytes()[..]]),
    }
}

/// Returns a description of a model: its kind, the numbers of its leaves and parameters, and a hash of the leaves' paths, shapes and types.
fn describe<T: Float>(model: &(impl Module<T> + ?Sized)) -> String {
    let leaves = model.leaves().into_iter().map(|(path, leaf)| match leaf {
        wengert_nn::Leaf::Parameter(parameter) => format!("{path} {} {}\n", T::DTYPE, parameter.value.shape()),
        wengert_nn::Leaf::Buffer(buffer) => format!("{path} {} {}\n", buffer.dtype(), buffer.shape()),
    });
    let leaves: Vec<String> = leaves.collect();
    let names = hash(leaves.iter().map(|leaf| leaf.as_bytes()));
    let (kind, count, numbers) = (model.kind(), leaves.len(), model.num_parameters());
    format!("a {kind} of {count} tensors with {numbers} parameters (paths and shapes {names:016x})")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use wengert_nn::{BatchNorm1d, Generator, Linear, Sequential};

    use super::*;

    fn model(seed: u64, width: usize) -> Sequential {
        let generator = &mut Generator::new(seed);
        Sequential::new().add(Linear::new(3, width, generator)).add(BatchNorm1d::new(width))
    }

    #[test]
    fn models_become_equal_and_the_first_difference_is_named() {
        thread::scope(|scope| {
            for group in Group::in_process::<3>() {
                scope.spawn(move || {
                    let mut own = model(group.rank() as u64, 4);
                    let error = group.check_equal(&own).unwrap_err();
                    assert!(matches!(&error, Error::Unequal { path, rank: 1 } if path == "0.weight"), "{error}");
                    group.broadcast_model(&mut own).unwrap();
                    group.check_equal(&own).unwrap();
                    assert_eq!(own.to_vector(), model(0, 4).to_vector());
                    let error = group.broadcast_model(&mut model(0, 4 + group.rank())).unwrap_err();
                    assert!(error.to_string().contains("rank 2 called broadcast_model of a Sequential"), "{error}");
                });
            }
        });
    }
}
