//! Data parallelism: a step over a batch that is divided among the ranks.

use std::ops::Range;

use wengert_autograd::{Gradients, Parameter};
use wengert_nn::{Checkpoint, Generator, Module, Optimizer, Saved, try_update_buffers};
use wengert_tensor::ops::Views as _;
use wengert_tensor::{Element, Float, Site, Tensor, compat};

use crate::collective::add;
use crate::flat::{Layout, Leaves};
use crate::group::Group;
use crate::parameter_shards::ParameterShards;
use crate::reduction::{BLOCK, Division, Partitioning, PendingSum};
use crate::sync::compute_shard;
use crate::tree::{Node, PartialSums, ShardPlan, part_range};
use crate::{Error, Result};

/// The default size of a bucket, in bytes. A bucket is a part of the gradients that is sent at once. With this size, the latency of a
/// message is small compared with the time of its transfer.
const DEFAULT_BUCKET_BYTES: usize = 4 << 20;

/// The default number of shards into which a batch is divided.
const DEFAULT_SHARDS: usize = 8;

impl Group {
    /// Replaces `gradients`, including the statistics for buffers, by the mean of the gradients of all ranks. Each rank has computed its
    /// gradients from its own batch, and all batches have the same number of rows. PyTorch: `DistributedDataParallel`.
    ///
    /// The result has gradients of parameters only, on any number of ranks. Variables (`tape.var`) belong to one rank: read their gradients
    /// before this call. After it, [`Gradients::of`] with a variable is an error.
    ///
    /// All ranks get the same bits, in every run with this number of ranks. With another number of ranks, the order of the additions
    /// differs. [`DataParallel`] gives the same bits for any number. You can add up the gradients of several batches (`gradients += …`)
    /// before one call. Then only their sum is sent.
    ///
    /// ```
    /// # mod wengert { pub use wengert_nn as nn; pub use wengert_autograd::prelude; }
    /// use wengert::prelude::*;
    /// use wengert_distributed::Group;
    /// use wengert::nn::{Generator, Layer, Linear, Optimizer, Sgd};
    ///
    /// let group = Group::world()?;
    /// let mut model = Linear::new(2, 1, &mut Generator::new(0));
    /// group.broadcast_model(&mut model)?;
    /// let mut sgd = Sgd::new(0.1);
    /// let rows: Tensor = Tensor::ones([8, 2]);
    /// let share = group.share(8); // this rank's rows of the batch
    /// let x = rows.narrow(0, share.start, share.len());
    /// let (_, mut gradients) =
    ///     Tape::new().value_and_gradients(|tape| model.forward(tape.constant(&x)).square().mean(..));
    /// group.average(&mut gradients)?;
    /// sgd.step(&mut model, &gradients);
    /// # Ok::<(), wengert_distributed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on every rank, if the ranks have gradients of different shapes or types; [`Error::Lost`]; [`Error::Tensor`] if
    /// there is not enough memory.
    pub fn average<T: Float>(&self, gradients: &mut Gradients<T>) -> Result<()> {
        if self.size() == 1 {
            let parameters = gradients.parameters().map(|(id, gradient)| (id, gradient.clone()));
            *gradients = gradients.with_parts(parameters, gradients.changes().iter().cloned());
            return Ok(());
        }
        let leaves = Leaves::from_gradients(gradients);
        let layout = Layout::from_gradients(&leaves, gradients);
        self.check_agreement("average", &format!("{} in {}", layout.description(), T::DTYPE))?;
        let weight = T::from_f64(1.0 / self.size() as f64);
        let mut flat = layout.flatten(&leaves, T::ZERO, gradients, weight);
        let plan = ShardPlan::new(self.size(), self.size(), usize::MAX);
        let division = Division {
            group: self,
            length: flat.len(),
            tail_length: 0,
            bucket_length: DEFAULT_BUCKET_BYTES / size_of::<T>(),
            partitioning: Partitioning::Buckets,
        };
        flat = division.sum(&plan, |_| Ok(std::mem::take(&mut flat)), true)?;
        let (parameters, changes) = layout.parts(&leaves, &flat, false)?;
        *gradients = gradients.with_parts(parameters, changes);
        Ok(())
    }

    /// Returns sums over all rows of a batch or a data set, such as the counts and totals of a metric. The `rows` rows are divided into
    /// `shards` shards, and the shards among the ranks. `compute` returns the sums over a range of rows. The sums of the shards are added
    /// in f64, with the same bits on any number of ranks up to `shards`.
    ///
    /// ```
    /// use wengert_distributed::Group;
    ///
    /// let group = Group::world()?;
    /// let losses = [0.5, 0.25, 0.125, 0.125];
    /// let [total, count] = group.sum_rows(4, 8, |rows| {
    ///     Ok([losses[rows.clone()].iter().sum(), rows.len() as f64])
    /// })?;
    /// assert_eq!(total / count, 0.25);
    /// # Ok::<(), wengert_distributed::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of `compute`; [`Error::NoRows`] if `rows` or `shards` is 0; [`Error::Mismatch`], on every rank, if
    /// the ranks differ in `N`, `rows` or `shards`; [`Error::Lost`].
    pub fn sum_rows<const N: usize>(
        &self,
        rows: usize,
        shards: usize,
        mut compute: impl FnMut(Range<usize>) -> Result<[f64; N]>,
    ) -> Result<[f64; N]> {
        self.check_agreement("sum_rows", &format!("{N} numbers of {rows} rows in {shards} shards"))?;
        let leaves = shards.min(rows);
        if leaves == 0 {
            return Err(Error::NoRows);
        }
        let plan = ShardPlan::new(leaves, self.size(), usize::MAX);
        let division = Division {
            group: self,
            length: N,
            tail_length: 0,
            bucket_length: DEFAULT_BUCKET_BYTES / size_of::<f64>(),
            partitioning: Partitioning::Buckets,
        };
        let node = |round| {
            let mut sums = PartialSums::new();
            for leaf in plan.node(self.rank(), round).map_or(0..0, |node| node.leaf_range(leaves)) {
                sums.push(Node::leaf(leaf), compute(part_range(rows, leaves, leaf))?.to_vec(), &mut add);
            }
            Ok(sums.into_total(&mut add).unwrap_or_default())
        };
        let total: Vec<f64> = division.sum(&plan, node, true)?;
        Ok(std::array::from_fn(|at| total[at]))
    }

    /// Writes the checkpoint of rank 0 to the file `path`, completely or not at all. The other ranks pass `None`. All
    /// ranks wait for the file.
    ///
    /// # Errors
    ///
    /// [`Error::Checkpoint`], on every rank, if rank 0 could not write the file; [`Error::Mismatch`], on every rank, if a rank called
    /// another operation; [`Error::Lost`].
    pub fn save(&self, checkpoint: Option<Checkpoint>, path: impl AsRef<std::path::Path>) -> Result<()> {
        let outcome = checkpoint.map_or(Ok(()), |checkpoint| checkpoint.save(path));
        let reason = outcome.err().map_or_else(String::new, |error| error.to_string());
        self.check_agreement("save", "a checkpoint")?;
        let reason = self.broadcast_text(0, &reason)?;
        if reason.is_empty() { Ok(()) } else { Err(Error::Checkpoint { reason }) }
    }
}

/// A part of a batch. The caller passes a function to a step, and the step calls it once for each shard of this rank.
#[derive(Debug)]
pub struct Shard {
    /// The index of this shard among the shards of the batch, from 0.
    pub number: usize,
    /// The rows of the batch that belong to this shard.
    pub rows: Range<usize>,
    /// The shard's own random numbers, for dropout. They do not depend on the rank that computes the shard.
    pub generator: Generator,
}

/// The division of a batch into shards and of the shards among the ranks, and the seed of the shards' random numbers.
pub(crate) struct PlannedStep {
    pub(crate) n_shards: usize,
    pub(crate) seed: u64,
    pub(crate) plan: ShardPlan,
}

impl Shard {
    pub(crate) fn new(number: usize, rows: Range<usize>, seed: u64) -> Self {
        Shard { number, rows, generator: Generator::from_state(seed, number as u64).fork() }
    }

    /// Returns this shard's rows of a tensor of the whole batch, `[n, …]`, as a view.
    ///
    /// # Panics
    ///
    /// If the tensor does not have all rows of this shard.
    #[track_caller]
    pub fn of<E: Element>(&self, batch: &Tensor<E>) -> Tensor<E> {
        batch.narrow(0, self.rows.start, self.rows.len())
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The mean of the loss over all rows of the batch.
    pub loss: f64,
    /// The norm of the gradient before clipping, or `None` without clipping.
    pub norm: Option<f64>,
}

/// An optimiser for data-parallel training: all ranks have the same model, and each batch is divided among them.
/// PyTorch: `DistributedDataParallel` and `ZeroRedundancyOptimizer`.
///
/// A batch is divided into a fixed number of shards (8 by default), whatever the number of ranks. The gradients of the
/// shards are summed in one fixed tree, within a rank and across ranks. **Training has the same bits on any number of
/// ranks up to the number of shards.** This includes a group of one, and [sharded](Self::sharded) states, but not
/// [`fast`](Self::fast).
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
/// let mut parallel = DataParallel::new(&group, &mut model, Adam::new(0.01))?.clip_norm(1.0);
/// for _ in 0..3 {
///     let x = Tensor::randn([32, 4], generator); // the whole batch; each rank computes its shards
///     let step = parallel.step(&mut model, 32, generator, |model, shard| {
///         let x = shard.of(&x);
///         Ok(Tape::training(&mut shard.generator)
///             .value_and_gradients(|tape| model.forward(tape.constant(&x)).square().mean(..)))
///     })?;
///     assert!(step.loss.is_finite());
/// }
/// # Ok::<(), wengert_distributed::Error>(())
/// ```
///
/// # Buffers
///
/// Batch normalization normalizes each shard by the shard's own statistics. The running statistics change once in a
/// step, towards the mean of the shards' statistics. This mean is weighted by rows and summed in the tree. So buffers
/// are equal on all ranks, and have the same bits on any number of ranks. [`SyncBatchNorm`](crate::SyncBatchNorm) normalizes all
/// shards by the statistics of the whole batch.
///
/// # More rows than memory holds
///
/// The function that the caller passes to a step may compute a shard in several parts and add up the gradients of the parts. With
/// [`step`](Self::step), and without [`send_every`](Self::send_every), a rank sends no gradients before it has computed all shards of one
/// sum.
pub struct DataParallel<'g, O: Optimizer<T>, T: Float = f32> {
    pub(crate) group: &'g Group,
    optimizer: O,
    shards: usize,
    max_shards_per_node: usize,
    max_norm: Option<f64>,
    is_fast: bool,
    pub(crate) parameter_shards: Option<ParameterShards<T>>,
    bucket_length: usize,
}

impl<'g, O: Optimizer<T>, T: Float> DataParallel<'g, O, T> {
    /// Returns a data-parallel optimiser that makes the steps of `optimizer`, with 8 shards in a batch. First sends the parameters and
    /// buffers of rank 0 to every rank, and checks that the models of all ranks are equal.
    ///
    /// # Errors
    ///
    /// The errors of [`Group::broadcast_model`].
    pub fn new(group: &'g Group, model: &mut (impl Module<T> + ?Sized), optimizer: O) -> Result<Self> {
        group.broadcast_model(model)?;
        group.check_equal(model)?;
        let (max_shards_per_node, bucket_length) = (usize::MAX, DEFAULT_BUCKET_BYTES / size_of::<T>());
        Ok(DataParallel {
            group,
            optimizer,
            shards: DEFAULT_SHARDS,
            max_shards_per_node,
            max_norm: None,
            is_fast: false,
            parameter_shards: None,
            bucket_length,
        })
    }

    /// Sets the number of shards of a batch. The result depends on this number, and there can be no more ranks than
    /// shards. A batch with fewer rows than shards has one shard for each row.
    #[must_use]
    pub fn shards(self, shards: usize) -> Self {
        DataParallel { shards, ..self }
    }

    /// Scales the gradient so that its norm over all parameters is at most `max_norm`, as [`Gradients::clip_norm`]
    /// does.
    #[must_use]
    pub fn clip_norm(self, max_norm: f64) -> Self {
        DataParallel { max_norm: Some(max_norm), ..self }
    }

    /// Makes a rank send sums of the gradients of at most `shards` of its shards, while it computes the next shards. The number of shards
    /// in a sum is a power of two, or smaller at the end of the batch. By default a rank sends as few sums as the fixed tree permits, often
    /// only one. With 1, it sends the gradients of every shard separately. This setting does not change the result.
    #[must_use]
    pub fn send_every(self, shards: usize) -> Self {
        DataParallel { max_shards_per_node: shards.max(1), ..self }
    }

    /// Sets the size of the buckets in which gradients are sent; 4 MiB by default. In [`step_recorded`](Self::step_recorded) each bucket is
    /// sent as soon as it is complete, unless states are sharded. This setting does not change the result. PyTorch: `bucket_cap_mb`.
    #[must_use]
    pub fn bucket_bytes(self, bytes: usize) -> Self {
        DataParallel { bucket_length: (bytes / size_of::<T>()).max(1), ..self }
    }

    /// Uses MPI's own all-reduce (`MPI_Iallreduce`) for sums, and computes all rows of a rank as one shard. This is faster, and guarantees
    /// less: the result depends on the number of ranks and on MPI's choices. MPI decides whether all ranks of a run get the same bits;
    /// [`checkpoint`](Self::checkpoint) checks that they do. Without MPI, the sums keep their fixed order. This turns sharded states off.
    ///
    /// # Panics
    ///
    /// If parameters or states of the optimiser would be lost: with [sharded parameters](Self::sharded_parameters) before a call of
    /// [`gather`](Self::gather), and with [sharded states](Self::sharded) after a step.
    #[must_use]
    #[track_caller]
    pub fn fast(self) -> Self {
        match self.try_fast() {
            Ok(parallel) => parallel,
            Err(error) => panic!("{error}"),
        }
    }

    /// Does the same as [`fast`](Self::fast), but returns the error instead of panicking.
    ///
    /// # Errors
    ///
    /// [`Error::ShardedParameters`]; [`Error::ShardedStates`]. After an error, the ranks' slices are lost with `self`, so sharded parameters
    /// stay NaN.
    pub fn try_fast(self) -> Result<Self> {
        self.check_not_sharded("`gather` them before `fast`")?;
        if self.parameter_shards.as_ref().is_some_and(|shards| shards.has_states(&self.optimizer)) {
            return Err(Error::ShardedStates("call `fast` before the first step"));
        }
        Ok(DataParallel { is_fast: true, parameter_shards: None, ..self })
    }

    /// Divides the optimiser's states among the ranks (ZeRO, stage 1), so that each of N ranks has about 1/N of them.
    /// The slices consist of whole blocks of 1,024 elements. States of frozen parameters stay whole on every rank. The result is the same
    /// as without sharding, and the amount of data sent is about the same. This method turns [`fast`](Self::fast) off.
    ///
    /// # Panics
    ///
    /// If the optimiser is not [elementwise](Optimizer::is_elementwise), such as Adafactor and Muon. If the parameters
    /// are [sharded](Self::sharded_parameters), before a call of [`gather`](Self::gather). If parameters were frozen or
    /// unfrozen after an earlier call that sharded states, and the optimiser has states by now. Also if there is not enough memory.
    #[must_use]
    #[track_caller]
    pub fn sharded(self, model: &(impl Module<T> + ?Sized)) -> Self {
        match self.try_sharded(model) {
            Ok(parallel) => parallel,
            Err(error) => panic!("{error}"),
        }
    }

    /// Does the same as [`sharded`](Self::sharded), but returns the error instead of panicking.
    ///
    /// # Errors
    ///
    /// [`Error::NotElementwise`]; [`Error::ShardedParameters`]; [`Error::FrozenChanged`] if parameters were frozen or
    /// unfrozen after an earlier call, and the optimiser has states by now; [`Error::Tensor`] if there is not enough memory. After an error,
    /// the ranks' slices are lost with `self`, so sharded parameters stay NaN.
    #[track_caller]
    pub fn try_sharded(self, model: &(impl Module<T> + ?Sized)) -> Result<Self> {
        self.check_not_sharded("`gather` them before `sharded`")?;
        self.with_divided_states(model, Site::here("sharded"))
    }

    /// Divides the parameters and the optimiser's states among the ranks (ZeRO, stage 3), so that each of N ranks has
    /// about 1/N of them. The slices consist of whole blocks of 1,024 elements. A rank receives the other parts for
    /// each operation that reads them, in the forward and again in the backward pass. The rank that has a part of a
    /// parameter also sums the gradient of this part. The result is the same as without sharding, but much more data is sent.
    ///
    /// This works only for [`step_recorded`](Self::step_recorded), without [`SyncBatchNorm`](crate::SyncBatchNorm), and
    /// for batches whose number of rows is a multiple of the number of shards. PyTorch: `FullyShardedDataParallel`.
    ///
    /// The parameters in the model are NaN until [`gather`](Self::gather) restores them. Frozen parameters stay complete.
    ///
    /// # Panics
    ///
    /// If the optimiser is not [elementwise](Optimizer::is_elementwise). If parameters were frozen or unfrozen after an earlier call
    /// that sharded, and the ranks still have slices of parameters or of the optimiser's states from that call. In both cases the model is
    /// not changed. Also if there is not enough memory.
    #[must_use]
    #[track_caller]
    pub fn sharded_parameters(self, model: &mut (impl Module<T> + ?Sized)) -> Self {
        match self.try_sharded_parameters(model) {
            Ok(parallel) => parallel,
            Err(error) => panic!("{error}"),
        }
    }

    /// Does the same as [`sharded_parameters`](Self::sharded_parameters), but returns the error instead of panicking.
    ///
    /// # Errors
    ///
    /// [`Error::NotElementwise`]; [`Error::FrozenChanged`] if parameters were frozen or unfrozen after an earlier call that sharded, and the
    /// ranks still have slices of parameters or of the optimiser's states from that call; [`Error::Tensor`] if there is not enough memory.
    /// After an error the model is unchanged, but the ranks' slices are lost with `self`. So parameters that are sharded, and therefore NaN
    /// in the model, stay NaN.
    #[track_caller]
    pub fn try_sharded_parameters(self, model: &mut (impl Module<T> + ?Sized)) -> Result<Self> {
        let mut parallel = self.with_divided_states(model, Site::here("sharded_parameters"))?;
        parallel.release(model)?;
        Ok(parallel)
    }

    /// Divides the optimiser's states among the ranks. Keeps existing shards if the same parameters are frozen as
    /// before. Otherwise replaces the shards, or returns an error if they have values or states. Returns an error if
    /// the optimiser is not elementwise.
    fn with_divided_states(mut self, model: &(impl Module<T> + ?Sized), at: Site) -> Result<Self> {
        if !self.optimizer.is_elementwise() {
            let path = std::any::type_name::<O>();
            let path = path.split('<').next().unwrap_or(path);
            return Err(Error::NotElementwise { optimizer: path.rsplit("::").next().unwrap_or(path), at });
        }
        self.is_fast = false;
        if let Some(shards) = &self.parameter_shards {
            if shards.has_same_frozen(model) {
                return Ok(self);
            }
            if shards.has_values || shards.has_states(&self.optimizer) {
                return Err(Error::FrozenChanged);
            }
        }
        let parameter_shards = ParameterShards::new(
            model,
            self.division(ParameterShards::n_trainable_elements(model), 0).slice(self.group.rank()),
        )?;
        parameter_shards.divide_states(model, &mut self.optimizer);
        self.parameter_shards = Some(parameter_shards);
        Ok(self)
    }

    /// Restores the [sharded](Self::sharded_parameters) parameters in every rank's model, for an evaluation or a
    /// checkpoint. Without sharded parameters it does nothing. PyTorch: `summon_full_params`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on every rank, if a rank called another operation; [`Error::Lost`]; [`Error::Tensor`] if there is not enough
    /// memory.
    pub fn gather(&mut self, model: &mut (impl Module<T> + ?Sized)) -> Result<()> {
        // Parameters may have been frozen since they were divided, so the number of divided elements comes from the shards and not from the
        // model.
        let division = self.division(self.parameter_shards.as_ref().map_or(0, ParameterShards::n_divided_elements), 0);
        match self.parameter_shards.as_mut().filter(|parameter_shards| parameter_shards.has_values) {
            Some(parameter_shards) => parameter_shards.move_to_model(model, &division),
            None => Ok(()),
        }
    }

    /// Divides the parameters among the ranks, for the first time or after [`gather`](Self::gather). Without
    /// [`sharded`](Self::sharded) states, or if the parameters are divided already, it does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::FrozenChanged`] if parameters were frozen or unfrozen since the states were sharded. The model is then
    /// not changed.
    pub fn release(&mut self, model: &mut (impl Module<T> + ?Sized)) -> Result<()> {
        match self.parameter_shards.as_mut().filter(|parameter_shards| !parameter_shards.has_values) {
            Some(parameter_shards) if !parameter_shards.has_same_frozen(model) => return Err(Error::FrozenChanged),
            Some(parameter_shards) => parameter_shards.move_from_model(model),
            None => {}
        }
        Ok(())
    }

    /// Returns the number of bytes of the parameters on this rank.
    pub fn parameter_bytes(&self, model: &(impl Module<T> + ?Sized)) -> usize {
        let sharded = self.parameter_shards.as_ref().filter(|parameter_shards| parameter_shards.has_values);
        let kept = |own: &&Parameter<T>| sharded.is_none() || own.is_frozen();
        let whole: usize = model.parameters().into_iter().filter(kept).map(|own| own.value.numel()).sum();
        whole * size_of::<T>() + sharded.map_or(0, ParameterShards::value_bytes)
    }

    /// Returns an error with `reason` if the parameters are sharded, and `Ok` otherwise.
    fn check_not_sharded(&self, reason: &'static str) -> Result<()> {
        let sharded = self.parameter_shards.as_ref().is_some_and(|parameter_shards| parameter_shards.has_values);
        if sharded { Err(Error::ShardedParameters(reason)) } else { Ok(()) }
    }

    /// Returns the optimiser, with its settings. With sharded states it has only the states of this rank.
    pub fn optimizer(&self) -> &O {
        &self.optimizer
    }

    /// Sets the learning rate. To follow a schedule, call this method with the schedule's rate before each step.
    pub fn set_lr(&mut self, lr: f64) {
        self.optimizer.set_lr(lr);
    }

    /// Returns the number of bytes of the optimiser's states on this rank.
    pub fn state_bytes(&self, model: &(impl Module<T> + ?Sized)) -> usize {
        // If states are sharded, the model's own parameters have states only if they are frozen. `state_bytes` below counts the others.
        let states = model.parameters().into_iter().filter_map(|own| self.optimizer.common().states(own));
        let whole: usize =
            states.flat_map(|states| &states.tensors).map(|tensor| tensor.numel() * size_of::<T>()).sum();
        whole + self.parameter_shards.as_ref().map_or(0, |shards| shards.state_bytes(&self.optimizer))
    }

    pub(crate) fn division(&self, length: usize, tail_length: usize) -> Division<'g> {
        let partitioning = if self.parameter_shards.is_some() { Partitioning::Slices } else { Partitioning::Buckets };
        Division { group: self.group, length, tail_length, bucket_length: self.bucket_length, partitioning }
    }

    /// Takes one step along the mean gradient of a batch of `rows` rows. The step calls `compute` for each shard of this rank. `compute`
    /// returns the mean loss of the shard's rows and its gradients. The generator must be in the same state on all ranks. After the step,
    /// it is in the same state on all ranks again. Warns, as [`Optimizer::step`] does, if a shard's tape was not a training tape, although
    /// it ran a layer that behaves differently in training.
    ///
    /// # Errors
    ///
    /// The errors of `compute` and of the optimiser; [`Error::NoRows`]; [`Error::TooFewShards`]; [`Error::ShardsDiffer`];
    /// [`Error::ShardedParameters`]; [`Error::FrozenChanged`]; [`Error::Mismatch`], on every rank, if the ranks differ in `rows`, in the
    /// parameters that have gradients, in types, or in the parts that are sharded; [`Error::Lost`]; [`Error::Tensor`] if there is not enough
    /// memory.
    #[track_caller]
    pub fn step<M: Module<T>>(
        &mut self,
        model: &mut M,
        rows: usize,
        generator: &mut Generator,
        mut compute: impl FnMut(&M, &mut Shard) -> Result<(T, Gradients<T>)>,
    ) -> Result<Step> {
        self.check_not_sharded("`step` needs the model's own parameters; use `step_recorded`")?;
        let (group, at) = (self.group, Site::here("step"));
        let PlannedStep { n_shards: count, seed, plan } = self.plan_step(rows, generator)?;
        let leaves = Leaves::from_model(model);
        // This closure computes a node of the summation tree: the sum of the vectors (gradients, statistics and loss) of some of this
        // rank's shards.
        let mut layout = None;
        let mut node = |layout: &mut Option<Layout>, round: usize| -> Result<Vec<T>> {
            let mut sums = PartialSums::new();
            for number in plan.node(group.rank(), round).map_or(0..0, |node| node.leaf_range(count)) {
                let mut shard = Shard::new(number, part_range(rows, count, number), seed);
                let weight = T::from_f64(shard.rows.len() as f64 / rows as f64);
                let (loss, gradients) = compute_shard(|| compute(model, &mut shard))??;
                if let Some(layer) = gradients.evaluated_layer() {
                    compat::emit(compat::Warning::Evaluating { layer, at });
                }
                let own = Layout::from_gradients(&leaves, &gradients);
                let layout = &*layout.get_or_insert_with(|| own.clone());
                layout.check_equal(&own, number)?;
                sums.push(Node::leaf(number), layout.flatten(&leaves, loss, &gradients, weight), &mut add);
            }
            Ok(sums.into_total(&mut add).unwrap_or_default())
        };
        let has_rows = plan.node(group.rank(), 0).is_some();
        let mut first = if has_rows { Some(node(&mut layout, 0)?) } else { None };
        let layout = self.agree_on_layout(layout, rows, count)?;
        let mut own = Some(layout.clone());
        let flat_of = |round| match first.take() {
            Some(first) => Ok(first),
            None => node(&mut own, round),
        };
        let length = layout.gradient_length();
        let tail = layout.vector_length() - length;
        if self.parameter_shards.is_some() {
            let division = self.division(length, tail);
            let sums = division.sum(&plan, flat_of, false)?;
            return self.step_slice(model, &leaves, &layout, &division, sums);
        }
        let division = self.division(length, tail);
        let flat = if self.sums_by_mpi() {
            let own = first_or_zeros(flat_of, has_rows, length + tail)?;
            let mut sum = PendingSum::new(&division, &plan, true);
            sum.send(Some(&own), None);
            sum.finish(true)?
        } else {
            division.sum(&plan, flat_of, true)?
        };
        self.step_whole(model, &leaves, &layout, flat)
    }

    /// Returns true if MPI adds the gradients, in its own order.
    pub(crate) fn sums_by_mpi(&self) -> bool {
        self.is_fast && self.group.can_sum() && self.group.size() > 1
    }

    /// Returns the division of a batch of `rows` rows into shards, and of the shards among the ranks, with a seed from
    /// `generator`. Returns an error if there are no rows, or more ranks than shards, or if sharded parameters do not permit this number of
    /// rows.
    pub(crate) fn plan_step(&self, rows: usize, generator: &mut Generator) -> Result<PlannedStep> {
        let size = self.group.size();
        let shards = if self.is_fast { size } else { self.shards };
        if shards < size {
            return Err(Error::TooFewShards { shards, size });
        }
        let count = shards.min(rows);
        if count == 0 {
            return Err(Error::NoRows);
        }
        let sharded = self.parameter_shards.as_ref().is_some_and(|parameter_shards| parameter_shards.has_values);
        if sharded && !rows.is_multiple_of(shards) {
            return Err(Error::ShardedParameters("the rows of a batch must be a multiple of the shards"));
        }
        let plan = if sharded {
            ShardPlan::by_rounds(count, size)
        } else {
            ShardPlan::new(count, size, self.max_shards_per_node)
        };
        Ok(PlannedStep { n_shards: count, seed: generator.next_u64(), plan })
    }

    /// Updates all parameters and buffers by `flat`, the sum of the vectors of all ranks. If a largest norm is set,
    /// clips the gradients first. Returns the loss and the norm.
    pub(crate) fn step_whole<M: Module<T>>(
        &mut self,
        model: &mut M,
        leaves: &Leaves,
        layout: &Layout,
        mut flat: Vec<T>,
    ) -> Result<Step> {
        let length = layout.gradient_length();
        let norm = self.max_norm.map(|max| {
            let norm = squared_norms_of_blocks(&flat[..length]).into_iter().sum::<f64>().sqrt();
            clip(&mut flat[..length], max, norm);
            norm
        });
        let loss = flat[flat.len() - 1].to_f64();
        self.optimizer.try_step(model, &layout.unflatten(leaves, &flat, false)?)?;
        Ok(Step { loss, norm })
    }

    /// Returns the layout of the vector that the ranks sum in this step. Returns an error if the ranks differ in the layout, in the rows,
    /// or in the sharding of states and parameters.
    pub(crate) fn agree_on_layout(&self, layout: Option<Layout>, rows: usize, count: usize) -> Result<Layout> {
        let group = self.group;
        if group.size() == 1 {
            return Ok(layout.unwrap_or_default());
        }
        // A rank without rows receives the layout from rank 0, which always has rows.
        let mut layout = layout;
        if count < group.size() {
            let words = layout.as_ref().map_or_else(Vec::new, Layout::to_words);
            let length = group.broadcast_elements("step", vec![words.len() as i64], 1, 0)?;
            let words =
                group.broadcast_elements("step", words, length.first().map_or(0, |&length| length as usize), 0)?;
            layout = layout.or_else(|| Some(Layout::from_words(&words)));
        }
        let layout = layout.unwrap_or_default();
        let sharding = match &self.parameter_shards {
            None => "states whole",
            Some(parameter_shards) if parameter_shards.has_values => "parameters sharded",
            Some(_) => "states sharded",
        };
        let description = format!("{rows} rows, {} in {}, {sharding}", layout.description(), T::DTYPE);
        group.check_agreement("step", &description)?;
        Ok(layout)
    }

    /// Updates the parameters in this rank's slice of the vector of all parameters. Exchanges the new values with the
    /// other ranks, and updates the buffers. Returns the loss and the norm.
    pub(crate) fn step_slice<M: Module<T>>(
        &mut self,
        model: &mut M,
        leaves: &Leaves,
        layout: &Layout,
        division: &Division<'_>,
        mut sums: Vec<T>,
    ) -> Result<Step> {
        let length = layout.gradient_length();
        let norm = self.update_own_parameters(model, layout, division, &mut sums)?;
        let flat = division.all_gather(sums)?;
        if let Some(parameter_shards) = &self.parameter_shards {
            parameter_shards.copy_to_model(model, &flat)?;
        }
        try_update_buffers(model, &layout.unflatten(leaves, &flat[length..], true)?)?;
        Ok(Step { loss: flat[flat.len() - 1].to_f64(), norm })
    }

    /// Updates the part of the parameters that this rank owns. `sums` begins with the summed gradients of this part. If
    /// only states are sharded, the new parameters replace these gradients. Returns the norm of the gradient of all
    /// parameters before clipping, or `None` without clipping. Returns an error if parameters were frozen or unfrozen, or a trained
    /// parameter has no gradient.
    pub(crate) fn update_own_parameters<M: Module<T>>(
        &mut self,
        model: &M,
        layout: &Layout,
        division: &Division<'_>,
        sums: &mut [T],
    ) -> Result<Option<f64>> {
        let Some(parameter_shards) =
            self.parameter_shards.as_mut().filter(|parameter_shards| parameter_shards.has_same_frozen(model))
        else {
            return Err(Error::FrozenChanged);
        };
        let length = layout.gradient_length();
        let trained = model.parameters().into_iter().enumerate().filter(|(_, own)| !own.is_frozen());
        let trained: Vec<(usize, usize)> = trained.map(|(position, own)| (position, own.value.numel())).collect();
        if trained != layout.gradients {
            let reached = |position: usize| layout.gradients.iter().any(|&(known, _)| known == position);
            let paths = model
                .named_parameters()
                .into_iter()
                .enumerate()
                .filter(|(position, (_, own))| !own.is_frozen() && !reached(*position));
            let names = paths.map(|(_, (path, _))| path).collect();
            return Err(wengert_nn::Error::Unreached { names }.into());
        }
        let group = self.group;
        let slice = division.slice(group.rank());
        let own = slice.start..slice.end.min(length).max(slice.start);
        let norm = match self.max_norm {
            None => None,
            Some(max) => {
                let blocks_of = |rank: usize| {
                    let slice = division.slice(rank);
                    slice.end.min(length).saturating_sub(slice.start).div_ceil(BLOCK)
                };
                let all = group.gather_parts("clip_norm", squared_norms_of_blocks(&sums[..own.len()]), blocks_of)?;
                let norm = all.into_iter().flatten().sum::<f64>().sqrt();
                clip(&mut sums[..own.len()], max, norm);
                Some(norm)
            }
        };
        parameter_shards.step(model, &mut self.optimizer, sums, &slice)?;
        Ok(norm)
    }

    /// Returns a checkpoint of the model and the optimiser on rank 0, and `None` on the other ranks. The optimiser is
    /// saved under `name`. More can be added to the checkpoint before [`Group::save`] writes it. The other ranks send
    /// sharded states to rank 0. The file is the same for any number of ranks, sharded or not. All ranks' models are
    /// compared first.
    ///
    /// # Errors
    ///
    /// [`Error::Unequal`], on every rank, if the models are not equal; [`Error::Mismatch`], on every rank, if they
    /// differ in paths, shapes or types, or a rank called another operation; [`Error::ShardedParameters`];
    /// [`Error::Lost`]; [`Error::Tensor`] if there is not enough memory.
    pub fn checkpoint(&self, name: &str, model: &(impl Module<T> + ?Sized)) -> Result<Option<Checkpoint>> {
        self.check_not_sharded("`gather` them before a checkpoint")?;
        self.group.check_equal(model)?;
        let first = self.group.is_first();
        let Some(parameter_shards) = &self.parameter_shards else {
            return Ok(first.then(|| Checkpoint::new().model(model).optimizer(name, &self.optimizer, model)));
        };
        // As in `gather`, the number of divided elements comes from the shards, because parameters may have been frozen since they were
        // divided.
        let division = self.division(parameter_shards.n_divided_elements(), 0);
        let united = parameter_shards.gather_optimizer(model, &self.optimizer, &division)?;
        Ok(united.map(|optimizer| Checkpoint::new().model(model).optimizer(name, &optimizer, model)))
    }

    /// Reads the model, and the optimiser that was saved under `name`, from a checkpoint of any number of ranks. Every
    /// rank reads the file.
    ///
    /// # Errors
    ///
    /// The errors of [`Saved::load_model`] and [`Saved::load_optimizer`]; [`Error::ShardedParameters`];
    /// [`Error::Unequal`] if ranks read different files; [`Error::Mismatch`], on every rank, if a rank called another
    /// operation; [`Error::Lost`].
    pub fn load(&mut self, saved: &Saved, name: &str, model: &mut (impl Module<T> + ?Sized)) -> Result<()> {
        self.check_not_sharded("`gather` them before others are loaded")?;
        saved.load_model(model)?;
        saved.load_optimizer(name, &mut self.optimizer, model)?;
        if let Some(parameter_shards) = &self.parameter_shards {
            parameter_shards.divide_states(model, &mut self.optimizer);
        }
        self.group.check_equal(model)
    }
}

/// Returns `flat_of(0)`, the vector of this rank's shards in the first round, or `length` zeros if this rank has no
/// rows.
fn first_or_zeros<T: Float>(
    mut flat_of: impl FnMut(usize) -> Result<Vec<T>>,
    has_rows: bool,
    length: usize,
) -> Result<Vec<T>> {
    if has_rows { flat_of(0) } else { Ok(vec![T::ZERO; length]) }
}

/// Divides the gradients into blocks of [`BLOCK`] elements, and returns the sum of squares of each block. The blocks are the same for any
/// number of ranks.
fn squared_norms_of_blocks<T: Float>(gradients: &[T]) -> Vec<f64> {
    gradients.chunks(BLOCK).map(|block| block.iter().map(|g| g.to_f64() * g.to_f64()).sum()).collect()
}

/// Scales the gradients, whose norm is `norm`, so that the norm is at most `max_norm`, as [`Gradients::clip_norm`] does.
fn clip<T: Float>(gradients: &mut [T], max_norm: f64, norm: f64) {
    let factor = max_norm / (norm + 1e-6);
    if factor < 1.0 || factor.is_nan() {
        let factor = T::from_f64(factor);
        gradients.iter_mut().for_each(|g| *g = *g * factor);
    }
}
