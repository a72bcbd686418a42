//! Synchronization points of a recorded step. At a point, the shards of a batch exchange values, in the forward and in the backward pass.
//!
//! Each shard contributes some values, and every rank receives the values of all shards. Every rank computes the
//! results of its shards from these values. The computation is in f64 and in the order of the shards, so the bits do
//! not depend on the number of ranks. A point is recorded as a custom operation. The step sets the operation's result
//! before it evaluates the operations that read it.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use wengert_autograd::prelude::*;
use wengert_autograd::{Call, Operation};
use wengert_tensor::{Shape, Site};

use crate::Result;
use crate::group::Group;

/// The name of the recorded operation of a synchronization point.
const NAME: &str = "sync_batch_norm";

/// The synchronization points of a shard, in the order of recording.
pub(crate) type SyncPoints<T> = Vec<Rc<SyncPoint<T>>>;

/// One shard's side of a synchronization point, at which all shards of a batch exchange values.
pub(crate) struct SyncPoint<T: Float> {
    kind: PointKind,
    channels: usize,
    /// The shard's fraction of the batch.
    weight: f64,
    result: RefCell<Option<Tensor<T>>>,
}

#[derive(Clone, Copy)]
enum PointKind {
    /// Combines statistics. A shard contributes `count`, the number of its values of each channel. It also contributes `[2, c]`: the mean
    /// of these values, and the sum of their squared distances from that mean. The result is `[3, c]`: the mean and the variance over all
    /// shards, and this shard's fraction of the values.
    Moments { count: usize },
    /// Sums the contributions `[3, c]` of all shards.
    Sum,
}

/// The kind of step that runs on this thread. A step either computes its shards directly, or records them and evaluates
/// them later.
enum StepKind {
    Computing,
    Recording { weight: f64, points: Vec<Rc<dyn Any>> },
}

thread_local! {
    static STEP_KIND: RefCell<Option<StepKind>> = const { RefCell::new(None) };
}

/// A guard that restores the earlier kind of step of this thread when it is dropped.
struct StepKindGuard(Option<StepKind>);

impl Drop for StepKindGuard {
    fn drop(&mut self) {
        let _ = STEP_KIND.try_with(|current| current.replace(self.0.take()));
    }
}

/// Sets the kind of step that runs on this thread until the guard is dropped. Returns an error if the thread is ending and its state is
/// already destroyed, because layers could not synchronize then.
fn set_step_kind(kind: StepKind) -> Result<StepKindGuard> {
    STEP_KIND.try_with(|before| StepKindGuard(before.replace(Some(kind)))).map_err(|_| {
        let message = "a step of a group cannot run in the destructor of a thread-local variable".to_owned();
        wengert_tensor::Error::Argument { message, at: Site::here("step") }.into()
    })
}

/// Runs `compute`, which computes a shard directly. Meanwhile a layer that needs a synchronization point returns an
/// error.
pub(crate) fn compute_shard<R>(compute: impl FnOnce() -> R) -> Result<R> {
    let _guard = set_step_kind(StepKind::Computing)?;
    Ok(compute())
}

/// Runs `record`, which records a shard with the fraction `weight` of the batch. Returns the result of `record` and the places in the shard
/// where layers combine their statistics with other shards.
pub(crate) fn record_shard<R, T: Float>(weight: f64, record: impl FnOnce() -> Result<R>) -> Result<(R, SyncPoints<T>)> {
    let _guard = set_step_kind(StepKind::Recording { weight, points: Vec::new() })?;
    let recorded = record()?;
    let points = match STEP_KIND.try_with(RefCell::take) {
        Ok(Some(StepKind::Recording { points, .. })) => points,
        _ => Vec::new(),
    };
    // The tape of a point has the second reference to it. A point without this reference is on no tape, because its tape was dropped or its
    // recording failed. So it does not belong to the shard.
    let referenced = points.into_iter().filter(|point| Rc::strong_count(point) > 1);
    Ok((recorded, referenced.filter_map(|point| point.downcast().ok()).collect()))
}

/// The ways in which a layer can get statistics.
pub(crate) enum SyncScope {
    /// No step is running: the layer uses the statistics of its input.
    Alone,
    /// The step computes one shard after the other, so the statistics of the later shards are not known yet.
    OneByOne,
    /// The step records all shards before it evaluates them, so the shards can exchange their statistics.
    Together,
}

/// Returns the way in which a layer on the calling thread can get statistics.
pub(crate) fn sync_scope() -> SyncScope {
    let scope = STEP_KIND.try_with(|current| match &*current.borrow() {
        None => SyncScope::Alone,
        Some(StepKind::Computing) => SyncScope::OneByOne,
        Some(StepKind::Recording { .. }) => SyncScope::Together,
    });
    // While a thread ends, the destructors of its other thread-local variables may still call layers, but the thread runs no step.
    scope.unwrap_or(SyncScope::Alone)
}

/// Returns `[3, c]`: the mean and the variance of each channel over all shards, and this shard's fraction of the values. `x` has `count`
/// values of each channel. `local` is `[2, c]`: the mean of these values, and the sum of their squared distances from the mean.
#[track_caller]
pub(crate) fn record_moments<'t, T: Float>(
    x: Var<'t, T>,
    local: Var<'t, T>,
    count: usize,
) -> Result<Var<'t, T>, wengert_autograd::Error> {
    // `x` is an operand only so that it stays in memory for later operations.
    x.tape().try_apply(sync_operation(PointKind::Moments { count }, local.shape()[1]), &[local, x])
}

/// Adds a synchronization point to the shard that is being recorded, if there is one. Returns the operation that
/// records the point.
fn sync_operation<T: Float>(kind: PointKind, channels: usize) -> SyncOperation<T> {
    let new_point = |weight| Rc::new(SyncPoint { kind, channels, weight, result: RefCell::new(None) });
    let recorded = STEP_KIND.try_with(|current| match &mut *current.borrow_mut() {
        Some(StepKind::Recording { weight, points }) => {
            let point = new_point(*weight);
            points.push(Rc::<SyncPoint<T>>::clone(&point));
            Some(point)
        }
        _ => None,
    });
    SyncOperation(recorded.ok().flatten().unwrap_or_else(|| new_point(1.0)))
}

impl<T: Float> SyncPoint<T> {
    /// Returns the number of values that a shard contributes at this synchronization point.
    pub(crate) fn width(&self) -> usize {
        match self.kind {
            PointKind::Moments { .. } => 2 * self.channels + 1,
            PointKind::Sum => 3 * self.channels,
        }
    }

    fn contribution(&self, values: &Tensor<T>) -> impl Iterator<Item = f64> {
        let count = match self.kind {
            PointKind::Moments { count } => Some(count as f64),
            PointKind::Sum => None,
        };
        count.into_iter().chain(values.iter().map(T::to_f64).collect::<Vec<_>>())
    }

    /// Sets the result of this synchronization point from `all`, the contributions of all shards. Returns an error if a channel has at most
    /// one value in all shards together, because it has no variance then.
    fn set_result(&self, all: &[f64]) -> Result<()> {
        let channels = self.channels;
        let shards = || all.chunks(self.width());
        let mut rows = vec![T::ZERO; 3 * channels];
        match self.kind {
            PointKind::Sum => {
                for (at, row) in rows.iter_mut().enumerate() {
                    *row = T::from_f64(shards().map(|shard| shard[at]).sum());
                }
            }
            PointKind::Moments { count } => {
                // Uses the formula of Chan, Golub and LeVeque (1983), for all shards at once.
                let total: f64 = shards().map(|shard| shard[0]).sum();
                if total <= 1.0 {
                    let message = "expected more than 1 value per channel when training".to_owned();
                    let at = Site::here(NAME);
                    return Err(wengert_tensor::Error::Argument { message, at }.into());
                }
                for channel in 0..channels {
                    let part = |shard: &[f64]| (shard[0], shard[1 + channel], shard[1 + channels + channel]);
                    let mean = shards().map(part).map(|(count, mean, _)| count * mean).sum::<f64>() / total;
                    let squares = |(count, own, squares): (f64, f64, f64)| squares + count * (own - mean).powi(2);
                    let variance = shards().map(part).map(squares).sum::<f64>() / total;
                    rows[channel] = T::from_f64(mean);
                    rows[channels + channel] = T::from_f64(variance);
                    rows[2 * channels + channel] = T::from_f64(count as f64 / total);
                }
            }
        }
        self.result.replace(Some(Tensor::try_from_vec(rows, [3, channels])?));
        Ok(())
    }
}

/// The recorded operation of a [`SyncPoint`].
struct SyncOperation<T: Float>(Rc<SyncPoint<T>>);

impl<T: Float> Operation<T> for SyncOperation<T> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn shape(&self, _inputs: &[Shape]) -> Result<Shape, String> {
        Ok(Shape::from([3, self.0.channels]))
    }

    fn run(&self, _inputs: &[Tensor<T>]) -> Result<Tensor<T>, wengert_autograd::Error> {
        let missing = || wengert_tensor::Error::Argument {
            message:
                "the statistics of all ranks are known only when `step_recorded` evaluates: read no values in its \
                      function"
                    .to_owned(),
            at: wengert_tensor::Site::here(NAME),
        };
        Ok(self.0.result.borrow().clone().ok_or_else(missing)?)
    }

    fn vjp<'t>(&self, call: &Call<'t, T>, input: usize, g: Var<'t, T>) -> Option<Var<'t, T>> {
        if input > 0 {
            return None;
        }
        // The step multiplies each shard's gradients by the shard's weight. So the sum is taken over weighted gradients, and then divided
        // by the weight.
        let weight = self.0.weight;
        let gradients = g.tape().apply(sync_operation(PointKind::Sum, self.0.channels), &[g * weight]) / weight;
        let PointKind::Moments { count } = self.0.kind else {
            return Some(gradients);
        };
        // This shard has n_j of all n values, with the mean m_j and the sum s_j of squared distances from m_j. The formulas are
        // mean = Σ n_j m_j / n and variance = Σ (s_j + n_j (m_j - mean)²) / n.
        let row = |of: Var<'t, T>, row: isize| of.narrow(0, row, 1);
        let (means, mean) = (row(call.input(0), 0), row(call.output(), 0));
        let (along_mean, along_variance, part) = (row(gradients, 0), row(gradients, 1), row(call.output(), 2));
        let of_means = (along_mean + along_variance * (means - mean) * 2.0) * part;
        Some(cat(&[of_means, along_variance * part / count as f64], 0))
    }
}

/// Evaluates the shards of this rank up to each of their synchronization points, and exchanges the shards' contributions with the other
/// ranks. `widths` has the length of one shard's contribution to each point. `shards_of` returns the number of shards of a rank.
pub(crate) fn synchronize<T: Float>(
    group: &Group,
    widths: &[usize],
    shards_of: impl Fn(usize) -> usize,
    tapes: &[Tape<T>],
    points: &[SyncPoints<T>],
) -> Result<()> {
    let calls: Vec<_> = tapes.iter().map(|tape| tape.calls(NAME)).collect();
    for (number, &width) in widths.iter().enumerate() {
        let mut own = Vec::new();
        for ((tape, calls), points) in tapes.iter().zip(&calls).zip(points) {
            let values = tape.try_values_slice(&calls[number].0)?;
            own.extend(points[number].contribution(&values[0]));
        }
        let all = group.gather_parts(NAME, own, |rank| shards_of(rank) * width)?.concat();
        points.iter().try_for_each(|points| points[number].set_result(&all))?;
    }
    Ok(())
}
