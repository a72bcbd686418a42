//! A step whose parameters are divided among the ranks (ZeRO, stage 3).
//!
//! In each round, every rank computes at most one shard. All ranks record the same operations in the same order. When a parameter is read,
//! each rank sends its part of the parameter to the others. When the gradient of a parameter is complete, each rank receives, from the
//! others, their gradients of its own part of the parameter.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wengert_autograd::{GradientSink, RecordedGradients};
use wengert_nn::{Module, Optimizer, try_update_buffers};
use wengert_tensor::{Float, Site, Tensor};

use crate::collective::add;
use crate::flat::{Layout, Leaves, push_scaled};
use crate::parallel::{DataParallel, Step};
use crate::parameter_shards::ParameterShards;
use crate::payload::Payload;
use crate::reduction::Division;
use crate::transport::Exchange;
use crate::tree::{PartialSums, ShardPlan};
use crate::{Error, Result};

/// This rank's slice of the gradients, summed over all shards of the batch. The field `tail` has the sums of the statistics and of the
/// loss.
pub(crate) struct ShardSums<T> {
    slice: Vec<T>,
    tail: Vec<T>,
}

impl<O: Optimizer<T>, T: Float> DataParallel<'_, O, T> {
    /// Computes this rank's shards. Returns this rank's slice of the summed gradients, and the sums of the statistics
    /// and losses, over all shards of the batch. `next` records the shard with the given index among this rank's
    /// shards. Each shard has the fraction `weight` of the rows of the batch.
    pub(crate) fn sharded_sums<'t>(
        &self,
        (leaves, layout): (&Leaves, &Layout),
        plan: &ShardPlan,
        weight: T,
        mut next: impl FnMut(usize) -> Result<RecordedGradients<'t, T>>,
    ) -> Result<ShardSums<T>>
    where
        T: 't,
    {
        let (group, length) = (self.group, layout.gradient_length());
        let (division, tail_length) = (self.division(length, 0), layout.vector_length() - length);
        let Some(parameter_shards) = &self.parameter_shards else {
            return Err(Error::FrozenChanged);
        };
        let mut lockstep = Lockstep {
            parameter_shards,
            division: &division,
            leaves,
            plan,
            round: 0,
            positions: parameter_shards.positions(leaves),
            weight,
            sums: BTreeMap::new(),
            events: Vec::new(),
            error: None,
        };
        let mut tails = PartialSums::new();
        for round in 0..plan.rounds() {
            lockstep.round = round;
            let mut own = Vec::new();
            if plan.node(group.rank(), round).is_some() {
                lockstep.events.clear();
                let computed = next(round)?.try_evaluate(&mut lockstep);
                if let Some(error) = lockstep.error.take() {
                    return Err(error);
                }
                let (loss, rest) = computed?;
                own = layout.statistics_and_loss(leaves, loss, &rest, weight);
            } else {
                // This rank has no shard of the batch in this round, but other ranks have one and need this rank's part of the parameters.
                lockstep.repeat_exchanges()?;
            }
            let count = |rank| if plan.node(rank, round).is_some() { tail_length } else { 0 };
            for (rank, part) in group.gather_parts("step", own, count)?.into_iter().enumerate() {
                if let Some(node) = plan.node(rank, round) {
                    tails.push(node, part, &mut add);
                }
            }
        }
        let slice = lockstep.sums.into_values().filter_map(|sums| sums.into_total(&mut add)).flatten().collect();
        Ok(ShardSums { slice, tail: tails.into_total(&mut add).unwrap_or_default() })
    }

    /// Updates the parameters that this rank owns, and the buffers. Returns the loss and the norm.
    pub(crate) fn step_sharded<M: Module<T>>(
        &mut self,
        model: &mut M,
        leaves: &Leaves,
        layout: &Layout,
        ShardSums { mut slice, tail }: ShardSums<T>,
    ) -> Result<Step> {
        let division = self.division(layout.gradient_length(), 0);
        let norm = self.update_own_parameters(model, layout, &division, &mut slice)?;
        try_update_buffers(model, &layout.unflatten(leaves, &tail, true)?)?;
        Ok(Step { loss: tail.last().map_or(0.0, |loss| loss.to_f64()), norm })
    }
}

/// The state of a rank during the exchanges of a round, in which each rank computes at most one shard of the batch.
struct Lockstep<'s, 'g, T: Float> {
    parameter_shards: &'s ParameterShards<T>,
    division: &'s Division<'g>,
    leaves: &'s Leaves,
    plan: &'s ShardPlan,
    round: usize,
    /// The position of each sharded parameter in the list of `parameter_shards`. The key is the parameter's id.
    positions: HashMap<u64, usize>,
    weight: T,
    /// For each gradient, the sums of the part that this rank owns. The key is the parameter's position in the list of `parameter_shards`.
    sums: BTreeMap<usize, PartialSums<Vec<T>>>,
    /// The exchanges that were made for the last shard of the batch that this rank has computed.
    events: Vec<ExchangeEvent>,
    /// The error that ended the evaluation.
    error: Option<Error>,
}

/// An exchange between the ranks, of the values or of the gradients of one parameter. The number is the parameter's position in the list of
/// parameter shards.
#[derive(Clone, Copy)]
enum ExchangeEvent {
    Fetch(usize),
    Gradient(usize),
}

impl<T: Float> Lockstep<'_, '_, T> {
    fn gather_parameter(&self, position: usize) -> Result<Tensor<T>> {
        self.parameter_shards.gather_parameter(position, &self.leaves.parameters[position].1, self.division)
    }

    /// Adds up the gradients of the parameter at `position` that the ranks computed in this round. `own` is this rank's gradient, or `None`
    /// without a shard. Sends each rank its part of `own`, and adds the received parts to the sums of this rank.
    fn add_gradients(&mut self, position: usize, own: Option<&[T]>) -> Result<()> {
        let (group, division) = (self.division.group, self.division);
        let range_of = |rank| self.parameter_shards.range_on_rank(position, rank, division);
        let mut exchange = Exchange::default();
        if let Some(own) = own {
            let sends = group.other_ranks().filter(|&rank| !range_of(rank).is_empty());
            exchange.sends =
                sends.map(|rank| (rank, Arc::new(Payload::from_floats(own[range_of(rank)].to_vec())))).collect();
        }
        let own_range = range_of(group.rank());
        let computes = |rank: &usize| self.plan.node(*rank, self.round).is_some();
        let senders = group.other_ranks().filter(|rank| !own_range.is_empty() && computes(rank));
        exchange.receives = senders.map(|rank| (rank, Payload::zeros::<T>(own_range.len()))).collect();
        let received = group.finish_exchange(group.start_exchange("gradients", exchange))?.receives;
        let mut parts: Vec<(usize, Vec<T>)> =
            received.into_iter().map(|(rank, payload)| (rank, payload.into_elements())).collect();
        parts.extend(own.map(|own| (group.rank(), own[own_range].to_vec())));
        // The gradients of a round's shards are added in the order of the ranks.
        parts.sort_unstable_by_key(|&(rank, _)| rank);
        let sums = self.sums.entry(position).or_insert_with(PartialSums::new);
        for (rank, part) in parts {
            if let Some(node) = self.plan.node(rank, self.round) {
                sums.push(node, part, &mut add);
            }
        }
        Ok(())
    }

    /// Takes part in the exchanges of a round in which this rank has no shard of the batch, but other ranks need its parameters. Makes the
    /// same exchanges as for the last shard that this rank has computed.
    fn repeat_exchanges(&mut self) -> Result<()> {
        for at in 0..self.events.len() {
            match self.events[at] {
                ExchangeEvent::Fetch(position) => drop(self.gather_parameter(position)?),
                ExchangeEvent::Gradient(position) => self.add_gradients(position, None)?,
            }
        }
        Ok(())
    }

    /// Returns `result` with an error of the tape in place of an error of this crate. The error of the tape ends the evaluation. Stores the
    /// error of this crate.
    fn stop_on_error<R>(&mut self, result: Result<R>) -> Result<R, wengert_autograd::Error> {
        result.map_err(|error| {
            let message = error.to_string();
            self.error = Some(error);
            wengert_autograd::Error::Refused { message, at: Site::here("sharded parameters") }
        })
    }
}

impl<T: Float> GradientSink<T> for Lockstep<'_, '_, T> {
    fn gradient(&mut self, parameter: u64, gradient: Tensor<T>) -> Result<(), wengert_autograd::Error> {
        let Some(&position) = self.positions.get(&parameter) else {
            return Ok(());
        };
        self.events.push(ExchangeEvent::Gradient(position));
        let mut own = Vec::with_capacity(gradient.numel());
        push_scaled(&mut own, &gradient, self.weight);
        let added = self.add_gradients(position, Some(&own));
        self.stop_on_error(added)
    }

    fn is_remote(&self, parameter: u64) -> bool {
        self.positions.contains_key(&parameter)
    }

    fn fetch(&mut self, parameter: u64) -> Result<Tensor<T>, wengert_autograd::Error> {
        let position = self.positions[&parameter];
        self.events.push(ExchangeEvent::Fetch(position));
        let values = self.gather_parameter(position);
        self.stop_on_error(values)
    }
}
