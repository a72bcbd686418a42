//! The slice of a model's parameters for which this rank has the optimiser states (ZeRO, stage 1), or also the values (stage 3).
//!
//! The method is from Rajbhandari, Rasley, Ruwase and He, "ZeRO: memory optimizations toward training trillion parameter models" (2020).
//! The vector of all parameters is divided among the ranks. A rank updates its slice, and has states only for that slice. The
//! optimiser updates each element independently, so the bits equal an update of the whole vector. [`DataParallel`](crate::DataParallel)
//! refuses other optimisers.

use std::collections::HashMap;
use std::ops::Range;

use wengert_autograd::{Gradients, Parameter};
use wengert_nn::{Module, Optimizer, States};
use wengert_tensor::ops::Views as _;
use wengert_tensor::{Float, Shape, Tensor};

use crate::Result;
use crate::flat::Leaves;
use crate::reduction::Division;

/// This rank's slice of the vector of a model's parameters. It consists of one shard for each parameter, with the parameter's path. A shard
/// may be empty.
pub(crate) struct ParameterShards<T: Float> {
    parameter_shards: Vec<ParameterShard<T>>,
    /// True if the parameters' values are stored here and not in the model (stage 3 of ZeRO).
    pub(crate) has_values: bool,
}

struct ParameterShard<T: Float> {
    path: String,
    /// The elements of the parameter that this rank has, as a parameter for the optimiser.
    parameter: Parameter<T>,
    /// The range of the whole parameter in the vector of all parameters; empty for a frozen parameter.
    parameter_range: Range<usize>,
    /// The range of this shard in the vector of all parameters.
    shard_range: Range<usize>,
}

impl<T: Float> Module<T> for ParameterShards<T> {
    fn children<'m>(&'m self, each: &mut dyn FnMut(&str, &'m dyn Module<T>)) {
        self.parameter_shards.iter().for_each(|shard| each(&shard.path, &shard.parameter));
    }

    fn children_mut<'m>(&'m mut self, each: &mut dyn FnMut(&str, &'m mut dyn Module<T>)) {
        self.parameter_shards.iter_mut().for_each(|shard| each(&shard.path, &mut shard.parameter));
    }
}

impl<T: Float> ParameterShards<T> {
    /// Returns this rank's shards of all parameters. `slice` is this rank's range in the vector of the parameters that
    /// are not frozen. Returns an error if memory cannot hold the shards.
    pub(crate) fn new(model: &(impl Module<T> + ?Sized), slice: Range<usize>) -> Result<Self> {
        let mut at = 0;
        let parameter_shards = model.named_parameters().into_iter().map(|(path, own)| {
            let count = if own.is_frozen() { 0 } else { own.value.numel() };
            let parameter_range = at..at + count;
            at += count;
            let shard_range = parameter_range.start.max(slice.start).min(parameter_range.end)
                ..parameter_range.end.min(slice.end).max(parameter_range.start);
            let shard_range = shard_range.start..shard_range.end.max(shard_range.start);
            let mut parameter = Parameter::new(Tensor::try_zeros([shard_range.len()])?);
            parameter.set_frozen(own.is_frozen());
            Ok(ParameterShard { path, parameter, parameter_range, shard_range })
        });
        Ok(ParameterShards { parameter_shards: parameter_shards.collect::<Result<_>>()?, has_values: false })
    }

    /// Returns the number of elements of all parameters that are not frozen.
    pub(crate) fn n_trainable_elements(model: &(impl Module<T> + ?Sized)) -> usize {
        let trained = model.parameters().into_iter().filter(|parameter| !parameter.is_frozen());
        trained.map(|parameter| parameter.value.numel()).sum()
    }

    /// Returns true if the same parameters of `model` are frozen as when the shards were made.
    pub(crate) fn has_same_frozen(&self, model: &(impl Module<T> + ?Sized)) -> bool {
        let parameters = model.parameters();
        let same = |(shard, own): (&ParameterShard<T>, &&Parameter<T>)| shard.parameter.is_frozen() == own.is_frozen();
        parameters.len() == self.parameter_shards.len() && self.parameter_shards.iter().zip(&parameters).all(same)
    }

    /// Updates this rank's slice of the parameters. `sums` begins with the gradients of the slice. The update replaces these gradients by
    /// the new parameters, unless the shards themselves store the parameters (stage 3).
    pub(crate) fn step(
        &mut self,
        model: &(impl Module<T> + ?Sized),
        optimizer: &mut impl Optimizer<T>,
        sums: &mut [T],
        slice: &Range<usize>,
    ) -> Result<()> {
        let mut gradients = Vec::with_capacity(self.parameter_shards.len());
        for (shard, whole) in self.parameter_shards.iter_mut().zip(model.parameters()) {
            if whole.is_frozen() {
                continue;
            }
            if !self.has_values {
                shard.copy_from_parameter(whole);
            }
            let ParameterShard { parameter, shard_range, .. } = shard;
            let shard_gradient = sums[relative_range(shard_range, slice)].to_vec();
            gradients.push((parameter.id(), Tensor::from(shard_gradient)));
        }
        optimizer.try_step(self, &Gradients::from_parts(gradients, []))?;
        for shard in self.parameter_shards.iter_mut().filter(|shard| !self.has_values && !shard.shard_range.is_empty())
        {
            let value = std::mem::replace(&mut shard.parameter.value, Tensor::zeros([0]));
            for (to, from) in sums[relative_range(&shard.shard_range, slice)].iter_mut().zip(value.iter()) {
                *to = from;
            }
        }
        Ok(())
    }

    /// Returns the number of elements of all parameters that are divided into shards.
    pub(crate) fn n_divided_elements(&self) -> usize {
        self.parameter_shards.last().map_or(0, |shard| shard.parameter_range.end)
    }

    /// Moves the parameters' values from the model to this rank's shards. In the model, each parameter that was not frozen when the shards
    /// were made becomes an expanded NaN, which needs no memory.
    pub(crate) fn move_from_model(&mut self, model: &mut (impl Module<T> + ?Sized)) {
        self.has_values = true;
        for (shard, whole) in self.parameter_shards.iter_mut().zip(model.parameters_mut()) {
            if !shard.parameter.is_frozen() {
                shard.copy_from_parameter(whole);
                whole.value = Tensor::scalar(T::from_f64(f64::NAN)).expand(whole.value.shape());
            }
        }
    }

    /// Collects the values of all shards from all ranks, and moves them to the parameters of the model.
    pub(crate) fn move_to_model(
        &mut self,
        model: &mut (impl Module<T> + ?Sized),
        division: &Division<'_>,
    ) -> Result<()> {
        division.group.check_agreement("gather", "parameters")?;
        let trained = self.parameter_shards.iter().filter(|shard| !shard.parameter.is_frozen());
        let own = trained.flat_map(|shard| shard.parameter.value.iter().collect::<Vec<T>>()).collect();
        self.copy_to_model(model, &division.all_gather(own)?)?;
        self.has_values = false;
        self.parameter_shards.iter_mut().for_each(|shard| shard.parameter.value = Tensor::zeros([0]));
        Ok(())
    }

    /// Returns the size, in bytes, of the parameter values that this rank stores.
    pub(crate) fn value_bytes(&self) -> usize {
        self.parameter_shards.iter().map(|shard| shard.parameter.value.numel() * size_of::<T>()).sum()
    }

    /// Returns the position, in the list of shards, of each parameter that is not frozen. The key is the parameter's id
    /// in `leaves`.
    pub(crate) fn positions(&self, leaves: &Leaves) -> HashMap<u64, usize> {
        let positions = self.parameter_shards.iter().enumerate().filter(|(_, shard)| !shard.parameter.is_frozen());
        positions.map(|(position, _)| (leaves.parameters[position].0, position)).collect()
    }

    /// Returns the range of elements that `rank` owns of the parameter at `position`, relative to the parameter's first element.
    pub(crate) fn range_on_rank(&self, position: usize, rank: usize, division: &Division<'_>) -> Range<usize> {
        let (place, slice) = (&self.parameter_shards[position].parameter_range, division.slice(rank));
        let part = place.start.max(slice.start).min(place.end)..place.end.min(slice.end).max(place.start);
        part.start - place.start..part.end.max(part.start) - place.start
    }

    /// Returns the whole parameter at `position`, collected from all ranks. All ranks must call this method for the
    /// same parameters in the same order.
    pub(crate) fn gather_parameter(
        &self,
        position: usize,
        shape: &Shape,
        division: &Division<'_>,
    ) -> Result<Tensor<T>> {
        let own = self.parameter_shards[position].parameter.value.try_to_vec()?;
        let count = |rank| self.range_on_rank(position, rank, division).len();
        let parts = division.group.gather_parts("parameters", own, count)?;
        Ok(Tensor::try_from_vec(parts.concat(), shape)?)
    }

    /// Sets the model's parameters from `flat`, the vector of all parameters that were not frozen when the shards were made.
    pub(crate) fn copy_to_model(&self, model: &mut (impl Module<T> + ?Sized), flat: &[T]) -> Result<()> {
        for (shard, whole) in self.parameter_shards.iter().zip(model.parameters_mut()) {
            if !shard.parameter.is_frozen() {
                let shape = whole.value.shape().clone();
                whole.value = Tensor::try_from_vec(flat[shard.parameter_range.clone()].to_vec(), &shape)?;
            }
        }
        Ok(())
    }

    /// Returns true if the optimiser has states for a shard, for example after a step.
    pub(crate) fn has_states(&self, optimizer: &impl Optimizer<T>) -> bool {
        self.parameter_shards.iter().any(|shard| optimizer.common().states(&shard.parameter).is_some())
    }

    /// Returns the size, in bytes, of the optimiser states for this rank's shards.
    pub(crate) fn state_bytes(&self, optimizer: &impl Optimizer<T>) -> usize {
        let states = self.parameter_shards.iter().filter_map(|shard| optimizer.common().states(&shard.parameter));
        states.flat_map(|states| &states.tensors).map(|tensor| tensor.numel() * size_of::<T>()).sum()
    }

    /// Replaces the states for the whole `model` in `optimizer` by the states for this rank's slice. If a parameter has no states, removes
    /// the states of its shard. The states of parameters that were frozen when the shards were made are not divided.
    pub(crate) fn divide_states(&self, model: &(impl Module<T> + ?Sized), optimizer: &mut impl Optimizer<T>) {
        for (shard, whole) in self.parameter_shards.iter().zip(model.parameters()) {
            if shard.parameter.is_frozen() {
                continue;
            }
            let Some(States { steps, tensors }) = optimizer.common_mut().take_states(whole) else {
                optimizer.common_mut().take_states(&shard.parameter);
                continue;
            };
            let own = shard.shard_range.start - shard.parameter_range.start
                ..shard.shard_range.end - shard.parameter_range.start;
            let cut = |tensor: Tensor<T>| match tensor.rank() {
                // A state that is a single number belongs to the whole parameter, and every rank keeps it.
                0 if *tensor.shape() != *whole.value.shape() => tensor,
                _ => Tensor::from(tensor.iter().skip(own.start).take(own.len()).collect::<Vec<T>>()),
            };
            let tensors = tensors.into_iter().map(cut).collect();
            optimizer.common_mut().set_states(&shard.parameter, States { steps, tensors });
        }
    }

    /// Returns an optimiser with the states for the whole `model` on rank 0. The other ranks send their states and return `None`.
    pub(crate) fn gather_optimizer<O: Optimizer<T>>(
        &self,
        model: &(impl Module<T> + ?Sized),
        optimizer: &O,
        division: &Division<'_>,
    ) -> Result<Option<O>> {
        let slice = division.slice(division.group.rank());
        let states = |shard: &ParameterShard<T>| optimizer.common().states(&shard.parameter).cloned();
        let own: Vec<Option<States<T>>> = self.parameter_shards.iter().map(states).collect();
        let most = own.iter().flatten().map(|states| states.tensors.len()).max().unwrap_or_default();
        // The states of one kind, for example all momenta, become one vector, as the values of the parameters do.
        let mut whole = Vec::with_capacity(most);
        for number in 0..most {
            let mut flat = vec![T::ZERO; slice.len()];
            for (shard, states) in self.parameter_shards.iter().zip(&own) {
                let tensor = states.as_ref().and_then(|states| states.tensors.get(number));
                if let Some(tensor) = tensor.filter(|tensor| tensor.rank() == 1) {
                    for (to, from) in flat[relative_range(&shard.shard_range, &slice)].iter_mut().zip(tensor.iter()) {
                        *to = from;
                    }
                }
            }
            whole.push(division.gather_to_first(flat)?);
        }
        if !division.group.is_first() {
            return Ok(None);
        }
        let mut gathered = optimizer.clone();
        for ((shard, states), parameter) in self.parameter_shards.iter().zip(own).zip(model.parameters()) {
            gathered.common_mut().take_states(&shard.parameter);
            let Some(States { steps, tensors }) = states else {
                continue;
            };
            let gather = |(number, tensor): (usize, Tensor<T>)| {
                let flat = whole.get(number).filter(|_| tensor.rank() == 1);
                flat.map_or(Ok(tensor), |flat: &Vec<T>| {
                    Tensor::try_from_vec(flat[shard.parameter_range.clone()].to_vec(), parameter.value.shape())
                })
            };
            let tensors = tensors.into_iter().enumerate().map(gather).collect::<std::result::Result<_, _>>()?;
            gathered.common_mut().set_states(parameter, States { steps, tensors });
        }
        Ok(Some(gathered))
    }
}

impl<T: Float> ParameterShard<T> {
    /// Copies this shard's values from the whole parameter.
    fn copy_from_parameter(&mut self, whole: &Parameter<T>) {
        let own =
            self.shard_range.start - self.parameter_range.start..self.shard_range.end - self.parameter_range.start;
        let values = match whole.value.as_slice() {
            Some(values) => values[own].to_vec(),
            None => whole.value.iter().skip(own.start).take(own.len()).collect(),
        };
        self.parameter.value = Tensor::from(values);
    }
}

/// Returns the range `part` relative to the start of the range `slice`; 0..0 if `part` is empty.
fn relative_range(part: &Range<usize>, slice: &Range<usize>) -> Range<usize> {
    if part.is_empty() { 0..0 } else { part.start - slice.start..part.end - slice.start }
}
