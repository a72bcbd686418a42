//! A step that records the losses of its shards and evaluates them itself, so that it sends some gradients while others are still computed.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use wengert_autograd::{GradientSink, RecordedGradients, Tape, Var};
use wengert_nn::{Generator, Module, Optimizer};
use wengert_tensor::{Float, Tensor};

use crate::collective::add;
use crate::flat::{Layout, Leaves, push_scaled};
use crate::parallel::{DataParallel, PlannedStep, Shard, Step};
use crate::reduction::{Division, PendingSum};
use crate::sync::{SyncPoints, record_shard, synchronize};
use crate::tree::{Node, PartialSums, ShardPlan, part_range};
use crate::{Error, Result};

impl<'g, O: Optimizer<T>, T: Float> DataParallel<'g, O, T> {
    /// Takes one step, as [`step`](Self::step) does. `loss` gets a tape, on which it records the mean loss of a shard's
    /// rows without computing it. The result has the same bits as with `step`.
    ///
    /// Because the step evaluates the tapes itself, it sends a bucket of gradients as soon as the bucket is complete. The gradients of the
    /// last layers are sent first, while others are still computed. With [`sharded`](Self::sharded) states the gradients are sent when all
    /// are complete. [`SyncBatchNorm`](crate::SyncBatchNorm) uses the statistics of all ranks in this kind of step.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert_distributed::{DataParallel, Group};
    /// use wengert::nn::{Adam, Generator, Layer, Linear};
    ///
    /// let group = Group::world()?;
    /// let generator = &mut Generator::new(0); // the same on all ranks
    /// let mut model = Linear::<f32>::new(4, 1, generator);
    /// let mut parallel = DataParallel::new(&group, &mut model, Adam::new(0.01))?;
    /// for _ in 0..3 {
    ///     let x = Tensor::randn([32, 4], generator);
    ///     let step = parallel.step_recorded(&mut model, 32, generator, |model, tape, shard| {
    ///         Ok(model.forward(tape.constant(&shard.of(&x))).square().mean(..))
    ///     })?;
    ///     assert!(step.loss.is_finite());
    /// }
    /// # Ok::<(), wengert_distributed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`step`](Self::step). With sharded parameters, [`Error::ShardedParameters`] only if the number of
    /// rows is not a multiple of the number of shards, or the model has a [`SyncBatchNorm`](crate::SyncBatchNorm).
    pub fn step_recorded<M: Module<T>>(
        &mut self,
        model: &mut M,
        rows: usize,
        generator: &mut Generator,
        mut loss: impl for<'t> FnMut(&M, &'t Tape<T>, &Shard) -> Result<Var<'t, T>>,
    ) -> Result<Step> {
        let rank = self.group.rank();
        let PlannedStep { n_shards: count, seed, plan } = self.plan_step(rows, generator)?;
        let leaves = Leaves::from_model(model);
        let shards_of = |rank: usize| plan.nodes[rank].iter().flat_map(|node| node.leaf_range(count));
        let mut shards: Vec<Shard> =
            shards_of(rank).map(|number| Shard::new(number, part_range(rows, count, number), seed)).collect();
        let tapes: Vec<Tape<T>> = shards.iter_mut().map(|shard| Tape::training(&mut shard.generator)).collect();
        let loss = |index: usize| Ok(loss(model, &tapes[index], &shards[index])?.try_record_backward()?);
        let (waiting, leaves) = (VecDeque::new(), &leaves);
        let mut recorder = Recorder { loss, shards: &shards, rows, waiting, leaves, layout: None };
        let first = if shards.is_empty() { None } else { Some(recorder.record(0)?) };
        let layout = self.agree_on_layout(recorder.layout.clone(), rows, count)?;
        let mut points: Vec<SyncPoints<T>>;
        (recorder.waiting, points) = first.into_iter().unzip();
        if !layout.point_widths.is_empty() {
            for index in recorder.waiting.len()..shards.len() {
                let (gradients, at) = recorder.record(index)?;
                recorder.waiting.push_back(gradients);
                points.push(at);
            }
            synchronize(self.group, &layout.point_widths, |rank| shards_of(rank).count(), &tapes, &points)?;
        }

        if self.parameter_shards.as_ref().is_some_and(|parameter_shards| parameter_shards.has_values) {
            if !layout.point_widths.is_empty() {
                let reason = "SyncBatchNorm needs them whole; shard the optimiser's states only";
                return Err(Error::ShardedParameters(reason));
            }
            let weight = T::from_f64(1.0 / count as f64);
            let sums = self.sharded_sums((leaves, &layout), &plan, weight, |index| recorder.next(index))?;
            return self.step_sharded(model, leaves, &layout, sums);
        }
        let length = layout.gradient_length();
        let division = self.division(length, layout.vector_length() - length);
        let sum = self.start_sum((leaves, &layout), (&plan, count), &division, &mut recorder)?;
        if self.parameter_shards.is_some() {
            let sums = sum.finish(false)?;
            return self.step_slice(model, leaves, &layout, &division, sums);
        }
        let flat = sum.finish(true)?;
        self.step_whole(model, leaves, &layout, flat)
    }

    /// Evaluates the gradients of this rank's shards, and returns the sum over all ranks, which is still in progress.
    /// Each bucket (part) of this rank's vectors is sent as soon as it is complete, or, if states are sharded, when all are complete.
    fn start_sum<'d, 't>(
        &self,
        (leaves, layout): (&Leaves, &Layout),
        (plan, count): (&'d ShardPlan, usize),
        division: &'d Division<'g>,
        recorder: &mut Recorder<'_, 't, T, impl FnMut(usize) -> Result<RecordedGradients<'t, T>>>,
    ) -> Result<PendingSum<'d, 'g, T>>
    where
        T: 't,
    {
        let mut sum = PendingSum::new(division, plan, self.sums_by_mpi());
        let (ranges, mut index) = (layout.gradient_ranges(leaves), 0);
        for round in 0..plan.rounds() {
            let Some(node) = plan.node(self.group.rank(), round) else {
                let zeros = self.sums_by_mpi().then(|| vec![T::ZERO; layout.vector_length()]);
                sum.send(zeros.as_deref(), None);
                continue;
            };
            let mut before = PartialSums::new();
            for number in node.leaf_range(count) {
                let gradients = recorder.next(index)?;
                let weight = T::from_f64(recorder.weight(index));
                let is_last = number + 1 == node.leaf_range(count).end;
                let left_halves = before.left_halves().filter(|_| is_last).map(Vec::as_slice).collect();
                let sum_of_last = if is_last && self.group.size() > 1 { Some(&mut sum) } else { None };
                let (flat, complete_from) = (vec![T::ZERO; layout.vector_length()], layout.gradient_length());
                let early_ranges = HashMap::new();
                let mut writer = GradientWriter {
                    flat,
                    ranges: &ranges,
                    weight,
                    left_halves,
                    sum: sum_of_last,
                    complete_from,
                    early_ranges,
                };
                let (loss, rest) = gradients.try_evaluate(&mut writer)?;
                writer.write(
                    complete_from..layout.vector_length(),
                    &layout.statistics_and_loss(leaves, loss, &rest, weight),
                );
                let flat = writer.flat;
                if is_last {
                    sum.send(Some(&flat), None);
                } else {
                    before.push(Node::leaf(number), flat, &mut add);
                }
                index += 1;
            }
        }
        Ok(sum)
    }
}

/// A recorder of the loss of each of this rank's shards, and of the gradients of these losses.
struct Recorder<'s, 't, T: Float, F> {
    /// The function that records the loss of the shard with the given index, and its gradients.
    loss: F,
    shards: &'s [Shard],
    /// The number of rows of the whole batch.
    rows: usize,
    /// The gradients of the next shards that were recorded in advance but not yet evaluated.
    waiting: VecDeque<RecordedGradients<'t, T>>,
    leaves: &'s Leaves,
    /// The layout of the first shard, once it is recorded.
    layout: Option<Layout>,
}

impl<'t, T: Float, F: FnMut(usize) -> Result<RecordedGradients<'t, T>>> Recorder<'_, 't, T, F> {
    /// Returns the fraction of the batch that the shard with the index `index` has.
    fn weight(&self, index: usize) -> f64 {
        self.shards[index].rows.len() as f64 / self.rows as f64
    }

    /// Records the shard with the index `index`. Returns its gradients, and its synchronization points (where it exchanges values with
    /// other shards). Returns an error if the shard's layout differs from the layout of the first shard.
    fn record(&mut self, index: usize) -> Result<(RecordedGradients<'t, T>, SyncPoints<T>)> {
        let weight = self.weight(index);
        let (recorded, points) = record_shard(weight, || (self.loss)(index))?;
        let widths = points.iter().map(|point| point.width()).collect();
        let own = Layout::from_recorded(self.leaves, &recorded, widths);
        self.layout.get_or_insert_with(|| own.clone()).check_equal(&own, self.shards[index].number)?;
        Ok((recorded, points))
    }

    /// Returns the recorded gradients of the next shard, which has the index `index`. Records the shard if it was not recorded in advance.
    fn next(&mut self, index: usize) -> Result<RecordedGradients<'t, T>> {
        match self.waiting.pop_front() {
            Some(gradients) => Ok(gradients),
            None => Ok(self.record(index)?.0),
        }
    }
}

/// A sink that writes the gradients of a shard into a vector as they are computed.
struct GradientWriter<'f, 'd, 'g, T> {
    flat: Vec<T>,
    ranges: &'f HashMap<u64, Range<usize>>,
    weight: T,
    /// For the last shard of a node of the summation tree: the sums of earlier shards, which are added to `flat` in order.
    left_halves: Vec<&'f [T]>,
    /// The sum over all ranks that is in progress. It sends each bucket (part of the vector) that is complete. `None` for a shard that is
    /// not the last of a node, and in a group of one rank.
    sum: Option<&'f mut PendingSum<'d, 'g, T>>,
    /// All gradients from this position of the vector `flat` on are complete.
    complete_from: usize,
    /// The ranges of complete gradients before the position `complete_from`. The key is the end of a range, and the value is its start.
    early_ranges: HashMap<usize, usize>,
}

impl<T: Float> GradientWriter<'_, '_, '_, T> {
    fn write(&mut self, range: Range<usize>, elements: &[T]) {
        let to = &mut self.flat[range.clone()];
        to.copy_from_slice(elements);
        for left in &self.left_halves {
            for (sum, &left) in to.iter_mut().zip(&left[range.clone()]) {
                *sum = left + *sum;
            }
        }
    }
}

impl<T: Float> GradientSink<T> for GradientWriter<'_, '_, '_, T> {
    fn gradient(&mut self, parameter: u64, gradient: Tensor<T>) -> Result<(), wengert_autograd::Error> {
        // A gradient without a range in the vector belongs to a parameter outside of the model and is ignored.
        let Some(range) = self.ranges.get(&parameter).filter(|range| !range.is_empty()).cloned() else {
            return Ok(());
        };
        let mut elements = Vec::with_capacity(range.len());
        push_scaled(&mut elements, &gradient, self.weight);
        self.write(range.clone(), &elements);
        self.early_ranges.insert(range.end, range.start);
        while let Some(start) = self.early_ranges.remove(&self.complete_from) {
            self.complete_from = start;
        }
        if let Some(sum) = &mut self.sum {
            sum.send(Some(&self.flat), Some(self.complete_from));
        }
        Ok(())
    }
}
